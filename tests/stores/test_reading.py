"""Every type and codec, written by zarr-python or TensorStore, read from each service bit for bit."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import zarrow
from oracle.arrays import GEOMETRIES, ArrayCase, bits
from oracle.chains import CHAINS, Chain
from oracle.elements import Values
from oracle.random_values import seed_of
from oracle.selections import Selection, fixed, random_one
from stores.services import Service
from test_oracle import BY_NAME, check

pytestmark = pytest.mark.stores

# A third of the types with each chain by default.
CHOSEN = sorted(BY_NAME, key=seed_of)[:: 1 if "ZARROW_THOROUGH" in os.environ else 3]
BY_CHAIN = {f"v{chain.version}-{chain.name}": chain for version in (2, 3) for chain in CHAINS[version]}


@dataclass(frozen=True)
class Written:
    """An array to read, and its expected elements."""

    name: str
    expected: Values
    selections: list[Selection]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Chain], tuple[Path, list[Written]]]:
    """Write arrays of some types with a chain, once for all services."""
    folder = tmp_path_factory.mktemp("oracle")
    known: dict[str, list[Written]] = {}

    def write(chain: Chain) -> tuple[Path, list[Written]]:
        below = f"v{chain.version}-{chain.name}"
        if below not in known:
            known[below] = []
            for name in CHOSEN:
                element, own = BY_NAME[name]
                seed = seed_of(name)
                rng = random.Random(seed)
                geometry = rng.choice(GEOMETRIES)
                case = ArrayCase(element, chain, geometry, element.fills[seed % len(element.fills)], seed)
                if own is chain and case.can_be_written:
                    expected = case.write(folder / below / name)
                    selections = [random_one(rng, geometry.shape) for _ in range(3)]
                    known[below].append(
                        Written(name, expected, [*rng.sample(fixed(geometry.shape), 2), *selections])
                    )
        return folder / below, known[below]

    return write


@pytest.mark.parametrize("below", BY_CHAIN)
def test_types_with_each_chain(
    service: Service, below: str, written: Callable[[Chain], tuple[Path, list[Written]]]
) -> None:
    folder, cases = written(BY_CHAIN[below])
    assert cases
    service.upload(folder, below)
    arrays = [
        zarrow.open(service.url(f"{below}/{case.name}"), storage_options=service.options) for case in cases
    ]
    for array, case in zip(arrays, cases, strict=True):
        assert (array.shape, array.dtype) == (case.expected.shape, case.expected.dtype)
        check(array, case.expected, [(...,), *case.selections])

    async def together() -> list[Any]:
        """Read all selections of all arrays at once."""
        asked = [
            array.read_async(selection)
            for array, case in zip(arrays, cases, strict=True)
            for selection in [(...,), *case.selections]
        ]
        return await asyncio.gather(*asked)

    found = iter(asyncio.run(together()))
    for case in cases:
        for selection in [(...,), *case.selections]:
            wanted = case.expected[selection if ... in selection else (*selection, ...)]
            assert bits(next(found).numpy()) == bits(wanted), (case.name, selection)
