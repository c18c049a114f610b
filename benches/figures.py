"""Saves figures of Matplotlib as small SVG files."""

import io
import re
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_LINK = "http://www.w3.org/1999/xlink"
_NUMBER = re.compile(r"-?\d+\.\d+")
_FONT = re.compile(r"font-family: [^;]*")


def save(figure: Figure, path: Path) -> None:
    """Write a figure in a compact form."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(compact(file.getvalue()), encoding="utf-8")


def compact(svg: str) -> str:
    """Return an SVG document without what a browser does not need.

    Coordinates have one decimal, a tenth of a point; Matplotlib writes six. Metadata, unused identifiers and
    groups without attributes go.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _LINK)
    root = ElementTree.fromstring(svg)
    used = set(re.findall(r"#(\w+)", svg))
    for element in root.iter():
        element.text, element.tail = (element.text or "").strip() or None, "\n"
        for name, value in list(element.items()):
            if name == "id" and value not in used:
                del element.attrib[name]
                continue
            value = _FONT.sub("font-family: 'DejaVu Sans', sans-serif", " ".join(value.split()))
            element.set(name, _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), value))
    _unwrap(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False)


def _unwrap(parent: ElementTree.Element) -> None:
    """Replace groups without attributes by their members."""
    for child in list(parent):
        _unwrap(child)
        if child.tag == f"{{{_SVG}}}metadata":
            parent.remove(child)
        elif child.tag == f"{{{_SVG}}}g" and not child.attrib:
            place = list(parent).index(child)
            parent[place : place + 1] = list(child)
