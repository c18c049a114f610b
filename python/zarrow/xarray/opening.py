"""`open_zarr` with this engine: xarray's own names its engine in its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import xarray
from xarray.core.utils import _default

from zarrow.api.array_options import says_options
from zarrow.xarray.entrypoint import ZarrowBackendEntrypoint


@says_options
def open_zarr(
    store: Any,
    group: str | None = None,
    chunks: Any = _default,
    decode_cf: bool | None = True,
    mask_and_scale: Any = True,
    decode_times: Any = True,
    concat_characters: Any = True,
    decode_coords: Literal["coordinates", "all"] | bool = True,
    drop_variables: str | Iterable[str] | None = None,
    consolidated: bool | None = None,
    overwrite_encoded_chunks: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    decode_timedelta: Any = None,
    use_cftime: Any = None,
    zarr_format: int | None = None,
    use_zarr_fill_value_as_mask: bool | None = None,
    chunked_array_type: str | None = None,
    from_array_kwargs: dict[str, Any] | None = None,
    create_default_indexes: bool = True,
) -> xarray.Dataset:
    """Open a Zarr group as a dataset, as `xarray.open_zarr` does with the same arguments.

    The store may also be an opened group of zarrow.

    Arrays are dask arrays if dask is installed; `chunks=None` opens them without dask.

    Examples
    --------
    >>> import xarray, zarrow
    >>> dataset = xarray.Dataset({"rain": ("day", [1.0, 2.0])})
    >>> _ = dataset.to_zarr("new.zarr", consolidated=False)
    >>> zarrow.xarray.open_zarr("new.zarr", consolidated=False)["rain"].values
    array([1., 2.])
    """
    if chunks is _default:
        chunks = {} if _has_chunk_manager(chunked_array_type) else None
    return xarray.open_dataset(
        store,
        group=group,
        decode_cf=decode_cf,
        mask_and_scale=mask_and_scale,
        decode_times=decode_times,
        concat_characters=concat_characters,
        decode_coords=decode_coords,
        engine=ZarrowBackendEntrypoint,
        chunks=chunks,
        drop_variables=drop_variables,
        create_default_indexes=create_default_indexes,
        chunked_array_type=chunked_array_type,
        from_array_kwargs=from_array_kwargs or {},
        backend_kwargs={
            "consolidated": consolidated,
            "overwrite_encoded_chunks": overwrite_encoded_chunks,
            "storage_options": storage_options,
            "zarr_format": zarr_format,
            "use_zarr_fill_value_as_mask": use_zarr_fill_value_as_mask,
        },
        decode_timedelta=decode_timedelta,
        use_cftime=use_cftime,
    )


def _has_chunk_manager(chunked_array_type: str | None) -> bool:
    from xarray.namedarray.parallelcompat import guess_chunkmanager

    try:
        guess_chunkmanager(chunked_array_type)
    except (ImportError, ValueError):
        return False
    return True
