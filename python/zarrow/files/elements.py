"""Elements of an array in a file, without compression: parts are read and written at their places.

1. A part is read or written in runs of elements that are side by side in the file. Nothing is mapped, so
   that a file which becomes shorter, or a full disk, is an error and not a signal.
2. In column order ("F"), the axes are reversed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from zarrow.errors import MetadataError

Region = tuple[slice, ...]


def malformed(file: BinaryIO, text: str) -> MetadataError:
    """Return the error for a file that is not of its format."""
    return MetadataError(f"{getattr(file, 'name', 'file')}: {text}")


class FileElements:
    """An array in an opened file, which is stored part by part."""

    # `create_array` reads it in chunks of the new array.
    _is_read_in_parts = True
    chunks = None

    def __init__(
        self,
        file: BinaryIO,
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        order: Literal["C", "F"] = "C",
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self._file = file
        self._offset = offset
        self._is_reversed = order == "F"

    @property
    def nbytes(self) -> int:
        """The size of all elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    def check_length(self, nbytes: int) -> None:
        """Check the length of the file, and the size of an element.

        Raises
        ------
        MetadataError
            The file is shorter than its elements, or elements have no bytes or are arrays.
        """
        if not self.dtype.itemsize or self.dtype.subdtype is not None:
            # Elements without bytes let a tiny file claim any shape, and NumPy makes them longer.
            raise malformed(
                self._file, f"elements have the type {self.dtype}, expected one of fixed size such as '<f4'"
            )
        if self._offset + self.nbytes > nbytes:
            raise malformed(
                self._file,
                f"the file has {nbytes} bytes, but elements of shape {self.shape} and type {self.dtype} end "
                f"at {self._offset + self.nbytes}",
            )

    def __getitem__(self, region: Region) -> npt.NDArray[Any]:
        """Read a part, which is given by slices without steps."""
        if self._is_reversed:
            return self._read(self.shape[::-1], region[::-1]).T
        return self._read(self.shape, region)

    def __setitem__(self, region: Region, values: npt.NDArray[Any]) -> None:
        """Write a part."""
        data = np.ascontiguousarray(values, self.dtype).reshape(-1).view(np.uint8)
        for at, begin, end in self._runs(self.shape, region):
            self._file.seek(at)
            rest = memoryview(data)[begin:end]
            while rest:
                rest = rest[self._file.write(rest) :]

    def _read(self, shape: tuple[int, ...], region: Region) -> npt.NDArray[Any]:
        values = np.empty([part.stop - part.start for part in region], self.dtype)
        data = values.reshape(-1).view(np.uint8)
        for at, begin, end in self._runs(shape, region):
            self._file.seek(at)
            rest = memoryview(data)[begin:end]
            while rest:
                count = self._file.readinto(rest)  # type: ignore[attr-defined]
                if not count:
                    raise malformed(self._file, f"the file ends before byte {at + end - begin}")
                rest = rest[count:]
        if self.dtype == np.bool_:
            # Other bytes than 0 and 1 are no bools.
            np.not_equal(data, 0, out=data.view(np.bool_))
        return values

    def _runs(self, shape: tuple[int, ...], region: Region) -> Iterator[tuple[int, int, int]]:
        """Yield runs (step 1): the offset in the file, and the range of bytes in the part."""
        axis, run = len(shape), self.dtype.itemsize
        while axis > 0:
            axis -= 1
            run *= region[axis].stop - region[axis].start
            if region[axis].stop - region[axis].start != shape[axis]:
                break
        strides = [self.dtype.itemsize * math.prod(shape[at + 1 :]) for at in range(len(shape))]
        first = self._offset + sum(part.start * stride for part, stride in zip(region, strides, strict=True))
        outer = [part.stop - part.start for part in region[:axis]]
        if run == 0:
            return
        for number, index in enumerate(np.ndindex(*outer)):
            at = first + sum(place * stride for place, stride in zip(index, strides, strict=False))
            yield at, number * run, (number + 1) * run
