"""Reads from files in the page cache to tensors on a GPU: `make bench-gpu`, or `python -m benches.gpu`.

Every reader returns a tensor on the device, and ends when the device is done. Readers take turns, so that
other load on the machine affects each one alike. Without a GPU, the command says so and measures nothing.
"""
