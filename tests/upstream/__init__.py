"""The test suites of zarr-python and xarray, run on zarrow: `make test-upstream`.

1. Each suite runs once as its authors run it, and once with zarrow.
2. A test that passes in the first run and not in the second is a difference. `differences.toml` lists the
   known ones with their reasons.
3. The run fails on every other difference, and on every listed one that has gone.
"""
