"""Filters: codecs from array to array, compared bit by bit with numcodecs and zarr-python, both ways."""

import json
import warnings
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import zarrow

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
REALS = ["f2", "f4", "f8"]
RNG_SEED = 20240611
Json = dict[str, Any]


def ordered(code: str, order: str = "<") -> str:
    """Return the NumPy type string of `code`, with a byte order if the type has one."""
    return ("|" if code.endswith("1") else order) + code


def v2(folder: Path, dtype: str, shape: tuple[int, ...], filters: list[Json], **more: Any) -> Path:
    """Write the metadata of an array of one chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "zarr_format": 2,
        "shape": shape,
        "chunks": shape,
        "dtype": dtype,
        "fill_value": 0,
        "order": "C",
        "filters": filters,
        "compressor": None,
    }
    (folder / ".zarray").write_text(json.dumps(document | more))
    return folder


def v3(folder: Path, data_type: Any, shape: tuple[int, ...], codecs: list[Any], fill: Any = 0) -> Path:
    """Write the metadata of an array of one chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": fill,
        "codecs": codecs,
    }
    (folder / "zarr.json").write_text(json.dumps(document))
    return folder


BYTES = {"name": "bytes", "configuration": {"endian": "little"}}


def codec(name: str, **configuration: Any) -> Json:
    return {"name": name, "configuration": configuration}


def same(actual: np.ndarray, expected: np.ndarray) -> bool:
    return actual.dtype == expected.dtype and actual.tobytes() == expected.tobytes()


def agrees(folder: Path, array: str, filters: list[Any], values: np.ndarray) -> None:
    """zarrow reads numcodecs' chunks exactly, and stores the same bytes."""
    configuration = [f.get_config() for f in filters]
    encoded = values
    for one in filters:
        encoded = one.encode(encoded)
    decoded = encoded
    for one in reversed(filters):
        decoded = one.decode(decoded)
    v2(folder, array, values.shape, configuration)
    (folder / "0").write_bytes(encoded.tobytes())
    expected = decoded.view(values.dtype).astype(values.dtype.newbyteorder("="))
    read = zarrow.open(folder)[...].numpy()
    assert same(read, expected), (configuration, read, expected)
    # Over an existing chunk, since a chunk of only fill values would be erased.
    zarrow.open(folder)[...] = values
    written = (folder / "0").read_bytes() if (folder / "0").exists() else bytes(encoded.nbytes)
    assert written == encoded.tobytes(), (configuration, np.frombuffer(written, encoded.dtype), encoded)


def integers(code: str, count: int = 41) -> np.ndarray:
    rng = np.random.default_rng(RNG_SEED)
    limits = np.iinfo(code)
    values = rng.integers(limits.min, limits.max, count, dtype=code, endpoint=True)
    values[:3] = limits.min, limits.max, 1
    return values


def reals(code: str, spread: float = 100, count: int = 41) -> np.ndarray:
    rng = np.random.default_rng(RNG_SEED)
    return (rng.standard_normal(count) * spread).astype(code)


SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-8, 0.5, 1.5, 2.5, -0.5]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("decoded", INTEGERS + REALS)
def test_delta(decoded: str, order: str, tmp_path: Path) -> None:
    values = integers(decoded) if decoded in INTEGERS else np.append(reals(decoded), SPECIAL).astype(decoded)
    values = values.astype(ordered(decoded, order))
    for stored in INTEGERS + REALS:
        name = ordered(stored, order)
        if decoded in REALS and stored in INTEGERS:
            continue  # NumPy does not sum real numbers to integers.
        if decoded in INTEGERS and not np.can_cast(stored, decoded, "same_kind"):
            continue
        if stored == "u8" and decoded.startswith("i"):
            continue  # NumPy sums these as real numbers, and loses bits beyond 53.
        case = values
        if decoded in INTEGERS and stored in REALS:
            continue
        if decoded in INTEGERS and stored in INTEGERS and np.dtype(stored).itemsize < values.itemsize:
            values[0] = 1  # NumPy refuses a first number that is too large, and wraps the others.
        if decoded in REALS and stored in REALS and np.dtype(stored) < np.dtype(decoded):
            case = (values / 4).astype(values.dtype)
        with np.errstate(all="ignore"):
            agrees(tmp_path / stored, values.dtype.str, [numcodecs.Delta(values.dtype, name)], case)


@pytest.mark.parametrize("decoded", INTEGERS + REALS)
def test_fixedscaleoffset(decoded: str, tmp_path: Path) -> None:
    """All pairs of types, parameters with and without a fraction, if C defines every cast."""
    for stored in INTEGERS + REALS:
        for number, (offset, scale) in enumerate([(3, 2), (2.5, 4.0), (0, 0.25), (1, 1)]):
            if stored in INTEGERS:
                top = min(np.iinfo(stored).max, 1000) / max(scale, 1)
                wanted = np.linspace(0, top * 0.9, 23) + offset
            else:
                wanted = np.linspace(-300, 300, 23)
            if decoded in INTEGERS:
                limits = np.iinfo(decoded)
                low, high = max(limits.min, np.ceil(offset)), min(limits.max, 10**6)
                wanted = np.clip(wanted, low, high)
            values = wanted.astype(decoded)
            if decoded in REALS and stored in REALS:
                values = np.append(values, SPECIAL).astype(decoded)
            one = numcodecs.FixedScaleOffset(offset, scale, decoded, stored)
            with np.errstate(all="ignore"):
                agrees(tmp_path / f"{stored}{number}", ordered(decoded), [one], values)


def test_fixedscaleoffset_is_computed_in_float64(tmp_path: Path) -> None:
    """Temperatures of a climate model, with the usual packing."""
    one = numcodecs.FixedScaleOffset(offset=273.15, scale=100, dtype="<f8", astype="<i2")
    values = np.array([274.15, 250.01, 301.99, 273.15])
    for version in (2, 3):
        folder = tmp_path / str(version)
        if version == 2:
            v2(folder, "<f8", (4,), [one.get_config()])
            chunk = folder / "0"
        else:
            config = {key: value for key, value in one.get_config().items() if key != "id"}
            v3(folder, "float64", (4,), [codec("numcodecs.fixedscaleoffset", **config), BYTES])
            chunk = folder / "c/0"
        zarrow.open(folder)[...] = values
        assert chunk.read_bytes() == one.encode(values).tobytes()
        assert same(zarrow.open(folder)[...].numpy(), one.decode(one.encode(values)))
        assert zarrow.open(folder)[0].numpy() == 274.15


@pytest.mark.parametrize("decoded", REALS)
def test_quantize(decoded: str, tmp_path: Path) -> None:
    values = np.append(reals(decoded, 10), SPECIAL).astype(decoded)
    for stored in REALS:
        for digits in (-2, 0, 1, 3, 7, 12):
            with np.errstate(all="ignore"):
                one = numcodecs.Quantize(digits, decoded, stored)
                agrees(tmp_path / f"{stored}{digits}", ordered(decoded), [one], values)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("decoded", ["b1", *INTEGERS, *REALS])
def test_astype(decoded: str, order: str, tmp_path: Path) -> None:
    for stored in ["b1", *INTEGERS, *REALS]:
        if decoded in INTEGERS:
            values = integers(decoded)
        elif decoded == "b1":
            values = np.arange(41) % 3 == 0
        elif stored in INTEGERS:
            # C leaves casts outside the integer's range undefined.
            top = 2.0 ** (8 * np.dtype(stored).itemsize - 2)
            low = 0 if stored.startswith("u") else -top
            values = np.linspace(low, min(top, 60000), 41).clip(-60000).astype(decoded)
        else:
            values = np.append(reals(decoded), SPECIAL).astype(decoded)
        values = values.astype(ordered(decoded, order))
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = numcodecs.AsType(ordered(stored, order), values.dtype)
            if stored in REALS and decoded in INTEGERS:
                encoded = one.encode(values)
                # Rounded up, the largest integers are outside the type's range.
                held = np.isfinite(encoded) & (abs(encoded.astype("f8")) < 2.0 ** (8 * values.itemsize - 2))
                values = values[held]
            agrees(tmp_path / stored, values.dtype.str, [one], values)


def test_doubles_are_rounded_to_halves_once(tmp_path: Path) -> None:
    """Through float32 they would be rounded twice."""
    values = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 2**-25 + 2**-60, 65519.999999, 65520.0])
    with np.errstate(all="ignore"):
        agrees(tmp_path / "a", "<f8", [numcodecs.AsType("<f2", "<f8")], values)


@pytest.mark.parametrize("decoded", REALS)
def test_bitround(decoded: str, tmp_path: Path) -> None:
    values = np.append(reals(decoded), [0.0, -0.0, np.inf, 1.5]).astype(decoded)
    for keepbits in range(np.finfo(decoded).nmant + 1):
        agrees(tmp_path / str(keepbits), ordered(decoded), [numcodecs.BitRound(keepbits)], values)


def test_packbits_as_a_filter(tmp_path: Path) -> None:
    for count in range(1, 35):
        values = np.arange(count) % 3 != 1
        agrees(tmp_path / str(count), "|b1", [numcodecs.PackBits()], values)


def test_filters_after_filters(tmp_path: Path) -> None:
    values = np.arange(41, dtype="<f8") * 3 + 1000
    filters = [
        numcodecs.FixedScaleOffset(1000, 10, "<f8", "<i4"),
        numcodecs.Delta("<i4", "<i2"),
        numcodecs.AsType("<i8", "<i2"),
    ]
    agrees(tmp_path / "numbers", "<f8", filters, values)
    bools = np.arange(41) % 5 == 0
    agrees(tmp_path / "bits", "|b1", [numcodecs.PackBits(), numcodecs.Delta("u1")], bools)


def test_a_filter_takes_bytes_for_its_type(tmp_path: Path) -> None:
    """Differences of the bits of real numbers, and of times."""
    values = reals("f4")
    agrees(tmp_path / "real", "<f4", [numcodecs.Delta("<i4")], values)
    times = np.arange(41).astype("<M8[s]") + np.timedelta64(10**9, "s")
    agrees(tmp_path / "time", "<M8[s]", [numcodecs.Delta("<i8")], times)
    v2(tmp_path / "order", ">i4", (4,), [numcodecs.Delta("<i4").get_config()])
    with pytest.raises(zarrow.MetadataError, match="byte order"):
        zarrow.open(tmp_path / "order")


def test_categories_of_a_fixed_length(tmp_path: Path) -> None:
    values = np.array(["male", "female", "", "other", "female", "fem"], "<U6")
    for astype in ("u1", "<i2", "<f4"):
        one = numcodecs.Categorize(["female", "male", "femalex", "fem\0"], "<U6", astype)
        agrees(tmp_path / astype.strip("<"), "<U6", [one], values)


def test_categories_of_any_length(tmp_path: Path) -> None:
    words = ["male", "female", "né", "male", "unexpected", ""]
    one = numcodecs.Categorize(["female", "male", "né"], object)
    encoded = one.encode(np.array(words, object))
    v2(tmp_path, "|O", (2, 3), [one.get_config()], fill_value="")
    (tmp_path / "0.0").write_bytes(encoded.tobytes())
    array = zarrow.open(tmp_path)
    assert array[...].to_numpy().tolist() == one.decode(encoded).reshape(2, 3).tolist()
    array[...] = np.array(words[::-1], dtype="U").reshape(2, 3)
    assert (tmp_path / "0.0").read_bytes() == one.encode(np.array(words[::-1], object)).tobytes()
    array[1, 2] = "né"
    assert array[1].to_numpy().tolist() == ["né", "female", "né"]


V3_FILTERS: dict[str, tuple[str, str, Json, bool]] = {
    # Type, codec and configuration, and whether zarr-python stores the same bytes.
    "delta": ("int32", "delta", {"dtype": "<i4", "astype": "<i8"}, True),
    "fixedscaleoffset": (
        "float64",
        "fixedscaleoffset",
        {"offset": 2.5, "scale": 8, "dtype": "<f8", "astype": "<i4"},
        True,
    ),
    "quantize": ("float32", "quantize", {"digits": 2, "dtype": "<f4"}, True),
    "astype": ("float64", "astype", {"encode_dtype": "<f4", "decode_dtype": "<f8"}, True),
    "bitround": ("float32", "bitround", {"keepbits": 5}, True),
    "packbits": ("bool", "packbits", {}, True),
}


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", V3_FILTERS)
@pytest.mark.parametrize("sharded", [False, True])
def test_v3_filters_and_zarr_python(name: str, sharded: bool, tmp_path: Path) -> None:
    data_type, codec_id, configuration, _ = V3_FILTERS[name]
    if name == "packbits" and sharded:
        pytest.skip("zarr-python cannot say how large a chunk of it is")
    inner = [codec(f"numcodecs.{codec_id}", **configuration), BYTES, codec("zstd", level=1, checksum=False)]
    if name == "packbits":
        inner[1] = {"name": "bytes"}
    codecs = inner
    if sharded:
        index = [BYTES, {"name": "crc32c"}]
        codecs = [codec("sharding_indexed", chunk_shape=[2, 4], codecs=inner, index_codecs=index)]
    values = (
        np.arange(48).reshape(6, 8) % 2 if data_type == "bool" else np.arange(48).reshape(6, 8) * 1.25
    ).astype(data_type)
    v3(tmp_path / "theirs", data_type, (6, 8), codecs, False if data_type == "bool" else 0)
    try:
        theirs = zarr.open_array(tmp_path / "theirs", mode="r+")
    except (ValueError, AttributeError) as error:
        assert name == "packbits", error
        pytest.skip("zarr-python refuses its own packbits")
    theirs[...] = values
    assert same(zarrow.open(tmp_path / "theirs")[...].numpy(), theirs[...])
    v3(tmp_path / "ours", data_type, (6, 8), codecs, False if data_type == "bool" else 0)
    zarrow.open(tmp_path / "ours")[...] = values
    assert same(zarr.open_array(tmp_path / "ours", mode="r")[...], theirs[...])
    ours = zarrow.open(tmp_path / "ours")
    ours[1:3, 2] = values[1:3, 2]
    assert same(ours[::-1, 1:7:2].numpy(), theirs[...][::-1, 1:7:2])


# Stored bytes of each chunk of four elements: zarr-python 3.4.2 with cast-value-rs 0.5.1 stores the same.
SCALED: list[tuple[str, list[Any], list[float], str]] = [
    (
        "float32",
        [codec("scale_offset", offset=5, scale=0.1)],
        [5, 15, 2.5, -5],
        "000000000000803f000080be000080bf",
    ),
    ("int16", [codec("scale_offset", offset=-3, scale=7)], [-3, 0, 4, 100], "000015003100d102"),
    (
        "float64",
        [codec("scale_offset", offset=273.15, scale=100), codec("cast_value", data_type="int16")],
        [274.15, 250.01, 301.99, 273.15],
        "6400f6f6440b0000",
    ),
    (
        "float64",
        [codec("cast_value", data_type="uint8", rounding="towards-zero")],
        [1.9, 0.1, 254.9, 3],
        "0100fe03",
    ),
    (
        "float64",
        [codec("cast_value", data_type="uint8", out_of_range="clamp")],
        [300, -5, 2.5, 3.5],
        "ff000204",
    ),
    (
        "float64",
        [codec("cast_value", data_type="uint8", out_of_range="wrap")],
        [300, -5, 1e30, 255.5],
        "2cfb0000",
    ),
    (
        "float32",
        [
            codec(
                "cast_value",
                data_type="int8",
                rounding="nearest-away",
                scalar_map={"encode": [["NaN", -128]], "decode": [[-128, "NaN"]]},
            )
        ],
        [0.5, -2.5, float("nan"), 2.4],
        "01fd8002",
    ),
]


@pytest.mark.parametrize("number", range(len(SCALED)))
def test_scale_offset_and_cast_value(number: int, tmp_path: Path) -> None:
    data_type, filters, values, stored = SCALED[number]
    v3(tmp_path, data_type, (4,), [*filters, BYTES])
    array = zarrow.open(tmp_path)
    array[...] = np.array(values, data_type)
    assert (tmp_path / "c/0").read_bytes().hex() == stored
    read = array[...].numpy()
    if "out_of_range" not in str(filters) and "rounding" not in str(filters):
        assert np.allclose(read, np.array(values, data_type), rtol=1e-6, atol=0.006)
    if "NaN" in str(filters):
        assert np.isnan(read[2])
        assert read[[0, 1, 3]].tolist() == [1, -3, 2]


def test_impossible_casts_are_errors(tmp_path: Path) -> None:
    cast = codec("cast_value", data_type="int8")
    array = zarrow.open(v3(tmp_path / "cast", "float64", (2,), [cast, BYTES]))
    for value in (128, -129, np.nan, np.inf):
        with pytest.raises(zarrow.CodecError, match="cast_value"):
            array[...] = np.array([1, value])
    scaled = zarrow.open(v3(tmp_path / "scaled", "int8", (2,), [codec("scale_offset", scale=3), BYTES]))
    with pytest.raises(zarrow.CodecError, match="scale_offset"):
        scaled[...] = np.array([1, 43], "i1")
    (tmp_path / "scaled/c").mkdir()
    (tmp_path / "scaled/c/0").write_bytes(bytes([3, 4]))
    with pytest.raises(zarrow.CodecError, match="scale_offset"):
        scaled[...]
    for wrong in (
        codec("scale_offset", scale=0),
        codec("scale_offset", scale=0.5),
        codec("scale_offset", offset=1, more=2),
        codec("cast_value"),
        codec("cast_value", data_type="string"),
        codec("cast_value", data_type="float32", out_of_range="wrap"),
        codec("cast_value", data_type="int8", scalar_map={"encode": [[1]]}),
    ):
        with pytest.raises((zarrow.CodecError, zarrow.UnsupportedError)):
            zarrow.open(v3(tmp_path / "wrong", "int8", (2,), [wrong, BYTES]))
    with pytest.raises(zarrow.CodecError, match="scale is 0"):
        zarrow.create_array({}, shape=4, dtype="f8", filters=[codec("scale_offset", scale=0)])


def test_shapes_change_and_elements_stay(tmp_path: Path) -> None:
    values = np.arange(24, dtype="<i4").reshape(1, 4, 6)
    turned = codec("transpose", order=[1, 0])
    for number, (codecs, expected) in enumerate(
        [
            ([codec("zarrs.squeeze"), BYTES], values),
            ([codec("zarrs.squeeze"), turned, BYTES], values[0].T),
            ([codec("reshape", shape=[[0, 1], 2, -1]), BYTES], values),
            ([codec("reshape", shape=[8, 3]), turned, BYTES], values.reshape(8, 3).T),
            (
                [codec("transpose", order=[2, 0, 1]), codec("reshape", shape=[24]), BYTES],
                values.transpose(2, 0, 1),
            ),
        ]
    ):
        array = zarrow.open(v3(tmp_path / str(number), "int32", (1, 4, 6), codecs))
        array[...] = values
        assert (tmp_path / str(number) / "c/0/0/0").read_bytes() == expected.tobytes()
        assert same(array[...].numpy(), values)
        assert same(array[0, ::2, 3].numpy(), values[0, ::2, 3])
    words = zarrow.open(
        v3(tmp_path / "words", "string", (2, 2), [codec("reshape", shape=[4]), {"name": "vlen-utf8"}], "")
    )
    words[...] = np.array([["a", "né"], ["", "b"]])
    assert words[:, 1].to_numpy().tolist() == ["né", "b"]
    with pytest.raises(zarrow.CodecError, match="reshape"):
        zarrow.open(v3(tmp_path / "wrong", "int32", (2, 2), [codec("reshape", shape=[5]), BYTES]))


def test_filters_of_optional_elements(tmp_path: Path) -> None:
    data = [codec("numcodecs.delta", dtype="<i4"), BYTES]
    optional = codec("zarrs.optional", mask_codecs=[{"name": "packbits"}], data_codecs=data)
    data_type = {"name": "zarrs.optional", "configuration": {"name": "int32", "configuration": {}}}
    array = zarrow.open(v3(tmp_path, data_type, (6,), [optional], None))
    values = np.ma.masked_array(np.arange(6, dtype="i4") * 3, [0, 1, 0, 0, 1, 0])
    array[...] = values
    chunk = (tmp_path / "c/0").read_bytes()
    assert chunk[17:] == np.array([0, 6, 3, 6], "<i4").tobytes()
    assert array[...].to_numpy().tolist() == values.tolist()


def test_new_arrays_with_filters(tmp_path: Path) -> None:
    """Created by zarrow, and read by zarr-python."""
    values = np.arange(40, dtype="f8").reshape(5, 8) / 4
    chosen = numcodecs.FixedScaleOffset(0, 4, "<f8", "<i2")
    for version in (2, 3):
        array = zarrow.create_array(
            tmp_path / str(version),
            shape=(5, 8),
            chunks=(2, 8),
            dtype="f8",
            filters=[chosen.get_config(), {"id": "delta", "dtype": "<i2", "astype": "<i4"}],
            zarr_format=version,
        )
        array[...] = values
        assert same(array[...].numpy(), values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert same(zarr.open_array(tmp_path / str(version), mode="r")[...], values)


def test_pickles_are_refused_with_the_reason(tmp_path: Path) -> None:
    v2(tmp_path, "|O", (2,), [{"id": "pickle", "protocol": 5}])
    with pytest.raises(zarrow.MetadataError, match="pickle"):
        zarrow.open(tmp_path)


def test_chunks_with_false_claims(tmp_path: Path) -> None:
    """Wrong sizes and headers are errors of the codec, with every filter."""
    packed = v2(tmp_path / "bits", "|b1", (12,), [{"id": "packbits"}])
    for chunk in (b"", b"\x05\0\0", b"\x04\0", b"\x04\0\0\0"):
        (packed / "0").write_bytes(chunk)
        with pytest.raises(zarrow.CodecError):
            zarrow.open(packed)[...]
    differences = v2(tmp_path / "delta", "<i4", (12,), [{"id": "delta", "dtype": "<i4", "astype": "<i2"}])
    for size in (0, 23, 25, 48):
        (differences / "0").write_bytes(bytes(size))
        with pytest.raises(zarrow.CodecError):
            zarrow.open(differences)[...]
    # A small chunk of long labels: the decoded size is limited.
    labels = {"id": "categorize", "labels": ["x" * 10**6], "dtype": "|O", "astype": "|u1"}
    bomb = v2(tmp_path / "bomb", "|O", (10**5,), [labels], fill_value="")
    (bomb / "0").write_bytes(b"\1" * 10**5)
    with pytest.raises(zarrow.LimitError):
        zarrow.open(bomb)[...]
