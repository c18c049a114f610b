"""The names in the lines of the table."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

import zarrow

MODULES = {
    "np": "numpy",
    "pd": "pandas",
    "pl": "polars",
    "pa": "pyarrow",
    "pc": "pyarrow.compute",
    "jax": "jax",
    "jnp": "jax.numpy",
    "torch": "torch",
    "xr": "xarray",
    "plt": "matplotlib.pyplot",
    "scipy": "scipy",
    "duckdb": "duckdb",
    "zarr": "zarr",
    "h5py": "h5py",
    "PIL": "PIL",
    "zarrow": "zarrow",
    "math": "math",
    "json": "json",
    "pickle": "pickle",
    "copy": "copy",
    "datetime": "datetime",
}
FUNCTIONS = {
    "train_test_split": "sklearn.model_selection",
    "StandardScaler": "sklearn.preprocessing",
    "LabelEncoder": "sklearn.preprocessing",
    "LinearRegression": "sklearn.linear_model",
    "KMeans": "sklearn.cluster",
    "accuracy_score": "sklearn.metrics",
    "SimpleImputer": "sklearn.impute",
}
SUBMODULES = ("scipy.ndimage", "scipy.sparse", "scipy.stats", "PIL.Image", "torch.utils.data")


def libraries(code: str) -> dict[str, Any]:
    """Import the libraries that a line uses."""
    if "plt." in code:
        importlib.import_module("matplotlib").use("agg")
    for name in SUBMODULES:
        if name in code:
            importlib.import_module(name)
    modules = {
        name: importlib.import_module(module) for name, module in MODULES.items() if f"{name}." in code
    }
    functions = {
        name: getattr(importlib.import_module(module), name)
        for name, module in FUNCTIONS.items()
        if name in code
    }
    return modules | functions


def arrays(folder: Path) -> dict[str, Any]:
    """Write the group, and return the values of the names."""
    root = zarrow.create_group(folder / "root.zarr")
    array = root.create_array("a", data=np.arange(6, dtype=np.float32).reshape(2, 3))
    counts = root.create_array("id", data=np.arange(3))
    names = root.create_array("name", data=["Oslo", "Rome", "Quito"])
    flags = root.create_array("flag", data=[True, False, True])
    root.create_array("small", shape=(3,), dtype="i2")
    root["table"] = {"b": [1], "a": [2]}
    memory = zarrow.create_group(zarrow.MemoryStore())
    masked = memory.create_array("m", data=np.ma.array([1, 2, 3], mask=[0, 1, 0]), missing="optional")
    nicknames = memory.create_array("n", data=["a", None, "c"], missing="optional")
    return {
        "folder": folder,
        "root": root,
        "array": array,
        "tensor": array[...],
        "counts": counts[...],
        "flags": flags[...],
        "names": names[...],
        "masked": masked[...],
        "nicknames": nicknames[...],
    }
