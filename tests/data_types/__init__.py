"""Verifies docs/data-types.md cell by cell; `python -m data_types`, in `tests/`, generates it."""
