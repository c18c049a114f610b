"""`python -m habits`, in `tests/`, writes the pages of habits."""

from habits import FOLDER, PAGES, page

for name in PAGES:
    (FOLDER.parent.parent / "docs" / name).write_text(page(name), encoding="utf-8")
