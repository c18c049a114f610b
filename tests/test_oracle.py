"""Every type, codec and shape: zarrow, zarr-python and TensorStore read the same bits."""

import itertools
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import zarrow
from oracle.arrays import GEOMETRIES, ArrayCase, Geometry, bits
from oracle.chains import CHAINS, Chain
from oracle.elements import ELEMENTS, Element, Values
from oracle.gaps import ZARR_PYTHON
from oracle.random_values import seed_of
from oracle.selections import Selection, any_of, fixed, random_one

pytestmark = pytest.mark.small_files

COMBINATIONS = [
    (element, chain)
    for element in ELEMENTS
    for version in element.formats()
    for chain in CHAINS[version]
    if chain.fits(element) and ArrayCase(element, chain, GEOMETRIES[-1], element.fills[0], 0).can_be_written
]
BY_NAME = {
    f"v{chain.version}-{chain.name}-{element.name}": (element, chain) for element, chain in COMBINATIONS
}


def check(array: zarrow.Array, expected: Values, selections: list[Selection]) -> None:
    """Each selection of the array equals NumPy's selection of the expected elements."""
    for selection in selections:
        decoded = array[selection]
        # An ellipsis makes NumPy return an array instead of a scalar.
        wanted = expected[selection if ... in selection else (*selection, ...)]
        assert type(decoded) is (zarrow.Tensor if expected.dtype.kind not in "OT" else zarrow.Variable)
        assert decoded.shape == wanted.shape, selection
        assert bits(decoded.numpy()) == bits(wanted), selection


def check_case(case: ArrayCase, folder: Path, selections: list[Selection]) -> None:
    expected = case.write(folder)
    case.check_readers(folder, expected)
    array = zarrow.open(folder)
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype
    if "nested" in case.chain.name:
        (outermost,) = array.metadata["codecs"]
        assert list(array.chunks) == outermost["configuration"]["chunk_shape"]
    else:
        assert array.chunks == case.geometry.chunks
    assert bits(np.asarray(array.fill_value, expected.dtype)) == bits(case.element.full((), case.fill))
    check(array, expected, selections)
    check_chunks(array, expected)


def check_chunks(array: zarrow.Array, expected: Values) -> None:
    """The first and the last chunk are the right parts of the array; a chunk beyond does not exist."""
    chunks = array.shards or array.chunks
    assert chunks is not None
    grid = [-(-extent // chunk) for extent, chunk in zip(array.shape, chunks, strict=True)]
    if 0 not in grid:
        for place in {(0,) * len(grid), tuple(count - 1 for count in grid)}:
            corners = zip(place, chunks, strict=True)
            slices: Selection = tuple(slice(at * chunk, (at + 1) * chunk) for at, chunk in corners)
            part = expected[(*slices, ...)]
            assert bits(array.retrieve_chunk(place).numpy()) == bits(part)
    if grid:
        with pytest.raises(IndexError):
            array.retrieve_chunk(grid)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_type_with_each_chain(name: str, tmp_path: Path) -> None:
    element, chain = BY_NAME[name]
    seed = seed_of(name)
    rng = random.Random(seed)
    for number, geometry in enumerate(rng.sample(GEOMETRIES, 2)):
        fill = element.fills[(seed + number) % len(element.fills)]
        case = ArrayCase(element, chain, geometry, fill, seed)
        if case.can_be_written:
            selections = fixed(geometry.shape) + [random_one(rng, geometry.shape) for _ in range(8)]
            check_case(case, tmp_path / str(number), selections)


def writable(cases: Iterable[ArrayCase]) -> Iterator[ArrayCase]:
    """Return the first case that an oracle can write, if any."""
    return itertools.islice((case for case in cases if case.can_be_written), 1)


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_each_type_with_each_geometry_and_fill_value(element: Element, tmp_path: Path) -> None:
    known = [chain for own, chain in COMBINATIONS if own is element]
    chains = itertools.cycle(known)
    for number, (geometry, fill) in enumerate(itertools.product(GEOMETRIES, element.fills)):
        each = itertools.islice(chains, len(known))
        for case in writable(ArrayCase(element, chain, geometry, fill, number) for chain in each):
            check_case(case, tmp_path / str(number), fixed(geometry.shape))


@pytest.mark.parametrize("chain", CHAINS[2] + CHAINS[3], ids=lambda chain: f"v{chain.version}-{chain.name}")
def test_each_chain_with_each_geometry(chain: Chain, tmp_path: Path) -> None:
    elements = [element for element, known in COMBINATIONS if known is chain]
    for number, geometry in enumerate(GEOMETRIES):
        shifted = elements[number % len(elements) :] + elements[: number % len(elements)]
        for case in writable(
            ArrayCase(element, chain, geometry, element.fills[-1], number) for element in shifted
        ):
            check_case(case, tmp_path / str(number), fixed(geometry.shape))


@pytest.mark.xfail(ZARR_PYTHON >= (3, 4), raises=TypeError, reason="zarr-python 3.4 writes none")
@pytest.mark.parametrize("version", [2, 3])
def test_bytes_without_axes(version: int, tmp_path: Path) -> None:
    """zarr-python drops trailing zero bytes."""
    element, chain = BY_NAME[f"v{version}-zstd-bytes"]
    for seed in range(12):
        case = ArrayCase(element, chain, Geometry((), (), 0), element.fills[0], seed)
        check_case(case, tmp_path / str(seed), fixed(()))


@st.composite
def cases(draw: st.DrawFn) -> tuple[ArrayCase, list[Selection]]:
    element, chain = draw(st.sampled_from(COMBINATIONS))
    axes = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=5))
    shape, chunks = tuple(extent for extent, _ in axes), tuple(chunk for _, chunk in axes)
    geometry = Geometry(shape, chunks, draw(st.sampled_from([0, 0.3, 1])))
    fill = draw(st.sampled_from(element.fills))
    case = ArrayCase(element, chain, geometry, fill, draw(st.integers(0, 2**32 - 1)))
    return case, draw(st.lists(any_of(shape), min_size=1, max_size=5))


@settings(max_examples=300, deadline=None, database=None)
@given(drawn=cases())
def test_random_arrays(
    drawn: tuple[ArrayCase, list[Selection]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    case, selections = drawn
    assume(case.can_be_written)
    check_case(case, tmp_path_factory.mktemp("random") / "array", selections)


LARGE = [
    ("uint16", 3, "bytes", (1500, 1100), (700, 1100)),
    ("float64", 3, "big", (600, 900), (600, 900)),
    ("float32", 3, "zstd", (1024, 768), (300, 300)),
    ("int32", 2, "blosc-lz4-shuffle", (70, 90, 110), (33, 90, 40)),
    ("complex64", 2, "big-order-f-gzip", (300, 500), (128, 128)),
    ("uint8", 3, "shard-end", (1200, 1300), (100, 130)),
    ("int16", 3, "shard-raw", (1000, 1000), (250, 500)),
    ("float32", 3, "nested-mixed", (500, 500), (64, 64)),
    ("float64", 3, "transposed-shard", (60, 70, 80), (16, 8, 32)),
    ("raw", 3, "order-cycle-zstd", (90, 80, 70), (50, 40, 30)),
    ("string", 3, "zstd", (300, 200), (64, 64)),
    ("bytes", 2, "order-f-zstd", (300, 200), (300, 64)),
    ("string", 3, "shard-start", (200, 200), (50, 40)),
]


@pytest.mark.parametrize(("name", "version", "chain_name", "shape", "chunks"), LARGE)
def test_arrays_of_some_megabytes(
    name: str, version: int, chain_name: str, shape: tuple[int, ...], chunks: tuple[int, ...], tmp_path: Path
) -> None:
    """Chunks read by many threads, and partly if the selection is small."""
    element, chain = BY_NAME[f"v{version}-{chain_name}-{name}"]
    case = ArrayCase(element, chain, Geometry(shape, chunks, 0.2), element.fills[-1], 7)
    sparse: list[Selection] = [(slice(None, None, 97), ...), (..., slice(3, None, 101)), (..., 5), (-7, ...)]
    sparse += [(slice(None, None, -211),) * len(shape), (slice(10, 400), ..., slice(-60, -50))]
    check_case(case, tmp_path / "array", fixed(shape) + sparse)
