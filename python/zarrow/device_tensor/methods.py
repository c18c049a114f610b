"""Methods of `zarrow.gpu.Tensor` that only combine compiled operations.

1. A scalar or a host array first becomes a tensor on the device, of the type that is needed.
2. Only explicit methods copy to the CPU: `cpu`, `item`.
3. Operators that compute are refused with an error that names libraries for it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

from zarrow import _zarrow
from zarrow._zarrow import DeviceTensor, _help
from zarrow.arrays import swaps
from zarrow.arrays.arithmetic import BINARY, UNARY
from zarrow.errors import DeviceError, ExchangeError, ShapeError, UnsupportedError
from zarrow.hints.calling_line import warn

ORDERS = ("C", "F", "A", "K")
ORDERED = ("lt", "le", "gt", "ge")
# Symbols of the operators.
SYMBOLS = {
    "add": "+",
    "and": "&",
    "floordiv": "//",
    "ge": ">=",
    "gt": ">",
    "invert": "~",
    "le": "<=",
    "lshift": "<<",
    "lt": "<",
    "matmul": "@",
    "mod": "%",
    "mul": "*",
    "neg": "-",
    "or": "|",
    "pos": "+",
    "pow": "**",
    "rshift": ">>",
    "sub": "-",
    "truediv": "/",
    "xor": "^",
}


def add_to_class() -> None:
    """Give the class its methods."""
    methods: dict[str, Callable[..., Any]] = {
        "__setitem__": _setitem,
        "__delitem__": _delitem,
        "__eq__": _eq,
        "__ne__": _ne,
        "__bool__": lambda self: bool(self.item()),
        "__int__": lambda self: int(self.item()),
        "__float__": lambda self: float(self.item()),
        "__copy__": lambda self: self.copy(),
        "__deepcopy__": _deepcopy,
        "__array__": _array,
        "__array_function__": _array_function,
        "__getattr__": _getattr,
        "__array_ufunc__": _array_ufunc,
        "all": _all,
        "astype": astype,
        "copy": copy,
        "cupy": cupy,
        "fill": fill,
        "item": item,
        "jax": jax,
        "ravel": ravel,
        "reshape": reshape,
        "squeeze": squeeze,
        "torch": torch,
        "transpose": transpose,
        "view": view,
    }
    for name, function in methods.items():
        # The class is called Tensor, but the stubs use its name in the module.
        function.__name__, function.__qualname__ = name, f"Tensor.{name}"
        function.__doc__ = _help(f"DeviceTensor.{name}") or function.__doc__
        setattr(DeviceTensor, name, function)
    for name, get in (("T", _reversed), ("flags", _flags)):
        setattr(DeviceTensor, name, property(get, doc=_help(f"DeviceTensor.{name}")))
    for name in (*BINARY, *ORDERED):
        setattr(DeviceTensor, f"__{name}__", _refused_binary(name))
    for name in BINARY:
        setattr(DeviceTensor, f"__r{name}__", _refused_binary(name))
    for name in UNARY:
        setattr(DeviceTensor, f"__{name}__", _refused_unary(name))
    setattr(DeviceTensor, "__hash__", None)  # noqa: B010  # for mypy: what compares by elements has none


def on_device_of(tensor: DeviceTensor, value: Any, dtype: Any = None) -> DeviceTensor:
    """Return a value as a tensor of the same device and of this type, that of the tensor by default (step 1).

    A scalar takes no copy from the host: it fills one element.
    """
    np = _zarrow._import("numpy")
    dtype = tensor.dtype if dtype is None else dtype
    if _is_scalar(value):
        return scalar(tensor, value, dtype)
    if not is_on_device(value):
        array = element(value, dtype) if isinstance(value, list | tuple | range) else np.asarray(value)
        if array.ndim == 0:
            return scalar(tensor, array[()], dtype)
        value = array if array.dtype == dtype else _as_type(array, dtype)
    moved = DeviceTensor._of(value, tensor.device)
    return moved if moved.dtype == dtype else cast(moved, dtype)


def cast(tensor: Any, dtype: Any) -> Any:
    """Convert the elements; refuse casts between units of time, and from other types than integers to times.

    Complex numbers become real with NumPy's warning.
    """
    np = _zarrow._import("numpy")
    try:
        wanted = np.dtype(dtype)
    except TypeError:  # such as "bfloat16", which NumPy does not know
        wanted = None
    kinds = (tensor.dtype.kind, "V" if wanted is None else wanted.kind)
    if wanted != tensor.dtype and (
        all(kind in "mM" for kind in kinds)
        or (any(kind in "mM" for kind in kinds) and not any(kind in "iu" for kind in kinds))
    ):
        raise UnsupportedError(
            f"casting {tensor.dtype} to {dtype} runs on the CPU only: type .cpu() for a copy there"
        )
    if kinds[0] == "c" and (kinds[1] in "iuf" or str(dtype) == "bfloat16"):
        _warn_of_imaginary_parts(np)
    return tensor._astype(dtype)


def element(value: Any, dtype: Any) -> Any:
    """Return a value as an array of this type. A Python number that does not fit is an error, as in NumPy."""
    np = _zarrow._import("numpy")
    dtype = np.dtype(dtype)
    if isinstance(value, np.generic) or hasattr(value, "dtype"):
        return _as_type(np.asarray(value), dtype)
    return np.array(value, dtype)


def scalar(tensor: DeviceTensor, value: Any, dtype: Any) -> DeviceTensor:
    """Return a tensor without axes of this value."""
    made = DeviceTensor._empty((), dtype, tensor.device)
    made._fill(element(value, dtype).tobytes())
    return made


def _as_type(array: Any, dtype: Any) -> Any:
    """Cast an array of the host. The warning that NumPy has for complex values names the caller's line."""
    np = _zarrow._import("numpy")
    if array.dtype.kind == "c" and dtype.kind in "iuf":
        _warn_of_imaginary_parts(np)
        array = array.real
    return array.astype(dtype)


def _warn_of_imaginary_parts(np: Any) -> None:
    message = "Casting complex values to real discards the imaginary part"
    warn(message, np.exceptions.ComplexWarning)


def _is_scalar(value: Any) -> bool:
    np = _zarrow._import("numpy")
    return isinstance(value, int | float | complex | bool | str | bytes | np.generic)


def is_on_device(value: Any) -> bool:
    """Return whether the memory of an array is on a GPU."""
    return DeviceTensor._is_on_device(value)


def is_f_contiguous(tensor: Any) -> bool:
    """Return whether elements are contiguous in Fortran order."""
    distance = tensor.itemsize
    for extent, stride in zip(tensor.shape, tensor.strides, strict=True):
        if extent != 1 and stride != distance:
            return bool(tensor.size == 0)
        distance *= extent
    return True


def is_c_contiguous(tensor: Any) -> bool:
    """Return whether elements are contiguous in C order."""
    distance = tensor.itemsize
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if extent != 1 and stride != distance:
            return bool(tensor.size == 0)
        distance *= extent
    return True


def _is_column_major(tensor: Any, order: str | None) -> bool:
    """Return whether this order is Fortran's; "A" and "K" follow the tensor's layout."""
    if order not in (*ORDERS, None):
        raise ValueError(f"order is {order!r}, expected one of {', '.join(map(repr, ORDERS))}")
    if order in ("A", "K"):
        return is_f_contiguous(tensor) and not is_c_contiguous(tensor)
    return order == "F"


class Flags(SimpleNamespace):
    """How elements lie, by attribute and by NumPy's keys: `flags["C_CONTIGUOUS"]`, `flags["C"]`."""

    def __getitem__(self, key: str, /) -> bool:
        shortened = {name[0].upper(): name for name in vars(self)}
        return bool(vars(self)[shortened.get(key, key.lower())])


def _flags(self: Any) -> Flags:
    return Flags(
        c_contiguous=is_c_contiguous(self),
        f_contiguous=is_f_contiguous(self),
        writeable=not self.readonly,
        owndata=False,
    )


def _reversed(self: Any) -> Any:
    return self.transpose()


def _integers(arguments: Sequence[Any]) -> list[int]:
    """Read `f(*axes)` and `f(axes)`."""
    if len(arguments) == 1 and not hasattr(arguments[0], "__index__"):
        arguments = arguments[0]
    return [operator.index(item) for item in arguments]


def reshape(self: Any, *shape: Any, order: str | None = "C", copy: bool | None = None) -> Any:
    """Return another shape."""
    extents = _integers(shape)
    if extents.count(-1) == 1:
        known = 1
        for extent in extents:
            known *= extent if extent != -1 else 1
        if known > 0 and self.size % known == 0:
            extents[extents.index(-1)] = self.size // known
    if _is_column_major(self, order):
        return self.transpose().reshape(*reversed(extents), copy=copy).transpose()
    if copy:
        return self._copy(False)._reshape(extents)
    try:
        return self._reshape(extents)
    except ExchangeError as error:
        if error.kind != "needs_copy" or copy is False:
            raise
    return _side_by_side(self)._reshape(extents)


def _side_by_side(tensor: Any) -> Any:
    """Copy elements in C order, on the same device or host."""
    return copy(tensor)


def transpose(self: Any, *axes: Any) -> Any:
    """Return the axes in another order."""
    if not axes or axes == (None,):
        return self._transpose(range(self.ndim)[::-1])
    order = [axis + self.ndim if axis < 0 else axis for axis in _integers(axes)]
    if sorted(order) != list(range(self.ndim)):
        raise ShapeError(f"axes {axes} are not a permutation of {self.ndim} axes")
    return self._transpose(order)


def squeeze(self: Any, axis: Any = None) -> Any:
    """Leave out axes of one element."""
    if axis is None:
        return self._reshape([extent for extent in self.shape if extent != 1])
    left_out = {item + self.ndim if item < 0 else item for item in _integers((axis,))}
    for item in left_out:
        if not 0 <= item < self.ndim or self.shape[item] != 1:
            raise ShapeError(f"axis {item} of shape {self.shape} does not have the extent 1")
    return self._reshape([extent for item, extent in enumerate(self.shape) if item not in left_out])


def ravel(self: Any, order: str = "C") -> Any:
    """Return all elements on one axis, contiguous as in NumPy."""
    _check_keeps_order(self, order)
    flat = reshape(self, -1 if self.size else 0, order=order)
    return flat if is_c_contiguous(flat) else copy(flat)


def _check_keeps_order(tensor: Any, order: str | None) -> None:
    """Refuse order "K" for elements in neither C nor Fortran order."""
    if order == "K" and tensor.ndim > 1 and not (is_c_contiguous(tensor) or is_f_contiguous(tensor)):
        raise UnsupportedError(
            "order='K' of elements in neither C nor F order runs on the CPU only: type .cpu(), or order='C'"
        )


def view(self: Any, dtype: Any, *shape: Any) -> Any:
    """Return the memory as another type. PyTorch's `view`, of a shape, is refused.

    No tensor is non-native-endian. Elements that are still on the host become an array of NumPy; those on the
    device are copied with their bytes swapped while zarr-python uses these buffers, and refused otherwise.
    """
    extents = dtype if isinstance(dtype, list | tuple) else (dtype, *shape)
    if shape or (extents and all(isinstance(extent, int) for extent in extents)):
        shown = ", ".join(map(str, extents))
        raise TypeError(f"view takes a type, .view(dtype): type .reshape({shown}) for another shape")
    on_host = self._on_host()
    if on_host is None:
        native = _native(dtype)
        if native is not None and _is_used_by_zarr_python():
            return byte_swapped(self._reinterpret(native))
        return self._reinterpret(dtype)
    array = on_host.numpy().view(dtype)
    return DeviceTensor._staged(array, self.device) if array.dtype.isnative else array


def _native(dtype: Any) -> Any:
    """Return the native-endian dtype of a non-native one, else None."""
    np = _zarrow._import("numpy")
    return dtype.newbyteorder("=") if isinstance(dtype, np.dtype) and not dtype.isnative else None


def _is_used_by_zarr_python() -> bool:
    enabling = sys.modules.get("zarrow.gpu.enabling")
    return enabling is not None and bool(enabling.is_enabled())


def byte_swapped(tensor: Any) -> Any:
    """Copy elements with swapped bytes; the parts of a complex number are swapped separately."""
    if tensor.dtype.kind not in "iufcmM":
        raise UnsupportedError(
            f"non-native-endian elements of {tensor.dtype} are supported on the CPU only: read them without "
            "zarrow.gpu's buffers"
        )
    words = 2 if tensor.dtype.kind == "c" else 1
    # The view of bytes requires contiguous elements, along one axis.
    flat = tensor.ravel()
    flat = flat.view("uint8").reshape(-1 if tensor.size else 0, words, tensor.dtype.itemsize // words)
    return flat[:, :, ::-1].copy().reshape(-1 if tensor.size else 0).view(tensor.dtype).reshape(tensor.shape)


def astype(self: Any, dtype: Any, order: str = "K", *, copy: bool = True) -> Any:
    """Convert the elements."""
    column_major = _is_column_major(self, order)
    if not copy and _is_of(self, dtype) and (order in ("A", "K") or _lies(self, column_major)):
        return self
    on_host = self._on_host()
    if on_host is not None and _is_of(self, dtype):
        turned = on_host.numpy().astype(self.dtype, order="F" if column_major else "C")
        return DeviceTensor._staged(turned, self.device)
    converted = cast(self, dtype)
    return converted._copy(True) if column_major else converted


def _is_of(tensor: Any, dtype: Any) -> bool:
    np = _zarrow._import("numpy")
    try:
        return bool(np.dtype(dtype) == tensor.dtype)
    except TypeError:  # such as "bfloat16", which NumPy does not know
        return bool(str(dtype) == tensor.dtype.name)


def _lies(tensor: Any, column_major: bool) -> bool:
    return is_f_contiguous(tensor) if column_major else is_c_contiguous(tensor)


def copy(self: Any, order: str = "C") -> Any:
    """Copy the elements; elements still on the host are copied there."""
    column_major = _is_column_major(self, order)
    on_host = self._on_host()
    if on_host is None:
        return self._copy(column_major)
    return DeviceTensor._staged(on_host.numpy().copy("F" if column_major else "C"), self.device)


def fill(self: Any, value: Any) -> None:
    """Set each element."""
    swaps.forget()
    self._fill(element(value, self.dtype).tobytes())


def _all(self: Any) -> bool:
    return bool(self._all())


def item(self: Any) -> Any:
    """Return the one element."""
    if self.size != 1:
        raise ValueError(
            f"a tensor of {self.size} elements is not a single value: use .cpu().item(0) for one element, "
            ".cpu().tolist() for all, or .all() to test them"
        )
    return self.cpu().reshape(()).item()


def torch(self: Any, *, device: Any = None, dtype: Any = None) -> Any:
    """Hand the memory to PyTorch, which copies it to a device or casts it where asked."""
    if self.readonly:
        message = "this memory is read-only, and PyTorch has no read-only tensors: call .copy() first"
        raise ExchangeError(message, kind="read_only")
    tensor = _zarrow._import("torch").from_dlpack(self)
    return tensor if device is None and dtype is None else tensor.to(device=device, dtype=dtype)


def cupy(self: Any) -> Any:
    """Hand the memory to CuPy."""
    try:
        library = _zarrow._import("cupy")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        message = "this needs CuPy, which is not installed: pip install cupy-cuda13x (or cupy-cuda12x)"
        raise ModuleNotFoundError(message, name="cupy") from None
    return library.from_dlpack(self)


def jax(self: Any) -> Any:
    """Hand the memory to JAX."""
    # JAX requires elements without gaps, and some versions read transposed tensors wrongly.
    if not is_c_contiguous(self):
        raise ExchangeError("JAX cannot share a tensor with gaps: call .copy() first", kind="needs_copy")
    wide = (self.dtype.kind in "iuf" and self.dtype.itemsize == 8) or self.dtype.itemsize == 16
    if wide and not _zarrow._import("jax").config.jax_enable_x64:
        raise ExchangeError(
            f"JAX would narrow {self.dtype} to 32 bits: call jax.config.update('jax_enable_x64', True), or "
            "cast with .astype()"
        )
    _check_jax_has_gpus()
    return _zarrow._import("jax.dlpack").from_dlpack(self)


def _check_jax_has_gpus() -> None:
    """Refuse a JAX that computes only on the CPU."""
    try:
        _zarrow._import("jax").devices("cuda")
    except RuntimeError as error:
        raise DeviceError(
            f"JAX has no GPU to use ({error}): pip install 'jax[cuda13]' (or 'jax[cuda12]')"
        ) from error


def _refused_binary(name: str) -> Callable[..., Any]:
    def method(self: Any, other: Any, /) -> Any:
        if is_on_device(other) and not isinstance(other, DeviceTensor):
            return NotImplemented  # a library that computes there may know tensors
        raise _refused(SYMBOLS[name], f"x.torch() {SYMBOLS[name]} y")

    return method


def _refused_unary(name: str) -> Callable[..., Any]:
    def method(self: Any, /) -> Any:
        if name == "abs":
            raise _refused("abs", "abs(x.torch())")
        raise _refused(SYMBOLS[name], f"{SYMBOLS[name]}x.torch()")

    return method


def _refused(operator: str, instead: str) -> TypeError:
    """Say what to type for an operator (step 3)."""
    return TypeError(
        f"zarrow does not run {operator} on a GPU: type {instead}, which shares the memory (or .cupy(), "
        ".jax()); .cpu() is a copy on the CPU"
    )


def _deepcopy(self: Any, memo: Any) -> Any:
    return self.copy()


def _setitem(self: Any, index: Any, value: Any) -> None:
    _zarrow._import("zarrow.device_tensor.indexing").assign(self, index, value)


def _delitem(self: Any, index: Any, /) -> None:
    """Refuse, with an error that says what to type."""
    raise ValueError("elements of a tensor cannot be deleted: type tensor[index] with the indices to keep")


def _eq(self: Any, other: Any) -> Any:
    return _zarrow._import("zarrow.device_tensor.comparison").equal(self, other)


def _ne(self: Any, other: Any) -> Any:
    return _zarrow._import("zarrow.device_tensor.comparison").not_equal(self, other)


def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> NoReturn:
    message = "the memory is on a GPU: type .cpu() for a copy on the CPU"
    if _zarrow._import("zarrow.gpu.enabling").is_enabled():
        message += (
            "; if zarr-python or xarray asked for it, read outside zarrow.gpu.enable(), or points by "
            'zarrow.open(...).vindex.read(points, device="cuda:0")'
        )
    raise TypeError(message)


def _array_function(self: Any, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    return _zarrow._import("zarrow.device_tensor.functions").answer(self, function, args, kwargs)


def _array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
    return _zarrow._import("zarrow.device_tensor.functions").answer_ufunc(ufunc, method, inputs, options)


def _getattr(self: Any, name: str) -> Any:
    message = f"zarrow.gpu.Tensor has no {name}"
    if name == "__cuda_array_interface__":
        message += f": it has no code for {self.dtype.name}: use DLPack, as .torch(), .cupy() and .jax() do"
    if not name.startswith("_"):
        message += f": {_zarrow._import('zarrow.hints.names_on_decoded_arrays').for_device_tensor(name)}"
    # If given the object, Python would append its own suggestion.
    raise AttributeError(message, name=name)
