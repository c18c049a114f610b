"""Documents of other writers outside the specification, read like zarr-python does."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import zarrow

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
Json = dict[str, Any]


def v2(folder: Path, dtype: str, shape: list[int], chunks: Any = None, fill: Any = None, **more: Any) -> Path:
    folder.mkdir(parents=True)
    document = {
        "zarr_format": 2,
        "shape": shape,
        "chunks": chunks or shape,
        "dtype": dtype,
        "fill_value": fill,
    }
    document |= {"order": "C", "filters": None, "compressor": None}
    (folder / ".zarray").write_text(json.dumps(document | more))
    return folder


def v3(
    folder: Path, data_type: Any, shape: list[int], grid: Json, codecs: Any = (LITTLE,), fill: Any = 0
) -> Path:
    folder.mkdir(parents=True)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": grid,
        "chunk_key_encoding": {"name": "default"},
        "codecs": list(codecs),
        "fill_value": fill,
    }
    (folder / "zarr.json").write_text(json.dumps(document))
    return folder


def regular(*sizes: Any) -> Json:
    return {"name": "regular", "configuration": {"chunk_shape": list(sizes)}}


def rectilinear(*axes: Any) -> Json:
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": list(axes)}}


def sharding(*sizes: Any) -> list[Json]:
    return [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": list(sizes),
                "codecs": [LITTLE],
                "index_codecs": [LITTLE, {"name": "crc32c"}],
                "index_location": "end",
            },
        }
    ]


# Grids of zarr-python 3.2: shape, stored grid, inner chunks of shards, repaired grid.
GRIDS = [
    ([4, 20], regular(2, [5, 10, 5]), None, rectilinear(2, [[5, 1], [10, 1], [5, 1]])),
    ([4, 20], rectilinear([2, 2.0], [[4.0, 5]]), None, rectilinear([[2, 1], [2, 1]], [[4, 5]])),
    ([4, 3], regular(True, 3), None, regular(1, 3)),
    ([4, 3], rectilinear([True, 3], 3), None, rectilinear([[1, 1], [3, 1]], 3)),
    ([4, 3], regular(0, 3), None, regular(1, 3)),
    ([0, 3], regular(0, 3), None, regular(1, 3)),
    ([8, 3], regular(0, 3), (4, True), regular(4, 3)),
]


@pytest.mark.parametrize(("shape", "stored", "inner", "repaired"), GRIDS)
def test_grids_of_zarr_python_3_2(
    shape: list[int], stored: Json, inner: Any, repaired: Json, tmp_path: Path
) -> None:
    codecs = sharding(*inner) if inner else [LITTLE]
    folder = v3(tmp_path / "a", "int32", shape, stored, codecs)
    values = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    array = zarrow.open(folder)
    array[...] = values
    with zarr.config.set({"array.rectilinear_chunks": True}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(zarr.open_array(folder, mode="r")[...], values)
        # A change of the document stores the repaired grid.
        array.attrs["title"] = "repaired"
        changed = json.loads((folder / "zarr.json").read_text())
        assert changed["chunk_grid"] == repaired or changed["chunk_grid"]["name"] == "rectilinear"
        assert "true" not in (folder / "zarr.json").read_text() and ".0" not in json.dumps(
            changed["chunk_grid"]
        )
        warnings.simplefilter("error")
        np.testing.assert_array_equal(zarr.open_array(folder, mode="r")[...], values)
    reopened = zarrow.open(folder)
    assert reopened.metadata["chunk_grid"] == repaired
    assert reopened[...].tolist() == values.tolist()


def test_sizes_of_zero_and_true_in_version_2(tmp_path: Path) -> None:
    array = zarrow.open(v2(tmp_path / "a", "<i4", [3, 2], [0, True]))
    assert array.chunks == (1, 1)
    array[...] = 5
    array.resize((4, 2))
    assert json.loads((tmp_path / "a/.zarray").read_text())["chunks"] == [1, 1]
    assert zarr.open_array(tmp_path / "a", mode="r")[...].tolist() == [[5, 5]] * 3 + [[0, 0]]


def test_grids_that_have_no_one_meaning_are_refused(tmp_path: Path) -> None:
    for number, grid in enumerate(
        (regular([2], [3]), regular(-1, 3), regular(2.5, 3), rectilinear([1.5, 3], 3))
    ):
        with pytest.raises(zarrow.MetadataError):
            zarrow.open(v3(tmp_path / str(number), "int32", [2, 3], grid))


NUMERALS = [
    ("<i4", "-5"),
    ("|u1", "0"),
    ("<i8", "9223372036854775807"),
    ("<f4", "1.5"),
    ("<f8", "-inf"),
    ("<f8", "1e3"),
]


@pytest.mark.parametrize(("dtype", "text"), NUMERALS)
def test_numbers_as_text_are_fill_values(dtype: str, text: str, tmp_path: Path) -> None:
    name = np.dtype(dtype).name
    for folder in (
        v2(tmp_path / "2", dtype, [2], fill=text),
        v3(tmp_path / "3", name, [2], regular(2), fill=text),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = zarr.open_array(folder, mode="r")[...]
        assert zarrow.open(folder)[...].numpy().tobytes() == expected.tobytes()


@pytest.mark.filterwarnings("ignore:The data type")
@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("dtype", ["|u1", "<i8", "<f2", "<f8", "<M8[s]"])
def test_true_and_false_are_fill_values_of_numbers(dtype: str, value: bool, tmp_path: Path) -> None:
    """zarr-python reads and writes them. Bool arrays take no text, which zarr-python reads as True."""
    names = {"<M8[s]": {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}}
    name = names.get(dtype, np.dtype(dtype).name)
    for path in (
        v2(tmp_path / "2", dtype, [2], fill=value),
        v3(tmp_path / "3", name, [2], regular(2), fill=value),
    ):
        theirs = zarr.open_array(path, mode="r")[:]
        assert zarrow.open(path)[:].numpy().tobytes() == theirs.tobytes()
    with pytest.raises(zarrow.MetadataError, match="expected a value of type bool"):
        zarrow.open(v3(tmp_path / "text", "bool", [2], regular(2), fill=str(value)))


@pytest.mark.parametrize(
    ("dtype", "text"), [("<i4", "1.5"), ("|u1", "256"), ("|u1", "-1"), ("<f4", "x"), ("<i4", "")]
)
def test_other_text_is_not_a_fill_value(dtype: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(zarrow.MetadataError, match="fill_value"):
        zarrow.open(v2(tmp_path / "a", dtype, [2], fill=text))


def test_a_null_fill_value_in_version_3_is_read_with_a_warning(tmp_path: Path) -> None:
    folder = v3(tmp_path / "a", "int32", [4], regular(2), fill=None)
    with pytest.warns(zarrow.ZarrowWarning, match="null as its fill value"):
        array = zarrow.open(folder)
    assert array[...].tolist() == [0] * 4
    # Readers may choose another value for a missing chunk, so each chunk is stored.
    array[...] = 0
    assert sorted(path.name for path in (folder / "c").iterdir()) == ["0", "1"]


def test_a_zmetadata_without_a_format_is_read(tmp_path: Path) -> None:
    v2(tmp_path / "a", "<i4", [2], fill=7)
    (tmp_path / ".zgroup").write_text('{"zarr_format": 2}')
    entries = {name: json.loads((tmp_path / name).read_text()) for name in (".zgroup", "a/.zarray")}
    (tmp_path / ".zmetadata").write_text(json.dumps({"metadata": entries}))
    assert list(zarrow.open(tmp_path)) == ["a"]
    assert zarrow.open(tmp_path)["a"][...].tolist() == [7, 7]


def test_delta_of_the_parts_of_complex_numbers(tmp_path: Path) -> None:
    """Like GDAL's complex numbers."""
    values = (np.arange(6) * 3 + 1j * np.arange(6) ** 2).astype("<c8")
    delta = numcodecs.Delta(dtype="<f4")
    folder = v2(tmp_path / "a", "<c8", [6], filters=[delta.get_config()])
    (folder / "0").write_bytes(delta.encode(values).tobytes())
    array = zarrow.open(folder)
    np.testing.assert_array_equal(array[...].numpy(), values)
    (folder / "0").unlink()
    array[...] = values
    assert (folder / "0").read_bytes() == delta.encode(values).tobytes()


def test_pcodec_without_delta_has_the_name_that_every_numcodecs_reads(tmp_path: Path) -> None:
    values = np.arange(8, dtype="u4")
    for word in ("no_op", "none"):
        codec = {"id": "pcodec", "level": 8, "delta_spec": word}
        array = zarrow.open(v2(tmp_path / word, "<u4", [8], compressor=codec))
        array[...] = values
        assert array[...].tolist() == values.tolist()
        new = zarrow.create_array(tmp_path / f"new-{word}", data=values, compressors=codec, zarr_format=2)
        assert '"none"' in (tmp_path / f"new-{word}/.zarray").read_text()
        assert new[...].tolist() == values.tolist()


def test_fill_values_that_a_filter_cannot_store_are_refused(tmp_path: Path) -> None:
    unsigned = {"name": "scale_offset", "configuration": {"offset": 5, "scale": 2}}
    cast = {"name": "cast_value", "configuration": {"data_type": "uint8"}}
    for dtype, codec, fill in (("u1", unsigned, 0), ("f4", cast, np.nan), ("i2", cast, -1)):
        with pytest.raises(zarrow.CodecError, match="cannot store the fill value"):
            zarrow.create_array(tmp_path / "a", shape=4, dtype=dtype, filters=[codec], fill_value=fill)
        assert not (tmp_path / "a").exists()
    array = zarrow.create_array(tmp_path / "a", shape=4, dtype="u1", filters=[unsigned], fill_value=6)
    assert array[...].tolist() == [6] * 4


def test_a_cast_to_a_wider_type_has_a_byte_order(tmp_path: Path) -> None:
    cast = {"name": "cast_value", "configuration": {"data_type": "float64"}}
    data = np.arange(4, dtype="i1")
    array = zarrow.create_array(tmp_path / "a", data=data, filters=[cast], compressors=None)
    assert array.metadata["codecs"][1] == LITTLE
    assert (tmp_path / "a/c/0").read_bytes() == data.astype("<f8").tobytes()
    assert array[...].tolist() == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")
@pytest.mark.parametrize("dtype", [">M8", "<M8", ">m8", ">M8[2generic]", ">m8[2s]", ">M8[ns]"])
def test_times_of_either_byte_order_are_those_of_zarr_python(dtype: str, tmp_path: Path) -> None:
    """Compared by ticks, and after a round trip through both.

    NumPy's `astype` does not swap the bytes of times without a unit, so a big-endian array of zarr-python
    gets values with the array's dtype.
    """
    little = np.array([1]).view("M8")
    assert little.astype(">M8").tobytes() == little.tobytes()
    ticks = np.array([0, 1, 2**40, -5, np.iinfo("i8").min])
    folder = v2(tmp_path / "a", dtype, [5])
    (folder / "0").write_bytes(ticks.astype(dtype[0] + "i8").tobytes())
    ours, theirs = zarrow.open(folder), zarr.open_array(folder, mode="r+", zarr_format=2)
    assert np.datetime_data(ours.dtype) == np.datetime_data(theirs.dtype)

    def in_ticks(values: np.ndarray) -> list[int]:
        return values.view(values.dtype.byteorder.replace("|", "=") + "i8").tolist()

    stored = (folder / "0").read_bytes()
    assert in_ticks(ours[...].numpy()) == in_ticks(theirs[...]) == ticks.tolist()
    ours[...] = theirs[...]
    assert (folder / "0").read_bytes() == stored
    theirs[...] = ours[...].numpy().view("i8").astype(dtype[0] + "i8").view(dtype)
    assert (folder / "0").read_bytes() == stored
    copy = zarrow.create_group(tmp_path / "copies")
    copy["a"] = ours
    assert np.datetime_data(copy["a"].dtype) == np.datetime_data(ours.dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["M8[2generic]", "m8[3generic]", "M8", "M8[2s]"])
def test_created_times_have_the_unit_and_scale_of_their_type(
    tmp_path: Path, dtype: str, zarr_format: Any
) -> None:
    """NumPy's own code of the first is `<M8`."""
    created = zarrow.create_array(tmp_path / "a", shape=3, dtype=dtype, zarr_format=zarr_format)
    for array in (created, zarrow.open(tmp_path / "a"), zarr.open_array(tmp_path / "a")):
        assert np.datetime_data(array.dtype) == np.datetime_data(np.dtype(dtype))


def test_chunks_of_nested_shards_are_those_of_zarr_python(tmp_path: Path) -> None:
    (outer,) = sharding(8)
    outer["configuration"]["codecs"] = sharding(2)
    (outermost,) = sharding(16)
    outermost["configuration"]["codecs"] = [outer]
    folder = v3(tmp_path / "a", "int32", [64], regular(32), [outermost])
    ours, theirs = zarrow.open(folder), zarr.open_array(folder)
    assert (ours.chunks, ours.shards) == (theirs.chunks, theirs.shards) == ((16,), (32,))


def test_text_objects_are_written_to_fixed_length_text(tmp_path: Path) -> None:
    text = zarrow.create_array(tmp_path / "text", shape=3, dtype="U4")
    for values in (
        np.array(["a", "bb", "cccc"], object),
        np.array(["", "é", "日本"], np.dtypes.StringDType()),
    ):
        text[...] = values
        assert text[...].tolist() == values.tolist()
    with pytest.raises(zarrow.DataTypeError, match="U5"):
        text[...] = np.array(["a", "bb", "ccccc"], object)
    text.write(np.s_[:], np.array(["ccccc"] * 3, object), casting="unsafe")
    assert text[...].tolist() == ["cccc"] * 3
    data = zarrow.create_array(tmp_path / "data", shape=2, dtype="S3")
    data[...] = np.array([b"a", b"bbb"], object)
    assert data[...].tolist() == [b"a", b"bbb"]


@pytest.mark.parametrize(("written", "shuffle"), [("NONE", 0), ("BYTE", 1), ("BIT", 2)])
def test_shuffles_of_blosc_in_the_words_of_gdal(written: str, shuffle: int, tmp_path: Path) -> None:
    compressor = numcodecs.Blosc("zstd", 5, shuffle)
    zarr.create_array(tmp_path / "a", data=np.arange(40), zarr_format=2, compressors=compressor)
    document = json.loads((tmp_path / "a/.zarray").read_text())
    document["compressor"]["shuffle"] = written
    (tmp_path / "a/.zarray").write_text(json.dumps(document))
    array = zarrow.open(tmp_path / "a")
    np.testing.assert_array_equal(array[...], np.arange(40))
    array[0] = 7
    np.testing.assert_array_equal(zarr.open_array(tmp_path / "a", mode="r")[:2], [7, 1])


def test_a_rectilinear_array_that_another_program_grew_is_changed_by_its_old_copies(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path)
    with zarr.config.set({"array.rectilinear_chunks": True}), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.create_array(tmp_path / "a", shape=(10,), dtype="i4", chunks=[[3, 3, 4]])[:] = 1
        root.consolidate_metadata()
        zarr.open_array(tmp_path / "a", mode="r+").append(np.full(3, 2, "i4"))
    array = zarrow.open(tmp_path)["a"]
    assert array.shape == (10,)
    array[8:] = 5
    array.attrs["unit"] = "m"
    found = zarrow.open(tmp_path)["a"]
    assert found.attrs["unit"] == "m" and found[:].tolist() == [1] * 8 + [5, 5, 2, 2, 2]
    with pytest.raises(zarrow.MetadataError, match=r"copy the elements"):
        found.resize(20)
