"""Methods of tensors on a GPU, as NumPy's arrays have them."""
