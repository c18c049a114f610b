"""Arrays of every type and codec, written by zarrow in parts, read by zarr-python, TensorStore and zarrs."""

import json
import os
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrow
from oracle.arrays import GEOMETRIES, ArrayCase, Geometry, bits
from oracle.elements import Values
from oracle.layouts import laid_out
from oracle.random_values import seed_of
from oracle.selections import Selection, any_of, random_one
from test_oracle import BY_NAME, COMBINATIONS, LARGE

pytestmark = pytest.mark.small_files

# All combinations of types and chains take a while: one in five by default.
CHOSEN = sorted(BY_NAME, key=seed_of)
if "ZARROW_THOROUGH" not in os.environ:
    CHOSEN = CHOSEN[::5]

# Cases that zarrs, which starts slowly, also reads.
ZARRS = [
    "v3-bytes-float32",
    "v3-zstd-string",
    "v3-shard-start-int16",
    "v3-nested-mixed-uint64",
    "v3-big-blosc-float64",
]


def written_in_parts(case: ArrayCase, folder: Path, selections: list[Selection]) -> Values:
    """Write each selection of the array in a new folder, and return the stored elements."""
    folder.mkdir(parents=True)
    name = ".zarray" if case.chain.version == 2 else "zarr.json"
    (folder / name).write_text(json.dumps(case.document()))
    return write_parts(zarrow.open(folder), case, selections)


def write_parts(array: zarrow.Array, case: ArrayCase, selections: list[Selection]) -> Values:
    """Write each selection of the array, and return the stored elements."""
    rng = random.Random(case.seed)
    expected = case.element.full(case.geometry.shape, case.fill)
    values = case.values()
    for number, selection in enumerate(selections):
        # Each write has other values, except the first, which may contain the fill value.
        values = np.roll(values, number)
        part = values[(*selection, ...) if ... not in selection else selection]
        if part.dtype.kind == "c":
            part = np.where(np.isnan(part), 1, part).astype(part.dtype)
        array[selection] = laid_out(rng, part)
        expected[selection] = part if part.ndim else part[()]
        assert bits(array[...].numpy()) == bits(expected), selection
    return expected


@pytest.mark.parametrize("name", CHOSEN)
def test_each_type_with_each_chain(name: str, tmp_path: Path) -> None:
    element, chain = BY_NAME[name]
    seed = seed_of(name)
    rng = random.Random(seed)
    for number, geometry in enumerate(rng.sample(GEOMETRIES, 2)):
        case = ArrayCase(element, chain, geometry, element.fills[(seed + number) % len(element.fills)], seed)
        if not case.can_be_written:
            continue
        selections: list[Selection] = [(...,)] * rng.choice([0, 1, 1])
        selections += [random_one(rng, geometry.shape) for _ in range(4)]
        expected = written_in_parts(case, tmp_path / str(number), selections)
        case.check_readers(tmp_path / str(number), expected)


@st.composite
def cases(draw: st.DrawFn) -> tuple[ArrayCase, list[Selection]]:
    element, chain = draw(st.sampled_from(COMBINATIONS))
    axes = draw(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 4)), max_size=5))
    shape, chunks = tuple(extent for extent, _ in axes), tuple(chunk for _, chunk in axes)
    geometry = Geometry(shape, chunks, draw(st.sampled_from([0, 0.3, 1])))
    case = ArrayCase(
        element, chain, geometry, draw(st.sampled_from(element.fills)), draw(st.integers(0, 2**32 - 1))
    )
    return case, draw(st.lists(any_of(shape), min_size=1, max_size=6))


@settings(max_examples=100, deadline=None, database=None)
@given(drawn=cases())
def test_random_arrays(
    drawn: tuple[ArrayCase, list[Selection]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    case, selections = drawn
    folder = tmp_path_factory.mktemp("random") / "array"
    expected = written_in_parts(case, folder, selections)
    if case.can_be_written:
        case.check_readers(folder, expected)


@pytest.mark.parametrize(("name", "version", "chain_name", "shape", "chunks"), LARGE)
def test_arrays_of_some_megabytes(
    name: str, version: int, chain_name: str, shape: tuple[int, ...], chunks: tuple[int, ...], tmp_path: Path
) -> None:
    """Chunks written by many threads, and shards written by several together."""
    element, chain = BY_NAME[f"v{version}-{chain_name}-{name}"]
    case = ArrayCase(element, chain, Geometry(shape, chunks, 0.2), element.fills[-1], 7)
    selections: list[Selection] = [
        (...,),
        (slice(3, -3), ...),
        (slice(None, None, 97), ...),
        (..., 5),
        (-7, ...),
    ]
    expected = written_in_parts(case, tmp_path / "array", selections)
    case.check_readers(tmp_path / "array", expected)


@pytest.mark.parametrize("name", ZARRS)
def test_zarrs_reads_the_same(name: str, tmp_path: Path) -> None:
    element, chain = BY_NAME[name]
    case = ArrayCase(element, chain, Geometry((13, 9), (3, 4), 0.2), element.fills[0], 3)
    expected = written_in_parts(
        case, tmp_path / "array", [(...,), (slice(2, 11), slice(None, None, -2)), (4, 5)]
    )
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = zarr.open_array(tmp_path / "array", mode="r")[...]
    assert bits(np.asarray(found, element.dtype)) == bits(expected)
