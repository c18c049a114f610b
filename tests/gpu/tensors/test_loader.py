"""Batches of a loader on a device: each element crosses once, and no batch changes later."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow
from zarrow import data
from zarrow.errors import DeviceError, ExchangeError

from .conftest import Border, failing

SAMPLES = 96


@pytest.fixture
def group(tmp_path: Path) -> zarrow.Group:
    """Write images and labels of the same samples."""
    random = np.random.default_rng(3)
    group = zarrow.create_group(tmp_path / "set.zarr")
    images = random.integers(0, 255, (SAMPLES, 5, 7)).astype("f4")
    group.create_array("image", data=images, chunks=(8, 5, 7), shards=(32, 5, 7), compressors="zstd")
    group.create_array("label", data=np.arange(SAMPLES, dtype="i8"), chunks=(16,))
    return group


def test_batches_have_the_samples(group: zarrow.Group) -> None:
    images = np.asarray(group["image"])
    loader = data.Loader(data.Plan(group, 20, window_nbytes=2048), device="cuda:0", numbers=True)
    for _ in range(3):
        seen = []
        for batch, numbers in loader:
            assert isinstance(batch["image"], zarrow.gpu.Tensor) and batch["image"].device == "cuda:0"
            assert np.array_equal(batch["image"].cpu().numpy(), images[numbers])
            assert np.array_equal(batch["label"].cpu().numpy(), numbers)
            seen += numbers.tolist()
        assert sorted(seen) == list(range(SAMPLES))


def test_each_byte_crosses_once(group: zarrow.Group, border: Border) -> None:
    loader = data.Loader(data.Plan(group["image"], 20), device="cuda:0")
    batches = list(loader)
    zarrow.gpu.synchronize()
    assert border.to_device == SAMPLES * 5 * 7 * 4 and border.pageable == 0 and border.to_host == 0
    assert sum(len(batch) for batch in batches) == SAMPLES


def test_kept_batches_do_not_change(group: zarrow.Group) -> None:
    images = np.asarray(group["image"])
    loader = data.Loader(
        data.Plan(group["image"], 8, window_nbytes=1024), memory_nbytes=1, numbers=True, device="cuda:0"
    )
    kept = [pair for _ in range(4) for pair in loader]
    for batch, numbers in kept:
        assert np.array_equal(batch.cpu().numpy(), images[numbers])


def test_the_consumer_calls_the_transform(group: zarrow.Group) -> None:
    threads = set()

    def halves(batch: Any) -> Any:
        threads.add(threading.get_ident())
        assert isinstance(batch, zarrow.gpu.Tensor)
        return batch[::2]

    loader = data.Loader(data.Plan(group["image"], 20), device="cuda:0", transform=halves, trace=True)
    assert [len(batch) for batch in loader] == [10, 10, 10, 10, 8]
    assert threads == {threading.get_ident()} and loader.stats().transform_s > 0


def test_an_error_of_the_transform_ends_the_iteration(group: zarrow.Group) -> None:
    loader = data.Loader(data.Plan(group["image"], 20), device="cuda:0", transform=lambda batch: 1 / 0)
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        next(iter(loader))
    assert threading.active_count() <= before
    assert loader.state_dict()["step"] == 0


def test_what_has_no_place_there_is_refused(group: zarrow.Group, tmp_path: Path) -> None:
    plan = data.Plan(group["image"], 20)
    with pytest.raises(DeviceError):
        data.Loader(plan, device="cuda:99")
    text = zarrow.create_array(tmp_path / "text.zarr", data=np.array(["a", "bcd"], object), dtype="string")
    with pytest.raises(ExchangeError, match="which have no tensors on a GPU"):
        data.Loader(data.Plan(text, 1), device="cuda:0")


@pytest.mark.parametrize("function", ["cuMemcpyHtoDAsync_v2", "cuMemAllocFromPoolAsync"])
def test_a_failure_of_the_device_reaches_the_consumer(group: zarrow.Group, function: str) -> None:
    loader = data.Loader(data.Plan(group["image"], 20), device="cuda:0")
    with failing(function), pytest.raises(DeviceError):
        list(loader)
    assert sum(len(batch) for batch in loader) == SAMPLES


def test_tensors_of_pytorch(group: zarrow.Group) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU here")
    import zarrow.torch

    images = np.asarray(group["image"])
    loader = zarrow.torch.DataLoader(
        data.Plan(group, 20), device="cuda:0", numbers=True, transform=lambda batch: batch["image"] * 2
    )
    # A stream of the consumer, which other streams do not wait for.
    side = torch.cuda.Stream()
    kept = []
    with torch.cuda.stream(side):
        for _ in range(20):
            for batch, numbers in loader:
                assert batch.device == torch.device("cuda:0")
                torch.cuda._sleep(1_000_000)
                kept.append((batch.sum((1, 2)), numbers))
    torch.cuda.synchronize()
    for sums, numbers in kept:
        assert np.array_equal(sums.cpu().numpy(), images[numbers].sum((1, 2)) * 2)
    with pytest.raises(ValueError, match="num_workers=0 with device="):
        zarrow.torch.DataLoader(data.Plan(group, 20), device="cuda:0", num_workers=2)
