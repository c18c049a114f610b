"""`python -m habits`, in the folder of the tests: write `docs/habits.md`."""

from habits import FOLDER, page

(FOLDER.parent.parent / "docs" / "habits.md").write_text(page(), encoding="utf-8")
