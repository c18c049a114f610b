"""Hints for groups of a kind name code that works on such a group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrow

pytestmark = pytest.mark.small_files


def _anndata(folder: Path) -> str:
    anndata = pytest.importorskip("anndata")
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    obs = pd.DataFrame(
        {"kind": pd.Categorical(["T", "B", "T"]), "n": pd.array([1, None, 3], dtype="Int64")},
        index=["c0", "c1", "c2"],
    )
    path = str(folder / "cells.zarr")
    zarrow.save(path, anndata.AnnData(sparse.csr_matrix(np.eye(3, 2)), obs=obs))
    return path


def _grid(folder: Path) -> str:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    path = str(folder / "grid.zarr")
    values = {"rain": (("time", "x"), np.ones((3, 2)))}
    xr.Dataset(values, coords={"time": [0, 1, 2], "x": [5, 6]}).to_zarr(path, zarr_format=2)
    return path


def _table(folder: Path) -> str:
    pytest.importorskip("pandas")
    path = str(folder / "table.zarr")
    zarrow.save(path, {"id": [1, 2, 3], "name": ["owl", "crow", "wren"]})
    return path


def _image(folder: Path) -> str:
    path = str(folder / "image.zarr")
    pixels = np.arange(16, dtype="u1").reshape(4, 4)
    zarrow.ome.save(path, [pixels, pixels[::2, ::2]], axes="yx")
    return path


MAKERS = {"anndata": _anndata, "grid": _grid, "table": _table, "image": _image}
CASES = """
anndata | group.obs_names | zarrow.load(path).obs_names
anndata | group.var_names[:3] | zarrow.load(path).var_names
anndata | group.n_obs | zarrow.load(path).n_obs
anndata | group.shape | zarrow.load(path).shape
anndata | group.to_anndata() | zarrow.load(path)
anndata | group.to_memory() | zarrow.load(path)
anndata | group.to_df() | zarrow.load(path).to_df
anndata | group.head() | zarrow.load(path)[:5]
anndata | group[:2] | zarrow.load(path)[:2]
anndata | group["obs/n"][:2] | group["obs/n"].read()[:2]
anndata | group[0:2, 1] | zarrow.load(path)[0:2, 1]
anndata | group.obs | group["obs"]
anndata | group["X"].toarray() | group["X"].to_scipy().toarray
anndata | group["X"].nnz | group["X"].to_scipy().nnz
anndata | group["X"].to_numpy() | group["X"].to_scipy().toarray()
anndata | group["X"].compute() | group["X"].to_scipy()
anndata | group["X"].format | group["X"].attrs["encoding-type"]
anndata | group["X"].to_df() | pandas.DataFrame.sparse.from_spmatrix(group["X"].to_scipy())
anndata | group["X"][:2] | group["X"].to_scipy()[:2]
anndata | group["X"][0] | group["X"].to_scipy()[0]
anndata | group["X"][0, ::2] | group["X"].to_scipy()[0, ::2]
anndata | group["obs/kind"][:] | group["obs/kind"].read()[:]
anndata | group["obs/kind"].value_counts() | pandas.Series(group["obs/kind"].read().arrow().to_pandas())
anndata | group["obs/kind"].tolist() | group["obs/kind"].read().tolist
anndata | group["obs/kind"].cat | group["obs/kind"].read().codes
anndata | group["obs/kind"].isna() | group["obs/kind"].read().codes.numpy() < 0
anndata | group["obs/n"][0] | group["obs/n"].read()[0]
anndata | group["obs/n"].mean() | group["obs/n"].read().mean
anndata | group["obs/n"].isna() | group["obs/n"].read().mask
anndata | group["obs"].head() | group["obs"][:5].to_pandas()
anndata | group["obs"].index | group["obs"].to_pandas().index
anndata | group["obs"].loc["c0"] | group["obs"].to_pandas().loc
grid | group.to_dataframe() | zarrow.xarray.open_zarr(path).to_dataframe()
grid | group.dimensions["time"] | zarrow.xarray.open_zarr(path).sizes
grid | group.mean("time") | zarrow.xarray.open_zarr(path).mean
grid | group.isel(time=0) | zarrow.xarray.open_zarr(path).isel
grid | group[0] | group["rain"][0]
table | group.head(3).to_pandas() | group[:5].to_pandas()
table | group.tail() | group[-5:].to_pandas()
table | group.iloc[:3] | group.to_pandas().iloc
table | group.loc[3] | group.to_pandas().loc
table | group.arrow() | group.to_arrow().arrow()
table | group.index | group.to_pandas().index
table | group.columns | group.to_arrow().column_names
table | group.shape | group.num_rows
table | group.describe() | group.to_pandas().describe()
table | group.groupby("name") | group.to_pandas().groupby
table | group[group["id"][...] > 1] | group.to_pandas()[mask]
table | group[-1] | group[-1:]
table | group[1] | group[1:2]
table | group[[0, 1]] | group.to_pandas().iloc[[0, 1]]
table | group[...] | group[:]
table | group[:2].head() | group[:2][:5]
table | group[:2].groupby("name") | group[:2].to_pandas().groupby
table | group[:2].name | group[:2]["name"]
image | group.metadata | group.multiscales
image | group.pyramid | group.multiscales
image | group.levels | group.multiscales
image | group.data | group.multiscales[0].array[...]
image | group.shape | group.multiscales[0].array.shape
image | group.chunks | group.multiscales[0].array.chunks
image | group.max() | group.multiscales[0].array[...].max
image | group.axes | group.multiscales.axes
image | group.scale | group.multiscales[0].scale
image | group[0] | group.multiscales[0].array[0]
image | group[1] | group.multiscales[1].array
image | group.multiscales.shape | group.multiscales[0].array.shape
image | group.multiscales[0].data | group.multiscales[0].array[...]
table | group.drop("id") | group.to_pandas().drop
table | group.merge(group) | group.to_pandas().merge
image | group[0, 1:3] | group.multiscales[0].array[0, 1:3]
"""


@pytest.mark.filterwarnings("ignore:::anndata")  # its own
@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_what_a_hint_names_works_on_that_kind_of_group(case: str, tmp_path: Path) -> None:
    kind, typed, named = case.split(" | ")
    path = MAKERS[kind](tmp_path)
    group = zarrow.open(path)
    names: dict[str, Any] = {"zarrow": zarrow, "group": group, "path": path}
    if "pandas." in named:
        names["pandas"] = pytest.importorskip("pandas")
    if "mask" in named:
        names["mask"] = group["id"][...].numpy() > 1 if kind == "table" else None
    with pytest.raises((AttributeError, TypeError, zarrow.ShapeError)) as raised:
        eval(typed, names)
    # The message writes `group` or `table` for the object, and "name" for an array.
    said = str(raised.value).replace(f'"{path}"', "path")
    owner = next((part for part in ("X", "obs/kind", "obs/n", "obs") if f'group["{part}"]' in named), None)
    told = named if owner is None or typed == "group.obs" else named.replace(f'group["{owner}"]', "group")
    told = told.replace("group[:2]", "table") if typed.startswith("group[:2].") else told
    told = told.replace("group.multiscales[0].array", "level.array") if typed.endswith("].data") else told
    told = told.replace("group.multiscales[0]", "image[0]") if ".multiscales.s" in typed else told
    assert told.replace('group["rain"]', 'group["name"]') in said or told in said
    eval(named, names)


def test_groups_of_many_members_are_not_opened_for_a_hint(tmp_path: Path) -> None:
    group = zarrow.create_group(tmp_path / "many.zarr")
    for index in range(101):
        group[f"x{index}"] = [1]
    with pytest.raises(AttributeError) as raised:
        eval("group.head", {"group": group})
    assert "this group is" not in str(raised.value)
