"""`zarrow head STORE [NODE]`: the first elements of an array, or the first rows of a table."""

from __future__ import annotations

import argparse
from typing import Any

import zarrow
from zarrow.cli import arguments as types
from zarrow.cli.terminal import show, visible, width

_COLUMNS = 8


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `zarrow head`."""
    types.add_node(parser)
    parser.add_argument("-n", "--rows", type=types.count, default=10, help="number of rows (default: 10)")


def run(arguments: argparse.Namespace) -> int:
    """Print the elements, and return the exit status."""
    node = zarrow.open(arguments.store, arguments.node, mode="r")
    if isinstance(node, zarrow.Array):
        found = {"": _first(node, arguments.rows)}
    else:
        found = {name: _first(array, arguments.rows) for name, array in node.arrays()}
    if arguments.json:
        from zarrow.cli.json_output import as_json

        print(as_json(found.get("", found)))
        return 0
    columns = {name: first["elements"] for name, first in found.items() if len(first["shape"]) == 1}
    is_table = len(columns) == len(found) and len({len(column) for column in columns.values()}) == 1
    if isinstance(node, zarrow.Group) and is_table:
        _show_rows([list(columns), *zip(*columns.values(), strict=True)])
        return 0
    for name, first in found.items():
        place = f"{visible(name)} {first['selection']}".lstrip()
        show(f"{place} of {tuple(first['shape'])} {visible(first['type'])}")
        elements = first["elements"]
        rows = elements if isinstance(elements, list) else [elements]
        _show_rows([row if isinstance(row, list) else [row] for row in rows], "  ")
    return 0


def _first(array: zarrow.Array, rows: int) -> dict[str, Any]:
    """Return the first elements: of the first axis, and of the last one; of others the first."""
    extents = [1] * array.ndim
    if array.ndim > 1:
        extents[-2:] = [rows, _COLUMNS]
    elif array.ndim:
        extents = [rows]
    index: tuple[Any, ...] = tuple(
        slice(0, min(extent, most)) if axis >= array.ndim - 2 else 0
        for axis, (extent, most) in enumerate(zip(array.shape, extents, strict=True))
    )
    if any(extent == 0 for extent in array.shape):
        elements: Any = []
    else:
        read = array[index]
        elements = read.tolist() if hasattr(read, "tolist") else read
    shown = [f"{part.start}:{part.stop}" if isinstance(part, slice) else str(part) for part in index]
    kind = array.data_type if isinstance(array.data_type, str) else str(array.data_type.get("name"))
    return {
        "selection": f"[{', '.join(shown)}]",
        "shape": list(array.shape),
        "type": kind,
        "elements": elements,
    }


def _text(element: Any) -> str:
    if isinstance(element, float):
        return f"{element:.6g}"
    return "-" if element is None else visible(str(element))


def _show_rows(rows: list[Any], indent: str = "") -> None:
    """Print rows with aligned columns, cut to the width of the terminal."""
    texts = [[_text(each) for each in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        line = indent + "  ".join(f"{text:>{most}}" for text, most in zip(row, widths, strict=True))
        show(line[: width()].rstrip())
