"""NumPy's functions on tensors of a GPU, as far as they run there.

1. Each is a function here of the same name and arguments. Others are refused, with an error that names
   `.cpu()`.
2. With `like=` a tensor, NumPy's functions that make arrays make tensors of the same device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zarrow import _zarrow
from zarrow._zarrow import DeviceTensor
from zarrow.device_tensor.comparison import array_equal
from zarrow.device_tensor.methods import is_on_device, on_device_of


def answer(tensor: DeviceTensor, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call the function of this name, which NumPy would call because of `tensor` (step 1)."""
    name = getattr(function, "__name__", "this function")
    if name in CREATORS:
        # NumPy has taken `like` from the arguments.
        return CREATORS[name](*args, **kwargs, like=tensor)
    if name not in FUNCTIONS:
        raise refused(name)
    return FUNCTIONS[name](*args, **kwargs)


def answer_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Compare by `==` and `!=`, which an array of NumPy on the left leaves to it; refuse other functions."""
    if method == "__call__" and not options and ufunc.__name__ in ("equal", "not_equal"):
        tensor, other = inputs if isinstance(inputs[0], DeviceTensor) else inputs[::-1]
        return tensor == other if ufunc.__name__ == "equal" else tensor != other
    raise refused(ufunc.__name__)


def refused(name: str) -> TypeError:
    """Say what to type for a function that does not run on a GPU."""
    return TypeError(
        f"numpy.{name} does not run on a GPU: type .cpu() for a copy on the CPU, or .torch(), .cupy() or "
        ".jax() for a library that computes there"
    )


def refuse_text(dtype: Any) -> None:
    """Refuse elements of no fixed size, which zarr-python would put into a buffer."""
    if getattr(dtype, "kind", "") in ("O", "T"):
        raise TypeError(
            "text and Python objects have no layout on a GPU: read and write them outside zarrow.gpu.enable()"
        )


def _of_device(values: Sequence[Any]) -> DeviceTensor:
    return next(value for value in values if isinstance(value, DeviceTensor))


def _axis(axis: int, count: int) -> int:
    """Return the axis counted from 0; refuse an axis outside of `count` axes."""
    if not -count <= axis < count:
        raise _zarrow._import("numpy").exceptions.AxisError(axis, count)
    return axis + count if axis < 0 else axis


def _arrays(values: Sequence[Any]) -> list[Any]:
    """Make lists and scalars arrays."""
    np = _zarrow._import("numpy")
    return [value if hasattr(value, "dtype") else np.asarray(value) for value in values]


def concatenate(
    arrays: Sequence[Any],
    /,
    axis: int | None = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: str = "same_kind",
) -> Any:
    """Join arrays along an axis."""
    np = _zarrow._import("numpy")
    if out is not None:
        raise TypeError("out= is for the CPU: give numpy.concatenate no out for tensors on a GPU")
    like = _of_device(arrays)
    arrays = _arrays(arrays)
    common = (
        np.dtype(dtype) if dtype is not None else np.result_type(*(np.dtype(item.dtype) for item in arrays))
    )
    for item in arrays:
        if not np.can_cast(np.dtype(item.dtype), common, casting):
            raise TypeError(f"cannot cast {item.dtype} to {common} with casting={casting!r}")
    parts = [on_device_of(like, item, common) for item in arrays]
    if axis is None:
        parts, axis = [part.reshape(-1) for part in parts], 0
    axis = _axis(axis, parts[0].ndim)
    shape = list(parts[0].shape)
    for part in parts[1:]:
        if part.ndim != len(shape) or any(
            part.shape[other] != shape[other] for other in range(len(shape)) if other != axis
        ):
            raise ValueError(f"cannot join shapes {[part.shape for part in parts]} along axis {axis}")
    shape[axis] = sum(part.shape[axis] for part in parts)
    joined, start = DeviceTensor._empty(shape, common, like.device), 0
    for part in parts:
        stop = start + part.shape[axis]
        if part.size:
            joined[(*[slice(None)] * axis, slice(start, stop))]._assign(part)
        start = stop
    return joined


def stack(arrays: Sequence[Any], axis: int = 0, **options: Any) -> Any:
    """Join arrays along a new axis."""
    like = _of_device(arrays)
    parts = [on_device_of(like, item, item.dtype) for item in _arrays(arrays)]
    axis = _axis(axis, parts[0].ndim + 1)
    return concatenate([part[(*[slice(None)] * axis, None)] for part in parts], axis, **options)


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Make a tensor of the device of `like` (step 2)."""
    np = _zarrow._import("numpy")
    if dtype is None:
        dtype = a.dtype if hasattr(a, "dtype") else np.asarray(a).dtype
    dtype = np.dtype(dtype)
    refuse_text(dtype)
    # Tensors have the machine's byte order.
    made = on_device_of(like, a, dtype.newbyteorder("="))
    given = made.astype(made.dtype, order or "K", copy=bool(copy))
    if copy is False and (given is not made or not is_on_device(a) or np.dtype(a.dtype) != made.dtype):
        raise ValueError("numpy would have to copy, and copy=False says not to")
    return given


def array(
    object: Any,  # NumPy's name
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
    **_: Any,
) -> Any:
    """Make a tensor of the device of `like`, a copy by default (step 2)."""
    made = asarray(object, dtype, order, copy=copy, like=like)
    return made.reshape((1,) * (ndmin - made.ndim) + tuple(made.shape)) if ndmin > made.ndim else made


def _filled(value: Any) -> Callable[..., Any]:
    def make(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
        return full(shape, value, float if dtype is None else dtype, order, like=like)

    return make


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """Make a tensor of one value; without values for None."""
    np = _zarrow._import("numpy")
    extents = [shape] if hasattr(shape, "__index__") else list(shape)
    dtype = np.dtype(dtype) if dtype is not None else np.asarray(fill_value).dtype
    made = DeviceTensor._empty(extents, dtype, like.device, order == "F")
    if fill_value is not None:
        made.fill(fill_value)
    return made


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    **_: Any,
) -> Any:
    """Make a tensor of one value with shape and type of another."""
    like = a if isinstance(a, DeviceTensor) else None
    if like is None:
        raise TypeError(
            "numpy.full_like makes an array of the CPU, and its value is on a GPU: type .cpu() first"
        )
    shape = a.shape if shape is None else shape
    return full(
        shape, fill_value, a.dtype if dtype is None else dtype, "F" if order == "F" else "C", like=like
    )


def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write values to a tensor."""
    np = _zarrow._import("numpy")
    if where is not True or not isinstance(dst, DeviceTensor):
        raise TypeError("numpy.copyto writes to a GPU without where=: type tensor[mask] = values")
    # Scalars of Python are as narrow as they can be.
    kinds = {bool: "?", int: "u1", float: "f2", complex: "c8"}
    dtype = np.dtype(kinds[type(src)]) if type(src) in kinds else np.dtype(_arrays([src])[0].dtype)
    if not np.can_cast(dtype, dst.dtype, casting):
        given = getattr(src, "dtype", type(src).__name__)
        raise TypeError(f"cannot cast {given} to {dst.dtype} with casting={casting!r}")
    dst[...] = src


def array_equiv(a1: Any, a2: Any) -> bool:
    """Return whether arrays are equal after they are broadcast."""
    tensor, other = (a1, a2) if isinstance(a1, DeviceTensor) else (a2, a1)
    return bool((tensor == other).all())


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    tensor, other = (a1, a2) if isinstance(a1, DeviceTensor) else (a2, a1)
    return array_equal(tensor, other, equal_nan)


def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Return a view of another shape that repeats elements."""
    extents = [shape] if hasattr(shape, "__index__") else list(shape)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"cannot broadcast to a negative extent: {shape}")
    return array._broadcast_to(extents)


def broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    """Return views of one shape."""
    np = _zarrow._import("numpy")
    like = _of_device(arrays)
    tensors = [
        item if isinstance(item, DeviceTensor) else DeviceTensor._of(item, like.device) for item in arrays
    ]
    shape = np.broadcast_shapes(*(item.shape for item in tensors))
    return tuple(item._broadcast_to(shape) for item in tensors)


def _whole(name: str) -> Callable[..., Any]:
    """Make numpy.all or numpy.any over all elements; reductions along an axis are refused."""

    def function(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Any:
        no_value = _zarrow._import("numpy")._NoValue
        if axis is not None or out is not None or not (keepdims is False or keepdims is no_value):
            raise refused(f"{name} with axis=, out= or keepdims=")
        if where is not True and where is not no_value:
            raise refused(f"{name} with where=")
        return getattr(a, name)()

    return function


def expand_dims(a: Any, axis: int) -> Any:
    """Return a view with one axis more."""
    axis = _axis(axis, a.ndim + 1)
    return a[(*[slice(None)] * axis, None)]


# Functions that make arrays, with `like=` a tensor (step 2).
CREATORS: dict[str, Callable[..., Any]] = {
    "array": array,
    "asanyarray": asarray,
    "asarray": asarray,
    "ascontiguousarray": lambda a, dtype=None, *, like: asarray(a, dtype, "C", like=like),
    "empty": _filled(None),
    "full": full,
    "ones": _filled(1),
    "zeros": _filled(0),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": _whole("all"),
    "any": _whole("any"),
    "array_equal": _array_equal,
    "array_equiv": array_equiv,
    "broadcast_arrays": broadcast_arrays,
    "broadcast_to": broadcast_to,
    "concatenate": concatenate,
    "copy": lambda a, order="K", subok=False: a.copy(order),
    "copyto": copyto,
    "empty_like": lambda prototype, dtype=None, order="K", subok=True, shape=None, **_: full_like(
        prototype, None, dtype, order, shape=shape
    ),
    "expand_dims": expand_dims,
    "full_like": full_like,
    "ndim": lambda a: a.ndim,
    "ones_like": lambda a, dtype=None, order="K", subok=True, shape=None, **_: full_like(
        a, 1, dtype, order, shape=shape
    ),
    "ravel": lambda a, order="C": a.ravel(order),
    "reshape": lambda a, /, shape, order="C", *, copy=None: a.reshape(shape, order=order, copy=copy),
    "shape": lambda a: a.shape,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "squeeze": lambda a, axis=None: a.squeeze(axis),
    "stack": stack,
    "transpose": lambda a, axes=None: a.transpose(axes),
    "zeros_like": lambda a, dtype=None, order="K", subok=True, shape=None, **_: full_like(
        a, 0, dtype, order, shape=shape
    ),
}
