"""zarr-python's names in zarrow: the same, or as docs/coming-from-zarr-python.md says."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from numcodecs import Blosc

import zarrow
from oracle.gaps import ZARR_PYTHON

PAGE = (Path(__file__).parent.parent / "docs" / "coming-from-zarr-python.md").read_text(encoding="utf-8")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store written by zarr-python."""
    root = zarr.open_group(tmp_path / "store.zarr", mode="w", attributes={"title": "rain"})
    root.create_array("a", data=np.arange(60, dtype="i4").reshape(6, 10), chunks=(2, 5), attributes={"q": 1})
    root.create_array("s", data=np.arange(16.0).reshape(4, 4), chunks=(1, 2), shards=(2, 4))
    root.create_array("g/h/deep", shape=(3,), dtype="f4")
    return tmp_path / "store.zarr"


OF_ARRAY = ["basename", "cdata_shape", "chunks", "name", "nbytes", "nchunks", "nchunks_initialized", "ndim"]
OF_ARRAY += ["order", "path", "read_only", "shape", "shards", "size"]


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_properties_of_arrays_are_those_of_zarr_python(store: Path, mode: Any) -> None:
    theirs, ours = zarr.open_group(store, mode=mode), zarrow.open_group(store, mode=mode)
    for path in ("a", "s", "g/h/deep"):
        for name in OF_ARRAY:
            assert getattr(ours[path], name) == getattr(theirs[path], name), (path, name)
        for name in ("filters", "compressors"):
            assert len(getattr(ours[path], name)) == len(getattr(theirs[path], name)), (path, name)
        assert [codec["name"] for codec in ours[path].compressors] == ["zstd"]
        assert ours[path].serializer["name"] == "bytes"
        assert ours[path].nbytes_stored() == theirs[path].nbytes_stored()
    ours["g"]
    assert str(ours["a"].nchunks) in str(ours["a"].info_complete())
    assert "4 arrays" not in str(ours.info_complete()) and "3 arrays, 2 groups" in str(ours.info_complete())
    assert repr(ours["a"].info) == repr(ours["a"])


def test_nchunks_initialized_counts_stored_chunks(tmp_path: Path) -> None:
    for version, encoding in ((2, None), (2, {"name": "v2", "separator": "/"}), (3, None), (3, "v2")):
        array = zarrow.create_array(
            tmp_path / "n.zarr",
            shape=(6, 6),
            dtype="i2",
            chunks=(2, 3),
            zarr_format=version,
            chunk_key_encoding=encoding,
            overwrite=True,
        )
        assert (array.nchunks, array.nchunks_initialized) == (6, 0)
        array[:2] = 1
        array[5, 5] = 1
        theirs = zarr.open_array(tmp_path / "n.zarr", mode="r")
        assert array.nchunks_initialized == theirs.nchunks_initialized == 3
    scalar = zarrow.create_array(tmp_path / "scalar.zarr", shape=(), dtype="i2")
    assert (scalar.nchunks, scalar.nchunks_initialized) == (1, 0)
    scalar[...] = 1
    assert scalar.nchunks_initialized == 1


def test_names_of_groups_are_those_of_zarr_python(store: Path) -> None:
    theirs, ours = zarr.open_group(store, mode="r+"), zarrow.open_group(store, mode="r+")
    for name in ("array_keys", "group_keys", "keys"):
        assert list(getattr(ours, name)()) == sorted(getattr(theirs, name)())
    for depth in (0, 1, None):
        found = {path: type(node).__name__ for path, node in ours.members(max_depth=depth)}
        assert found == {path: type(node).__name__ for path, node in theirs.members(max_depth=depth)}
        assert ours.nmembers(depth) == theirs.nmembers(depth) == len(found)
    assert [array.shape for array in ours.array_values()] == [(6, 10), (4, 4)]
    assert [group.path for group in ours.group_values()] == ["g"]
    assert ours.get_array("a") == ours["a"] and ours.get_group("g") == ours["g"]
    for get, wrong in ((ours.get_array, "g"), (ours.get_group, "a")):
        with pytest.raises(TypeError, match=f"'{wrong}' is a"):
            get(wrong)
        with pytest.raises(KeyError):
            get("nothing")
    assert ours["g/h"].basename == theirs["g/h"].basename == "h"
    assert ours.basename == theirs.basename == "" and not ours.read_only
    assert ours.update_attributes({"new": 2}) is ours
    assert ours["a"].update_attributes({"r": 2}).attrs.asdict() == {"q": 1, "r": 2}
    assert dict(zarr.open_group(store, mode="r").attrs) == {"title": "rain", "new": 2}
    assert [group.path for group in ours.require_groups("g", "new/below")] == ["g", "new/below"]


def test_require_array_gives_or_creates(store: Path) -> None:
    for root in (zarr.open_group(store), zarrow.open_group(store)):
        assert root.require_array("a", shape=(6, 10), dtype="i4").path == "a"
        assert root.require_array("a", shape=(6, 10), dtype="i8").dtype == "i4"
        for wrong in ({"shape": (6, 9), "dtype": "i4"}, {"shape": (6, 10), "dtype": "i2"}):
            with pytest.raises(TypeError, match=r"shape|dtype"):
                root.require_array("a", **wrong)
        with pytest.raises(TypeError):
            root.require_array("a", shape=(6, 10), dtype="i8", exact=True)
        with pytest.raises(TypeError):
            root.require_array("g", shape=1, dtype="i4")
        made = root.require_array(
            f"of_{type(root).__module__.split('.')[0]}", shape=3, dtype="f8", chunks=(2,)
        )
        assert (made.shape, made.dtype, made.chunks) == ((3,), np.dtype("f8"), (2,))


@pytest.mark.parametrize(
    ("kind", "selection"),
    [
        ("basic", (slice(1, 5, 2), 3)),
        ("orthogonal", ([0, 5, 1], slice(2, 4))),
        ("coordinate", ([0, 5, 1], [9, 0, 0])),
        ("mask", np.arange(60).reshape(6, 10) % 7 == 0),
        ("block", (1, slice(0, 2))),
    ],
)
def test_selections_are_those_of_zarr_python(store: Path, kind: str, selection: Any) -> None:
    theirs, ours = zarr.open_array(store, path="a", mode="r+"), zarrow.open_array(store, "a")
    expected = getattr(theirs, f"get_{kind}_selection")(selection)
    read = getattr(ours, f"get_{kind}_selection")
    assert np.array_equal(read(selection).numpy(), expected)
    out = np.empty(expected.shape, "i4")
    assert read(selection, out=out) is out and np.array_equal(out, expected)
    getattr(ours, f"set_{kind}_selection")(selection, -expected)
    assert np.array_equal(getattr(theirs, f"get_{kind}_selection")(selection), -expected)


def test_selections_of_fields(tmp_path: Path) -> None:
    values = np.zeros(4, "i4, f8")
    values["f1"] = [1, 2, 3, 4]
    array = zarrow.create_array(tmp_path / "f.zarr", data=values)
    assert array.get_basic_selection(slice(1, 3), fields="f1").tolist() == [2.0, 3.0]
    assert array.get_coordinate_selection([3, 0], fields=["f1"]).numpy()["f1"].tolist() == [4.0, 1.0]
    array.set_orthogonal_selection(([0, 1],), 7, fields="f0")
    assert array["f0"].tolist() == [7, 7, 0, 0]


MODES = ["r", "r+", "a", "w", "w-"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("there", ["nothing", "array", "group"])
@pytest.mark.parametrize("function", ["open_group", "open_array"])
def test_modes_are_those_of_zarr_python(tmp_path: Path, mode: Any, there: str, function: str) -> None:
    def outcome(package: Any) -> str:
        path = tmp_path / package.__name__
        if there == "array":
            zarrow.save(path, [1, 2])
        elif there == "group":
            zarrow.create_group(path, attributes={"old": True})
        options = {"shape": 3, "dtype": "i2"} if function == "open_array" and mode not in ("r", "r+") else {}
        try:
            node = getattr(package, function)(path, mode=mode, **options)
        except Exception:
            return "refused"
        return f"{type(node).__name__} {getattr(node, 'shape', '')} {dict(node.attrs)}"

    ours, theirs = outcome(zarrow), outcome(zarr)
    known = (function, there, mode)
    if known in OTHER_OUTCOMES:
        assert (ours, theirs) == OTHER_OUTCOMES[known]
    else:
        assert ours == theirs


# Intended differences, listed on the page.
OTHER_OUTCOMES: dict[tuple[str, str, str], tuple[str, str]] = {}


def test_open_creates_arrays_too(tmp_path: Path) -> None:
    array = zarrow.open(tmp_path / "a.zarr", mode="w", shape=(4,), dtype="i4", chunks=2, zarr_format=2)
    assert (array.shape, array.chunks, array.zarr_format) == ((4,), (2,), 2)
    array[:] = 5
    assert zarrow.open(tmp_path / "a.zarr", mode="a", shape=(9,), dtype="i4")[...].tolist() == [5] * 4
    with pytest.raises(TypeError, match=r"leave out shape, or pass mode=.a. or .w."):
        zarrow.open(tmp_path / "a.zarr", shape=(4,))
    with pytest.raises(TypeError, match=r"unknown option 'shapes' of open: did you mean shape"):
        zarrow.open(tmp_path / "b.zarr", mode="w", shapes=3)
    assert zarrow.open(tmp_path / "g.zarr", mode="w", zarr_format=2).zarr_format == 2
    with pytest.raises(ValueError, match="has zarr_format 2, not 3"):
        zarrow.open(tmp_path / "g.zarr", zarr_format=3)
    with pytest.raises(TypeError, match="open_group"):
        zarrow.open_array(tmp_path / "g.zarr")
    with pytest.raises(TypeError, match="open_array"):
        zarrow.open_group(tmp_path / "a.zarr")
    with pytest.raises(FileNotFoundError):
        zarrow.open_array(tmp_path / "nothing.zarr")
    assert not (tmp_path / "nothing.zarr").exists()
    cached = zarrow.open(tmp_path / "c.zarr", mode="w", shape=2, dtype="i4", cache_bytes=1 << 20)
    cached[:] = 1
    assert cached[...].tolist() == [1, 1]


def test_names_of_zarr_python_2_are_taken(tmp_path: Path) -> None:
    for version in (2, 3):
        root = zarrow.open_group(tmp_path / f"{version}.zarr", mode="w", zarr_format=version)
        for make in (root.create_dataset, root.require_dataset):
            array = make("a", shape=(4, 4), chunks=True, compressor=Blosc(), dimension_separator="/")
            array[...] = 1.0
            assert array.dtype == "f8"
            assert array.metadata["chunk_key_encoding"]["configuration"] == {"separator": "/"}
            assert zarr.open_group(tmp_path / f"{version}.zarr", mode="r")["a"][3, 3] == 1


def test_missing_arguments_are_named(tmp_path: Path) -> None:
    assert zarrow.open_array(tmp_path / "a.zarr", mode="w", shape=4).dtype == "f8"
    assert zarrow.zeros(2, dtype=None).dtype == "f8"
    with pytest.raises(TypeError, match=r"expected shape=\.\.\. and dtype=\.\.\., or data="):
        zarrow.create_array(tmp_path / "b.zarr", shape=4)
    with pytest.raises(TypeError, match="got tuple: a shape goes by name, as shape="):
        zarrow.create_array(tmp_path / "b.zarr", (40,), dtype="i4")


def test_load_reads_all(store: Path) -> None:
    loaded = zarrow.load(store)
    assert sorted(loaded) == ["a", "g", "s"] and np.array_equal(loaded["a"], np.arange(60).reshape(6, 10))
    assert np.array_equal(zarrow.load(store, "a").numpy(), zarr.load(store, path="a"))


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "full"])
def test_filled_arrays_are_those_of_zarr_python(tmp_path: Path, name: str) -> None:
    value = (1,) if name == "full" else ()
    for dtype in ("f8", "i2", "?", "M8[s]"):
        made = getattr(zarrow, name)(
            (2, 3), *value, dtype=dtype, store=tmp_path / f"{dtype}.zarr", chunks=(1, 3)
        )
        theirs = getattr(zarr, name)((2, 3), *value, dtype=dtype, chunks=(1, 3))
        written = zarr.open_array(tmp_path / f"{dtype}.zarr", mode="r")
        assert (written.dtype, written.chunks) == (
            theirs.dtype,
            theirs.chunks,
        ) and made.nchunks_initialized == 0
        if name != "empty":
            np.testing.assert_array_equal(written[...], theirs[...])
        like = getattr(zarrow, f"{name}_like")(made, *value)
        assert (like.shape, like.dtype, like.chunks) == (made.shape, made.dtype, made.chunks)
        np.testing.assert_array_equal(like[...].numpy(), made[...].numpy())
    root = zarrow.create_group(tmp_path / "g.zarr")
    of_group = getattr(root, name)("x", (2,), *value, dtype="i4")
    assert of_group[...].tolist() == getattr(zarrow, name)(2, *value, dtype="i4")[...].tolist()


def test_zeros_of_text_are_empty() -> None:
    assert zarrow.zeros(2, dtype=str)[...].tolist() == ["", ""]
    assert zarrow.zeros(2, dtype="S3")[...].tolist() == [b"", b""]
    with pytest.raises(TypeError, match="expected an array with a shape and a dtype, got list"):
        zarrow.zeros_like([1, 2])


def test_arrays_like_another_keep_its_layout(tmp_path: Path) -> None:
    layouts: list[dict[str, Any]] = [
        {"chunks": (2, 2), "shards": (4, 4), "compressors": "blosc", "dimension_names": ["y", "x"]},
        {"order": "F", "filters": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}]},
        {"zarr_format": 2, "order": "F", "compressors": {"id": "zlib", "level": 2}, "dtype": ">i4"},
    ]
    for number, layout in enumerate(layouts):
        options = {"shape": (8, 8), "dtype": "i4", **layout}
        array = zarrow.create_array(tmp_path / f"{number}.zarr", **options)
        like = zarrow.zeros_like(array)
        metadata = {**array.metadata, "fill_value": like.metadata["fill_value"]}
        assert like.metadata == metadata
        other = zarrow.full_like(array, 3, zarr_format=5 - array.zarr_format) if number else array
        assert other.shape == (8, 8)
        assert zarrow.ones_like(array, chunks=(1, 8), dtype="f4", shape=(3, 8)).chunks == (1, 8)


def test_an_array_that_is_stored_again_keeps_all_it_has(tmp_path: Path) -> None:
    for version in (2, 3):
        root = zarrow.create_group(tmp_path / f"{version}.zarr", zarr_format=version)
        root.create_array(
            "a", data=np.arange(12.0).reshape(3, 4), chunks=(2, 2), attributes={"units": "mm"}, fill_value=9
        )
        before = root["a"].metadata
        root["a"] = root["a"]
        root["b/c"] = root["a"]
        for path in ("a", "b/c"):
            assert root[path].metadata == before
            assert np.array_equal(root[path][...], np.arange(12).reshape(3, 4))
    root["a"] = np.zeros(3)  # as in zarr-python, other values have no attributes
    assert root["a"].attrs == {} and root["a"].shape == (3,)
    other = zarrow.open_group(tmp_path / "2.zarr")
    root["from_2"] = other["a"]
    assert root["from_2"].attrs == {"units": "mm"} and root["from_2"].zarr_format == 3


def test_chunks_and_shards_are_found(tmp_path: Path) -> None:
    shape = (2000, 3000)
    options: dict[str, Any] = {"shape": shape, "dtype": "f8"}
    automatic = zarrow.create_array(tmp_path / "auto.zarr", **options).chunks
    assert automatic is not None and 1 < automatic[0] < shape[0]
    for chunks, expected in ((True, automatic), ("auto", automatic), (False, shape), (-1, shape)):
        array = zarrow.create_array(tmp_path / "c.zarr", **options, chunks=chunks, overwrite=True)
        assert array.chunks == expected
    sharded = zarrow.create_array(tmp_path / "s.zarr", **options, shards="auto")
    assert sharded.chunks == automatic and sharded.shards is not None
    assert all(shard % chunk == 0 for shard, chunk in zip(sharded.shards, automatic, strict=True))
    assert np.prod(sharded.shards) * 8 <= 64 << 20
    values = np.random.default_rng(1).random(shape)
    sharded[...] = values
    assert np.array_equal(zarr.open_array(tmp_path / "s.zarr", mode="r")[...], values)
    given = zarrow.create_array(tmp_path / "given.zarr", **options, chunks=(100, 100), shards="auto")
    assert given.chunks == (100, 100) and given.shards is not None and given.shards[0] % 100 == 0
    with pytest.raises(ValueError, match="shard"):
        zarrow.create_array(tmp_path / "v2.zarr", **options, shards="auto", zarr_format=2)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "M8[s]"])
def test_blosc_is_tuned_as_zarr_python_tunes_it(tmp_path: Path, dtype: str) -> None:
    from zarr.codecs import BloscCodec, BytesCodec, ShardingCodec

    chosen: list[dict[str, Any]] = [
        {"compressors": BloscCodec()},
        {"compressors": BloscCodec(cname="lz4", shuffle="noshuffle")},
        {"compressors": BloscCodec(typesize=3)},
        {"compressors": BloscCodec(), "shards": (8,)},
    ]
    for options in chosen:
        options = {"shape": (16,), "chunks": (4,), "dtype": dtype, **options}
        zarr.create_array(tmp_path / "theirs.zarr", **options, overwrite=True)
        ours = zarrow.create_array(tmp_path / "ours.zarr", **options, overwrite=True)
        assert ours.compressors == zarrow.open_array(tmp_path / "theirs.zarr").compressors
    inside = zarrow.create_array(
        tmp_path / "inside.zarr",
        shape=(16,),
        chunks=(8,),
        dtype=dtype,
        codecs=[ShardingCodec(chunk_shape=(4,), codecs=[BytesCodec(), BloscCodec()])],
    )
    assert inside.compressors[0]["configuration"]["typesize"] == np.dtype(dtype).itemsize
    zarr.create_array(
        tmp_path / "theirs.zarr", shape=16, dtype=dtype, compressors=Blosc(), zarr_format=2, overwrite=True
    )
    ours = zarrow.create_array(
        tmp_path / "ours.zarr", shape=16, dtype=dtype, compressor=Blosc(), zarr_format=2, overwrite=True
    )
    assert ours.compressors == zarrow.open_array(tmp_path / "theirs.zarr").compressors


def test_blosc_of_numbers_is_as_small_as_that_of_zarr_python(tmp_path: Path) -> None:
    from zarr.codecs import BloscCodec

    values = np.cumsum(np.random.default_rng(2).normal(size=200_000)).astype("f4")
    theirs = zarr.create_array(
        tmp_path / "theirs.zarr", data=values, chunks=(50_000,), compressors=BloscCodec()
    )
    ours = zarrow.create_array(
        tmp_path / "ours.zarr", data=values, chunks=(50_000,), compressors=BloscCodec()
    )
    assert abs(ours.nbytes_stored() - theirs.nbytes_stored()) < 0.02 * theirs.nbytes_stored()


def test_dates_that_were_not_written_are_nat(tmp_path: Path) -> None:
    for dtype in ("M8[s]", "m8[ns]"):
        for version in (2, 3):
            path = tmp_path / f"{dtype}{version}.zarr"
            made = zarrow.create_array(path, shape=2, dtype=dtype, zarr_format=version)
            assert np.isnat(made.fill_value) and np.isnat(made[...].numpy()).all()
            assert np.isnat(zarr.open_array(path, mode="r")[...]).all()
    theirs = zarr.create_array(tmp_path / "t.zarr", shape=2, dtype="M8[s]")
    assert np.isnat(theirs[...]).all()


def test_arrays_grow_along_axes_counted_from_the_last(tmp_path: Path) -> None:
    array = zarrow.create_array(tmp_path / "a.zarr", data=np.zeros((2, 3)), chunks=2)
    assert array.append(np.ones((2, 1)), axis=-1) == (2, 4)
    assert array.append(np.ones((1, 4)), axis=np.int64(-2)) == (3, 4)
    assert array[:, 3].tolist() == [1.0, 1.0, 1.0]
    for axis in (2, -3):
        with pytest.raises(IndexError, match=r"axis -?\d of an array of 2 axes: expected -2 to 1"):
            array.append(np.ones((1, 4)), axis=axis)


def test_other_names_tell_what_to_type() -> None:
    for name in ("create", "group", "array", "open_consolidated", "save_array", "config"):
        assert not hasattr(zarrow, name)
        with pytest.raises(AttributeError, match=r"type .*zarrow\.|type names and dicts"):
            getattr(zarrow, name)
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'$"):
        zarrow.nonsense  # noqa: B018


FUNCTIONS = [
    "open",
    "open_group",
    "open_array",
    "load",
    "save",
    "zeros",
    "ones",
    "full",
    "empty",
    "create_array",
]
FUNCTIONS += ["create_group", "consolidate_metadata", "zeros_like", "ones_like", "full_like", "empty_like"]


def names_of(function: Any) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {parameter.name for parameter in parameters if parameter.kind not in kinds} - {"self"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_of_zarr_python_are_here_or_on_the_page(name: str) -> None:
    ours, theirs = names_of(getattr(zarrow, name)), names_of(getattr(zarr, name))
    for parameter in theirs - ours - {"a", "store", "path"}:
        assert f"`{parameter}=`" in PAGE, f"{name}({parameter}=)"


@pytest.mark.parametrize("owner", ["", "Group", "Array"])
def test_names_of_zarr_python_are_here_or_on_the_page(owner: str) -> None:
    here = getattr(zarrow, owner) if owner else zarrow
    theirs = [name for name in dir(getattr(zarr, owner)) if name[0] != "_"] if owner else zarr.__all__
    for name in theirs:
        if not hasattr(here, name) and not name.startswith("_"):
            assert f"`{name}`" in PAGE, f"{owner}.{name}"


READERS: dict[str, list[dict[str, Any]]] = {
    "numbers, bool and complex numbers, in either version | yes | yes": [
        {"data": np.array([1, 2], dtype), "zarr_format": version}
        for dtype in ("i4", "f8", "?", "c16")
        for version in (2, 3)
    ],
    "shards, zstd, gzip, Blosc, order F | yes | yes": [
        {"data": np.ones((4, 4)), "chunks": (2, 2), "shards": (4, 4), "compressors": ["gzip"]},
        {"data": np.ones((4, 4)), "compressors": "blosc", "order": "F"},
        {"data": np.ones((4, 4)), "compressors": "zstd"},
    ],
    "text, bytes and fixed-size text | yes | no": [
        {"data": data} for data in (["a", "bc"], [b"a"], np.array(["a"]), np.array([b"a"]))
    ],
    "dates and durations | yes | no": [{"data": np.array([3], dtype)} for dtype in ("M8[s]", "m8[ns]")],
    "structures of version 2 | yes | by field": [{"data": np.zeros(2, "i4, f8"), "zarr_format": 2}],
    "structures of version 3 | 3.4 does, 3.1 **no** | by field": [{"data": np.zeros(2, "i4, f8")}],
    "bfloat16, 4-bit integers, 8-bit floats | **no** | yes": [
        {"shape": 2, "dtype": dtype} for dtype in ("bfloat16", "int4", "float8_e5m2")
    ],
    "elements that may be missing (`optional[…]`, `None`) | **no** | no": [
        {"data": [1, None], "dtype": "optional[int32]"},
        {"data": ["a", None]},
    ],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", READERS)
def test_other_libraries_read_the_types_on_the_page(tmp_path: Path, row: str) -> None:
    import tensorstore

    assert f"| {row} |" in PAGE
    _, of_zarr_python, of_tensorstore = row.split(" | ")
    for number, options in enumerate(READERS[row]):
        path = tmp_path / f"{number}.zarr"
        zarrow.create_array(path, "x", **options)
        if of_zarr_python == "yes" or ("3.4 does" in of_zarr_python and ZARR_PYTHON >= (3, 4)):
            zarr.open_group(path, mode="r")["x"][...]
        else:
            with pytest.raises(ValueError, match="No Zarr data type"):
                list(zarr.open_group(path, mode="r").members())
        driver = "zarr" if options.get("zarr_format") == 2 else "zarr3"
        spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(path / "x")}}
        if of_tensorstore == "by field":
            spec["field"] = "f1"
        if of_tensorstore == "no":
            with pytest.raises(ValueError, match=r"dtype|data type|data_type"):
                tensorstore.open(spec).result()
        else:
            tensorstore.open(spec).result().read().result()


def test_properties_bear_their_names() -> None:
    for owner in (zarrow.Array, zarrow.Group, zarrow.Tensor):
        for name, member in vars(owner).items():
            if isinstance(member, property):
                assert member.fget is not None and member.fget.__name__ == name


def test_chunks_of_an_array_that_was_replaced_are_not_counted(tmp_path: Path) -> None:
    old = zarrow.create_array(tmp_path / "a", data=np.ones((4, 4)), chunks=(2, 2))
    assert old.nchunks_initialized == 4
    zarrow.create_array(tmp_path / "a", data=np.ones((8, 8)), chunks=(1, 1), overwrite=True)
    with pytest.raises(zarrow.StaleHandleError):
        _ = old.nchunks_initialized
    zarrow.create_group(tmp_path / "a", overwrite=True)
    with pytest.raises((zarrow.NotFoundError, zarrow.StaleHandleError)):
        _ = old.nchunks_initialized
