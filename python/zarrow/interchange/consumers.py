"""Protocols of other libraries that accept zarrow's arrays as arguments, besides the memory protocols.

1. PyTorch's functions call `__torch_function__` of an argument: `torch.stack([tensor, tensor])` computes with
   `.torch()` of each, which shares the memory.
2. JAX's `asarray` and `stack` ask for `__jax_array__`: `.jax()` where memory can be shared, else what JAX
   makes of the NumPy form. Its other functions (`jnp.sin`, `jax.jit`, `device_put`, `grad`) take trees, and
   look types up in a table: a Tensor is registered as a tree with one leaf, the same jax.Array.
3. `torch.utils.data.default_collate` looks types up in a table too. Our types are registered when zarrow
   is imported if the library already is, else by the first read after the library's import.
4. An Array in the store is read whole by DLPack and by `__arrow_array__`; a Group is the table of its arrays.
   To NumPy, and to pandas which asks by NumPy's protocol, it would be the list of its names: that is refused,
   also of a group that stands for an array, because its length is that of its names.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, NoReturn

from zarrow import _zarrow
from zarrow.arrays.methods import add_method


def add_to_classes() -> None:
    """Give the classes their protocols."""
    # PyTorch asks the type for it.
    setattr(_zarrow.DecodedArray, "__torch_function__", classmethod(_torch_function))  # noqa: B010
    add_method(_zarrow.DecodedArray, "__jax_array__", _jax_array)
    add_method(_zarrow.Array, "__dlpack__", _dlpack)
    add_method(_zarrow.Array, "__dlpack_device__", _dlpack_device)
    add_method(_zarrow.Array, "__arrow_array__", _arrow_array)
    add_method(_zarrow.Group, "__arrow_c_stream__", _arrow_stream)
    add_method(_zarrow.Group, "__array__", _no_array)
    _add_to_collate()
    _add_to_pytrees()


def _torch_function(cls: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Call a function of PyTorch with the `.torch()` of each decoded array (step 1)."""
    _add_to_collate()
    return function(*_torch_form(args), **_torch_form(kwargs or {}))


def _torch_form(value: Any) -> Any:
    if isinstance(value, _zarrow.DecodedArray):
        return value.torch()  # type: ignore[attr-defined]
    if isinstance(value, list | tuple):
        return type(value)(map(_torch_form, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: _torch_form(item) for key, item in value.items()}
    return value


def _jax_array(self: Any) -> Any:
    """Return a jax.Array, which shares the memory if JAX can (step 2)."""
    from zarrow.errors import ExchangeError

    try:
        return self.jax()
    except ExchangeError as error:
        if error.kind == "masked":
            raise
        return _zarrow._import("jax").numpy.asarray(self.numpy())


def _add_to_pytrees() -> bool:
    """Have JAX see a Tensor as a tree of one jax.Array; whether JAX is there, and does (step 2)."""
    register = getattr(sys.modules.get("jax.tree_util"), "register_pytree_node", None)
    if register is None:
        return False
    with contextlib.suppress(ValueError):  # Another thread was first.
        register(_zarrow.Tensor, lambda tensor: ((_leaf(tensor),), None), lambda _, leaves: leaves[0])
    return True


def _leaf(tensor: Any) -> Any:
    """Return a jax.Array of the tensor, or of a type that JAX has none for its NumPy form."""
    try:
        return _jax_array(tensor)
    except TypeError:
        return tensor.numpy()


def _add_to_collate() -> bool:
    """Have `default_collate` know the layouts; whether PyTorch's loaders are there, and do (step 3)."""
    collate = sys.modules.get("torch.utils.data._utils.collate")
    table = getattr(collate, "default_collate_fn_map", None)
    if table is None:
        return False
    table.setdefault(_zarrow.DecodedArray, _collate)
    return True


def _collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Stack a batch of decoded arrays to one torch.Tensor, or list its strings (step 3)."""
    torch = sys.modules["torch"]
    if isinstance(batch[0], _zarrow.Variable | _zarrow.MaskedVariable):
        return [item.tolist() for item in batch]
    return torch.stack([item.torch() for item in batch])


def _dlpack(self: Any, **options: Any) -> Any:
    """Read the array, and hand it over by DLPack (step 4)."""
    return self[...].__dlpack__(**options)


def _dlpack_device(self: Any) -> tuple[int, int]:
    """DLPack: the device as (type, number); (1, 0) is the CPU."""
    return (1, 0)


def _arrow_array(self: Any, type: Any = None) -> Any:
    """Read the array, and give a pyarrow.Array of it (step 4)."""
    array = self[...].arrow()
    return array if type is None else array.cast(type)


def _arrow_stream(self: Any, requested_schema: Any = None) -> Any:
    """Arrow: the arrays of the group as a table, as `to_arrow` gives it, in a capsule (step 4)."""
    return self.to_arrow().__arrow_c_stream__(requested_schema)


# What reads the groups that are no table.
_OF_ARRAY = "a Group that stands for an array is read first: type group.read()"
_READERS = {
    "anndata": "a Group of an AnnData is not an array: zarrow.load(path) reads the AnnData",
    "categorical": _OF_ARRAY,
    "nullable": _OF_ARRAY,
    "sparse": (
        "a Group of a sparse matrix is not an array: group.read() reads the matrix of SciPy, and "
        "group.read().toarray() all of its elements"
    ),
}


def _no_array(self: Any, dtype: Any = None, copy: Any = None) -> NoReturn:
    """Refuse, with a TypeError that says how to read arrays of the group (step 4)."""
    from zarrow.hints.kinds_of_groups import kind_of

    raise TypeError(
        _READERS.get(kind_of(self))
        or 'a Group is several arrays: group["name"][...] reads one, zarrow.load(store) all, and '
        "group.to_pandas() the arrays of one length as a table"
    )
