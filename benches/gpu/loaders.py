"""`python -m benches.gpu.loaders`: batches on the GPU, by zarrow and by worker processes of PyTorch.

Each row is an epoch of images in shuffled order. The workers read by zarr-python, with its fused pipeline;
their batches are pinned and copied as PyTorch recommends. "A model" computes on each batch, as training does.
"""

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils.data
import zarr

import zarrow
import zarrow.torch
from benches import machine

SHAPE, CHUNK, BATCH = (16384, 128, 128), 16, 64
WORKERS = 8
FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"

Epoch = Callable[[], Iterator[Any]]


def write(folder: Path) -> Path:
    """Write the images: 1 GiB, 16 to a chunk, compressed by zstd."""
    path = folder / "images.zarr"
    if not path.exists():
        part = folder / "part.zarr"
        shutil.rmtree(part, ignore_errors=True)
        values = np.random.default_rng(5).integers(0, 1000, SHAPE).astype("f4")
        values[:, 0, 0] = np.arange(SHAPE[0])
        zarrow.create_array(part, data=values, chunks=(CHUNK, *SHAPE[1:]), compressors="zstd")
        part.rename(path)
    return path


class Images:
    """Samples by zarr-python; each worker opens the array."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.array: Any = None

    def __len__(self) -> int:
        return SHAPE[0]

    def __getitem__(self, number: int) -> Any:
        if self.array is None:
            zarr.config.set({"codec_pipeline.path": FUSED})
            self.array = zarr.open_array(self.path, mode="r")
        return self.array[number]


def workers(path: Path) -> Epoch:
    """Batches of worker processes, pinned and copied."""
    images: Any = Images(path)
    loader = torch.utils.data.DataLoader(
        images, BATCH, shuffle=True, num_workers=WORKERS, pin_memory=True, persistent_workers=True
    )
    return lambda: (batch.to("cuda:0", non_blocking=True) for batch in loader)


def on_device(path: Path) -> Epoch:
    """Batches that zarrow copies."""
    plan = zarrow.torch.Plan(zarrow.open_array(path), BATCH, window_nbytes=64 << 20)
    loader = zarrow.torch.DataLoader(plan, device="cuda:0")
    return lambda: iter(loader)


def copied(path: Path) -> Epoch:
    """Batches in pageable memory, which PyTorch copies."""
    plan = zarrow.torch.Plan(zarrow.open_array(path), BATCH, window_nbytes=64 << 20)
    loader = zarrow.torch.DataLoader(plan)
    return lambda: (batch.to("cuda:0") for batch in loader)


def model(batches: Iterator[Any]) -> tuple[float, float]:
    """Train on an epoch; return its seconds, and the seconds that the loop waited for batches."""
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 32, 3, 2), torch.nn.Flatten(),
        torch.nn.LazyLinear(1),
    ).to("cuda:0")  # fmt: skip
    optimizer = None
    began, waited = time.perf_counter(), 0.0
    while True:
        called = time.perf_counter()
        batch = next(batches, None)
        waited += time.perf_counter() - called
        if batch is None:
            break
        loss = layers(batch[:, None] / 1000).square().mean()
        optimizer = optimizer or torch.optim.SGD(layers.parameters(), 1e-4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return time.perf_counter() - began, waited


def drain(batches: Iterator[Any]) -> float:
    """Take an epoch, check that it has all samples, and return its seconds."""
    began, seen = time.perf_counter(), []
    for batch in batches:
        seen.append(batch[:, 0, 0].clone())
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    assert torch.cat(seen).sort().values.cpu().tolist() == list(range(SHAPE[0]))
    return seconds


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benches.gpu.loaders", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("/dev/shm/zarrow-bench-gpu"))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    path = write(arguments.data)
    loaders = {
        "zarrow, device=": on_device(path),
        "zarrow, then torch.to": copied(path),
        f"{WORKERS} workers, zarr-python fused": workers(path),
    }
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in loaders}
    for round_number in range(arguments.rounds + 1):
        for name, epoch in loaders.items():
            figures = (drain(epoch()), *model(epoch()))
            if round_number:  # the first one warms up
                times[name].append(figures)
    print(*(f"{key}: {value}" for key, value in (machine.describe() | machine.versions()).items()), sep="\n")
    print("\n| | samples/s | with a model | waited for batches |\n|---|---|---|---|")
    for name, found in times.items():
        plain, trained, waited = (float(np.median(column)) for column in zip(*found, strict=True))
        share = 100 * waited / trained
        print(f"| {name} | {SHAPE[0] / plain:,.0f} | {SHAPE[0] / trained:,.0f} | {share:.0f} % |")


if __name__ == "__main__":
    main()
