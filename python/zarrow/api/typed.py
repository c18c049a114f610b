"""Types of values that depend on the store: array or group for a node, and the layout for elements.

1. `Node` has the names of both classes, and `Elements` the names of all layouts, so that
   `root["x"][0].numpy()`
   passes a type checker, a misspelt name does not, and an editor completes.
2. They are given as `Node | Any`: then `isinstance` narrows to either class, and both branches are checked.
3. `Gpu` has the devices that are known to be GPUs: a read to one of these gives a `zarrow.gpu.Tensor`.
4. No object is of these classes: at run time both names are `object`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anndata import AnnData

    from zarrow import Array, ArrowStream, Categorical, Group, MaskedTensor, MaskedVariable, Tensor, Variable
    from zarrow.api.progress import Progress
    from zarrow.arrays._array import _Index
    from zarrow.device_tensor._device_tensor import DeviceTensor

    class Elements(Tensor, MaskedTensor, Variable, MaskedVariable, DeviceTensor, Categorical):  # type: ignore[misc]
        """A decoded array of any layout, or a tensor of a GPU."""

    class Node(Array, Group):  # type: ignore[misc]
        """An Array or a Group."""

        @overload  # type: ignore[override]
        def __getitem__(self, path: str, /) -> Member | Any: ...
        @overload
        def __getitem__(self, index: _Index, /) -> AnyElements: ...
        def __getitem__(self, index: Any, /) -> Any:
            """Return a member of a group, or elements of an array."""

        def __iter__(self) -> Iterator[Any]: ...
        def append(self, values: Any, axis: int = 0, *, progress: Progress | bool | None = None) -> Any:
            """Append elements or rows."""

        @overload
        def read(self, selection: Any = None, *, device: Gpu, **options: Any) -> DeviceTensor: ...
        @overload
        def read(self, selection: Any = None, *, out: None = None, **options: Any) -> AnyElements: ...
        @overload
        def read(self, selection: Any = None, *, out: Out, **options: Any) -> Out: ...
        def read(self, selection: Any = None, **options: Any) -> Any:
            """Read elements."""

        def to_arrow(self, columns: Any = None, **options: Any) -> ArrowStream:
            """Give rows as Arrow's stream."""
            raise NotImplementedError

    class Member(Node, Elements):  # type: ignore[misc]
        """A member of a group, or a field of a structure."""

    class Loaded(Elements, AnnData, dict[str, Any]):  # type: ignore[misc]
        """The elements of an array, the elements of a group's arrays by name, or an AnnData."""

        def __getitem__(self, key: Any, /) -> Any:
            """Return elements, or the elements of a member."""

else:
    Elements = Loaded = Node = object

AnyElements: TypeAlias = Elements | Any
AnyLoaded: TypeAlias = Loaded | Any
AnyNode: TypeAlias = Node | Any

Gpu: TypeAlias = (
    int | Literal["cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7"]
)
Decompress: TypeAlias = Literal["host", "device", "auto"] | None
Out = TypeVar("Out")
