"""Pickling, copying and comparing the four layouts."""

from __future__ import annotations

import copy
import itertools
import multiprocessing
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import handwritten
import zarrow
from handwritten import NUMBERS, numbers

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
OTHERS = {
    "datetime64": np.array(["2026-11-21", "NaT"], "M8[D]"),
    "timedelta64": np.array([3, -1], "m8[25us]"),
    "text": np.array(["a", "żółw", ""]),
    "bytes": np.array([b"a", b"longer"]),
    "raw": np.array([b"12345678", b"abcdefgh"], "V8"),
    "int4": np.array([1, -2, 7], ml_dtypes.int4),
}


def there_and_back(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def out_of_band(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
    buffers: list[pickle.PickleBuffer] = []
    return pickle.dumps(value, 5, buffer_callback=buffers.append), buffers


def address(value: Any) -> int:
    return np.frombuffer(value, np.uint8).ctypes.data


def layouts(folder: Any) -> dict[str, Any]:
    return {
        "tensor": zarrow.asarray(np.arange(24.0).reshape(2, 3, 4), copy=True),
        "strings": handwritten.variable(folder / "strings", ["a", "żółw", "", "long" * 9]),
        "bytes": handwritten.variable(folder / "bytes", [b"\0", b"", b"abc"]),
        "masked": handwritten.masked_tensor(folder / "masked", numbers("int16"), numbers("bool")),
        "masked strings": handwritten.masked_variable(folder / "masked-strings", ["a", None, "c"]),
    }


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    return layouts(tmp_path_factory.mktemp("layouts"))


@pytest.fixture
def tensor():
    return zarrow.asarray(np.arange(24.0).reshape(2, 3, 4), copy=True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_layout_pickles(arrays, protocol):
    for array in arrays.values():
        again = there_and_back(array, protocol)
        assert type(again) is type(array) and again.equals(array) and array.equals(again)
        assert again.tolist() == array.tolist() and again.nbytes == array.nbytes
        assert repr(again) == repr(array)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", [*NUMBERS, *OTHERS])
def test_every_type_pickles(name, protocol):
    values = OTHERS[name] if name in OTHERS else numbers(name)
    again = there_and_back(zarrow.from_numpy(values), protocol)
    assert again.dtype == values.dtype and again.numpy().tobytes() == values.tobytes()
    assert not again.readonly and again.equals(zarrow.from_numpy(values))


def test_views_pickle_with_their_layout(tensor):
    faces = [tensor, tensor.T, tensor.transpose(1, 2, 0), tensor[1], tensor[..., 0], tensor[::-1, :, ::2]]
    faces += [tensor[0, 0, 0], tensor[:0], tensor[:, :, None], tensor[:, 1:2].T]
    for face, protocol in itertools.product(faces, PROTOCOLS):
        again = there_and_back(face, protocol)
        assert again.shape == face.shape and again.equals(face)
    assert there_and_back(tensor.T).strides == tensor.T.strides
    assert len(pickle.dumps(tensor[..., 0], 5)) < len(pickle.dumps(tensor, 5)), "what is not seen stays"


def test_buffers_go_out_of_band_where_they_are(tensor, arrays):
    for face in (tensor, tensor.T, tensor[1]):
        data, buffers = out_of_band(face)
        assert len(data) < 200 and [address(buffer) for buffer in buffers] == [face.numpy().ctypes.data]
    words = arrays["masked strings"]
    _, buffers = out_of_band(words)
    parts = [words.data.offsets, words.data.data, words.mask]
    assert [address(buffer) for buffer in buffers] == [part.numpy().ctypes.data for part in parts]
    assert all(memoryview(buffer).readonly for buffer in buffers)


def test_loading_shares_the_buffers(tensor, arrays):
    data, buffers = out_of_band(tensor.T)
    received = [bytearray(buffer) for buffer in buffers]
    again = pickle.loads(data, buffers=received)
    assert again.numpy().ctypes.data == address(received[0]) and not again.readonly
    again.numpy()[3, 2, 1] = -1
    assert np.frombuffer(received[0])[-1] == -1 and tensor[1, 2, 3].item() == 23
    with pytest.raises(BufferError):
        received[0].clear()

    assert pickle.loads(data, buffers=[bytes(buffer) for buffer in buffers]).readonly
    assert pickle.loads(data, buffers=buffers).numpy().ctypes.data == tensor.numpy().ctypes.data

    data, buffers = out_of_band(arrays["strings"])
    received = [bytes(buffer) for buffer in buffers]
    again = pickle.loads(data, buffers=received)
    assert again.data.numpy().ctypes.data == address(received[1])
    # Unaligned offsets are copied.
    odd = memoryview(b"." + received[0])[1:]
    assert pickle.loads(data, buffers=[odd, received[1]]).equals(arrays["strings"])


def test_read_only_stays_read_only(arrays):
    mask = arrays["masked"].mask
    for protocol in PROTOCOLS:
        assert there_and_back(mask, protocol).readonly
        again = there_and_back(arrays["masked"], protocol)
        assert again.mask.readonly and not again.data.readonly


def test_nested_masks_keep_their_levels(tensor):
    levels = [np.array([1, 0, 0, 0], np.uint8), np.array([0, 0, 1, 0], np.uint8)]
    nested = zarrow._zarrow._masked(tensor[0, 0], levels)
    assert nested.tolist() == [None, 1.0, None, 3.0]
    for protocol in PROTOCOLS:
        again = there_and_back(nested, protocol)
        assert again.equals(nested)
        assert [level.tolist() for level in zarrow._zarrow._mask_levels(again)] == [
            level.tolist() for level in levels
        ]


def test_inconsistent_state_is_refused(tensor):
    variable, masked = zarrow._zarrow._variable, zarrow._zarrow._masked
    offsets = np.array([0, 2, 1], np.int64)
    for arguments in (
        (offsets, b"ab", [2], True),
        (offsets[:1], b"ab", [2], True),
        (np.array([0, 3], np.int64), b"ab", [1], True),
        (np.array([0, 1], np.int64), b"\xff", [1], True),
        (np.array([0, 1], np.int64), b"a", [2**63, 2], True),
    ):
        with pytest.raises(ValueError):
            variable(*arguments)
    for levels in ([], [b"\0"], [b"\0" * 24, b"\0"]):
        with pytest.raises(ValueError):
            masked(tensor, levels)
    with pytest.raises(TypeError):
        masked(zarrow, [b"\0"])
    with pytest.raises(TypeError):
        variable(1, 2, [1], True)
    data, buffers = out_of_band(tensor)
    with pytest.raises((TypeError, ValueError)):
        pickle.loads(data, buffers=[bytes(buffers[0])[:-1]])


def test_copies(tensor, arrays):
    for made in (copy.copy(tensor), copy.deepcopy(tensor)):
        assert made.equals(tensor) and made.numpy().ctypes.data != tensor.numpy().ctypes.data
    one, other = copy.deepcopy([tensor, tensor])
    assert one is other
    masked = arrays["masked"]
    made = copy.copy(masked)
    assert made.equals(masked) and made.data.numpy().ctypes.data != masked.data.numpy().ctypes.data
    assert copy.deepcopy(arrays["strings"]) is arrays["strings"]
    view = tensor[:, ::2].T
    assert copy.copy(view).equals(view)


def test_elements_compare_as_in_numpy(tensor, arrays):
    array = tensor.numpy().copy()
    array[0, 0, 0] = 7
    for other in (array, zarrow.from_numpy(array), array.tolist()):
        assert (tensor == other).sum() == 23 and (tensor != other).sum() == 1
        assert type(tensor == other) is np.ndarray
    assert (array == tensor).sum() == 23
    assert (tensor == 3).sum() == 1 and (tensor[:, 0] == tensor[:, :1].reshape(2, 4)).all()
    nan = zarrow.from_numpy(np.array([np.nan]))
    assert not (nan == nan).any() and (nan != nan).all()
    with pytest.raises(ValueError):
        _ = tensor == np.zeros(5)
    same = arrays["masked"] == arrays["masked"]
    assert isinstance(same, np.ma.MaskedArray) and same.all()
    assert (arrays["strings"] == "żółw").tolist() == [False, True, False, False]
    assert not (tensor < tensor).any() and (tensor <= tensor).all()
    for array in arrays.values():
        with pytest.raises(TypeError, match=r"unhashable type.* with axes"):
            hash(array)


def test_equals_tells_whole_arrays_apart(tensor, arrays):
    def changed(**values: Any) -> Any:
        return zarrow.asarray(np.array([1, np.nan, -0.0]) if not values else values["to"])

    assert changed().equals(changed()) and changed().equals(changed(to=[1.0, np.nan, 0.0]))
    for other in ([1.0, np.nan, 1.0], [1.0, np.nan], [[1.0, np.nan, 0.0]], np.float32([1, np.nan, 0])):
        assert not changed().equals(changed(to=other))
    for (name, one), (other_name, other) in itertools.product(arrays.items(), repeat=2):
        assert one.equals(other) == (name == other_name)
    assert not tensor.equals(tensor.numpy()) and not tensor.equals(None)
    masked = arrays["masked"]
    hidden = copy.copy(masked)
    hidden.data.numpy()[hidden.mask.numpy()] = 99
    assert hidden.equals(masked) and not hidden.data.equals(masked.data)
    assert zarrow.from_numpy(OTHERS["datetime64"]).equals(zarrow.from_numpy(OTHERS["datetime64"].copy()))


def test_each_field_of_a_structure_counts():
    fields = np.dtype([("outer", [("a", "f8"), ("b", "i4", (2,))]), ("c", "f4")])

    def structure(a: float, b: int, c: float) -> Any:
        return zarrow.asarray(np.array([((a, (1, b)), c)], fields))

    assert structure(np.nan, 2, np.nan).equals(structure(np.nan, 2, np.nan))
    for other in [(0.0, 2, np.nan), (np.nan, 3, np.nan), (np.nan, 2, 1.0)]:
        assert not structure(np.nan, 2, np.nan).equals(structure(*other))


def test_buffers_that_change_after_loading():
    buffers: list[Any] = []
    stream = pickle.dumps(zarrow.asarray(["a", "bc"]), 5, buffer_callback=buffers.append)
    offsets, data = (bytearray(buffer.raw()) for buffer in buffers)
    loaded = pickle.loads(stream, buffers=[offsets, data])
    offsets[8:16] = np.int64(10**15).tobytes()
    # Elements out of bounds read as empty; NumPy's string lock is always released.
    assert loaded.numpy().tolist() == ["", ""]


def doubled(array: Any) -> Any:
    return zarrow.asarray(array.numpy() * 2) if isinstance(array, zarrow.Tensor) else array


def test_arrays_travel_to_spawned_processes(arrays):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        back = pool.map(doubled, arrays.values())
    assert back[0].equals(doubled(arrays["tensor"]))
    assert all(one.equals(other) for one, other in zip(back[1:], list(arrays.values())[1:], strict=True))


@pytest.fixture(params=["folder", "memory"])
def hierarchy(request, tmp_path):
    store = tmp_path / "store" if request.param == "folder" else zarrow.MemoryStore()
    zarrow.save(store, x=[1, 2, 3], y=[4])
    return zarrow.open(store)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unpickled_nodes_are_opened_again(hierarchy, protocol):
    group, array = there_and_back((hierarchy, hierarchy["x"]), protocol)
    assert group.keys() == ["x", "y"] and array[:].tolist() == [1, 2, 3]
    assert there_and_back(hierarchy["x"].oindex, protocol)[[2, 0]].tolist() == [3, 1]
    array[0] = 9
    # A folder is shared; a store in memory is copied.
    is_folder = hierarchy.store != "memory"
    assert hierarchy["x"][0].item() == (9 if is_folder else 1)
    assert (array == hierarchy["x"]) is is_folder


def test_a_node_keeps_how_it_was_opened(tmp_path, monkeypatch):
    zarrow.save(tmp_path / "store", x=[1, 2, 3])
    monkeypatch.chdir(tmp_path)
    limits = zarrow.DecodeLimits(max_chunk_nbytes=24)
    array = pickle.dumps(zarrow.open("store", mode="r", limits=limits, durability="full")["x"])
    group = pickle.dumps(zarrow.open("store", limits=limits))
    monkeypatch.chdir("/")
    with pytest.raises(zarrow.ReadOnlyError):
        pickle.loads(array)[0] = 1
    zarrow.create_array(tmp_path / "store", "large", data=[1, 2, 3, 4])
    with pytest.raises(zarrow.MetadataError):
        pickle.loads(group)["large"]


def test_nodes_are_the_same_by_store_and_path(hierarchy, tmp_path):
    x = hierarchy["x"]
    assert x == hierarchy["x"] and hash(x) == hash(hierarchy["x"])
    assert x != hierarchy["y"] and x != hierarchy and x != None  # noqa: E711
    differs = x != hierarchy["x"]
    assert not differs
    assert hierarchy == copy.copy(hierarchy) and {hierarchy: 1, x: 2}[x] == 2
    zarrow.save(tmp_path / "another", x=[1, 2, 3])
    assert zarrow.open(tmp_path / "another")["x"] != x
    values = np.array([1, 0, 3])
    assert (x == values).tolist() == (values == x).tolist() == [True, False, True]
    assert (x != values).tolist() == [False, True, False]


def test_a_copy_of_a_node_is_another_handle(hierarchy):
    x = hierarchy["x"]
    other = copy.copy(x)
    other[0] = 7
    other.resize(2)
    assert x[0].item() == 7 and (x.shape, other.shape) == ((3,), (2,))


def first_row(array: Any) -> Any:
    return array[0].item()


def test_workers_that_are_spawned_take_arrays(tmp_path):
    zarrow.save(tmp_path / "store", [5, 6])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(first_row, [zarrow.open(tmp_path / "store")]) == [5]
