"""Arrays of every kind, written by zarr-python or TensorStore, whose readings zarrow's must equal bit for bit."""
