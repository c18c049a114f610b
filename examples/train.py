"""Trains a small model on real maps: it predicts the turbidity of the air in a month from the month before.

`make train` runs it on the data of the demo.
"""

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np
import torch

import zarrow
import zarrow.torch

CROP, BATCH = 32, 16


def write(packages: Path, store: Path) -> zarrow.Array:
    """Write the monthly maps of pvlib (12 x 2160 x 4320) as a Zarr array."""
    import h5py

    with h5py.File(packages / "pvlib/data/LinkeTurbidities.h5") as file:
        maps = np.moveaxis(file["LinkeTurbidity"][:], 2, 0)
    shutil.rmtree(store, ignore_errors=True)
    return zarrow.create_array(store, data=maps, chunks=(12, 270, 270))


def scaled(batch: torch.Tensor) -> torch.Tensor:
    """Return turbidity; the maps count twentieths. A thread of the loader calls this."""
    return batch.float() / 20


def train(maps: zarrow.Array, epochs: int = 3, samples: int = 512) -> list[float]:
    """Train on random crops, and return the mean loss of each epoch."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(8, 1, 3, padding=1)
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    crops = zarrow.torch.Crops(maps, (None, CROP, CROP), samples)  # another place on Earth each time
    loader = zarrow.torch.DataLoader(zarrow.torch.Plan(crops, BATCH), transform=scaled)
    losses = []
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            months = torch.cat([batch, batch[:, :1]], 1)  # December comes before January
            before, after = (part.reshape(-1, 1, CROP, CROP) for part in (months[:, :-1], months[:, 1:]))
            loss = torch.nn.functional.mse_loss(model(before), after)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        stats = loader.stats()
        losses.append(total / len(loader))
        print(
            f"epoch {epoch}: loss {losses[-1]:.4f}, {stats.stalls} stalls, "
            f"first batch after {stats.first_batch_s:.3f} s, {stats.samples / stats.seconds:.0f} samples/s"
        )
    return losses


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, help="folder of the demo's data, to write the maps from")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("store", type=Path, help="array of maps, (month, latitude, longitude)")
    arguments = parser.parse_args()
    maps = (
        write(arguments.packages, arguments.store)
        if arguments.packages
        else zarrow.open_array(arguments.store)
    )
    losses = train(maps, arguments.epochs)
    if not losses[-1] < losses[0]:
        sys.exit("the loss did not fall")


if __name__ == "__main__":
    main()
