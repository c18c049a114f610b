"""Groups as tables: selections of rows and columns, and scans of them by polars, pyarrow and DuckDB.

Users reach it by `group[0:10]`, `group["id", "name"]`, `Group.scan_polars` and `Group.scan_arrow`. polars and
pyarrow are imported when a call needs them.
"""
