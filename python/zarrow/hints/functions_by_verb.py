"""Hints for functions of other libraries that are named by a verb and a library, such as `read_polars`.

1. The verb says whether something is read, stored or appended. The rest of the name says as what.
2. The hint is the line for both. Other names get none.
"""

from __future__ import annotations

_VERBS = {
    "read": "read load get scan open fetch from import",
    "store": "write save store dump put to export",
    "append": "append add extend insert",
}
_OBJECTS = {
    "anndata": "anndata adata h5ad ad annot",
    "pandas": "pandas pd dataframe df frame csv excel hdf",
    "polars": "polars pl lazyframe",
    "arrow": "arrow pyarrow pa recordbatch batches feather ipc",
    "table": "table tables parquet rows records",
    "schema": "schema",
    "xarray": "xarray xr dataset ds datatree dataarray netcdf",
    "torch": "torch pytorch tensor tensors",
    "jax": "jax jnp",
    "numpy": "numpy np ndarray array arrays npy npz",
    "dask": "dask da",
    "lazy": "lazy lazily backed",
    "group": "group tree hierarchy store root",
}
_LINES = {
    ("read", "anndata"): "zarrow.load(store), which returns the AnnData",
    ("read", "pandas"): "zarrow.open(store).to_pandas()",
    ("read", "polars"): "zarrow.open(store).to_polars()",
    ("read", "arrow"): "zarrow.open(store).to_arrow().arrow()",
    ("read", "table"): "zarrow.open(store).to_pandas(), .to_polars() or .to_arrow()",
    ("read", "schema"): "pyarrow.schema(zarrow.open(store).to_arrow())",
    ("read", "xarray"): "zarrow.xarray.open_zarr(store)",
    ("read", "torch"): "zarrow.load(store).torch()",
    ("read", "jax"): "zarrow.load(store).jax()",
    ("read", "numpy"): "zarrow.load(store).numpy()",
    ("read", "dask"): "zarrow.dask.from_zarr(store)",
    ("read", "lazy"): "zarrow.open(store), which reads nothing before an array is indexed",
    ("read", "group"): "zarrow.open_group(store)",
    ("store", "xarray"): "zarrow.xarray.to_zarr(dataset, store)",
    ("store", "dask"): "zarrow.dask.to_zarr(array, store)",
    ("append", "xarray"): 'zarrow.xarray.to_zarr(dataset, store, append_dim="time")',
    ("append", "table"): 'zarrow.open(store, mode="r+").append(table)',
    ("append", "numpy"): 'zarrow.open(store, mode="r+").append(values)',
}


def for_function(name: str) -> str:
    """Return what to type for a function that zarrow lacks; empty if the name is no verb and object."""
    first, _, rest = name.lower().partition("_")
    verb = next((verb for verb, words in _VERBS.items() if first in words.split()), None)
    found = next((kind for kind, words in _OBJECTS.items() if rest in words.split()), None)
    if verb is None or found is None:
        return ""
    if verb == "append" and found in ("pandas", "polars", "arrow"):
        found = "table"
    line = _LINES.get((verb, found)) or ("zarrow.save(store, x)" if verb == "store" else "")
    return f"type {line}" if line else ""
