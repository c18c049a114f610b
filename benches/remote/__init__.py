"""The remote rows: zarrow beside other readers of one server, which is late, stalls or dies as it is told.

`make bench FLAGS=--remote` runs them and writes docs/remote.md.
"""

from benches.remote.rounds import run

__all__ = ["run"]
