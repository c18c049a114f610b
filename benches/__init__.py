"""Benchmarks: zarrow, its peers and the limit of the machine, side by side on the same data.

`make bench` runs them. Each peer is a process of its own; the rounds go from peer to peer, so that what else
the machine does falls on all of them alike, and each timed read directly follows a discarded identical one.
"""
