"""Functions and classes of other libraries that take what zarrow opens, each with what to type."""

from __future__ import annotations

from zarrow.hints import familiar_training
from zarrow.hints.by_name import by_name

_XARRAY = "zarrow.xarray.open_zarr(path)"

FUNCTIONS = familiar_training.MODULE | by_name(
    {
        "xarray.{name}, which takes variables of " + _XARRAY: (
            "apply_ufunc align combine_by_coords combine_nested corr infer_freq unify_chunks"
        ),
        "xarray.{name}(...)": "Coordinates DataTree cftime_range",
        _XARRAY + '["name"], or xarray.DataArray(array[...].numpy())': "DataArray",
        _XARRAY + '["name"].load()': "load_dataarray",
        'xarray.open_datatree(path, engine="zarrow")': "load_datatree open_groups",
        "dask.array.{name}, which takes array.to_dask()": (
            "apply_gufunc argtopk blockwise coarsen map_blocks map_overlap reduction to_hdf5 to_npy_stack "
            "topk"
        ),
        "array[...], which is read when the call returns": "compute persist visualize_graph",
        "dask.array.{name}(...), then zarrow.dask.to_zarr(x, store)": (
            "from_delayed from_npy_stack from_tiledb"
        ),
        "anndata.io.{name}(path), then zarrow.save(store, adata)": (
            "read_excel read_hdf read_loom read_mtx read_text read_umi_tools"
        ),
        "zarrow.load(path).{name}(file)": "write_csvs write_h5ad write_loom",
        'zarrow.open(path)["X"].to_scipy()': "load_npz read_elem_lazy sparse_dataset",
        "zarrow.save(store, anndata.AnnData(matrix))": "save_npz",
        'zarrow.data.Loader(path, fields=["X", "obs/label"])': "AnnCollection AnnLoader",
        "zarrow.data.Plan([array, other])": "StackDataset TensorDataset",
        "numpy.{name}(...), then zarrow.save(store, x)": (
            "frombuffer fromfile fromfunction fromiter genfromtxt loadtxt"
        ),
        "zarrow.open(store).read(mmap=True), or "
        'zarrow.open(store, mode="w", shape=..., dtype=...) to write': "memmap",
        "zarrow.save(store, a=x, b=y), which zarrow.load(store) returns as a dict: list(d) for d.files": (
            "savez savez_compressed"
        ),
        "zarrow.save(store, anndata.concat([zarrow.load(path), ...]))": "concat_on_disk",
        "scipy.sparse.{name}(array[...].numpy()), or group.to_scipy() of a stored matrix": (
            "coo_array coo_matrix csc_array csc_matrix csr_array csr_matrix"
        ),
        "pandas.{name}, which takes group.to_pandas()": (
            "crosstab cut factorize get_dummies isna isnull melt merge_asof notna notnull pivot_table qcut"
        ),
        "pandas.{name}(path), then zarrow.save(store, table)": (
            "read_feather read_fwf read_json read_orc read_pickle read_sql read_stata"
        ),
        "polars.{name}(path), then zarrow.save(store, table)": (
            "read_avro read_database read_delta read_ipc read_ndjson"
        ),
        "zarrow.open(store).scan_polars() for a table of Zarr; for other files "
        "polars.{name}(path), then zarrow.save(store, table)": "scan_csv scan_ipc scan_parquet",
        "zarrow.open(path).to_pandas(), or zarrow.save(store, table) to store one": "DataFrame Series",
        "zarrow.open(path).scan_polars()": "LazyFrame",
        "zarrow.open(path).to_arrow().arrow()": "ChunkedArray RecordBatch RecordBatchReader",
        'pandas.read_hdf(path, "key"), then zarrow.save(store, table)': "HDFStore",
        "polars.{name}": "col element exclude lit nth when",
        "pyarrow.compute.{name}": "field",
        "nothing: every axis can grow, leave it out": "UNLIMITED",
        "array.metadata": "Schema",
        "array.dtype": (
            "Datatype check_complex_dtype check_dtype check_enum_dtype check_opaque_dtype check_ref_dtype "
            "check_string_dtype check_vlen_dtype"
        ),
        "dtype=... of zarrow.create_array, with a dtype of NumPy": (
            "complex_compat_dtype enum_dtype opaque_dtype ref_dtype regionref_dtype"
        ),
        "dtype=str of zarrow.create_array": "special_dtype string ustring string_dtype vlen_dtype",
        'nothing: Zarr has no links; group["new"] = group["old"] is a copy': (
            "ExternalLink HardLink Reference RegionReference SoftLink"
        ),
        "nothing: Zarr has no virtual arrays; numpy.concatenate([a[...], b[...]]) reads several": (
            "VirtualLayout VirtualSource overlay virtual_chunked"
        ),
        "h5py.{name}(path)": "is_hdf5",
        "zarrow.open(path)": "Spec TensorStore",
        "nothing: pass a path or a URL instead": "KvStore StorePath",
        "cache_bytes= and limits= of zarrow.open": "Context",
        "nothing: a write is stored when its call returns: leave it out": "Transaction",
        "zarrow.read_many([(array, selection), ...])": "Batch",
        "await array.read_async(selection), or await array.write_async(selection, values)": (
            "Future Promise WriteFutures"
        ),
        "array[...].astype(dtype)": "cast",
        "zarrow.ome.pyramid(array, target), or array[::2, ::2]": "downsample",
        "array[selection], of numbers, slices and arrays": "Dim DimExpression d",
        "array.shape": "IndexDomain IndexTransform",
        "chunks= and shards= of zarrow.create_array": "ChunkLayout",
        "compressors= of zarrow.create_array": "CodecSpec",
        "mode= of zarrow.open": "OpenMode",
        "import zarrow.torch, and zarrow.torch.IterableDataset(plan)": "IterableDataset",
        "import zarrow.torch, and zarrow.torch.collate": "default_collate",
        'zarrow.data.Plan(array, order="shuffle")': "RandomSampler SubsetRandomSampler",
        'zarrow.data.Plan(array, order="sequential")': "SequentialSampler",
        'zarrow.data.Plan(array, batch_size=32, order="sequential"), or order="shuffle"': "BatchSampler",
        "zarrow.data.Loader(plan, rank=rank, world=world)": "DistributedSampler",
        "zarrow.data.Plan(array).split(0.8, 0.2)": "Subset",
        'zarrow.asarray(numpy.array(x, "bool"))': "BoolTensor",
        'zarrow.asarray(numpy.array(x, "f8"))': "DoubleTensor",
        'zarrow.asarray(numpy.array(x, "i4"))': "IntTensor",
        'zarrow.asarray(numpy.array(x, "u1"))': "ByteTensor",
        "jax.{name}(array[...].jax())": "block_until_ready device_get device_put",
        "import zarrow.jax, and zarrow.jax.make_array(array, sharding)": (
            "make_array_from_callback make_array_from_process_local_data"
        ),
        "jax.{name}, which takes array[...].jax()": "grad jit vmap pmap",
        "zarrow.gpu.device_count()": "device_count devices local_devices",
        "fsspec.get_mapper(url), which zarrow.open takes": "FSMap filesystem get_mapper url_to_fs",
        "session.store of icechunk, which zarrow.open takes": "IcechunkStore Repository Session",
        "zarr.storage.{name}(...), which zarrow accepts": "LoggingStore ManagedMemoryStore WrapperStore",
        "torch.{name}, which takes zarrow's arrays": "broadcast_tensors cdist combinations one_hot",
    }
)
