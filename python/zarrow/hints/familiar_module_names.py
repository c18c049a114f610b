"""Module names of other libraries, each with what to type: see `zarrow.hints.familiar_names`."""

from __future__ import annotations

from zarrow.hints.by_name import by_name
from zarrow.hints.familiar_functions import FUNCTIONS
from zarrow.hints.familiar_loading import LOADER

_XARRAY = "zarrow.xarray.open_zarr(path)"
_LOADING = (
    "zarrow.open(store) and zarrow.load(store), which raise an error if a document or a chunk is damaged"
)

MODULE = FUNCTIONS | by_name(
    {
        "zarrow.load(path) for an AnnData, and zarrow.save(path, adata) to store one": "AnnData",
        "zarrow.load(path), which returns the AnnData": "to_adata to_anndata",
        "await zarrow.open_async(store, path), then await array.read_async(selection)": "AsyncArray",
        "await zarrow.open_async(store), then for name, member in group.members() without async, and await "
        "member.read_async(selection) of its arrays": "AsyncGroup",
        'compressors={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1} of zarrow.create_array': (
            "Blosc"
        ),
        "nothing: pass a mapping of keys to bytes instead": (
            "DBMStore KVStore LMDBStore MongoDBStore RedisStore SQLiteStore"
        ),
        LOADER: "batches data_loader dataloader iter_batches iterate iterator loader loaders",
        "import zarrow.torch, and zarrow.torch.DataLoader(array), which shuffles without "
        'order="sequential"': "torch",
        "zarrow.data.Plan(array).split(0.8, 0.2)": "random_split train_test_split",
        _XARRAY: ("date2num open_dataarray open_dataset open_zarr save_mfdataset to_xarray"),
        "nothing: pass a dict instead": "DictStore",
        "nothing: pass the folder's path instead": (
            "DirectoryStore FilesystemStore LocalStore NestedDirectoryStore"
        ),
        "nothing: pass the URL instead, or fsspec.get_mapper(url) for schemes that only fsspec knows": (
            "FSStore"
        ),
        'zarrow.open_group(path, mode="r"), with the modes of h5py as mode=; close() and flush() are left '
        "out": "File",
        'zarrow.asarray(numpy.array(x, "f4"))': "FloatTensor",
        "zarr.storage.FsspecStore(...), which zarrow accepts, or the URL with storage_options": "FsspecStore",
        'compressors={"name": "gzip", "configuration": {"level": 5}} of zarrow.create_array': "GZip",
        "cache_bytes= of zarrow.open": "LRUStoreCache",
        'zarrow.asarray(numpy.array(x, "i8"))': "LongTensor",
        "nothing: zarrow does not read N5": "N5FSStore N5Store",
        "zarr.storage.ObjectStore(...), which zarrow accepts, or the URL with storage_options": "ObjectStore",
        "nothing: threads and processes may write at once: leave synchronizer= out": (
            "ProcessSynchronizer ThreadSynchronizer"
        ),
        'zarrow.open_group(path, mode="r") or mode="w" in place of netCDF4, '
        + _XARRAY
        + " of xarray, or zarrow.xarray.to_zarr(xarray.Dataset(...), store), or import zarrow.torch, and "
        "zarrow.torch.Dataset(array); h5py.Dataset in isinstance is zarrow.Array; of a group, variables are "
        'group["name"], their dimensions .dimension_names, their attributes .attrs["units"], and close() '
        "and sync() are left out": "Dataset",
        "zarrow.open(store)": "Reader dataset open_root open_store parse_store zopen",
        'zarrow.open("s3://bucket/data.zarr"): URLs need no store object': "S3Store",
        "zarrow.MemoryStore()": "TempStore",
        "nothing: pass the zip file's path instead (read-only)": "ZipStore",
        'compressors={"name": "zstd", "configuration": {"level": 5}} of zarrow.create_array': "Zstd",
        "array.append(values), or group.append(table)": "append",
        "zarrow.save(store, numpy.arange(...))": "arange",
        "zarrow.create_array(store, data=x), or zarrow.asarray(x) for memory": "array",
        "zarrow.save(store, x), or zarrow.xarray.to_zarr(dataset, store), or zarrow.dask.to_zarr(x, store)": (
            "to_zarr"
        ),
        "zarrow.open(store), .to_pandas() of it for a table, or zarrow.dask.from_zarr(store)": "from_zarr",
        "zarrow.dask.store(x, array)": "store",
        "zarrow.dask.to_zarr(x, store)": "from_dask",
        "array.to_dask()": "to_dask",
        "zarrow.save(store, a=x, b=y), or zarrow.save(store, values) of a dict": "from_dict",
        'zarrow.save(store, name=file["name"][...]), of a file of h5py': (
            "from_h5 from_h5py from_hdf5 read_h5 read_hdf5"
        ),
        "zarrow.xarray.to_zarr(xarray.open_dataset(file), store)": (
            "from_nc from_netcdf open_netcdf open_rasterio read_netcdf"
        ),
        "zarrow.xarray.open_zarr(path).to_netcdf(file)": "to_netcdf",
        "zarrow.open(path).to_pandas().{name}(file)": "to_csv to_excel to_json",
        "zarrow.open(path).to_polars().write_parquet(file)": "to_parquet",
        "[zarrow.open(path) for path in paths]": "open_files open_many open_multi",
        "pickle.dumps(x)": "dumps",
        "await array.read_async(selection)": "read_async",
        "await array.write_async(selection, values)": "write_async",
        "zarrow.open(store).arrays()": "arrays list_arrays",
        "zarrow.open(store).groups()": "groups list_groups",
        "zarrow.open(store)[:5]": "first head peek",
        "zarrow.open(store)[-5:]": "tail",
        "isinstance(x, zarrow.Array)": "is_array isarray",
        "isinstance(x, zarrow.Group)": "is_group isgroup",
        "isinstance(x, zarrow.Tensor)": "is_tensor",
        "zarrow.data.Loader(array, batch_size=32, transform=function)": (
            "DataPipeline filter map set_transform with_transform"
        ),
        "torch.utils.data.{name}, which takes zarrow.torch.Dataset(plan)": (
            "ChainDataset ConcatDataset Sampler WeightedRandomSampler get_worker_info"
        ),
        "lightning.{name}, with zarrow.torch.DataLoader(plan) as its loaders": (
            "LightningDataModule LightningModule Trainer"
        ),
        'zarrow.data.Loader(array, order="sequential"), or zarrow.data.Loader([array, other], ...) for '
        "tuples": "from_generator from_tensor_slices from_tensors zip",
        'zarrow.data.Plan(array, order="shuffle")': "shuffle",
        "zarrow.data.Loader(plan, memory_nbytes=256 << 20), which reads ahead": "Prefetcher prefetch",
        "zarrow.jobs, or dask.distributed.{name} with array.to_dask()": ("Client LocalCluster map_chunks"),
        "array.to_dask(), or dask.{name}(function)": "delayed",
        "nothing: pass a path, a URL, a zarrow.MemoryStore or a zarrow.CloudStore instead": (
            "BaseStore Store StoreLike"
        ),
        'zarrow.open("gs://bucket/data.zarr"): URLs need no store object': "GCSStore GcsStore GSStore",
        'zarrow.open("az://container/data.zarr"): URLs need no store object': (
            "ABSStore AzureBlobStore AzureStore"
        ),
        'zarrow.open("https://server/data.zarr"): URLs need no store object': "HTTPStore HttpStore",
        "nothing: a write is stored when its call returns: leave {name} out": "commit flush transaction",
        "icechunk.{name}(...), and zarrow.open(session.store) of a session": (
            "Storage local_filesystem_storage s3_storage gcs_storage azure_storage in_memory_storage "
            "VirtualChunkContainer RepositoryConfig"
        ),
        "zarrow.open(url, storage_options=...)": "from_url",
        "zarrow.open(path).multiscales[0].array": "AICSImage BioImage get_image_data",
        "tifffile.{name}(file), then zarrow.save(store, image)": "TiffFile TiffSequence",
        "imageio.v3.{name}(file), then zarrow.save(store, image)": "imiter imopen mimread volread",
        "zarrow.save(store, images)": "TiffWriter get_writer mimsave mimwrite volwrite",
        "zarrow.ome.pyramid(array, target)": "Scaler",
        "zarrow.create_array(store, data=[value], dtype=str)": "stringtochar",
        "group.scan_arrow()": "Scanner",
        "zarrow.asarray(x)": "as_array as_tensor from_jax from_tensor from_torch tensor",
        "nothing: zarrow has one engine": "backends",
        "zarrow.read_many([(array, selection), ...])": "batch",
        "numpy.concatenate([...]), or torch.cat([...])": "cat",
        "numpy.concatenate([...]) for arrays, or anndata.concat, xarray.concat, pandas.concat or "
        "polars.concat for what zarrow.load, zarrow.xarray.open_zarr, .to_pandas() and .to_polars() return": (
            "concat"
        ),
        "numpy.concatenate([...]), which takes zarrow's arrays": "concatenate",
        "zarrow.set_num_threads(count), without `with`; caches and limits are cache_bytes= and limits= of "
        "zarrow.open": "config set_option set_options",
        "rows = zarrow.open(store).to_arrow(), and duckdb.connect(): queries take rows as a table": (
            "connect"
        ),
        "zarrow.consolidate_metadata(store)": "consolidate",
        "zarrow.open, zarrow.save and zarrow.load": "convenience",
        "zarrow.save(store, zarrow.open(other)), which stores version 3": "convert_to_v3",
        'zarrow.copy(group, "new.zarr"), or group["name"] = other_group["name"]': "copy_all copy_store",
        "zarrow.Array and zarrow.Group": "core",
        "zarrow.create_array(store, shape=..., dtype=...), or zarrow.zeros, ones, full, empty": (
            "create zarrcreate zcreate"
        ),
        "zarrow.create_array(store, path, shape=..., dtype=...)": "create_dataset",
        "zarrow.create_group(store, path, attributes=...), then .create_arrays({path: options, ...}) of it": (
            "create_hierarchy"
        ),
        "zarrow.create_group(store, path, attributes=...)": "GroupMetadata",
        "zarrow.create_array(store, path, shape=..., dtype=...), or array.metadata to read them": (
            "ArrayMetadata ArrayV2Metadata ArrayV3Metadata"
        ),
        'zarrow.MemoryStore(), and array.read(selection, device="cuda")': "GpuMemoryStore",
        'array.read(selection, device="cuda"), or zarrow.gpu.is_available()': "cuda",
        'array.read(decode="cf") for an array, or ' + _XARRAY: "decode_cf",
        'array.read(decode="cf"), or xarray.decode_cf(dataset)': "decode_times",
        'del zarrow.open(store)["name"]': "delete remove",
        'array.read(selection, device="cuda")': "device",
        "numpy.dtype, or the name of a Zarr data type": "dtype",
        'zarrow.open(store), which raises NotFoundError, or "name" in group': (
            "array_exists contains contains_array contains_group exists group_exists is_zarr"
        ),
        'zarrow.create_array(store, data=x), or group["name"] = array to keep chunks and codecs': (
            "from_array"
        ),
        "zarrow.asarray(x), or zarrow.save(store, table)": "from_pandas from_polars",
        "dataset.to_zarr(path), or zarrow.save(store, array)": "from_xarray",
        "zarrow.full(shape, value)": "full_array",
        "zarrow.num_threads()": ("get_num_threads get_options"),
        "zarrow.create_group(store), or zarrow.open_group(store)": "group",
        "zarrow.Group, and zarrow.Array": "hierarchy",
        "zarrow.load(store, path)": "imread read_image",
        "zarrow.save(store, image)": "imsave imwrite",
        "matplotlib.pyplot.imshow(array[...])": "imshow plot view",
        "zarrow.open(store).info, or zarrow info PATH in a shell": "info zarrinfo zinfo",
        "zarrow.gpu.is_available()": "is_available",
        "zarrow.open(store).keys()": "keys list",
        "zarrow.load(store)": "load_array load_group loads read_array",
        "zarrow.open(store)[...].torch()": "load_torch",
        "zarrow.open(store).keys(), or zarrow info PATH in a shell": "ls",
        "nothing: nothing is random here": "manual_seed",
        'group["name"] = other["name"], or zarrow.save(store, a=x, b=y)': "merge",
        "zarrow.open(store).metadata of an array, and .attrs": "metadata",
        'group["new"] = group["old"], then del group["old"]': "move rename",
        "nothing: arrays have no gradients": "no_grad",
        'array.read(decode="cf")': "num2date",
        "zarrow.open(store): it uses consolidated metadata if there are any": "open_consolidated",
        "zarrow.open(store).to_pandas()": "open_dataframe read_pandas",
        'xarray.open_datatree(path, engine="zarrow")': "open_datatree",
        'zarrow.open("reference://references.json")': "ReferenceFileSystem open_kerchunk open_reference",
        "zarrow.empty_like(array, store=...)": "open_like",
        'xarray.open_mfdataset(paths, engine="zarrow")': ("MFDataset open_mfdataset"),
        'zarrow.open(store)[:] for its rows, or zarrow.open(store, mode="r+").append(table)': (
            "ParquetDataset ParquetFile open_table"
        ),
        "zarrow.open(store).scan_polars(), or .scan_arrow() for pyarrow and DuckDB": "scan scan_zarr",
        "zarrow.open(url)": "parse_url",
        "zarrow.__version__, numpy.__version__": "print_debug_info show_versions",
        "zarrow.asarray(numpy.random.rand(2, 3))": "rand",
        "zarrow.asarray(numpy.random.randn(2, 3))": "randn",
        "numpy.random, and zarrow.save or zarrow.asarray for its arrays": "random",
        "zarrow.load(store), or zarrow.open(store)[...]": "read zarrread zread",
        "polars.read_csv(path), and zarrow.save(store, table)": "from_csv read_csv",
        'group["name"].read(), or zarrow.load(store, path)': "read_elem",
        "zarrow.load(path) for an AnnData of Zarr, or anndata.read_h5ad(path), which reads HDF5": "read_h5ad",
        "zarrow.open(store).to_pandas() for a table of Zarr; for a file of Parquet "
        "polars.read_parquet(path), and zarrow.save(store, table)": "from_parquet read_parquet",
        "zarrow.open(store).to_arrow().arrow()": "read_table",
        "zarrow.load(store), or zarrow.open(store) with .to_pandas(), .to_polars() and so on": "read_zarr",
        "zarrow.copy(source, target, chunks=...)": "rechunk",
        'del zarrow.open(store)["name"], or shutil.rmtree(path) for a whole folder': "rm rmdir",
        "zarrow.save(store, x)": ("dump save_array save_zarr write write_array write_zarr zarrwrite zwrite"),
        "zarrow.save(store, name=x)": "save_group",
        "zarrow.save(store, a=x, b=y)": "save_many",
        "pyarrow.schema(zarrow.open(store).to_arrow())": "schema",
        'array.read(selection, device="cuda"): a GPU is named where an array is read': "set_default_device",
        "zarrow.set_num_threads(count)": "set_threads",
        "zarrow.open(store).shape": "shape",
        "zarrow.open(store).info, or .tree()": "describe inspect show summary",
        "zarrow.open(store).nbytes": "size",
        "duckdb.sql(...) with rows = group.to_arrow() as a table of that name": "execute query sql",
        "numpy.stack([...]), or zarrow.read_many([...]) to read at once": "stack",
        "zarrow.save(store, table), and zarrow.open(store).to_arrow()": "table",
        "group.to_arrow(), or array.to_arrow()": "to_arrow",
        "array[...].jax()": "to_jax",
        "array[...].numpy()": "to_numpy",
        "group.to_pandas()": "to_dataframe to_df to_pandas",
        "group.to_polars()": "to_polars",
        "array[...].torch()": "to_torch",
        "zarrow.open(store).tree()": "print_tree tree visualize walk",
        _LOADING: "validate",
        "zarrow.__version__": "version",
        "numpy.vstack([...]), which takes zarrow's arrays": "vstack",
        "zarrow.save(store, table)": "write_dataset write_table",
        'group["name"] = x, or zarrow.save(store, name=x)': "write_elem",
        'zarrow.ome.save(store, [image, smaller], axes="cyx")': "write_image write_multiscale",
        "zarrow.open(store).to_arrow().polars().write_parquet(path)": "write_parquet",
    }
)

# Of modules of other libraries, in `import zarrow.name`.
MODULES = by_name(
    {
        "zarrow.open, and so on: functions are in zarrow itself": "synchronous",
        "a path or a URL in place of a store object, or from zarrow import MemoryStore; stores of "
        "zarr.storage work too": "abc memory storage store stores",
        "from zarrow import Array, Group, open, create_array": ("array core creation group zarr"),
        "from zarrow import open, load, save": "convenience reader readers writer writers",
        "import zarrow.errors": "error exc exception exceptions",
        "import zarrow.codecs, or compressors=... of zarrow.create_array": (
            "blosc codec compression compressor compressors filters numcodecs registry zstd"
        ),
        "import numpy, which takes zarrow's arrays": "np numpy",
        "numpy.{name}": "fft linalg ma testing",
        "group.to_pandas()": "dataframe pandas pd table",
        "group.to_polars(), or group.scan_polars()": "pl polars",
        "group.to_arrow()": "arrow ipc parquet pa pyarrow",
        "zarrow.open(path).scan_arrow() in place of a dataset of pyarrow, or import zarrow.data to load "
        "batches": "dataset",
        "zarrow.save(path, tensors), of a dict of arrays, and zarrow.load(path)": (
            "checkpoint checkpoints orbax safetensors serialization"
        ),
        'rows = group.to_arrow(), and duckdb.sql("from rows")': "duckdb sql",
        "import zarrow.torch": "lightning nn pytorch torchdata",
        "import zarrow.data": "batching dataloader dataloaders datasets loader loaders ml training",
        "array[...].numpy(), which tensorflow.constant takes": "tensorflow tf",
        'zarrow.data.Loader(path, fields=["x", "y"]), and model.fit((batch for batch in loader))': "keras",
        "import zarrow.gpu": "cuda cupy cp gds kvikio",
        'zarrow.save(store, name=file["name"][...]), of a file of h5py': "h5 h5py hdf hdf5",
        "zarrow.xarray.to_zarr(xarray.open_dataset(file), store)": "nc netcdf netCDF4",
        "import zarrow.xarray": "backends backend rioxarray xr",
        "import zarrow.dask": "da distributed",
        "import zarrow.jax": "flax jnp",
        "zarrow.load(path), which returns the AnnData": "ad scanpy scverse spatialdata",
        "import zarrow.ome": "bioio imageio images image ngff ome_zarr omezarr tifffile",
        "zarrow.open_async, and array.read_async": "aio asyncio asynchronous sync",
        "zarrow.open(url, storage_options=...)": "azure cloud fs fsspec gcs http obstore remote s3 s3fs",
        "zarrow.open(session.store), of a session of icechunk": "icechunk",
        "zarrow.open, which takes store objects of VirtualiZarr": "kerchunk virtual virtualizarr",
        "zarrow.open(path)": "tensorstore ts",
        "zarrow.set_num_threads, and cache_bytes= and limits= of zarrow.open": "config options settings",
        "array[selection]": "indexers indexing selection",
        "group.attrs and array.attrs": "attributes attrs",
        "array.metadata": "meta metadata",
        "matplotlib.pyplot.imshow(array[...])": "napari plot plotting viz",
        "zarrow info PATH in a shell": "shell tool tools",
        "import zarrow.jobs": "multiprocessing parallel tasks",
    }
)

# Of the modules below it.
_CODEC = (
    'compressors={"name": "blosc", "configuration": {"cname": "zstd", "clevel": 5, "shuffle": "bitshuffle"}} '
    "of zarrow.create_array"
)
_NEW = " of zarrow.create_array"
SUBMODULES = {
    "zarrow.codecs": {
        **by_name(
            {
                _CODEC: "Blosc BloscCodec BloscCname BloscShuffle",
                'compressors={"name": "gzip", "configuration": {"level": 5}}' + _NEW: "GZip GzipCodec",
                'compressors={"name": "zstd", "configuration": {"level": 5}}' + _NEW: "Zstd ZstdCodec",
                'serializer={"name": "bytes", "configuration": {"endian": "little"}}'
                + _NEW: "BytesCodec Endian",
                'compressors=["zstd", "crc32c"]' + _NEW: "Crc32cCodec CRC32C",
                "shards=... of zarrow.create_array": "ShardingCodec ShardingCodecIndexLocation",
                'filters={"name": "transpose", "configuration": {"order": [1, 0]}}' + _NEW: "TransposeCodec",
                "dtype=str of zarrow.create_array": "VLenUTF8 VLenUTF8Codec",
                "dtype=bytes of zarrow.create_array": "VLenBytes VLenBytesCodec",
                "numcodecs.{name}(...) as filters=... or compressors=... of zarrow.create_array": (
                    "Adler32 AsType BZ2 BitRound CRC32 Categorize Delta FixedScaleOffset Fletcher32 LZ4 LZMA "
                    "PackBits Quantize Shuffle Zlib"
                ),
                "the codec itself as compressors=..., which zarrow takes": "get_codec",
                "zarrow.codecs.register(CLASS)": "register_codec",
            }
        ),
    },
    # Functions that zarr-python has in its module of this name.
    "zarrow.api": {"synchronous": "zarrow.open, and so on: functions are in zarrow itself"},
    "zarrow.api.asynchronous": {
        **dict.fromkeys(
            ("open", "open_array", "open_group", "open_consolidated"), "await zarrow.open_async(store, path)"
        ),
        **dict.fromkeys(("AsyncArray", "AsyncGroup"), "await zarrow.open_async(store, path)"),
        **by_name(
            {
                "await asyncio.to_thread(zarrow.{name}, ...)": (
                    "consolidate_metadata copy create_array create_group empty empty_like full full_like "
                    "load ones ones_like save zeros zeros_like"
                ),
                "await asyncio.to_thread(zarrow.create_array, ...)": "array create",
                "await asyncio.to_thread(zarrow.open_group, ...)": "group",
            }
        ),
    },
    "zarrow.data": {
        "Dataset": LOADER,
    },
    "zarrow.dask": {
        "array": "array.to_dask()",
        "from_array": "array.to_dask()",
        "compute": "array[...]",
        **dict.fromkeys(("load", "open", "open_zarr", "read"), "zarrow.dask.from_zarr(store)"),
        **dict.fromkeys(
            "from_parquet read_csv read_dataframe read_parquet read_zarr".split(),
            "zarrow.dask.read_table(path), for a table of Zarr",
        ),
        "from_pandas": "dask.dataframe.from_pandas(frame), and zarrow.dask.to_table(ddf, path)",
        **dict.fromkeys("to_dataframe to_parquet write_table".split(), "zarrow.dask.to_table(ddf, path)"),
    },
    "zarrow.xarray": {
        "DataArray": 'zarrow.xarray.open_zarr(path)["name"]',
        "Dataset": _XARRAY,
        "load_dataset": _XARRAY + ".load()",
        "open_dataarray": 'zarrow.xarray.open_zarr(path)["name"]',
        **dict.fromkeys("from_zarr open open_dataset read read_zarr".split(), _XARRAY),
        "open_datatree": 'xarray.open_datatree(path, engine="zarrow")',
        "open_mfdataset": 'xarray.open_mfdataset(paths, engine="zarrow")',
        **dict.fromkeys(("save", "write"), "zarrow.xarray.to_zarr(dataset, store)"),
        "disable": "enabled = zarrow.xarray.enable(), and enabled.disable()",
    },
    "zarrow.ome": by_name(
        {
            "zarrow.open(path).multiscales[0].array, and .multiscales for axes, scales and labels": (
                "from_zarr imread load open open_image read read_image reader Reader"
            ),
            'zarrow.ome.save(path, [image, smaller], axes="cyx")': (
                "imsave imwrite save_image to_zarr write writer Writer"
            ),
        }
    ),
    "zarrow.stream": by_name(
        {
            "zarrow.stream.follow(array)": "read reader Reader subscribe",
            "zarrow.stream.Writer(array)": "append write writer",
        }
    ),
    "zarrow.torch": {
        **dict.fromkeys(
            ("Loader", "dataloader"),
            'zarrow.torch.DataLoader(array), which shuffles without order="sequential"',
        ),
        **dict.fromkeys(("default_collate", "collate_fn"), "zarrow.torch.collate"),
        **dict.fromkeys(("StackDataset", "TensorDataset"), "zarrow.torch.Dataset([array, other])"),
        "random_split": "zarrow.torch.Plan(array).split(0.8, 0.2)",
        "load": "zarrow.load(path), with tensors of a group by name",
        "save": "zarrow.save(path, tensors), with the path first",
        "save_file": 'zarrow.save(path, tensors), and zarrow.files.export_file(path, "x.safetensors")',
        "load_file": 'zarrow.load(path), or zarrow.files.import_file("x.safetensors", path)',
        **dict.fromkeys(("Tensor", "as_tensor", "from_numpy", "tensor"), "array[...].torch()"),
    },
    "zarrow.jax": {
        "Loader": 'zarrow.jax.DataLoader(array), which shuffles without order="sequential"',
        **dict.fromkeys(("array", "asarray", "device_put"), "array[...].jax()"),
        **dict.fromkeys(
            "from_zarr load open read restore".split(),
            "zarrow.jax.make_array(zarrow.open(path), sharding), or zarrow.load(path) for memory of the CPU",
        ),
    },
    "zarrow.gpu": {
        "to_device": 'zarrow.gpu.asarray(x), or array.read(selection, device="cuda")',
        "cuda": 'array.read(selection, device="cuda")',
        "device": 'array.read(selection, device="cuda")',
        "empty_cache": "zarrow.gpu.release_memory()",
        **dict.fromkeys(("array", "to_gpu"), "zarrow.gpu.asarray(x)"),
        "disable": "enabled = zarrow.gpu.enable(), and enabled.disable()",
    },
    "zarrow.zarr_python": {
        **dict.fromkeys(
            ("Pipeline", "ZarrowCodecPipeline", "BatchedCodecPipeline"), "zarrow.zarr_python.enable()"
        ),
        "disable": "enabled = zarrow.zarr_python.enable(), and enabled.disable()",
    },
    "zarrow.errors": {
        "ArrayNotFoundError": "zarrow.NotFoundError",
        "BoundsCheckError": "zarrow.IndexingError",
        **dict.fromkeys(
            ("ContainsArrayError", "ContainsGroupError"),
            "zarrow.NodeExistsError where a node is created, and zarrow.NodeTypeError where one is opened",
        ),
        "FSPathExistNotDir": "zarrow.StoreError",
        "GroupNotFoundError": "zarrow.NotFoundError",
        "MetadataValidationError": "zarrow.MetadataError",
        "NodeNotFoundError": "zarrow.NotFoundError",
        "PathNotFoundError": "zarrow.NotFoundError",
    },
}
