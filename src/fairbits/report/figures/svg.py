"""A figure as SVG that can stand inside a page: text as text, the page's colours and letters, no ids but its own."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.figure import Figure

from fairbits.domain import shortened
from fairbits.report.figures.palette import LIGHT

SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
#: Letters are measured in DejaVu Sans and shown in what the reader has; `$` in a label is a dollar, not mathematics.
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "fairbits",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "path.simplify": True,
}
#: Letters of a description: enough for a sentence or three.
MAX_WORDS = 800
_NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_HEX = re.compile("|".join(LIGHT.values()), re.IGNORECASE)
_NAMES = {colour: name for name, colour in LIGHT.items()}
_LONG = re.compile(r"(\d+\.\d{2})\d+")
_FONT = re.compile(r"font: (?:(\w+) )?([\d.]+)px [^;]*;?")
_REFERENCE = re.compile(r"#([\w-]+)")


def plain_svg(figure: Figure) -> str:
    """The figure as matplotlib writes it, in its own colours."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a glyph that the measuring font lacks, the reader's font may have
        figure.savefig(buffer, format="svg", transparent=True, metadata=_NO_METADATA)
    return buffer.getvalue()


def inline_svg(
    figure: Figure, name: str, title: str, description: str, *, parts: Mapping[str, str] | None = None
) -> str:
    """A figure as SVG for a page, in the page's colours."""
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", LINK)
    root = ET.fromstring(plain_svg(figure))  # noqa: S314 - our own output
    _tidy(root, name, parts or {})
    _describe(root, name, title, description)
    text = ET.tostring(root, encoding="unicode")
    return _LONG.sub(r"\1", text)


def _tidy(root: ET.Element, name: str, parts: Mapping[str, str]) -> None:
    used = {found for element in root.iter() for value in element.attrib.values() for found in _referred(value)}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{SVG}}}metadata":
                parent.remove(child)
    for element in root.iter():
        own = element.get("id")
        if own is not None:
            if own in parts:
                _pointable(element, parts[own])
            if own in used:
                element.set("id", f"{name}-{own}")
            else:
                del element.attrib["id"]
        for key, value in list(element.attrib.items()):
            if _referred(value):
                element.set(key, _REFERENCE.sub(rf"#{name}-\1", value))
            if key == "style":
                element.set(key, _styled(value))


def _referred(value: str) -> list[str]:
    """Ids in `url(#id)` and `#id`; a colour is not one."""
    if value.startswith("#") and " " not in value:
        return [value[1:]]
    return re.findall(r"url\(#([\w-]+)\)", value)


def _styled(style: str) -> str:
    style = _FONT.sub(lambda m: (f"font-weight: {m[1]};" if m[1] else "") + f"font-size: {m[2]}px;", style)
    return _HEX.sub(lambda m: f"var(--{_NAMES[m[0].lower()]})", style)


def _pointable(element: ET.Element, words: str) -> None:
    words = shortened(words, MAX_WORDS)
    element.set("class", "part")
    element.set("tabindex", "0")
    element.set("role", "img")
    element.set("aria-label", words)
    title = ET.Element(f"{{{SVG}}}title")
    title.text = words
    element.insert(0, title)


def _describe(root: ET.Element, name: str, title: str, description: str) -> None:
    """A name and a description for those who hear the page; the size is the page's business."""
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "group" if root.find(f".//{{{SVG}}}g[@class='part']") is not None else "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = shortened(text, MAX_WORDS)
        root.insert(position, element)
