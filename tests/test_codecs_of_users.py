"""Codecs of users: all kinds, both versions, wrong sizes, exceptions, threads, forks, nested reads."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import textwrap
import threading

import numcodecs
import numcodecs.abc
import numpy as np
import pytest
import zarr

import zarrow

FLIP = bytes(range(255, -1, -1))


def flip(data):
    return bytes(data).translate(FLIP)


class Shifted(numcodecs.abc.Codec):
    """A codec with a parameter, by numcodecs' base class."""

    codec_id = "shifted"

    def __init__(self, by=1):
        self.by = by

    def encode(self, buf):
        return np.frombuffer(buf, "u1") + np.uint8(self.by)

    def decode(self, buf, out=None):
        return np.frombuffer(buf, "u1") - np.uint8(self.by)


class Rows(numcodecs.abc.Codec):
    """A filter that reverses the rows, given a chunk's shape and type."""

    codec_id = "rows"

    def encode(self, buf):
        assert buf.shape == (2, 3) and buf.dtype == "f8"
        return buf[::-1].copy()

    def decode(self, buf, out=None):
        return np.frombuffer(buf, "f8").reshape(2, 3)[::-1]


class Text(numcodecs.abc.Codec):
    """Numbers as text: encoded bytes of variable size."""

    codec_id = "text"

    def encode(self, buf):
        return " ".join(map(repr, buf.ravel().tolist())).encode()

    def decode(self, buf, out=None):
        return np.array(buf.split(), dtype="f8")


@pytest.fixture(scope="module", autouse=True)
def registered():
    zarrow.codecs.register("flipped", decode=flip, encode=flip)
    zarrow.codecs.register(Shifted)
    zarrow.codecs.register(Rows, kind="array_to_array")
    zarrow.codecs.register(Text, kind="array_to_bytes")


DATA = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "codecs",
    [
        {"compressors": ["flipped"]},
        {"compressors": ["zstd", "flipped"], "zarr_format": 3},
        {"compressors": ["flipped", "zstd", "crc32c"], "zarr_format": 3},
        {"compressors": {"id": "shifted", "by": 200}},
        {"compressors": [{"name": "shifted", "configuration": {"by": 3}}, "gzip"], "zarr_format": 3},
        {"filters": [{"id": "rows"}]},
        {"filters": [{"id": "rows"}, {"id": "delta"}], "compressors": "flipped"},
        {"filters": [{"id": "text"}], "zarr_format": 2},
        {"serializer": "text", "compressors": ["zstd", "flipped"], "zarr_format": 3},
        {"serializer": "text", "compressors": None, "shards": (4, 6), "zarr_format": 3},
    ],
    ids=str,
)
def test_encoded_arrays_are_read_back(codecs, zarr_format):
    if codecs.get("zarr_format", zarr_format) != zarr_format:
        pytest.skip("of the other version")
    store = zarrow.MemoryStore()
    options = {"zarr_format": zarr_format, **codecs}
    zarrow.create_array(store, data=DATA, chunks=(2, 3), **options)
    array = zarrow.open(store)
    assert np.array_equal(array[:].numpy(), DATA) and array[3, 1:5:2].tolist() == [19, 21]
    array[1:3, 2] = -1
    assert array[:, 2].tolist() == [2, -1, -1, 20] and zarrow.open(store)[0, 0].item() == 0


def test_arrays_of_zarr_python_with_codecs_of_numcodecs(tmp_path):
    """zarr-python wrote these arrays with codecs that zarrow lacks; the same classes read them."""
    numcodecs.register_codec(Shifted)
    numcodecs.register_codec(Rows)
    array = zarr.create_array(
        tmp_path,
        shape=(4, 6),
        chunks=(2, 3),
        dtype="f8",
        zarr_format=2,
        filters=[Rows()],
        compressors=Shifted(9),
    )
    array[:] = DATA
    assert np.array_equal(zarrow.open(tmp_path)[:].numpy(), DATA)
    zarrow.open(tmp_path)[0] = 7
    assert (zarr.open_array(tmp_path)[0] == 7).all()


@pytest.fixture
def array(tmp_path):
    return zarrow.create_array(
        tmp_path / "a.zarr", data=np.arange(10_000), chunks=100, compressors=["failing", "zstd"]
    )


@pytest.fixture(autouse=True)
def failing():
    """A codec that each test redefines: open arrays keep their version."""
    zarrow.codecs.register("failing", decode=bytes, encode=bytes)
    yield
    zarrow.codecs.register("failing", decode=bytes, encode=bytes)


def reopened(array, decode, encode=bytes):
    zarrow.codecs.register("failing", decode=decode, encode=encode)
    return zarrow.open(array.store)


@pytest.mark.parametrize(
    ("decode", "kind"),
    [
        (lambda data: data + b"x", "wrong_size"),
        (lambda data: data[:-1], "wrong_size"),
        (lambda data: b"", "wrong_size"),
        (lambda data: data * 1000, "wrong_size"),
        (lambda data: None, "codec_failed"),
        (lambda data: np.array([data], dtype=object), "codec_failed"),
        (lambda data: 1 / 0, "codec_failed"),
    ],
)
def test_chunks_that_do_not_decode_are_codec_errors(array, decode, kind):
    with pytest.raises(zarrow.CodecError, match="failing") as raised:
        reopened(array, decode)[:]
    error = raised.value
    assert (error.kind, error.codec, error.store) == (kind, "failing", array.store) and len(error.chunk) == 1
    assert pickle.loads(pickle.dumps(error)).codec == "failing"


def test_exceptions_of_codecs_are_the_cause(array):
    def decode(data):
        raise KeyError("no such table")

    with pytest.raises(zarrow.CodecError, match="KeyError: 'no such table'") as raised:
        reopened(array, decode)[:]
    assert isinstance(raised.value.__cause__, KeyError) and raised.value.__cause__.__traceback__ is not None
    zarrow.codecs.register("failing", decode=bytes)
    with pytest.raises(zarrow.CodecError, match="registered without encode"):
        zarrow.open(array.store)[0] = 1
    assert zarrow.open(array.store)[0].item() == 0


@pytest.mark.parametrize("raised", [MemoryError, SystemExit, KeyboardInterrupt])
def test_exceptions_unrelated_to_the_codec_propagate(array, raised):
    def decode(data):
        raise raised

    with pytest.raises(raised):
        reopened(array, decode)[:]


def test_settings_that_functions_do_not_have_are_refused():
    with pytest.raises(zarrow.CodecError, match="register a class with from_config"):
        zarrow.create_array(
            zarrow.MemoryStore(), data=[1], compressors=[{"name": "flipped", "configuration": {"level": 1}}]
        )


@pytest.mark.parametrize(
    "name", ["zstd", "lz4", "numcodecs.zlib", "bytes", "transpose", "delta", "vlen-utf8", ""]
)
def test_the_codecs_of_zarrow_are_not_replaced(name):
    with pytest.raises(zarrow.CodecError):
        zarrow.codecs.register(name, decode=bytes, encode=bytes)


@pytest.mark.parametrize("wrong", [5, object, bytes])
def test_invalid_codecs_are_not_registered(wrong):
    with pytest.raises(TypeError, match="codec_id"):
        zarrow.codecs.register(wrong)
    with pytest.raises(TypeError, match="decode"):
        zarrow.codecs.register("without")
    with pytest.raises(ValueError, match='kind is "filter"'):
        zarrow.codecs.register("filter", decode=bytes, kind="filter")


def test_codecs_of_elements_take_elements_of_a_fixed_size():
    with pytest.raises(zarrow.CodecError, match="cannot encode string"):
        zarrow.create_array(zarrow.MemoryStore(), data=["a"], serializer="text")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nonesuch", r"zarrow\.codecs\.register\('nonesuch', decode="),
        (
            "numcodecs.zfpy",
            r"pip install 'numcodecs\[zfpy\]', then import numcodecs\.zfpy and .*numcodecs\.zfpy\.ZFPY",
        ),
        ("imagecodecs_jpeg2k", r"pip install 'imagecodecs'.*imagecodecs\.numcodecs\.Jpeg2k"),
        ("pickle", "a pickle can run any code"),
        ("json2", "no data type"),
        ("zarrs.gdeflate", "only the Rust crate zarrs has it"),
    ],
)
def test_an_unknown_codec_says_where_it_is(name, told):
    with pytest.raises(zarrow.CodecError, match=told) as raised:
        zarrow.create_array(zarrow.MemoryStore(), data=[1], compressors=[name])
    assert (raised.value.kind, raised.value.codec) == ("unknown_codec", name)


def test_a_codec_may_read_arrays(array):
    """Each call reads other arrays of many chunks, on all threads, also with users' codecs."""
    table = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(5000), chunks=50, compressors="flipped")
    inner = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(50), chunks=5, compressors="flipped")

    def decode(data):
        assert int(table[:].numpy()[-1]) == 4999 and int(np.asarray(inner)[7]) == 7
        return data

    opened = reopened(array, decode)
    expected = np.arange(10_000)
    readers = [threading.Thread(target=lambda: opened[:]) for _ in range(3)]
    for reader in readers:
        reader.start()
    assert np.array_equal(opened[:].numpy(), expected)
    for reader in readers:
        reader.join()


def test_a_codec_that_needs_itself_is_an_error(array):
    with pytest.raises(zarrow.CodecError, match="call each other too deeply"):
        reopened(array, lambda data: zarrow.open(array.store)[:].numpy())[:]


@pytest.mark.parametrize("consume", ["pyarrow", "polars"])
def test_streams_read_without_the_gil(array, consume):
    """Libraries request batches with or without the GIL, and codecs need it on other threads."""
    library = pytest.importorskip(consume)
    opened = reopened(array, bytes)
    rows = opened.to_arrow(batch_rows=1000)
    taken = library.chunked_array(rows) if consume == "pyarrow" else library.Series(rows)
    assert taken.to_numpy().tolist() == list(range(10_000))
    failing = reopened(array, lambda data: 1 / 0)
    with pytest.raises(Exception, match="ZeroDivisionError"):
        failing.to_arrow().arrow()


FORKED = """
    import os
    import numpy as np, zarrow

    zarrow.codecs.register("flipped", decode=lambda data: data[::-1], encode=lambda data: data[::-1])
    store = zarrow.MemoryStore()
    array = zarrow.create_array(store, data=np.arange(10_000), chunks=100, compressors="flipped")
    assert array[:].numpy()[-1] == 9999
    child = os.fork()
    if child == 0:
        os._exit(int(array[:].numpy()[-1] != 9999))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_forked_children_have_the_codecs():
    command = [sys.executable, "-c", textwrap.dedent(FORKED)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert finished.stdout == "0\n", finished.stderr


def test_a_codec_may_start_programs(array):
    def decode(data):
        assert subprocess.run([sys.executable, "-S", "-c", ""]).returncode == 0
        return data

    assert reopened(array, decode)[9_800:].tolist() == list(range(9_800, 10_000))


INTERRUPTED = """
    import os, signal, threading, time
    import numpy as np, zarrow

    def slow(data):
        started.set()
        for _ in range(40):
            time.sleep(0.005)
        return data

    started = threading.Event()
    zarrow.codecs.register("slow", decode=slow, encode=bytes)
    array = zarrow.create_array(zarrow.MemoryStore(), data=np.arange(1000), chunks=1, compressors="slow")

    def interrupt():
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        array[:]
    except KeyboardInterrupt:
        print("interrupted", array.shape)
"""


def test_ctrl_c_stops_a_read_with_a_slow_codec():
    """A thousand chunks of 0.2 s each would take more than a minute without the interrupt."""
    command = [sys.executable, "-c", textwrap.dedent(INTERRUPTED)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (finished.returncode, finished.stdout) == (0, "interrupted (1000,)\n"), finished.stderr


def test_interruptions_reach_only_the_main_thread():
    assert threading.current_thread() is threading.main_thread()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_chunks_too_large_to_read_are_not_written(tmp_path):
    """A codec with more output than a read accepts is refused at the write."""
    for kind in ("bytes_to_bytes", "array_to_bytes"):
        zarrow.codecs.register(
            f"inflated-{kind}",
            kind=kind,
            encode=lambda data, *_: bytes(data) * 100_000,
            decode=lambda data, *_: bytes(data)[:16],
        )
    options = {"bytes_to_bytes": "compressors", "array_to_bytes": "serializer"}
    for kind, option in options.items():
        given = {"compressors": None, option: f"inflated-{kind}"}
        array = zarrow.create_array(tmp_path / kind, shape=4, dtype="i4", fill_value=-1, **given)
        with pytest.raises(zarrow.LimitError, match="the encoded size of a chunk is 1600000, the limit is"):
            array[...] = np.arange(4)
        assert array[...].tolist() == [-1] * 4


REENTRANT = """
    import asyncio, threading, sys
    import numpy as np, zarrow

    changes = {
        "part": lambda array: array.__setitem__(1, 7),
        "append": lambda array: array.append(np.arange(3)),
        "write_async": lambda array: asyncio.run(array.write_async(1, 7)),
        "read_async": lambda array: asyncio.run(array.read_async()),
    }

    def scenario(name, codec, store):
        own = []

        def encode(data):
            if own:
                changes[name](own[0])
            return data

        zarrow.codecs.register(codec, encode=encode, decode=bytes if name == "part" else encode)
        array = zarrow.create_array(store, data=np.arange(20), chunks=5, compressors=codec)
        own.append(array)
        try:
            changes[name](array)
            print("nothing was raised", name)
        except zarrow.CodecError as error:
            # `print` writes the line and its end separately.
            sys.stdout.write(f"{error}\\n")

    threads = [
        threading.Thread(target=scenario, args=(name, codec, store), daemon=True)
        for name in changes
        for codec, store in ((name, zarrow.MemoryStore()), (f"{name} in files", f"{sys.argv[1]}/{name}"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_a_codec_that_waits_for_its_caller_is_an_error_soon(tmp_path):
    """The codec's own caller holds the lock of a chunk or of the shape, or a thread of the pool."""
    command = [sys.executable, "-c", textwrap.dedent(REENTRANT), tmp_path]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = finished.stdout.splitlines()
    assert len(lines) == 8, finished
    for line in lines:
        assert "call each other too deeply" in line or "too long for the lock of" in line, line


AWAITING = """
    import asyncio, threading, time
    import numpy as np, zarrow

    zarrow.set_num_threads(2)
    nbytes = 1 << 20
    other = zarrow.create_array(zarrow.MemoryStore(), data=np.ones(4 * nbytes, "u1"), chunks=nbytes)
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    others_begin = threading.Event()

    def awaiting(data):
        if others_begin.is_set():
            time.sleep(0.05)
            asyncio.run_coroutine_threadsafe(other.read_async(), loop).result()
        return data

    zarrow.codecs.register("awaiting", encode=awaiting, decode=awaiting)
    store = zarrow.MemoryStore()
    array = zarrow.create_array(store, shape=2 * nbytes, dtype="u1", chunks=nbytes, compressors="awaiting")

    array[...] = 9
    others_begin.set()

    def write(value):
        # Parts of both chunks, which are read, changed and written under their locks.
        array[1:-1] = np.full(2 * nbytes - 2, value, "u1")

    writers = [threading.Thread(target=write, args=(value,)) for value in range(1, 5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    print(np.unique(array[1:nbytes]).size, np.unique(array[nbytes:-1]).size)
"""


def test_threads_that_wait_for_a_lock_leave_one_for_what_its_holder_awaits(tmp_path):
    """All threads of the pool wait for the locks of two chunks, and the holders await a read of the pool."""
    command = [sys.executable, "-c", textwrap.dedent(AWAITING)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    # A writer that waits too long ends with an error.
    assert (finished.stdout.split(), finished.stderr) == (["1", "1"], "")
