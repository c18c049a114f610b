"""Two handles open and change one hierarchy in turn, compared with a dict of NumPy arrays.

Runs 500 sequences of 30 steps, or `ZARROW_STATE_MACHINE` sequences.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import small_files
import zarrow
from oracle.arrays import bits
from oracle.selections import any_of

# Each type with strategies for its elements and its fill value.
TYPES: dict[Any, list[Any]] = {
    "i4": [0, 1, -7, 2**31 - 1],
    "f8": [0.0, 1.5, np.nan, -np.inf],
    "bool": [False, True],
    "U3": ["", "né", "xyz"],
    "M8[s]": [np.datetime64(0, "s"), np.datetime64("NaT", "s"), np.datetime64(10**9, "s")],
    "string": ["", "a", "né" * 50],
}
COMPRESSORS = ["auto", None, "gzip", "blosc", ["zstd", "crc32c"]]
NAMES = ["a", "b", "g/c", "g/d", "g/h/e"]
MOST = 9

names = st.sampled_from(NAMES)
handles = st.integers(0, 1)
keys = st.sampled_from("xyz")
json = st.one_of(st.none(), st.integers(-5, 5), st.text(max_size=3), st.lists(st.integers(0, 3), max_size=2))


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtypes.StringDType() if dtype == "string" else np.dtype(dtype)


@dataclass
class Expected:
    """The expected state of an array."""

    values: np.ndarray[Any, Any]
    fill: Any
    attributes: dict[str, Any] = field(default_factory=dict)

    def resize(self, shape: tuple[int, ...]) -> None:
        values = np.full(shape, self.fill, self.values.dtype)
        kept = tuple(slice(min(old, new)) for old, new in zip(self.values.shape, shape, strict=True))
        values[kept] = self.values[kept]
        self.values = values


class Hierarchy(RuleBasedStateMachine):
    """Two groups of one store, opened separately."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir=small_files.memory()))
        self.expected: dict[str, Expected] = {}
        # Arrays that each handle holds open, possibly behind the other's changes.
        self.opened: list[dict[str, zarrow.Array]] = [{}, {}]

    @initialize(zarr_format=st.sampled_from([2, 3]), in_memory=st.booleans(), consolidated=st.booleans())
    def start(self, zarr_format: Any, in_memory: bool, consolidated: bool) -> None:
        self.zarr_format = zarr_format
        self.in_memory = in_memory
        self.consolidated = consolidated
        self.store = self.make_store(in_memory)
        zarrow.create_group(self.store, zarr_format=zarr_format)
        if consolidated:
            zarrow.consolidate_metadata(self.store)
        self.roots = [zarrow.open(self.store) for _ in range(2)]

    def make_store(self, in_memory: bool) -> Any:
        """Return the empty store: a folder, or memory."""
        return zarrow.MemoryStore() if in_memory else self.folder

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.check_all()
            if not self.in_memory:
                self.check_by_zarr_python()
        shutil.rmtree(self.folder)

    def root(self, handle: int) -> zarrow.Group:
        root = self.roots[handle]
        if self.consolidated:
            # Looking again shows the other handle's changes.
            root.refresh()
        return root

    def array(self, handle: int, name: str) -> zarrow.Array:
        """Return the array as one of the two handles holds it open."""
        opened = self.opened[handle]
        if name not in opened:
            opened[name] = self.root(handle)[name]
        return opened[name]

    def current(self, handle: int, name: str) -> zarrow.Array:
        array = self.array(handle, name)
        array.refresh()
        return array

    def check(self, array: zarrow.Array, name: str) -> None:
        expected = self.expected[name]
        assert array.shape == expected.values.shape
        assert array.attrs == expected.attributes
        assert bits(array[...].numpy()) == bits(expected.values)

    def existing(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.expected)), "name")

    @rule(data=st.data(), handle=handles, name=names, overwrite=st.booleans())
    def create(self, data: st.DataObject, handle: int, name: str, overwrite: bool) -> None:
        dtype = data.draw(st.sampled_from(sorted(TYPES)), "dtype")
        ndim = data.draw(st.integers(0, 3), "ndim")
        shape = tuple(data.draw(st.integers(0, MOST)) for _ in range(ndim))
        chunks = tuple(data.draw(st.integers(1, 4)) for _ in range(ndim))
        options: dict[str, Any] = {
            "chunks": chunks,
            "fill_value": data.draw(st.sampled_from(TYPES[dtype]), "fill"),
            "order": data.draw(st.sampled_from("CF"), "order"),
            "compressors": data.draw(st.sampled_from(COMPRESSORS), "compressors"),
            "attributes": data.draw(st.dictionaries(keys, json), "attributes"),
        }
        if self.zarr_format == 2:
            separator = data.draw(st.sampled_from("./"))
            options["chunk_key_encoding"] = {"name": "v2", "separator": separator}
        elif ndim and data.draw(st.booleans(), "sharded"):
            options["shards"] = tuple(chunk * data.draw(st.integers(1, 3)) for chunk in chunks)
        try:
            array = self.root(handle).create_array(
                name, shape=shape, dtype=dtype, overwrite=overwrite, **options
            )
        except FileExistsError:
            assert name in self.expected and not overwrite
            return
        assert overwrite or name not in self.expected
        values = np.full(shape, options["fill_value"], numpy_type(dtype))
        self.expected[name] = Expected(values, options["fill_value"], options["attributes"])
        for opened in self.opened:
            opened.pop(name, None)
        self.opened[handle][name] = array

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), handle=handles)
    def write(self, data: st.DataObject, handle: int) -> None:
        name = self.existing(data)
        expected = self.expected[name]
        selection = data.draw(any_of(expected.values.shape), "selection")
        choice = TYPES[next(key for key in TYPES if numpy_type(key) == expected.values.dtype)]
        part = expected.values[selection]
        if data.draw(st.booleans(), "scalar") or not isinstance(part, np.ndarray):
            value: Any = data.draw(st.sampled_from(choice))
        else:
            rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
            value = np.empty(part.shape, expected.values.dtype)
            value[...] = np.array(choice, expected.values.dtype)[rng.integers(0, len(choice), part.shape)]
        self.current(handle, name)[selection] = value
        expected.values[selection] = value

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), handle=handles)
    def read(self, data: st.DataObject, handle: int) -> None:
        name = self.existing(data)
        array, values = self.current(handle, name), self.expected[name].values
        for _ in range(3):
            selection = data.draw(any_of(values.shape), "selection")
            assert bits(array[selection].numpy()) == bits(np.asarray(values[selection], values.dtype))

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), handle=handles)
    def resize(self, data: st.DataObject, handle: int) -> None:
        name = self.existing(data)
        expected = self.expected[name]
        shape = tuple(data.draw(st.integers(0, MOST)) for _ in expected.values.shape)
        array = self.array(handle, name)
        array.resize(shape)
        expected.resize(shape)
        assert array.shape == shape

    @precondition(lambda self: any(expected.values.ndim for expected in self.expected.values()))
    @rule(data=st.data(), handle=handles, count=st.integers(0, 4))
    def append(self, data: st.DataObject, handle: int, count: int) -> None:
        names = sorted(name for name, expected in self.expected.items() if expected.values.ndim)
        name = data.draw(st.sampled_from(names), "name")
        expected = self.expected[name]
        axis = data.draw(st.integers(0, expected.values.ndim - 1), "axis")
        shape = list(expected.values.shape)
        shape[axis] = count
        if sum(expected.values.shape) > 40:
            return
        choice = TYPES[next(key for key in TYPES if numpy_type(key) == expected.values.dtype)]
        added = np.full(shape, data.draw(st.sampled_from(choice)), expected.values.dtype)
        # The handle may be behind, so the store determines the end.
        self.array(handle, name).append(added, axis=axis)
        expected.values = np.concatenate([expected.values, added], axis)

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), handle=handles, key=keys, value=json)
    def set_attribute(self, data: st.DataObject, handle: int, key: str, value: Any) -> None:
        name = self.existing(data)
        attributes = self.array(handle, name).attrs
        attributes[key] = value
        self.expected[name].attributes[key] = value
        assert attributes == self.expected[name].attributes

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), handle=handles, key=keys)
    def delete_attribute(self, data: st.DataObject, handle: int, key: str) -> None:
        name = self.existing(data)
        attributes = self.current(handle, name).attrs
        assert attributes.pop(key, "none") == self.expected[name].attributes.pop(key, "none")

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), handle=handles)
    def delete(self, data: st.DataObject, handle: int) -> None:
        name = self.existing(data)
        del self.root(handle)[name]
        self.forget(name)

    @precondition(lambda self: any(name.startswith("g/") for name in self.expected))
    @rule(handle=handles)
    def delete_group(self, handle: int) -> None:
        del self.root(handle)["g"]
        for name in [name for name in self.expected if name.startswith("g/")]:
            self.forget(name)

    def forget(self, name: str) -> None:
        del self.expected[name]
        for opened in self.opened:
            opened.pop(name, None)

    @rule(handle=handles)
    def reopen(self, handle: int) -> None:
        self.roots[handle] = zarrow.open(self.store)
        self.opened[handle] = {}

    @rule(handle=handles)
    def list_members(self, handle: int) -> None:
        root = self.root(handle)
        arrays = {name for name in NAMES if name in root}
        assert arrays == self.expected.keys()
        top = {name for name, _ in root.arrays()}
        assert top == {name for name in self.expected if "/" not in name}

    @rule(handle=handles)
    def consolidate(self, handle: int) -> None:
        self.consolidated = True
        self.roots[handle].consolidate_metadata()
        self.roots[1 - handle].refresh()

    @invariant()
    def nothing_is_left_beside(self) -> None:
        if hasattr(self, "store") and not self.in_memory:
            assert not list(self.folder.rglob(".zarrow-*"))

    def check_all(self) -> None:
        for handle in range(2):
            for name in self.expected:
                self.check(self.current(handle, name), name)
        self.check_below(zarrow.open(self.store))

    def check_below(self, root: zarrow.Group) -> None:
        for name in self.expected:
            self.check(root[name], name)

    def check_by_zarr_python(self) -> None:
        with warnings.catch_warnings():
            # zarr-python warns about types without a specification, and about consolidated metadata.
            warnings.simplefilter("ignore")
            root = zarr.open_group(self.folder, mode="r")
            for name, expected in self.expected.items():
                theirs: Any = root[name]
                assert theirs.attrs.asdict() == expected.attributes
                assert bits(np.asarray(theirs[...], expected.values.dtype)) == bits(expected.values)


count = int(os.environ.get("ZARROW_STATE_MACHINE", "500"))
Hierarchy.TestCase.settings = settings(
    max_examples=count, stateful_step_count=30, deadline=None, database=None
)
TestHierarchy = Hierarchy.TestCase
