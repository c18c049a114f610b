"""AnnData's format: sparse matrices to SciPy, tables to pandas and polars, and whole AnnData objects.

Users reach it by `Group.read`, `Group.to_scipy`, `Group.to_pandas`, `Group.to_polars`, `zarrow.load` and
`zarrow.save`. pandas, SciPy and anndata are imported when a result needs them.

Source: AnnData, "On-disk format", encoding versions 0.1.0 and 0.2.0, and `anndata/_io/specs` of anndata 0.13.
"""
