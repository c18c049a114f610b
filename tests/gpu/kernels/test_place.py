"""Placing, compared with NumPy: shuffles, byte order, strides, fills, several pieces."""

from __future__ import annotations

import ctypes

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from .driver import Bytes, Driver
from .settings import PROPERTIES
from .shuffling import decompressed_blosc, shuffled
from .structs import BITS, BYTES, FILL, NO_SHUFFLE, Piece, lengths, strides
from .views import ELEMENTS, View, random_bytes, shapes, views

pytestmark = pytest.mark.kernels

launches = st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 5, 32]))


def piece(source: View, destination: View, **fields: int) -> Piece:
    """Return a piece between two views, with addresses to be set later."""
    return Piece(
        source_offset=source.offset,
        count=source.count,
        shape=lengths(source.shape),
        source_stride=strides(source.strides),
        destination_stride=strides(destination.strides),
        rank=len(source.shape),
        **fields,
    )


def reversed_words(elements: Bytes, word_nbytes: int) -> Bytes:
    """Reverse the bytes of each word."""
    if not word_nbytes:
        return elements
    return np.ascontiguousarray(elements.reshape(-1, word_nbytes)[:, ::-1]).reshape(elements.shape)


def elements_of(view: View, content: Bytes, item: int, word_nbytes: int) -> Bytes:
    """Return the elements of a view in order, as native-endian bytes."""
    whole = np.ascontiguousarray(view.of(content, ELEMENTS[item])).reshape(-1).view(np.uint8)
    return reversed_words(whole, word_nbytes)


@st.composite
def placements(draw: st.DrawFn) -> tuple[int, Piece, View, View, Bytes, Bytes, Bytes]:
    """Draw a piece, its views, its stored buffer, the elements in order, and the destination's old bytes."""
    item = draw(st.sampled_from([1, 2, 4, 8, 16]))
    shape = draw(shapes)
    source = draw(views(shape, item, broadcast=True))
    destination = draw(views(shape, item))
    content = random_bytes(source.nbytes, draw(st.integers(0, 99)))
    kind = draw(st.sampled_from([NO_SHUFFLE, BYTES, BITS, FILL]))
    element = draw(st.sampled_from([item, item, item, 1, 2, 3, 4, 12, 16, 255]))
    block = draw(
        st.one_of(st.integers(1, 8).map(lambda eights: eights * 8 * element), st.integers(1, source.nbytes))
    )
    word = draw(st.sampled_from([word for word in (0, 2, 4, 8) if word <= item]))
    made = piece(
        source,
        destination,
        shuffle=kind,
        element_nbytes=element,
        block_nbytes=block,
        decoded_nbytes=source.nbytes,
        word_nbytes=word,
    )
    elements = elements_of(source, content, item, word)
    if kind == FILL:
        fill = random_bytes(16, draw(st.integers(0, 9)))
        made.fill = type(made.fill)(*fill.tolist())
        elements = np.tile(fill[:item], source.count)
    stored = shuffled(content, kind, element, block)
    return item, made, source, destination, stored, elements, random_bytes(destination.nbytes, 7)


@PROPERTIES
@given(st.data(), launches)
def test_pieces_are_placed_as_numpy_places_them(
    shared: Driver, data: st.DataObject, launch: tuple[int, int, int]
) -> None:
    """Compares every byte of each destination, also between the elements."""
    first = data.draw(placements())
    drawn = [first, *data.draw(st.lists(placements().filter(lambda other: other[0] == first[0]), max_size=2))]
    contents: list[Bytes] = []
    expected: list[Bytes] = []
    for item, _, _, destination, stored, elements, before in drawn:
        after = before.copy()
        destination.of(after, ELEMENTS[item])[...] = elements.view(ELEMENTS[item]).reshape(destination.shape)
        contents += [stored, before]
        expected.append(after)
    with shared.memory(*contents) as addresses:
        for number, (_, made, _, destination, *_) in enumerate(drawn):
            # A fill has no readable source.
            made.source = 0 if made.shuffle == FILL else addresses[2 * number]
            made.destination = addresses[2 * number + 1] + destination.offset
        pieces = b"".join(bytes(made) for _, made, *_ in drawn)
        with shared.memory(np.frombuffer(pieces, np.uint8)) as [list_address]:
            shared.launch(
                f"zarrow_place_{first[0]}",
                ctypes.c_uint64(list_address),
                ctypes.c_uint32(len(drawn)),
                blocks=launch[:2],
                threads=launch[2],
            )
            for number, after in enumerate(expected):
                np.testing.assert_array_equal(shared.download(addresses[2 * number + 1], len(after)), after)


@PROPERTIES
@given(placements().filter(lambda drawn: drawn[1].shuffle in (NO_SHUFFLE, FILL)), launches)
def test_one_piece_is_copied_as_numpy_copies_it(
    shared: Driver,
    drawn: tuple[int, Piece, View, View, Bytes, Bytes, Bytes],
    launch: tuple[int, int, int],
) -> None:
    item, made, _, destination, stored, elements, before = drawn
    after = before.copy()
    destination.of(after, ELEMENTS[item])[...] = elements.view(ELEMENTS[item]).reshape(destination.shape)
    with shared.memory(stored, before) as [source_address, destination_address]:
        made.source = 0 if made.shuffle == FILL else source_address
        made.destination = destination_address + destination.offset
        shared.launch(f"zarrow_copy_{item}", made, blocks=launch[:2], threads=launch[2])
        np.testing.assert_array_equal(shared.download(destination_address, len(after)), after)


@pytest.mark.parametrize("element", [1, 2, 3, 4, 8, 16, 24])
@pytest.mark.parametrize("shuffle", [BYTES, BITS])
@pytest.mark.parametrize("count", [256, 1001, 4007])
def test_shuffles_of_c_blosc_are_undone(shared: Driver, element: int, shuffle: int, count: int) -> None:
    """Compares with c-blosc's blocks, with all tails that they have."""
    # Few distinct values, so that the frame is compressed.
    content = random_bytes(count * element, count) & 0x01
    codec = numcodecs.Blosc("zstd", clevel=5, shuffle=shuffle, blocksize=element * 136 if count > 4000 else 0)
    stored, block = decompressed_blosc(codec.encode(content.view(f"V{element}")))
    # c-blosc does not shuffle one-byte elements.
    kind = NO_SHUFFLE if shuffle == BYTES and element == 1 else shuffle
    np.testing.assert_array_equal(shuffled(content, kind, element, block), stored)
    assert_unshuffled(shared, stored, content, kind, element, block)


@pytest.mark.parametrize("element", [2, 3, 4, 8, 16, 24])
def test_shuffles_of_numcodecs_are_undone(shared: Driver, element: int) -> None:
    """It is a single block of whole elements."""
    content = random_bytes(61 * element, element)
    stored = np.frombuffer(numcodecs.Shuffle(element).encode(content), np.uint8)
    assert_unshuffled(shared, stored, content, BYTES, element, content.nbytes)


def assert_unshuffled(
    driver: Driver, stored: Bytes, content: Bytes, kind: int, element: int, block: int
) -> None:
    """Return whether the kernel restores the content from the stored bytes."""
    item = element if element in ELEMENTS else 1
    whole = View((content.nbytes // item,), 0, (item,), content.nbytes)
    made = piece(
        whole, whole, shuffle=kind, element_nbytes=element, block_nbytes=block, decoded_nbytes=content.nbytes
    )
    with driver.memory(stored, np.zeros_like(content)) as [made.source, made.destination]:
        destination = made.destination
        with driver.memory(np.frombuffer(bytes(made), np.uint8)) as [address]:
            driver.launch(f"zarrow_place_{item}", ctypes.c_uint64(address), ctypes.c_uint32(1))
            np.testing.assert_array_equal(driver.download(destination, content.nbytes), content)
