"""The remote rows: zarrow and other readers of one server with programmed delays, stalls and failures.

`make bench FLAGS=--remote` runs them and writes docs/remote.md.
"""

from benches.remote.rounds import run

__all__ = ["run"]
