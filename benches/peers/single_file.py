"""Single-file formats, alternatives to Zarr."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benches.peers.peer import Peer
from benches.selections import Selection


class NumpyLoad(Peer):
    """A NumPy file, read as a whole."""

    name = "numpy.load"
    package = "numpy"
    suffix = ".npy"
    calls: ClassVar = {
        "dlpack": "t.__dlpack__()",
        "dlpack-versioned": "t.__dlpack__(max_version=(1, 0))",
        "numpy-dlpack": "numpy.from_dlpack(t)",
        "torch": "torch.from_numpy(t)",
        "torch-dlpack": "torch.from_dlpack(t)",
        "from-numpy": "numpy.from_dlpack(numpy_array)",
        "from-torch": "numpy.from_dlpack(torch_tensor)",
        "tvm": "nop(t)",
    }
    rows = frozenset({"raw", "rows", "rows-open", "rows-sum", "cold-raw", "write-raw", "import", *calls})

    def open(self, path: Path) -> Path:
        return path

    def read(self, array: Path, selection: Selection | None) -> NDArray[Any]:
        whole: NDArray[Any] = np.load(array)
        return whole if selection is None else whole[selection]

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        np.save(path, data)


class NumpyMapped(Peer):
    """A mapped NumPy file; selections are copied, the whole array is not."""

    name = "numpy.load mmap"
    package = "numpy"
    suffix = ".npy"
    rows = frozenset({"rows-open", "rows-sum", "small", "crops", "batch", "table"})
    remarks: ClassVar = {"sharded": "not compressed", "table": "not compressed"}

    def open(self, path: Path) -> Any:
        return np.load(path, mmap_mode="r")

    def read(self, array: Any, selection: Selection | None) -> Any:
        return array if selection is None else np.array(array[selection])


class H5py(Peer):
    name = "h5py"
    package = "h5py"
    suffix = ".h5"
    remarks: ClassVar = {"sharded": "gzip", "table": "gzip", "strings": "not compressed"}

    def __init__(self) -> None:
        import h5py

        self.h5py: Any = h5py

    def open(self, path: Path) -> Any:
        data = self.h5py.File(path, "r")["data"]
        return data.astype("T") if self.h5py.check_string_dtype(data.dtype) else data

    def read(self, array: Any, selection: Selection | None) -> Any:
        return array[...] if selection is None else array[selection]

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        from benches import single_files

        single_files.write_hdf5(path, data, self.open(like).chunks, like.stem)


class Blosc2(Peer):
    name = "blosc2"
    package = "blosc2"
    suffix = ".b2nd"

    def __init__(self) -> None:
        import blosc2

        self.blosc2: Any = blosc2

    def open(self, path: Path) -> Any:
        return self.blosc2.open(str(path), mode="r")

    def read(self, array: Any, selection: Selection | None) -> Any:
        return array[...] if selection is None else array[selection]

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        from benches import single_files

        single_files.write_blosc2(path, data, self.open(like).chunks, like.stem)


class StringCopy(Peer):
    """Not a reader: NumPy's copy of strings in memory, as the baseline of the row."""

    name = "copy by NumPy"
    package = "numpy"
    suffix = ".h5"
    rows = frozenset({"strings-numpy"})

    def open(self, path: Path) -> Any:
        return H5py().read(H5py().open(path), None)

    def read(self, array: Any, selection: Selection | None) -> Any:
        return array.copy()
