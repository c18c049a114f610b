"""Appends frames to arrays without keeping the producer waiting.

1. `append` copies frames into memory (`ring.py`) and returns. A thread appends whole write units to the
   arrays, which the engine compresses with all its threads.
2. The thread stores as soon as there is enough to occupy these threads, and otherwise at intervals, so that
   metadata are not written for each frame.
3. An array grows after its chunks are stored (`growth.py`), so that readers see whole appends, even after a
   kill. The arrays of a mapping grow in its order, so that a frame has one index in all: a writer begins with
   equal lengths, and ends if another one appends. The thread computes lower levels of images (`levels.py`).
4. After an error of the store nothing more is stored, since an append that failed may have been stored in
   part. Each further call raises the error.
5. The thread knows the state and not the Writer, which therefore can be collected. The garbage collector may
   run in any thread, even in the one that stores, so that its call does not wait. The exit of the interpreter
   does.
"""

from __future__ import annotations

import atexit
import bisect
import os
import threading
import warnings
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self

from zarrow._zarrow import Array, Group, open
from zarrow.api import waits
from zarrow.api.array_options import Store
from zarrow.errors import LimitError, OutOfMemoryError
from zarrow.ome.downscaling import Method
from zarrow.stream.levels import ImageRing
from zarrow.stream.ring import Ring, check_distinct, check_equal_lengths


class FullError(LimitError):
    """Frames were refused, because the memory of a `Writer` is full; its kind is `"full"`."""

    kind = "full"


class Writer:
    """Appends frames to an array, to all levels of an image, or to several of these at once, in a thread.

    Parameters
    ----------
    arrays
        An array, the group of an OME-Zarr image, or arrays and images by name; also the store or the path of
        one. Each array has equal chunks, and elements of a fixed size. Frames of an image go to its first
        level.
    axis
        The axis that grows; of each array.
    method
        How the lower levels of images are computed, as by `zarrow.ome.pyramid`: "mean", "mode" or "nearest".
        By default as the image's metadata say, else "mean".
    memory_nbytes
        How many bytes of frames may wait. The memory is allocated at once, and used only as far as the store
        falls behind.
    on_full
        What `append` does if they would be more: `"block"` waits until frames are stored, `"raise"` raises a
        `FullError`, and `"drop"` counts the frames in `dropped`.
    interval
        Seconds after which whole write units are stored, even if they are few.

    Raises
    ------
    ValueError
        The memory is smaller than two write units, an array is given twice, an option has an unknown value,
        or the levels of an image were computed by another method.
    ReadOnlyError
        An array cannot be written.
    RuntimeError
        The system starts no thread.
    DataTypeError, UnsupportedError, ShapeError
        An array has text or elements that may be missing, chunks of different shapes, or no such axis; the
        levels of an image do not fit each other; or several arrays differ in length.
    NodeTypeError, MetadataError
        A group is no image, or its metadata are malformed.
    OutOfMemoryError, MemoryError
        The memory cannot be allocated.

    Examples
    --------
    >>> import numpy, zarrow
    >>> from zarrow.stream import Writer
    >>> scan = zarrow.create_group("scan.zarr")
    >>> image = scan.create_array("image", shape=(0, 8, 8), chunks=(4, 8, 8), dtype="f4")
    >>> at = scan.create_array("at", shape=(0,), chunks=(1024,), dtype="f8")
    >>> with Writer({"image": image, "at": at}) as writer:
    ...     for second in range(6):
    ...         writer.append({"image": numpy.ones((8, 8)), "at": second / 10})
    ...     writer.flush()
    6
    >>> at[...].tolist()
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    """

    def __init__(
        self,
        arrays: Array | Group | Store | Mapping[str, Array | Group | Store],
        axis: int = 0,
        *,
        method: Method | None = None,
        memory_nbytes: int = 256 << 20,
        on_full: Literal["block", "raise", "drop"] = "block",
        interval: float = 1.0,
    ) -> None:
        if on_full not in ("block", "raise", "drop"):
            raise ValueError(f"on_full is {on_full!r}, expected 'block', 'raise' or 'drop'")
        if not interval >= 0:
            raise ValueError(f"interval is {interval!r}, expected seconds, such as 1.0")
        given = arrays if isinstance(arrays, Mapping) else {"": arrays}
        self._single = given is not arrays
        try:
            named = {name: _opened(node) for name, node in given.items()}
        except TypeError:
            named = {}
        if not named:
            raise TypeError(f"expected an array of a store, an image, or a mapping of them, got {arrays!r}")
        rings = {
            name: Ring(node, axis) if isinstance(node, Array) else ImageRing(node, axis, method)
            for name, node in named.items()
        }
        check_distinct((name, array) for name, ring in rings.items() for array in ring.arrays)
        check_equal_lengths(rings)
        _allocate(list(rings.values()), memory_nbytes)
        self._rings = rings
        self._on_full = on_full
        self._state = _State(list(rings.values()), interval)
        self._producer = threading.Lock()
        self._dropped = 0
        self._state.start()
        # The thread, or `_open`, keeps the state while frames wait. The error of a thread refers to the calls
        # that raised it, and these to this Writer: a finalizer that kept the state would keep the Writer.
        self._collected = weakref.finalize(self, _collect, weakref.ref(self._state))
        # At exit, `_close_all` waits.
        self._collected.atexit = False

    @property
    def accepted(self) -> int:
        """How many frames `append` took."""
        return self._state.accepted

    @property
    def stored(self) -> int:
        """How many frames are stored in all arrays; lower levels of images may lack some until `flush`."""
        return self._state.stored

    @property
    def dropped(self) -> int:
        """How many frames were dropped because the memory was full."""
        return self._dropped

    def append(self, frames: Any) -> None:
        """Copy one frame, or several along the axis; they are stored later.

        Parameters
        ----------
        frames
            Of a writer of one array: what `numpy.asarray` takes, or an array on a GPU. Of a writer of several
            arrays: a mapping with an equal number of frames for each. Elements are converted as by
            `array.append`. The memory can be changed after the call.

        Raises
        ------
        ShapeError, DataTypeError, OverflowError
            The frames do not fit the array. Nothing was taken.
        FullError
            With `on_full="raise"`: there is no memory for all these frames. Nothing was taken.
        StoreError
            Frames before these could not be stored. `stored` says how many are.
        ValueError
            The writer is closed, or belongs to another process.
        """
        if self._single:
            given = {"": frames}
        elif isinstance(frames, Mapping) and frames.keys() == self._rings.keys():
            given = dict(frames)
        else:
            raise TypeError(
                f"expected a mapping with frames for {', '.join(self._rings)}, got {frames!r:.60}"
            )
        values = [(ring, ring.checked(given[name])) for name, ring in self._rings.items()]
        counts = {found.shape[ring.axis] for ring, found in values}
        if len(counts) != 1:
            raise ValueError(f"expected an equal number of frames for each array, got {sorted(counts)}")
        count, done = counts.pop(), 0
        state = self._state
        state.check()
        with self._producer:
            while done < count:
                step = state.room(count - done, wait=self._on_full == "block")
                if step == 0:
                    if self._on_full == "drop":
                        self._dropped += count
                        return
                    waiting = state.accepted - state.stored
                    advice = "wait by flush()" if state.fits(count) else "append fewer at once"
                    raise FullError(
                        f"{count} frames do not fit into the memory of the writer, where {waiting} frames "
                        f"wait: {advice}, or pass a larger memory_nbytes"
                    )
                for ring, found in values:
                    selection = (slice(None),) * ring.axis + (slice(done, done + step),)
                    ring.put(state.accepted, found[selection])
                state.accept(step)
                done += step

    def flush(self) -> int:
        """Wait until all frames are stored in all levels, also in part of a write unit; return their number.

        These frames survive a kill of the process. To survive a power cut, open the arrays with a
        `durability`.

        Raises
        ------
        StoreError
            Frames could not be stored. `stored` says how many are.
        ValueError
            The writer is closed, or belongs to another process.
        """
        self._state.check()
        return self._state.flush()

    def close(self) -> None:
        """Store all frames, and end the thread. A closed writer can be closed again.

        Ctrl-C ends the wait. The frames are stored nevertheless: close the writer again, or end the
        interpreter, which waits for them.

        Raises
        ------
        StoreError
            Frames could not be stored. `stored` says how many are.
        """
        self._state.close()
        self._collected.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as failed:
            # The error of the block says more.
            if error is None:
                raise
            if failed is not error:
                error.add_note(f"{self!r}: {failed}")

    def __repr__(self) -> str:
        return f"<Writer: {self.accepted} frames, {self.stored} stored, {self.dropped} dropped>"


def _opened(node: Array | Group | Store) -> Array | Group:
    return node if isinstance(node, Array | Group) else open(node, mode="r+")


def _allocate(rings: list[Ring], memory_nbytes: int) -> None:
    def needed(frames: int) -> int:
        return sum(ring.nbytes(frames) for ring in rings)

    if needed(0) > memory_nbytes:
        raise ValueError(
            f"memory_nbytes is {memory_nbytes}, but two write units of each array need {needed(0)} bytes or "
            "more: pass a larger memory_nbytes, or create the arrays with smaller chunks or shards"
        )
    try:
        # The most frames that fit.
        frames = bisect.bisect_right(range(memory_nbytes + 1), memory_nbytes, key=needed) - 1
        for ring in rings:
            ring.allocate(frames)
    except (MemoryError, OverflowError) as error:
        raise OutOfMemoryError(
            f"memory_nbytes is {memory_nbytes}, more than the system has: pass a smaller one"
        ) from error


# The writers that are neither closed nor collected, and those collected before all frames were stored.
_open: set[_State] = set()


@atexit.register
def _close_all() -> None:
    """Wait at exit until the frames of open writers are stored."""
    found = [state for state in _open if state.is_own]
    unstored = [state.abandon() for state in found]
    for state in found:
        state.join()
    # A warning can be an error.
    if any(unstored):
        _warn()


def _collect(reference: weakref.ref[_State]) -> None:
    state = reference()
    if state is not None and state.abandon():
        _warn()


def _warn() -> None:
    warnings.warn("a Writer was not closed: use it in a with block", ResourceWarning, stacklevel=3)


class _State:
    """What the producer and the thread share."""

    def __init__(self, rings: list[Ring], interval: float) -> None:
        self._rings = rings
        self._interval = min(interval, threading.TIMEOUT_MAX)
        self._changed = threading.Condition()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="zarrow-stream", daemon=True)
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._is_raised = False
        self._is_closed = False
        self._is_abandoned = False
        self._is_finished = False
        # How many frames a flush or the end has asked for, and how many are stored with their levels.
        self._wanted = self._flushed = -1
        self.accepted = 0

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()
        _open.add(self)

    def join(self) -> None:
        """Wait until the thread has ended."""
        waits.join(self._thread)

    @property
    def is_own(self) -> bool:
        """Whether this process started the thread, which a fork does not copy."""
        return self._process == os.getpid()

    @property
    def stored(self) -> int:
        """How many frames are stored in all arrays."""
        return min(ring.stored for ring in self._rings)

    def check(self) -> None:
        """Refuse a call if nothing can be stored any more (step 4)."""
        if not self.is_own:
            raise ValueError("the writer belongs to the process that created it: create one in this process")
        self._raise_error()
        if self._is_closed:
            raise ValueError("the writer is closed: create another one")

    def room(self, count: int, *, wait: bool) -> int:
        """Return the number of frames with a free place: all or none, or at least one after waiting."""

        def free() -> int:
            return min(ring.free(self.accepted, count) for ring in self._rings)

        with self._changed:
            while wait and free() == 0 and self._error is None and not self._is_closed:
                waits.wait(self._changed)
            self.check()
            return min(count, free()) if wait or count <= free() else 0

    def fits(self, count: int) -> bool:
        """Return whether there is room for this many frames once all others are stored."""
        return all(count <= ring.most_places for ring in self._rings)

    def accept(self, count: int) -> None:
        """Hand frames that were copied to the thread."""
        with self._changed:
            self.check()
            self.accepted += count
            if self._is_pressing():
                self._changed.notify_all()

    def flush(self) -> int:
        """Wait until the frames accepted so far are stored, and return how many are."""
        with self._changed:
            self._wanted = self.accepted
            return self._wait()

    def close(self) -> None:
        """Accept no more frames, store all, and end the thread."""
        if not self.is_own or self._is_finished:
            return
        self._end()
        with self._changed:
            while self._flushed < self._wanted and self._error is None:
                waits.wait(self._changed)
        waits.join(self._thread)
        self._is_finished = True
        _open.discard(self)
        self._raise_error()

    def abandon(self) -> bool:
        """Let the thread store the frames of a collected Writer; return whether there are any (step 5)."""
        if not self.is_own or self._is_abandoned:
            return False
        is_unstored = self.stored < self.accepted
        self._end()
        with self._changed:
            self._is_abandoned = True
            has_ended = self._error is not None or not self._thread.is_alive()
        if has_ended:
            self._report()
        return is_unstored

    def _end(self) -> None:
        with self._changed:
            self._wanted = self.accepted
            self._is_closed = True
            self._changed.notify_all()

    def _wait(self) -> int:
        wanted = self._wanted
        self._changed.notify_all()
        while self._flushed < wanted and self._error is None:
            waits.wait(self._changed)
        self._raise_error()
        return self.stored

    def _raise_error(self) -> None:
        """Raise the error of the thread, if there is one. Nothing is left to be stored then."""
        if self._error is not None:
            self._is_raised = True
            _open.discard(self)
            # Each `raise` adds to the traceback, which would keep the frames of each call.
            raise self._error.with_traceback(self._traceback)

    def _report(self) -> None:
        """Forget an abandoned writer, and print its error, unless the producer got it."""
        _open.discard(self)
        if self._error is not None and not self._is_raised:
            self._is_raised = True
            found = (type(self._error), self._error, self._traceback, self._thread)
            threading.excepthook(threading.ExceptHookArgs(found))

    def _is_pressing(self) -> bool:
        """Whether frames are stored now, rather than at the end of the interval (step 2)."""
        runs = [(ring, ring.run(self.accepted, everything=False)) for ring in self._rings]
        return (
            self._is_closed
            or self._flushed < self._wanted
            or sum(run * ring.frame_nbytes for ring, run in runs) >= max(ring.enough for ring, _ in runs)
            or any(run and (self._interval == 0 or ring.is_half_full(self.accepted)) for ring, run in runs)
        )

    def _run(self) -> None:
        """Store what waits, until the writer is closed (in the thread)."""
        try:
            for ring in self._rings:
                ring.begin()
            while self._store_next():
                pass
        except BaseException as error:
            with self._changed:
                self._error, self._traceback = error, error.__traceback__
                self._changed.notify_all()
        with self._changed:
            is_abandoned = self._is_abandoned
        if is_abandoned:
            self._report()

    def _store_next(self) -> bool:
        """Store the next runs; return False if the writer is closed, and has stored all."""
        with self._changed:
            self._changed.wait_for(self._is_pressing, self._interval or None)
            accepted, wanted = self.accepted, self._wanted
            if self._is_closed and self._flushed == accepted:
                return False
        for ring in self._rings:
            if count := ring.run(accepted, everything=ring.stored < wanted):
                stored = ring.store(count)
                with self._changed, ring.moving:
                    ring.stored = stored
                    self._changed.notify_all()
                if len(self._rings) > 1:
                    ring.check_alone()
        if self._flushed < wanted <= self.stored:
            for ring in self._rings:
                ring.flush()
            with self._changed:
                self._flushed = wanted
                self._changed.notify_all()
        return True
