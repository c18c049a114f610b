"""Tensors of a GPU, as Python sees them: on the software device, or on a real one."""
