"""Draws the pictures of terminals in the pages: `make pictures` writes them anew.

A picture shows the block of commands and outputs after it, which `test_docs.py` runs in a terminal of 80
columns. So a picture shows what the command prints.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent.parent / "docs"
COLUMNS = 80

SHOWN = re.compile(r"(?ms)^!\[[^]]*\]\((terminal-[\w-]+\.svg)\)\n.*?^```console\n(.*?)^```$")
# The template loads a font from a server; the reader's own font does.
TEMPLATE = re.sub(r"(?s)\s*@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT)


def blocks() -> dict[str, str]:
    """Return the block of each picture by the picture's name."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))]
    return {name: block for page in pages for name, block in SHOWN.findall(page)}


def drawn(block: str) -> str:
    """Return the SVG of a terminal that shows these commands and outputs."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    for line in block.splitlines():
        is_typed = line.startswith("$ ")
        console.print(Text.assemble(("$ ", "green"), (line[2:], "bold")) if is_typed else Text(line))
    svg = console.export_svg(title="zarrow", code_format=TEMPLATE, unique_id="terminal")
    return re.sub(r"(?m)[ \t]+$", "", svg)


def main() -> None:
    """Write all pictures."""
    for name, block in blocks().items():
        (DOCS / name).write_text(drawn(block), encoding="utf-8")


if __name__ == "__main__":
    main()
