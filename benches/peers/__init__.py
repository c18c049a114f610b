"""The peers: each class opens and reads as the library's users do, in the order of the report."""

from benches.peers.copiers import Cubed, Dask
from benches.peers.datasets import OfCubed, OfDask, OfDaskOnEngine, OfDaskOnZarrs
from benches.peers.in_memory import PyArrow, PyTorch, TvmFfi
from benches.peers.peer import Copy, Peer
from benches.peers.programs import LoadedAtOnce, OnEngine, OnPipeline, Xarray
from benches.peers.single_file import Blosc2, H5py, NumpyLoad, NumpyMapped, StringCopy
from benches.peers.zarr_reader import Fused, Tensorstore, Zarrista, ZarrPython, Zarrs
from benches.peers.zarrow_reader import Cached, Into, Mapped, Zarrow

PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (
        Zarrow,
        Mapped,
        Into,
        Cached,
        ZarrPython,
        Fused,
        Zarrs,
        OnPipeline,
        Zarrista,
        Tensorstore,
        NumpyLoad,
        NumpyMapped,
        H5py,
        Blosc2,
        StringCopy,
        PyTorch,
        TvmFfi,
        PyArrow,
        Xarray,
        OnEngine,
        LoadedAtOnce,
        Dask,
        Cubed,
        OfDask,
        OfDaskOnZarrs,
        OfDaskOnEngine,
        OfCubed,
    )
}

__all__ = ["PEERS", "Copy", "Peer"]
