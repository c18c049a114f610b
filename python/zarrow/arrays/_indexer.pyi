"""The class Indexer."""

from typing import Any, Literal, final, overload

from zarrow.api.typed import AnyElements, Decompress, Gpu, Out
from zarrow.arrays._array import Array, _Index
from zarrow.device_tensor._device_tensor import DeviceTensor

@final
class Indexer:
    """An array with one kind of indexing: the type of `Array.oindex`, `vindex` and `blocks`.

    In an item of `zarrow.read_many`, an indexer in place of the array chooses how to interpret the index.

    Examples
    --------
    >>> import zarrow
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> by_axis, by_point = temperature.oindex, temperature.vindex
    >>> by_axis[[40, 3], [5, 0], 0].shape, by_point[[40, 3], [5, 0], 0].shape
    ((2, 2), (2,))
    >>> zarrow.read_many([(by_point, ([0, 1], [2, 3])), (by_axis, (0, [4, 4]))]).shape
    (2, 2, 8)
    """

    @property
    def array(self) -> Array:
        """The array that is indexed."""
    def __getitem__(self, index: _Index, /) -> AnyElements:
        """Read a selection: `read` with its defaults."""
    def __setitem__(self, index: _Index, value: Any, /) -> None:
        """Write values to a selection: `write` with its defaults."""
    def __len__(self) -> int:
        """Return the number of parts in an iteration over `array.blocks`. Other indexers have no length."""
    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle: by its array."""
    @overload
    def read(
        self,
        selection: _Index | None = None,
        *,
        device: Gpu,
        stream: Any = None,
        decompress: Decompress = None,
    ) -> DeviceTensor: ...
    @overload
    def read(
        self,
        selection: _Index | None = None,
        *,
        out: None = None,
        dtype: Any = None,
        device: Any = None,
        stream: Any = None,
        decompress: Decompress = None,
    ) -> AnyElements:
        """Read a selection; all of the array if none is given.

        Every chunk is read and decoded once, even if several positions need it. Of a large uncompressed
        chunk, only the bytes around the positions are read.

        Parameters
        ----------
        selection
            An index of this indexer's kind: see `Array.oindex`, `Array.vindex` and `Array.blocks`; and
            strings that name fields of structures, as `Array.__getitem__` says.
        out
            Memory to read into instead, with the same rules as `out` of `Array.read`.
        dtype
            A number type of NumPy or PyTorch, which the result is cast to by the rules of `Array.read`. With
            the name of a field in the selection, this field is cast. Not with a GPU.
        device, stream, decompress
            A GPU to read to, the stream that uses the result, and where chunks are decompressed: as in
            `Array.read`. `"device"` supports slices and integers, but no lists of positions.

        Returns
        -------
        Tensor, Variable, MaskedTensor, MaskedVariable or zarrow.gpu.Tensor
            In new memory; or `out` itself, if it was given.

        Raises
        ------
        IndexingError
            A position lies outside its axis, arrays do not fit one another or the axes, or the index is of
            another kind (an `IndexError`).
        Exception
            As `Array.read`.

        Examples
        --------
        >>> import numpy as np
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> out = np.empty((3, 8), np.float32)
        >>> temperature.oindex.read(([7, 0, 7], 5), out=out) is out, out[:, 0]
        (True, array([376.,  40., 376.], dtype=float32))
        """
    @overload
    def read(
        self,
        selection: _Index | None = None,
        *,
        out: Out,
        dtype: Any = None,
        device: Any = None,
        stream: Any = None,
        decompress: Decompress = None,
    ) -> Out: ...
    def write(
        self,
        selection: _Index,
        value: Any,
        *,
        casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"] = "same_kind",
        durability: Literal["none", "file", "full"] | None = None,
        write_empty_chunks: bool = False,
    ) -> None:
        """Write values to a selection.

        If a position is repeated, its last value stays, as in NumPy. Everything else is as in `Array.write`.

        Raises
        ------
        IndexingError
            As `read`.
        Exception
            As `Array.write`.

        Examples
        --------
        >>> import zarrow
        >>> temperature = zarrow.open("data.zarr")["temperature"]
        >>> temperature.vindex.write(([0, 1, 0], [0, 1, 0], [0, 1, 0]), [-1, -2, -3])
        >>> temperature[0, 0, 0].item(), temperature[1, 1, 1].item()
        (-3.0, -2.0)
        """
