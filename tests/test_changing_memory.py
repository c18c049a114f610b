"""Memory that another thread writes to while it is written from, read into or used as an index.

Every stored value existed at some moment, every chunk decodes, and the process survives. Each case runs in a
separate process, since a failure crashes it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa

import zarrow

COMMON = """
    import json, sys, threading
    import numpy as np
    import pyarrow as pa
    import zarrow

    class Changing(threading.Thread):
        '''Puts one array over another, again and again, until the block ends.'''
        def __init__(self, target, *patterns):
            super().__init__(daemon=True)
            self.target, self.patterns, self.going = target, patterns, True
            self.begun = threading.Event()
        def run(self):
            while self.going:
                for pattern in self.patterns:
                    self.target[...] = pattern
                self.begun.set()
        def __enter__(self):
            self.start()
            self.begun.wait()
        def __exit__(self, *_):
            self.going = False
            self.join()

    random = np.random.default_rng(3)
    SIZE = 256 << 10
    common = np.minimum(random.geometric(0.5, SIZE) - 1, 20).astype("u1")
    rare = random.integers(14, 21, SIZE, dtype="u1")
"""


def run(program: str, *arguments: str) -> str:
    code = textwrap.dedent(COMMON) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


CODECS = [
    *({"name": "gzip", "configuration": {"level": level}} for level in (2, 5, 6, 9)),
    {"name": "numcodecs.zlib", "configuration": {"level": 6}},
    {"name": "crc32c"},
    {"name": "zstd", "configuration": {"level": 3, "checksum": True}},
]


def test_source_of_a_write(tmp_path):
    """A compressor that reads changing bytes twice wrote out of bounds, or stored a wrong checksum."""
    run(
        """
        source = common.copy()
        for number, codec in enumerate(json.loads(sys.argv[2])):
            array = zarrow.create_array(
                f"{sys.argv[1]}/{number}", shape=(SIZE,), chunks=(SIZE,), dtype="u1", compressors=[codec]
            )
            with Changing(source, rare, common):
                for _ in range(8):
                    array[:] = source
                    found = array[:].numpy()
                    assert ((found == common) | (found == rare)).all(), codec
        """,
        str(tmp_path),
        json.dumps(CODECS),
    )


def test_indices_that_change(tmp_path):
    """A read uses the positions that were checked against the bounds."""
    run(
        """
        values = np.arange(10_000, dtype="i4")
        array = zarrow.create_array(sys.argv[1], data=values, chunks=(700,))
        cases = (("i8", -(1 << 40)), ("u8", (1 << 64) - 1), ("i4", 1 << 30), ("u8", (1 << 64) - 10_000))
        for dtype, wild in cases:
            positions = np.zeros(5000, dtype)
            good = np.arange(5000, dtype=dtype)
            bad = np.full(5000, wild, dtype)
            # Each read position is one of `good`, or the read is refused.
            with Changing(positions, good, bad):
                for _ in range(25):
                    for indexer in (array.oindex, array.vindex):
                        try:
                            found = indexer[positions].numpy()
                        except IndexError:
                            continue
                        assert (found == values[:5000]).all(), dtype
        mask = np.zeros(10_000, "?")
        with Changing(mask, values % 2 == 0, values % 3 == 0, False):
            for _ in range(25):
                found = array.oindex[mask].numpy()
                assert (np.diff(found) > 0).all()
        """,
        str(tmp_path / "a.zarr"),
    )


def test_masks_that_change(tmp_path):
    run(
        """
        array = zarrow.create_array(sys.argv[1], shape=(SIZE,), chunks=(SIZE // 3,), dtype="optional[uint8]")
        masked = np.ma.array(common.copy(), mask=np.zeros(SIZE, "?"))
        there, gone = np.zeros(SIZE, "?"), np.ones(SIZE, "?")
        with Changing(masked.mask, there, gone), Changing(masked.data, rare, common):
            for _ in range(10):
                array[:] = masked
                found = array[:].numpy()
                kept = ~np.ma.getmaskarray(found)
                assert ((found.data == common) | (found.data == rare))[kept].all()
                # To Arrow by one reading of the mask: the null count matches the bitmap.
                arrow = pa.array(zarrow.asarray(masked))
                bits = np.unpackbits(np.frombuffer(arrow.buffers()[0] or b"", "u1"), bitorder="little")
                assert arrow.null_count == (SIZE - bits[:SIZE].sum() if len(bits) else 0)
        """,
        str(tmp_path / "a.zarr"),
    )


def test_strings_that_change(tmp_path):
    """Text and offsets of Arrow, in memory that changes after the import: only valid text is stored."""
    run(
        """
        count = 3000
        text = np.frombuffer("é1".encode() * count, "u1").copy()
        broken = text ^ 0x40
        good = np.arange(count + 1, dtype="i8") * 3
        wild = random.integers(-(1 << 40), 1 << 40, count + 1)
        near = random.integers(0, 4 * count, count + 1)
        bytes_, offsets = text.copy(), good.copy()
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(bytes_)]
        arrow = pa.Array.from_buffers(pa.large_string(), count, buffers)
        words = zarrow.from_arrow(arrow)
        dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 5, 2999] * 50), arrow)
        chunked = pa.chunked_array([arrow, arrow])
        array = zarrow.create_array(sys.argv[1], shape=(count,), chunks=(count // 4,), dtype="string")
        expected = (zarrow.ZarrowError, ValueError)
        for target, patterns in ((bytes_, (text, broken)), (offsets, (good, wild, near))):
            with Changing(target, *patterns):
                for _ in range(25):
                    try:
                        array[:] = words
                    except expected:
                        continue
                    assert len(array[:].numpy()) == count
                for _ in range(10):
                    for make in (
                        lambda: zarrow.from_arrow(dictionary),
                        lambda: zarrow.from_arrow(chunked),
                        lambda: words.numpy(),
                        lambda: words.arrow(),
                    ):
                        try:
                            make()
                        except expected:
                            pass
            target[...] = patterns[0]
        array[:] = words
        assert array[:].tolist() == arrow.to_pylist()
        """,
        str(tmp_path / "a.zarr"),
    )


BLOSC = {"cname": "zlib", "clevel": 5, "shuffle": "noshuffle", "typesize": 1, "blocksize": 0}
DECODED = [
    *({"name": name, "configuration": {}} for name in ("gzip", "zstd", "numcodecs.lz4")),
    {"name": "blosc", "configuration": BLOSC},
]


def test_memory_that_is_read_into(tmp_path):
    """Decoders that read their output again stay inside it."""
    run(
        """
        out = np.zeros(SIZE, "u1")
        for number, codec in enumerate(json.loads(sys.argv[2])):
            array = zarrow.create_array(
                f"{sys.argv[1]}/{number}", data=common, chunks=(SIZE,), compressors=[codec]
            )
            with Changing(out, rare, common):
                for _ in range(20):
                    try:
                        array.read(out=out)
                    except zarrow.CodecError:
                        pass
            array.read(out=out)
            assert (out == common).all(), codec
        """,
        str(tmp_path),
        json.dumps(DECODED),
    )


def test_views_of_arrow_are_gathered():
    """A view is copied before it is inspected."""
    texts = ["a", "twelve bytes", "more than twelve bytes", "é" * 40, ""] * 7
    array = pa.array(texts, pa.string_view())
    assert zarrow.from_arrow(array).tolist() == texts
    assert np.asarray(zarrow.from_arrow(array)).tolist() == texts
