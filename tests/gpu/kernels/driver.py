"""The functions of CUDA's driver that the kernel tests need, by ctypes.

`ZARROW_CUDA_DRIVER` names the library: the software device, or a real `libcuda.so.1`; the tests hold on
both.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

PTX = Path(__file__).parents[3] / "crates" / "zarrow-cuda" / "ptx" / "zarrow.ptx"

Bytes = npt.NDArray[np.uint8]


class CudaError(Exception):
    """A failed call of the driver; `code` is its result."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function}: {code}")
        self.code = code


def library_path() -> str:
    """Return the path of the tested driver."""
    return os.environ["ZARROW_CUDA_DRIVER"]


class Driver:
    """A device, its primary context on this thread, and the kernels."""

    def __init__(self, device: int = 0) -> None:
        self.device = ctypes.c_int(device)
        self.library = ctypes.CDLL(library_path())
        self("cuInit", ctypes.c_uint(0))
        self.context = self.made("cuDevicePrimaryCtxRetain", self.device)
        self("cuCtxPushCurrent_v2", self.context)
        self.module = self.made("cuModuleLoadData", PTX.read_bytes())
        self.stream = self.made("cuStreamCreate", ctypes.c_uint(1))

    def close(self) -> None:
        """Release the context, which ends its work."""
        self("cuCtxPopCurrent_v2", None)
        self("cuDevicePrimaryCtxRelease_v2", self.device)

    def __call__(self, function: str, *arguments: object) -> None:
        """Call a function, and raise an error for its result."""
        if code := getattr(self.library, function)(*arguments):
            raise CudaError(function, code)

    def made(self, function: str, *arguments: object) -> ctypes.c_void_p:
        """Return the handle that a function writes to its first argument."""
        handle = ctypes.c_void_p()
        self(function, ctypes.byref(handle), *arguments)
        return handle

    def allocate(self, nbytes: int) -> int:
        """Allocate memory of the device."""
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address.value

    def free(self, address: int) -> None:
        """Free memory."""
        self("cuMemFree_v2", ctypes.c_uint64(address))

    @contextmanager
    def memory(self, *contents: Bytes) -> Iterator[list[int]]:
        """Device memory with exactly these bytes."""
        addresses = [self.allocate(max(content.nbytes, 1)) for content in contents]
        try:
            for address, content in zip(addresses, contents, strict=True):
                self.upload(address, content)
            yield addresses
        finally:
            for address in addresses:
                self.free(address)

    def upload(self, address: int, content: npt.NDArray[np.generic]) -> None:
        """Copy an array to the device, and wait."""
        whole = np.ascontiguousarray(content)
        self(
            "cuMemcpyHtoDAsync_v2",
            ctypes.c_uint64(address),
            ctypes.c_void_p(whole.ctypes.data),
            ctypes.c_size_t(whole.nbytes),
            self.stream,
        )
        self.synchronize()

    def download(self, address: int, nbytes: int) -> Bytes:
        """Copy bytes from the device, and wait."""
        content = np.empty(nbytes, np.uint8)
        self(
            "cuMemcpyDtoHAsync_v2",
            ctypes.c_void_p(content.ctypes.data),
            ctypes.c_uint64(address),
            ctypes.c_size_t(nbytes),
            self.stream,
        )
        self.synchronize()
        return content

    def synchronize(self) -> None:
        """Wait for the stream."""
        self("cuStreamSynchronize", self.stream)

    def function(self, name: str) -> ctypes.c_void_p:
        """Return a kernel."""
        return self.made("cuModuleGetFunction", self.module, name.encode())

    def launch(
        self,
        name: str,
        *parameters: object,
        blocks: tuple[int, int] = (2, 1),
        threads: int = 32,
        stream: ctypes.c_void_p | None = None,
    ) -> None:
        """Launch a kernel with parameters that are ctypes objects."""
        addresses = (ctypes.c_void_p * len(parameters))(
            *[ctypes.cast(ctypes.byref(parameter), ctypes.c_void_p) for parameter in parameters]
        )
        shape = [ctypes.c_uint(number) for number in (*blocks, 1, threads, 1, 1, 0)]
        self("cuLaunchKernel", self.function(name), *shape, stream or self.stream, addresses, None)
