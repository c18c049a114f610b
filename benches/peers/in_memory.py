"""Libraries that only share arrays: they read nothing, and take part in the rows of calls."""

from pathlib import Path
from typing import Any, ClassVar

from benches.peers.single_file import NumpyLoad
from benches.selections import Selection


class PyTorch(NumpyLoad):
    name = "torch.Tensor"
    package = "torch"
    calls: ClassVar = {
        "dlpack": "t.__dlpack__()",
        "dlpack-versioned": "t.__dlpack__(max_version=(1, 0))",
        "numpy": "t.numpy()",
        "numpy-dlpack": "numpy.from_dlpack(t)",
        "torch-dlpack": "torch.from_dlpack(t)",
        "from-numpy": "torch.from_numpy(numpy_array)",
        "from-torch": "torch.from_dlpack(torch_tensor)",
        "tvm": "nop(t)",
    }
    rows = frozenset(calls)

    def __init__(self) -> None:
        import torch

        self.torch: Any = torch

    def read(self, array: Path, selection: Selection | None) -> Any:
        return self.torch.from_numpy(super().read(array, selection))


class TvmFfi(NumpyLoad):
    name = "tvm_ffi.Tensor"
    package = "tvm_ffi"
    calls: ClassVar = {
        "dlpack": "t.__dlpack__()",
        "numpy-dlpack": "numpy.from_dlpack(t)",
        "torch-dlpack": "torch.from_dlpack(t)",
        "from-numpy": "tvm_ffi.from_dlpack(numpy_array)",
        "from-torch": "tvm_ffi.from_dlpack(torch_tensor)",
        "tvm": "nop(t)",
    }
    rows = frozenset(calls)

    def __init__(self) -> None:
        import tvm_ffi

        self.tvm_ffi: Any = tvm_ffi

    def read(self, array: Path, selection: Selection | None) -> Any:
        return self.tvm_ffi.from_dlpack(super().read(array, selection))


class PyArrow(NumpyLoad):
    name = "pyarrow.Array"
    package = "pyarrow"
    calls: ClassVar = {
        "numpy": "t.to_numpy()",
        "numpy-dlpack": "numpy.from_dlpack(t)",
        "from-numpy": "pyarrow.array(numpy_array)",
        "arrow": "t.__arrow_c_array__()",
    }
    rows = frozenset(calls)

    def __init__(self) -> None:
        import pyarrow

        self.pyarrow: Any = pyarrow

    def read(self, array: Path, selection: Selection | None) -> Any:
        return self.pyarrow.array(super().read(array, selection))
