"""What a plan predicts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Description:
    """An epoch of one rank, as predicted from metadata: `print(plan.describe())`.

    Attributes
    ----------
    samples, steps
        Samples and batches of the rank.
    batch_nbytes, read_nbytes
        Bytes of a batch, and of the samples that are read together.
    memory_nbytes
        Bytes of the samples that a loader holds at most: as many reads as its `memory_nbytes` allows, and at
        least two. Batches that the loop keeps, and bytes that wait to be decoded, come on top.
    reads
        Number of reads.
    chunks, shards
        Chunks that are fetched and decoded, and the shards that have them, counted for each read.
    nbytes_used, nbytes_decoded
        Bytes of the samples, and of the decoded chunks.
    shuffle_quality
        1 for distances between successive samples as in a uniform shuffle, 0 for the stored order: 1 minus
        the largest difference between both distributions (Kolmogorov-Smirnov). With windows of n blocks it
        is about 1 - 1/n.
    """

    samples: int
    steps: int
    batch_nbytes: int
    read_nbytes: int
    reads: int
    chunks: int
    shards: int
    memory_nbytes: int
    nbytes_used: int
    nbytes_decoded: int
    shuffle_quality: float

    @property
    def requests(self) -> int:
        """Requests to a remote store, at most: one for each chunk, and one for the index of each shard."""
        return self.chunks + self.shards

    @property
    def decoded_per_used(self) -> float:
        """Bytes that are decoded for each byte that is used."""
        return self.nbytes_decoded / max(self.nbytes_used, 1)

    def __str__(self) -> str:
        return (
            f"{self.samples} samples in {self.steps} batches of {_size(self.batch_nbytes)}\n"
            f"{self.reads} reads of at most {_size(self.read_nbytes)}, {self.chunks} chunks"
            f"{f' of {self.shards} shards' if self.shards else ''}\n"
            f"at most {self.requests} requests, {_size(self.memory_nbytes)} of memory\n"
            f"{_size(self.nbytes_used)} used, {_size(self.nbytes_decoded)} decoded "
            f"({self.decoded_per_used:.2f} for each byte)\n"
            f"shuffle quality {self.shuffle_quality:.2f}"
        )


def _size(nbytes: int) -> str:
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= size:
            return f"{nbytes / size:.1f} {unit}"
    return f"{nbytes} B"
