"""Writers of frames beside each other, on a local disk: how fast, and how long the producer waits.

`make bench FLAGS=--writers` runs them.
"""

from benches.writers.rounds import run

__all__ = ["run"]
