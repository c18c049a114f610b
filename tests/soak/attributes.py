"""Attributes with any JSON that Python writes, changed by two libraries in turn, compared with a dict.

1. A hierarchy of either version, consolidated or not, has a group and an array.
2. Each step changes the attributes of one: it sets, removes or replaces, by zarrow or by zarr-python.
3. After each, both read the dict's values, to the last digit, and so does Python's `json`.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import zarr

import zarrow

# Controls, escapes, quotes, halves of surrogate pairs, and characters that are written as two halves.
CHARACTERS = 'ab"\\/\x00\x1b\n\x7f é\u202e\ud800\udbff\udc00\udfff\U0001f600'


def text(choose: random.Random) -> str:
    """Return text as it comes back from JSON, which joins consecutive halves into one character."""
    drawn = "".join(choose.choice(CHARACTERS) for _ in range(choose.randrange(5)))
    return json.loads(json.dumps(drawn))


def value(choose: random.Random, depth: int = 0) -> Any:
    kind = choose.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return choose.choice([None, True, False])
    if kind == 1:
        return choose.choice([1, -1]) * choose.getrandbits(choose.choice([3, 63, 64, 65, 2000]))
    if kind == 2:
        return choose.choice([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308, choose.gauss(0, 1e9)])
    if kind < 6:
        return text(choose)
    if kind == 6:
        return {text(choose): value(choose, depth + 1) for _ in range(choose.randrange(4))}
    return [value(choose, depth + 1) for _ in range(choose.randrange(4))]


def attack(seconds: float, seed: int) -> dict[str, int]:
    """Change attributes, and compare."""
    choose = random.Random(seed)
    end = time.monotonic() + seconds
    counts = {"hierarchies": 0, "changes": 0}
    warnings.simplefilter("ignore")
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            hierarchy(Path(folder), choose, counts, f"seed {seed}, hierarchy {counts['hierarchies']}")
        counts["hierarchies"] += 1
    return counts


def hierarchy(folder: Path, choose: random.Random, counts: dict[str, int], where: str) -> None:
    """Run steps 1 to 3."""
    zarr_format = choose.choice([2, 3])
    expected = {path: {text(choose): value(choose) for _ in range(3)} for path in ("", "x")}
    root = zarrow.create_group(folder, attributes=expected[""], zarr_format=zarr_format)
    root.create_array("x", shape=2, dtype="i4", attributes=expected["x"])
    if consolidated := choose.random() < 0.5:
        root.consolidate_metadata()
    for _ in range(8):
        path = choose.choice(["", "x"])
        attributes = expected[path]
        # zarr-python does not renew consolidated metadata.
        theirs = not consolidated and choose.random() < 0.3
        opened: Any = (
            zarr.open_group(folder, mode="r+", zarr_format=zarr_format) if theirs else zarrow.open(folder)
        )
        node = opened[path] if path else opened
        how = choose.randrange(3)
        if how == 0 and attributes:
            key = choose.choice(list(attributes))
            del node.attrs[key], attributes[key]
        elif how == 1 and not theirs:
            expected[path] = {text(choose): value(choose) for _ in range(2)}
            node.attrs.put(expected[path])
        else:
            key = text(choose)
            node.attrs[key] = attributes[key] = value(choose)
        counts["changes"] += 1
        check(folder, zarr_format, expected, where)


def check(folder: Path, zarr_format: int, expected: dict[str, dict[str, Any]], where: str) -> None:
    """Run step 3."""
    ours = zarrow.open(folder)
    theirs = zarr.open_group(folder, mode="r", zarr_format=zarr_format, use_consolidated=False)
    for path, attributes in expected.items():
        name = ".zattrs" if zarr_format == 2 else "zarr.json"
        file = folder / path / name
        stored = json.loads(file.read_text()) if file.exists() else {}
        stored = stored if zarr_format == 2 else stored["attributes"]
        for reader, found in (
            ("zarrow", dict((ours[path] if path else ours).attrs)),
            ("zarr-python", (theirs[path] if path else theirs).attrs.asdict()),
            ("json", stored),
        ):
            same = repr(sorted(found.items())) == repr(sorted(attributes.items()))
            assert same, f"{where}: {reader} reads {found} of {path!r}, and not {attributes}"
