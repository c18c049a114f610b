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
"""

from zarrow.data.description import Description
from zarrow.data.plan import Plan
from zarrow.data.sources import Crops, Rows, Windows

__all__ = ["Crops", "Description", "Plan", "Rows", "Windows"]
