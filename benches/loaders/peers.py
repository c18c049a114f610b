"""The loaders, each used as its documentation recommends. An epoch is an iterator over batches.

Each shuffles as it can: over windows of 16 MiB, fully, or not at all. All see the same number of samples.
"""

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
WORKERS = 2
PIPELINES = {
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}


class Loader:
    """A loader of one set, in a folder or in a bucket. The constructor imports what it needs."""

    shuffle: ClassVar[str]

    def __init__(self, name: str, folder: Path, port: int | None) -> None:
        warnings.simplefilter("ignore")
        self.chosen = SETS[name]
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
        storage = importlib.import_module("zarr.storage")
        options: dict[str, Any] = {
            "endpoint": f"http://127.0.0.1:{self.port}",
            "region": "us-east-1",
            "skip_signature": True,
            "client_options": {"allow_http": True},
        }
        s3 = importlib.import_module("obstore.store").S3Store
        return storage.ObjectStore(s3(BUCKET, prefix=self.path.name, **options), read_only=True)

    def corner(self, random: np.random.Generator) -> tuple[slice, ...]:
        """Draw a crop."""
        assert self.chosen.crop
        starts = random.integers(0, [side - 48 + 1 for side in self.chosen.shape])
        return tuple(
            slice(at, at + extent) for at, extent in zip(starts.tolist(), self.chosen.crop, strict=True)
        )


class Zarrow(Loader):
    """Tensors, if PyTorch is there, else arrays of NumPy."""

    shuffle = "windows"
    options: ClassVar[dict[str, Any]] = {}

    def prepare(self) -> None:
        self.zarrow = importlib.import_module("zarrow")
        self.data: Any = importlib.import_module("zarrow.data")
        try:
            self.loader_class = importlib.import_module("zarrow.torch").DataLoader
        except ModuleNotFoundError:
            self.loader_class = self.data.Loader

    def open(self) -> None:
        if self.port is None:
            array = self.zarrow.open_array(self.path, "x")
        else:
            endpoint = {"anon": True, "endpoint_url": f"http://127.0.0.1:{self.port}", "region": "us-east-1"}
            array = self.zarrow.open_array(f"s3://{BUCKET}/{self.path.name}", "x", storage_options=endpoint)
        source = self.data.Crops(array, self.chosen.crop, self.chosen.samples) if self.chosen.crop else array
        self.loader = self.loader_class(
            self.data.Plan(source, BATCH, window_nbytes=self.chosen.window_nbytes), **self.options
        )

    def epoch(self, number: int) -> Iterator[Any]:
        yield from self.loader


class ZarrowCache(Zarrow):
    options: ClassVar[dict[str, Any]] = {"cache_nbytes": 80 << 20}


class Workers(Loader):
    """PyTorch's DataLoader with worker processes that read samples by zarr-python."""

    shuffle = "full"
    pipeline: ClassVar[str | None] = None

    def prepare(self) -> None:
        self.torch: Any = importlib.import_module("torch.utils.data")
        zarr: Any = importlib.import_module("zarr")
        if self.pipeline is not None:
            module, _, name = PIPELINES[self.pipeline].rpartition(".")
            getattr(importlib.import_module(module), name)
            zarr.config.set({"codec_pipeline.path": PIPELINES[self.pipeline]})

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
        if self.chosen.crop:
            raise NotImplementedError("has no random crops")
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

    def prepare(self) -> None:
        if self.chosen.crop:
            raise NotImplementedError("has no random crops")
        self.library: Any = importlib.import_module("insitubatch")
        if self.port is None:
            self.local: Any = importlib.import_module("obstore.store").LocalStore

    def open(self) -> None:
        storage = importlib.import_module("zarr.storage")
        store = self.store() if self.port else storage.ObjectStore(self.local(self.path), read_only=True)
        geometries = self.library.open_geometries(store, variables=["x"])
        manifest = self.library.split_by_chunk(geometries["x"], fractions=(1.0, 0.0, 0.0))
        block = WINDOW_NBYTES // (np.prod(self.chosen.chunks).item() * 4)
        self.dataset = self.library.InSituDataset(
            store, manifest, geometries=geometries, batch_size=BATCH, block_chunks=block, max_inflight=64
        )

    def epoch(self, number: int) -> Iterator[Any]:
        self.dataset.set_epoch(number)
        for batch in self.dataset.train:
            yield batch.arrays["x"]


class Beluga(Loader):
    """A copy in the layout that it reads, of the same chunks: each sample is read and decoded alone."""

    shuffle = "full"

    def prepare(self) -> None:
        if self.chosen.crop:
            raise NotImplementedError("has no random crops")
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
        if self.chosen.crop:
            raise NotImplementedError("has no random crops")
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
            client = {"endpoint_url": f"http://127.0.0.1:{self.port}", "region_name": "us-east-1"}
            options = {
                "input_dir": f"s3://{BUCKET}/{self.converted.name}",
                "cache_dir": tempfile.mkdtemp(),
                "storage_options": client | {"aws_access_key_id": "x", "aws_secret_access_key": "x"},
            }
        dataset = self.litdata.StreamingDataset(shuffle=True, **options)
        self.loader = self.litdata.StreamingDataLoader(dataset, batch_size=BATCH)

    def epoch(self, number: int) -> Iterator[Any]:
        yield from self.loader


LOADERS: dict[str, type[Loader]] = {
    "zarrow": Zarrow,
    "zarrow cache": ZarrowCache,
    "DataLoader + zarr-python": Workers,
    "DataLoader + fused": WorkersFused,
    "DataLoader + zarrs": WorkersZarrs,
    "insitubatch": Insitubatch,
    "beluga": Beluga,
    "LitData": LitData,
    "tensorstore": Tensorstore,
    "xbatcher": Xbatcher,
}
