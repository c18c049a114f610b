"""What a loader did, and which stage limits it."""

from __future__ import annotations

from dataclasses import dataclass, field

# A smaller part of the time is no stall of the consumer.
_STALLED = 0.05


@dataclass(slots=True)
class Stats:
    """Counts and seconds of one epoch, so far.

    Attributes
    ----------
    batches, samples, nbytes
        What the consumer got.
    first_batch_s, first_nbytes
        From the start of the iteration to the first batch, and its bytes.
    seconds
        From the first batch to the latest one.
    waited_s, stalls
        How long, and how often, the consumer waited after the first batch.
    read_s, transform_s
        Time of reads and of transforms. They run at the same time.
    store_s, decode_s, placement_s
        How the time of reads divides: waiting for the store, decoding, and moving decoded elements to their
        places. Two reads overlap, and each counts, so together these can be more than `read_s`.
    paused_s
        How long reads paused because enough batches were ready.
    cache_hits, cache_misses
        Chunks that were found in the loader's cache, and chunks that were decoded.
    disk_cache_hits
        Chunks that were found in the cache's files, and not in its memory. They are among `cache_hits`.
    bad
        Numbers of damaged samples, at most the first 1,000; none of worker processes.
    """

    batches: int = 0
    samples: int = 0
    nbytes: int = 0
    first_batch_s: float = 0.0
    first_nbytes: int = 0
    seconds: float = 0.0
    waited_s: float = 0.0
    stalls: int = 0
    read_s: float = 0.0
    store_s: float = 0.0
    decode_s: float = 0.0
    placement_s: float = 0.0
    transform_s: float = 0.0
    paused_s: float = 0.0
    cache_hits: int = 0
    cache_misses: int = 0
    disk_cache_hits: int = 0
    bad: list[int] = field(default_factory=list)

    @property
    def limiting_stage(self) -> str:
        """The stage to make faster.

        "store", "decode" or "placement" of reads, "transform", "consumer", or "unknown" before two batches,
        and of batches that worker processes made.
        """
        is_measured = self.seconds or self.read_s or self.transform_s
        if self.batches < 2 or not is_measured:
            return "unknown"
        if self.waited_s < _STALLED * self.seconds:
            return "consumer"
        if self.transform_s > self.read_s:
            return "transform"
        stages = {"store": self.store_s, "decode": self.decode_s, "placement": self.placement_s}
        return max(stages, key=lambda name: stages[name])

    @property
    def cache_hit_rate(self) -> float:
        """Part of the chunks that were found in the loader's cache; 0 without a cache."""
        chunks = self.cache_hits + self.cache_misses
        return self.cache_hits / chunks if chunks else 0.0

    def __str__(self) -> str:
        if self.batches and not (self.samples or self.seconds):
            return f"{self.batches} batches of worker processes, which are only counted"
        is_cached = self.cache_hits + self.cache_misses > 0
        cached = f"; {self.cache_hit_rate:.0%} of chunks from the cache" if is_cached else ""
        if self.disk_cache_hits:
            cached += f" ({self.disk_cache_hits} from its files)"
        rate = (self.nbytes - self.first_nbytes) / self.seconds / (1 << 20) if self.seconds else 0.0
        return (
            f"{self.batches} batches, {self.samples} samples, {self.nbytes / (1 << 20):.1f} MiB "
            f"({rate:.0f} MiB/s), first after {self.first_batch_s:.3f} s; "
            f"{self.stalls} stalls, {self.waited_s:.3f} of {self.seconds:.3f} s; "
            f"limited by {self.limiting_stage}{cached}"
        )
