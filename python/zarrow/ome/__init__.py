"""OME-Zarr images: levels of several resolutions, with axes, scales and labels, of versions 0.4 and 0.5.

`Group.multiscales` reads an image, `zarrow.ome.save` stores one, `zarrow.ome.pyramid` computes levels,
and `zarrow.ome.create` creates an image to be written or streamed.

>>> import numpy as np, zarrow
>>> levels = [np.ones((64, 64), "u2"), np.ones((32, 32), "u2")]
>>> zarrow.ome.save("image.zarr", levels, axes="yx", scale=[0.5, 0.5], unit="micrometer")
>>> image = zarrow.open("image.zarr").multiscales
>>> image.axes[0].name, image.axes[0].unit, [level.scale for level in image]
('y', 'micrometer', [(0.5, 0.5), (1.0, 1.0)])
>>> image["1"].array[:2, 0].tolist()
[1, 1]
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from zarrow.hints.module_names import getattr_of as _getattr_of
from zarrow.ome.creation import create
from zarrow.ome.planning import plan_pyramid, pyramid
from zarrow.ome.reading import Axis, Level, Multiscales
from zarrow.ome.saving import save

__all__ = ["Axis", "Level", "Multiscales", "create", "plan_pyramid", "pyramid", "save"]

if not _TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = _getattr_of(__name__)
