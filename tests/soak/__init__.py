"""Attacks of unlimited duration: each file is one, with new cases each time.

An attack is a module with `attack(seconds, seed)`. It runs for about `seconds`, draws its cases from the
seed, returns counts of its operations, and raises an error for a fault. `python -m soak` runs the attacks.
"""
