"""Batches as a `TensorDict`; the library is imported at the first batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zarrow._zarrow import _import
from zarrow.torch.tensors import Masked

if TYPE_CHECKING:
    from tensordict import TensorDict


def tensordict(batch: Mapping[str, Any]) -> TensorDict:
    """Return a batch of several sources as a `tensordict.TensorDict`, without a copy; for `transform=`.

    Its batch size is the number of samples. Elements that may be missing are a nested `TensorDict` of
    `values` and `mask`, and text is a `NonTensorStack`.

    Parameters
    ----------
    batch
        A batch of a loader of `zarrow.torch`, or a dict of tensors with one row for each sample.

    Raises
    ------
    TypeError
        The batch has no names: the plan has one source without a name.

    Examples
    --------
    >>> import zarrow.torch
    >>> plan = zarrow.torch.Plan("cells.zarr", 2, fields={"x": "weight", "y": "kind"})
    >>> for batch in zarrow.torch.DataLoader(plan, transform=zarrow.torch.tensordict):
    ...     print(batch.batch_size, batch["x"].dtype)
    torch.Size([2]) torch.float64
    torch.Size([2]) torch.float64
    """
    if not isinstance(batch, Mapping):
        raise TypeError(
            f"a TensorDict has names, found a batch of {type(batch).__name__}: pass a dict of sources, or "
            'fields={"x": "name"}, to the plan'
        )
    members = {name: _member(member) for name, member in batch.items()}
    first: Any = next(iter(batch.values()), [])
    count = len(first.values if isinstance(first, Masked) else first)
    made: TensorDict = _import("tensordict").TensorDict(members, batch_size=[count])
    return made


def _member(member: Any) -> Any:
    return member._asdict() if isinstance(member, Masked) else member
