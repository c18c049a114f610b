"""The other readers of Zarr."""

import shutil
import warnings
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import NDArray

from benches.peers.peer import Copy, Peer
from benches.selections import Selection


def create_like(path: Path, like: Path) -> None:
    """Make an empty array with the same metadata, which every Zarr writer then opens."""
    path.mkdir(parents=True)
    shutil.copyfile(like / "zarr.json", path / "zarr.json")


class ZarrPython(Peer):
    """zarr-python with its defaults."""

    name = "zarr-python"
    package = "zarr"
    reads_http = True

    def __init__(self) -> None:
        import zarr

        self.zarr: Any = zarr
        # Its string type is not in the standard, and it warns at each opening.
        warnings.simplefilter("ignore")

    def open(self, path: Path) -> Any:
        return self.zarr.open_array(path, mode="r")

    def open_url(self, url: str) -> Any:
        return self.zarr.open_array(url, mode="r")

    def read(self, array: Any, selection: Selection | None) -> Any:
        return array[...] if selection is None else array[selection]

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        create_like(path, like)
        self.zarr.open_array(path, mode="r+")[...] = data

    def open_to_write(self, path: Path) -> Any:
        return self.zarr.open_array(path, mode="r+")

    def create(self, path: Path) -> None:
        self.zarr.create_array(path, shape=(1000, 1000), chunks=(100, 100), dtype="float32")


class Fused(ZarrPython):
    """zarr-python with the fused pipeline, which newer versions have but do not enable."""

    name = "zarr-python fused"

    def missing(self) -> str | None:
        from zarr.core import codec_pipeline

        if not hasattr(codec_pipeline, "FusedCodecPipeline"):
            return f"zarr {self.zarr.__version__} has no fused pipeline"
        self.zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.FusedCodecPipeline"})
        return None


class Zarrs(ZarrPython):
    """zarr-python with the pipeline of zarrs."""

    name = "zarr-python+zarrs"
    package = "zarrs"

    def __init__(self) -> None:
        super().__init__()
        import zarrs  # noqa: F401

        self.zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})


class Zarrista(Peer):
    name = "zarrista"
    package = "zarrista"
    calls: ClassVar = {"dlpack": "t.__dlpack__()", "numpy": "t.to_numpy()", "torch": "torch.from_dlpack(t)"}

    def __init__(self) -> None:
        import zarrista
        from zarrista.store import FilesystemStore

        self.zarrista: Any = zarrista
        self.store: Any = FilesystemStore

    def open(self, path: Path) -> Any:
        return self.zarrista.Array.open(self.store(str(path)))

    def read(self, array: Any, selection: Selection | None) -> Any:
        return array[...] if selection is None else array[selection]

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        create_like(path, like)
        self.open(path)[...] = data


class Tensorstore(Peer):
    name = "tensorstore"
    package = "tensorstore"
    reads_http = True

    def __init__(self) -> None:
        import tensorstore

        self.tensorstore: Any = tensorstore

    def open(self, path: Path) -> Any:
        return self.open_url(f"file://{path}")

    def open_url(self, url: str) -> Any:
        return self.tensorstore.open({"driver": "zarr3", "kvstore": url}).result()

    def read(self, array: Any, selection: Selection | None) -> Any:
        return (array if selection is None else array[selection]).read().result()

    def points(self, array: Any, index: tuple[NDArray[Any], ...]) -> Any:
        return array.vindex[index].read().result()

    def orthogonal(self, array: Any, index: tuple[Any, ...]) -> Any:
        return array.oindex[index].read().result()

    def write(self, path: Path, data: NDArray[Any], like: Path) -> None:
        create_like(path, like)
        self.open(path).write(data).result()

    def change(self, array: Any, selection: Selection, values: NDArray[Any]) -> None:
        array[selection].write(values).result()

    def copy(self, source: Path, target: Path, options: Copy) -> None:
        driver = "zarr" if (source / ".zarray").exists() else "zarr3"
        array = self.tensorstore.open({"driver": driver, "kvstore": f"file://{source}"}).result()
        grid = {"name": "regular", "configuration": {"chunk_shape": options.chunks}}
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, *options.codecs()]
        metadata = {"shape": array.shape, "data_type": "float32", "chunk_grid": grid, "codecs": codecs}
        described = {"driver": "zarr3", "kvstore": f"file://{target}", "metadata": metadata}
        self.tensorstore.open(described, create=True).result().write(array).result()

    def create(self, path: Path) -> None:
        grid = {"name": "regular", "configuration": {"chunk_shape": [100, 100]}}
        metadata = {"shape": [1000, 1000], "data_type": "float32", "chunk_grid": grid}
        described = {"driver": "zarr3", "kvstore": f"file://{path}", "metadata": metadata}
        self.tensorstore.open(described, create=True).result()
