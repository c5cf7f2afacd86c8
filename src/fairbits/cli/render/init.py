"""What `fairbits init` shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless
from fairbits.domain import twins_of
from fairbits.models import speaks_of

if TYPE_CHECKING:
    from fairbits.domain import Attribute, Schema
    from fairbits.subject import Drafted, Subject


def show(drafted: Drafted, out: Path, rows: int) -> None:
    """Print the schema, how the model agrees with the labels, and what to do next."""
    schema, subject = drafted.schema, drafted.subject
    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("attribute", "kind", "values"):
        table.add_column(heading)
    for attribute in (*schema.attributes, *schema.observed):
        observed = attribute in schema.observed
        name = Text(harmless(attribute.name), style="bold" if attribute.protected or observed else "")
        if attribute.protected or observed:
            name.append(" (observed, no input)" if observed else " (protected)", style="yellow")
        table.add_row(name, attribute.kind, Text(harmless(_values(attribute))))
    console.print(table)
    outputs = "" if subject is None else _outputs(subject)
    decided = f"one of {', '.join(schema.classes)}; the score is the probability of {schema.favourable}{outputs}"
    console.print(Text(harmless(f"{schema.target}: {decided if schema.classes else 'a number'}.")))
    each = f"{twins_of(list(schema.attributes)):,} twins each ({harmless(_sizes(schema))})"
    if schema.observed and not schema.protected:
        unseen = harmless(", ".join(one.name for one in schema.observed))
        each = f"no twins: the model does not take {unseen}; what its score tells about them is measured instead"
    console.print(Text(f"{rows:,} people, {each}.", style="bold"))
    for line in () if subject is None else subject.lines():
        console.print(Text(harmless(line)))
    for note in (*drafted.notes, *(() if subject is None else subject.notes)):
        console.print(Text(f"Note: {harmless(note)}", style="dim"))
    if drafted.trouble is not None:
        console.print(Text(f"The model does not fit yet; {out} says why, where it is to be mended.", style="yellow"))
        console.print(Text(f"Written to {out} · edit it, then: fairbits measure {out}", style="dim"))
        return
    if subject is None:
        console.print(Text("No model was named: add its path under [model].", style="yellow"))
    console.print(Text(f"Written to {out} · next: fairbits measure {out}", style="dim"))


def _outputs(subject: Subject) -> str:
    """Which class a single output was taken to speak of."""
    single = speaks_of(subject.model, subject.schema)
    return "" if single is None or single == subject.schema.favourable else f" (the model puts out that of {single})"


def overview(drafted: Drafted, out: Path) -> dict[str, Any]:
    """The content of ``--json``."""
    schema, subject = drafted.schema, drafted.subject
    quality = {} if subject is None or subject.quality is None else subject.quality.figures()
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
        "score_of": drafted.draft.options.score_of,
        "notes": [*drafted.notes, *(() if subject is None else subject.notes)],
        "trouble": drafted.trouble,
        "next": f"fairbits measure {out}",
        **quality,
    }


def _sizes(schema: Schema) -> str:
    return " × ".join(f"{a.name} {a.twin_count}" for a in schema.attributes if a.protected)


def _values(attribute: Attribute, *, max_shown: int = 4) -> str:
    if attribute.ranges:
        return f"twins: {', '.join(f'{name} (at {attribute.read(code)})' for name, code in attribute.ranges)}"
    if not attribute.labels:
        return f"{attribute.read(attribute.low)} to {attribute.read(attribute.upper)}"
    labels = attribute.labels
    shown = (
        ", ".join(labels) if len(labels) <= max_shown + 1 else f"{', '.join(labels[: max_shown - 1])}, … {labels[-1]}"
    )
    count = f"{len(labels)} values: " if len(labels) > max_shown + 1 else ""
    return f"{count}{shown}" + (f" (from {len(attribute.own_columns)} columns)" if attribute.columns else "")
