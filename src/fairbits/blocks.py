"""What a section says, before anybody draws it: headings, sentences, tables with typed columns, pictures, notes.

A section yields blocks; HTML, Markdown and the terminal have one renderer each, and nobody else formats a number or
escapes a label. Every text is plain: what came from outside is cleaned by whoever draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from fairbits.text import from_to, number, percent, signed

#: A share without digits after the point.
whole_percent = partial(percent, digits=0)


@dataclass(frozen=True, slots=True)
class Strong:
    """Words that stand out."""

    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command, a file or a hash, letter by letter."""

    text: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A mark beside a figure: its kind (exact, proved, statistical, lower bound), or what to know about a row."""

    text: str


@dataclass(frozen=True, slots=True)
class Small:
    """A remark in smaller letters, on a line of its own where there is room."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Words that lead somewhere: an address, or ``#section`` of the same page."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A share drawn as a bar: from 0 to 1, or from -1 to 1 around a middle. Only pages draw it."""

    share: float
    middle: bool = False


Inline: TypeAlias = str | Strong | Code | Tag | Small | Link | Bar
Text: TypeAlias = Inline | tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table: its heading, how its values become text, and whether they stand to the right."""

    head: str
    show: Callable[[Any], Text] = str
    right: bool = False


def label(head: str) -> TableColumn:
    return TableColumn(head, lambda value: "–" if value is None else value)


def figure(head: str, digits: int = 0) -> TableColumn:
    return TableColumn(head, partial(number, digits=digits), right=True)


def share(head: str, digits: int = 1) -> TableColumn:
    return TableColumn(head, partial(percent, digits=digits), right=True)


def change(head: str, digits: int = 2) -> TableColumn:
    return TableColumn(head, partial(signed, digits=digits), right=True)


def between(head: str, show: Callable[[float | None], str]) -> TableColumn:
    """A column of intervals: pairs of a low and a high end, or None."""

    def said(ends: tuple[Any, Any] | None) -> str:
        low, high = ("–", "–") if ends is None or None in ends else map(show, ends)
        return "–" if low == high == "–" else f"{low.removesuffix(' %')} to {high}"

    return TableColumn(head, said, right=True)


def rate(head: str) -> TableColumn:
    """A column of shares, each a pair of its value and the ends of its interval."""

    def said(value: tuple[float, tuple[float, float]]) -> Text:
        of, (low, high) = value
        return percent(of), Small(from_to(low, high))

    return TableColumn(head, said, right=True)


def shown(head: str) -> TableColumn:
    """A column of figures that are text already, such as "k ≤ 4"."""
    return TableColumn(head, lambda value: "–" if value is None else value, right=True)


@dataclass(frozen=True, slots=True)
class Heading:
    text: Text
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or some. ``tone``: "lead", "small", "note", "warning", "verdict", "second" or "proved"."""

    text: Text
    kind: str = ""
    tone: str = ""


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows of values, each shown as its column says; ``marked`` rows stand out. ``stacked``: cells below each other
    on a narrow screen."""

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Any]]
    caption: Text = ""
    marked: frozenset[int] = frozenset()
    stacked: bool = False

    def cells(self) -> list[list[Text]]:
        return [[column.show(value) for column, value in zip(self.columns, row, strict=True)] for row in self.rows]


def table_of(
    columns: Sequence[TableColumn | None], rows: Iterable[Sequence[Any]], caption: Text = "", **looks: Any
) -> TableBlock:
    """A table without the columns that are None here, for which every row has a value all the same."""
    kept = [(i, column) for i, column in enumerate(columns) if column is not None]
    return TableBlock([column for _, column in kept], [[row[i] for i, _ in kept] for row in rows], caption, **looks)


def table_by(
    things: Iterable[Any],
    columns: Iterable[tuple[TableColumn | None, Callable[[Any], Any]]],
    caption: Text = "",
    **looks: Any,
) -> TableBlock:
    """A row for each thing: a column, and beside it what it says of a thing; those that are None here are left out."""
    kept = [(column, value) for column, value in columns if column is not None]
    return TableBlock([one for one, _ in kept], [[value(one) for _, value in kept] for one in things], caption, **looks)


@dataclass(frozen=True, slots=True)
class FigureCard:
    """One figure that everybody should see: what it is, its value, its kind, and a remark."""

    what: str
    value: str
    kind: str = ""
    small: str = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """The first figures of a page."""

    cards: Sequence[FigureCard]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values; with ``anchors`` for links, words and their meanings, which only pages need."""

    pairs: Sequence[tuple[str, Text]]
    anchors: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing of the page's pictures, by name; a picture that could not be drawn is left out. ``key``: what its
    colours mean."""

    name: str
    caption: str = ""
    size: str = "half"
    key: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Commands:
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class Bullets:
    """Sentences, each with a dot."""

    items: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Columns:
    """Blocks side by side where there is room."""

    parts: Sequence[Sequence[Block]]


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that a reader opens; on paper they are open. ``name`` is for links, ``kind`` that of its figures."""

    title: Text
    blocks: Sequence[Block]
    open: bool = False
    name: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PersonCard:
    """Somebody: a line about them, and what opens below it."""

    id: str
    rank: int
    k: str
    bits: str
    own: str
    place: str
    tags: Sequence[str]
    ends: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]
    own_facts: Sequence[tuple[str, str]] = ()
    pictures: Sequence[Drawing] = ()
    small: str = ""
    open: bool = False


@dataclass(frozen=True, slots=True)
class People:
    people: Sequence[PersonCard]
    #: Whether anything is decided about them, so that a decision can flip.
    decides: bool = True


@dataclass(frozen=True, slots=True)
class Form:
    """Lines to fill in by hand, and boxes to tick."""

    fields: Sequence[str]
    choice: str
    options: Sequence[str]
    remark: str = ""


Block: TypeAlias = (
    Heading | Paragraph | TableBlock | Cards | Facts | Drawing | Commands | Bullets | Columns | Fold | People | Form
)


@dataclass(frozen=True, slots=True)
class PagePart:
    """A section as it is drawn: its name for links, its title, the kind of its figures, its blocks."""

    name: str
    title: str
    blocks: Sequence[Block]
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page: whose, made by which command, its first sentence, what follows it, and its sections."""

    subject: str
    command: str
    title: str
    sentence: Text
    opening: Sequence[Block]
    parts: Sequence[PagePart]
    pictures: dict[str, str] = field(default_factory=dict)
    made_from: str = ""
    #: What the document is called in Markdown.
    heading: str = ""
    #: Whether terms of art lead to a glossary in its last section.
    glossary: bool = False


class Shown:
    """A result that a notebook shows as the page does, and that becomes a figure or a data frame.

    Results stand in layers below the report, which they must not import: so its module is loaded by name, and only
    when somebody looks.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(_notebook().html_of(self))

    def plot(self) -> Any:
        """The result as a matplotlib figure."""
        return _notebook().figure_of(self)

    def to_frame(self) -> Any:
        """The result as a frame: of pandas or polars as the user's own table was, else of whichever is installed."""
        return _notebook().frame_of(self)


def _notebook() -> Any:
    return import_module("fairbits.report.looks")


def paragraphs(lines: Iterable[str], tone: str = "") -> list[Block]:
    """Sentences, a paragraph each, which begin with a capital letter."""
    return [Paragraph(f"{line[:1].upper()}{line[1:]}", tone=tone) for line in lines]


def listed(pieces: Iterable[Inline]) -> tuple[Inline, ...]:
    """Pieces with a comma between each two."""
    return tuple(each for piece in pieces for each in (", ", piece))[1:]


def plain(text: Text) -> str:
    """Words without their looks."""
    if isinstance(text, tuple):
        return "".join(plain(piece) for piece in text)
    return text if isinstance(text, str) else "" if isinstance(text, Bar) else text.text
