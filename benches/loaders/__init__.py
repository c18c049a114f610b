"""Loaders of samples for training, beside each other: from a folder, and from S3 on loopback with 30 ms.

`make bench FLAGS=--loaders` runs them, and draws build/bench/loaders.svg.
"""

from benches.loaders.rounds import run

__all__ = ["run"]
