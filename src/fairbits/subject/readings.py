"""The ways in which a table can be read for a model that does not say how: schemas to try, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fairbits.domain import (
    Encoding,
    Group,
    Schema,
    coarsened,
    numbers,
    plain,
    with_nulls,
)
from fairbits.errors import FairbitsError
from fairbits.subject.infer import infer_schema

if TYPE_CHECKING:
    import pyarrow as pa


def draft_schema(
    data: pa.Table,
    *,
    target: str,
    protected: Iterable[str],
    favourable: str | None,
    groups: Iterable[Group],
    ignored: Iterable[str],
    max_twins: int,
    everything: bool = False,
    threshold: float | None = None,
) -> Schema:
    """The schema of a table, with ranges for protected numbers of many values."""
    schema = infer_schema(
        data,
        target=target,
        protected=protected,
        favourable=favourable,
        groups=groups,
        ignored=ignored,
        everything=everything,
        threshold=threshold,
    )
    wide = {
        a.name: numbers(with_nulls(plain(data[a.name])).drop_null(), a.name)
        for a in schema.attributes
        if a.protected and not a.labels
    }
    return coarsened(schema, wide, max_twins=max_twins)


def wider_schema(data: pa.Table, schema: Schema, **asked: Any) -> Schema | None:
    """The schema with the columns that were left out, for a model that takes them; None where there are none."""
    if not schema.notes:
        return None
    try:
        found = draft_schema(data, **asked, everything=True)
    except FairbitsError:  # a column of lists, or numbers that no code can hold: no model takes it from here
        return None
    kept = ", ".join(name for name in found.names if name not in schema.names)
    if not kept:
        return None
    return replace(
        found,
        notes=(
            *found.notes,
            f"kept in the schema, though dates and identifiers tell little about people, because the model does not "
            f"take people without: {kept}.",
        ),
    )


def numeric_schema(data: pa.Table, *, everything: bool = False, **asked: Any) -> Schema | None:
    """The schema with texts such as "02139" as numbers, for a model that was trained without their zeros."""
    import pyarrow as pa

    changed, read = data, []
    for place, name in enumerate(data.column_names):
        kind = data[name].type
        if name == asked.get("target") or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            continue
        present = data[name].drop_null().unique().to_pylist()
        if present and all(text.isascii() and text.strip().isdecimal() and len(text) < 16 for text in present):
            changed = changed.set_column(place, name, plain(data[name]).cast(pa.int64()))
            read.append(name)
    if not read:
        return None
    try:
        found = draft_schema(changed, **asked, everything=everything)
    except FairbitsError:
        return None
    note = f"texts of digits are taken as numbers, because the model does not take them as texts: {', '.join(read)}."
    return replace(found, notes=(*found.notes, note))


def other_schemas(data: pa.Table, schema: Schema, **asked: Any) -> tuple[Schema, ...]:
    """What else a model may have been trained on, for one that does not take the schema as it is."""
    wider = wider_schema(data, schema, **asked)
    found = (wider, numeric_schema(data, **asked), wider and numeric_schema(data, **asked, everything=True))
    return tuple(one for one in found if one is not None)


def without_unseen(schema: Schema, encoding: Encoding) -> Schema | None:
    """The schema without what the model never sees, protected attributes excepted; None where it sees everything."""
    unseen = [schema.attributes[i] for i in encoding.unseen if not schema.attributes[i].protected]
    kept = tuple(attribute for attribute in schema.attributes if attribute not in unseen)
    named = {name for rule in schema.rules for name in (schema.names[i] for i in rule.columns)}
    if not unseen or not kept or named & {attribute.name for attribute in unseen}:
        return None
    names = ", ".join(attribute.name for attribute in unseen)
    return replace(
        schema, attributes=kept, notes=(*schema.notes, f"left out of the schema: {names} (the model never sees it).")
    )
