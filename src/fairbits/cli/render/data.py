"""What `fairbits data show` shows on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.text import harmless

if TYPE_CHECKING:
    from fairbits.data import BuiltIn
    from fairbits.domain import Attribute


def show_subject(entry: BuiltIn, about: dict[str, Any]) -> None:
    """Print a subject's description, attributes and network."""
    console = Console(highlight=False)
    console.print(Text(entry.title, style="bold"))
    console.print(entry.description)
    console.print()
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    card = about["network"]
    for name, value in (
        ("rows", f"{entry.rows:,}"),
        ("twins", f"{about['m']} ({', '.join(about['protected'])})"),
        ("scored class", f"{entry.schema.target} = {entry.favourable}"),
        ("source", entry.source),
        ("licence", entry.licence),
        ("data", about["data"]),
        ("network", "-".join(str(width) for width in card["shape"])),
        ("accuracy", f"{card['accuracy_trained']:.1%} on the {card['rows_trained']:,} training rows"),
        ("", f"{card['accuracy_held_out']:.1%} on {card['rows_held_out']:,} held-out rows"),
        ("made by", f"{card['command']} ({card['date']}, fairbits {card['version']})"),
    ):
        facts.add_row(name, Text(value))
    console.print(facts)
    console.print()
    console.print(_attributes(entry))


def _attributes(entry: BuiltIn) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("attribute", "kind", "codes", "values"):
        table.add_column(heading)
    for attribute in entry.schema.attributes:
        name = Text(harmless(attribute.name), style="bold" if attribute.protected else "")
        if attribute.protected:
            name.append(" (protected)", style="yellow")
        table.add_row(
            name, attribute.kind, f"{attribute.low:g}–{attribute.upper:g}", Text(harmless(_values(attribute)))
        )
    return table


def _values(attribute: Attribute, *, most: int = 4) -> str:
    labels = attribute.labels
    if not labels:
        return "as they are"
    if len(labels) <= most + 1:
        return ", ".join(labels)
    return f"{', '.join(labels[: most - 1])}, … {labels[-1]}"
