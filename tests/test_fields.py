"""Fields of structures: read and written separately, as NumPy does with a structured array."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import handwritten
import zarrow
from oracle.arrays import bits
from oracle.index_arrays import orthogonal, orthogonal_indices, vectorized_indices
from oracle.selections import any_of
from test_structured import Values, equal, native, random_values, structures, write_v2
from zarrow import errors

MANY = settings(
    max_examples=80,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
INNER = np.dtype([("p", "u1"), ("q", ">i2")])
POINT = np.dtype([("x", "<i4"), ("y", ">f8"), ("inner", INNER), ("name", "S3")])
SHAPE = (7, 5)


def points(shape: tuple[int, ...] = SHAPE) -> Values:
    return random_values(np.random.default_rng(7), POINT, shape)


def create(folder: Path, values: Values, **options: Any) -> zarrow.Array:
    array = zarrow.create_array(folder, shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return array


def singles(dtype: np.dtype[Any]) -> list[tuple[str, ...]]:
    """Return the path of each field that is not a subarray, including nested ones."""
    paths: list[tuple[str, ...]] = []
    for name in dtype.names or ():
        field = dtype[name]
        if field.subdtype is None:
            paths += [(name,), *((name, *inner) for inner in singles(field))]
    return paths


def at(values: Values, path: tuple[str, ...]) -> Values:
    for name in path:
        values = values[name]
    return values


@MANY
@given(dtype=structures(), seed=st.integers(0, 2**32), compressed=st.booleans(), data=st.data())
def test_any_field_equals_numpys(
    dtype: np.dtype[Any], seed: int, compressed: bool, data: st.DataObject, tmp_path_factory: Any
) -> None:
    """Reading and writing one field keeps all other bits, in any byte order, also in missing chunks."""
    rng = np.random.default_rng(seed)
    values = random_values(rng, dtype, (5, 4))
    one = random_values(rng, dtype, ())
    folder = tmp_path_factory.mktemp("fields") / "array"
    write_v2(folder, values, (2, 3), base64.b64encode(one.tobytes()).decode(), compressed)
    (folder / "1.0").unlink()
    values[2:4, :3] = one
    array = zarrow.open(folder)
    # Names here have no dots, so that a path is not the name of another field.
    for path in singles(dtype):
        name, selection = ".".join(path), data.draw(any_of(values.shape))
        # With an ellipsis NumPy returns arrays instead of scalars.
        where = selection if ... in selection else (*selection, ...)
        field = at(values, path)
        assert equal(array[name].numpy(), field)
        assert equal(array[(*selection, name)].numpy(), field[where])
        written = random_values(rng, np.dtype([("f", field.dtype)]), field[where].shape)["f"]
        array[(name, *selection)] = written
        field[selection] = written
        assert equal(array[...].numpy(), values)


@MANY
@given(dtype=structures(), seed=st.integers(0, 2**32), data=st.data())
def test_several_fields_equal_numpys(
    dtype: np.dtype[Any], seed: int, data: st.DataObject, tmp_path_factory: Any
) -> None:
    values = random_values(np.random.default_rng(seed), dtype, (5, 4))
    folder = tmp_path_factory.mktemp("fields") / "array"
    write_v2(folder, values, (2, 3), None, True)
    assert dtype.names is not None
    kept = data.draw(st.lists(st.sampled_from(dtype.names), min_size=1, unique=True))
    names = [name for name in dtype.names if name in kept]
    selection = data.draw(any_of(values.shape))
    where = selection if ... in selection else (*selection, ...)
    found = zarrow.open(folder)[(names, *selection)].numpy()
    assert found.dtype == native(values[names].dtype)
    assert equal(found, values[names][where])
    if len(names) > 1:
        assert equal(zarrow.open(folder)[(*names, *selection)].numpy(), values[names][where])


GEOMETRIES: list[dict[str, Any]] = [
    {"zarr_format": 2, "compressors": None},
    {"zarr_format": 2, "order": "F"},
    {"compressors": None},
    {"compressors": "zstd", "filters": {"name": "transpose", "configuration": {"order": [1, 0]}}},
    {"shards": (4, 6), "compressors": None},
    {"shards": (4, 6), "compressors": ["zstd", "crc32c"]},
]


@pytest.mark.parametrize("options", GEOMETRIES, ids=str)
def test_every_index_takes_fields(options: dict[str, Any], tmp_path: Path) -> None:
    values = points()
    array = create(tmp_path / "a", values, chunks=(2, 3), **options)

    @settings(MANY, max_examples=12)
    @given(orthogonal_indices(SHAPE), vectorized_indices(SHAPE), st.sampled_from(singles(POINT)))
    def each(by_axis: Any, by_point: Any, path: tuple[str, ...]) -> None:
        name, field = ".".join(path), at(values, path)
        taken = orthogonal(values, by_axis)
        assert equal(array.oindex[(name, *by_axis)].numpy(), field[taken])
        assert equal(array.vindex[(name, *by_point)].numpy(), field[by_point])
        assert equal(array.blocks[1:, name].numpy(), field[array.write_unit[0] :])  # type: ignore[index]
        one = field[(0,) * field.ndim]
        array.oindex[(*by_axis, name)] = one
        field[taken] = one
        array.vindex.write((name, *by_point), one, durability="file")
        field[by_point] = one
        assert equal(array[...].numpy(), values)

    each()
    assert equal(zarrow.open(tmp_path / "a")[...].numpy(), values)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_with_zarr_python(version: Literal[2, 3], tmp_path: Path) -> None:
    """zarr-python reads the same elements after each write of a field, and zarrow reads its fields."""
    # Its version 3 metadata omit the byte order of big-endian fields.
    dtype = POINT if version == 2 else native(POINT)
    values = points().astype(dtype)
    stored = zarr.create_array(tmp_path, shape=SHAPE, chunks=(3, 2), dtype=dtype, zarr_format=version)
    stored[...] = values
    array = zarrow.open(tmp_path)
    for path in singles(POINT):
        field = at(values, path)
        assert equal(array[".".join(path)].numpy(), field)
        array[".".join(path), 1:6] = field[1:6][::-1]
        field[1:6] = field[1:6][::-1].copy()
        assert equal(np.asarray(stored[...]).astype(native(POINT)), values)


@pytest.mark.parametrize("sharded", [False, True])
def test_chunks_that_are_not_stored(sharded: bool, tmp_path: Path) -> None:
    fill = np.array((1, 2.5, (3, 4), b"no"), POINT)
    options: dict[str, Any] = {"shards": (4, 4)} if sharded else {}
    array = zarrow.create_array(
        tmp_path, shape=(8, 4), chunks=(2, 2), dtype=POINT, fill_value=fill, **options
    )
    chunks = tmp_path / "c"
    expected = np.full((8, 4), fill)
    assert equal(array["inner.q", 1:3].numpy(), expected["inner"]["q"][1:3])
    array["x", :2, :2] = 9
    expected["x"][:2, :2] = 9
    assert equal(array[...].numpy(), expected)
    assert len([path for path in chunks.rglob("*") if path.is_file()]) == 1
    array["x", :2] = 1  # equal to the fill value again
    assert not any(path.is_file() for path in chunks.rglob("*"))
    array.write(("x", slice(0, 2)), 1, write_empty_chunks=True)
    assert any(path.is_file() for path in chunks.rglob("*"))
    assert equal(array[...].numpy(), np.full((8, 4), fill))


def test_out_mask_and_mmap(tmp_path: Path) -> None:
    values = points()
    values["x"][2] = values["x"][0, 1]
    array = create(tmp_path, values, chunks=(7, 5), compressors=None, fill_value=values[0, 0])
    out = np.full((2 * SHAPE[0], SHAPE[1]), 77, "i4")
    assert array.read("x", out=out[::2]) is not None
    assert equal(out[::2], values["x"])
    assert (out[1::2] == 77).all()
    quarter = np.empty(SHAPE[1], "i2")
    array.oindex.read((-1, "inner.q"), out=quarter)
    assert equal(quarter, values["inner"]["q"][-1])
    with pytest.raises(errors.DataTypeError):
        array.read("y", out=out[::2])
    mapped = array.read("x", mmap=True)
    assert not mapped.is_mapped
    assert equal(mapped.numpy(), values["x"])
    wanted = int(values["x"][0, 1])
    masked = array.read(("x", slice(None, None, 2)), mask=wanted)
    assert masked.mask.numpy().tolist() == (values["x"][::2] == wanted).tolist()
    assert equal(masked.data.numpy(), values["x"][::2])
    filled = array.read("y", mask="fill")
    assert bits(filled.mask.numpy()) == bits(values["y"].astype("f8") == values["y"][0, 0])


def test_elements_that_may_be_missing(tmp_path: Path) -> None:
    """A field of a missing element is missing; writing one has no defined meaning."""
    fields = [{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "uint8"}]
    struct = {"name": "struct", "configuration": {"fields": fields}}
    bytes_codec = {"name": "bytes", "configuration": {"endian": "big"}}
    codec = {
        "name": "zarrs.optional",
        "configuration": {
            "mask_codecs": [{"name": "packbits", "configuration": {}}],
            "data_codecs": [bytes_codec],
        },
    }
    optional = {"name": "zarrs.optional", "configuration": struct}
    there = np.array([(1, 2), (-3, 4)], [("a", ">i2"), ("b", "u1")])
    chunk = (1).to_bytes(8, "little") + (6).to_bytes(8, "little") + bytes([0b101]) + there.tobytes()
    folder = handwritten.write(tmp_path / "a", (3,), optional, [codec], chunk, None)
    array = zarrow.open(folder)
    assert array["a"].tolist() == [1, None, -3]
    assert array["b", ::-1].tolist() == [4, None, 2]
    assert array[["b"]].data.numpy()["b"][[0, 2]].tolist() == [2, 4]
    with pytest.raises(errors.UnsupportedError, match="a field of optional"):
        array["a", 0] = np.int16(1)


def test_a_name_with_a_dot_is_a_name_first(tmp_path: Path) -> None:
    dtype = np.dtype([("a", [("b", "i2"), ("c.d", "i2")]), ("a.b", "i2"), ("a.x", [("y", "i2")])])
    values = np.zeros(1, dtype)
    values["a"]["b"], values["a"]["c.d"], values["a.b"], values["a.x"]["y"] = 1, 2, 3, 4
    array = create(tmp_path, values)
    assert [array[name, 0].item() for name in ("a.b", "a.c.d", "a.x.y")] == [3, 2, 4]
    assert array["a"].numpy()["b"].tolist() == [1]


def test_unknown_fields_are_named(tmp_path: Path) -> None:
    dtype = np.dtype([("x", "i4"), ("y", "f4"), ("m", "f4", (2,))])
    values = np.zeros(3, dtype)
    values["m"] = 5
    array = create(tmp_path / "a", values, zarr_format=2)
    for name in ("z", "x.y", "", ".", "x.", ["z"], ["x", "z"], ["x.y"]):
        with pytest.raises(errors.IndexingError, match="unknown field"):
            array[name]
        with pytest.raises(errors.IndexingError, match="unknown field"):
            array[name] = 1
    for names in (["y", "x"], ["x", "x"]):
        with pytest.raises(errors.IndexingError, match="in their stored order"):
            array[names]
    with pytest.raises(errors.IndexingError, match="list of field names"):
        array[["x", 1]]  # type: ignore[index]
    with pytest.raises(errors.UnsupportedError, match=r'field "m".*a list of fields'):
        array["m"]
    assert (array[["m"]].numpy()["m"] == 5).all()
    with pytest.raises(errors.UnsupportedError, match="one field at a time"):
        array[["x", "y"]] = values[["x", "y"]]
    array[["x", "y", "m"]] = values  # all fields are whole elements
    with pytest.raises(errors.IndexingError):
        array["x", 3]
    with pytest.raises(errors.ShapeError):
        array["x"] = np.zeros(2, "i4")
    with pytest.raises(errors.DataTypeError):
        array["x"] = 1.5
    with pytest.raises(errors.IndexingError):
        zarrow.read_many([(array, "x")])
    with pytest.raises(errors.IndexingError, match='unknown field "x": the elements are float32'):
        zarrow.create_array(tmp_path / "plain", shape=3, dtype="f4")["x"]
    with pytest.raises(errors.IndexingError, match=r'the axis "x" read its group\'s array, group\["x"\]'):
        zarrow.create_array(tmp_path / "named", shape=3, dtype="f4", dimension_names=["x"])["x"]
    assert bits(array[...].numpy()) == bits(values)


def test_a_damaged_chunk_says_where_it_is(tmp_path: Path) -> None:
    array = create(tmp_path, points(), chunks=(4, 5))
    (tmp_path / "c" / "1" / "0").write_bytes(b"no zstd")
    assert array["x", :4].shape == (4, 5)
    with pytest.raises(errors.CodecError, match=r"chunk \[1, 0\], codec zstd"):
        array["x"]
    with pytest.raises(errors.CodecError, match=r"chunk \[1, 0\]"):
        array["x"] = 1


def test_writers_of_different_fields_lose_nothing(tmp_path: Path) -> None:
    values = np.zeros(64, [("x", "i4"), ("y", "i8")])
    array = create(tmp_path, values, chunks=(64,))

    def write(name: str) -> None:
        for position in range(64):
            array[name, position] = position + 1

    threads = [threading.Thread(target=write, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("x", "y"):
        assert array[name].tolist() == list(range(1, 65))


def test_stored_bytes_of_a_field_are_in_the_arrays_order(tmp_path: Path) -> None:
    write_v2(tmp_path / "a", np.zeros(2, POINT), (2,), None, False)
    array = zarrow.open(tmp_path / "a")
    array["x"] = np.array([1, 2], ">i4")
    array["y"] = np.array([1, 2], "<f8")
    expected = np.zeros(2, POINT)
    expected["x"] = expected["y"] = [1, 2]
    assert (tmp_path / "a" / "0").read_bytes() == expected.tobytes()
    assert json.loads((tmp_path / "a" / ".zarray").read_text())["dtype"][1] == ["y", ">f8"]
