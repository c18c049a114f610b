"""Options of new arrays: names, types, and the error for an unknown option."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_MODES = frozenset(("r", "r+", "a", "w", "w-", "x", "rb"))

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def check_names(
    options: Iterable[str], known: Iterable[str] = OPTIONS, whose: str = "of a new array"
) -> None:
    """Refuse an unknown option.

    Raises
    ------
    TypeError
        An option is unknown; the message names its replacement.
    """
    for name in options:
        if name not in known:
            from zarrow.hints.unknown_names import of_option

            raise TypeError(of_option(name, sorted(known), whose))


def says_options(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Make a function's errors say what to type for unknown options, and for options given by position."""

    @functools.wraps(function)
    def checked(*given: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        is_mode = len(given) > 1 and isinstance(given[1], str) and given[1] in _MODES
        if is_mode and _is_mode_as_path(function, given, options):
            return _with_mode_as_path(function, checked.__name__, given, options)
        try:
            return function(*given, **options)
        except TypeError:
            _check_call(function, checked.__name__, given, options)
            raise

    return checked


def _with_mode_as_path(
    function: Callable[..., _Result], name: str, given: tuple[Any, ...], options: dict[str, Any]
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
        error.add_note(f"to create a node of that name, type {name}(store, path={given[1]!r}, ...)")
        raise


def _is_mode_as_path(function: Callable[..., Any], given: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether a mode was passed as the path.

    Raises
    ------
    TypeError
        It was passed to a function that creates nodes, and is no usual name of one.
    """
    import inspect

    parameters = inspect.signature(function).parameters
    if "path" not in parameters or "mode" in options:
        return False
    if "overwrite" in parameters and not given[1].isalpha():
        raise TypeError(
            f"the second argument is the path of a node, got the mode {given[1]!r}: type overwrite=True to "
            f"replace a node, or path={given[1]!r} for a node of that name"
        )
    return "mode" in parameters


def _check_call(
    function: Callable[..., Any], name: str, given: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Refuse unknown names of options, and options given by position."""
    import inspect

    parameters = inspect.signature(function).parameters
    if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters.values()):
        check_names(options, parameters, f"of {name}")
    keywords = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    by_position = sum(parameter.kind not in keywords for parameter in parameters.values())
    if len(given) > by_position:
        shown = ", ".join(
            repr(value) if isinstance(value, int | str | tuple) else "..." for value in given[1:]
        )
        raise TypeError(
            f"options of {name} go by name, as shape=(365, 100), dtype='f4', not by position: {shown}"
        )
