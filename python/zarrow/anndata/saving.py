"""Storing of AnnData objects, in the format of `anndata.AnnData.write_zarr`.

1. All elements are converted first, without a copy where possible: if one cannot be stored, nothing changes.
2. Nothing of the object changes: text columns stay text, and with missing elements nullable text, whereas
   `write_zarr` makes categories of them.
3. Arrays that h5py holds (an AnnData in backed mode) are copied part by part. Arrays of dask and
   zarr-python are read first.
4. The metadata are consolidated at the end, as anndata does, except in icechunk. Where others may see an
   unfinished AnnData, the root says so until its attributes are stored last.
5. In folders and in memory, the AnnData is built in a hidden place and put in place in one step
   (`_create_whole_group`). In other stores all names are checked first; a store that fails leaves an
   unfinished AnnData, which a later call replaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrow._zarrow import Group, MemoryStore, _create_group, _create_whole_group, _import, open
from zarrow.anndata.encoding import UNFINISHED
from zarrow.api.creation import _create
from zarrow.api.node_batch import NodeBatch, is_small
from zarrow.api.small_arrays import is_added
from zarrow.arrays.missing import ANNDATA_ARRAY
from zarrow.arrays.nullable import STRINGS
from zarrow.errors import ExchangeError, NodeExistsError, NotFoundError
from zarrow.interchange.lazy_arrays import is_read_in_parts
from zarrow.store_objects.icechunk_sessions import session_of

_MAX_DEPTH = 32
_MAX_NAME = 255  # bytes, of the usual file systems


@dataclass
class Stored:
    """A node to create: an array if it has data, otherwise a group."""

    attributes: dict[str, Any]
    data: Any = None
    members: dict[str, Stored] | None = None


def save(store: Any, path: str, adata: Any, zarr_format: int = 3) -> None:
    """Store an AnnData object at a path; an AnnData there is replaced, and nothing else.

    Raises
    ------
    NodeExistsError
        Another node exists at the path.
    ExchangeError
        An element cannot be stored; nothing was stored.
    """
    root = _of_anndata(adata)
    _check_names(root.members or {}, zarr_format)
    is_replaced = _is_replaced(store, path)
    try:
        is_stored = _create_whole_group(
            store,
            path,
            root.attributes,
            lambda group: _store_members(group, root),
            lambda: _is_replaced(store, path),
            zarr_format=zarr_format,
            overwrite=is_replaced,
        )
    except BaseException as error:
        error.add_note(f"nothing was changed at {path or str(store)!r}")
        raise
    if not is_stored:
        _store_in_place(store, path, root, zarr_format, overwrite=is_replaced)


def store_column(table: Group, name: str, column: Any) -> None:
    """Store a column of pandas in a dataframe; an array there is replaced.

    Raises
    ------
    NodeExistsError
        A group is there, such as a categorical.
    ExchangeError
        The column cannot be stored; nothing was stored.
    """
    node = node_of(column, name)
    if node.members is None:
        version = {"zarr_format": table.zarr_format}
        _create(table, name, "none", version, data=node.data, attributes=node.attributes, overwrite="array")
    else:
        _store(table, {name: node})


def _store_members(group: Group, root: Stored) -> None:
    _store(group, root.members or {})
    group.consolidate_metadata()


def _store_in_place(store: Any, path: str, root: Stored, zarr_format: int, *, overwrite: bool) -> None:
    """Store all nodes, and the attributes of the root last (step 4)."""
    group = _create_group(
        store, path, UNFINISHED, zarr_format=zarr_format, overwrite=overwrite, durability="none"
    )
    _store(group, root.members or {})
    last = NodeBatch(group, zarr_format)
    last.add_group("", root.attributes, keep=True)
    has_copies = not isinstance(store, Group) and session_of(store) is None
    last.create(consolidate="" if has_copies else None)


def _is_replaced(store: Any, path: str) -> bool:
    """Return whether a node exists at the path; raise an error if it may not be replaced."""
    existing: Any
    try:
        existing = store.get(path) if isinstance(store, Group) and path else open(store, path, mode="r")
        is_ours = existing is not None and _may_be_replaced(existing)
    except NotFoundError:
        # Another writer may have replaced it since it was opened.
        return False
    if existing is None:
        return False
    if not is_ours:
        raise NodeExistsError(
            f"{existing.name!r} is not an AnnData, so it is not replaced: pass another path, or erase it by "
            "zarrow.create_group(store, path, overwrite=True)",
            store=existing.store,
        )
    return True


def _may_be_replaced(existing: Any) -> bool:
    if not isinstance(existing, Group):
        return False
    encoding = existing.attrs.get("encoding-type")
    return encoding in ("anndata", UNFINISHED["encoding-type"]) or (not existing.attrs and not len(existing))


def _check_names(members: dict[str, Stored], zarr_format: int) -> None:
    """Raise an error if a name cannot be a node's: groups of all names are created in memory (step 5)."""

    def create(parent: Group, below: dict[str, Stored], place: str) -> None:
        for name, node in below.items():
            here = f"{place}{name}"
            if len(name.encode()) > _MAX_NAME:
                raise ExchangeError(
                    f"{place.rstrip('/')!r} has a key of {len(name.encode())} bytes, expected at most "
                    f"{_MAX_NAME}: rename it first"
                )
            try:
                group = parent.create_group(name)
            except (ValueError, OSError) as error:
                raise ExchangeError(
                    f"{here!r}: {name!r} cannot name a node in Zarr: rename it first ({error})"
                ) from error
            create(group, node.members or {}, f"{here}/")

    create(
        _create_group(MemoryStore(), "", {}, zarr_format=zarr_format, overwrite=False, durability="none"),
        members,
        "",
    )


def _store(group: Group, members: dict[str, Stored]) -> None:
    """Create groups and then arrays; in a remote store, the groups and small arrays together."""
    batch = NodeBatch(group, group.zarr_format)
    rest: dict[str, Stored] = {}

    def create_groups(below: dict[str, Stored], place: str) -> None:
        for name, node in below.items():
            path = f"{place}{name}"
            if node.members is None:
                is_together = group._is_remote() and is_small(node.data)
                if not (is_together and is_added(batch, path, data=node.data, attributes=node.attributes)):
                    rest[path] = node
                continue
            if group._is_remote():
                batch.add_group(path, node.attributes)
            else:
                group.create_group(path, attributes=node.attributes)
            create_groups(node.members, f"{path}/")

    create_groups(members, "")
    batch.create()
    for path, node in rest.items():
        group.create_array(path, data=node.data, attributes=node.attributes)


def _of_anndata(adata: Any) -> Stored:
    """Return the nodes of an AnnData; a view is copied first (steps 1 and 2)."""
    if adata.is_view:
        adata = adata.to_memory()
    parts: dict[str, Any] = {"X": adata.X} if adata.X is not None else {}
    parts |= {"obs": adata.obs, "var": adata.var, "uns": adata.uns}
    for name in ("obsm", "varm", "obsp", "varp"):
        parts[name] = dict(getattr(adata, name))
    parts["layers"] = {name: layer for name, layer in adata.layers.items() if name is not None}
    members = {name: node_of(value, name) for name, value in parts.items()}
    raw = adata.raw
    if raw is None:
        members["raw"] = node_of(None, "raw")
    else:
        below = {"X": raw.X, "var": raw.var, "varm": dict(raw.varm)}
        members["raw"] = Stored(
            _encoding("raw", "0.1.0"),
            members={name: node_of(value, f"raw/{name}") for name, value in below.items()},
        )
    return Stored(_encoding("anndata", "0.1.0"), members=members)


def node_of(value: Any, place: str, depth: int = 0) -> Stored:
    """Return the node of one element (steps 1 and 3)."""
    np = _import("numpy")
    if depth > _MAX_DEPTH:
        raise ValueError(f"{place!r}: dicts are nested more than {_MAX_DEPTH} deep, or one contains itself")
    if value is None:
        return Stored(_encoding("null", "0.1.0"), data=np.zeros((), bool))
    if isinstance(value, Mapping):
        return _of_mapping(value, place, depth)
    if isinstance(value, bool | int | float | complex | np.number | np.bool_):
        return Stored(_encoding("numeric-scalar", "0.2.0"), data=np.asarray(value))
    if isinstance(value, str):
        return Stored(_encoding("string", "0.2.0"), data=np.array(str(value), np.dtypes.StringDType()))
    if isinstance(value, list):
        return _of_array(np.array(value), place)
    family, name = type(value).__module__.partition(".")[0], type(value).__name__
    if family in ("dask", "dask_array"):
        return node_of(value.compute(), place, depth)
    if getattr(value, "format", None) in ("csr", "csc"):
        return _of_sparse(value, place)
    pandas = _import("pandas")
    if isinstance(
        value, pandas.DataFrame | pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray
    ):
        return _of_pandas(value, place)
    if isinstance(value, np.ma.MaskedArray) or (family == "anndata" and not isinstance(value, np.ndarray)):
        raise _refused(f"{family}'s {name}", place)
    if family == "zarr":
        value = value[...]
    if isinstance(value, np.ndarray) or is_read_in_parts(value):
        return _of_array(value, place)
    raise _refused(f"{family}'s {name}", place)


def _of_mapping(value: Mapping[Any, Any], place: str, depth: int) -> Stored:
    for key in value:
        if not isinstance(key, str) or not key or "/" in key:
            raise ExchangeError(f"{place!r} has the key {key!r}, expected text without '/': rename it first")
    members = {key: node_of(below, f"{place}/{key}", depth + 1) for key, below in value.items()}
    return Stored(_encoding("dict", "0.1.0"), members=members)


def _of_array(value: Any, place: str) -> Stored:
    if value.ndim == 0 and value.dtype.kind in "buifcUTO":
        return node_of(value[()], place)
    if value.dtype.kind in "UTO":
        return Stored(dict(STRINGS), data=_text(value, place))
    if value.dtype.kind == "V":
        return Stored(_encoding("rec-array", "0.2.0"), data=_of_fixed_size(value, place))
    return Stored(dict(ANNDATA_ARRAY), data=value)


def _text(value: Any, place: str) -> Any:
    np = _import("numpy")
    try:
        return np.asarray(value).astype(np.dtypes.StringDType(coerce=False)).astype(np.dtypes.StringDType())
    except (TypeError, ValueError) as error:
        raise ExchangeError(
            f"{place!r} has objects that are not text: convert them to one type first ({error})"
        ) from error


def _of_fixed_size(value: Any, place: str) -> Any:
    """Return structures with text of fixed size in place of Python's strings."""
    fields = []
    for name in value.dtype.names:
        field = value.dtype[name]
        if field.kind == "O":
            text = _text(value[name], f"{place}/{name}")
            field = f"U{max([1, *map(len, text.reshape(-1))])}"
        fields.append((name, field))
    return value.astype(fields)


def _of_sparse(value: Any, place: str) -> Stored:
    arrays = getattr(value, "group", value)  # in backed mode, a group of h5py or zarr-python
    members = {}
    for name in ("data", "indices", "indptr"):
        array = arrays[name] if arrays is not value else getattr(value, name)
        if type(array).__module__.partition(".")[0] == "zarr":
            array = array[...]
        members[name] = Stored({}, data=array)
    attributes = {
        **_encoding(f"{value.format}_matrix", "0.1.0"),
        "shape": [int(extent) for extent in value.shape],
    }
    return Stored(attributes, members=members)


def _of_pandas(value: Any, place: str) -> Stored:
    pandas = _import("pandas")
    if isinstance(value, pandas.DataFrame):
        return _of_frame(value, place)
    if isinstance(value, pandas.Series | pandas.Index):
        value = value._values
    if isinstance(value, pandas.Categorical):
        attributes = {**_encoding("categorical", "0.2.0"), "ordered": bool(value.ordered)}
        members = {"codes": value.codes, "categories": value.categories.to_numpy()}
        return Stored(
            attributes, members={name: _of_array(part, f"{place}/{name}") for name, part in members.items()}
        )
    if isinstance(value, pandas.arrays.IntegerArray | pandas.arrays.BooleanArray):
        kind = "integer" if isinstance(value, pandas.arrays.IntegerArray) else "boolean"
        values = value.to_numpy(na_value=0, dtype=value.dtype.numpy_dtype)
        return _masked(_encoding(f"nullable-{kind}", "0.1.0"), values, value.isna(), place)
    if isinstance(value.dtype, pandas.StringDtype):
        missing = "NA" if value.dtype.na_value is pandas.NA else "NaN"
        attributes = {**_encoding("nullable-string-array", "0.1.0"), "na-value": missing}
        return _masked(attributes, value.to_numpy(na_value=""), value.isna(), place)
    if value.dtype.kind in "mM" and getattr(value.dtype, "tz", None) is None:
        value = value.to_numpy()
    np = _import("numpy")
    if isinstance(value, np.ndarray):
        is_missing = pandas.isna(value)
        if value.dtype.kind == "O" and is_missing.any():
            attributes = {**_encoding("nullable-string-array", "0.1.0"), "na-value": "NaN"}
            return _masked(attributes, np.where(is_missing, "", value), is_missing, place)
        return _of_array(value, place)
    raise _refused(f"pandas' {value.dtype}", place)


def _masked(attributes: dict[str, Any], values: Any, mask: Any, place: str) -> Stored:
    return Stored(attributes, members={"values": _of_array(values, place), "mask": _of_array(mask, place)})


def _of_frame(frame: Any, place: str) -> Stored:
    names, where = list(frame.columns), repr(place) if place else "the table"
    index = "_index" if frame.index.name is None else frame.index.name
    for name in (*names, index):
        if not isinstance(name, str) or "/" in name or name == "" or (name == "_index" and name is not index):
            raise ExchangeError(
                f"{where} has the column {name!r}, expected text without '/', and not '_index': "
                "rename it first"
            )
    if len(set(names)) < len(names):
        raise ExchangeError(f"{where} has several columns of one name: rename them first")
    if index in names and not (frame[index] == frame.index).all():
        raise ExchangeError(
            f"{where}: the index is named {index!r}, as is a column with other values: rename one of "
            "them first"
        )
    members = {index: node_of(frame.index, f"{place}/{index}")}
    members |= {name: node_of(frame[name], f"{place}/{name}") for name in names}
    attributes = {**_encoding("dataframe", "0.2.0"), "_index": index, "column-order": names}
    return Stored(attributes, members=members)


def _encoding(kind: str, version: str) -> dict[str, Any]:
    return {"encoding-type": kind, "encoding-version": version}


def _refused(what: str, place: str) -> ExchangeError:
    return ExchangeError(
        f"{place!r} is {what}, which zarrow does not store: convert it to an array first, or type "
        "adata.write_zarr(path), which stores by zarr-python"
    )
