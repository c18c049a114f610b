"""PyTorch: one address, writes through, and refusals."""

from __future__ import annotations

import gc
import hashlib
import mmap
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr
from zarr.codecs import ZstdCodec

import handwritten
import zarrow
from handwritten import NUMBERS, numbers

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

# Types that PyTorch lacks.
WITHOUT = {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}


def memory_in_use():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * mmap.PAGESIZE


@pytest.fixture
def tensor(tmp_path):
    return handwritten.tensor(tmp_path, np.arange(24, dtype=np.float32).reshape(4, 6))


@pytest.mark.parametrize("name", [name for name in NUMBERS if name not in WITHOUT])
def test_every_type_is_shared(tmp_path, name):
    ours = handwritten.tensor(tmp_path, numbers(name))
    for theirs in (ours.torch(), torch.from_dlpack(ours), ours.to_torch()):
        assert theirs.data_ptr() == ours.numpy().ctypes.data
        assert tuple(theirs.shape) == ours.shape and str(theirs.dtype).removeprefix("torch.") == name
    shared = ours.torch()
    back = shared.view(torch.uint8) if name.startswith(("bf", "float8")) else shared
    assert back.numpy().tobytes() == numbers(name).tobytes()


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_types_that_pytorch_refuses_are_released(tmp_path, name):
    before = memory_in_use()
    for _ in range(100):
        tensor = handwritten.tensor(tmp_path, np.zeros(1 << 20, numbers(name).dtype))
        with pytest.raises(BufferError, match="Unsupported"):
            tensor.torch()
    assert memory_in_use() - before < 20 << 20


def test_a_device_and_a_type_are_pytorchs():
    tensor = zarrow.asarray(VALUES.copy())
    assert tensor.torch(device="cpu").data_ptr() == tensor.torch().data_ptr()
    assert tensor.torch(dtype=torch.float16).dtype == torch.float16
    assert tensor.torch(device="meta", dtype=torch.int8).is_meta
    for dtype in ("float64", "f8", np.float64, np.dtype(">f8"), "double", float, "torch.float64"):
        assert tensor.torch(dtype=dtype).dtype == tensor.to_torch(dtype=dtype).dtype == torch.float64
    assert (
        tensor.torch(dtype="bfloat16").dtype == torch.bfloat16 and tensor.torch(dtype="?").dtype == torch.bool
    )
    for dtype in ("nonsense", "U3", 3, "torch.float", "float128"):
        with pytest.raises(zarrow.DataTypeError, match="expected a number type that PyTorch has"):
            tensor.torch(dtype=dtype)


def test_reads_as_a_type_of_pytorch(tmp_path):
    array = zarrow.create_array(tmp_path / "x.zarr", data=VALUES)
    assert array.read(dtype=torch.float32).torch().dtype == torch.float32
    assert array.read(dtype=torch.bfloat16).torch().dtype == torch.bfloat16
    with pytest.raises(zarrow.errors.DataTypeError, match="cannot be read as"):
        array.read(dtype=torch.bool)


def test_without_pytorchs_c_functions():
    code = """
import pathlib, sys, tempfile, numpy, torch, zarrow
sys.path.insert(0, sys.argv[1])
import handwritten
torch.Tensor.__dlpack_c_exchange_api__ = None
tensor = handwritten.tensor(pathlib.Path(tempfile.mkdtemp()), numpy.arange(6.0))
assert tensor.torch().data_ptr() == tensor.numpy().ctypes.data and tensor.torch()[5] == 5
"""
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], check=True)


def test_writes_show_everywhere(tensor):
    theirs = tensor.torch()
    theirs[1, 2] = 999
    assert tensor.numpy()[1, 2] == 999 and tensor[1, 2].item() == 999
    del tensor
    gc.collect()
    assert theirs[1, 2] == 999


def test_views(tensor):
    view = tensor[1:, ::2].T
    theirs = view.torch()
    assert theirs.data_ptr() == view.numpy().ctypes.data and theirs.tolist() == view.tolist()
    assert theirs.stride() == tuple(stride // 4 for stride in view.strides)
    with pytest.raises(BufferError, match=r"\.copy\(\)"):
        tensor[::-1].torch()
    assert tensor[::-1].copy().torch()[0].tolist() == tensor[3].tolist()


def test_read_only_memory_is_refused(tmp_path):
    offsets = handwritten.variable(tmp_path, ["a", "b"]).offsets
    with pytest.raises(BufferError, match="read-only"):
        offsets.torch()
    assert offsets.copy().torch().tolist() == [0, 1, 2]


def test_copies(tensor):
    theirs = torch.from_dlpack(tensor, copy=True)
    assert theirs.data_ptr() != tensor.numpy().ctypes.data


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8"])
def test_asarray_drops_no_shape_and_no_type(dtype):
    """PyTorch requests the bytes of the buffer protocol, and flattens them to one axis."""
    square, flat = zarrow.asarray(np.ones((2, 3), dtype)), zarrow.asarray(np.ones(6, dtype))
    for options in ({}, {"dtype": torch.float32}):
        with (
            pytest.warns(zarrow.ZarrowWarning, match=r"tensor\.torch\(\)"),
            pytest.raises((RuntimeError, ValueError)),
        ):
            torch.asarray(square, **options)
        assert hashlib.sha256(square).digest() == hashlib.sha256(bytes(square)).digest()
    shared = torch.asarray(flat)
    assert shared.data_ptr() == flat.numpy().ctypes.data and shared.dtype == flat.torch().dtype


def test_0d_and_empty(tmp_path):
    scalar = handwritten.tensor(tmp_path / "scalar", np.array(7, dtype=np.int64))
    assert scalar.torch().item() == 7
    empty = handwritten.tensor(tmp_path / "empty", np.zeros((3, 0), dtype=np.float32))
    assert tuple(empty.torch().shape) == (3, 0)


def test_masked_is_refused(tmp_path):
    masked = handwritten.masked_tensor(tmp_path, np.arange(3, dtype=np.int8), np.array([True, False, False]))
    for refused in (masked.torch, lambda: torch.from_dlpack(masked)):
        with pytest.raises(BufferError, match=r"\.filled\(value\)"):
            refused()
    assert masked.data.torch().tolist() == [0, 1, 2] and masked.filled(9).torch().tolist() == [9, 1, 2]
    with pytest.raises(BufferError):
        masked.mask.torch()


VALUES = np.random.default_rng(4).integers(0, 2**15, (64, 48), dtype=np.int32)


@pytest.fixture(scope="module")
def array(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch")
    zarr.create_array(folder, shape=(64, 48), chunks=(10, 20), dtype="i4", compressors=ZstdCodec())[:] = (
        VALUES
    )
    return zarrow.open(folder)


@pytest.mark.parametrize(
    "view",
    [
        lambda memory: memory[:64, :48],
        lambda memory: memory[1:65, 3:51],
        lambda memory: memory[:96:2, :48].as_strided((64, 48), (2, 130)),
        lambda memory: memory[:48, :64].T,
        lambda memory: memory.view(-1)[7 : 7 + 64 * 48].view(64, 48),
    ],
    ids=["rows", "inside", "strides of its own", "transposed", "flat"],
)
def test_reads_into_a_tensor(array, view):
    memory = torch.full((128, 130), -1, dtype=torch.int32)
    out = view(memory)
    rest = torch.ones_like(memory, dtype=torch.bool)
    view(rest)[...] = False
    assert array.read(out=out) is out
    np.testing.assert_array_equal(out.numpy(), VALUES)
    assert (memory[rest] == -1).all()


@pytest.mark.parametrize("name", [name for name in NUMBERS if name not in WITHOUT])
def test_reads_into_every_type(tmp_path, name):
    handwritten.tensor(tmp_path, numbers(name))
    out = torch.zeros((4, 6), dtype=getattr(torch, name))
    zarrow.open(tmp_path).read(out=out)
    assert zarrow.open(tmp_path)[...].torch().view(torch.uint8).tolist() == out.view(torch.uint8).tolist()


def test_batches_into_a_tensor(array):
    out = torch.zeros((3, 5, 48), dtype=torch.int32)
    batch = zarrow.read_many([(array, np.s_[start : start + 5]) for start in (0, 59, 3)], out=out)
    assert batch is out
    np.testing.assert_array_equal(out.numpy(), np.stack([VALUES[start : start + 5] for start in (0, 59, 3)]))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: torch.zeros((64, 47), dtype=torch.int32), ValueError),
        (lambda: torch.zeros((64, 48)), TypeError),
        (lambda: torch.zeros(48, dtype=torch.int32).expand(64, 48), ValueError),
        (lambda: torch.zeros((64, 48), dtype=torch.int32, device="meta"), BufferError),
    ],
)
def test_unwritable_memory_is_refused(array, make, error):
    with pytest.raises(error):
        array.read(out=make())


def test_a_tensor_with_a_history_is_refused(tmp_path):
    handwritten.tensor(tmp_path, numbers("float32"))
    out = torch.zeros((4, 6), requires_grad=True)
    with pytest.raises(BufferError):
        zarrow.open(tmp_path).read(out=out)
    zarrow.open(tmp_path).read(out=out.detach())
    assert out.tolist() == numbers("float32").tolist()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_pinned_memory_and_the_gpus_own(array):
    out = torch.empty((64, 48), dtype=torch.int32, pin_memory=True)
    array.read(out=out)
    assert out.is_pinned() and out.to("cuda", non_blocking=True).cpu().tolist() == VALUES.tolist()
    with pytest.raises(BufferError, match="host memory"):
        array.read(out=torch.empty((64, 48), dtype=torch.int32, device="cuda"))


def test_writes_to_a_map_stay_here(tmp_path):
    values = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)
    zarr.create_array(tmp_path, shape=(512, 512), chunks=(128, 512), dtype="f4", compressors=None)[:] = values
    array = zarrow.open(tmp_path)
    ours = array.read(mmap=True)
    theirs = ours.torch()
    assert ours.is_mapped and theirs.data_ptr() == ours.numpy().ctypes.data
    theirs.mul_(2)
    del ours
    gc.collect()
    np.testing.assert_array_equal(theirs.numpy(), values * 2)
    np.testing.assert_array_equal(array.read(mmap=True).numpy(), values)
    np.testing.assert_array_equal(array[...].numpy(), values)


class Rows(torch.utils.data.Dataset):
    """Rows of an array that the parent has open and has read from."""

    def __init__(self, array):
        self.array = array

    def __len__(self):
        return len(self.array)

    def __getitem__(self, row):
        return row, self.array[row].torch()


class Batches(Rows):
    """One batch at a time."""

    def __getitem__(self, rows):
        return torch.tensor(rows), zarrow.read_many([(self.array, row) for row in rows]).torch()


@pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")
@pytest.mark.filterwarnings("ignore:.*use of fork\\(\\) may lead to deadlocks:DeprecationWarning")
@pytest.mark.parametrize("dataset", [Rows, Batches])
def test_a_data_loader_with_forked_workers(array, dataset):
    np.testing.assert_array_equal(array[...].numpy(), VALUES)
    arguments = {"num_workers": 4, "multiprocessing_context": "fork", "timeout": 60}
    rows = dataset(array)
    if dataset is Rows:
        arguments |= {"batch_size": 8, "shuffle": True}
    else:
        sampler = torch.utils.data.RandomSampler(range(64))
        arguments |= {
            "sampler": torch.utils.data.BatchSampler(sampler, 8, drop_last=False),
            "batch_size": None,
        }
    loader = torch.utils.data.DataLoader(rows, **arguments)
    for _ in range(20):
        seen = []
        for numbers_of_rows, batch in loader:
            assert batch.shape == (8, 48)
            np.testing.assert_array_equal(batch.numpy(), VALUES[numbers_of_rows.numpy()])
            seen += numbers_of_rows.tolist()
        assert sorted(seen) == list(range(64))


@pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")
@pytest.mark.filterwarnings("ignore:.*use of fork\\(\\) may lead to deadlocks:DeprecationWarning")
def test_forked_workers_of_a_data_loader_read_from_s3():
    boto3 = pytest.importorskip("boto3")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        secrets = {"aws_access_key_id": "tests", "aws_secret_access_key": "tests", "region_name": "us-east-1"}
        boto3.client("s3", endpoint_url=endpoint, **secrets).create_bucket(Bucket="tests")
        kwargs = {"endpoint_url": endpoint, "region_name": "us-east-1"}
        options = {"key": "tests", "secret": "tests", "client_kwargs": kwargs}
        url = "s3://tests/rows.zarr"
        zarrow.save(url, VALUES, storage_options=options)
        array = zarrow.open(url, storage_options=options)
        # The parent has threads and connections before the workers are forked.
        np.testing.assert_array_equal(array[...].numpy(), VALUES)
        loader = torch.utils.data.DataLoader(
            Rows(array), num_workers=2, multiprocessing_context="fork", timeout=60, batch_size=8, shuffle=True
        )
        for _ in range(3):
            seen = []
            for numbers_of_rows, batch in loader:
                np.testing.assert_array_equal(batch.numpy(), VALUES[numbers_of_rows.numpy()])
                seen += numbers_of_rows.tolist()
            assert sorted(seen) == list(range(64))
        np.testing.assert_array_equal(array[3].numpy(), VALUES[3])
    finally:
        server.stop()
