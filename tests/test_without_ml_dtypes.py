"""Values of ml_dtypes' types without ml_dtypes: they are shown, or the error says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import zarrow

CODE = """
import sys
sys.modules["ml_dtypes"] = None
import zarrow
brain, masked, small = (zarrow.open("root.zarr")[name][...] for name in ("brain", "masked", "small"))
assert "[1.  2.5]" in repr(brain) and "[1.  2.5]" in brain._repr_html_() and str(brain) == "[1.  2.5]"
assert brain.tolist() == [1.0, 2.5] and brain[1].item() == float(brain[1]) == brain.item(1) == 2.5
assert "[1.0 --]" in repr(masked) and masked.tolist() == [1.0, None]
for text in (repr(small), str(small), small._repr_html_()):
    assert "pip install" in text
try:
    small.tolist()
except ImportError as error:
    assert "ml_dtypes" in str(error)
else:
    raise AssertionError("values of a type that is not there")
"""


def test_values_are_shown_or_say_what_to_install(tmp_path: Path) -> None:
    root = zarrow.create_group(tmp_path / "root.zarr")
    root["brain"] = np.array([1, 2.5], ml_dtypes.bfloat16)
    root["small"] = np.array([1, 2], ml_dtypes.float8_e5m2)
    masked = np.ma.array(np.array([1, 2], ml_dtypes.bfloat16), mask=[False, True])
    root.create_array("masked", data=masked, missing="optional")
    subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, check=True)
