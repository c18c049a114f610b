"""The interface of a peer."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benches.selections import Selection


@dataclass(frozen=True)
class Copy:
    """Options of a copy in version 3."""

    chunks: tuple[int, ...]
    codec: str = "zstd"
    """`zstd` of level 3, or `blosc` with LZ4 and shuffle."""

    def codecs(self) -> list[dict[str, Any]]:
        """Return the compressor as metadata of version 3."""
        if self.codec == "zstd":
            return [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}]
        blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
        return [{"name": "blosc", "configuration": blosc}]


class Peer:
    """A library, or a way of using one. The constructor imports the library."""

    name: ClassVar[str]
    suffix: ClassVar[str] = ".zarr"
    """The suffix of its format."""
    package: ClassVar[str]
    """The package to install and import."""
    is_zarrow: ClassVar[bool] = False
    rows: ClassVar[frozenset[str] | None] = None
    """The rows that it takes part in, None for all rows with data in its format."""
    reads_http: ClassVar[bool] = False
    """Whether it reads stores by HTTP."""
    remarks: ClassVar[dict[str, str]] = {}
    """Sets with another encoding in this format."""
    calls: ClassVar[dict[str, str]] = {}
    """Row of a call to the timed statement.

    `t` is the result of a read, `numpy_array` and `torch_tensor` have the same size, `nop` is an empty
    function of tvm-ffi, and packages have their names.
    """

    def missing(self) -> str | None:
        """Return why this peer cannot run here."""
        return None

    def open(self, path: Path) -> Any:
        """Open an array."""
        raise NotImplementedError

    def open_url(self, url: str) -> Any:
        """Open an array by HTTP."""
        raise NotImplementedError

    def read(self, array: Any, selection: Selection | None) -> Any:
        """Read a selection, or all of the array."""
        raise NotImplementedError

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        """Write an array to `path`, encoded like the set at `like`."""
        raise NotImplementedError("writes no arrays")

    def open_to_write(self, path: Path) -> Any:
        """Open an array to change it."""
        return self.open(path)

    def points(self, array: Any, index: tuple[NDArray[Any], ...]) -> Any:
        """Read points, given their positions on each axis."""
        return array.vindex[index]

    def orthogonal(self, array: Any, index: tuple[Any, ...]) -> Any:
        """Read all combinations of the positions of each axis."""
        return array.oindex[index]

    def change(self, array: Any, selection: Selection, values: NDArray[Any]) -> None:
        """Write to a selection of an open array."""
        array[selection] = values

    def create(self, path: Path) -> None:
        """Create an array of a million numbers in a hundred chunks."""
        raise NotImplementedError("creates no arrays here")

    def copy(self, source: Path, target: Path, options: Copy) -> None:
        """Copy an array to other chunks, another compressor or version 3."""
        raise NotImplementedError("copies no arrays here")

    def lazy(self, path: Path) -> Any:
        """Open an array for dask."""
        raise NotImplementedError("opens no arrays for dask here")

    def batch(self, array: Any, selections: Sequence[Selection]) -> Any:
        """Read selections of one shape into one array."""
        return np.stack([self.read(array, selection) for selection in selections])

    def release_memory(self) -> None:
        """Free the memory of dropped results that the library keeps for the next ones."""

    def arrow(self, result: Any) -> Any:
        """Convert the strings of a result to a pyarrow array."""
        import pyarrow

        return pyarrow.array(result)

    def strings(self, result: Any) -> NDArray[Any]:
        """Convert the strings of a result to a NumPy array of StringDType."""
        return np.asarray(result, dtype=np.dtypes.StringDType())
