"""Stand-ins for arrays of PyTorch, CuPy and JAX on a GPU: these libraries do not know the software device.

Each wraps a Tensor's memory, and behaves like the library's arrays: the same attributes, the same
arguments of `__dlpack__`, the same refusals.

Sources: `torch/_tensor.py` of PyTorch 2.9, `cupy/_core/core.pyx` of CuPy 14, `jax/_src/array.py` of JAX 0.8.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import zarrow


class OfTorch:
    """Like `torch.Tensor`: its dtype is not NumPy's, its interface has no stream, stream 2 is refused."""

    __module__ = "torch"

    # PyTorch's current device.
    current_device = 0
    requires_grad = False

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def dtype(self) -> Any:
        return TorchType(self.tensor.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        return int(self.tensor.ndim)

    def __len__(self) -> int:
        return len(self.tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return tuple(self.tensor.__dlpack_device__())

    def __dlpack__(
        self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self.__dlpack_device__()[1] != type(self).current_device:
            raise BufferError("Can't export tensors on a different CUDA device index.")
        if stream is not None and type(stream) is not int:
            raise TypeError("stream must be ``int`` or ``none``")
        if stream in (0, 2):
            raise BufferError(f"unsupported stream: {stream}.")
        return self.tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        described = dict(self.tensor.__cuda_array_interface__)
        del described["stream"]
        return described | {"version": 2}


class TorchType:
    """Like `torch.dtype`."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __str__(self) -> str:
        return f"torch.{self.dtype}"


class TorchModule:
    """Like `torch`, as far as memory of another device needs it."""

    class cuda:  # noqa: N801  # PyTorch's name
        class device:  # noqa: N801
            def __init__(self, number: int) -> None:
                self.number = number

            def __enter__(self) -> None:
                self.before, OfTorch.current_device = OfTorch.current_device, self.number

            def __exit__(self, *_: object) -> None:
                OfTorch.current_device = self.before


class OfCupy:
    """Like `cupy.ndarray`."""

    __module__ = "cupy"

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    dtype = property(lambda self: self.tensor.dtype)
    shape = property(lambda self: self.tensor.shape)
    ndim = property(lambda self: self.tensor.ndim)

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, key: Any) -> Any:
        return OfCupy(self.tensor[key])

    def __dlpack_device__(self) -> tuple[int, int]:
        return tuple(self.tensor.__dlpack_device__())

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        if stream is not None and (not isinstance(stream, int) or stream < -1 or stream == 0):
            raise ValueError(
                f"On CUDA, the valid stream is -1, 1, 2, or any larger value, but {stream} was provided"
            )
        return self.tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.tensor.__cuda_array_interface__)


class OfJax:
    """Like `jax.Array`, which is immutable, but has no flag for it in capsules before DLPack 1.0."""

    __module__ = "jaxlib._jax"

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    dtype = property(lambda self: np.dtype(self.tensor.dtype))
    shape = property(lambda self: tuple(self.tensor.shape))
    ndim = property(lambda self: self.tensor.ndim)

    def __len__(self) -> int:
        return len(self.tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return tuple(self.tensor.__dlpack_device__())

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        return self.tensor.__dlpack__(stream=stream, dl_device=dl_device, copy=copy)


class OfNobody:
    """Supports only `__dlpack__`."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return tuple(self.tensor.__dlpack_device__())

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor.__dlpack__(**options)


LIBRARIES = [OfTorch, OfCupy, OfJax, OfNobody]


def on_device(array: Any) -> zarrow.gpu.Tensor:
    """Return a tensor of these elements."""
    return zarrow.gpu.asarray(array)
