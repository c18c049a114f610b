"""The sets of frames: 12-bit noise, as a camera has it, in chunks and shards that all writers store alike."""

from dataclasses import dataclass

import numpy as np

FRAMES = 500
# Frames that are made once, and repeat.
DIFFERENT = 8


@dataclass(frozen=True)
class FrameSet:
    """Frames of one shape, stored in shards of chunks, with or without zstd of level 1."""

    title: str
    side: int
    chunk: tuple[int, int, int]
    compressed: bool

    @property
    def shard(self) -> tuple[int, int, int]:
        """Whole frames."""
        return self.chunk[0], self.side, self.side

    def frames(self) -> list[np.ndarray[tuple[int, ...], np.dtype[np.uint16]]]:
        """Make the frames that repeat."""
        random = np.random.default_rng(3)
        return [random.integers(0, 4096, (self.side, self.side), "u2") for _ in range(DIFFERENT)]


SETS = {
    "small-raw": FrameSet("500 frames of 256², uncompressed", 256, (16, 256, 256), False),
    "small-zstd": FrameSet("500 frames of 256², zstd", 256, (16, 256, 256), True),
    "large-raw": FrameSet("500 frames of 2048², uncompressed", 2048, (8, 512, 512), False),
    "large-zstd": FrameSet("500 frames of 2048², zstd", 2048, (8, 512, 512), True),
}
