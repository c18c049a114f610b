"""Loads many variables in one batch.

1. Each variable is loaded by xarray's own coroutine, which decodes. It stops where it needs elements.
2. All these reads are one `zarrow.read_many`: chunks of all variables are read at the same time.
3. The coroutines continue with the elements.
4. Elements that xarray does not decode are read into the arrays of `out`, or into a GPU's memory.
5. A dask array that only reads an array of the store is replaced by that read. dask computes any other array.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import xarray
from xarray.core import indexing
from xarray.namedarray.parallelcompat import get_chunked_array_type

from zarrow import read_many
from zarrow._zarrow import Array, DeviceTensor, _read_each, _read_into, asarray
from zarrow.api import concurrent_calls
from zarrow.api.progress import reporting
from zarrow.api.reported_amounts import Amount
from zarrow.api.reported_reads import READ_NBYTES
from zarrow.errors import UnsupportedError
from zarrow.xarray.arrays import Request, ZarrowArray, planned

if TYPE_CHECKING:
    from zarrow.api.progress import Progress
    from zarrow.api.typed import Decompress, Gpu

# What wrappers of other byte orders and of joined characters inherit: it raises an error.
_NO_COROUTINE: Any = vars(indexing.ExplicitlyIndexedNDArrayMixin).get("async_get_duck_array")

Loaded = TypeVar("Loaded", xarray.Dataset, xarray.DataTree, xarray.DataArray)


def load(
    obj: Loaded,
    names: str | Iterable[str] | None = None,
    *,
    out: Mapping[str, np.ndarray[Any, Any]] | None = None,
    device: Gpu | None = None,
    stream: Any = None,
    decompress: Decompress = None,
    progress: Progress | bool | None = None,
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
        Arrays to read into, by name, each with the shape of its variable; the object then holds these arrays.
        Elements that are in memory already are copied.
        The engine decodes chunks into them if the array has the stored type and xarray decodes nothing. Other
        elements (scaled, masked, times, texts, points, another type) are decoded in new memory, then copied.
    device, stream, decompress
        A GPU to read to, as in `zarrow.read_many`: the object then holds `zarrow.gpu.Tensor`s. Indexes stay
        in the host's memory. Not with `out`.
    progress
        Called with the bytes of the variables that were loaded, and of all; or True for a bar in a terminal
        or a notebook. Small variables are then read 64 MiB at a time, and a large variable by itself.

    Raises
    ------
    KeyError
        The object has no variable of this name.
    ValueError
        An array of `out` has another shape than its variable; `device` was given with `out`.
    TypeError
        `obj` is no object of xarray; an array of `out` has a type that the elements cannot be cast to.
    UnsupportedError
        `device` was given, and xarray decodes a variable, or it was not opened by zarrow: choose others by
        `names`, or open the dataset with `mask_and_scale=False`, `decode_times=False`.
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
    if device is not None:
        if out is not None:
            raise ValueError("device= reads to new memory: pass it without out=")
        read = partial(_read_to_device, device=device, stream=stream, decompress=decompress)
        for name, tensor in _read_reported(variables, read, progress).items():
            variables[name].data = tensor
        return obj
    targets = dict(out or {})
    for name, target in targets.items():
        _check_target(variables, name, target)
    read = partial(_read, targets=targets)
    for name, elements in _read_reported(variables, read, progress).items():
        if name in targets:
            if not _shares(elements, targets[name]):
                np.copyto(targets[name], elements, casting="same_kind")
            elements = targets[name]
        variables[name].data = elements
    return obj


def _read_reported(
    variables: dict[Any, xarray.Variable],
    read: Callable[[dict[Any, xarray.Variable]], dict[Any, Any]],
    progress: Progress | bool | None,
) -> dict[Any, Any]:
    """Read variables in one batch; with `progress`, in several that are reported."""
    with reporting(progress, "load") as report:
        if report is None:
            return read(variables)
        values: dict[Any, Any] = {}
        batch: dict[Any, xarray.Variable] = {}
        amount = Amount(report, sum(variable.nbytes for variable in variables.values()))
        for name, variable in variables.items():
            nbytes = sum(each.nbytes for each in batch.values())
            if batch and nbytes + variable.nbytes > READ_NBYTES:
                amount.begin(nbytes)
                values |= read(batch)
                amount.finish()
                batch = {}
            batch[name] = variable
        amount.begin(0)
        values |= read(batch)
        amount.finish_all()
        return values


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
    if not isinstance(obj, xarray.Dataset):
        raise TypeError(f"expected a Dataset, a DataArray or a DataTree, got {type(obj).__name__}")
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


def _shares(elements: Any, target: np.ndarray[Any, Any]) -> bool:
    """Whether elements are those of the target, which were read into it."""
    places = [
        (part.__array_interface__["data"][0], part.strides, part.dtype)
        for part in (elements, target)
        if isinstance(part, np.ndarray)
    ]
    return len(places) == 2 and places[0] == places[1]


def _read(
    variables: Mapping[Any, xarray.Variable], targets: Mapping[str, np.ndarray[Any, Any]]
) -> dict[Any, Any]:
    """Return the elements of variables that are not in memory (steps 1 to 5), or have a target."""
    loaded: dict[Any, Any] = {}
    steps: dict[Any, Coroutine[Any, Any, Any]] = {}
    chunked: dict[Any, Any] = {}
    into: dict[Any, np.ndarray[Any, Any]] = {}
    others: list[Any] = []
    for name, variable in variables.items():
        if isinstance(variable, xarray.IndexVariable):
            continue
        if variable._in_memory:
            if name in targets:
                loaded[name] = variable.values
            continue
        data: Any = variable._data
        source = _plain_read(data) if _is_chunked(data) else data
        if _is_ours(source):
            steps[name] = source.async_get_duck_array()
            if name in targets and _is_undecoded(source):
                into[name] = targets[name]
        elif _is_chunked(data):
            chunked[name] = data
        else:
            others.append(name)
    values = loaded | _read_in_batches(steps, into)
    if chunked:
        manager = get_chunked_array_type(*chunked.values())
        values.update(zip(chunked, manager.compute(*chunked.values()), strict=True))
    values.update({name: variables[name].compute().data for name in others})
    return values


def _read_to_device(
    variables: Mapping[Any, xarray.Variable], device: Gpu, stream: Any, decompress: Decompress
) -> dict[Any, DeviceTensor]:
    """Return the elements of variables in the memory of a GPU (step 4)."""
    steps: dict[Any, Coroutine[Any, Any, Any]] = {}
    requests: dict[Any, Request] = {}
    context = contextvars.copy_context()
    context.run(planned.set, True)
    try:
        for name, variable in variables.items():
            data: Any = variable._data
            if isinstance(variable, xarray.IndexVariable) or isinstance(data, DeviceTensor):
                continue
            source = _plain_read(data) if _is_chunked(data) else data
            if _is_ours(source) and _is_undecoded(source):
                steps[name] = source.async_get_duck_array()
                requests[name] = context.run(steps[name].send, None)
            if name not in requests or not isinstance(requests[name].item[0], Array):
                raise UnsupportedError(
                    f"{name!r} is decoded or computed in the host's memory: pass names= without it, or open "
                    "the dataset by zarrow with mask_and_scale=False and decode_times=False"
                )
    finally:
        for step in steps.values():
            step.close()
    items = [request.item for request in requests.values()]
    tensors: Any = read_many(items, device=device, stream=stream, decompress=decompress) if items else []
    return {name: tensors[number] for number, name in enumerate(requests)}


def _read_in_batches(
    steps: dict[Any, Coroutine[Any, Any, Any]], into: Mapping[Any, np.ndarray[Any, Any]]
) -> dict[Any, Any]:
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
                answers = _answers(requests, into)
    finally:
        for step in steps.values():
            step.close()
    return values


def _answers(requests: Mapping[Any, Request], into: Mapping[Any, np.ndarray[Any, Any]]) -> dict[Any, Any]:
    """Return the result of each request, read into its target if it has one (step 4)."""
    answers: dict[Any, Any] = {}
    direct = [name for name in requests if name in into and requests[name].fits(into[name])]
    others = [name for name in requests if name not in direct]

    def read_direct() -> None:
        outs = [into[name] for name in direct]
        _read_into([requests[name].item for name in direct], outs)
        answers.update(zip(direct, map(asarray, outs), strict=True))

    def read_others() -> None:
        answers.update(zip(others, _batch([requests[name] for name in others]), strict=True))

    reads = [read for read, names in ((read_direct, direct), (read_others, others)) if names]
    concurrent_calls.run(reads)
    return answers


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
    """Return what a dask array reads, if it only reads one lazy array; otherwise None (step 5)."""
    layers = getattr(data.dask, "layers", {})
    original = f"original-{data.name}"
    if set(layers) != {data.name, original}:
        return None
    source = dict(layers[original]).get(original)
    # A task of dask, and the class of xarray's that dask indexes.
    source = getattr(source, "value", source)
    source = getattr(source, "array", None)
    return source if getattr(source, "shape", None) == data.shape else None


def _is_undecoded(source: Any) -> bool:
    """Whether xarray's wrappers around a lazy array only index it."""
    while not isinstance(source, ZarrowArray):
        if type(source).__module__ != indexing.__name__:
            return False
        source = source.array
    return True


def _is_ours(source: Any) -> bool:
    """Whether a lazy array is of zarrow, and all wrappers of xarray around it have a coroutine."""
    while source is not None:
        if isinstance(source, ZarrowArray):
            return True
        if getattr(type(source), "async_get_duck_array", _NO_COROUTINE) is _NO_COROUTINE:
            return False
        source = getattr(source, "array", None)
    return False
