"""Names of other libraries that zarrow lacks, each with what to type instead.

1. `ARRAY`, `GROUP`, `DECODED`, `DEVICE` (tensors of a GPU), `CATEGORICAL` and `STREAM` cover names of
   objects, `zarrow.hints.familiar_module_names` those of modules, and `zarrow.hints.familiar_options`
   parameters. For other names of NumPy, PyTorch, JAX, pandas, polars and xarray, `zarrow.hints.unknown_names`
   asks these libraries.
2. In a text `{array}`, `{group}` and so on stand for the object of the lookup. A text that begins with
   `nothing:` says why there is nothing to type, and `{name}` stands for the name itself.
"""

from __future__ import annotations

from zarrow.hints import familiar_training
from zarrow.hints.by_name import by_name

_XARRAY = "zarrow.xarray.open_zarr(path)"
_VARIABLE = "xarray.DataArray({array}[...].numpy())"
_STORED = "nothing: a write is stored when its call returns: leave .{name}() out"

_TO_GPU = 'array.read(selection, device="cuda") to read to a GPU, zarrow.gpu.asarray({tensor}) to copy there'
_READ_TO_GPU = '{array}.read(selection, device="cuda")'

# Names on an Array: its features under another name, and names of h5py, xarray and dask.
ARRAY = familiar_training.ARRAY | by_name(
    {
        "{array}[...].numpy()": (
            "A as_numpy as_slice asnumpy data get_image_data pixels toarray todense values"
        ),
        '{array}.attrs["{name}"], or {array}.read(decode="cf"), which decodes': "add_offset scale_factor",
        "{array}[...].numpy().ctypes.data": "as_ptr",
        "{array}[...] = values": "assignValue byteswap copy_ itemset setfield write_direct",
        "{array}[...] = value": "fill fill_",
        "{array}[...] = 0": "zero_",
        "{array}[positions] = values": "put",
        "{array}[...] = numpy.partition({array}[...], k)": "partition",
        _VARIABLE: "to_xarray",
        _VARIABLE + ".{name}": (
            "assign_coords coarsen coords drop_vars groupby hvplot interp reindex resample rolling sel shift "
            "sortby to_dataframe to_dataset to_netcdf weighted"
        ),
        "{array}[...].tolist(), which gives text as str": "asstr",
        "{array}.attrs": "attributes",
        "not {array}.read_only": "writable writeable",
        "nothing: each Array can be read": "readable",
        "{array}.nbytes_stored()": "storage_statistics",
        'group["new"] = {array}': "save_to_disk",
        "nothing: Zarr stores elements in its own chunks": "external",
        "nothing: names are text, and are not turned into characters": (
            "chartostring set_auto_chartostring set_ncstring_attrs"
        ),
        '{array}.read(mask="cf")': "set_always_mask",
        '{array}.attrs["new"] = {array}.attrs.pop("old")': "renameAttribute",
        "cache_bytes= of zarrow.open": "get_var_chunk_cache set_var_chunk_cache",
        "nothing: processes may write at once": "set_collective",
        "zarrow.data.Loader({array}, cache_nbytes=1 << 30)": "cache",
        "{array}[count:]": "skip",
        "len({array})": "len nrows num_rows",
        '"name" in group': "exists",
        "nothing: an Array is not closed": "closed",
        "{array}.dimension_names, or group.multiscales.axes": "axes",
        '{array}["name"], or {array}[["name", "other"]]': "fields",
        'zarrow.data.Loader({array}, batch_size=32, order="sequential"), which gives batch after batch': (
            "batch batches iter_batches"
        ),
        "zarrow.read_many([({array}, selection), ...])": "read_many",
        "{array}.blocks[0, 0], which decodes one chunk": "cdata",
        "{array}.to_dask()": "chunk dask_data delayed get_image_dask_data map_blocks to_dask_array",
        "{array}.nchunks_initialized, which counts them": "chunk_exists",
        '{array}.metadata["chunk_grid"], or {array}.chunks': "chunk_grid",
        "{array}.cdata_shape": "chunk_grid_shape",
        "for place, chunk in {array}.iter_chunks(), or {array}.blocks[i, j]": "chunk_iter",
        "numpy.ndindex({array}.cdata_shape)": "chunk_keys",
        "{array}.chunks": "chunk_shape chunking chunksize read_chunk_sizes",
        "{array}.to_dask().chunks": "chunksizes",
        '{array}.read(decode="cf")': "decode_cf",
        "{array}.store": "chunk_store",
        _STORED: "close commit flush store_metadata sync",
        "nothing: a write is stored when its call returns: leave .{name}(...) out": "with_transaction",
        '{array}.metadata["codecs"], or .filters, .serializer, .compressors': "codec codecs",
        "{array}.compressors": "compression compression_opts compressor fletcher32 quantization",
        "{array}[...]": "compute execute getValue load persist to_owned to_tensor value",
        "zarrow.set_num_threads, and cache_bytes= and limits= of zarrow.open": "config",
        'group["name"] = {array}': "copy_to",
        "numpy.count_nonzero(~numpy.isnan({array}[...]))": "count",
        "{array}[start:stop, start:stop]": "crop",
        _READ_TO_GPU: "cuda gpu to_device",
        "{array}.retrieve_chunk(indices)": "decode_chunk get_chunk read_chunk",
        'del group["name"]': "delete drop",
        'del {array}.attrs["name"]': "delncattr",
        "hashlib.sha256({array}[...].tobytes()).digest()": "digest",
        "{array}.ndim": "dimensionality rank",
        "{array}.to_dask().map_blocks(function), or "
        "zarrow.data.Loader({array}, transform=function) for batches": "map",
        "{array}[...].take(indices), or {array}[:8] for the first ones": "take",
        "{array}[...].repeat(count); each iteration of a zarrow.data.Loader is the next epoch": "repeat",
        "zarrow.data.Loader({array}, rank=rank, world=world)": "shard",
        "{array}.dimension_names": "dimensions dims get_dims label labels",
        "{array}.chunks and {array}.shards": "chunk_layout",
        '{array}.attrs["units"]': "dimension_units",
        "nothing: indices start at 0": "origin",
        "nothing: indices start at 0: leave .{name}[...] out": (
            "translate_backward_by translate_by translate_to"
        ),
        "nothing: Zarr has no virtual arrays": "is_virtual virtual_sources",
        "{array}.dimension_names, and an array of that name beside it": "is_scale make_scale",
        "nothing: an Array is no future: leave .{name}() out, or type {array}[...] for its values": "result",
        "nothing: options are given when an array is opened: leave .{name}(...) out": "with_config",
        "{array}.to_dask().{name}": (
            "argtopk compute_chunk_sizes dask map_overlap numblocks partitions to_backend "
            "to_delayed to_hdf5 to_svg visualize"
        ),
        "{array}[::2, ::2]": "downsample pyramid",
        "{array}.metadata": "encoding spec",
        '{array}.serializer["configuration"]["endian"]': "endian",
        "{array}.blocks[i, j] = {array}.fill_value": "erase_chunk",
        "{array}.append(values)": "extend insert push",
        "zarrow.open({store})": "file open",
        "{parent}": "group parent",
        "{array}.fill_value": "fillvalue get_fill_value",
        "{array}[index]": "get getrow iloc indices read_at",
        "{array}[[1, 0]], or zarrow.read_many([({array}, selection), ...])": "get_batch read_batch",
        '{array}.read(mask="cf").mask': "get_mask",
        "{array}.shape": "domain get_shape",
        "{array}[start:stop]": "get_slice islice retrieve_array_subset slice subset",
        "{array}[:, index]": "getcol",
        "{array}[selection], or await {array}.read_async(selection)": "getitem",
        "await {array}.read_async(selection)": "async_array getitem_async",
        '{array}.attrs["name"]': "getncattr",
        "hashlib.sha256({array}[...].tobytes()).hexdigest()": "hexdigest",
        "for row in {array}": "into_iter iter",
        "{array}.size == 0": "is_empty",
        "nothing: arrays are dense": "is_sparse",
        "{array}[index] with an index for each axis, such as {array}[0, :], or "
        + _VARIABLE
        + ".isel": "isel",
        "nothing: threads and processes may write at once": "lock synchronizer",
        '{array}.attrs["{name}"]': ("crs long_name nodata standard_name units"),
        "{array}[...].max(axis=0)": "max_projection",
        "nothing: every axis can grow, by {array}.resize(shape) and {array}.append(values)": (
            "maxshape unlimited"
        ),
        '{array}.fill_value, or {array}.read(mask="cf") for masked elements': "missing_value",
        "list({array}.attrs)": "ncattrs",
        "numpy.count_nonzero({array}[...])": "nnz",
        "({array}[...] - mean) / std": "normalize",
        "{array}.nchunks": "npartitions",
        "{array}[...], which several threads decode": "par_iter",
        "group.multiscales[0].scale": "physical_pixel_sizes scale",
        "matplotlib's plot({array}[...]), or " + _VARIABLE + ".plot()": "plot",
        "async for place, chunk in {array}.iter_chunks_async(prefetch=8)": "prefetch",
        "{array}.read(selection, out=buffer)": "read_direct read_into",
        "zarrow.copy({array}, target, chunks=...)": "rechunk",
        "{array}.refresh()": "reload resolve",
        'group["new"] = group["old"], then del group["old"]': "rename",
        "{array}[::2, ::2], or skimage.transform.rescale({array}[...].numpy(), scale)": "rescale",
        "{array}[numpy.random.choice(len({array}), count)]": "sample",
        "{array}.filters": "filter_names scaleoffset",
        "{array}.to_arrow()": "scan",
        "{array}.metadata, or pyarrow.schema({array}.to_arrow())": "schema",
        "{array}[selection] = values": "assign set",
        '{array}.read(mask="cf") for masked elements': "set_auto_mask",
        'nothing: {array}[...] gives stored elements; type {array}.read(decode="cf"), or '
        '{array}.read(mask="cf") for masked elements': "set_auto_maskandscale",
        '{array}.read(decode="cf"), which scales': "set_auto_scale",
        "nothing: the fill value is chosen when an array is created": "set_fill_value",
        "{array}[selection] = values, or await {array}.write_async(selection, values)": "setitem",
        "await {array}.write_async(selection, values)": "setitem_async",
        '{array}.attrs["name"] = value': "setncattr setncattr_string",
        "{array}.attrs.update(values)": "setncatts",
        "{array}.shards, or {array}.chunks": "shard_shape write_chunk_sizes",
        "{array}[...].torch().split([2, 1]) for sizes, numpy.split({array}[...], [2]) for positions, or "
        "zarrow.data.Plan({array}).split(0.8, 0.2) for fractions of the samples": "split",
        "{array}[numpy.random.permutation(len({array}))], or zarrow.data.Loader({array}, "
        'batch_size=32, order="shuffle", seed=0) for batches': "shuffle",
        "zarrow.data.Plan({array}).split(0.8, 0.2), or "
        "sklearn.model_selection.train_test_split({array}[...])": "random_split train_test_split",
        "{array}[...].torch(), or .numpy() or .jax()": "set_format with_format",
        '{array}[...].torch(), or {array}.read(device="cuda").torch() on a GPU': "to_torch torch",
        '{array}[...].jax(), or {array}.read(device="cuda").jax() on a GPU, or import zarrow.jax, and '
        "zarrow.jax.make_array({array}, sharding) on several devices": "jax to_jax",
        "dict(zip({array}.dimension_names or (), {array}.shape))": "sizes",
        "numpy.sort({array}[...])": "sort sort_values",
        "numpy.stack([{array}[0], {array}[1]])": "stack",
        "{array}[start:stop] = values": "store_array_subset",
        "{array}.blocks[i, j] = values": "store_chunk write_chunk",
        "{array}.store and {array}.path": ("id kvstore ref store_path url"),
        "{array}[::16, ::16]": "thumbnail",
        _READ_TO_GPU + ", or {array}[...].astype(dtype)": "to",
        "scipy.sparse.coo_matrix({array}[...])": "to_coo tocoo",
        "scipy.sparse.csc_matrix({array}[...])": "to_csc tocsc",
        "scipy.sparse.csr_matrix({array}[...])": "to_csr tocsr",
        "{array}.resize(shape)": "truncate",
        "{array}[...][mask], or numpy.where(mask, {array}[...], other)": "where",
        "{array}.zarr_format": "zarr_version",
    }
)

GROUP = familiar_training.GROUP | by_name(
    {
        '{group}["name"] = x': "add assign",
        "{group}.append(table)": (
            "add_rows append_rows append_table concat extend insert vstack write_batch write_table"
        ),
        '{group}.create_array("name", data=x)': "array",
        "{group}.attrs": "attributes",
        "zarrow.xarray.open_zarr(path).chunk(...)": "chunk",
        "zarrow.open({store})": "file",
        _STORED: "close flush sync",
        "{group}.to_arrow().arrow()": "collect to_pyarrow to_table",
        "{group}.to_arrow().column_names": "column_names",
        "zarrow.load({group}.store)": "compute load to_dict to_memory",
        _XARRAY: "dataset ds to_dataset to_xarray",
        _XARRAY + ".{name}": "coords sel to_array to_dataarray",
        '{group}["name"][index], or ' + _XARRAY + ".isel": "isel",
        "nothing: Zarr has no virtual arrays": "build_virtual_dataset create_virtual_dataset",
        "nothing: a Zarr store has no such property": "libver swmr_mode userblock_size",
        _XARRAY + ".sizes": "dimensions dims sizes",
        '{group}["new"] = {group}["old"]': "copy",
        "{group}.num_rows": "count_rows",
        '{group}.create_array("name", shape=..., dtype=...)': "create",
        '"name" in {group}': "exists is_dir is_file",
        "{group}.keys()": ("columns glob iterdir listdir ls rglob"),
        "zarrow.open({group}.store, path=...)": "from_store open",
        "for name in list({group}.keys()): del {group}[name]": "clear",
        "{group}.arrays()": "leaves",
        "{group}.members(max_depth=None)": "descendants subtree subtree_with_keys",
        'xarray.open_datatree(path, engine="zarrow").{name}': (
            "ancestors filter_like find_common_ancestor isomorphic lineage map_over_datasets match parents "
            "relative_to siblings"
        ),
        '{group}.path == ""': "is_root",
        "{group}.store": ("chunk_store driver filename filepath"),
        '{group}.attrs["{name}"]': "history title",
        '{group}.attrs["new"] = {group}.attrs.pop("old")': "renameAttribute",
        "{group}.create_array with a structured dtype of NumPy": "createCompoundType",
        '{group}["name"].read(mask="cf")': "set_always_mask",
        "nothing: text is stored with dtype=str": "set_auto_chartostring set_ncstring_attrs",
        '{group}.require_group("name")': "setdefault",
        "{group}[count:]": "skip",
        'zarrow.data.Loader({group}["name"], transform=function)': ("set_transform with_transform"),
        "nothing: a write is stored when its call returns; session.commit(message) of icechunk commits": (
            "amend commit rebase transaction"
        ),
        "repository.{name}, of icechunk": (
            "ancestry create_branch create_tag list_branches list_tags lookup_branch readonly_session "
            "writable_session"
        ),
        "{group}.scan_polars().{name}": "collect_async explain sink_csv sink_ipc sink_ndjson sink_parquet",
        'rows = {group}.to_arrow(), and duckdb.sql("from rows").{name}': (
            "create_view distinct fetchall fetchdf fetchmany fetchnumpy fetchone project"
        ),
        "nothing: a group is not closed, leave it out": "closed",
        '{group}["name"].multiscales[0].array': "get_image_data xarray_dask_data",
        "{group}.scan_arrow()": "get_fragments scanner",
        'nothing: leave it out: {group}.create_array("name", shape=..., dtype=..., dimension_names=[...]) '
        "names the dimensions of an array": "createDimension renameDimension",
        '{group}.create_group("name")': ("createGroup group mkdir"),
        '{group}.create_array("name", shape=..., dtype=..., dimension_names=[...])': "createVariable",
        "{group}.create_arrays({path: options, ...})": "create_hierarchy",
        '{group}["name"].read(device="cuda")': "cuda gpu to",
        "{group}.zarr_format": "data_model disk_format file_format",
        "dict({group}.arrays())": "data_vars variables",
        'del {group}["name"]': ("delete drop drop_vars remove rmdir unlink"),
        "{group}.to_pandas().describe()": "describe",
        "{group}.to_pandas(), or {group}.to_polars()": "df",
        "{group}.schema": ("dtypes features"),
        '{group}.create_array("name", shape=array.shape, dtype=array.dtype)': (
            "create_dataset_like empty_like"
        ),
        '{group}["name"].metadata': "encoding",
        '{group}["name"].metadata of an array, {group}.attrs and {group}.zarr_format of a group': "metadata",
        '{group}.to_arrow().arrow().filter(pyarrow.compute.field("name") > 1)': "filter",
        '[a for _, a in {group}.arrays() if a.attrs.get("units") == "K"]': (
            "filter_by_attrs get_variables_by_attributes"
        ),
        '{group}.full("name", array.shape, value, dtype=array.dtype)': "full_like",
        '{group}["name"], or await zarrow.open_async({group}.store, "name")': "getitem",
        'await zarrow.open_async({group}.store, "name")': "getitem_async open_async",
        '{group}["name"][:5]': "head",
        '{group}["name"][index]': "iloc loc regionref",
        "nothing: a group is not closed": "isopen",
        "{group}.to_arrow().arrow().to_pylist()": "iterrows iter_rows itertuples to_pylist",
        '{group}["name"] = other["name"]': "merge",
        "{group}.read_only": "mode",
        '{group}["new"] = {group}["old"], then del {group}["old"]': "move rename renameGroup renameVariable",
        "list({group}.attrs)": "ncattrs",
        '{group}.attrs["name"]': "getncattr",
        '{group}.attrs["name"] = value': "setncattr setncattr_string",
        "{group}.attrs.update(values)": "setncatts",
        'del {group}.attrs["name"]': "delncattr",
        '{group}.ones("name", array.shape, dtype=array.dtype)': "ones_like",
        "{parent}": "parent",
        "matplotlib's plot, or zarrow.xarray.open_zarr(path)": "plot",
        '{group}["name"][...], then del {group}["name"]': "pop popitem",
        'rows = {group}.to_arrow(), and duckdb.sql("select * from rows")': "query sql to_duckdb",
        '{group}["name"].read(selection, out=buffer)': "read_direct",
        '{group}["name"]': "ref",
        "zarrow.save(store, {group})": ("push_to_hub save save_to_disk to_zarr"),
        "{group}.scan_polars(), or {group}.scan_arrow() for pyarrow and DuckDB": "scan",
        '{group}.to_arrow(["name"])': ("remove_columns select select_columns"),
        'nothing: {group}["name"][...] gives stored elements, {group}["name"].read(decode="cf") scales '
        "and masks them": "set_auto_mask set_auto_maskandscale set_auto_scale",
        "nothing: chunks without elements are not stored": "set_fill_off set_fill_on",
        'zarrow.data.Loader({group}["name"], rank=rank, world=world)': "shard",
        'zarrow.data.Loader({group}["name"], batch_size=32, order="shuffle")': "shuffle",
        'zarrow.data.Loader({group}["name"], batch_size=32, order="sequential")': (
            "batch batches iter_batches"
        ),
        'zarrow.data.Plan({group}["name"]).split(0.8, 0.2)': "random_split train_test_split",
        '{group}["name"][...].torch(), or .numpy() or .jax()': "set_format with_format",
        "{group}.store and {group}.path": "store_path",
        "dict({group}.groups())": ("children subgroups"),
        "nothing: threads and processes may write at once": "synchronizer",
        "for batch in {group}.to_arrow(batch_rows=1000)": "to_batches",
        "{group}.to_pandas().to_csv(path)": "to_csv",
        "{group}.to_pandas()": "to_dataframe to_df to_frame",
        "zarrow.xarray.open_zarr(path).to_netcdf(file)": "to_netcdf",
        "pyarrow.RecordBatchReader.from_stream({group}.to_arrow())": "to_reader",
        '{group}["name"] = x, for each name': "update",
        "sum(array.nbytes for _, array in {group}.arrays())": "nbytes",
        "for name, member in {group}.members(max_depth=None)": (
            "visit visit_links visititems visititems_links visitkeys visitvalues walk"
        ),
        "{group}.to_arrow().polars().write_parquet(path)": "write_parquet",
        '{group}.zeros("name", array.shape, dtype=array.dtype)': "zeros_like",
    }
)

# Names on decoded arrays: the library may be missing, and the shortest way is not always through it.
DECODED = by_name(
    {
        "{tensor}.jax().{name}": (
            "addressable_data addressable_shards copy_to_host_async is_fully_addressable is_ready sharding"
        ),
        "{tensor}.arrow().{name}": (
            "buffers combine_chunks dictionary_encode drop_null get_total_buffer_size iterchunks num_chunks "
            "validate"
        ),
        "{tensor}.torch().{name}": "H is_shared layout mH",
        "dask.array.from_array({tensor}).{name}": (
            "chunksize compute_chunk_sizes dask map_overlap numblocks rechunk to_delayed to_hdf5 visualize"
        ),
        "numpy.random.permutation({tensor})": "shuffle",
        "nothing: indices start at 0: leave .{name}[...] out": (
            "translate_backward_by translate_by translate_to"
        ),
        "nothing: {tensor} has .__dlpack__(), which from_dlpack of other libraries takes": "toDlpack",
        "hashlib.sha256({tensor}.tobytes()).hexdigest()": "hexdigest",
        "{tensor} += value": "add_",
        "numpy.append({tensor}, values), or array.append(values) to store them": "append",
        "{tensor}.arrow().to_pandas().apply(...) of one axis, or numpy.vectorize(function)({tensor})": (
            "apply"
        ),
        "x[...] = numpy.vectorize(function)(x)": "apply_",
        "{tensor}.tolist()": "as_py to_list to_pylist",
        "{tensor}.numpy()": "asnumpy get toarray todense values",
        "{tensor}[index] = value, or {tensor}.jax().at": "at",
        "array.attrs, of the Array that was read": "attrs",
        "{tensor}.torch().requires_grad_(), which has gradients": "backward",
        "({tensor} >= low) & ({tensor} <= high)": "between",
        "{tensor}.jax().block_until_ready()": "block_until_ready",
        "{tensor}.astype(bool), or {tensor}.torch().bool()": "bool",
        "{tensor}.astype('u1'), or {tensor}.torch().byte()": "byte",
        "{tensor}.astype(dtype)": "cast",
        "pandas.Categorical({tensor}), which has .categories and .codes": "cat",
        "pandas.Categorical({tensor}).{name}": "categories codes",
        '{tensor}[~numpy.isnan({tensor})], or array.read(mask="cf").compressed() of the Array that was read; '
        "of a masked layout .arrow().drop_null()": "compressed",
        'nothing: no element is missing: leave .filled(...) out, or type array.read(decode="cf"), of the '
        "Array that was read": "filled",
        'nothing: no element is missing; array.read(mask="cf") masks missing values of CF, and '
        "numpy.isnan({tensor}) finds NaN": "mask",
        "numpy.array_split({tensor}, count)": "chunk",
        "array.chunks, of the Array that was read": "chunks",
        "{tensor}.clip(low, high)": "clamp",
        "{tensor}.copy()": "clone",
        "nothing: the values are in memory: leave .{name}() out": "compute load persist read result",
        "nothing: the values are in memory: leave .{name}() out; array[selection] = values stores them": (
            "close commit flush sync"
        ),
        "array[selection] = values to store them, or {tensor}[...] = values in memory": "assign store write",
        "numpy.concatenate([{tensor}, ...])": "concat extend",
        "numpy.ascontiguousarray({tensor})": "contiguous",
        "x[...] = values": "copy_ set",
        "numpy.count_nonzero({tensor})": "count_nonzero",
        "{tensor}[start:stop, start:stop]": "crop",
        _TO_GPU + ", or {tensor}.torch().cuda()": "cuda",
        "{tensor}.numpy().ctypes.data": "data_ptr",
        "nothing: this array has no gradient: leave .detach() out, or type {tensor}.torch()": "detach",
        "{tensor}.device": "devices is_cuda",
        "{tensor}.ndim": "dim",
        "array.dimension_names, of the Array that was read": "dims",
        'array.attrs["{name}"], of the Array that was read': "long_name standard_name units",
        "{tensor}.torch().double(), or {tensor}.astype('f8') for an array of NumPy": "double",
        "numpy.unique({tensor})": "drop_duplicates",
        "{tensor}[~numpy.isnan({tensor})]; of a masked layout .compressed()": "drop_nulls dropna",
        "{tensor}.itemsize": "element_size",
        "{tensor} == other": "eq",
        "numpy.broadcast_to({tensor}, shape), or {tensor}.torch().expand(...)": "expand",
        "{tensor}[None], or numpy.expand_dims({tensor}, axis)": "expand_dims",
        "numpy.nan_to_num({tensor}, nan=value); of a masked layout .filled(value)": "fill_null fillna",
        "{tensor}[mask]": "filter",
        "{tensor}.torch().float(), or {tensor}.astype('f4') for an array of NumPy": "float",
        "{tensor} >= other": "ge",
        _TO_GPU: "gpu to_device",
        "{tensor}.arrow().to_pandas().groupby(...)": "groupby",
        "{tensor} > other": "gt",
        "{tensor}.torch().half(), or {tensor}.astype('f2') for an array of NumPy": "half",
        "{tensor}[:5]": "head",
        "{tensor}[index]": "iloc isel loc sel",
        "numpy.flatnonzero({tensor} == value)": "index",
        "x[index] = values": "index_copy_ index_put_ scatter_",
        "x[index] = value": "index_fill_",
        "{tensor}.torch().int(), or {tensor}.astype('i4') for an array of NumPy": "int",
        "{tensor}.numpy().flags.c_contiguous": "is_contiguous",
        "numpy.isnan({tensor}); of a masked layout .mask": "is_null isna isnull",
        "~numpy.isnan({tensor}); of a masked layout ~{tensor}.mask": "is_valid",
        "{tensor} <= other": "le",
        "len({tensor})": "len",
        "{tensor}.torch().long(), or {tensor}.astype('i8') for an array of NumPy": "long",
        "{tensor} < other": "lt",
        "nothing: arrays in memory have no name": "name",
        "{tensor} != other": "ne",
        "{tensor}.size": "nelement numel",
        "{tensor}.numpy().astype({tensor}.dtype.newbyteorder())": "newbyteorder",
        "numpy.sort({tensor}.flatten())[-5:]": "nlargest",
        "numpy.linalg.norm({tensor})": "norm",
        "({tensor} - {tensor}.mean()) / {tensor}.std()": "normalize",
        "~numpy.isnan({tensor}); of a masked layout ~{tensor}.mask.numpy()": "notna notnull",
        "{tensor}.arrow().null_count": "null_count",
        "len(numpy.unique({tensor}))": "nunique",
        "{tensor}.arrow().to_pandas()": "pandas to_df to_pandas to_series",
        "{tensor}.transpose(...), or {tensor}.torch().permute(...)": "permute",
        "{tensor}.torch().pin_memory()": "pin_memory",
        "matplotlib's plot({tensor}), or {tensor}.arrow().to_pandas().plot()": "plot",
        "{tensor}.torch().requires_grad_()": "requires_grad requires_grad_",
        "skimage.transform.rescale({tensor}.numpy(), scale), or {tensor}[::2, ::2]": "rescale",
        "numpy.resize({tensor}, shape)": "resize",
        _XARRAY + '["name"].{name}': "coarsen interp resample rolling",
        "zarrow.save(store, {tensor})": "save to_zarr",
        "{tensor}.torch().share_memory_()": "share_memory_",
        "matplotlib.pyplot.imshow({tensor})": "show",
        "{tensor}.torch().softmax(axis), or jax.nn.softmax({tensor})": "softmax",
        "numpy.sort({tensor})": "sort_values",
        "{tensor}.torch().split([2, 1]) for sizes, or numpy.split({tensor}, [2]) for positions": "split",
        "numpy.stack([x, y])": "stack",
        "numpy.strings, such as numpy.strings.upper({tensor}.numpy())": "str",
        "{tensor}.strides": "stride",
        "{tensor}.T": "t",
        _TO_GPU + ", or {tensor}.torch().to(...), or {tensor}.astype(dtype)": "to",
        "{tensor}.arrow().to_pandas().to_frame()": "to_frame",
        "{tensor}.polars()": "to_polars",
        "{tensor}.dtype, or {tensor}.astype(dtype)": "type",
        "{tensor}[None], or {tensor}.torch().unsqueeze(axis)": "unsqueeze",
        "numpy.unique({tensor}, return_counts=True)": "value_counts",
        "{tensor}.reshape(shape), or {tensor}.numpy().view(dtype)": "view",
        "{tensor}.reshape(other.shape)": "view_as",
        "{tensor}[mask], or numpy.where(mask, {tensor}, other)": "where",
        "{tensor}.fill(0)": "zero_",
    }
)

# Of text alone.
TEXT = {
    "decode": "nothing: elements are str already",
    "encode": "numpy.strings.encode(x.numpy())",
    "format": "[text.format(value) for text in x.tolist()]",
    "join": '", ".join(x.tolist())',
    "len": "len(x), or numpy.strings.str_len(x.numpy())",
    "split": "[text.split() for text in x.tolist()]",
    "splitlines": "[text.splitlines() for text in x.tolist()]",
}

# Of a tensor of a GPU.
DEVICE = by_name(
    {
        "x.cpu().arrow()": "arrow",
        "x.cpu().numpy()": "asnumpy get to_numpy values",
        "x.torch().requires_grad_(), which has gradients": "backward requires_grad requires_grad_",
        "x.astype('bool')": "bool",
        "x.astype('u1')": "byte",
        "x.astype('bfloat16')": "bfloat16",
        "x.astype('i1')": "char",
        "x.copy()": "clone",
        "numpy.ascontiguousarray(x, like=x)": "contiguous",
        'nothing: the memory is on a GPU; type zarrow.gpu.asarray(x, device="cuda:1") for another one': (
            "cuda gpu"
        ),
        'x.__cuda_array_interface__["data"][0]': "data_ptr",
        "x.torch(), which has no gradient": "detach",
        "x.ndim": "dim",
        "x.astype('f8')": "double",
        "x.itemsize": "element_size",
        "nothing: the values are in the memory of the GPU: leave .{name}() out": (
            "compute load persist read result"
        ),
        "x.torch().expand(shape)": "expand",
        "x.astype('f4')": "float",
        "x.astype('f2')": "half",
        "x.astype('i4')": "int",
        "x.flags.c_contiguous": "is_contiguous",
        "x.device": "is_cuda",
        "x.astype('i8')": "long",
        "x.size": "numel",
        "x.transpose(...)": "permute",
        "x.astype('i2')": "short",
        "x.strides": "stride",
        'zarrow.gpu.asarray(x, device="cuda:1") for another GPU, x.cpu() for the CPU, or x.astype(dtype)': (
            "to"
        ),
        'zarrow.gpu.asarray(x, device="cuda:1") for another GPU, or x.cpu() for the CPU': "to_device",
        "x.cpu().tobytes()": "tobytes",
        "x.cpu().tolist()": "tolist",
        "x.dtype, or x.astype(dtype)": "type",
        "x[None], or x.torch().unsqueeze(axis)": "unsqueeze",
    }
)

CATEGORICAL = by_name(
    {
        "x.codes, x.categories and x.ordered": "cat",
        "x.categories.dtype, or x.arrow().type": "dtype",
        "x[x.codes.numpy() >= 0]": "dropna",
        "x.codes.numpy() < 0": "isna isnull",
        "pandas.Series(x.arrow().to_pandas()).map(...)": "map",
        "x.codes.numpy() >= 0": "notna notnull",
        "x.arrow()": "to_arrow",
        "x.tolist()": "to_list to_pylist",
        "x.arrow().to_pandas()": "to_pandas",
        "x.polars()": "to_polars",
        "x.codes.torch()": "torch",
        "x.categories, or numpy.unique(x.numpy())": "unique",
        "pandas.Series(x.arrow().to_pandas()).value_counts()": "value_counts",
        "x.numpy()": "values",
    }
)

MEMORY = by_name(
    {
        "store.to_dict().{name}()": "copy items keys values",
        "store.to_dict()": "as_dict asdict dict list list_prefix",
        "store.to_dict().get(key)": "get get_sync getitem",
        "list(store.to_dict())": "list_dir listdir",
        "zarrow.open(store)": "group open read",
        "zarrow.save(store, x)": "save set write",
        "key in store.to_dict()": "contains exists",
        "zarrow.create_group(store, overwrite=True)": "clear",
        'del zarrow.open(store)["name"]': "delete delete_dir pop remove",
        "sum(map(len, store.to_dict().values()))": "getsize nbytes size",
        "nothing: memory is given back when the store is gone: leave .{name}() out": "close flush sync",
        "nothing: the store has no path": "path root url",
    }
)

STREAM = by_name(
    {
        "{rows}.arrow().to_pandas().{name}": "T index ndim plot size style values",
        'duckdb.sql("from rows").{name}': (
            "aggregate distinct fetch_arrow_table fetchdf fetchmany fetchnumpy order project"
        ),
        'duckdb.sql("select * from rows"), of the stream in a variable rows': "execute query_arrow sql",
        "nothing: a stream ends with its rows": "close",
        "{rows}.arrow()": "collect read_all to_arrow to_table",
        "{rows}.arrow().column(name)": "column",
        "{rows}.column_names": "columns",
        "{rows}.arrow().to_pandas(), or {rows}.polars()": "df",
        "{rows}.arrow().to_pandas()": "fetch_df read_pandas to_pandas",
        "{rows}.arrow().to_pylist()": "fetchall to_pylist",
        "{rows}.arrow().slice(0, 1).to_pylist()": "fetchone",
        'group.to_arrow(filters=[("name", ">", 1)]), or {rows}.polars().filter(condition)': (
            "filter query where"
        ),
        "{rows}.arrow().to_pylist(), or for batch in {rows}": "iter_rows iterrows itertuples",
        "group.to_arrow(rows=slice(0, 5)).arrow()": "head",
        "{rows}.num_rows": "height",
        "for batch in group.to_arrow(batch_rows=1000)": "iter_batches to_batches",
        "{rows}.polars().lazy()": "lazy",
        "group.to_arrow(rows=slice(0, 5))": "limit slice",
        "group.append(table)": "append concat extend insert vstack",
        "len({rows}.column_names)": "num_columns width",
        "{rows}.polars()": "pl to_polars",
        "pyarrow.RecordBatchReader.from_stream({rows})": "read_next_batch to_reader",
        "{rows}.column_names, or pyarrow.schema({rows})": "schema",
        'group.to_arrow(["name"])': "select",
        "{rows}.arrow().shape": "shape",
        "{rows}.arrow().to_pydict()": "to_dict to_pydict",
        "{rows}.arrow().to_pandas().to_numpy()": "to_numpy",
    }
)
