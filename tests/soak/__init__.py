"""Attacks that go on for as long as they are let: each file is one, with other cases each time.

An attack is a module with `attack(seconds, seed)`. It runs for about so many seconds, draws its cases from
the seed, returns counts of what it did, and raises an error for what should not have happened. `python -m
soak` runs them.
"""
