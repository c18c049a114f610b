"""Arrays of every kind, written by zarr-python or TensorStore; zarrow must read the same elements."""
