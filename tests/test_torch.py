"""PyTorch: one address, writes through, and what it cannot share is refused."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import handwritten
from handwritten import NUMBERS, numbers

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

# What PyTorch has no type for.
WITHOUT = {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}


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
    assert torch.asarray(tensor).data_ptr() == tensor.numpy().ctypes.data


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
