"""Operations of a GPU tensor, compared with NumPy."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import pytest

import zarrow
from zarrow.errors import ExchangeError, ShapeError, UnsupportedError

from .conftest import Border


def same(tensor: Any, array: Any) -> bool:
    """Return whether both have the same type, shape and elements."""
    array = np.asarray(array)
    return (
        tensor.dtype == array.dtype
        and tensor.shape == array.shape
        and np.array_equal(tensor.cpu().numpy(), array)
    )


def test_properties(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    assert type(tensor) is zarrow.gpu.Tensor
    assert (type(tensor).__module__, type(tensor).__qualname__) == ("zarrow.gpu", "Tensor")
    assert (tensor.shape, tensor.ndim, tensor.size, len(tensor)) == (
        values.shape,
        2,
        values.size,
        len(values),
    )
    assert (tensor.itemsize, tensor.nbytes, tensor.strides) == (4, values.nbytes, values.strides)
    assert (tensor.device, tensor.readonly, tensor.__dlpack_device__()) == ("cuda:0", False, (2, 0))
    assert repr(tensor) == "<zarrow.gpu.Tensor (37, 53) float32 on cuda:0, 7.66 KiB>"
    with pytest.raises(TypeError, match="unhashable"):
        hash(tensor)
    with pytest.raises(TypeError, match="len"):
        len(tensor[0, 0])


@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize("shape", [(53, 37), (-1,), (37, 53, 1), (1, -1, 53)])
def test_reshape(values: Any, shape: tuple[int, ...], order: Any) -> None:
    for array, tensor in ((values, zarrow.gpu.asarray(values)), (values.T, zarrow.gpu.asarray(values).T)):
        assert same(tensor.reshape(shape, order=order), array.reshape(shape, order=order))
        assert same(tensor.reshape(*shape, order=order), array.reshape(shape, order=order))
        assert same(tensor.ravel(order), array.ravel(order))


def test_reshape_copies_only_when_it_must(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    tensor.reshape(-1)[0] = 77
    assert tensor[0, 0].item() == 77
    tensor.reshape(-1, copy=True)[0] = 78
    assert tensor[0, 0].item() == 77
    with pytest.raises(ExchangeError, match="copy"):
        tensor.T.reshape(-1, copy=False)
    for wrong in ((3, -1), (-1, -1), (2,)):
        with pytest.raises(ShapeError):
            tensor.reshape(wrong)
    with pytest.raises(ValueError, match="order"):
        tensor.reshape(-1, order="X")  # type: ignore[arg-type]


def test_axes(values: Any) -> None:
    array = values.reshape(37, 53, 1)
    tensor = zarrow.gpu.asarray(array)
    for axes in ((), (None,), (2, 0, 1), ((0, 2, 1),), (-1, 0, 1)):
        assert same(tensor.transpose(*axes), array.transpose(*axes))
    assert same(tensor.T, array.T) and same(tensor.squeeze(), array.squeeze())
    assert same(tensor.squeeze(-1), array.squeeze(-1)) and same(tensor.squeeze((2,)), array.squeeze((2,)))
    for wrong in ((0, 0, 1), (0, 1), (0, 1, 3)):
        with pytest.raises(ShapeError):
            tensor.transpose(*wrong)
    with pytest.raises(ShapeError):
        tensor.squeeze(0)


def test_types(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    for dtype in ("i1", "u2", "i8", "f2", "f8", "c16", "bool"):
        if dtype != "u2":  # casts outside the range are undefined
            assert same(tensor.astype(dtype), values.astype(dtype))
    assert same(tensor.astype("bfloat16"), values.astype(ml_dtypes.bfloat16))
    assert same(tensor.astype(ml_dtypes.bfloat16), values.astype(ml_dtypes.bfloat16))
    assert tensor.astype("f4", copy=False) is tensor and tensor.astype("f4") is not tensor
    assert tensor.astype("f4", order="F", copy=False).strides == (4, 4 * 37)
    assert tensor.T.astype("f8").strides == (8, 8 * 53) and tensor.astype("f8").strides == (8 * 53, 8)
    assert same(tensor.view("u1"), values.view("u1")) and same(tensor.view("i4"), values.view("i4"))
    assert same(tensor.view("u1").view("f4"), values)
    with pytest.raises(ShapeError):
        tensor.view("f8")  # 53 elements are not a whole number of pairs
    with pytest.raises(ShapeError):
        tensor.T.view("u1")
    with pytest.raises(UnsupportedError, match=r"\.cpu\(\)"):
        tensor.astype("M8[s]").astype("S3")
    with pytest.raises(ValueError, match="native-endian"):
        tensor.astype(">f4")


def test_single_values(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    element = tensor[3, 4]
    assert element.shape == () and element.item() == values[3, 4]
    assert float(element) == values[3, 4] and int(element) == int(values[3, 4]) and bool(element != 1000)
    with pytest.raises(ValueError, match="not a single value"):
        bool(tensor)


def test_all() -> None:
    for array in (
        np.zeros((3, 0)),
        np.zeros(5),
        np.ones(5),
        np.array([0.0, np.nan]),
        np.array([False, True]),
    ):
        tensor = zarrow.gpu.asarray(array)
        assert tensor.all() == array.all()


@pytest.mark.parametrize("value", [3, -0.5, np.float64(1e30), np.nan, True])
def test_fill(value: Any) -> None:
    for dtype in ("f4", "c8", "bfloat16"):
        tensor = zarrow.gpu.asarray(np.zeros((3, 4), "f4")).astype(dtype)
        tensor[:, ::2].fill(value)
        expected = np.zeros((3, 4), tensor.dtype)
        with np.errstate(over="ignore"):
            expected[:, ::2].fill(value)
        assert tensor.cpu().numpy().tobytes() == expected.tobytes()


def test_comparisons(values: Any, border: Border) -> None:
    tensor, other = zarrow.gpu.asarray(values), values.copy()
    other[3] += 1
    sent = border.to_device
    pairs = [
        (tensor == 3, values == 3),
        (tensor != 3.5, values != 3.5),
        (tensor == tensor[0], values == values[0]),
        (tensor[0] == tensor, values[0] == values),
        (tensor == tensor.astype("i8")[:, :1], values == values.astype("i8")[:, :1]),
        (3 == tensor, values == 3),  # noqa: SIM300
        (np.float32(3) == tensor, values == 3),
    ]
    assert border.to_device == sent
    pairs += [
        (tensor == other, values == other),
        (other == tensor, values == other),
        (other != tensor, values != other),
    ]
    for ours, expected in pairs:
        assert isinstance(ours, zarrow.gpu.Tensor) and same(ours, expected)
    nan = zarrow.gpu.asarray(np.array([np.nan, 0.0, -0.0]))
    assert same(nan == nan, [False, True, True]) and same(nan == 0.0, [False, True, True])
    with pytest.raises(ValueError, match="broadcast"):
        tensor == np.zeros(7)  # noqa: B015


@pytest.mark.parametrize("values", [["a", "bb"], [b"a", b"bb"], [1.0, 2.0]], ids=["U", "S", "f8"])
@pytest.mark.parametrize("other", ["a", b"a", ["a"], np.array(["a", "bb"]), np.str_("a"), object()])
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_text_is_compared_on_the_cpu(values: list[Any], other: Any, compare: Callable[..., Any]) -> None:
    """A single bool for all elements could be mistaken for a mask."""
    tensor = zarrow.gpu.asarray(np.array(values))
    with pytest.raises(UnsupportedError, match=r"does not compare text.*\.cpu\(\)"):
        compare(tensor, other)
    with pytest.raises(TypeError, match="type `tensor is None`"):
        compare(tensor, None)


@pytest.mark.parametrize(
    "compute", [operator.add, operator.floordiv, operator.matmul, operator.gt, operator.le]
)
@pytest.mark.parametrize("other", [1, np.ones(53, "f4"), None])
def test_operators_that_compute_say_what_to_type(
    values: Any, compute: Callable[..., Any], other: Any
) -> None:
    tensor = zarrow.gpu.asarray(values)
    other = tensor if other is None else other
    for sides in ((tensor, other), (other, tensor)):
        with pytest.raises(TypeError, match=r"(does not|not) run .*on a GPU.*\.torch\(\)"):
            compute(*sides)


@pytest.mark.parametrize("compute", [operator.neg, operator.pos, operator.invert, abs])
def test_operators_of_one_tensor_say_what_to_type(values: Any, compute: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"(does not|not) run .*on a GPU.*\.torch\(\)"):
        compute(zarrow.gpu.asarray(values))


def test_a_library_that_knows_tensors_computes_with_them(values: Any) -> None:
    class Other:
        __cuda_array_interface__: ClassVar[dict[str, Any]] = {}

        def __radd__(self, tensor: Any) -> str:
            return "added"

    assert zarrow.gpu.asarray(values) + Other() == "added"


def test_complex_values_lose_their_imaginary_part_with_a_warning_here(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    for value in (np.complex128(2 + 1j), np.full(53, 2 + 1j)):
        with pytest.warns(np.exceptions.ComplexWarning, match="imaginary") as caught:
            tensor[3] = value
        assert [warning.filename for warning in caught] == [__file__]
        assert tensor[3].cpu().tolist() == [2] * 53


def test_casts_of_complex_values_to_real_ones_warn_as_numpy(values: Any) -> None:
    source = values[:3] + 2j
    tensor = zarrow.gpu.asarray(source)
    for dtype in ("i4", "u8", "f2", "f8", "bfloat16"):
        with pytest.warns(np.exceptions.ComplexWarning, match="imaginary") as caught:
            cast = tensor.astype(dtype)
        assert [warning.filename for warning in caught] == [__file__]
        assert np.array_equal(cast.cpu().numpy(), values[:3].astype(cast.dtype))
    written = zarrow.gpu.asarray(values[:3])
    with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
        written[...] = tensor
    assert np.array_equal(written.cpu().numpy(), source.real)
    # Casts to bool and to other complex types lose no imaginary part.
    assert tensor.astype(bool).all() and np.array_equal(tensor.astype("c8").cpu().numpy(), source)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "i8", "u8"])
def test_floats_out_of_range_become_the_integers_of_numpy(dtype: str) -> None:
    source = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300.7, -300.7, 2.0**31, -(2.0**63), 2.0**63])
    with np.errstate(invalid="ignore"):
        expected = np.array([single.astype(dtype) for single in source])
    assert np.array_equal(zarrow.gpu.asarray(source).astype(dtype).cpu().numpy(), expected)


def test_elements_are_not_deleted(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    for index in (0, np.s_[1:], [2]):
        with pytest.raises(ValueError, match=r"cannot be deleted: type tensor\[index\]"):
            del tensor[index]


def test_functions_of_numpy_that_make_tensors(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    pairs = [
        (np.full_like(tensor, 4), np.full_like(values, 4)),
        (np.zeros_like(tensor, dtype="i2"), np.zeros_like(values, dtype="i2")),
        (np.ones_like(tensor, shape=(2, 2)), np.ones((2, 2), "f4")),
        (np.asanyarray(3, dtype="i2", like=tensor), np.asanyarray(3, dtype="i2")),
        (np.asarray(values, like=tensor), values),
        (np.full((2, 3), 7, "u1", like=tensor), np.full((2, 3), 7, "u1")),
        (np.zeros(3, like=tensor), np.zeros(3)),
    ]
    for ours, expected in pairs:
        assert isinstance(ours, zarrow.gpu.Tensor) and same(ours, expected)
    assert np.empty_like(tensor).shape == values.shape
    with pytest.raises(ValueError, match="copy"):
        np.asarray(values, copy=False, like=tensor)


def test_other_functions_of_numpy_say_what_to_type(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    calls: list[tuple[Callable[[], Any], str]] = [
        (lambda: np.concatenate([tensor, tensor]), r"\.cpu\(\).*\.torch\(\), \.cupy\(\) or \.jax\(\)"),
        (lambda: np.array_equal(tensor, values), r"\.cpu\(\)"),
        (lambda: np.copyto(tensor, values), r"\.torch\(\)"),
        (lambda: np.reshape(tensor, -1), r"type x\.reshape, "),
        (lambda: np.all(tensor), r"type x\.all, "),
    ]
    for call, message in calls:
        with pytest.raises(TypeError, match="does not run on a GPU.*" + message):
            call()


def test_empty_tensors() -> None:
    tensor = zarrow.gpu.asarray(np.zeros((0, 3), "i4"))
    assert tensor.shape == (0, 3) and tensor.cpu().shape == (0, 3)
    assert tensor[:, 1].shape == (0,) and tensor.T.copy().shape == (3, 0) and tensor.reshape(3, 0).size == 0
    assert tensor.__cuda_array_interface__["data"][0] == 0
    tensor[...] = 3
    tensor.fill(1)
    assert (tensor == tensor).shape == (0, 3) and tensor.ravel().shape == (0,)


def test_ravel_gives_elements_side_by_side(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    for part, numpys in ((tensor[:, 1:2], values[:, 1:2]), (tensor[::-1, 3], values[::-1, 3])):
        for flat in (part.ravel(), part.ravel("F")):
            assert flat.strides == (4,) and same(flat, numpys.ravel())
    assert same(tensor.T.ravel("K"), values.T.ravel("K"))
    with pytest.raises(UnsupportedError, match=r"\.cpu\(\)"):
        tensor[:, ::2].ravel("K")


def test_times_of_another_unit_are_refused() -> None:
    seconds = zarrow.gpu.asarray(np.array(["2020", "NaT", "2021"], "M8[s]"))
    days = zarrow.gpu.asarray(np.array(["2020", "NaT", "2021"], "M8[D]"))
    for call in (
        lambda: seconds.astype("M8[ms]"),
        lambda: seconds.astype("m8[s]"),
        lambda: seconds == days,
        lambda: operator.setitem(seconds, 0, days[0]),
        lambda: seconds == seconds.copy(),
        lambda: seconds.astype("f8"),
    ):
        with pytest.raises(UnsupportedError, match=r"\.cpu\(\)"):
            call()
    with pytest.raises(TypeError):
        seconds == 5  # noqa: B015
    seconds[0] = np.datetime64("2022", "D")
    expected = np.array(["2022", "NaT", "2021"], "M8[s]")
    for tensor in (seconds, seconds.astype("i8").astype("M8[s]")):
        assert np.array_equal(tensor.cpu().numpy(), expected, equal_nan=True)


@pytest.mark.parametrize(
    ("value", "error"),
    [(300, OverflowError), (-1, OverflowError), (float("nan"), ValueError), (1j, TypeError)],
)
def test_python_scalars_that_do_not_fit(value: Any, error: type[Exception]) -> None:
    tensor = zarrow.gpu.asarray(np.arange(3, dtype="u1"))
    for call in (
        lambda: operator.setitem(tensor, 0, value),
        lambda: operator.setitem(tensor, [0, 1], [value, 1]),
        lambda: operator.setitem(tensor, slice(0, 2), (1, value)),
        lambda: tensor.fill(value),
        lambda: np.full_like(tensor, value),
        lambda: zarrow.gpu.NDBuffer.create(shape=(2,), dtype="u1", fill_value=value),
    ):
        with pytest.raises(error):
            call()
    assert same(tensor, np.arange(3, dtype="u1"))


def test_integers_are_compared_exactly() -> None:
    array = np.array([44, 255], "u1")
    tensor = zarrow.gpu.asarray(array)
    for other in (300, -1, 44, 255, [300, 255], np.int64(300), 2**70):
        assert same(tensor == other, array == other) and same(tensor != other, array != other)
    wide = zarrow.gpu.asarray(np.array([2**63 - 1], "i8"))
    for other in (zarrow.gpu.asarray(np.array([2**63], "u8")), np.uint64(2**63)):
        with pytest.raises(TypeError, match=r"\.cpu\(\)"):
            wide == other  # noqa: B015
    assert (wide != 2**63).all()


def test_arrays_like_tensors_are_numpys(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    assert same(np.ones(2, like=tensor), np.ones(2)) and same(np.ones(2, "i2", like=tensor), np.ones(2, "i2"))
    copied = np.array(tensor, like=tensor)
    copied[0] = 1000
    assert same(tensor, values)
    assert np.array(tensor, like=tensor, ndmin=3).shape == (1, 37, 53)
    with pytest.raises(OverflowError):
        zarrow.gpu.asarray(np.zeros(2, "u1"))[:] = range(300, 302)
    tensor[0], tensor[[1, 2]] = np.ones((1, 1, 53)), np.ones((1, 2, 53))
    values[0], values[[1, 2]] = np.ones((1, 1, 53)), np.ones((1, 2, 53))
    assert same(tensor, values)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x + 1", "does not run + on a GPU: type x.torch() + y"),
        ("1 < x", "does not run > on a GPU: type x.torch() > y"),
        ("~x", "does not run ~ on a GPU: type ~x.torch()"),
        ("abs(x)", "does not run abs on a GPU: type abs(x.torch())"),
        ("x.view(53, -1)", "type .reshape(53, -1)"),
        ("x.view((53, -1))", "type .reshape(53, -1)"),
        ("x.view(-1)", "type .reshape(-1)"),
        ('x.to("cuda:1")', 'type zarrow.gpu.asarray(x, device="cuda:1")'),
        ("x.cuda()", 'zarrow.gpu.asarray(x, device="cuda:1")'),
        ("x.float()", "type x.astype('f4')"),
        ("x.mean()", "type x.torch().mean"),
        ("x.clone()", "type x.copy()"),
        ("x.any()", "type x.torch().any"),
        ("x.flatten()", "type x.torch().flatten"),
        ("x.tobytes()", "type x.cpu().tobytes()"),
        ("x.groupby(3)", "type x.torch().groupby"),
        ("x.reshap(3)", "did you mean reshape?"),
        ("x.nothing_like_it", ".cpu() is a copy on the CPU"),
        ('x["field"]', "type array.read('field', device=...)"),
        ('x[["field"]]', "type array.read('field', device=...)"),
        ('x["field"] = 3', "type array.read('field', device=...)"),
    ],
)
def test_habits_say_what_to_type(values: Any, code: str, expected: str) -> None:
    with pytest.raises((TypeError, AttributeError, IndexError), match=re.escape(expected)):
        exec(code, {"x": zarrow.gpu.asarray(values)})


def test_flags_by_the_keys_of_numpy(values: Any) -> None:
    tensor = zarrow.gpu.asarray(values)
    for view, array in ((tensor, values), (tensor.T, values.T), (tensor[::2], values[::2])):
        flags = view.flags
        for key in ("C_CONTIGUOUS", "F_CONTIGUOUS", "C", "F"):
            assert flags[key] is array.flags[key]
    assert flags["WRITEABLE"] is True and flags["OWNDATA"] is flags["O"] is False
    with pytest.raises(KeyError):
        flags["CONTIGUOUS"]


@pytest.mark.parametrize(
    ("give", "error", "expected"),
    [
        (lambda: "abc", UnsupportedError, "text of any length .* type zarrow.asarray"),
        (lambda: None, TypeError, "got None"),
        (lambda: np.array([object()]), TypeError, "convert the values to one NumPy dtype"),
        (lambda: zarrow.asarray(np.ma.array([1, 2], mask=[0, 1])), UnsupportedError, r"\.filled\(value\)"),
        (lambda: pytest.importorskip("pyarrow").array([1, None]), UnsupportedError, r"\.filled\(value\)"),
    ],
    ids=["text", "None", "objects", "masked", "nulls"],
)
def test_types_without_a_device_layout_are_refused(
    give: Callable[[], Any], error: Any, expected: str
) -> None:
    with pytest.raises(error, match=expected):
        zarrow.gpu.asarray(give())


def test_the_way_to_a_gpu(tmp_path: Path) -> None:
    zarrow.save(tmp_path / "a.zarr", x=np.arange(4), pairs=np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]))
    group = zarrow.open(tmp_path / "a.zarr")
    for work in (
        lambda: group["x"].cuda(),
        lambda: group["x"].to("cuda"),
        lambda: group["x"][:2].gpu(),
        lambda: group["x"][:2].to("cuda"),
        lambda: zarrow.load(tmp_path / "a.zarr", device="cuda"),  # type: ignore[call-arg]
        lambda: zarrow.open(tmp_path / "a.zarr", device="cuda"),  # type: ignore[call-overload]
    ):
        with pytest.raises((AttributeError, TypeError), match=r'array\.read\(selection, device="cuda"\)'):
            work()
    with pytest.raises(AttributeError, match=r'group\["name"\]\.read\(device="cuda"\)'):
        group.cuda()
    with pytest.raises(TypeError, match=r"found zarrow\.Group: type explain\(zarrow\.open\(path\)\)"):
        zarrow.gpu.explain(group)  # type: ignore[arg-type]
    for selection in ("a", ("a", 0), ["a"]):
        with pytest.raises(IndexError, match="leave its name out"):
            zarrow.gpu.explain(group["pairs"], selection)
    assert group["pairs"].read("a", device="cuda").cpu().tolist() == [1]


def test_cpu_returns_cpu_arrays_themselves() -> None:
    for array in (zarrow.asarray(np.arange(4)), zarrow.asarray(["a", "b"]), zarrow.asarray([1, None])):
        assert array.cpu() is array
