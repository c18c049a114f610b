"""Methods of a Categorical: it compares, indexes, converts and stores like pandas' Categorical.

1. A comparison looks a scalar up in the categories and compares codes. Missing values are equal to nothing.
2. Only ordered categories compare by order. Two Categoricals compare if their categories are the same.
3. An index that drops the axis gives the value, None if it is missing; any other gives a Categorical of the
   same categories.
4. For NumPy's protocol, text is an array of objects. A missing value is NaN among numbers, NaT among dates,
   and None among all others.
5. It is stored as AnnData stores it: a group of `codes` and `categories`.

Source of step 5: AnnData, "On-disk format", categorical arrays, encoding version 0.2.0.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from zarrow import _zarrow
from zarrow.arrays.methods import add_method, add_property
from zarrow.hints.calling_line import warn

if TYPE_CHECKING:
    import numpy.typing as npt

    from zarrow import Categorical, Group, Tensor, Variable

_STORED = {"encoding-type": "categorical", "encoding-version": "0.2.0"}


def add_to_class() -> None:
    """Give the class Categorical these methods."""
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        add_method(_zarrow.Categorical, f"__{name}__", _comparison(getattr(operator, name)))
    for name, function in (
        ("__array__", _array),
        ("__contains__", _contains),
        ("__getitem__", _get_item),
        ("__iter__", _iterate),
        ("__reduce__", _reduce),
    ):
        add_method(_zarrow.Categorical, name, function)
    setattr(_zarrow.Categorical, "__hash__", None)  # noqa: B010 - mypy allows no assignment
    add_property(_zarrow.Categorical, "ndim", lambda _: 1)
    add_property(_zarrow.Categorical, "size", lambda values: len(values))
    setattr(_zarrow.Categorical, "to_numpy", _zarrow.Categorical.numpy)  # noqa: B010


def tolist(codes: Tensor, categories: Tensor | Variable) -> list[Any]:
    """Return the values as Python objects, None for negative codes."""
    values = categories.tolist()
    return [values[code] if code >= 0 else None for code in codes.tolist()]


def numpy(codes: Tensor, categories: Tensor | Variable) -> npt.NDArray[Any]:
    """Make an array of the values; negative codes are None among strings, and masked among others."""
    np = _zarrow._import("numpy")

    values, places = categories.numpy(), codes.numpy()
    missing = places < 0
    if not missing.any():
        whole: npt.NDArray[Any] = values[places]
        return whole
    is_text = values.dtype.kind == "T"
    given = values.astype(object) if is_text else values
    filled: npt.NDArray[Any] = np.zeros(places.shape, given.dtype)
    filled[~missing] = given[places[~missing]]
    if is_text:
        filled[missing] = None
        return filled
    masked: npt.NDArray[Any] = np.ma.MaskedArray(filled, mask=missing)
    return masked


def _array(self: Categorical, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
    np = _zarrow._import("numpy")
    if copy is False:
        raise ValueError("converting a Categorical to its values needs a copy, which copy=False forbids")
    values = self.numpy()
    if isinstance(values, np.ma.MaskedArray):
        kind, missing = values.dtype.kind, values.mask
        values = values.data.astype("f8" if kind in "iu" else values.dtype if kind in "fcmM" else object)
        values[missing] = "NaT" if kind in "mM" else np.nan if kind in "iufc" else None
    if values.dtype.kind == "T":
        values = values.astype(object)  # NumPy does not cast its strings to `str`
    found: npt.NDArray[Any] = values if dtype is None else values.astype(dtype)
    return found


def _get_item(self: Categorical, index: Any) -> Any:
    codes = self.codes[index]
    if codes.ndim > 0:
        return _zarrow._categorical(codes, self.categories, self.ordered)
    code = codes.item()
    value = self.categories[code] if code >= 0 else None
    return value.item() if isinstance(value, _zarrow.Tensor) else value


def _iterate(self: Categorical) -> Iterator[Any]:
    return iter(self.tolist())


def _contains(self: Categorical, value: Any) -> bool:
    return value in self.tolist()


def _reduce(self: Categorical) -> tuple[Any, ...]:
    return load, (self.codes, self.categories, self.ordered)


def load(codes: Tensor, categories: Tensor | Variable, ordered: bool) -> Categorical:
    """Make a Categorical of its parts, which come out of a pickle."""
    return _zarrow._categorical(codes, categories, ordered)


def _comparison(apply: Callable[[Any, Any], Any]) -> Callable[[Categorical, Any], Any]:
    by_order = apply not in (operator.eq, operator.ne)

    def method(self: Categorical, other: Any) -> Any:
        np = _zarrow._import("numpy")
        codes, categories = self.codes.numpy(), self.categories.tolist()
        if by_order and not self.ordered:
            raise TypeError("categories without an order compare by == and != only: compare .numpy() instead")
        given = parts(other)
        if given is not None:
            theirs, their_categories, ordered = given[0], given[1].tolist(), given[2]
            _check_same(categories, their_categories, self.ordered or ordered)
            numbers = {value: number for number, value in enumerate(categories)}
            table = np.array([numbers[value] for value in their_categories] + [-1], np.int64)
            codes_of_other = table[np.where(theirs < 0, len(their_categories), theirs)]
        elif np.ndim(other) > 0 or isinstance(other, _zarrow.DecodedArray):
            if by_order:
                raise TypeError("only a Categorical orders its categories: compare .numpy() instead")
            return apply(np.asarray(self), np.asarray(other))
        elif other in categories:
            codes_of_other = np.int64(categories.index(other))
        elif by_order:
            raise TypeError(f"{other!r} is not a category: expected one of {categories[:10]}")
        else:
            return np.full(codes.shape, apply is operator.ne)
        if codes_of_other.ndim and codes_of_other.shape != codes.shape:
            raise ValueError(
                f"cannot compare {len(codes)} values with {len(codes_of_other)} values: lengths differ"
            )
        found = apply(codes, codes_of_other)
        found[(codes < 0) | (codes_of_other < 0)] = apply is operator.ne
        return found

    return method


def _check_same(ours: list[Any], theirs: list[Any], ordered: bool) -> None:
    if ours != theirs if ordered else set(ours) != set(theirs):
        raise TypeError(f"categories differ, {ours[:10]} and {theirs[:10]}: compare .numpy() of both instead")


def parts(data: Any) -> tuple[Any, Any, bool] | None:
    """Return codes, categories and order of zarrow, pandas, polars or Arrow data; None for other data."""
    np = _zarrow._import("numpy")
    family = type(data).__module__.partition(".")[0]
    if isinstance(data, _zarrow.Categorical):
        return data.codes.numpy(), data.categories, data.ordered
    if family == "pandas":
        given = getattr(data, "cat", data)
        if hasattr(given, "codes") and hasattr(given, "categories"):
            return np.asarray(given.codes), given.categories.to_numpy(), bool(given.ordered)
    if family == "polars" and type(getattr(data, "dtype", None)).__name__ in ("Categorical", "Enum"):
        data, family = data.to_arrow(), "pyarrow"
    if family == "pyarrow" and hasattr(getattr(data, "type", None), "index_type"):
        if hasattr(data, "combine_chunks"):
            data = data.combine_chunks()
        codes = data.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        return codes, data.dictionary, bool(data.type.ordered)
    return None


def is_stored_as_group(data: Any, form: str | None) -> bool:
    """Return whether data are stored by codes and categories: a Categorical, and others if `form` says so."""
    if isinstance(data, _zarrow.Categorical):
        return form in (None, "anndata")
    return form == "anndata" and parts(data) is not None


def warn_of_order(data: Any) -> None:
    """Warn that an array of the values does not keep the order of pandas' categories."""
    found = parts(data) if type(data).__module__.partition(".")[0] == "pandas" else None
    if found is not None and found[2]:
        warn(
            f"the order of the categories {list(found[1][:10])} is not stored, only the values: pass "
            'missing="anndata" to store codes and categories'
        )


def create(
    target: Any, path: str, durability: str, zarr_format: int, data: Any, options: dict[str, Any]
) -> Group:
    """Create the group, with `options` of `create_array` for the codes (step 5)."""
    from zarrow.arrays.missing import ANNDATA_ARRAY
    from zarrow.arrays.nullable import STRINGS, create_group

    np = _zarrow._import("numpy")
    found = parts(data)
    assert found is not None
    codes, categories, ordered = found
    categories = _zarrow.asarray(categories if len(categories) else np.array([], np.dtypes.StringDType()))
    width = next(width for width in ("i1", "i2", "i4") if len(categories) <= np.iinfo(width).max)
    group = create_group(target, path, durability, zarr_format, {**_STORED, "ordered": ordered}, options)
    options.pop("fill_value", None)
    group.create_array("codes", data=codes.astype(width), attributes=ANNDATA_ARRAY, **options)
    attributes = STRINGS if isinstance(categories, _zarrow.Variable) else ANNDATA_ARRAY
    group.create_array("categories", data=categories, attributes=attributes)
    return group
