"""The same elements in many memory layouts."""

import random

import numpy as np

from oracle.elements import Values


def laid_out(rng: random.Random, values: Values) -> Values:
    """Return an array that equals `values`: in any order, with steps, backwards, or non-native-endian."""
    match rng.choice(["C", "F", "steps", "backwards", "axes", "swapped"]):
        case "F":
            return np.asfortranarray(values)
        case "steps":
            apart = np.zeros([2 * extent for extent in values.shape], values.dtype)
            view = apart[(slice(1, None, 2),) * values.ndim + (...,)]
            view[...] = values
            return view
        case "backwards":
            turned = (*(slice(None, None, -1),) * values.ndim, ...)
            return np.ascontiguousarray(values[turned])[turned]
        case "axes":
            return np.ascontiguousarray(values.T).T
        case "swapped" if values.dtype.kind not in "OTV":
            return values.astype(values.dtype.newbyteorder("S"))
        case _:
            return np.ascontiguousarray(values)
