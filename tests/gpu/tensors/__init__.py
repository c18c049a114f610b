"""Tensors of a GPU in Python, on the software device or on a real one."""
