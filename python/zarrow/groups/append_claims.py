"""Claims on documents in the cloud, by which writers that append to one dataset take turns without locks.

1. Two appends to the same place would write the same chunks. So before its chunks, an append claims the
   documents of its arrays, and consolidated metadata at the root, as it has read them.
2. A claim is white space at the end of the document, which has no meaning in JSON: other readers see the same
   metadata, also after a kill. It encodes a random number and the process. It is put on the condition that
   the document has not changed since it was read, so that only one writer gets it.
3. The new document replaces the claim. If the write fails, the old document does.
4. A writer that finds a claim on a document that it would change waits, and prepares its write again.
5. While chunks are written, claims are renewed from time to time, with other numbers. A claim that keeps its
   number for `_ABANDONED` seconds is of a killed writer, and is replaced. The kernel says whether a process
   of the same machine has ended: its claim is replaced `_ARRIVAL` seconds after this was noticed.
"""

from __future__ import annotations

import contextlib
import random
import re
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, Self

from zarrow.api import concurrent_calls, waits
from zarrow.api.processes import Process
from zarrow.errors import ZarrowError

# Seconds between renewals, and until a claim counts as abandoned.
_RENEWAL = 30.0
_ABANDONED = 240.0
# Seconds until the last requests of a killed process have arrived. A proxy may hold back a put, and its chunk
# would replace the next writer's. This is twice the silence after which our client gives up an answer.
_ARRIVAL = 10.0
# The longest pause of a waiting writer, in seconds.
_PAUSE = 2.0

# A random number, and the machine, number and start of a process.
_NUMBER = struct.Struct("!8sQIQ")
_BITS = 8 * _NUMBER.size
_AT_THE_END = re.compile(rb"\n([ \t]{%d})\n\Z" % _BITS)


class ClaimedError(Exception):
    """Another writer has claimed documents, with these numbers."""

    def __init__(self, numbers: Iterable[bytes]) -> None:
        super().__init__()
        self.numbers = frozenset(numbers)


def split(document: bytes) -> tuple[bytes, bytes | None]:
    """Return a document without its claim, and the number of the claim."""
    found = _AT_THE_END.search(document)
    return (document, None) if found is None else (document[: found.start()], found[1])


def claimed(document: bytes, number: bytes) -> bytes:
    """Return a document with a claim."""
    return b"\n".join((document, number, b""))


def _new_number() -> bytes:
    process = Process.current()
    number = _NUMBER.pack(secrets.token_bytes(8), process.machine, process.number, process.start)
    return f"{int.from_bytes(number):0{_BITS}b}".translate({ord("0"): " ", ord("1"): "\t"}).encode()


def _process_of(number: bytes) -> Process:
    bits = int(number.replace(b" ", b"0").replace(b"\t", b"1"), 2)
    _, *process = _NUMBER.unpack(bits.to_bytes(_NUMBER.size))
    return Process(*process)


class Turns:
    """The wait for other writers' claims (steps 4 and 5)."""

    def __init__(self) -> None:
        self._tries = 0
        self._first_seen: dict[bytes, float] = {}
        # When their processes were first known to have ended.
        self._ended: dict[bytes, float] = {}

    def abandoned(self) -> frozenset[bytes]:
        """Return the numbers of claims of killed writers."""
        now = time.monotonic()
        return frozenset(
            number
            for number, seen in self._first_seen.items()
            if now - seen >= _ABANDONED or now - self._ended.get(number, now) >= _ARRIVAL
        )

    def wait(self, error: ClaimedError) -> None:
        """Pause before the next attempt."""
        now = time.monotonic()
        self._first_seen = {number: self._first_seen.get(number, now) for number in error.numbers}
        self._ended = {
            number: self._ended.get(number, now)
            for number in error.numbers
            if number in self._ended or _process_of(number).has_ended
        }
        self._tries += 1
        # Of writers that meet, one shall come first.
        time.sleep(random.uniform(0.01, min(0.1 * 2 ** min(self._tries, 10), _PAUSE)))


class Documents(Protocol):
    """Documents of a store, as they were read."""

    def claim(self, key: str, number: bytes) -> bool:
        """Put a claim on a document, or replace the own one; return whether it was as known."""

    def claimed_keys(self) -> Sequence[str]:
        """Return the keys of claimed documents."""

    def release(self, key: str) -> None:
        """Remove the own claim from a document."""


class Claims:
    """The claims of one write, released at the end of the `with` block."""

    def __init__(self, store: Documents, turns: Turns) -> None:
        self._store = store
        self._abandoned = turns.abandoned()
        self._documents: Mapping[str, bytes] = {}
        self._taking: threading.Thread | None = None
        self._renewing: threading.Thread | None = None
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._is_refused = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def begin(self, documents: Mapping[str, bytes], others: Mapping[str, bytes]) -> None:
        """Request claims on documents without active claims of others.

        The write is checked meanwhile, so that claims take no additional round trip.
        """
        self.expect_none(others)
        self._documents = documents
        self._taking = _thread(self._put_each)

    def expect_none(self, others: Mapping[str, bytes]) -> None:
        """Raise `ClaimedError` if a claim of another writer is not abandoned."""
        if numbers := frozenset(others.values()) - self._abandoned:
            raise ClaimedError(numbers)

    def take(self) -> None:
        """Wait for the claims, and renew them until `keep`."""
        if self._taking is None:
            return
        waits.join(self._taking)
        if self._error is not None:
            raise self._error
        if self._is_refused:
            raise ClaimedError(())
        self._renewing = _thread(self._renew)

    def keep(self) -> None:
        """End the renewals: documents are stored next."""
        self._ended.set()
        if self._renewing is not None:
            waits.join(self._renewing)

    def release(self) -> None:
        """Restore claimed documents that were not stored (step 3)."""
        if self._taking is not None:
            waits.join(self._taking)
        self.keep()
        restore = self._store.release
        restores = [partial(_try, partial(restore, key)) for key in self._store.claimed_keys()]
        if restores:
            concurrent_calls.run(restores)

    def _put_each(self) -> None:
        try:
            concurrent_calls.run([partial(self._put, key) for key in self._documents])
        except BaseException as error:
            self._error = error

    def _put(self, key: str) -> None:
        # An error would cancel requests that may have been answered.
        if not self._store.claim(key, _new_number()):
            self._is_refused = True

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWAL):
            # A failure shows when documents are stored.
            with contextlib.suppress(ZarrowError, OSError):
                for key in self._store.claimed_keys():
                    self._put(key)


def _try(function: Callable[[], object]) -> None:
    with contextlib.suppress(ZarrowError, OSError):
        function()


def _thread(function: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=function, name="zarrow-claims", daemon=True)
    thread.start()
    return thread
