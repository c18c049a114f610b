"""The loaders, each used as its documentation recommends. An epoch is an iterator over batches.

Each shuffles as it can: over windows of 16 MiB, fully, or not at all. All see the same number of samples.
"""

import contextlib
import importlib
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benches.loaders.data import BATCH, SETS, WINDOW_NBYTES

BUCKET = "bench"
CACHE_NBYTES = 80 << 20  # more than a set has
WORKERS = 2
PIPELINES = {
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
    "zarrow": "zarrow.zarr_python.CodecPipeline",
}


def use_pipeline(name: str) -> None:
    """Configure a codec pipeline of zarr-python, which must be installed."""
    module, _, attribute = PIPELINES[name].rpartition(".")
    getattr(importlib.import_module(module), attribute)
    importlib.import_module("zarr").config.set({"codec_pipeline.path": PIPELINES[name]})


class Loader:
    """A loader of one set, in a folder or in a bucket. The constructor imports what it needs."""

    shuffle: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ("rows",)

    def __init__(self, name: str, folder: Path, port: int | None) -> None:
        warnings.simplefilter("ignore")
        self.chosen = SETS[name]
        if self.chosen.kind not in self.kinds:
            raise NotImplementedError(f"has no {self.chosen.kind}")
        self.path = folder.resolve() / f"{name}.zarr"
        self.port = port
        self.prepare()

    def prepare(self) -> None:
        """Import the library."""

    def open(self) -> None:
        """Open the set."""
        raise NotImplementedError

    def epoch(self, number: int) -> Iterator[Any]:
        """Iterate over an epoch."""
        raise NotImplementedError

    def store(self) -> Any:
        """Return the set as a store of zarr-python."""
        if self.port is None:
            return self.path
        from benches.remote.peers import s3_store

        return s3_store(self.path.name, f"http://127.0.0.1:{self.port}", read_only=True)

    def corner(self, random: np.random.Generator) -> tuple[slice, ...]:
        """Draw a crop."""
        assert self.chosen.crop
        starts = random.integers(0, [side - 48 + 1 for side in self.chosen.shape])
        return tuple(
            slice(at, at + extent) for at, extent in zip(starts.tolist(), self.chosen.crop, strict=True)
        )


class Zarrow(Loader):
    """Tensors, if PyTorch is there, else arrays of NumPy; sparse rows of SciPy."""

    shuffle = "windows"
    kinds: ClassVar[tuple[str, ...]] = ("rows", "crops", "sparse rows")

    def options(self) -> dict[str, Any]:
        """Return the options of the loader."""
        return {}

    def prepare(self) -> None:
        self.zarrow = importlib.import_module("zarrow")
        self.data: Any = importlib.import_module("zarrow.data")
        self.loader_class = self.data.Loader
        if self.chosen.kind == "sparse rows":
            importlib.import_module("scipy.sparse")
        else:
            with contextlib.suppress(ModuleNotFoundError):
                self.loader_class = importlib.import_module("zarrow.torch").DataLoader

    def open(self) -> None:
        place, options = str(self.path), {}
        if self.port is not None:
            place = f"s3://{BUCKET}/{self.path.name}"
            options = {"anon": True, "endpoint_url": f"http://127.0.0.1:{self.port}", "region": "us-east-1"}
        name = "X" if self.chosen.kind == "sparse rows" else "x"
        node = self.zarrow.open(place, name, storage_options=options or None)
        source = self.data.Crops(node, self.chosen.crop, self.chosen.samples) if self.chosen.crop else node
        plan = self.data.Plan(source, self.chosen.batch, window_nbytes=self.chosen.window_nbytes)
        self.loader = self.loader_class(plan, **self.options())

    def epoch(self, number: int) -> Iterator[Any]:
        yield from self.loader


class ZarrowCache(Zarrow):
    """With all chunks in memory after the first epoch."""

    kinds: ClassVar[tuple[str, ...]] = ("rows", "crops")

    def options(self) -> dict[str, Any]:
        return {"cache_nbytes": CACHE_NBYTES}


class ZarrowDiskCache(Zarrow):
    """With a quarter of the chunks in memory after the first epoch, and the rest in files beside the set."""

    kinds: ClassVar[tuple[str, ...]] = ("rows", "crops")

    def options(self) -> dict[str, Any]:
        return {
            "cache_nbytes": WINDOW_NBYTES,
            "disk_cache_nbytes": CACHE_NBYTES,
            "disk_cache_folder": self.path.parent,
        }


class InMemory(Loader):
    """Batches copied by NumPy from an array in memory, which was read before: a bound for later epochs."""

    shuffle = "full"
    kinds: ClassVar[tuple[str, ...]] = ("rows", "crops")

    def open(self) -> None:
        array: Any = importlib.import_module("zarr").open_array(self.store(), path="x", mode="r")
        self.values = array[...]

    def epoch(self, number: int) -> Iterator[Any]:
        random, total = np.random.default_rng(number), self.chosen.samples
        order = random.permutation(total)
        for start in range(0, total, BATCH):
            if self.chosen.crop is None:
                yield self.values[order[start : start + BATCH]]
            else:
                yield np.stack([self.values[self.corner(random)] for _ in range(BATCH)])


class Workers(Loader):
    """PyTorch's DataLoader with worker processes that read samples by zarr-python."""

    shuffle = "full"
    kinds: ClassVar[tuple[str, ...]] = ("rows", "crops")
    pipeline: ClassVar[str | None] = None

    def prepare(self) -> None:
        self.torch: Any = importlib.import_module("torch.utils.data")
        if self.pipeline is not None:
            use_pipeline(self.pipeline)

    def open(self) -> None:
        self.array: Any = None
        options: dict[str, Any] = {"persistent_workers": True, "multiprocessing_context": "fork"}
        self.loader = self.torch.DataLoader(self, BATCH, shuffle=True, num_workers=WORKERS, **options)

    def epoch(self, number: int) -> Iterator[Any]:
        yield from self.loader

    def __len__(self) -> int:
        return self.chosen.samples

    def __getitem__(self, number: int) -> Any:
        if self.array is None:  # in the worker
            self.array = importlib.import_module("zarr").open_array(self.store(), path="x", mode="r")
        if self.chosen.crop is None:
            return self.array[number]
        return self.array[self.corner(np.random.default_rng())]


class WorkersFused(Workers):
    pipeline = "fused"


class WorkersZarrs(Workers):
    pipeline = "zarrs"


class Tensorstore(Loader):
    """Random batches, two of them read ahead, with a cache of the size of a window."""

    shuffle = "full"
    kinds: ClassVar[tuple[str, ...]] = ("rows", "crops")

    def prepare(self) -> None:
        self.tensorstore: Any = importlib.import_module("tensorstore")

    def open(self) -> None:
        store: Any = {"driver": "file", "path": f"{self.path}/x/"}
        if self.port is not None:
            store = {
                "driver": "s3",
                "bucket": BUCKET,
                "path": f"{self.path.name}/x/",
                "endpoint": f"http://127.0.0.1:{self.port}",
                "aws_region": "us-east-1",
                "aws_credentials": {"type": "anonymous"},
            }
        context = self.tensorstore.Context(
            {
                "cache_pool": {"total_bytes_limit": WINDOW_NBYTES},
                "s3_request_concurrency": {"limit": 64},
            }
        )
        spec = {"driver": "zarr3", "kvstore": store, "recheck_cached_data": False}
        self.array = self.tensorstore.open(spec, context=context).result()

    def epoch(self, number: int) -> Iterator[Any]:
        random, total = np.random.default_rng(number), self.chosen.samples
        order, ahead = random.permutation(total), list[list[Any]]()
        for start in range(0, total, BATCH):
            if self.chosen.crop is None:
                ahead.append([self.array[order[start : start + BATCH]].read()])
            else:
                ahead.append([self.array[self.corner(random)].read() for _ in range(BATCH)])
            if len(ahead) > 2:
                yield self.finished(ahead.pop(0))
        for reads in ahead:
            yield self.finished(reads)

    def finished(self, reads: list[Any]) -> Any:
        """Wait for a batch."""
        return np.stack([read.result() for read in reads]) if self.chosen.crop else reads[0].result()


class Xbatcher(Loader):
    """Batches in the stored order."""

    shuffle = "none"

    def prepare(self) -> None:
        self.xarray: Any = importlib.import_module("xarray")
        self.xbatcher: Any = importlib.import_module("xbatcher")

    def open(self) -> None:
        self.dataset = self.xarray.open_zarr(self.store(), chunks=None)

    def epoch(self, number: int) -> Iterator[Any]:
        sizes = {"time": BATCH, "row": self.chosen.shape[1], "column": self.chosen.shape[2]}
        for batch in self.xbatcher.BatchGenerator(self.dataset, sizes, preload_batch=False):
            yield batch["x"].to_numpy()


class Insitubatch(Loader):
    """Blocks of chunks of the size of a window."""

    shuffle = "windows"
    caches: ClassVar[bool] = False

    def prepare(self) -> None:
        self.library: Any = importlib.import_module("insitubatch")
        if self.port is None:
            self.local: Any = importlib.import_module("obstore.store").LocalStore

    def open(self) -> None:
        storage = importlib.import_module("zarr.storage")
        store = self.store() if self.port else storage.ObjectStore(self.local(self.path), read_only=True)
        geometries = self.library.open_geometries(store, variables=["x"])
        manifest = self.library.split_by_chunk(geometries["x"], fractions=(1.0, 0.0, 0.0))
        options: dict[str, Any] = {
            "batch_size": BATCH,
            "block_chunks": WINDOW_NBYTES // (np.prod(self.chosen.chunks).item() * 4),
            "max_inflight": 64,
        }
        if self.caches:
            self.folder = tempfile.TemporaryDirectory(dir=self.path.parent)
            options |= {"cache_dir": self.folder.name, "cache_budget_bytes": CACHE_NBYTES}
        self.dataset = self.library.InSituDataset(store, manifest, geometries=geometries, **options)

    def epoch(self, number: int) -> Iterator[Any]:
        self.dataset.set_epoch(number)
        for batch in self.dataset.train:
            yield batch.arrays["x"]


class InsitubatchCache(Insitubatch):
    """With all chunks in files beside the set after the first epoch."""

    caches = True


class Annbatch(Loader):
    """Runs of 32 cells; 256 runs are in memory."""

    shuffle = "windows"
    kinds = ("sparse rows",)

    def prepare(self) -> None:
        self.library: Any = importlib.import_module("annbatch")
        self.load: Any = importlib.import_module("annbatch.utils").load_all_aligned

    def open(self) -> None:
        adata = self.load(importlib.import_module("zarr").open_group(self.store(), mode="r"))
        self.loader = self.library.Loader(
            chunk_size=32,
            preload_nchunks=256,
            batch_size=self.chosen.batch,
            shuffle=True,
            preload_to_gpu=False,
            rng=np.random.default_rng(3),
        ).add_adata(adata)

    def epoch(self, number: int) -> Iterator[Any]:
        for batch in self.loader:
            yield batch["X"]


class AnnbatchZarrs(Annbatch):
    """With the pipeline that annbatch recommends for a local store."""

    def prepare(self) -> None:
        use_pipeline("zarrs")
        super().prepare()


class AnnbatchZarrow(Annbatch):
    """With zarrow's pipeline under zarr-python."""

    def prepare(self) -> None:
        use_pipeline("zarrow")
        super().prepare()


class Beluga(Loader):
    """A copy in the layout that it reads, of the same chunks: each sample is read and decoded alone."""

    shuffle = "full"

    def prepare(self) -> None:
        self.library: Any = importlib.import_module("beluga")
        self.torch: Any = importlib.import_module("beluga.torch")
        self.converted = self.path.with_suffix(".beluga")
        if self.converted.exists():
            return
        zarr: Any = importlib.import_module("zarr")
        part = self.path.with_suffix(".beluga-part")
        group = zarr.open_group(part, mode="w", zarr_format=2)
        count, height, width = self.chosen.shape
        variables: dict[str, Any] = {
            "x": zarr.open_array(self.path, path="x", mode="r")[...],
            "time": np.arange(count),
            "latitude": np.linspace(-60, 60, height),
            "longitude": np.linspace(0, 120, width),
        }
        for name, values in variables.items():
            chunks = self.chosen.chunks if name == "x" else values.shape
            array = group.create_array(name, data=values, chunks=chunks, fill_value=None)
            names = ["time", "latitude", "longitude"] if name == "x" else [name]
            array.attrs["_ARRAY_DIMENSIONS"] = names
        group["time"].attrs.update(units="hours since 2000-01-01", calendar="proleptic_gregorian")
        zarr.consolidate_metadata(part)
        part.rename(self.converted)

    def open(self) -> None:
        place, options = str(self.converted.parent), {}
        if self.port is not None:
            place = f"s3://{BUCKET}"
            options = {
                "aws_endpoint": f"http://127.0.0.1:{self.port}",
                "aws_region": "us-east-1",
                "aws_allow_http": "true",
                "aws_skip_signature": "true",
            }
        reader = self.library.open_zarr_group(
            place, self.converted.name, variables=["x"], store_options=options
        )
        self.loader = self.torch.WindowLoader(reader, frames=1, batch_size=BATCH, shuffle=True, device="cpu")

    def epoch(self, number: int) -> Iterator[Any]:
        for batch in self.loader:
            yield batch.data[:, 0, 0]


class LitData(Loader):
    """LitData's own format: raw elements in files of 1 MiB, written once beside the set.

    From S3, it keeps the files in a local folder, so that the second epoch asks the server for nothing.
    """

    shuffle = "full"

    def prepare(self) -> None:
        self.litdata: Any = importlib.import_module("litdata")
        self.converted = self.path.with_suffix(".litdata")
        if self.converted.exists():
            return
        part = self.path.with_suffix(".litdata-part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        cache = importlib.import_module("litdata.streaming.cache").Cache(str(part), chunk_bytes=1 << 20)
        array = importlib.import_module("zarr").open_array(self.path, path="x", mode="r")
        for number, sample in enumerate(array[...]):
            cache[number] = sample
        cache.done()
        cache.merge()
        part.rename(self.converted)

    def open(self) -> None:
        options: dict[str, Any] = {"input_dir": str(self.converted)}
        if self.port is not None:
            # It has no option for a server without TLS.
            downloader = importlib.import_module("litdata.streaming.downloader")
            vars(downloader)["_OBSTORE_CLIENT_OPTIONS"]["allow_http"] = True
            self.folder = tempfile.TemporaryDirectory(dir=self.path.parent)
            client = {"endpoint_url": f"http://127.0.0.1:{self.port}", "region_name": "us-east-1"}
            options = {
                "input_dir": f"s3://{BUCKET}/{self.converted.name}",
                "cache_dir": self.folder.name,
                "storage_options": client | {"aws_access_key_id": "x", "aws_secret_access_key": "x"},
            }
        dataset = self.litdata.StreamingDataset(shuffle=True, **options)
        self.loader = self.litdata.StreamingDataLoader(dataset, batch_size=BATCH)

    def epoch(self, number: int) -> Iterator[Any]:
        yield from self.loader


LOADERS: dict[str, type[Loader]] = {
    "zarrow": Zarrow,
    "zarrow cache": ZarrowCache,
    "zarrow disk cache": ZarrowDiskCache,
    "NumPy, in memory": InMemory,
    "DataLoader + zarr-python": Workers,
    "DataLoader + fused": WorkersFused,
    "DataLoader + zarrs": WorkersZarrs,
    "insitubatch": Insitubatch,
    "insitubatch cache": InsitubatchCache,
    "annbatch": Annbatch,
    "annbatch + zarrs": AnnbatchZarrs,
    "annbatch + zarrow": AnnbatchZarrow,
    "beluga": Beluga,
    "LitData": LitData,
    "tensorstore": Tensorstore,
    "xbatcher": Xbatcher,
}
