"""Arrays of every kind, written by zarr-python or TensorStore, which zarrow must read as they do."""
