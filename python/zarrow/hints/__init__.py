"""Hints: what to type in place of a name that zarrow does not have."""
