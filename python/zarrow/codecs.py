"""User-defined codecs, for stores with codecs that zarrow lacks.

Register a codec in every process, before you open or create an array that needs it. It is called on several
threads at once, with the GIL, so that its Python code runs on one core. It may read and write other arrays
with zarrow.

>>> import zarrow
>>> flip = bytes.maketrans(bytes(range(256)), bytes(range(255, -1, -1)))
>>> zarrow.codecs.register(
...     "inverted", decode=lambda data: data.translate(flip), encode=lambda data: data.translate(flip)
... )
>>> array = zarrow.create_array("inverted.zarr", data=[1, 2, 3], compressors=["inverted", "zstd"])
>>> zarrow.open("inverted.zarr")[:].tolist()
[1, 2, 3]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from zarrow import _zarrow
from zarrow.hints.close_names import close_name

__all__ = ["register"]

Kind = Literal["bytes_to_bytes", "array_to_array", "array_to_bytes"]


def register(
    codec: Any,
    /,
    *,
    decode: Callable[[bytes], Any] | None = None,
    encode: Callable[[Any], Any] | None = None,
    kind: Kind = "bytes_to_bytes",
) -> Any:
    """Register a codec: a name and functions, or a class with the protocol of `numcodecs.abc.Codec`.

    Arrays opened or created later can use it: in version 2 by its id, in version 3 by the same name, also
    with the prefix `numcodecs.`. A codec registered earlier under the same name is replaced.

    Parameters
    ----------
    codec
        A name, or a class with `codec_id`, `from_config`, `encode` and `decode`, such as any codec of
        numcodecs or imagecodecs. A codec with parameters needs a class; `from_config` gets them as a dict.
    decode
        With a name: a function that takes bytes, and returns bytes or any object with memory, such as a NumPy
        array.
    encode
        With a name: the inverse function. Without it, arrays can only be read.
    kind
        What the codec encodes: "bytes_to_bytes", like compressors; "array_to_array", elements to the same
        number of elements of the same type, like filters; "array_to_bytes", elements to bytes. With the last
        two `encode` gets a read-only NumPy array of a chunk's shape, and `decode` gets bytes; its result must
        have the chunk's elements, in C order and native byte order.

    Returns
    -------
    The class, so that `register` works as a decorator; None for a name.

    Raises
    ------
    CodecError
        zarrow has a built-in codec of that name (a `ValueError`).
    TypeError
        The arguments are neither a name with `decode` nor a class with the protocol.

    Exceptions of a codec become the cause of a `CodecError`. The decoded size must be the one in the
    metadata; any other is also an error.

    Examples
    --------
    >>> import zarrow
    >>> @zarrow.codecs.register
    ... class Shifted:
    ...     codec_id = "shifted"
    ...
    ...     def __init__(self, by=1):
    ...         self.by = by
    ...
    ...     @classmethod
    ...     def from_config(cls, config):
    ...         return cls(**config)
    ...
    ...     def encode(self, buf):
    ...         return bytes((byte + self.by) % 256 for byte in buf)
    ...
    ...     def decode(self, buf, out=None):
    ...         return bytes((byte - self.by) % 256 for byte in buf)
    >>> array = zarrow.create_array("shifted.zarr", data=[1, 2], compressors={"id": "shifted", "by": 7})
    >>> zarrow.open("shifted.zarr")[:].tolist()
    [1, 2]
    """
    if isinstance(codec, str):
        if decode is None:
            raise TypeError(f"register({codec!r}, decode=..., encode=...) needs decode")
        functions = _Functions(codec, decode, encode)
        _zarrow._register_codec(codec, kind, lambda config: _Codec(functions.configured(config)))
        return None
    if decode is not None or encode is not None:
        raise TypeError("decode= and encode= need the name of a codec: a class has both as methods")
    protocol = ("codec_id", "from_config", "encode", "decode")
    missing = [name for name in protocol if getattr(codec, name, None) is None]
    if missing:
        raise TypeError(
            f"expected a name, or a class with {', '.join(protocol)}; {codec!r} has no {missing[0]}"
        )
    _zarrow._register_codec(codec.codec_id, kind, lambda config: _Codec(codec.from_config(config)))
    return codec


class _Functions:
    """A codec made of functions, without parameters."""

    def __init__(
        self, name: str, decode: Callable[[bytes], Any], encode: Callable[[Any], Any] | None
    ) -> None:
        self.name = name
        self.decode = decode
        self.encode = self._refuse if encode is None else encode

    def configured(self, config: Mapping[str, Any]) -> _Functions:
        if config:
            raise TypeError(
                f"the metadata configure the codec with {dict(config)}, but its functions take no "
                "configuration: register a class with from_config"
            )
        return self

    def _refuse(self, data: Any) -> Any:
        raise TypeError(
            f"the codec was registered without encode: register({self.name!r}, decode=..., encode=...)"
        )


class _Codec:
    """A codec as the engine calls it: from bytes, or the elements of a chunk, to bytes."""

    def __init__(self, codec: Any) -> None:
        self._codec = codec

    def decode(self, data: bytes) -> bytes:
        return _bytes(self._codec.decode(data))

    def encode(self, data: bytes, dtype: Any, shape: tuple[int, ...] | None) -> bytes:
        if shape is None:
            return _bytes(self._codec.encode(data))
        np = _zarrow._import("numpy")
        return _bytes(self._codec.encode(np.frombuffer(data, dtype).reshape(shape)))


def _bytes(given: Any) -> bytes:
    """Return the bytes of a codec's result, of an array in C order."""
    if isinstance(given, bytes):
        return given
    if getattr(getattr(given, "dtype", None), "hasobject", False):
        raise TypeError("the codec returned an array of objects, expected elements of a fixed size")
    tobytes = getattr(given, "tobytes", None)
    return bytes(memoryview(given)) if tobytes is None else tobytes()


_OBJECTS = (
    "objects of any type have no data type: store strings with zarr-python, as dtype=str, and read those"
)

# Codecs that are refused, with the reason.
_REFUSED = {
    "pickle": (
        "reading a pickle can run any code, so zarrow never does: load it with zarr-python if you "
        "trust the store, and store the array again as strings"
    ),
    "json2": _OBJECTS,
    "msgpack2": _OBJECTS,
    "vlen-array": "lists of different lengths have no data type",
    "zarrs.gdeflate": "only the Rust crate zarrs has it: store the array again with another codec",
    "gdeflate": "only the Rust crate zarrs has it: store the array again with another codec",
}

# Packages that have codecs: how the ids begin, what to install, and what to register.
_PACKAGES = (
    ("zfpy", "numcodecs[zfpy]", "numcodecs.zfpy.ZFPY", "array_to_bytes"),
    ("imagecodecs_", "imagecodecs", "imagecodecs.numcodecs.{}", "array_to_bytes"),
    ("flac", "flac-numcodecs", "flac_numcodecs.Flac", "array_to_bytes"),
    ("wavpack", "wavpack-numcodecs", "wavpack_numcodecs.WavPack", "array_to_bytes"),
    ("grib", "kerchunk", "kerchunk.codecs.GRIBCodec", "array_to_bytes"),
    ("fill_hdf_strings", "kerchunk", "kerchunk.codecs.FillStringsCodec", "array_to_array"),
    ("n5_wrapper", "zarr<3", "zarr.n5.N5ChunkWrapper", "array_to_bytes"),
)


# Names of zarrow's codecs, to suggest for similar names.
_NAMES = tuple(
    """
    adler32 astype base64 bitround blosc bytes bz2 cast_value categorize crc32 crc32c delta
    fixedscaleoffset fletcher32 gzip jenkins_lookup3 lz4 lzma packbits pcodec quantize reshape
    scale_offset sharding_indexed shuffle transpose vlen-bytes vlen-utf8 zlib zstd
    """.split()
)

# Names that other libraries use.
_OTHER_NAMES = {"zstandard": "zstd", "gz": "gzip", "deflate": "zlib", "bzip2": "bz2", "xz": "lzma"}


def _whereabouts(name: str) -> str:
    """Say which package has a codec that zarrow lacks, and how to register it."""
    codec_id = name.removeprefix("numcodecs.")
    if codec_id in _REFUSED:
        return _REFUSED[codec_id]
    for start, package, found, kind in _PACKAGES:
        if codec_id.startswith(start):
            found = found.format(codec_id.removeprefix(start).capitalize())
            module = found.partition(".")[0] if found.count(".") == 1 else found.rpartition(".")[0]
            return (
                f"pip install {package!r}, then import {module} and "
                f"zarrow.codecs.register({found}, kind={kind!r})"
            )
    known = _OTHER_NAMES.get(codec_id.lower())
    close = f"did you mean {known}?" if known else close_name(codec_id.lower(), _NAMES)
    return (f"{close} If not, " if close else "") + (
        "zarrow.codecs.register(CLASS) adds a class with numcodecs' protocol, "
        f"zarrow.codecs.register({codec_id!r}, decode=..., encode=...) adds a codec made of functions"
    )
