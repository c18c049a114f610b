"""Copies arrays and groups, within a store or between stores.

1. An array keeps its elements, data type, chunks, shards, codecs, fill value, axis names and attributes, but
   gets the format version of the target group; `labels` converts its names and attributes.
2. It is read part by part, and replaces an existing array in one step.
3. A group keeps its attributes and members. All members are listed before the first is written, so that a
   group can be copied into itself.
4. To and from a remote store, small arrays are read together, and created together with the
   groups (`NodeBatch`).
5. A member that cannot be opened is an error before anything is written, since its original may be erased
   after the copy. A member that another program erases at the same time is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from zarrow._zarrow import Array, Group, _members_or_errors
from zarrow.api.array_options import Store
from zarrow.api.creation import _create, layout_of
from zarrow.api.node_batch import NodeBatch
from zarrow.api.reported_amounts import Amount
from zarrow.api.small_arrays import read_small
from zarrow.errors import NotFoundError
from zarrow.groups.descent import nodes_below
from zarrow.interchange.lazy_arrays import estimated_nbytes


def copy_array(
    array: Array,
    target: Store | Group | NodeBatch,
    path: str,
    zarr_format: int,
    elements: Any = None,
    report: Callable[[int], object] | None = None,
) -> None:
    """Copy an array to a path of a store or a group, or add the copy to a batch (steps 1 and 2).

    `elements` are its elements, if they were read already. `report` is called with the bytes of each part.

    Raises
    ------
    NodeExistsError
        There is a group.
    """
    version = {"zarr_format": zarr_format}
    layout = layout_of(array, zarr_format) | {"elements": elements, "report": report}
    _create(target, path, "none", version, data=array, overwrite="array", **layout)


def copy_group(group: Group, target: Group, path: str, amount: Amount | None = None) -> None:
    """Copy everything below a group into the group at a path, which keeps its other members (steps 3-5)."""
    below = list(nodes_below(group, members=_members))
    sizes = {name: estimated_nbytes(member) for name, member in below if isinstance(member, Array)}
    amount = Amount(None) if amount is None else amount
    amount.expect(sum(sizes.values()))
    if target._is_remote():
        together = NodeBatch(target, target.zarr_format)
        together.add_group(path, group.attrs, keep=True)
        for name, member in below:
            if isinstance(member, Group):
                together.add_group(f"{path}/{name}" if path else name, member.attrs, keep=True)
        copied = _copy_small(below, together, path)
        copy = together.create()[0]
        assert isinstance(copy, Group)
    else:
        copy = target.require_group(path) if path else target
        copy.attrs.update(group.attrs)
        for name, member in below:
            if isinstance(member, Group):
                copy.require_group(name).attrs.update(member.attrs)
        copied = _copy_small(below, copy, "") if group._is_remote() else set()
    amount.begin(sum(sizes[name] for name in copied))
    amount.finish()
    for name, member in below:
        if isinstance(member, Array) and name not in copied:
            amount.begin(sizes[name])
            copy_array(member, copy, name, copy.zarr_format, report=amount.add)
            amount.finish()


def _copy_small(below: list[tuple[str, Array | Group]], target: Group | NodeBatch, path: str) -> set[str]:
    """Copy the small arrays, which are read many at a time; return their names (step 4)."""
    copied: set[str] = set()
    for name, array, elements in read_small(below):
        copy_array(array, target, f"{path}/{name}" if path else name, target.zarr_format, elements)
        copied.add(name)
    return copied


def _members(group: Group) -> Iterator[tuple[str, Array | Group]]:
    """Yield the members of a group, without those erased since it was listed (step 5)."""
    for name, member in _members_or_errors(group):
        if isinstance(member, Array | Group):
            yield name, member
        elif not isinstance(member, NotFoundError):
            raise member
