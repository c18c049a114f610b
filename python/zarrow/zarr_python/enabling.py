"""Makes zarr-python use the engine."""

from __future__ import annotations

from zarrow.interchange.zarr_settings import ZarrSettings
from zarrow.zarr_python.loading import CLASSES, class_of_zarr_python

PATH = "zarrow.zarr_python.CodecPipeline"
BUFFER = "zarrow.zarr_python.NDBuffer"
# Buffers on the CPU: zarr-python's own have two names.
HOST_BUFFERS = ("zarr.buffer.cpu.NDBuffer", "zarr.core.buffer.cpu.NDBuffer", BUFFER)


def enable() -> ZarrSettings:
    """Have zarr-python read and write chunks by the engine, from now on or in a `with` block.

    The same as these settings, or the environment variables `ZARR_CODEC_PIPELINE__PATH` and `ZARR_NDBUFFER`::

        zarr.config.set({
            "codec_pipeline.path": "zarrow.zarr_python.CodecPipeline",
            "ndbuffer": "zarrow.zarr_python.NDBuffer",
        })

    The first applies to arrays that are opened or created from now on: open arrays keep their own pipeline.
    The second puts large results into memory that the engine recycles, as it does with its own; another class
    of buffers that was chosen before, such as one for a GPU, stays.

    Without `with`, `disable` of the result ends it.

    Returns
    -------
    ZarrSettings
        A context manager that restores the previous settings. It may be entered again, and enables again.

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
    for name in CLASSES:
        class_of_zarr_python(name)
    import zarr

    settings = {"codec_pipeline.path": PATH}
    if zarr.config.get("ndbuffer") in HOST_BUFFERS:
        settings["ndbuffer"] = BUFFER
    return ZarrSettings(settings)
