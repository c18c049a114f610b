"""The engine `"zarrow"` of xarray, with the signatures of xarray's own engine `"zarr"`."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import xarray
from xarray.backends.common import BackendEntrypoint, _normalize_path, datatree_from_dict_with_io_cleanup
from xarray.backends.plugins import detect_parameters
from xarray.backends.store import StoreBackendEntrypoint

from zarrow._zarrow import Group
from zarrow.hints.calling_line import warn
from zarrow.xarray.data_store import ZarrowStore, groups_below, is_place_of_zarr, members, open_group
from zarrow.xarray.first_reads import FirstReads


def _close() -> None:
    """Close a dataset: nothing is open. The method of a store would pickle the store."""


def _finish(dataset: xarray.Dataset, opened: Any) -> None:
    """Set how a dataset is closed, and its source: of a group, xarray would take the path in its store."""
    dataset.set_close(_close)
    if is_place_of_zarr(opened):
        dataset.encoding["source"] = str(getattr(opened, "store_path", opened))
    elif isinstance(opened, Group):
        store = opened.__reduce__()[1][0]
        dataset.encoding["source"] = _normalize_path(store) if isinstance(store, str) else opened.store


def _time_options(decode_times: Any, use_cftime: Any) -> tuple[Any, Any]:
    """Return these options without the deprecated one: xarray would warn of it for each variable."""
    if not isinstance(use_cftime, bool) or decode_times is not True:
        return decode_times, use_cftime
    warn(
        "Usage of 'use_cftime' as a kwarg is deprecated: pass "
        f"decode_times=xarray.coders.CFDatetimeCoder(use_cftime={use_cftime})",
        FutureWarning,
    )
    return xarray.coders.CFDatetimeCoder(use_cftime=use_cftime), None


class ZarrowBackendEntrypoint(BackendEntrypoint):
    """Reads Zarr by zarrow: `xarray.open_dataset(store, engine="zarrow")`."""

    description = "Open Zarr stores by zarrow"
    supports_groups = True
    # Whether dask's chunks are shards; with the engine "zarr" they are inner chunks.
    _prefers_shards: ClassVar[bool] = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this engine opens a store if no engine is named.

        It opens groups of zarrow, and paths if zarr-python is not installed.
        """
        if isinstance(filename_or_obj, Group):
            return True
        if not isinstance(filename_or_obj, str | os.PathLike):
            return False
        name = os.fspath(filename_or_obj).rstrip("/")
        return name.endswith(".zarr") and importlib.util.find_spec("zarr") is None

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        mode: str = "r",
        consolidated: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        zarr_format: int | None = None,
        store: Any = None,
        engine: Any = None,
        use_zarr_fill_value_as_mask: bool | None = None,
        cache_members: bool = True,
    ) -> xarray.Dataset:
        """Open a group as a dataset: see `xarray.open_dataset`.

        `cache_members` has no effect: members are listed once, when the dataset is opened.
        """
        is_own = not store
        if is_own:
            opened = open_group(
                _normalize_path(filename_or_obj),
                group,
                mode=mode,
                consolidated=consolidated,
                storage_options=storage_options,
                zarr_format=zarr_format,
            )
            store = ZarrowStore(
                opened,
                members(opened),
                drop_variables=drop_variables,
                use_zarr_fill_value_as_mask=use_zarr_fill_value_as_mask,
                prefers_shards=self._prefers_shards,
            )
        decode_times, use_cftime = _time_options(decode_times, use_cftime)
        dataset = StoreBackendEntrypoint().open_dataset(
            store,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
        )
        if is_own:
            store.first_reads.end_of_opening()
            _finish(dataset, filename_or_obj)
        return dataset

    # xarray sets it for engines by name alone, not for a class as `engine=`.
    open_dataset_parameters = detect_parameters(open_dataset)

    def open_datatree(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        mode: str = "r",
        consolidated: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        zarr_format: int | None = None,
    ) -> xarray.DataTree:
        """Open a group and all groups below it as a tree: see `xarray.open_datatree`."""
        groups = self.open_groups_as_dict(
            filename_or_obj,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            concat_characters=concat_characters,
            decode_coords=decode_coords,
            drop_variables=drop_variables,
            use_cftime=use_cftime,
            decode_timedelta=decode_timedelta,
            group=group,
            mode=mode,
            consolidated=consolidated,
            storage_options=storage_options,
            zarr_format=zarr_format,
        )
        return datatree_from_dict_with_io_cleanup(groups)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        mode: str = "r",
        consolidated: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        zarr_format: int | None = None,
    ) -> dict[str, xarray.Dataset]:
        """Open a group and all groups below it as datasets by path: see `xarray.open_groups`."""
        opened = open_group(
            _normalize_path(filename_or_obj),
            group,
            mode=mode,
            consolidated=consolidated,
            storage_options=storage_options,
            zarr_format=zarr_format,
        )
        first_reads = FirstReads()
        stores = {
            path: ZarrowStore(
                node,
                listed,
                drop_variables=drop_variables,
                prefers_shards=self._prefers_shards,
                first_reads=first_reads,
            )
            for path, (node, listed) in groups_below(opened).items()
        }
        entrypoint = StoreBackendEntrypoint()
        decode_times, use_cftime = _time_options(decode_times, use_cftime)
        # Variables of all groups join the batch before the first is decoded.
        for store in stores.values():
            store.get_variables()
        datasets = {
            path.strip("/") or "." if group else path: entrypoint.open_dataset(
                store,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
            for path, store in stores.items()
        }
        first_reads.end_of_opening()
        for dataset in datasets.values():
            _finish(dataset, filename_or_obj)
        return datasets
