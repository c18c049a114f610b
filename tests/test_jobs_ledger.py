"""Ends of ledgers: what a kill leaves while a finished plan deletes its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import zarrow
from zarrow.jobs.ledger import Ledger


def test_a_kill_while_a_ledger_is_deleted_leaves_a_finished_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = zarrow.create_array(tmp_path / "source.zarr", data=np.arange(40), chunks=4)

    def killed(ledger: Ledger) -> None:
        records = [path for path in Path(ledger._store).iterdir() if path.is_dir()]
        shutil.rmtree(records[0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "erase", killed)
        with pytest.raises(KeyboardInterrupt):
            zarrow.copy(source, tmp_path / "target.zarr")
    written = (tmp_path / "target.zarr/c/0").stat().st_mtime_ns
    zarrow.copy(source, tmp_path / "target.zarr")
    assert zarrow.open_array(tmp_path / "target.zarr", mode="r")[...].tolist() == list(range(40))
    # Nothing was copied again, and nothing but the copy is left.
    assert (tmp_path / "target.zarr/c/0").stat().st_mtime_ns == written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.zarr", "target.zarr"]
