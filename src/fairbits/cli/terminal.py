"""Blocks on a terminal: at most 80 columns, and as many lines as one look takes unless everything is asked for.

Rich's console, for text that others chose: no markup is read in it, and control characters are replaced.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from math import inf
from typing import IO, Any, cast

import click
from rich import box
from rich import console as rich_console
from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fairbits import blocks as b
from fairbits.cli.output import SafeStream
from fairbits.text import harmless as without_controls
from fairbits.text import harmless_lines

#: Columns; lines of one look, and what is left of them beside many notes.
WIDTH, LINES, LEAST = 80, 25, 12
#: Under which name the context of a command knows that everything was asked for.
ALL = "fairbits.all"
#: Rows of one table, and lines above them; columns that a name can do with, and a heading of figures likes to have.
MAX_ROWS, _HEAD = 12, 3
NAME, HEADING = 24, 18
#: Lines that tell who somebody is; of one fact, and of one note.
PERSON_LINES = 2
FACT_LINES, CAVEAT_LINES = 3, 3
#: Stands for a space at which no line is broken, until lines are.
_TIE = "\ue000"
_TONES = {"lead": "", "small": "dim", "note": "dim", "warning": "yellow", "verdict": "bold", "second": "bold"}
_TAGS = {"worse": "red", "fail": "bold red", "better": "green", "pass": "green", "exact": "green", "proved": "green"}


class Console(rich_console.Console):
    """A console whose every segment is harmless before it is coloured. Brackets are brackets, not markup."""

    def __init__(self, **options: Any):
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    @property
    def file(self) -> IO[str]:
        """The stream to write to: where our filter stands before it, the side that lets colours through."""
        stream = rich_console.Console.file.fget(self)  # type: ignore[attr-defined]
        return cast(IO[str], stream.rich_proxied_file) if isinstance(stream, SafeStream) else stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(
        self, renderable: RenderableType, options: rich_console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments as rich makes them, their text cleaned; rich's own moves of the cursor stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless_lines(segment.text), segment.style)


def show(blocks: Iterable[b.Block] | b.Page, *last: str, everything: bool | None = None) -> None:
    """Print blocks or a page, and what to do next; at most 25 lines unless everything is asked for (``--all``).

    Notes and warnings limit what the figures say: up to half of the lines are theirs, whatever else is left out.
    """
    context = click.get_current_context(silent=True)
    asked = context is not None and bool(context.meta.get(ALL))  # whether the command was given --all
    whole = asked if everything is None else everything
    console = Console(highlight=False)
    pieces = [
        (piece, isinstance(block, b.Paragraph) and block.tone in ("note", "warning"))
        for block in (_blocks_of(blocks) if isinstance(blocks, b.Page) else blocks)
        for piece in _drawn(block, everything=whole)
    ]
    drawn = [_lines(console, piece) for piece, _ in pieces]
    full = inf if whole else LINES - len(last) - 1  # a line says that there is more
    caveats = [i for i, (_, caveat) in enumerate(pieces) if caveat]
    if not whole:
        for i in caveats:
            drawn[i] = _cut(drawn[i], CAVEAT_LINES)
        while caveats and sum(len(drawn[i]) for i in caveats) > full - LEAST:
            drawn[caveats.pop()] = []
    room = full - sum(len(drawn[i]) for i in caveats)
    title: list[Text] = []  # is printed with what it is the title of
    left_out = False
    for (piece, caveat), own in zip(pieces, drawn, strict=True):
        lines = own if caveat else title + own
        if caveat:
            left_out |= not lines
        elif left_out:
            continue
        elif len(lines) > room:
            # Of a table the first rows are worth showing; half a sentence or half a person is not.
            lines = lines[: int(room)] if isinstance(piece, Table) and room > len(title) + _HEAD else []
            left_out = True
        elif isinstance(piece, _Title):
            title = lines
            continue
        else:
            room -= len(lines)
        title = []
        for line in lines:
            console.print(line, soft_wrap=True)
    if left_out:
        console.print(Text("More with --all.", style="dim"), soft_wrap=True)
    for words in last:
        console.print(Text(without_controls(words)), soft_wrap=True)


def harmless(text: str) -> str:
    """Text that plays no tricks, in which a figure and its unit stay on one line."""
    return without_controls(text).replace(" %", f"{_TIE}%")


def _cut(lines: list[Text], most: int) -> list[Text]:
    """The first lines, with a mark where some are missing."""
    if len(lines) <= most:
        return lines
    last = lines[most - 1]
    last.truncate(WIDTH - 2)
    return [*lines[: most - 1], last.append(" …")]


def _blocks_of(page: b.Page) -> list[b.Block]:
    """Its first sentence, what it opens with, and its sections."""
    parts = [block for part in page.parts for block in (b.Heading(part.title, part.kind), *part.blocks)]
    return [b.Paragraph(page.sentence, tone="second"), *page.opening, *parts]


class _Title(Text):
    """A heading or a caption, after a line that is left free."""


class _Command(Text):
    """A line for a shell, which is not broken."""


def _lines(console: Console, piece: RenderableType) -> list[Text]:
    """What is drawn as single lines, none of them longer than the terminal unless it may not be broken."""
    if isinstance(piece, _Command):
        return [Text(piece.plain.replace(_TIE, " "))]
    lines = console.render_lines(piece, console.options.update(width=min(WIDTH, console.width)), pad=False)
    texts = [
        Text.assemble(*((segment.text.replace(_TIE, " "), segment.style or "") for segment in line)) for line in lines
    ]
    for text in texts:
        text.rstrip()
    return texts


def inline(text: b.Text) -> Text:  # noqa: PLR0911 - one for each look
    """A text with its looks."""
    if isinstance(text, tuple):
        return Text("").join(inline(piece) for piece in text)
    match text:
        case b.Strong():
            return Text(harmless(text.text), style="bold")
        case b.Tag():
            return Text(f"({harmless(text.text)})", style=_TAGS.get(text.text, "dim"))
        case b.Small():
            return Text(f" ({harmless(text.text)})" if text.text else "", style="dim")
        case b.Code() | b.Link():
            return Text(harmless(text.text))
        case b.Bar():
            return Text("█" * round(12 * min(abs(text.share), 1.0)), style="red" if text.share < 0 else "cyan")
        case _:
            return Text(harmless(text))


def _drawn(block: b.Block, *, everything: bool) -> Iterator[RenderableType]:  # noqa: PLR0912 - one for each kind
    match block:
        case b.Heading():
            yield _title((b.Strong(b.plain(block.text)), *_kind(block.kind)))
        case b.Paragraph(tone="small hint"):  # for those who can point at a picture
            return
        case b.Paragraph():
            text = inline(block.text).append_text(inline(_kind(block.kind)))
            text.stylize(_TONES.get(block.tone.partition(" ")[0], ""))
            yield text
        case b.TableBlock():
            yield from _table(block, everything=everything)
        case b.Cards():
            yield from _pairs([(card.what, _joined(card)) for card in block.cards], everything=everything)
        case b.Facts():
            yield from _pairs([(name, b.plain(value)) for name, value in block.pairs], everything=everything)
        case b.Commands():
            for line in block.lines:
                yield _Command(f"  {harmless(line)}")
        case b.Bullets():
            for item in block.items:
                yield Padding(Text("• ").append_text(inline(item)), (0, 0, 0, 2))
        case b.Columns():
            for inner in chain.from_iterable(block.parts):
                yield from _drawn(inner, everything=everything)
        case b.Fold():
            if everything or block.open:
                yield _title((b.plain(block.title), *_kind(block.kind)))
                for inner in block.blocks:
                    yield from _drawn(inner, everything=everything)
        case b.People():
            for person in block.people:
                yield _person(person, everything=everything)
        case b.Drawing() | b.Form():
            return


def _title(text: tuple[b.Inline, ...]) -> Text:
    return _Title("\n").append_text(inline(text))


def _kind(kind: str) -> tuple[b.Inline, ...]:
    return (" ", b.Tag(kind)) if kind else ()


def _joined(card: b.FigureCard) -> str:
    kind = f" ({card.kind})" if card.kind else ""
    return harmless(f"{card.value}{kind}" + (f"; {card.small}" if card.small else ""))


def _pairs(pairs: Sequence[tuple[str, str]], *, everything: bool) -> Iterator[Table]:
    """Names and values, each by itself, so that none is cut; a look shows the first words of a long one."""
    names = [harmless(name) for name, _ in pairs]
    width = max(map(cell_len, names), default=0)
    room = FACT_LINES * (WIDTH - width - 4)
    for name, (_, value) in zip(names, pairs, strict=True):
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True, min_width=width)
        grid.add_column()
        grid.add_row(name, Text(harmless(value if everything else textwrap.shorten(value, room, placeholder=" …"))))
        yield grid


def _table(block: b.TableBlock, *, everything: bool) -> Iterator[RenderableType]:
    """The rows, and from the left as many columns as a line holds; headings break between words."""
    if block.caption:
        yield _title(block.caption if isinstance(block.caption, tuple) else (block.caption,))
    if block.stacked:
        yield from (_stacked(row, everything=everything) for row in block.cells())
        return
    cells = [[inline(cell) for cell in row] for row in block.cells()]
    shown = cells if everything else cells[:MAX_ROWS]
    heads = [harmless(column.head) for column in block.columns]
    # A column of figures needs its widest one and the longest word of its heading; words can break, down to a few.
    widest = [max((cell_len(row[i].plain) for row in shown), default=0) for i in range(len(heads))]
    words = [max(map(cell_len, head.split() or [""])) for head in heads]
    needed = [max(pair) for pair in zip(widest, words, strict=True)]
    needed = [w if column.right else min(w, NAME) for w, column in zip(needed, block.columns, strict=True)]
    kept = max(2, sum(total <= WIDTH for total in accumulate(width + 2 for width in needed)))
    spare = WIDTH - sum(width + 2 for width in needed[:kept])
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for head, column, width in zip(heads[:kept], block.columns, needed, strict=False):
        liked = min(max(cell_len(head) if len(head) <= HEADING else HEADING, width), width + spare)
        spare -= liked - width if column.right else 0
        exact = liked if column.right else None
        table.add_column(Text(head), justify="right" if column.right else "left", min_width=width, width=exact)
    for i, row in enumerate(shown):
        table.add_row(*row[:kept], style="bold" if i in block.marked else "")
    yield table
    if everything and kept < len(heads):  # the other columns below, with the first one again
        rest = [0, *range(kept, len(heads))]
        rows = [[row[i] for i in rest] for row in block.rows]
        yield Text("")
        yield from _table(b.TableBlock([block.columns[i] for i in rest], rows), everything=True)
        return
    left = [f"{len(cells) - len(shown)} more rows"] if len(cells) > len(shown) else []
    left += [f"columns {'; '.join(head for head in heads[kept:] if head)}"] if any(heads[kept:]) else []
    if left:
        yield Text(f"Not shown: {', '.join(left)}.", style="dim")


def _stacked(row: Sequence[b.Text], *, everything: bool) -> Padding:
    """The cells of a row after each other, the first in bold; remarks only where everything is asked for."""
    first, *rest = (cell if isinstance(cell, tuple) else (cell,) for cell in row)
    kept = [piece for cell in rest for piece in (*cell, " ") if everything or not isinstance(piece, b.Small)]
    head = b.plain(tuple(piece for piece in first if not isinstance(piece, b.Small)))
    return Padding(inline((b.Strong(head), " ", *kept)), (0, 0, 0, 2))


def _person(card: b.PersonCard, *, everything: bool) -> Text:
    text = Text(f"\n{card.rank:>2}. ", style="bold")
    text.append(f"{harmless(card.k)}  ", style="bold red")
    own = f"  {harmless(card.own)}" if card.own else ""
    text.append(f"{harmless(card.bits)}{own}  ({harmless(card.place)})", style="not bold")
    text.append("".join(f"  {tag}" for tag in card.tags), style="yellow not bold")
    for value, meaning in card.ends:
        text.append(f"\n    {value}  {harmless(meaning)}", style="not bold")
    folded = textwrap.fill(
        harmless(", ".join(f"{name} {value}" for name, value in card.facts)),
        WIDTH,
        initial_indent="    ",
        subsequent_indent="    ",
        break_on_hyphens=False,
        max_lines=None if everything else PERSON_LINES,
        placeholder=" …",
    )
    text.append(f"\n{folded}", style="dim not bold")
    return text.append(f"\n    {harmless(card.small)}" if card.small else "", style="dim not bold")
