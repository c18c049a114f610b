"""Options of new arrays: names, types, and the error for an unknown option."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar

from zarrow._zarrow import CloudStore, MemoryStore

Store: TypeAlias = str | os.PathLike[str] | CloudStore | MemoryStore | Any
"""A folder, a URL, a store in the cloud or in memory, or a store object of another library."""

Codec: TypeAlias = str | Mapping[str, Any] | Any
"""A codec: its name, its metadata in version 3 or numcodecs form, or a zarr-python or numcodecs object."""

Chunks: TypeAlias = int | Sequence[int | None] | Literal["auto"] | None
"""The shape of a chunk; of `bool`, a subclass of int, True means "auto" and False one chunk."""

Codecs: TypeAlias = Codec | Iterable[Codec] | Literal["auto"] | None
"""One codec, several or none; or "auto" for the default."""


class LayoutOptions(TypedDict, total=False):
    """How a new array is stored: `create_array` explains each."""

    chunks: Chunks
    shards: int | Sequence[int] | Literal["auto"] | None
    filters: Codecs
    compressors: Codecs
    compressor: Codec | None
    serializer: Codec | Literal["auto"] | None
    codecs: Iterable[Codec] | None
    order: Literal["C", "F"] | None
    attributes: Mapping[str, Any] | None
    chunk_key_encoding: str | Mapping[str, Any] | None
    dimension_names: Sequence[str | None] | None
    overwrite: bool


class ArrayOptions(LayoutOptions, total=False):
    """Options of a new array: `create_array` explains each."""

    shape: int | Sequence[int] | None
    dtype: Any
    data: Any
    fill_value: Any
    missing: Literal["optional", "fill", "anndata"] | None


class FilledOptions(LayoutOptions, total=False):
    """Options of a new array of one value: `full` explains each."""

    store: Store | None
    path: str
    zarr_format: Literal[2, 3]


class LikeOptions(FilledOptions, total=False):
    """Options of a new array like another one: `full_like` explains each."""

    shape: int | Sequence[int] | None
    dtype: Any


OPTIONS = frozenset(ArrayOptions.__annotations__)

# The ways to open a store, which other libraries take in the second place.
_MODES = frozenset("r r+ a w w- x rb wb ab w+ a+ rw".split())

# The same with the names of Python's files, of NumPy and of netCDF.
_MODES_OF_FILES = dict(rb="r", c="r", wb="w", ws="w", ab="a", rs="r", rw="r+", **{"w+": "w", "a+": "a"})

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def check_names(
    options: Mapping[str, Any], known: Collection[str] = OPTIONS, owner: str = "of a new array"
) -> None:
    """Refuse unknown options.

    Raises
    ------
    TypeError
        An option is unknown; the message names the replacements of all unknown ones.
    """
    if unknown := {name: value for name, value in options.items() if name not in known}:
        from zarrow.hints.option_names import for_options

        raise TypeError(for_options(unknown, sorted(known), owner))


def says_options(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Make a function's errors say what to type for unknown options, and for options given by position."""

    @functools.wraps(function)
    def checked(*given: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        mode = next((text for text in given[1:3] if isinstance(text, str) and text in _MODES), None)
        if mode is not None and not _is_internal() and _is_mode_as_path(function, mode, given, options):
            return _with_mode_as_path(function, mode, given, options)
        try:
            return function(*given, **options)
        except (TypeError, ValueError, LookupError):
            try:
                _check_call(function, checked.__name__, given, options)
            except (TypeError, ValueError) as error:
                # The first error names an inner function, or guesses another option.
                raise error from None
            raise

    return checked


def _is_internal() -> bool:
    """Return whether a decorated function is called by zarrow, which passes paths by position."""
    # Code that `exec` runs may lack a name.
    return str(sys._getframe(2).f_globals.get("__name__")).startswith("zarrow.")


def _with_mode_as_path(
    function: Callable[..., _Result], mode: str, given: tuple[Any, ...], options: dict[str, Any]
) -> _Result:
    """Open an existing node at a path that reads like a mode; create nothing.

    Raises
    ------
    NotFoundError
        Nothing exists there; the message says that the mode goes by its name.
    """
    import inspect

    from zarrow.errors import NotFoundError

    parameters = inspect.signature(function).parameters
    opening = {option: value for option, value in options.items() if option in parameters}
    try:
        return function(*given, mode="r+", **opening)
    except NotFoundError as error:
        if "mode=" not in str(error):
            error.args = (f"{error}; to set the mode, pass mode={_MODES_OF_FILES.get(mode, mode)!r}",)
        error.add_note(f"to create a node of that name, type {function.__name__}(store, path={mode!r}, ...)")
        raise


def _is_mode_as_path(
    function: Callable[..., Any], mode: str, given: tuple[Any, ...], options: dict[str, Any]
) -> bool:
    """Return whether a mode was passed as the path.

    Raises
    ------
    TypeError
        It was passed to a function that creates nodes, and is no usual name of one.
    """
    import inspect

    parameters = inspect.signature(function).parameters
    place = [*parameters].index("path") if "path" in parameters else len(given)
    if place >= len(given) or given[place] != mode or "mode" in options:
        return False
    options_of_writers = {"overwrite": "overwrite=True", "if_exists": 'if_exists="overwrite"'}
    way = next((text for name, text in options_of_writers.items() if name in parameters), None)
    if way and (not mode.isalpha() or mode in ("rb", "wb", "rw")):
        raise TypeError(
            f"{function.__name__}() got the mode {mode!r} as the path of a node: type {way} to replace a "
            f"node, or path={mode!r} for a node of that name"
        )
    return "mode" in parameters


def _check_call(
    function: Callable[..., Any], name: str, given: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Refuse unknown names of options, options given by position, and objects in place of a store."""
    import inspect

    parameters = inspect.signature(function).parameters
    if "store" in parameters and not {"arrays", "group"} & {*parameters}:
        _check_store(name, given, options)
    mode = options.get("mode")
    if isinstance(mode, str) and mode in _MODES_OF_FILES and "mode" in parameters:
        raise ValueError(f"mode is {mode!r}, the mode of a file: type mode={_MODES_OF_FILES[mode]!r}")
    if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()):
        check_names(options, parameters, f"of {name}")
    if len(given) > 1 and list(parameters)[1] == "path" and "data" in parameters and _is_array(given[1]):
        raise TypeError(
            f"the second argument is the path of a node, got an array: type {name}(store, data=x)"
        )
    keywords = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    by_position = sum(parameter.kind not in keywords for parameter in parameters.values())
    if len(given) > by_position and "arrays" in parameters:
        raise TypeError(f"{name} stores one array by position: type {name}(store, a=x, b=y) for several")
    if len(given) > by_position:
        first = 1 if "store" in parameters else 2
        if any(_is_array(value) for value in given[first:]):
            raise TypeError(f"the elements of {name} go by name: type data=x")
        shown = ", ".join(
            repr(value) if isinstance(value, int | str | tuple) else "..." for value in given[first:]
        )
        raise TypeError(
            f"options of {name} go by name, as shape=(365, 100), dtype='f4', not by position: {shown}"
        )


def _check_store(name: str, given: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse a missing store, and opened nodes or arrays in its place."""
    if not given and "store" not in options:
        way = "" if name.startswith(("open", "load")) else ", or store=zarrow.MemoryStore() for memory"
        raise TypeError(
            f'the first argument is the store, a path or a URL: type {name}("data.zarr", ...){way}'
        )
    store = given[0] if given else options["store"]
    library = type(store).__module__.partition(".")[0]
    if library in ("zarr", "zarrow") and hasattr(store, "attrs") and hasattr(store, "path"):
        leave = "leave zarrow.open out, or " if library == "zarrow" else ""
        raise TypeError(
            f"a store is expected, got an opened node of {library}: {leave}type {name}(x.store, path=x.path)"
        )
    if library == "xarray":
        raise TypeError(
            f"a store is expected, got {type(store).__name__}: type zarrow.xarray.to_zarr(x, store)"
        )
    if _is_array(store) or library in ("pandas", "polars"):
        raise TypeError(
            f"a store is expected, got {type(store).__name__}: type zarrow.save(store, x) to store it, or "
            "zarrow.asarray(x)"
        )


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") or isinstance(value, list)


def store_first(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Let a store stand before the shape, as in `create_array`."""

    @functools.wraps(function)
    def with_store(*given: Any, **options: Any) -> _Result:
        is_store = given and isinstance(given[0], (str, os.PathLike, CloudStore, MemoryStore))
        if is_store and "store" not in options:
            return function(*given[1:], store=given[0], **options)
        return function(*given, **options)

    return with_store
