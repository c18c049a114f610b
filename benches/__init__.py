"""Benchmarks: zarrow, its peers and the limit of the machine, side by side on the same data.

`make bench` runs them. Each peer is a separate process. The rounds alternate between peers, so that other
load on the machine affects all of them alike, and each timed read directly follows a discarded identical one.
"""
