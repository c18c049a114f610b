"""Reads from files in the page cache to tensors on a GPU: `make bench-gpu`, or `python -m benches.gpu`.

Every reader gives a tensor on the device, and ends when the device is done. Readers take turns, so that
whatever else the machine does hits all of them. Without a GPU it says so, and measures nothing.
"""
