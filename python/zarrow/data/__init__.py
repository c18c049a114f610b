"""Batches for training: a plan of an epoch, and a loader that reads ahead.

>>> import zarrow
>>> from zarrow import data
>>> temperature = zarrow.open("data.zarr")["temperature"]
>>> plan = data.Plan({"x": data.Windows(temperature, 6), "y": data.Windows(temperature, 1, offset=6)})
>>> print(plan.describe().samples)
42

Samples
    Rows, Windows, Crops           parts of an array
Plans
    Plan                           samples in the order of an epoch
    Description                    what a plan predicts
Batches
    Loader                         reads ahead, and resumes on any number of ranks
    Stats                          what it did, and which stage limits it
    RandomAccess                   samples by number, for samplers of other libraries
"""

from typing import TYPE_CHECKING

from zarrow.data.crops import Crops
from zarrow.data.description import Description
from zarrow.data.loader import Loader
from zarrow.data.plan import Plan
from zarrow.data.random_access import RandomAccess
from zarrow.data.rows import Rows
from zarrow.data.stats import Stats
from zarrow.data.windows import Windows
from zarrow.hints.module_names import getattr_of

__all__ = ["Crops", "Description", "Loader", "Plan", "RandomAccess", "Rows", "Stats", "Windows"]

if not TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = getattr_of(__name__)
