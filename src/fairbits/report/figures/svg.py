"""A figure as SVG that can stand inside a page: text as text, the page's colours and letters, no ids but its own.

What all pictures share: size, letters, quiet axes. Sizes are in pixels of the page.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.axes import Axes as Frame
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from fairbits.report.figures.palette import GROUND, INK, LIGHT, MUTED, RULE, SCORES
from fairbits.text import shortened

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
#: Ids in `url(#id)` and `#id`; a colour among other styles is not one.
_REFERENCE = re.compile(r"(?:^|(?<=url\())#([\w-]+)(?=\)|$)")


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
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", LINK)
    root = ET.fromstring(plain_svg(figure))  # noqa: S314 - our own output
    _tidy(root, name, parts or {})
    _describe(root, name, title, description)
    return _LONG.sub(r"\1", ET.tostring(root, encoding="unicode"))


def _tidy(root: ET.Element, name: str, parts: Mapping[str, str]) -> None:
    """No ids but those that something refers to, after the picture's name; the page's letters and colours."""
    used = {
        found for element in root.iter() for value in element.attrib.values() for found in _REFERENCE.findall(value)
    }
    for element in root.iter():
        own = element.get("id", "")
        if own in parts:
            words = shortened(parts[own], MAX_WORDS)
            element.attrib |= {"class": "part", "tabindex": "0", "role": "img", "aria-label": words}
            _say(element, 0, "title", words)
        for key, value in element.attrib.items():
            element.set(key, _REFERENCE.sub(rf"#{name}-\1", value))
        if own in used:
            element.set("id", f"{name}-{own}")
        else:
            element.attrib.pop("id", None)
        if "style" in element.attrib:
            element.set("style", _styled(element.attrib["style"]))


def _styled(style: str) -> str:
    style = _FONT.sub(lambda m: (f"font-weight: {m[1]};" if m[1] else "") + f"font-size: {m[2]}px;", style)
    return _HEX.sub(lambda m: f"var(--{_NAMES[m[0].lower()]})", style)


def _describe(root: ET.Element, name: str, title: str, description: str) -> None:
    """A name and a description for those who hear the page; the size is the page's business."""
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "group" if root.find(f".//{{{SVG}}}g[@class='part']") is not None else "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for position, (tag, text) in enumerate((("title", title), ("desc", description))):
        _say(root, position, tag, shortened(text, MAX_WORDS), id=f"{name}-{tag}")


def _say(parent: ET.Element, position: int, tag: str, text: str, **about: str) -> None:
    element = ET.Element(f"{{{SVG}}}{tag}", about)
    element.text = text
    parent.insert(position, element)


_UNITS = 72
SMALL = 11
_TURNED: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}
SCORE_COLOURS = LinearSegmentedColormap.from_list("scores", SCORES)


class Picture(Figure):
    """A figure that shows itself in a notebook, without touching pyplot or anybody's settings."""

    def _repr_svg_(self) -> str:
        return plain_svg(self)


def picture(width: float = 420, height: float = 280) -> Picture:
    """An empty picture; its text is never read as mathematics, since labels come from files."""
    with mpl.rc_context(STYLE):
        made = Picture(figsize=(width / _UNITS, height / _UNITS), dpi=_UNITS)
    made.set_facecolor(GROUND)
    return made


def frame(made: Figure, box: tuple[float, float, float, float], *, grid: str | None = "y") -> Frame:
    """A frame with nothing but thin rules."""
    width, height = made.get_size_inches() * _UNITS
    left, bottom, right, top = box
    ax = made.add_axes((left / width, bottom / height, (right - left) / width, (top - bottom) / height))
    ax.set_facecolor("none")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(RULE)
    ax.tick_params(length=0, labelsize=SMALL, labelcolor=MUTED, pad=5)
    if grid is not None:
        ax.grid(axis=grid, color=RULE, linewidth=0.8)  # type: ignore[arg-type]
        ax.set_axisbelow(True)
    return ax


def _some(places: Any, labels: Sequence[str], turned: bool = False, most: int = 16) -> list[tuple[float, str]]:
    """Places with their labels; where there are many, some are left out."""
    step = max(1, -(-len(labels) // most))
    return [
        (place, shortened(label, 13 if turned else 20))
        for place, label in list(zip(places, labels, strict=True))[::step]
    ]


def say(ax: Frame, x: float, y: float, text: str, **how: Any) -> Any:
    """Text on a picture; labels are shortened, and never read as mathematics."""
    return ax.text(x, y, shortened(text, 60), **{"fontsize": SMALL, "color": INK, "parse_math": False, **how})


def name_axes(ax: Frame, x: str = "", y: str = "") -> None:
    """Titles of the axes; the vertical one stands above its axis."""
    if x:
        ax.set_xlabel(shortened(x, 60), fontsize=SMALL, color=MUTED, parse_math=False, labelpad=6)
    if y:
        say(ax, 0.0, 1.03, y, color=MUTED, transform=ax.transAxes, ha="left", va="bottom")


def ticks(
    ax: Frame, axis: str, places: Any, labels: Sequence[str], *, max_labels: int = 16, turned: bool = False
) -> None:
    kept = _some(places, labels, turned, max_labels)
    setter: Any = ax.set_xticks if axis == "x" else ax.set_yticks
    how = {"parse_math": False, **(_TURNED if turned else {})}
    setter([place for place, _ in kept], [label for _, label in kept], **how)
