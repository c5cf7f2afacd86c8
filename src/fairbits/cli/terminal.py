"""Blocks on a terminal: at most 80 columns, and as many lines as one look takes unless everything is asked for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import accumulate

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairbits import blocks as b
from fairbits.cli.console import Console
from fairbits.text import harmless

WIDTH = 80
#: Rows of one table, people of one list.
MAX_ROWS, MAX_PEOPLE = 12, 3
#: Columns that a name can do with.
NAME = 24
_TONES = {"lead": "", "small": "dim", "note": "dim", "warning": "yellow", "verdict": "bold", "second": "bold"}
_TAGS = {"worse": "red", "fail": "bold red", "better": "green", "pass": "green", "exact": "green", "proved": "green"}


def show(found: Iterable[b.Block], *, everything: bool = False) -> None:
    """Print blocks; folded ones, long tables and long lists in full only where everything is asked for."""
    console = Console(highlight=False)
    for block in found:
        for piece in _drawn(block, everything=everything):
            console.print(piece, soft_wrap=isinstance(block, b.Commands))


def show_page(page: b.Page, *, everything: bool = False) -> None:
    """Print a page: its first sentence, what it opens with, and its sections."""
    show([b.Paragraph(page.sentence, tone="second"), *page.opening])
    for part in page.parts:
        show([b.Heading(part.title, part.kind), *part.blocks], everything=everything)


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
            yield Text("\n").append_text(inline((b.Strong(b.plain(block.text)), *_kind(block.kind))))
        case b.Paragraph():
            text = inline(block.text).append_text(inline(_kind(block.kind)))
            text.stylize(_TONES.get(block.tone.partition(" ")[0], ""))
            yield text
        case b.TableBlock():
            yield from _table(block, everything=everything)
        case b.Cards():
            rows = [(card.what, _joined(card)) for card in block.cards]
            yield _pairs([(what, Text(words)) for what, words in rows])
        case b.Facts():
            yield _pairs([(name, inline(value)) for name, value in block.pairs])
        case b.Commands():
            for line in block.lines:
                yield Text(f"  {harmless(line)}")
        case b.Bullets():
            for item in block.items:
                yield Padding(Text("• ").append_text(inline(item)), (0, 0, 0, 2))
        case b.Columns():
            for part in block.parts:
                for inner in part:
                    yield from _drawn(inner, everything=everything)
        case b.Fold():
            if everything or block.open:
                yield Text("\n").append_text(inline(block.title))
                for inner in block.blocks:
                    yield from _drawn(inner, everything=everything)
        case b.People():
            most = len(block.people) if everything else MAX_PEOPLE
            for person in block.people[:most]:
                yield _person(person)
        case b.Drawing() | b.Form():
            return


def _kind(kind: str) -> tuple[b.Inline, ...]:
    return (" ", b.Tag(kind)) if kind else ()


def _joined(card: b.FigureCard) -> str:
    kind = f" ({card.kind})" if card.kind else ""
    return harmless(f"{card.value}{kind}" + (f"; {card.small}" if card.small else ""))


def _pairs(pairs: Iterable[tuple[str, Text]]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column()
    for name, value in pairs:
        grid.add_row(Text(harmless(name)), value)
    return grid


def _table(block: b.TableBlock, *, everything: bool) -> Iterator[RenderableType]:
    """The rows, and from the left as many columns as a line holds; headings break between words."""
    if block.caption:
        yield Text("\n").append_text(inline(block.caption))
    cells = [[inline(cell) for cell in row] for row in block.cells()]
    shown = cells if everything else cells[:MAX_ROWS]
    heads = [harmless(column.head) for column in block.columns]
    # A column of figures needs its widest one and the longest word of its heading; words can break, down to a few.
    widest = [max((cell_len(row[i].plain) for row in shown), default=0) for i in range(len(heads))]
    words = [max(map(cell_len, head.split() or [""])) for head in heads]
    needed = [max(pair) for pair in zip(widest, words, strict=True)]
    needed = [w if column.right else min(w, NAME) for w, column in zip(needed, block.columns, strict=True)]
    kept = max(1, sum(total <= WIDTH - 2 for total in accumulate(width + 2 for width in needed)))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head, column, width in zip(heads[:kept], block.columns, needed, strict=False):
        exact = width if column.right else None
        table.add_column(Text(head), justify="right" if column.right else "left", min_width=width, width=exact)
    for i, row in enumerate(shown):
        table.add_row(*row[:kept], style="bold" if i in block.marked else "")
    yield table
    left = [f"{len(cells) - len(shown)} more rows"] if len(cells) > len(shown) else []
    left += [f"columns {'; '.join(head for head in heads[kept:] if head)}"] if any(heads[kept:]) else []
    if left:
        yield Text(f"Not shown: {', '.join(left)}.", style="dim")


def _person(one: b.PersonCard) -> Text:
    text = Text(f"\n{one.rank:>2}. ", style="bold")
    text.append(f"{harmless(one.k)}  ", style="bold red")
    own = f"  {harmless(one.own)}" if one.own else ""
    text.append(f"{harmless(one.bits)}{own}  ({harmless(one.place)})", style="not bold")
    text.append("".join(f"  {tag}" for tag in one.tags), style="yellow not bold")
    for value, meaning in one.ends:
        text.append(f"\n    {value}  {harmless(meaning)}", style="not bold")
    words = ", ".join(f"{name} {value}" for name, value in one.facts)
    folded = textwrap.fill(
        harmless(words), WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
    )
    return text.append(f"\n{folded}", style="dim not bold")
