"""Loads many variables in one batch.

1. Each variable is loaded by xarray's own coroutine, which decodes. It stops where it needs elements.
2. All these reads are one `zarrow.read_many`: chunks of all variables are read at the same time.
3. The coroutines continue with the elements.
4. A dask array that only reads an array of the store is replaced by that read. dask computes any other array.
"""

from __future__ import annotations

import contextvars
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np
import xarray
from xarray.namedarray.parallelcompat import get_chunked_array_type

from zarrow import read_many
from zarrow._zarrow import _read_each
from zarrow.xarray.arrays import Request, ZarrowArray, planned

Loaded = TypeVar("Loaded", xarray.Dataset, xarray.DataTree, xarray.DataArray)


def load(
    obj: Loaded,
    names: str | Iterable[str] | None = None,
    *,
    out: Mapping[str, np.ndarray[Any, Any]] | None = None,
) -> Loaded:
    """Load variables into memory in one batch, and return the object, which then holds them.

    `Dataset.load` reads one variable after the other. This reads the chunks of all variables at the same
    time: in a remote store, it takes the time of the slowest variable.

    Parameters
    ----------
    obj
        A Dataset, a DataTree or a DataArray. Variables that were opened by zarrow are read in one batch, also
        as dask arrays, if these only read them. All others are loaded as by `obj.load()`.
    names
        Names of the variables to load; in a tree, their paths such as `"model/rain"`. By default all.
    out
        Arrays to put the elements into, by name: they are copied there after decoding, and the object holds
        these arrays.

    Raises
    ------
    KeyError
        The object has no variable of this name.
    ValueError
        An array of `out` has another shape than its variable.
    TypeError
        An array of `out` has a type that the elements cannot be cast to.
    CodecError, StoreError, OutOfMemoryError
        As `zarrow.read_many`; no variable is loaded then.

    Examples
    --------
    >>> import xarray, zarrow
    >>> dataset = xarray.Dataset({"rain": ("day", [1.0, 2.0]), "wind": ("day", [3.0, 4.0])})
    >>> _ = dataset.to_zarr("two.zarr", consolidated=False)
    >>> opened = xarray.open_dataset("two.zarr", engine="zarrow", consolidated=False)
    >>> zarrow.xarray.load(opened)["wind"].values
    array([3., 4.])
    """
    variables = _variables(obj)
    if names is not None:
        wanted = [names] if isinstance(names, str) else list(names)
        if missing := [name for name in wanted if name not in variables]:
            raise KeyError(
                f"no variable is named {missing[0]!r}: expected one of {sorted(map(str, variables))}"
            )
        variables = {name: variables[name] for name in wanted}
    targets = dict(out or {})
    for name, target in targets.items():
        _check_target(variables, name, target)
    for name, elements in _read(variables).items():
        if name in targets:
            np.copyto(targets[name], elements, casting="same_kind")
            elements = targets[name]
        variables[name].data = elements
    return obj


def _variables(obj: xarray.Dataset | xarray.DataTree | xarray.DataArray) -> dict[Any, xarray.Variable]:
    """Return the variables to load by name. Indexes are in memory already."""
    if isinstance(obj, xarray.DataTree):
        return {
            f"{node.path.strip('/')}/{name}".lstrip("/"): variable
            for node in obj.subtree
            for name, variable in node.to_dataset(inherit=False).variables.items()
        }
    if isinstance(obj, xarray.DataArray):
        return {**{name: array.variable for name, array in obj.coords.items()}, obj.name: obj.variable}
    return dict(obj.variables)


def _check_target(variables: Mapping[Any, xarray.Variable], name: str, target: Any) -> None:
    if name not in variables:
        raise KeyError(f"out has {name!r}, which is not a variable to load: {sorted(map(str, variables))}")
    if target.shape != variables[name].shape:
        raise ValueError(f"out[{name!r}] has shape {target.shape}, expected {variables[name].shape}")
    if isinstance(variables[name], xarray.IndexVariable):
        raise ValueError(f"out has {name!r}, which is an index and is in memory already: leave it out")
    if not np.can_cast(variables[name].dtype, target.dtype, "same_kind"):
        raise TypeError(f"out[{name!r}] is of type {target.dtype}, expected {variables[name].dtype}")


def _read(variables: Mapping[Any, xarray.Variable]) -> dict[Any, Any]:
    """Return the elements of variables that are not in memory (steps 1 to 4)."""
    steps: dict[Any, Coroutine[Any, Any, Any]] = {}
    chunked: dict[Any, Any] = {}
    others: list[Any] = []
    for name, variable in variables.items():
        if isinstance(variable, xarray.IndexVariable) or variable._in_memory:
            continue
        data: Any = variable._data
        source = _plain_read(data) if _is_chunked(data) else data
        if _is_ours(source):
            steps[name] = source.async_get_duck_array()
        elif _is_chunked(data):
            chunked[name] = data
        else:
            others.append(name)
    values = _read_in_batches(steps)
    if chunked:
        manager = get_chunked_array_type(*chunked.values())
        values.update(zip(chunked, manager.compute(*chunked.values()), strict=True))
    values.update({name: variables[name].compute().data for name in others})
    return values


def _read_in_batches(steps: dict[Any, Coroutine[Any, Any, Any]]) -> dict[Any, Any]:
    """Return the results of coroutines, with the reads that all wait for as one batch (steps 1 to 3)."""
    values: dict[Any, Any] = {}
    context = contextvars.copy_context()
    context.run(planned.set, True)
    try:
        answers: dict[Any, Any] = dict.fromkeys(steps)
        while steps:
            requests: dict[Any, Request] = {}
            for name in list(steps):
                try:
                    requests[name] = context.run(steps[name].send, answers[name])
                except StopIteration as end:
                    values[name] = end.value
                    del steps[name]
            if requests:
                answers = dict(zip(requests, _batch(list(requests.values())), strict=True))
    finally:
        for step in steps.values():
            step.close()
    return values


def _batch(requests: list[Request]) -> list[Any]:
    """Return the result of each request, in separate memory if all requests are for whole arrays."""
    arrays = [request.whole for request in requests if request.whole is not None]
    if len(arrays) == len(requests):
        return list(_read_each(arrays))
    parts = read_many([request.item for request in requests])
    return [parts[number] for number in range(len(requests))]


def _is_chunked(data: Any) -> bool:
    return hasattr(data, "dask")


def _plain_read(data: Any) -> Any:
    """Return what a dask array reads, if it only reads one lazy array; otherwise None (step 4)."""
    layers = getattr(data.dask, "layers", {})
    original = f"original-{data.name}"
    if set(layers) != {data.name, original}:
        return None
    source = dict(layers[original]).get(original)
    # A task of dask, and the class of xarray's that dask indexes.
    source = getattr(source, "value", source)
    source = getattr(source, "array", None)
    return source if getattr(source, "shape", None) == data.shape else None


def _is_ours(source: Any) -> bool:
    """Whether the lazy array at the bottom of xarray's wrappers is of zarrow."""
    while source is not None:
        if isinstance(source, ZarrowArray):
            return True
        source = getattr(source, "array", None)
    return False
