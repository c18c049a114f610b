"""Every type and codec under zarr-python: the engine reads and writes the same bits as zarr-python itself."""

from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import zarr

import zarrow
from oracle.arrays import GEOMETRIES, ArrayCase, bits
from oracle.elements import ELEMENTS, Element
from oracle.libraries import unspecified
from oracle.random_values import seed_of
from oracle.selections import fixed, random_one
from test_oracle import COMBINATIONS

pytestmark = pytest.mark.small_files

DOCUMENTS = ("zarr.json", ".zarray")


def opened(folder: Path, case: ArrayCase) -> Any:
    config = {"write_empty_chunks": case.geometry.missing == 0}
    with unspecified():
        return zarr.open_array(folder, mode="r+", config=config)


def chunks(folder: Path) -> set[str]:
    """Return the keys of the stored chunks."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name not in DOCUMENTS)
    return {str(path.relative_to(folder)) for path in paths}


@pytest.mark.parametrize("element", ELEMENTS, ids=lambda element: element.name)
def test_each_type_with_each_chain(element: Element, tmp_path: Path) -> None:
    chains = [chain for own, chain in COMBINATIONS if own is element and chain.zarr_python]
    rng, geometries = random.Random(seed_of(element.name)), itertools.cycle(GEOMETRIES)
    for number, chain in enumerate(chains):
        fill = element.fills[number % len(element.fills)]
        case = ArrayCase(element, chain, next(geometries), fill, number)
        if not case.zarr_python_reads or case.is_refused:
            continue
        where = f"{chain.name} {case.geometry}"
        own, engine = tmp_path / f"{number}-own", tmp_path / f"{number}-engine"
        expected = case.write(own)
        engine.mkdir()
        for document in DOCUMENTS:
            if (own / document).exists():
                shutil.copy(own / document, engine)
        stock = opened(own, case)
        with zarrow.zarr_python.enable():
            with unspecified():
                ours = opened(own, case)
                written = opened(engine, case)
                who = zarrow.zarr_python.explain(ours).write
            assert who == "zarrow" or element.is_variable, where
            for selection in [*fixed(case.geometry.shape), random_one(rng, case.geometry.shape)]:
                # zarr-python refuses negative steps.
                forward = tuple(
                    slice(part.start, part.stop, abs(part.step or 1)) if isinstance(part, slice) else part
                    for part in selection
                )
                with unspecified():
                    assert bits(ours[forward]) == bits(stock[forward]), (where, selection)
            with unspecified():
                written[...] = expected
        with unspecified():
            assert bits(opened(engine, case)[...]) == bits(stock[...]), where
        assert chunks(engine) == chunks(own), where
