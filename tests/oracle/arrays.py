"""An array to write: its elements, encoding, chunks, and missing chunks."""

import itertools
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from oracle.chains import Chain
from oracle.elements import Element, Values
from oracle.gaps import ZARR_PYTHON, as_zarr_python_gives
from oracle.libraries import open_tensorstore, unspecified


@dataclass(frozen=True)
class Geometry:
    """A shape, the separately encoded chunks, and the share of missing chunks."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    missing: float


GEOMETRIES = [
    Geometry((), (), 0),
    Geometry((), (), 1),
    Geometry((12,), (4,), 0.5),
    Geometry((11,), (4,), 0),
    Geometry((5,), (8,), 0),
    Geometry((1,), (1,), 0),
    Geometry((0,), (4,), 0),
    Geometry((6, 8), (3, 4), 0.5),
    Geometry((7, 5), (3, 2), 0.4),
    Geometry((1, 9), (1, 4), 0),
    Geometry((9, 2), (9, 2), 1),
    Geometry((4, 5, 6), (2, 2, 3), 0.5),
    Geometry((3, 0, 2), (2, 1, 2), 0),
    Geometry((3, 4, 2, 3), (2, 2, 1, 2), 0.3),
    Geometry((2, 3, 2, 3, 2), (1, 2, 2, 2, 1), 0.3),
]


@dataclass(frozen=True)
class ArrayCase:
    """One array, determined by these values alone."""

    element: Element
    chain: Chain
    geometry: Geometry
    fill: Any
    seed: int

    def values(self) -> Values:
        """Return the expected elements: random ones, and the fill value in missing chunks."""
        rng = np.random.default_rng(self.seed)
        geometry = self.geometry
        count = int(np.prod(geometry.shape, dtype=int))
        values = self.element.values(rng, count).reshape(geometry.shape).copy()
        if values.dtype.kind == "c" and self.fill != self.fill:
            # zarr-python treats any NaN as the fill value, and does not store it.
            values[np.isnan(values)] = 1
        chooser = random.Random(self.seed)
        cells = (
            range(0, extent, chunk) for extent, chunk in zip(geometry.shape, geometry.chunks, strict=True)
        )
        for corner in itertools.product(*cells):
            if chooser.random() < geometry.missing:
                ends = zip(corner, geometry.chunks, strict=True)
                values[tuple(slice(start, start + length) for start, length in ends)] = self.fill
        return values

    def document(self) -> dict[str, Any]:
        """Return the metadata."""
        element, chain, geometry = self.element, self.chain, self.geometry
        fill = element.fill_json(self.fill, chain.version)
        document: dict[str, Any] = {
            "zarr_format": chain.version,
            "shape": list(geometry.shape),
            "fill_value": fill,
        }
        if chain.version == 2:
            document |= {"dtype": element.v2}
        else:
            key_encoding = {"name": "default", "configuration": {"separator": "/"}}
            document |= {"node_type": "array", "data_type": element.v3, "chunk_key_encoding": key_encoding}
        return document | chain.keys(element, geometry.chunks)

    @property
    def zarr_python_reads(self) -> bool:
        # zarr-python 3.1 fails on shards without axes, and on shards with a fill value of raw bytes.
        if self.chain.is_sharded and (not self.geometry.shape or self.element.name == "raw"):
            return False
        return self.element.zarr_python and self.chain.zarr_python

    @property
    def can_be_written(self) -> bool:
        return (self.zarr_python_reads and not self.is_refused) or self.tensorstore_reads

    @property
    def is_refused(self) -> bool:
        """Return whether zarr-python 3.4 cannot write it: variable-length bytes, without axes."""
        return ZARR_PYTHON >= (3, 4) and self.element.name == "bytes" and not self.geometry.shape

    @property
    def tensorstore_reads(self) -> bool:
        return self.element.tensorstore and self.chain.tensorstore

    @property
    def is_garbled(self) -> bool:
        """Return whether zarr-python 3.1 stores wrong values.

        It writes a transposed chunk of strings or bytes in memory order, where the specification, and
        its own decoder, expect the order of the transposed axes.
        """
        is_transposed = self.chain.version == 3 and self.chain.is_transposed
        return ZARR_PYTHON < (3, 4) and self.element.is_variable and is_transposed

    def write(self, folder: Path) -> Values:
        """Write the array with the first capable library, and return the expected elements."""
        folder.mkdir(parents=True)
        name = ".zarray" if self.chain.version == 2 else "zarr.json"
        (folder / name).write_text(json.dumps(self.document()))
        values = self.values()
        if self.zarr_python_reads:
            with unspecified():
                config = {"write_empty_chunks": self.geometry.missing == 0}
                zarr.open_array(folder, mode="r+", config=config)[...] = values
        else:
            open_tensorstore(folder)[...].write(values).result()
        return self.read_by_zarr_python(folder) if self.is_garbled else values

    def read_by_zarr_python(self, folder: Path) -> Values:
        with unspecified():
            return np.asarray(zarr.open_array(folder, mode="r")[...], dtype=self.element.dtype)

    def read_by_tensorstore(self, folder: Path) -> Values:
        values: Values = open_tensorstore(folder).read().result()
        return values

    def check_readers(self, folder: Path, expected: Values) -> None:
        """Assert that the other libraries read these values too."""
        if self.zarr_python_reads:
            read = self.read_by_zarr_python(folder)
            assert bits(read) == bits(as_zarr_python_gives(expected)), "zarr-python reads something else"
        if self.tensorstore_reads:
            assert bits(self.read_by_tensorstore(folder)) == bits(expected), (
                "TensorStore reads something else"
            )


def bits(array: Any) -> tuple[Any, ...]:
    """Return a key for bit-exact comparison: shape, native-endian type, and the elements' bytes."""
    array = np.asarray(array)
    if array.dtype == object or isinstance(array.dtype, np.dtypes.StringDType):
        return array.shape, array.dtype, array.tolist()
    native = array.dtype.newbyteorder("=")
    return array.shape, native, array.astype(native).tobytes()
