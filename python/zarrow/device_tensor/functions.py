"""NumPy's functions that make tensors on a GPU; zarr-python and users without PyTorch or CuPy need these.

1. With `like=` a tensor, functions that make arrays make tensors of the same device, as do `numpy.empty_like`
   and its siblings.
2. Other functions are refused, with an error that says what to type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from zarrow import _zarrow
from zarrow._zarrow import DeviceTensor
from zarrow.device_tensor.methods import is_on_device, on_device_of


def answer(tensor: DeviceTensor, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Call the function of this name, or refuse it."""
    name = getattr(function, "__name__", "this function")
    if name in CREATORS:
        # NumPy has taken `like` from the arguments.
        return CREATORS[name](*args, **kwargs, like=tensor)
    if name not in SHAPED:
        raise refused(name)
    return SHAPED[name](*args, **kwargs)


def answer_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Compare by `==` and `!=`, delegated by a NumPy array on the left; refuse other functions."""
    if method == "__call__" and not options and ufunc.__name__ in ("equal", "not_equal"):
        tensor, other = inputs if isinstance(inputs[0], DeviceTensor) else inputs[::-1]
        return tensor == other if ufunc.__name__ == "equal" else tensor != other
    raise refused(ufunc.__name__)


def refused(name: str) -> TypeError:
    """Say what to type for a function that does not run on a GPU."""
    own = f"x.{name}, " if hasattr(DeviceTensor, name) else ""
    return TypeError(
        f"numpy.{name} does not run on a GPU: type {own}.cpu() for a copy on the CPU, or .torch(), .cupy() "
        "or .jax() for a library that computes there"
    )


def refuse_text(dtype: Any) -> None:
    """Refuse elements of no fixed size, which zarr-python would put into a buffer."""
    if getattr(dtype, "kind", "") in ("O", "T"):
        raise TypeError(
            "text and Python objects have no layout on a GPU: read and write them outside zarrow.gpu.enable()"
        )


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    like: Any = None,
) -> Any:
    """Make a tensor of the device of `like` (step 1)."""
    np = _zarrow._import("numpy")
    if dtype is None:
        dtype = a.dtype if hasattr(a, "dtype") else np.asarray(a).dtype
    dtype = np.dtype(dtype)
    refuse_text(dtype)
    # Tensors have the machine's byte order.
    made = on_device_of(like, a, dtype.newbyteorder("="))
    given = made.astype(made.dtype, order or "K", copy=bool(copy))
    if copy is False and (given is not made or not is_on_device(a) or np.dtype(a.dtype) != made.dtype):
        raise ValueError("numpy needs a copy, which copy=False forbids")
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
    """Make a tensor of the device of `like`, a copy by default (step 1)."""
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
            "numpy.full_like makes an array on the CPU, but the value is on a GPU: type value.cpu()"
        )
    shape = a.shape if shape is None else shape
    return full(
        shape, fill_value, a.dtype if dtype is None else dtype, "F" if order == "F" else "C", like=like
    )


def _shaped(value: Any) -> Callable[..., Any]:
    def make(
        prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, **_: Any
    ) -> Any:
        return full_like(prototype, value, dtype, order, shape=shape)

    return make


# Functions that make arrays, with `like=` a tensor (step 1).
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

# Functions that make arrays of the shape of a tensor.
SHAPED: dict[str, Callable[..., Any]] = {
    "empty_like": _shaped(None),
    "full_like": full_like,
    "ones_like": _shaped(1),
    "zeros_like": _shaped(0),
}
