"""The other libraries: each creates an array in its own way, writes to existing ones, and reads them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numcodecs
import numpy as np
import tensorstore
import zarr
import zarrista
from zarr.core.dtype import VariableLengthBytes

from oracle.elements import STRING, Values
from oracle.random_values import missing

Document = Mapping[str, Any]
Rows = slice


class Library(Protocol):
    """Operations of a library on the array in a folder; an exception means that it lacks the feature."""

    def create(self, folder: Path, document: Document, dtype: np.dtype[Any], fill: Any) -> None:
        """Create an array from the document, `zarr.json` or `.zarray`."""

    def write(self, folder: Path, rows: Rows, values: Values) -> None:
        """Write some rows: masked, or objects with None, if elements may be missing."""

    def read(self, folder: Path, dtype: np.dtype[Any]) -> Values:
        """Read all."""


class ZarrPython:
    """zarr-python, which creates arrays by NumPy type."""

    def create(self, folder: Path, document: Document, dtype: np.dtype[Any], fill: Any) -> None:
        """Create it with the options equivalent to the document."""
        options: dict[str, Any]
        if document["zarr_format"] == 2:
            compressor = document["compressor"]
            options = {
                "chunks": tuple(document["chunks"]),
                "compressors": compressor and numcodecs.get_codec(dict(compressor)),
                "order": document["order"],
            }
            if isinstance(document["dtype"], str) and document["dtype"].startswith(">"):
                dtype = dtype.newbyteorder(">")
        else:
            chunks, codecs = document["chunk_grid"]["configuration"]["chunk_shape"], document["codecs"]
            options = {"chunks": tuple(chunks)}
            if codecs[0]["name"] == "sharding_indexed":
                inner = codecs[0]["configuration"]
                options = {"shards": tuple(chunks), "chunks": tuple(inner["chunk_shape"])}
                codecs = inner["codecs"]
            serializer = 1 if codecs[0]["name"] == "transpose" else 0
            options |= {"filters": codecs[:serializer], "compressors": codecs[serializer + 1 :]}
            if codecs[serializer].get("configuration"):
                options["serializer"] = codecs[serializer]
        named = {STRING: str, np.dtype(object): VariableLengthBytes()}.get(dtype, dtype)
        with unspecified():
            zarr.create_array(
                folder,
                shape=document["shape"],
                dtype=named,
                fill_value=fill,
                zarr_format=document["zarr_format"],
                **options,
            )

    def write(self, folder: Path, rows: Rows, values: Values) -> None:
        """Write all chunks, because chunks that compare equal to the fill value may have other bits."""
        with unspecified():
            zarr.open_array(folder, mode="r+", config={"write_empty_chunks": True})[rows] = values

    def read(self, folder: Path, dtype: np.dtype[Any]) -> Values:
        """Read all."""
        with unspecified():
            return np.asarray(zarr.open_array(folder, mode="r")[...], dtype)


@contextmanager
def unspecified() -> Iterator[None]:
    """Ignore zarr-python's warnings about types and codecs without a specification."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class TensorStore:
    """TensorStore, which opens structures by field, and fixed-length bytes with an additional axis."""

    def create(self, folder: Path, document: Document, dtype: np.dtype[Any], fill: Any) -> None:
        """Create it from the document; arrays of raw bytes are only opened, since creating them aborts."""
        if dtype.kind == "V" and dtype.isbuiltin != 2 and dtype.names is None:
            put(folder, document)
            return
        open_tensorstore(
            folder, document["zarr_format"], create=True, metadata=dict(document), **first(dtype)
        )

    def write(self, folder: Path, rows: Rows, values: Values) -> None:
        """Write each field."""
        dtype = values.dtype
        for field, part in [(field, values[field]) for field in dtype.names or ()] or [(None, values)]:
            array = open_tensorstore(folder, **({"field": field} if field else {}))
            if array.ndim > part.ndim:
                part = np.ascontiguousarray(part)[..., None].view(f"{part.dtype.kind}1")
            array[rows].write(part).result()

    def read(self, folder: Path, dtype: np.dtype[Any]) -> Values:
        """Read each field."""
        if dtype.names is None:
            return one_array(open_tensorstore(folder).read().result(), dtype)
        parts = {field: open_tensorstore(folder, field=field).read().result() for field in dtype.names}
        values: Values = np.empty(parts[dtype.names[0]].shape[:2], dtype)
        for field, part in parts.items():
            values[field] = one_array(part, dtype[field])
        return values


def open_tensorstore(folder: Path, zarr_format: int | None = None, **options: Any) -> Any:
    """Open the array, of the existing version."""
    driver = {2: "zarr", 3: "zarr3"}[zarr_format or format_of(folder)]
    store = {"driver": "file", "path": f"{folder}/"}
    return tensorstore.open({"driver": driver, "kvstore": store, **options}).result()


def format_of(folder: Path) -> int:
    """Return the version of the array in a folder."""
    return 3 if (folder / "zarr.json").exists() else 2


def put(folder: Path, document: Document) -> None:
    """Write a document unchanged."""
    folder.mkdir()
    name = ".zarray" if document["zarr_format"] == 2 else "zarr.json"
    (folder / name).write_text(json.dumps(document))


def first(dtype: np.dtype[Any]) -> dict[str, str]:
    """Return the field that opens a structure."""
    return {"field": dtype.names[0]} if dtype.names else {}


def one_array(found: Values, dtype: np.dtype[Any]) -> Values:
    """Return the elements; TensorStore gives bytes as elements of size zero, along an additional axis."""
    if dtype.kind not in "SV" or dtype.isbuiltin == 2:
        return found
    described = dict(found.__array_interface__, typestr="|u1", descr=[("", "|u1")])
    holder = type("Holder", (), {"__array_interface__": described, "owner": found})()
    single = np.ascontiguousarray(np.asarray(holder))
    return single.view(dtype)[..., 0].copy()


OPTIONAL = ("zarrs.optional", "optional")


class Zarrs:
    """zarrs, by zarrista: its arrays are bytes, with offsets and validity if needed."""

    def create(self, folder: Path, document: Document, dtype: np.dtype[Any], fill: Any) -> None:
        """Create it from the document; zarrista cannot create version 2, and only opens it."""
        if document["zarr_format"] == 2:
            put(folder, document)
            return
        if dtype.kind == "V" and dtype.isbuiltin != 2 and dtype.names is None:
            # The name in the specification, which zarr-python and TensorStore do not know.
            name = f"r{8 * dtype.itemsize}"
            if document["data_type"]["name"] in OPTIONAL:
                inner = {"name": name, "configuration": {}}
                changed: Any = {"data_type": {**document["data_type"], "configuration": inner}}
            else:
                changed = {"data_type": name, "fill_value": list(bytes(fill))}
            document = {**document, **changed}
        zarrista.Array.from_metadata(document, zarrista.store.FilesystemStore(folder)).store_metadata()

    def write(self, folder: Path, rows: Rows, values: Values) -> None:
        """Write bytes."""
        parts: dict[str, Any] = {}
        data = np.ma.getdata(values)
        if open_zarrs(folder).dtype.name in OPTIONAL:
            parts["mask"] = (~missing(values)).tobytes()
        if data.dtype == object or data.dtype == STRING:
            each = [
                value.encode() if isinstance(value, str) else value or b"" for value in data.ravel().tolist()
            ]
            parts["offsets"] = np.cumsum([0, *map(len, each)]).tolist()
            encoded = b"".join(each)
        else:
            encoded = data.tobytes()
        open_zarrs(folder).store_array_subset((rows, ...), zarrista.ArrayBytes(encoded, **parts))

    def read(self, folder: Path, dtype: np.dtype[Any]) -> Values:
        """Read bytes, since zarrista knows few NumPy types."""
        found = open_zarrs(folder)[...]
        if isinstance(found, zarrista.OptionalFixedLengthTensor):
            values = np.frombuffer(found.data.buffer(), dtype).reshape(found.shape)
            return np.ma.MaskedArray(values, ~np.frombuffer(found.mask.buffer(), bool).reshape(found.shape))
        if isinstance(found, zarrista.FixedLengthTensor):
            return np.frombuffer(found.buffer(), dtype).reshape(found.shape)
        return found.to_numpy()


def open_zarrs(folder: Path) -> Any:
    """Open the array."""
    return zarrista.Array.open(zarrista.store.FilesystemStore(folder), "/")


LIBRARIES: dict[str, Library] = {"zarr-python": ZarrPython(), "TensorStore": TensorStore(), "zarrs": Zarrs()}
