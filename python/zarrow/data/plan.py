"""The plan of an epoch: which samples there are, in which order, and how they are read.

A plan is a pure function of seed and epoch. It has no elements and no open files, and pickles by its arrays.
"""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrow._zarrow import Array, _StageTimes
from zarrow.data.cache_size import CacheSize
from zarrow.data.crops import Crops
from zarrow.data.description import Description
from zarrow.data.fields import Fields, Sources, sources_of
from zarrow.data.nodes import SOLE
from zarrow.data.order import Order, Ordering
from zarrow.data.overlapping_samples import Spans, crops_apart
from zarrow.data.permutation import Numbers, key, mixed
from zarrow.data.rank_schedule import LASTS, Last, Ranges, Schedule
from zarrow.data.shuffle_quality import quality_of
from zarrow.data.sources import Source
from zarrow.data.subset import Subset
from zarrow.data.windows import Windows
from zarrow.hints.parameters import says_parameters

_READS_COUNTED = 12

# Limits of a small window, which takes some 40 ms to decode. Counting its chunks takes little time.
_SMALL_NBYTES, _SMALL_SAMPLES = 64 << 20, 4096

# A sample of a read takes memory for its number and its selection, and one of a block for its place.
_MOST_SAMPLES, _MOST_OF_BLOCK = 1 << 18, 1 << 22


@says_parameters
class Plan:
    """The samples of one or several arrays in the order of an epoch: shuffled, unless `order="sequential"`.

    Parameters
    ----------
    sources
        An array or a group, or the path of one, sampled along the first axis; `Rows`, `Windows` or `Crops` of
        an array; or a dict, list or tuple of several, which are read together. Sample `i` of a batch is
        sample `i` of each. Of AnnData: a sparse matrix by rows, a table, or a column of one. Categories come
        as their codes.
    batch_size
        Samples of a batch, on each rank.
    fields
        Names of a group's arrays, or of the sources in a dict: a list for batches that are tuples in this
        order, a dict from other names to these names for batches that are dicts, or one name for batches
        without a name. By default all.
    order
        `"window"` takes blocks of samples that share chunks in random order, and shuffles the samples of as
        many blocks as `window_nbytes` holds. Each chunk is decoded once, except at the ends of windows, if
        samples span chunks. `"shuffle"` permutes all samples: chunks are decoded anew for each part of
        `window_nbytes`. `"sequential"` keeps the stored order.
    window_nbytes
        Bytes of samples that are read and shuffled together, at most 262,144 samples, but all of a chunk. A
        string counts as 64 bytes, and a sparse row as an average one. Crops and windows of one chunk that
        have more bytes are shuffled together, and read in parts.
    last
        The end of an epoch. `"share"`: the last batches are smaller, on all ranks. `"pad"`: samples repeat
        until all batches are full. `"drop"`: the samples that fill no batch on all ranks are left out.
        `"pad_ranks"`, `"drop_ranks"`: as PyTorch's `DistributedSampler`, samples repeat, or are left out,
        until all ranks have equally many, and the last batches are smaller.
    seed
        Another seed gives another order, and other random crops.

    Raises
    ------
    ValueError
        The sources have different numbers of samples, or an argument is out of range.
    NotFoundError
        A field is missing.
    UnsupportedError
        A sparse matrix is stored by columns.
    MetadataError
        The arrays of a sparse matrix or of a column do not fit together.

    Examples
    --------
    >>> import zarrow
    >>> from zarrow import data
    >>> temperature = zarrow.open("data.zarr")["temperature"]
    >>> plan = data.Plan(temperature, batch_size=8)
    >>> len(plan), plan.numbers(epoch=0).tolist() == plan.numbers(epoch=1).tolist()
    (48, False)
    >>> training, validation = plan.split(0.75, 0.25)
    >>> len(training), len(validation)
    (36, 12)
    >>> for weight, kind in data.Loader(data.Plan("cells.zarr", 2, fields=["weight", "kind"])):
    ...     print(weight.shape, kind.dtype)
    (2,) int8
    (2,) int8
    """

    def __init__(
        self,
        sources: Sources,
        batch_size: int = 32,
        *,
        fields: Fields | None = None,
        order: Ordering = "window",
        window_nbytes: int = 64 << 20,
        last: Last = "share",
        seed: int = 0,
    ) -> None:
        batch_size, window_nbytes, seed = map(operator.index, (batch_size, window_nbytes, seed))
        if not 1 <= batch_size < 1 << 48:
            raise ValueError(f"batch_size is a number of samples, 1 or more, found {batch_size}")
        if window_nbytes < 0:
            raise ValueError(f"window_nbytes must not be negative, found {window_nbytes}")
        if order not in ("sequential", "shuffle", "window"):
            raise ValueError(f'order must be "sequential", "shuffle" or "window", found {order!r}')
        if last not in LASTS:
            raise ValueError(f"last must be one of {', '.join(LASTS)}, found {last!r}")
        self.sources, self._is_tuple = sources_of(sources, fields)
        self.batch_size, self.order, self.last, self.seed = batch_size, order, last, seed
        self._count = _common_count(self.sources, has_names=not self._is_tuple)
        self._subset = Subset.whole(self._count)
        # The main source sets the order of places and the blocks: crops if there are any, or the largest.
        main = max(
            self.sources.values(), key=lambda source: (isinstance(source, Crops), source.sample_nbytes)
        )
        self._numbers = main._numbers
        size, phase = main._blocks()
        self._size = min(size, _MOST_OF_BLOCK)
        self._phase = phase % self._size
        samples = min(max(window_nbytes // max(self.sample_nbytes, 1), 1), _MOST_SAMPLES)
        batch = min(batch_size, self._count)
        # The batch size is not part of the order, so that a state resumes with another one.
        if order == "shuffle" or self._size == 1:
            self._slots, self._load_samples = samples, max(samples, batch)
        else:
            self._slots = max(samples // self._size, 1)
            # A block may have far more bytes than its chunks, if samples share elements: it is read in parts.
            most = max(samples, main._covering(self._size))
            self._load_samples = max(min(self._slots * self._size, most), batch)

    def __len__(self) -> int:
        """Return the number of samples of an epoch."""
        return len(self._subset)

    def __repr__(self) -> str:
        return (
            f"<zarrow.data.Plan of {len(self)} samples, batch_size {self.batch_size}, order {self.order!r}>"
        )

    @property
    def sample_nbytes(self) -> int:
        """Bytes of one sample of all sources."""
        return sum(source.sample_nbytes for source in self.sources.values())

    @property
    def load_samples(self) -> int:
        """Largest number of samples of one read."""
        return self._load_samples

    @property
    def fingerprint(self) -> str:
        """A hash of what determines the order: equal plans have the same sample at each position."""
        shapes = [
            (name, *source._definition(), source.sample_shape)
            for name, source in sorted(self.sources.items())
        ]
        runs = self._subset.starts.tobytes().hex() + self._subset.stops.tobytes().hex()
        places = b"" if self._numbers is None else self._numbers.tobytes()
        order = (self.order, self._size, self._phase, self._slots, self.seed)
        return f"{key(self._count, shapes, runs, places.hex(), order):016x}"

    def _batch(self, samples: Mapping[str, Any]) -> Any:
        """Return the samples of all sources as a batch: without names, as a tuple, or as a dict."""
        if set(samples) == {SOLE}:
            return samples[SOLE]
        ordered = {name: samples[name] for name in self.sources}
        return tuple(ordered.values()) if self._is_tuple else ordered

    def ordered(self, epoch: int) -> Order:
        """Return the order of an epoch."""
        return Order(self._subset, self.order, self._size, self._phase, self._slots, self.seed, epoch)

    def numbers(self, epoch: int = 0) -> Numbers:
        """Return the numbers of all samples in the order of an epoch, as 8 bytes each."""
        return self.numbers_at(self.ordered(epoch).places(0, len(self)))

    def numbers_at(self, places: Numbers) -> Numbers:
        """Return the numbers of samples at places."""
        return places if self._numbers is None else self._numbers[places]

    def places_by_number(self, ranks: Numbers) -> Numbers:
        """Return the places of the samples with the k-th least numbers, for each k of `ranks`."""
        if self._numbers is None:
            return self._subset[ranks]
        places = self._subset.places()
        return places[np.argsort(self._numbers[places], kind="stable")][ranks]

    def schedule(self, world: int = 1, ranges: Ranges | None = None) -> Schedule:
        """Return the batches of each rank: of a whole epoch, or of the rest of one."""
        whole = ((0, len(self)),) if len(self) else ()
        schedule = Schedule(whole if ranges is None else ranges, world, self.batch_size, self.last)
        if ranges is None and not schedule.steps:
            raise ValueError(
                f"{len(self)} samples fill no batch of {self.batch_size} on each of {world} ranks: pass "
                'last="pad"'
            )
        return schedule

    def loads(self, epoch: int, ranges: Ranges, first: int = 0) -> Iterator[Numbers]:
        """Yield the places that are read together, for ranges of positions.

        The first read is limited to `first` samples if it is given, so that the first batch is early.
        """
        order = self.ordered(epoch)
        parts: list[Numbers] = []
        for start, stop in ranges:
            while start < stop:
                cut = min(stop, order.cut_after(start), start + self._load_samples)
                if first:
                    cut, first = min(cut, start + first), 0
                    yield order.places(start, cut)
                else:
                    if parts and sum(map(len, parts)) + cut - start > self._load_samples:
                        yield np.concatenate(parts)
                        parts = []
                    parts.append(order.places(start, cut))
                start = cut
        if parts:
            yield np.concatenate(parts)

    def _early(self, epoch: int, ranges: Ranges, first: int) -> int:
        """Return `first` if these samples should be read alone, else 0.

        Samples that need most chunks of a small window are read with it, so that no chunk is decoded twice.
        """
        order, start = self.ordered(epoch), ranges[0][0] if ranges else 0
        stop = min(order.cut_after(start), ranges[0][1]) if ranges else 0
        if not 0 < first < stop - start:
            return 0
        if stop - start > _SMALL_SAMPLES or (stop - start) * self.sample_nbytes > _SMALL_NBYTES:
            return first
        few, all_chunks = (
            sum(
                source._cost(order.places(start, end), (self.seed, epoch)).chunks
                for source in self.sources.values()
            )
            for end in (start + first, stop)
        )
        return first if 2 * few <= all_chunks else 0

    def describe(
        self, rank: int = 0, world: int = 1, epoch: int = 0, memory_nbytes: int = 256 << 20
    ) -> Description:
        """Predict an epoch of one rank, from metadata alone: nothing is read.

        Few reads are counted exactly; many are estimated from a part. `memory_nbytes` is that of the loader.
        """
        schedule = self.schedule(world)
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} is not one of {world} ranks")
        ranges = schedule.rest(rank, 0)
        early = self._early(epoch, ranges, min(self.batch_size, schedule.size(rank, 0))) if ranges else 0
        samples = sum(stop - start for start, stop in ranges)
        order = self.ordered(epoch)
        reads = -(-samples // self._load_samples)
        if reads <= _READS_COUNTED:
            counted = list(self.loads(epoch, ranges, first=early))
            reads = len(counted)
        else:
            counted = [_read_near(order, at, self._load_samples) for at in _spread(ranges, _READS_COUNTED)]
        costs = [
            source._cost(places, (self.seed, epoch)) for places in counted for source in self.sources.values()
        ]
        scale = samples / max(sum(map(len, counted)), 1)
        held, size = self._held(samples, memory_nbytes)
        return Description(
            samples=samples,
            steps=schedule.steps,
            batch_nbytes=min(self.batch_size, samples) * self.sample_nbytes,
            read_nbytes=min(self._load_samples, samples) * self.sample_nbytes,
            reads=reads,
            chunks=round(sum(cost.chunks for cost in costs) * scale),
            shards=round(sum(cost.shards for cost in costs) * scale),
            memory_nbytes=min(held * size, samples) * self.sample_nbytes,
            nbytes_used=samples * self.sample_nbytes,
            nbytes_decoded=round(sum(cost.nbytes for cost in costs) * scale),
            shuffle_quality=quality_of(order),
        )

    def _held(self, samples: int, memory_nbytes: int) -> tuple[int, int]:
        """Return how many reads of these samples a loader holds at most, and the samples of one.

        Samples that do not fill a batch are part of the next read.
        """
        size = min(self.load_samples, samples) + min(self.batch_size, samples)
        return max(2, min(memory_nbytes // max(size * self.sample_nbytes, 1), samples)), size

    def where(self, mask: npt.ArrayLike) -> Plan:
        """Return a plan of the samples that a mask selects.

        Raises
        ------
        ValueError
            The mask has another length, or selects nothing.
        """
        if np.ma.getmaskarray(mask).any():
            raise ValueError("the mask has missing elements: type mask.filled(False)")
        chosen = np.asarray(mask)
        if chosen.dtype != bool or chosen.shape != (self._count,):
            raise ValueError(f"a mask of {self._count} bools is needed, found {chosen.dtype} {chosen.shape}")
        found = np.zeros(self._count, bool)
        places = self._subset.places()
        found[places] = chosen[self.numbers_at(places)]
        return self._of(Subset.from_mask(found), "the mask")

    def split(self, *fractions: float, gap: int | None = None) -> tuple[Plan, ...]:
        """Return plans of contiguous parts of the samples, as stored.

        `gap` is the number of samples that are left out between two parts: by default those windows, and
        crops at given corners, that share elements with a later part.

        Raises
        ------
        ValueError
            The fractions are negative, exceed 1 together, or leave a part without samples. Random crops are
            not split: pass regions as `within`.
        """
        if any(hasattr(fraction, "__iter__") for fraction in fractions):
            raise TypeError(f"fractions are numbers, found {fractions[0]!r}: type split(0.8, 0.2)")
        _check_fractions(fractions)
        self._refuse_random("split")
        gap = _checked_gap(gap)
        bounds = [round(sum(fractions[:number]) * len(self)) for number in range(len(fractions) + 1)]
        kept = self._crops_apart(np.diff(bounds)) if gap is None and self._has_crops() else None
        parts = []
        for number, (start, stop) in enumerate(itertools.pairwise(bounds)):
            end = self._end_before(start, stop, gap) if number + 1 < len(fractions) else stop
            subset, name = self._subset.between(start, end), f"part {number} of {fractions}"
            if kept is not None:
                subset = Subset.from_mask(self._mask(subset) & kept)
            parts.append(self._of(subset, f"{name} without {stop - start - len(subset)} samples at its end"))
        return tuple(parts)

    def split_at(self, values: npt.ArrayLike, *bounds: Any, gap: int | None = None) -> tuple[Plan, ...]:
        """Return plans by a coordinate: samples below the first bound, up to the second one, and so on.

        Parameters
        ----------
        values
            The coordinate of each sample: numbers or dates.
        bounds
            Increasing. A sample at a bound is in the later part.
        gap
            As in `split`.

        Raises
        ------
        ValueError
            A part has no samples, there is not one value for each sample, or a value is missing or NaN.

        Examples
        --------
        >>> import numpy as np
        >>> import zarrow
        >>> from zarrow import data
        >>> plan = data.Plan(zarrow.open("data.zarr")["temperature"], batch_size=4)
        >>> days = np.arange("2026-01-01", "2026-02-18", dtype="M8[D]")
        >>> [len(part) for part in plan.split_at(days, np.datetime64("2026-02-01"))]
        [31, 17]
        """
        coordinates = _none_missing(values, "values")
        self._check_length(coordinates, "value")
        if not bounds or any(not low < high for low, high in itertools.pairwise(bounds)):
            raise ValueError(f"bounds must increase, found {bounds}")
        parts = np.zeros(self._count, np.int64)
        for bound in bounds:
            parts += coordinates >= np.asarray(bound)
        return self._by_part(parts, len(bounds) + 1, gap)

    def split_by(self, labels: npt.ArrayLike, *fractions: float, gap: int | None = None) -> tuple[Plan, ...]:
        """Return plans that share no group, such as a patient or a site.

        Groups are shuffled by the seed, and each is given to the part that is furthest from its fraction.

        Parameters
        ----------
        labels
            The group of each sample: numbers or strings.
        fractions
            The share of samples of each part, which large groups may miss.
        gap
            As in `split`.

        Raises
        ------
        ValueError
            A part has no samples, because there are too few groups; or a label is missing or NaN.
        """
        groups = _none_missing(labels, "labels")
        self._check_length(groups, "label")
        if groups.dtype.kind == "O" and len({type(label) for label in groups}) > 1:
            raise TypeError("labels are numbers or strings of one type, and none is missing")
        _check_fractions(fractions)
        _, group = np.unique(groups, return_inverse=True)
        sizes = np.bincount(group[self.numbers_at(self._subset.places())], minlength=int(np.max(group)) + 1)
        order = np.argsort(mixed(np.arange(len(sizes), dtype=np.uint64), key(self.seed, "groups")))
        # Samples beyond the fractions go to a last part, which is left out.
        shares = np.array([*fractions, max(0.0, 1 - sum(fractions))])
        missing, part_of = shares * sizes.sum(), np.zeros(len(sizes), np.int64)
        for number in order[np.argsort(-sizes[order], kind="stable")]:
            part_of[number] = np.argmax(missing)
            missing[part_of[number]] -= sizes[number]
        return self._by_part(part_of[group], len(fractions), gap)

    def _by_part(self, parts: Numbers, count: int, gap: int | None) -> tuple[Plan, ...]:
        """Return plans by the part of each sample."""
        self._refuse_random("split_at and split_by")
        gap, spans = _checked_gap(gap), Spans(self.sources.values())
        kept = np.ones(self._count, bool)
        if gap or (gap is None and spans):
            # For each sample, the next one of another part.
            samples, changes = np.arange(self._count), np.flatnonzero(parts[1:] != parts[:-1]) + 1
            at = np.searchsorted(changes, samples, "right")
            has_next = at < len(changes)
            samples, following = samples[has_next], changes[at[has_next]]
            is_apart = following - samples > gap if gap else spans.last(samples) < spans.first(following)
            kept[has_next] = is_apart
        places = self._subset.places()
        numbers = self.numbers_at(places)
        found = []
        apart = None
        if gap is None and self._has_crops():
            of_places = np.full(self._count, -1)
            of_places[places] = np.where(parts[numbers] < count, parts[numbers], -1)
            apart = crops_apart(list(self.sources.values()), of_places)
        for part in range(count):
            mask = np.zeros(self._count, bool)
            mask[places] = (parts == part)[numbers] & kept[numbers]
            if apart is not None:
                mask &= apart
            found.append(self._of(Subset.from_mask(mask), f"part {part} of {count}"))
        return tuple(found)

    def _cached(self, size: CacheSize) -> Plan:
        """Return the same plan, with a cache of decoded chunks that the arrays divide by their size."""
        whole = sum(source._nbytes for source in self.sources.values())
        return self._with_sources(lambda source: source._cached(size.share(source._nbytes, whole)))

    def _timed(self, times: _StageTimes) -> Plan:
        """Return the same plan; `times` gets the time of its reads."""
        return self._with_sources(lambda source: source._timed(times))

    def _with_sources(self, change: Callable[[Source], Source]) -> Plan:
        """Return the same plan with changed sources."""
        made = Plan.__new__(Plan)
        sources = {name: change(source) for name, source in self.sources.items()}
        made.__dict__.update(self.__dict__, sources=sources)
        return made

    def _cache_counts(self) -> tuple[int, int, int]:
        """Return how many chunks the caches had, how many were decoded, and how many were found on disk."""
        counts = [array._cache_counts() for array in self._arrays()]
        hits, misses, disk_hits = map(sum, zip(*counts, strict=True))
        return hits, misses, disk_hits

    def _arrays(self) -> list[Array]:
        """Return the arrays that are read."""
        return [array for source in self.sources.values() for array in source._arrays()]

    def _of(self, subset: Subset, name: str) -> Plan:
        """Return a plan of fewer samples."""
        if not len(subset):
            raise ValueError(f"{name} has no samples, of {len(self)}")
        made = Plan.__new__(Plan)
        made.__dict__.update(self.__dict__, _subset=subset)
        return made

    def _has_crops(self) -> bool:
        return any(isinstance(source, Crops) for source in self.sources.values())

    def _mask(self, subset: Subset) -> npt.NDArray[np.bool_]:
        """Return which places a subset has."""
        mask = np.zeros(self._count, bool)
        mask[subset.places()] = True
        return mask

    def _crops_apart(self, sizes: Numbers) -> npt.NDArray[np.bool_]:
        """Return which places share no element with a later part. Parts have these sizes."""
        parts = np.full(self._count, -1)
        parts[self._subset.places()[: sizes.sum()]] = np.repeat(np.arange(len(sizes)), sizes)
        return crops_apart(list(self.sources.values()), parts)

    def _end_before(self, start: int, stop: int, gap: int | None) -> int:
        """Return the end of a part, if the next part begins at the rank `stop`."""
        if gap is not None:
            return max(start, stop - gap)
        spans = Spans(self.sources.values())
        if not spans or stop >= len(self):
            return stop
        limit = int(spans.first(self._subset[np.array([stop])])[0])
        ranks = range(start, stop)
        return start + bisect_left(
            ranks, limit, key=lambda rank: int(spans.last(self._subset[np.array([rank])])[0])
        )

    def _check_length(self, values: npt.NDArray[Any], what: str) -> None:
        if values.shape != (self._count,):
            raise ValueError(
                f"one {what} for each of {self._count} samples is needed, found shape {values.shape}"
            )

    def _refuse_random(self, what: str) -> None:
        for source in self.sources.values():
            if isinstance(source, Crops) and source.is_random:
                raise ValueError(
                    f"{what}: random crops overlap; make a plan for each region, by Crops(within=...)"
                )


def _none_missing(values: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    """Return values, or raise a ValueError if some are missing: such a sample belongs to no part."""
    found = np.asarray(values)
    missing = np.ma.getmaskarray(values) | ((found != found) if found.dtype.kind in "fcmM" else False)
    if missing.any():
        count = np.count_nonzero(missing)
        raise ValueError(
            f"{count} {what} are missing or NaN, and belong to no part: replace them by another value"
        )
    return found


def _check_fractions(fractions: tuple[float, ...]) -> None:
    is_positive = fractions and all(fraction > 0 for fraction in fractions)
    if not is_positive or sum(fractions) > 1 + 1e-9:
        raise ValueError(f"fractions must be positive, and at most 1 together, found {fractions}")


def _checked_gap(gap: int | None) -> int | None:
    if gap is not None and operator.index(gap) < 0:
        raise ValueError(f"gap is a number of samples, 0 or more, found {gap}")
    return gap


def _common_count(sources: Mapping[str, Source], has_names: bool) -> int:
    """Return the number of samples. Windows at the end that other sources lack are left out."""
    counts = {name: source.count for name, source in sources.items()}
    count = min(counts.values())
    longer = [
        name for name, source in sources.items() if source.count > count and not isinstance(source, Windows)
    ]
    if longer:
        raise ValueError(
            f"sources have different numbers of samples: {counts}"
            + (f"; choose some by name, as fields={_of_most_sources(counts)}" if has_names else "")
        )
    if not count:
        raise ValueError(f"there are no samples: {counts}")
    return count


def _of_most_sources(counts: Mapping[str, int]) -> list[str]:
    """Return the names of the sources with the most common number of samples."""
    common = Counter(counts.values()).most_common(1)[0][0]
    return [name for name, count in counts.items() if count == common]


def _spread(ranges: Ranges, count: int) -> list[int]:
    """Return positions at even distances in ranges."""
    starts = [start for start, _ in ranges]
    before = np.cumsum([0, *(stop - start for start, stop in ranges)])
    ranks = np.linspace(0, before[-1] - 1, count).astype(np.int64)
    found = np.searchsorted(before, ranks, side="right") - 1
    return [starts[at] + int(rank - before[at]) for at, rank in zip(found, ranks, strict=True)]


def _read_near(order: Order, position: int, most: int) -> Numbers:
    """Return the places of a whole window, or of a part with this many samples."""
    start = order.cut_after(position)
    start = start if start < len(order) else 0
    return order.places(start, min(order.cut_after(start), start + most))
