"""References of manifests: allowed and forbidden locations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from obstore.store import HTTPStore, LocalStore
from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
from virtualizarr.manifests.utils import create_v3_array_metadata

import zarrow
from stores_of_others import (
    run_in_child,
)
from zarrow.errors import ReadOnlyError, StoreError, StorePermissionError

pytestmark = pytest.mark.filterwarnings(
    # Python warns about every fork of a process with threads; these tests cover zarrow's promises for forks.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
    r"ignore:os.fork\(\) was called:RuntimeWarning",
    "ignore::zarr.errors.ZarrUserWarning",
)


def manifest_store(url: str, places: dict[str, tuple[int, int]], registry: Any) -> Any:
    """Return an array `a` of four chunks: parts of one object, and one inside the manifest."""
    metadata = create_v3_array_metadata(
        shape=(10,),
        data_type=np.dtype("<i4"),
        chunk_shape=(2,),
        fill_value=0,
        codecs=[{"name": "bytes", "configuration": {"endian": "little"}}],
    )
    entries: dict[str, Any] = {
        key: {"path": url, "offset": offset, "length": length} for key, (offset, length) in places.items()
    }
    if HAS_INLINED:
        entries["3"] = {"path": "", "offset": 0, "length": 8, "data": np.array([70, 71], "<i4").tobytes()}
    manifest = ChunkManifest(entries, shape=(5,))
    group = ManifestGroup(arrays={"a": ManifestArray(metadata, manifest)}, attributes={"title": "rain"})
    return ManifestStore(group, registry=registry)


PLACES = {"0": (5, 8), "1": (13, 8), "2": (40, 8)}
# VirtualiZarr for Python 3.11 has no chunks inside a manifest.
HAS_INLINED = "_inlined" in ChunkManifest.__annotations__
EXPECTED = [0, 1, 2, 3, 10, 11, *([70, 71] if HAS_INLINED else [0, 0]), 0, 0]


def object_bytes() -> bytes:
    return b"head:" + np.arange(4, dtype="<i4").tobytes() + b"-" * 19 + np.array([10, 11], "<i4").tobytes()


def registry_of(url: str, store: Any) -> Any:
    from obspec_utils.registry import ObjectStoreRegistry

    return ObjectStoreRegistry({url: store})


def test_references_are_read_where_they_are_allowed(web: str, tmp_path: Path) -> None:
    (tmp_path / "web" / "files").mkdir()
    (tmp_path / "web" / "files" / "rain.nc").write_bytes(object_bytes())
    registry = registry_of(web, HTTPStore.from_url(web, client_options={"allow_http": True}))
    store = manifest_store(f"{web}/files/rain.nc", PLACES, registry)
    root = zarrow.open(store)
    assert dict(root.attrs) == {"title": "rain"} and list(root.keys()) == ["a"]
    for allow in (
        [],
        [f"{web}/file"],
        ["http://localhost/"],
        [f"{web.replace('http', 'https')}"],
        ["file:///"],
    ):
        refused = zarrow.open(zarrow.PythonStore(store, allow=allow), "a")
        with pytest.raises(StorePermissionError, match="allow="):
            refused[...]
        # Chunks inside the manifest need no permission.
        assert refused[6:10].tolist() == EXPECTED[6:]
    for allow in ([web], [f"{web}/files"], [f"{web}/files/"], ["file:///", f"{web}/files/rain.nc"]):
        array = zarrow.open(zarrow.PythonStore(store, allow=allow), "a")
        assert array[...].tolist() == EXPECTED
        assert array.nbytes_stored() > 24
    with pytest.raises(ReadOnlyError):
        array[0] = 1
    assert run_in_child("fork", lambda: np.testing.assert_array_equal(array[...], EXPECTED)) is None


def test_errors_do_not_repeat_passwords(tmp_path: Path) -> None:
    registry = registry_of("file://", LocalStore())
    for url in (
        "http://me:hush@example.com/rain.nc",
        "http://me:hush@example.com/../rain.nc",
        "http://example.com/rain.nc?sig=hush",
    ):
        array = zarrow.open(manifest_store(url, PLACES, registry), "a")
        with pytest.raises(StoreError, match=r"example\.com") as caught:
            array[...]
        assert "hush" not in str(caught.value)


def test_references_to_files_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "rain.nc").write_bytes(object_bytes())
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_bytes(b"hush-hush" * 9)
    registry = registry_of("file://", LocalStore())
    store = manifest_store(f"file://{tmp_path}/rain.nc", PLACES, registry)
    with pytest.raises(StorePermissionError):
        zarrow.open(store, "a")[...]
    allow = [f"file://{tmp_path}"]
    assert zarrow.open(zarrow.PythonStore(store, allow=allow), "a")[...].tolist() == EXPECTED
    for path in (
        f"{tmp_path}/../{secret.name}",
        f"{tmp_path}/%2e%2e/{secret.name}",
        str(secret),
        f"{tmp_path}-secret",
    ):
        store = manifest_store(f"file://{path}", PLACES, registry)
        with pytest.raises(StoreError):
            zarrow.open(zarrow.PythonStore(store, allow=allow), "a")[...]


def test_dangling_references_are_errors(tmp_path: Path) -> None:
    (tmp_path / "rain.nc").write_bytes(object_bytes())
    registry = registry_of("file://", LocalStore())
    for path, places in [
        ("none.nc", PLACES),
        ("rain.nc", {"0": (44, 8)}),
        ("rain.nc", {"0": (1 << 40, 8)}),
        ("rain.nc", {"0": ((1 << 64) - 4, 8)}),
        ("rain.nc", {"0": (0, 7)}),
        ("rain.nc", {"0": (0, 1 << 60)}),
    ]:
        store = manifest_store(f"file://{tmp_path}/{path}", places, registry)
        array = zarrow.open(zarrow.PythonStore(store, allow=[f"file://{tmp_path}"]), "a")
        with pytest.raises(zarrow.ZarrowError) as caught:
            array[0:2]
        assert caught.value.kind != "internal", caught.value
        assert array[8:].tolist() == [0, 0]


def test_allowed_locations_are_refused_where_nothing_checks_them(tmp_path: Path) -> None:
    import fsspec

    (tmp_path / "secret").write_bytes(b"secret")
    references = {"version": 1, "refs": {"x/0": [str(tmp_path / "secret")]}}
    mapper = fsspec.filesystem("reference", fo=references).get_mapper("")
    for store in (mapper, {}, tmp_path):
        with pytest.raises(TypeError, match=r"ManifestStore|neither"):
            zarrow.PythonStore(store, allow=["file:///allowed/"])
    assert zarrow.PythonStore(mapper).allow == ()
