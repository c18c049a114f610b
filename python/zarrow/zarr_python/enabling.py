"""Makes zarr-python use the engine."""

from __future__ import annotations

from zarrow.interchange.zarr_settings import ZarrSettings
from zarrow.zarr_python.loading import pipeline_class

PATH = "zarrow.zarr_python.CodecPipeline"


def enable() -> ZarrSettings:
    """Have zarr-python read and write chunks by the engine, from now on or in a `with` block.

    The same as `zarr.config.set({"codec_pipeline.path": "zarrow.zarr_python.CodecPipeline"})`, or the
    environment variable `ZARR_CODEC_PIPELINE__PATH`. It applies to arrays that are opened or created from now
    on: open arrays keep the pipeline that they have.

    Without `with`, `zarr.config.reset()` ends it, and resets all other settings of zarr-python.

    Returns
    -------
    ZarrSettings
        A context manager that restores the previous setting. It may be entered again, and enables again.

    Raises
    ------
    ImportError
        zarr-python is not installed.

    Examples
    --------
    >>> import zarr, zarrow
    >>> with zarrow.zarr_python.enable():
    ...     array = zarr.open_array("data.zarr/temperature", mode="r")
    >>> zarrow.zarr_python.explain(array).read
    'zarrow'
    """
    pipeline_class()
    return ZarrSettings({"codec_pipeline.path": PATH})
