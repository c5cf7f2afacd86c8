"""What `fairbits init` shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.people_text import harmless
from fairbits.domain.coarsen import twins_of

if TYPE_CHECKING:
    from fairbits.data import Subject
    from fairbits.domain import Attribute, Schema


def show(schema: Schema, out: Path, rows: int, subject: Subject | None) -> None:
    """The schema as a table, and what to do next."""
    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("attribute", "kind", "values"):
        table.add_column(heading)
    for attribute in schema.attributes:
        name = Text(harmless(attribute.name), style="bold" if attribute.protected else "")
        if attribute.protected:
            name.append(" (protected)", style="yellow")
        table.add_row(name, attribute.kind, Text(harmless(_values(attribute))))
    console.print(table)
    decided = f"one of {', '.join(schema.classes)}; the score is the probability of {schema.favourable}"
    console.print(Text(harmless(f"{schema.target}: {decided if schema.classes else 'a number'}.")))
    console.print(
        Text(
            f"{rows:,} people, {twins_of(list(schema.attributes)):,} twins each ({harmless(_sizes(schema))}).",
            style="bold",
        )
    )
    for note in () if subject is None else subject.notes:
        console.print(Text(f"Note: {harmless(note)}", style="dim"))
    if subject is None:
        console.print(Text("No model was named: add its path under [model].", style="yellow"))
    console.print(Text(f"Written to {out} · next: fairbits measure {out}", style="dim"))


def overview(schema: Schema, out: Path, subject: Subject | None) -> dict[str, Any]:
    """The same for programs."""
    return {
        "out": str(out),
        "target": schema.target,
        "classes": list(schema.classes),
        "favourable": schema.favourable,
        "m": twins_of(list(schema.attributes)),
        "attributes": [
            {"name": a.name, "kind": a.kind, "protected": a.protected, "values": _values(a)} for a in schema.attributes
        ],
        "model_checked": subject is not None,
    }


def _sizes(schema: Schema) -> str:
    return " × ".join(f"{a.name} {a.twin_count}" for a in schema.attributes if a.protected)


def _values(attribute: Attribute, *, most: int = 4) -> str:
    if attribute.ranges:
        return f"twins: {', '.join(f'{name} (at {attribute.read(code)})' for name, code in attribute.ranges)}"
    if not attribute.labels:
        return f"{attribute.read(attribute.low)} to {attribute.read(attribute.upper)}"
    labels = attribute.labels
    shown = ", ".join(labels) if len(labels) <= most + 1 else f"{', '.join(labels[: most - 1])}, … {labels[-1]}"
    count = f"{len(labels)} values: " if len(labels) > most + 1 else ""
    return f"{count}{shown}" + (f" (from {len(attribute.own_columns)} columns)" if attribute.columns else "")
