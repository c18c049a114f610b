"""`zarrow.io`: shared if documented, copied if necessary, refused on request.

The nine faults occur in helpers of the same names in other libraries.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import hand_capsule
import zarrow
from handwritten import NUMBERS, numbers
from zarrow import io


def address(array: np.ndarray) -> int:
    return array.ctypes.data


# --- The nine faults ---


def test_fault_1_bools_keep_their_values_in_arrow():
    bools = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1], bool)
    for array in (io.numpy_to_arrow_zero_copy(bools), io.ZeroCopyArray(bools).to_arrow()):
        assert array.to_pylist() == bools.tolist()
        assert array.storage.buffers()[1].address == address(bools)
    packed = io.numpy_to_arrow_zero_copy(bools, bools="bits")
    assert packed.type == pa.bool_() and packed.to_pylist() == bools.tolist()
    assert io.arrow_to_numpy_zero_copy(packed).tolist() == bools.tolist()
    with pytest.raises(zarrow.ExchangeError):
        io.numpy_to_arrow_zero_copy(bools, bools="bits", copy=False)
    rows = np.arange(6).reshape(2, 3) % 2 == 0
    back = io.arrow_to_numpy_zero_copy(io.numpy_to_arrow_zero_copy(rows))
    assert back.tolist() == rows.tolist()


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">u2", ">M8[s]"])
def test_fault_2_the_other_byte_order_keeps_its_values(dtype):
    array = np.arange(3).astype(dtype)
    native = array.astype(array.dtype.newbyteorder("="))
    assert io.arrow_to_numpy_zero_copy(io.numpy_to_arrow_zero_copy(array)).tolist() == native.tolist()
    assert io.ZeroCopyArray(array).to_numpy().tolist() == native.tolist()
    if dtype[1] != "M":
        assert io.from_dlpack(io.to_dlpack(array)).tolist() == native.tolist()
        with pytest.raises(zarrow.ExchangeError):
            io.to_dlpack(array, copy=False)
    with pytest.raises(zarrow.ExchangeError):
        io.numpy_to_arrow_zero_copy(array, copy=False)


def test_fault_3_a_column_of_one_chunk_is_shared():
    values = np.arange(1000.0)
    table = pa.table({"a": values, "words": ["x"] * 1000})
    column = io.table_to_numpy_zero_copy(table, "a")
    assert address(column) == table.column("a").chunk(0).buffers()[1].address
    assert address(io.table_to_numpy_zero_copy(table, "a", copy=False)) == address(column)
    several = pa.concat_tables([table, table.slice(10, 5)])
    assert io.table_to_numpy_zero_copy(several, "a").tolist() == [*values, *values[10:15]]
    with pytest.raises(zarrow.ExchangeError):
        io.table_to_numpy_zero_copy(several, "a", copy=False)
    batch = table.to_batches()[0]
    assert address(io.table_to_numpy_zero_copy(batch, "a")) == address(column)
    assert io.table_to_numpy_zero_copy(table.slice(3, 2), "a").tolist() == [3, 4]
    for wrong in ("b", "", 0):
        with pytest.raises(KeyError):
            io.table_to_numpy_zero_copy(table, wrong)
    assert io.table_to_numpy_zero_copy(table, "words").tolist() == ["x"] * 1000


def test_fault_4_dlpack_takes_every_argument():
    shared = io.ZeroCopyArray(np.arange(4.0))
    ours = np.from_dlpack(shared)
    assert ours.flags.writeable and address(ours) == address(shared.array)
    assert address(np.from_dlpack(shared, copy=True)) != address(shared.array)
    assert np.from_dlpack(shared, device="cpu").tolist() == [0, 1, 2, 3]
    constant = np.arange(4.0)
    constant.flags.writeable = False
    taken = np.from_dlpack(io.ZeroCopyArray(constant))
    assert not taken.flags.writeable and address(taken) == address(constant)


@pytest.mark.parametrize("legacy", [False, True])
def test_fault_5_a_capsule_is_taken(legacy):
    array = np.arange(4.0)
    capsule = array.__dlpack__() if legacy else array.__dlpack__(max_version=(1, 0))
    taken = io.from_dlpack(capsule)
    array[0] = 7
    assert address(taken) == address(array) and taken[0] == 7
    # Capsules before 1.0 have no flag for read-only memory.
    assert taken.flags.writeable == (not legacy)
    with pytest.raises(zarrow.ExchangeError, match="unconsumed capsule"):
        io.from_dlpack(capsule)


def test_fault_6_a_capsule_is_given_with_the_strides_of_the_array():
    array = np.arange(24).reshape(4, 6)
    for view in (array, array.T, array[::2, 1:], array[::-1, ::-2], np.asfortranarray(array)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            capsule = io.to_dlpack(view)
        assert type(capsule).__name__ == "PyCapsule" and hand_capsule.name(capsule) == "dltensor_versioned"
        taken = io.from_dlpack(capsule)
        assert address(taken) == address(view) and taken.strides == view.strides
    assert hand_capsule.name(io.to_dlpack(array, max_version=None)) == "dltensor"


def test_fault_7_rows_of_several_axes_stay_rows():
    rows = np.arange(24, dtype="f4").reshape(4, 2, 3)
    array = io.numpy_to_arrow_zero_copy(rows)
    assert len(array) == 4 and array.type == pa.fixed_shape_tensor(pa.float32(), (2, 3))
    assert array.storage.values.buffers()[1].address == address(rows)
    back = io.arrow_to_numpy_zero_copy(array)
    assert address(back) == address(rows) and back.shape == rows.shape
    table = pa.table({"id": np.arange(10000), "vector": io.numpy_to_arrow_zero_copy(np.zeros((10000, 256)))})
    assert table.num_rows == 10000
    assert io.table_to_numpy_zero_copy(table, "vector", copy=False).shape == (10000, 256)
    chunks = pa.chunked_array([array, array])
    assert io.arrow_to_numpy_zero_copy(chunks).tolist() == [*rows.tolist(), *rows.tolist()]
    nested = pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2))
    assert io.arrow_to_numpy_zero_copy(nested, copy=False).tolist() == [[1, 2], [3, 4]]


def test_fault_8_every_type_and_every_protocol():
    for name in NUMBERS:
        values = numbers(name)
        shared = io.ZeroCopyArray(values)
        assert address(shared.to_numpy()) == address(values) and shared.dtype == values.dtype
        assert (
            io.from_dlpack(shared).tobytes()
            == values.tobytes()
            == io.from_dlpack(shared.to_dlpack()).tobytes()
        )
        if not name.startswith("complex"):
            back = io.arrow_to_numpy_zero_copy(shared.to_arrow())
            assert back.dtype == values.dtype and address(back) == address(values)
    shared = io.wrap_for_zero_copy(np.arange(6.0).reshape(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert address(np.array(shared, copy=False)) == address(shared.array) == address(np.asarray(shared))
        assert address(np.array(shared, copy=True)) != address(shared.array)
        assert np.asarray(shared, dtype="f4").dtype == np.float32
    assert len(pa.array(shared)) == 2 and memoryview(shared).tolist() == shared.array.tolist()
    assert bytes(shared) == shared.array.tobytes()
    assert zarrow.asarray(shared).numpy().ctypes.data == address(shared.array)
    assert address(shared.to_numpy()) == address(shared.array)


def test_fault_9_an_array_without_axes_is_refused():
    with pytest.raises(zarrow.ExchangeError, match="axis"):
        io.numpy_to_arrow_zero_copy(np.array(3.0))
    assert io.from_dlpack(io.to_dlpack(np.array(3.0))).shape == ()
    assert io.ZeroCopyArray(np.array(3.0)).shape == ()


# --- Copies and refusals ---


def unshareable() -> dict[str, np.ndarray]:
    records = np.zeros(4, "i2,f8")
    records["f1"] = np.arange(4)
    return {"foreign": np.arange(4, dtype=">f8"), "records": records["f1"]}


@pytest.mark.parametrize("name", unshareable())
def test_dlpack_copies_arrays_that_it_cannot_describe(name):
    array = unshareable()[name]
    assert io.from_dlpack(io.to_dlpack(array)).tolist() == [0, 1, 2, 3]
    with pytest.raises(zarrow.ExchangeError):
        io.to_dlpack(array, copy=False)
    for refused in (np.zeros(3, "M8[s]"), np.array(["a"]), np.ma.zeros(3)):
        with pytest.raises(zarrow.ExchangeError):
            io.to_dlpack(refused)


def test_dlpack_of_any_producer():
    array = np.arange(6.0)
    for producer in (
        array,
        memoryview(array),
        hand_capsule.Producer(array),
        zarrow.from_numpy(array),
        pa.array(array),
    ):
        taken = io.from_dlpack(io.to_dlpack(producer))
        assert address(taken) == address(array) and taken.tolist() == array.tolist()
    for producer in (array, hand_capsule.Producer(array), zarrow.from_numpy(array)):
        assert address(io.from_dlpack(producer)) == address(array)
        assert address(io.from_dlpack(producer, copy=True)) != address(array)
        assert address(io.from_dlpack(producer, copy=False)) == address(array)
    assert address(io.from_dlpack(io.to_dlpack(array, copy=True))) != address(array)
    assert io.from_dlpack(io.to_dlpack([1, 2])).tolist() == [1, 2]
    assert not io.from_dlpack(jnp.arange(3)).flags.writeable
    with pytest.raises(TypeError):
        io.from_dlpack([1, 2])
    copying = hand_capsule.Producer(array, flags=hand_capsule.COPIED)
    with pytest.raises(zarrow.ExchangeError, match="made a copy"):
        io.from_dlpack(copying, copy=False)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6)[::-1],
        np.arange(12).reshape(3, 4)[:, ::2],
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
    ],
)
def test_arrow_copies_noncontiguous_arrays(array):
    taken = io.numpy_to_arrow_zero_copy(array)
    assert io.arrow_to_numpy_zero_copy(taken).tolist() == array.tolist()
    with pytest.raises(zarrow.ExchangeError):
        io.numpy_to_arrow_zero_copy(array, copy=False)


def test_arrow_of_other_types():
    times = np.array(["2026-11-21", "NaT"], "M8[us]")
    taken = io.numpy_to_arrow_zero_copy(times, copy=False)
    assert taken.type == pa.timestamp("us") and taken.null_count == 1
    np.testing.assert_array_equal(io.arrow_to_numpy_zero_copy(taken), times)
    assert io.numpy_to_arrow_zero_copy(np.ma.MaskedArray([1, 2], [0, 1])).to_pylist() == [1, None]
    assert io.numpy_to_arrow_zero_copy(np.array(["a", "bé"])).to_pylist() == ["a", "bé"]
    with pytest.raises(zarrow.ExchangeError):
        io.numpy_to_arrow_zero_copy(np.array(["a", "bé"]), copy=False)
    copied = io.numpy_to_arrow_zero_copy(np.arange(3), copy=True)
    assert copied.to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None, 3]), [1.0, "nan", 3.0]),
        (pa.array([1.5, None]), [1.5, "nan"]),
        (pa.array([1.5, None], pa.float32()), [1.5, "nan"]),
        (pa.array([True, None, False]), [True, None, False]),
        (pa.array(["a", None]), ["a", None]),
        (pa.array([b"a", None]), [b"a", None]),
        (pa.array([1, None], pa.timestamp("s")), [np.datetime64(1, "s"), "nat"]),
        (pa.array([1, None], pa.date32()), [np.datetime64(1, "D"), "nat"]),
        (pa.array([[1, None], [None, None]], pa.list_(pa.int8(), 2)), [[1.0, "nan"], ["nan", "nan"]]),
        (pa.array([True, False]), [True, False]),
        (pa.array(["a", "b"]), ["a", "b"]),
        (pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        (pa.chunked_array([[1], [2]]), [1, 2]),
    ],
    ids=str,
)
def test_numpy_copies_arrow_types_with_another_layout(array, expected):
    def plain(value):
        if isinstance(value, np.ndarray | list):
            return [plain(item) for item in value]
        if isinstance(value, np.datetime64):
            return "nat" if np.isnat(value) else value
        return "nan" if value != value else value

    assert plain(io.arrow_to_numpy_zero_copy(array)) == expected
    with pytest.raises(zarrow.ExchangeError):
        io.arrow_to_numpy_zero_copy(array, copy=False)


def test_no_integer_is_lost_beside_nulls():
    large = pa.array([2**53 + 1, None])
    with pytest.raises(zarrow.ExchangeError, match="53 bits"):
        io.arrow_to_numpy_zero_copy(large)
    assert zarrow.from_arrow(large).data[0].item() == 2**53 + 1
    for fits in ([2**53, None], [-(2**53), None]):
        assert io.arrow_to_numpy_zero_copy(pa.array(fits))[0] == fits[0]
    with pytest.raises(zarrow.ExchangeError):
        io.arrow_to_numpy_zero_copy(pa.array([-(2**63), None]))


def test_numpy_of_arrow_is_as_writable_as_arrow():
    array = pa.array([1, 2, 3])
    shared = io.arrow_to_numpy_zero_copy(array)
    assert not shared.flags.writeable and address(shared) == array.buffers()[1].address
    copied = io.arrow_to_numpy_zero_copy(array, copy=True)
    copied[0] = 9
    assert array.to_pylist() == [1, 2, 3]
    assert io.arrow_to_numpy_zero_copy(pl.Series([1, 2])).tolist() == [1, 2]
    for wrong in (np.arange(3), [1], None):
        for copy in (None, False):
            with pytest.raises(TypeError):
                io.arrow_to_numpy_zero_copy(wrong, copy=copy)
    with pytest.raises(zarrow.ExchangeError):
        io.arrow_to_numpy_zero_copy(pa.array([[1], []]))


def test_zero_copy_arrays():
    array = np.arange(16, dtype="f4").reshape(2, 8)
    shared = io.ZeroCopyArray(array)
    assert (shared.shape, shared.ndim, shared.nbytes, len(shared)) == ((2, 8), 2, 64, 2)
    assert repr(shared) == "ZeroCopyArray(shape=(2, 8), dtype=float32)"
    memoryview(shared)[0, 0] = 5
    assert array[0, 0] == 5 == shared.to_arrow().storage.values[0].as_py() == shared.to_polars()[0][0]
    aligned = io.ZeroCopyArray(zarrow.asarray(array, copy=True))
    theirs = aligned.to_jax()
    assert theirs.unsafe_buffer_pointer() == address(aligned.array)
    gaps = io.ZeroCopyArray(array[:, ::2])
    assert gaps.to_jax().tolist() == array[:, ::2].tolist()
    with pytest.raises(zarrow.ExchangeError):
        gaps.to_jax(copy=False)
    if not jax.config.read("jax_enable_x64"):
        with pytest.raises(zarrow.ExchangeError, match="narrow"):
            io.ZeroCopyArray(np.arange(3)).to_jax()
    series = shared.to_polars()
    assert series.dtype == pl.Array(pl.Float32, 8) and series.to_list() == array.tolist()
    bools = io.ZeroCopyArray(np.array([True, False]))
    assert bools.to_polars().dtype == pl.Boolean
    with pytest.raises(zarrow.ExchangeError):
        bools.to_polars(copy=False)
    constant = io.ZeroCopyArray(memoryview(b"abc"))
    assert memoryview(constant).readonly
    for wrong in (np.ma.zeros(3), ["a", "b"], object(), np.array(["a"], object)):
        with pytest.raises(TypeError):
            io.ZeroCopyArray(wrong)


def test_the_source_outlives_its_views():
    makers = [
        lambda array: io.from_dlpack(io.to_dlpack(array)),
        lambda array: io.numpy_to_arrow_zero_copy(array),
        lambda array: io.arrow_to_numpy_zero_copy(io.numpy_to_arrow_zero_copy(array)),
        lambda array: memoryview(io.ZeroCopyArray(array)),
        lambda array: io.ZeroCopyArray(array).to_numpy(),
        lambda array: io.ZeroCopyArray(array).to_polars(),
        io.to_dlpack,
    ]
    for make in makers:
        array = np.arange(1000.0)
        watch = weakref.ref(array)
        made = make(array)
        del array
        gc.collect()
        assert watch() is not None
        del made
        gc.collect()
        assert watch() is None


# Each helper, and the device of the result; `to_cupy` always copies, to a GPU.
HELPERS = """
    "to_dlpack": lambda array: at(io.from_dlpack(io.to_dlpack(array))),
    "from_dlpack": lambda array: at(io.from_dlpack(array)),
    "numpy_to_arrow_zero_copy": lambda array: io.numpy_to_arrow_zero_copy(array).buffers()[1].address,
    "arrow_to_numpy_zero_copy": lambda array: at(io.arrow_to_numpy_zero_copy(rows(array))),
    "table_to_numpy_zero_copy": lambda array: at(
        io.table_to_numpy_zero_copy(pa.table({"a": rows(array)}), "a")),
    "wrap_for_zero_copy": lambda array: at(io.wrap_for_zero_copy(array).array),
    "ZeroCopyArray": lambda array: at(np.asarray(memoryview(io.ZeroCopyArray(array)))),
    "ZeroCopyArray.__array__": lambda array: at(np.asarray(io.ZeroCopyArray(array))),
    "ZeroCopyArray.__dlpack__": lambda array: at(np.from_dlpack(io.ZeroCopyArray(array))),
    "ZeroCopyArray.__arrow_c_array__": lambda array: pa.array(io.ZeroCopyArray(array)).buffers()[1].address,
    "ZeroCopyArray.to_numpy": lambda array: at(io.ZeroCopyArray(array).to_numpy()),
    "ZeroCopyArray.to_arrow": lambda array: io.ZeroCopyArray(array).to_arrow().buffers()[1].address,
    "ZeroCopyArray.to_dlpack": lambda array: at(io.from_dlpack(io.ZeroCopyArray(array).to_dlpack())),
    "ZeroCopyArray.to_jax": lambda array: io.ZeroCopyArray(array).to_jax().unsafe_buffer_pointer(),
    "ZeroCopyArray.to_polars": lambda array: (
        io.ZeroCopyArray(array).to_polars().to_arrow().buffers()[1].address),
"""
TORCH_HELPERS = """
    "numpy_to_torch_zero_copy": lambda array: io.numpy_to_torch_zero_copy(array).data_ptr(),
    "torch_to_numpy_zero_copy": lambda array: at(io.torch_to_numpy_zero_copy(torch.from_numpy(array))),
    "ZeroCopyArray.to_torch": lambda array: io.ZeroCopyArray(array).to_torch().data_ptr(),
"""
UNTOUCHED = """
import mmap, resource, tracemalloc
import numpy as np
{imports}
from zarrow import io

def at(array):
    return array.ctypes.data

def rows(array):
    return io.numpy_to_arrow_zero_copy(array.reshape(-1, 256))

def memory(nbytes):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, nbytes, flags=flags), "u1")

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

def cost(call, array):
    "Pages that a call touches, of any memory, and bytes that it takes from Python."
    faults, pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, resident()
    tracemalloc.start()
    assert call(array) == at(array)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    touched = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    return touched, resident() - pages, taken

for name, call in {{{helpers}}}.items():
    call(memory(1 << 10))
    # The minimum of several runs, each with new memory, since the libraries' other threads touch memory too.
    for measured, most in zip(zip(*(cost(call, memory(1 << 30)) for _ in range(5))), (16, 16, 1 << 16)):
        assert min(measured) <= most, (name, measured)
    print(name)
"""


def helpers_that_touch_nothing(helpers: str, imports: str) -> set[str]:
    program = UNTOUCHED.format(helpers=helpers, imports=imports)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def helpers_but(torch: bool) -> set[str]:
    """Every helper, with and without PyTorch."""
    methods = {f"ZeroCopyArray.{name}" for name in vars(io.ZeroCopyArray) if name.startswith("to_")}
    every = {*io.__all__, *methods} - {"ZeroCopyArray.to_cupy"}
    return {name for name in every if ("torch" in name) == torch}


def test_a_call_is_the_same_for_a_kibibyte_and_a_gibibyte():
    """The memory is not read, and nothing of its size is allocated: no page of it becomes resident."""
    done = helpers_that_touch_nothing(HELPERS, "import jax, polars, pyarrow as pa")
    assert done >= helpers_but(torch=False)


@pytest.mark.torch
def test_a_call_of_pytorch_is_the_same_for_a_kibibyte_and_a_gibibyte():
    assert helpers_that_touch_nothing(TORCH_HELPERS, "import torch") == helpers_but(torch=True)


@pytest.mark.parametrize(
    ("module", "call", "named"),
    [
        ("torch", lambda: io.numpy_to_torch_zero_copy(np.arange(3)), r"zarrow\[torch\]"),
        ("torch", lambda: io.torch_to_numpy_zero_copy(None), r"zarrow\[torch\]"),
        ("torch", lambda: io.ZeroCopyArray(np.arange(3)).to_torch(), r"zarrow\[torch\]"),
        ("pyarrow", lambda: io.numpy_to_arrow_zero_copy(np.arange(3)), r"zarrow\[arrow\]"),
        ("pyarrow", lambda: io.ZeroCopyArray(np.arange(3)).to_arrow(), r"zarrow\[arrow\]"),
        ("jax", lambda: io.ZeroCopyArray(np.arange(3)).to_jax(), r"zarrow\[jax\]"),
        ("polars", lambda: io.ZeroCopyArray(np.arange(3)).to_polars(), r"zarrow\[polars\]"),
        ("cupy", lambda: io.ZeroCopyArray(np.arange(3)).to_cupy(), "CuPy"),
    ],
)
def test_a_library_that_is_missing_is_named(monkeypatch, module, call, named):
    # Python treats this as a missing module.
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=named) as raised:
        call()
    assert raised.value.name == module


def test_dlpack_needs_only_numpy():
    program = """
        import sys
        for name in ("torch", "pyarrow", "jax", "polars", "ml_dtypes", "cupy"):
            sys.modules[name] = None
        import numpy as np
        from zarrow import io
        array = np.arange(3)
        assert io.from_dlpack(io.to_dlpack(array)).ctypes.data == array.ctypes.data
        assert io.from_dlpack(io.ZeroCopyArray(array)).tolist() == [0, 1, 2]
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)
