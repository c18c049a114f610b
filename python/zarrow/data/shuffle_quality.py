"""How close an order of samples comes to a uniform shuffle."""

from __future__ import annotations

import numpy as np

from zarrow.data.order import Order

# Runs of successive samples that are compared, and the length of each.
_RUNS, _RUN = 16, 512


def quality_of(order: Order) -> float:
    """Compare distances between successive samples with the distances in a uniform shuffle."""
    count = len(order)
    if count < 3:
        return 1.0
    run = min(_RUN, count)
    starts = np.unique(np.linspace(0, count - run, _RUNS).astype(np.int64)).tolist()
    places = [order.places(start, start + run) for start in starts]
    distances = np.sort(np.concatenate([np.abs(np.diff(part)) for part in places])) / count
    # Distances are multiples of 1/count: each is compared on both sides of its step.
    steps = np.arange(len(distances) + 1) / len(distances)
    above = steps[1:] - (1 - (1 - distances) ** 2)
    below = (1 - (1 - np.maximum(distances - 1 / count, 0)) ** 2) - steps[:-1]
    difference = max(float(np.max(above)), float(np.max(below)), 0.0)
    return round(1 - difference, 3)
