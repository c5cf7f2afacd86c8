"""What a model and a table are about, before anything is measured: built-in ones, and drafts of `fairbits init`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fairbits.blocks import Block, Facts, Paragraph, Strong, TableBlock, Tag, Text, figure, label, paragraphs, table_by
from fairbits.domain import twins_of
from fairbits.models import speaks_of
from fairbits.text import number, percent

if TYPE_CHECKING:
    from fairbits.data import BuiltIn
    from fairbits.domain import Attribute, Schema
    from fairbits.subject import Draft


def built_in_blocks(entry: BuiltIn, about: Mapping[str, Any]) -> Iterator[Block]:
    """A built-in subject: what it is about, whose it is, its network and its attributes."""
    card = about["network"]
    yield Paragraph(Strong(entry.title))
    yield Paragraph(entry.description)
    yield Facts(
        [
            ("rows", number(entry.rows)),
            ("twins", f"{about['m']} ({', '.join(about['protected'])})"),
            ("scored class", f"{entry.schema.target} = {entry.schema.favourable}"),
            ("accuracy", f"{percent(card['accuracy_held_out'])} on {number(card['rows_held_out'])} held-out rows"),
            ("", f"{percent(card['accuracy_trained'])} on the {number(card['rows_trained'])} training rows"),
            ("network", "-".join(str(width) for width in card["shape"])),
            ("data", about["data"]),
            ("source", entry.source),
            ("licence", entry.licence),
            ("made by", f"{card['command']} ({card['date']}, fairbits {card['version']})"),
        ]
    )
    yield attribute_table(entry.schema)


def built_in_list(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    yield table_by(
        rows,
        [
            (label("name"), lambda row: row["name"]),
            (figure("rows"), lambda row: row["rows"]),
            (figure("attributes"), lambda row: row["attributes"]),
            (figure("twins"), lambda row: row["m"]),
            (label("protected"), lambda row: ", ".join(row["protected"])),
            (label("data"), lambda row: row["data"]),
        ],
    )


def draft_blocks(draft: Draft, rows: int) -> Iterator[Block]:
    """A drafted subject: its people, how the model decides and agrees with the labels, and its attributes."""
    subject = draft.subject
    schema = draft.schema if subject is None else subject.schema
    sizes = " × ".join(f"{a.name} {a.twin_count}" for a in schema.attributes if a.protected)
    each = f"{number(twins_of(list(schema.attributes)))} twins each ({sizes})"
    if schema.observed and not schema.protected:
        unseen = ", ".join(one.name for one in schema.observed)
        each = f"no twins: the model does not take {unseen}; what its score tells about them is measured instead"
    yield Paragraph(Strong(f"{number(rows)} people, {each}."))
    # Which class a single output was taken to speak of.
    single = None if subject is None else speaks_of(subject.model, subject.schema)
    outputs = "" if single in (None, schema.favourable) else f" (the model puts out that of {single})"
    decided = f"one of {', '.join(schema.classes)}; the score is the probability of {schema.favourable}{outputs}"
    yield Paragraph(f"{schema.target}: {decided if schema.classes else 'a number'}.")
    yield from paragraphs(() if subject is None else subject.lines())
    yield attribute_table(schema)
    count = len(draft.proposed)
    if count:
        rules = f"{count} rule{'s' * (count > 1)}"
        yield Paragraph(f"{rules} for plausible twins, from pairs of values that hardly ever meet: see the file.")
    yield from paragraphs(
        (f"Note: {note}" for note in (*draft.notes, *(schema.notes if subject is None else subject.notes))), "note"
    )
    if draft.trouble is not None:
        yield Paragraph("The model does not fit yet; the file says why, where it is to be mended.", tone="warning")
    elif subject is None:
        yield Paragraph("No model was named: add its path under [model].", tone="warning")


def draft_document(draft: Draft, out: str) -> dict[str, Any]:
    subject = draft.subject
    schema = draft.schema if subject is None else subject.schema
    quality = {} if subject is None or subject.quality is None else subject.quality.figures()
    return {
        "out": out,
        "target": schema.target,
        "classes": list(schema.classes),
        "favourable": schema.favourable,
        "m": twins_of(list(schema.attributes)),
        "attributes": [
            {"name": a.name, "kind": a.kind, "protected": a.protected, "values": values_of(a)}
            for a in schema.attributes
        ],
        "model_checked": subject is not None,
        "score_of": draft.options.score_of,
        "plausible": [asdict(one) for one in draft.proposed],
        "notes": [*draft.notes, *(() if subject is None else subject.notes)],
        "trouble": draft.trouble,
        "next": f"fairbits measure {out}",
        **quality,
    }


def attribute_table(schema: Schema) -> Block:
    rows: list[tuple[Text, str, str]] = []
    for one in (*schema.attributes, *schema.observed):
        mark = "observed, no input" if one in schema.observed else "protected" if one.protected else ""
        rows.append(((one.name, " ", Tag(mark)) if mark else one.name, one.kind, values_of(one)))
    return TableBlock(
        [label("attribute"), label("kind"), label("values")],
        rows,
        marked=frozenset(i for i, row in enumerate(rows) if isinstance(row[0], tuple)),
    )


def values_of(attribute: Attribute, *, most: int = 4) -> str:
    if attribute.ranges:
        return f"twins: {', '.join(f'{name} (at {attribute.read(code)})' for name, code in attribute.ranges)}"
    labels = attribute.labels
    if not labels:
        return f"{attribute.read(attribute.low)} to {attribute.read(attribute.upper)}"
    some = f"{len(labels)} values: {', '.join(labels[: most - 1])}, … {labels[-1]}"
    shown = ", ".join(labels) if len(labels) <= most + 1 else some
    return shown + (f" (from {len(attribute.own_columns)} columns)" if attribute.columns else "")
