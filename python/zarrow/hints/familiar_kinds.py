"""Names on groups of one kind, each with what to type: see `zarrow.hints.kinds_of_groups`.

`{group}` stands for the group, and `{name}` for the name itself.
"""

from __future__ import annotations

from zarrow.hints import familiar_training
from zarrow.hints.by_name import by_name

_DATASET = "zarrow.xarray.open_zarr(path)"

ANNDATA = by_name(
    {
        "zarrow.load(path)": "adata anndata as_anndata compute load to_adata to_anndata to_memory",
        "zarrow.load(path).{name}": (
            "T chunk_X chunked_X copy n_obs n_vars obs_keys obs_names obs_names_make_unique obs_vector "
            "obsm_keys rename_categories shape strings_to_categoricals to_df transpose uns_keys var_keys "
            "var_names var_names_make_unique var_vector varm_keys"
        ),
        "zarrow.load(path).{name}(file)": "write_csvs write_h5ad write_loom",
        "zarrow.copy({group}, path)": "save to_zarr write write_zarr",
        "zarrow.load(path)[:5]": "head",
        "zarrow.load(path)[rows, columns]": "iloc loc",
        "zarrow.load(path).to_df()": "to_dataframe",
        'zarrow.load(path).n_obs, or {group}["obs"].num_rows': "nobs",
        'zarrow.load(path).n_vars, or {group}["var"].num_rows': "nvar nvars",
        '{group}["X"]': "matrix",
    }
)

SPARSE = by_name(
    {
        "{group}.to_scipy()": "collect compute load matrix sparse to_memory to_scipy_sparse value",
        "{group}.to_scipy().{name}": (
            "A T arcsin arctan argmax argmin asformat astype ceil conj copy count_nonzero diagonal dot dtype "
            "expm1 floor getcol getnnz getrow log1p max maximum mean min minimum multiply ndim nnz nonzero "
            "power reshape shape sign sqrt sum sum_duplicates tan toarray tobsr tocoo tocsc tocsr todense "
            "todia todok tolil trace transpose"
        ),
        "{group}.to_scipy().nnz": "nnz_stored",
        "{group}.to_scipy().toarray()": "as_numpy asnumpy numpy to_dense to_numpy",
        "{group}.to_scipy()[:5]": "head",
        "{group}.to_scipy()[rows, columns]": "iloc isel loc sel",
        '{group}.attrs["encoding-type"]': "format getformat",
        '{group}.attrs["shape"]': "get_shape",
        "pandas.DataFrame.sparse.from_spmatrix({group}.to_scipy())": "to_dataframe to_df",
    }
)

TABLE = familiar_training.TABLE | by_name(
    {
        "{group}.to_arrow().arrow()": "arrow as_arrow pyarrow read_all to_pyarrow_table",
        "{group}.to_arrow().column_names": "columns",
        "{group}.num_rows for the rows, and len({group}) for the columns": "shape",
        "{group}.num_rows": "height n_rows nrows",
        "len({group}.to_arrow().column_names)": "n_columns ncols width",
        "{group}[:5].to_pandas()": "head limit show",
        "{group}[-5:].to_pandas()": "tail",
        '{group}[start:stop] for rows, {group}["name"][index] = value to store, or '
        "{group}.to_pandas().{name}, a copy": "iloc loc",
        '{group}["name"][index], which reads and stores': "at iat",
        "{group}.to_pandas().{name}": "drop index merge rename set_index to_dict",
        "{group}[:5].to_polars()": "glimpse",
        "{group}.scan_polars()": "lazy to_lazy",
        '{group}.to_arrow(filters=[("name", ">", 1)]), or {group}.to_arrow().arrow().filter('
        'pyarrow.compute.field("name") > 1), or {group}.scan_polars().filter(condition)': "filter where",
        '{group}.to_pandas(filters=[("name", ">", 1)]), or rows = {group}.to_arrow(), and '
        'duckdb.sql("select * from rows")': "query",
        "zarrow.dask.read_table({group})": "dask to_dask to_dask_dataframe",
        "sklearn.model_selection.train_test_split({group}.to_pandas())": "train_test_split",
    }
)

# Of a zarrow.Table, the selected rows and columns of a group.
ROWS = familiar_training.ROWS | by_name(
    {
        "{table}.to_pandas().{name}": "T index ndim plot size style values",
        'rows = {table}.to_arrow(), and duckdb.sql("from rows").{name}': (
            "aggregate distinct fetch_arrow_table fetchdf fetchmany fetchnumpy order project"
        ),
        "{table}.to_arrow().arrow()": "arrow collect compute read read_all to_table",
        "{table}.column_names": "names",
        "for batch in {table}.to_arrow(batch_rows=1000)": "iter_batches to_batches",
        "{table}[:5]": "head limit",
        '{table}.to_arrow(filters=[("name", ">", 1)]), or {table}.scan_polars().filter(condition)': (
            "filter query where"
        ),
        "{table}.scan_polars()": "lazy",
        "{table}.group.append(rows)": "append concat extend insert vstack",
        "{table}[-5:]": "tail",
        "{table}[start:stop], or {table}.to_pandas().{name}": "iloc loc",
        "{table}.to_arrow().arrow().to_pylist()": (
            "fetchall iter_rows iterrows itertuples rows to_list to_pylist tolist"
        ),
        "{table}.to_arrow().arrow().to_pydict()": "to_dict to_pydict",
        "{table}.to_polars()": "pl polars",
        "{table}.to_pandas()": "df pandas to_df",
        "{table}.num_rows": "height",
        "{table}.to_parquet(path)": "write_parquet",
        "{table}.schema": "dtypes schema_arrow",
        "{table}.num_rows and {table}.schema": "metadata",
        "{table}[start:stop].to_arrow().arrow()": "read_row_group read_row_groups take",
    }
)

GRID = by_name(
    {
        _DATASET + ".sizes": "dimensions dims sizes",
        _DATASET + ".{name}": (
            "assign assign_coords bfill broadcast_like chunk chunksizes coarsen coords cumsum curvefit "
            "differentiate drop_dims drop_isel drop_sel drop_vars ffill fillna groupby groupby_bins idxmax "
            "idxmin indexes integrate interp interp_like interpolate_na isel map mean median pad polyfit "
            "quantile reindex reindex_like rename_dims rename_vars resample rolling roll sel set_coords "
            "sortby stack std swap_dims thin to_array to_dataarray to_dict to_netcdf transpose unstack var "
            "weighted where xindexes"
        ),
        _DATASET + ".to_dataframe(), or " + _DATASET + '["name"].to_dataframe() for one variable': (
            "to_dataframe to_df"
        ),
        _DATASET + ".sizes, or {group}.tree() for the shape of each array": "shape",
    }
)

_IMAGE = "{group}.multiscales[0].array"
IMAGE = by_name(
    {
        _IMAGE: "array image get_image",
        _IMAGE + "[...]": "compute data get_image_data load numpy pixels to_numpy values",
        _IMAGE + ".to_dask()": "dask dask_data get_image_dask_data to_dask",
        '{group}.attrs["ome"]["omero"], where the image has it': "channel_names channels omero",
        "{group}.multiscales": "datasets levels metadata multiscale ome_metadata pyramid resolutions",
        "{group}.multiscales[0].scale": (
            "physical_pixel_sizes pixel_size pixel_sizes resolution scale spacing voxel_size"
        ),
        "{group}.multiscales.axes": "axes axis_names dimension_names dimensions dims",
        "{group}.multiscales.labels": "get_labels label_names labels",
        "len({group}.multiscales)": "n_levels nlevels num_levels",
        "{group}.multiscales[-1].array[...]": "thumbnail",
        "{group}.multiscales.version": "ome_version version",
    }
)
