"""What a peer is asked to do."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benches.selections import Selection


class Peer:
    """A library, or a way of using one. Making one imports the library."""

    name: ClassVar[str]
    suffix: ClassVar[str] = ".zarr"
    """The format that it reads."""
    package: ClassVar[str]
    """What is installed, and imported."""
    is_zarrow: ClassVar[bool] = False
    rows: ClassVar[frozenset[str] | None] = None
    """The rows that it takes part in, None for all whose data it reads."""
    reads_http: ClassVar[bool] = False
    """Whether it reads stores by HTTP."""
    remarks: ClassVar[dict[str, str]] = {}
    """Set of data to how this format holds it, where that differs from the others."""
    calls: ClassVar[dict[str, str]] = {}
    """Row of a call to the statement that is timed.

    In it `t` is the result of a read, `numpy_array` and `torch_tensor` are as large, `nop` is a function of
    tvm-ffi that does nothing, and packages have their names.
    """

    def missing(self) -> str | None:
        """Tell why this peer cannot run here."""
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
        """Write an array to `path`, encoded as the set at `like` is."""
        raise NotImplementedError("writes no arrays")

    def open_to_write(self, path: Path) -> Any:
        """Open an array to change it."""
        return self.open(path)

    def points(self, array: Any, index: tuple[NDArray[Any], ...]) -> Any:
        """Read the points whose positions on each axis are given."""
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

    def batch(self, array: Any, selections: Sequence[Selection]) -> Any:
        """Read selections of one shape into one array."""
        return np.stack([self.read(array, selection) for selection in selections])

    def release_memory(self) -> None:
        """Give back the memory of dropped results that the library keeps for the next ones."""

    def arrow(self, result: Any) -> Any:
        """Give the strings that were read as a pyarrow array."""
        import pyarrow

        return pyarrow.array(result)

    def strings(self, result: Any) -> NDArray[Any]:
        """Give the strings that were read as an array of NumPy's StringDType."""
        return np.asarray(result, dtype=np.dtypes.StringDType())
