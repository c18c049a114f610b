"""Names on plans and loaders of batches, and names of such classes: see `zarrow.hints.familiar_names`.

`{plan}` stands for the plan of the object.
"""

from __future__ import annotations

from zarrow.hints import familiar_training
from zarrow.hints.by_name import by_name

LOADER = (
    "zarrow.data.Loader(array, batch_size=32), and for PyTorch import zarrow.torch, and "
    'zarrow.torch.DataLoader(array, batch_size=32); several arrays are path, fields=["x", "y"]; batches '
    'are shuffled without order="sequential"'
)

# What to type for a class, by the end of its name.
_CLASSES = {
    "loader": LOADER,
    "iterabledataset": "import zarrow.torch, and zarrow.torch.IterableDataset(array)",
    "iterdatapipe": "import zarrow.torch, and zarrow.torch.IterableDataset(array)",
    "dataset": "import zarrow.torch, and zarrow.torch.Dataset(array)",
    "source": "zarrow.data.RandomAccess(array)",
    "sampler": 'zarrow.data.Plan(array, order="shuffle"), or order="sequential"',
}


def for_class(name: str) -> str:
    """Return what to type for a class that loads batches, such as `ZarrDataLoader`; else empty."""
    found = (text for end, text in _CLASSES.items() if name.lower().endswith(end))
    return f"type {next(found, '')}".removesuffix("type ") if name[:1].isupper() else ""


NAMES = familiar_training.LOADED | by_name(
    {
        'zarrow.data.Plan(array, order="shuffle")': "shuffle shuffle_buffer",
        'zarrow.data.Plan(array, batch_size=32), with order="sequential" for the stored order': (
            "batch batched batches iter_batches"
        ),
        'zarrow.data.Plan(array, last="drop")': "drop_last",
        "nothing: samples of zarrow.torch are tensors, of zarrow.jax arrays of JAX and of zarrow.data arrays "
        "of NumPy: leave .{name}(...) out": "set_format with_format",
        "{plan}.where(mask)": "filter select",
        "{plan}.where(numpy.arange(count) < n), of count samples": "head limit skip take",
        "{plan}.split(0.8, 0.2)": "random_split train_test_split",
        "zarrow.data.Loader({plan}, transform=function)": (
            "collate_fn decode map map_dict set_transform transform with_transform"
        ),
        "zarrow.data.Loader({plan}, memory_nbytes=256 << 20), which reads ahead": (
            "num_workers prefetch prefetch_factor"
        ),
        'zarrow.data.Loader({plan}, device="cuda")': "cuda pin_memory to",
        "zarrow.data.Loader({plan}, cache_nbytes=1 << 30)": "cache persist",
        "zarrow.data.Loader({plan}, rank=rank, world=world)": "shard split_by_node split_by_worker",
        "zarrow.data.Loader({plan}), which starts the next epoch at each iteration": "repeat with_epoch",
        "iter(zarrow.data.Loader({plan}))": "as_numpy_iterator iter",
        "next(iter(zarrow.data.Loader({plan})))": "first get get_batch get_next next sample",
        "import zarrow.torch, and zarrow.torch.DataLoader({plan})": "torch to_torch with_torch",
        "import zarrow.jax, and zarrow.jax.DataLoader({plan})": "jax to_jax",
        "zarrow.torch.Dataset({plan}), which samplers of PyTorch take": "batch_sampler sampler",
        "zarrow.data.Plan([array, other])": "concatenate interleave join zip",
        'zarrow.data.Plan(path, fields=["x", "y"])': "columns fields keys select_columns to_tuple",
        "{plan}.batch_size": "batch_size",
        "{plan}.sources": "arrays sources",
        "{plan}, and len({plan}) for the number of samples": "dataset",
        "len({plan})": "num_batches num_rows num_samples",
        "array[...].{name}(), of the Array that the plan samples": "to_pandas to_polars",
        "nothing: memory is given back when the object is gone: leave .{name}() out": "shutdown stop",
    }
)
