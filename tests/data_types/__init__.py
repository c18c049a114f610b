"""The page docs/data-types.md, proven cell by cell: `python -m data_types`, in `tests/`, writes it anew."""
