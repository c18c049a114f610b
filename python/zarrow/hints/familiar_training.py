"""Names of Hugging Face's datasets, of `tf.data` and of checkpoints: see `zarrow.hints.familiar_names`."""

from __future__ import annotations

from zarrow.hints.by_name import by_name

_TENSORFLOW = "tensorflow.data.Dataset.from_tensor_slices"

MODULE = by_name(
    {
        "zarrow.save(path, tensors), of a dict of arrays, which may contain dicts": (
            "save_checkpoint save_file save_model save_params save_pretrained save_pytree save_safetensors "
            "save_state_dict save_weights"
        ),
        "zarrow.load(path), which returns the dict that zarrow.save(path, tensors) stored": (
            "from_pretrained load_checkpoint load_file load_model load_params load_pytree load_safetensors "
            "load_state_dict load_weights restore restore_checkpoint safe_open"
        ),
        "zarrow.save(path, tensors), of a dict of arrays, and zarrow.load(path)": (
            "AsyncCheckpointer CheckpointManager Checkpoint Checkpointer ModelCheckpoint PyTreeCheckpointer "
            "StandardCheckpointer"
        ),
        "zarrow.open(path) with .to_pandas(), .to_polars() or .to_arrow() of a table, or import "
        'zarrow.torch, and zarrow.torch.Dataset(path, fields=["x", "y"])': "load_from_disk",
        "zarrow.xarray.open_zarr(path), or zarrow.open(path) for a table, or for training import "
        'zarrow.torch, and zarrow.torch.Dataset(path, fields=["x", "y"])': "load_dataset",
        "zarrow.save(path, table), or zarrow.save(path, x=x, y=y) for arrays": "save_to_disk",
        "torch.utils.data.ConcatDataset([zarrow.torch.Dataset(path), ...])": "concatenate_datasets",
        "zarrow.data.Plan(array).split(0.8, 0.2), which returns a plan for each part": "DatasetDict",
        "dtype=... of zarrow.create_array": "Features FixedLenFeature Value",
        "nothing: threads of zarrow.data.Loader read ahead, leave it out": "AUTOTUNE",
        "zarrow.create_array(store, shape=..., dtype=..., shards=...), then array[start:stop] = values": (
            "ArrowWriter FileWriter MDSWriter ParquetWriter ShardWriter TFRecordWriter TarWriter"
        ),
    }
)

ARRAY = by_name(
    {
        _TENSORFLOW + "({array}[...].numpy())": "to_tensorflow to_tf to_tf_dataset",
        "for row in {array}": "as_numpy_iterator flat_map unbatch",
        "len({array})": "cardinality",
        "{array}.shape[1:] and {array}.dtype": "element_spec features",
        "enumerate({array})": "enumerate",
        "zarrow.data.Plan([{array}, other])": "zip",
        "zarrow.data.Windows({array}, 6)": "window",
        "zarrow.data.Loader({array}, batch_size=32)": "padded_batch rebatch",
        "zarrow.data.Loader({array}, transform=function)": "set_transform with_transform",
        "import zarrow.torch, and zarrow.torch.IterableDataset({array})": "to_iterable_dataset",
        "zarrow.save(store, {array})": "push_to_hub",
        "nothing: leave .{name}() out": "reset_format",
        "numpy.concatenate([{array}[...], values], axis=1)": "add_column",
        "{array}.append([value])": "add_item",
    }
)

GROUP = by_name(
    {
        _TENSORFLOW + '({group}["name"][...].numpy())': "to_tensorflow to_tf to_tf_dataset",
        '{group}["name"] = values': "add_column",
        '{group}["new"] = {group}["old"], then del {group}["old"]': "rename_column rename_columns",
        'numpy.unique({group}["name"])': "unique",
        'zarrow.data.Windows({group}["name"], 6)': "window",
        'zarrow.data.Plan({group}, fields=["x", "y"])': "zip",
        "nothing: leave .{name}() out": "reset_format",
    }
)

TABLE = by_name(
    {
        _TENSORFLOW + "(dict({group}.to_pandas()))": "to_tensorflow to_tf to_tf_dataset",
        '{group}.to_pandas().astype({"name": dtype})': "cast_column",
        'import zarrow.torch, and zarrow.torch.IterableDataset({group}, fields=["x", "y"])': (
            "to_iterable_dataset"
        ),
        "{group}.to_pandas().sample(frac=1, random_state=0) for rows, or "
        'zarrow.data.Loader({group}, fields=["x", "y"]) for shuffled batches': "shuffle",
        "{group}.scan_polars().{name}": (
            "collect_batches first inspect last map_batches sink_batches sink_delta"
        ),
        "{group}.schema": "features",
        "{group}.to_arrow().arrow().to_pylist()": "as_numpy_iterator",
    }
)

# Of a zarrow.Table.
ROWS = by_name(
    {
        _TENSORFLOW + "(dict({table}.to_pandas()))": "to_tensorflow to_tf to_tf_dataset",
        "sklearn.model_selection.train_test_split({table}.to_pandas()), or "
        'zarrow.data.Plan({table}.group, fields=["x", "y"]).split(0.8, 0.2)': "random_split train_test_split",
        "{table}.to_pandas().sample(frac=1, random_state=0)": "shuffle",
        "{table}.to_pandas(), .to_polars() or .to_arrow()": "set_format with_format",
        "nothing: leave .{name}() out": "reset_format",
        '{table}[["name"]]': "remove_columns select_columns",
        '{table}.to_pandas().rename(columns={"old": "new"})': "rename_column",
        '{table}.to_pandas().astype({"name": dtype})': "cast_column",
        "{table}[count:]": "skip",
        "{table}.to_pandas().iloc[rank::world]": "shard",
        "for batch in {table}.to_arrow(batch_rows=1000)": "batch iter",
        "zarrow.save(path, {table})": "push_to_hub save_to_disk to_zarr",
        "{table}.schema": "features",
        "zarrow.data.Loader({table}.group, transform=function)": "set_transform with_transform",
        'import zarrow.torch, and zarrow.torch.IterableDataset({table}.group, fields=["x", "y"])': (
            "to_iterable_dataset"
        ),
        "{table}.to_arrow().arrow().to_pylist()": "as_numpy_iterator",
        "{table}.scan_polars().{name}": (
            "cache collect_async collect_batches explain first inspect last map_batches remote show_graph "
            "sink_csv sink_delta sink_ipc sink_ndjson sink_parquet"
        ),
    }
)

# Of plans, loaders and datasets for training.
LOADED = by_name(
    {
        "{plan}.split(0.8, 0.2)": "split",
        "enumerate(zarrow.data.Loader({plan}))": "enumerate",
        "len({plan})": "cardinality",
        "zarrow.data.Plan(array, batch_size=32)": "padded_batch rebatch",
        "zarrow.data.Windows(array, 6)": "window",
        "zarrow.data.Loader({plan}, transform=function)": "apply",
        "import zarrow.torch, and zarrow.torch.IterableDataset({plan})": "to_iterable_dataset",
        "nothing: samples have the types of the stored arrays: leave .{name}() out": "reset_format",
        "group.{name}, of the group that is read": "column_names to_dict",
        "{plan}.sources": "features element_spec",
        'zarrow.data.Plan(array, order="sequential")': "sort",
        "for batch in zarrow.data.Loader({plan})": "unbatch flat_map",
        "tensorflow.data.Dataset.from_generator(lambda: iter(zarrow.data.Loader({plan})), "
        "output_signature=...)": "to_tensorflow to_tf to_tf_dataset",
    }
)
