"""Methods of tensors on a GPU, like those of NumPy arrays."""
