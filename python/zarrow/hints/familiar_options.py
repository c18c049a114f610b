"""Parameters of other libraries, each with what to type: see `zarrow.hints.familiar_names`."""

from __future__ import annotations

from zarrow.hints.by_name import by_name

_XARRAY = "zarrow.xarray.open_zarr(path)"

# Parameters of a new array.
OPTIONS = by_name(
    {
        'storage_options={"{name}": ...}': (
            "account_key account_name anon aws_access_key_id aws_secret_access_key client_kwargs "
            "endpoint endpoint_url profile project region requester_pays sas_token secret "
            "skip_signature token use_ssl"
        ),
        'attributes={"add_offset": ...}, which array.read(decode="cf") applies': "add_offset",
        'the path as the second argument, as zarrow.open(store, "array")': "array_path dataset variable",
        "attributes=...": "attrs",
        'zarrow.open(store, mode="r+").append(table), for more rows of a table': "append",
        "dimension_names=...": "axes axis_names dim_names dimensions dims",
        "nothing: zarrow has one engine, leave it out": "backend engine",
        "nothing: objects of Python are not stored, leave it out": "allow_pickle fix_imports pickle_protocol",
        "batch_rows=...": "batch_size",
        "chunks=...": "block_size chunk_shape chunk_size chunksize chunksizes tile tiles",
        "nothing: attributes are cached when the array is opened": "cache_attrs",
        "nothing: metadata are cached when the array is opened": "cache_metadata",
        "nothing: chunks and metadata are in the same store": "chunk_store",
        'compressors={"name": "zstd", "configuration": {"level": 5}}': "clevel level",
        "compressors=...": "codec compression",
        'zarrow.open(store).to_pandas(["name"]), .to_polars or .to_arrow for some of the columns': (
            "columns names"
        ),
        "nothing: leave it out, or type zarrow.open(store), which reads nothing before an array is indexed": (
            "backed lazy"
        ),
        "progress=True": "log",
        'compressors={"name": "gzip", "configuration": {"level": 5}}': "complevel zlib",
        'the path as the second argument, as zarrow.open(store, "group/array")': "component",
        'compressors={"name": "gzip", "configuration": {"level": 9}}': "compression_opts",
        "nothing: consolidated metadata are used where the store has them": "consolidated use_consolidated",
        "nothing: an array has no coordinates, store them as arrays beside it": "coords",
        'array.read(decode="cf")': "decode_cf decode_times",
        _XARRAY: (
            "chunked_array_type combine concat_characters concat_dim create_default_indexes data_vars "
            "decode_coords decode_timedelta drop_variables from_array_kwargs inline_array "
            "overwrite_encoded_chunks parallel preprocess use_cftime"
        ),
        'zarrow.create_array(store, shape=..., dtype=...), or mode="a" of zarrow.open': "create",
        "overwrite=True of zarrow.create_array": "delete_existing",
        'mode="r+" of zarrow.open': "open_mode write",
        'mode="r" of zarrow.open': "read",
        "nothing: an existing array is opened without it, leave it out": "open",
        "cache_bytes= and limits= of zarrow.open": "context rdcc_nbytes",
        "nothing: a write is stored when its call returns": "transaction",
        "nothing: array.refresh() reads the metadata anew": (
            "assume_cached_metadata assume_metadata recheck_cached recheck_cached_data "
            "recheck_cached_metadata"
        ),
        "zarrow.read_many([(array, selection), ...])": "batch",
        "nothing: the path or the URL of the store is the first argument": (
            "driver filesystem kvstore spec url"
        ),
        "shape=... and dtype=...": "domain schema",
        "chunks=... and shards=...": "chunk_layout",
        'attributes={"units": ...}, or one text per axis': "dimension_units",
        "nothing: a Zarr store has no such option, leave it out": (
            "fs_strategy libver lock locking rdcc_nslots rdcc_w0 swmr userblock_size"
        ),
        "nothing: leave it out: order=... is an option of zarrow.create_array, and write_empty_chunks=... "
        "of Array.write": "config",
        "nothing: values are stored when the call returns": "compute return_stored",
        "fill_value=...": "default fill fillvalue missing_value nodata",
        'nothing: leave it out for the CPU, or type array.read(selection, device="cuda")': "device",
        'chunk_key_encoding={"name": "v2", "separator": "/"}': "dimension_separator",
        "dtype=..., chunks=..., compressors=... of zarrow.create_array": "encoding",
        "overwrite=True to replace an existing array, or Group.require_array": "exist_ok",
        'compressors=["zstd", "crc32c"]': "fletcher32",
        "zarr_format=...": "format version zarr_version",
        'the path as the second argument, as zarrow.open(store, "group")': "group",
        "zarrow.create_array(store, data=..., overwrite=True)": "if_exists",
        "nothing: leave it out: the index of a table is a column, unless it counts the rows "
        "(.reset_index(drop=True))": ("index"),
        'storage_options={"key": ...}, or the path of a node as the second argument': "key",
        "nothing: arrays are read to the CPU, .torch().to(device) copies them": "map_location",
        'array.read(mask="cf")': "mask",
        'array.read(decode="cf"), or array.read(mask="cf") for masked elements': "mask_and_scale",
        "nothing: leave it out: every axis can grow, by Array.resize and Array.append": "max_shape maxshape",
        'array.read(selection, device="cuda")': "meta_array",
        "zarrow.open(store).read(mmap=True)": "mmap mmap_mode",
        'attributes={"ome": {"omero": {"channels": [{"label": ..., "color": ...}]}}} of zarrow.ome.save': (
            "channel_colors channel_names channels"
        ),
        "scale=... of zarrow.ome.save": "physical_pixel_sizes pixel_size pixel_sizes spacing voxel_size",
        "nothing: zarrow runs no stored code, leave it out": "weights_only",
        "nothing: leave it out: a group is loaded as a dict": "item target",
        "overwrite=True, or zarrow.open(store, mode=...)": "mode",
        "zarrow.set_num_threads(count)": "num_threads threads",
        "nothing: text is stored as dtype=str, bytes as dtype=bytes": "object_codec",
        "zarrow.open(store, mode='r') to read": "read_only",
        "zarrow.create_array(store, data=..., chunks=...)": "row_group_size",
        'attributes={"scale_factor": ...}, which array.read(decode="cf") applies': "scale_factor",
        'filters=[{"name": "scale_offset", "configuration": {"scale": ..., "offset": ...}}]': "scaleoffset",
        "shards=...": "shard_shape shard_size sharding",
        'compressors={"name": "blosc", "configuration": {"shuffle": "shuffle"}}': "shuffle",
        "zarrow.CloudStore(url, storage_options) as the store": "storage_options",
        "nothing: threads and processes may write at once, leave it out": "synchronizer",
        "nothing: members are in the order of their names": "track_order",
        "nothing: no times are stored": "track_times",
        'attributes={"units": ...}': "units",
        'zarrow.open(store)["name"] for each, or zarrow.open(store).to_arrow(["name"])': (
            "arrays fields keys variables"
        ),
        "array[...].torch(), .jax() or .numpy()": (
            "as_ as_format framework library output_format return_type"
        ),
        "write_empty_chunks of Array.write": "write_empty_chunks",
        "nothing: an array has the version of its group": "zarr_format",
    }
)

# Parameters of other libraries for compiled functions, with hints.
_SELECTION = "a selection, such as array.read(slice(0, 5)), or array[0:5]"
_READ = by_name(
    {
        "zarrow.read_many([(array, selection), ...])": "batch_size",
        'the name of a field, as array.read("name")': "columns fields",
        _SELECTION: "count index indices key limit rows slice slices start stop",
        'mask="cf", or mask=value': "masked",
    }
)
_ROWS = by_name(
    {
        "batch_rows=...": "batch_size chunk_size chunksize max_chunksize",
        'rows.arrow().filter(pyarrow.compute.field("name") > 1)': "filter",
        "rows=slice(0, 5)": "limit n_rows nrows",
        'columns=["name"]': "names usecols",
        "rows.arrow().cast(schema)": "schema",
    }
)
_TABLE = {
    **_ROWS,
    **by_name(
        {
            'filters=[("name", ">", 1)]': "condition filter predicate query where",
            "nothing: the index is a column, leave it out": "index index_col",
        }
    ),
}
CALLS = {
    "Array.append": {"dim": "axis=...", "append_dim": "axis=..."},
    "Array.read": _READ,
    "Array.resize": {
        "exclusive_max": "array.resize(shape)",
        "refcheck": "nothing: leave it out",
        "axis": "array.resize((new, *array.shape[1:]))",
    },
    "Array.to_arrow": _ROWS,
    "Array.write": {"mode": "nothing: leave it out", "dtype": "values.astype(dtype) first"},
    "load": {"mode": "nothing: load only reads: leave it out"},
    "Group.arrays": dict.fromkeys(("recurse", "recursive"), "group.members(max_depth=None)"),
    "Group.create_group": {"attrs": "attributes=...", "exist_ok": "group.require_group(name)"},
    "Group.to_arrow": _TABLE,
    "Group.to_pandas": {
        **_TABLE,
        **dict.fromkeys(("index", "index_col"), 'group.to_pandas().set_index("name")'),
        **dict.fromkeys(
            ("batch_rows", "batch_size", "chunksize", "chunk_size"), "group.to_arrow(batch_rows=1000)"
        ),
        **dict.fromkeys(("dtype", "dtype_backend"), "group.to_pandas().convert_dtypes()"),
    },
    "Group.tree": {"expand": "level=...", "depth": "level=...", "max_depth": "level=..."},
    "Indexer.read": _READ,
    "asarray": {"device": "zarrow.gpu.asarray(x)", "order": "numpy.asarray(x, order=...)"},
    "read_many": {
        "dtype": "zarrow.read_many(items).astype(dtype)",
        "axis": "nothing: arrays are stacked along a new first axis",
    },
}

# Parameters of other libraries' data sets and loaders, each with that of a class of `zarrow.data`.
LOADING = by_name(
    {
        'order="shuffle", or order="sequential" for the stored order': "shuffle",
        'last="drop"': "drop_last drop_remainder",
        "seed=0": "generator rng worker_seed",
        "window_nbytes=64 << 20": "buffer_size shuffle_buffer_size",
        "nothing: threads of zarrow.data.Loader read ahead, leave it out; processes are "
        "zarrow.torch.DataLoader(plan, num_workers=2)": (
            "max_workers multiprocessing_context num_parallel_calls num_workers persistent_workers "
            "worker_count worker_init_fn workers"
        ),
        "memory_nbytes=256 << 20": "num_prefetch prefetch prefetch_factor",
        "transform=function": "collate_fn map_fn target_transform transforms",
        "rank=rank, world=world": "num_replicas num_shards shard_id world_size",
        'nothing: leave it out, or type device="cuda", which copies batches beside the work': (
            "pin_memory pin_memory_device"
        ),
        'on_bad="skip"': "handler ignore_errors on_error",
        "zarrow.torch.Dataset(plan), which samplers of PyTorch take": "batch_sampler sampler",
        "import zarrow.torch, and zarrow.torch.DataLoader(array); zarrow.jax has the same": (
            "as_ as_format format framework output_format output_type return_type"
        ),
        "nothing: read errors are raised at once, leave it out": "timeout",
        "nothing: a batch is read in the order of the plan, leave it out": "in_order",
        "zarrow.data.Plan(path).split(0.8, 0.2), or leave it out for all samples": "split",
        "nothing: samples are read when they are asked for, leave it out": (
            "cache_dir keep_in_memory revision streaming trust_remote_code"
        ),
        "nothing: transform= receives whole batches, leave it out": (
            "batched load_from_cache_file num_proc with_indices"
        ),
        "zarrow.data.Windows(array, 6)": "sequence_length timesteps window window_size",
        "zarrow.data.Crops(array, (64, 64), 1000), for each array": (
            "crop_size num_samples patch_size roi_size"
        ),
    }
)
