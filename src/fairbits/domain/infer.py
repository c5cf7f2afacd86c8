"""A first schema from nothing but a table: kinds, domains, labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.domain.attribute import MISSING, Attribute
from fairbits.domain.groups import Group
from fairbits.domain.schema import Schema
from fairbits.domain.table import check_names, numbers, plain, text_of
from fairbits.errors import SchemaError, TableError, choose_from

if TYPE_CHECKING:
    import pyarrow as pa

#: A target with at most this many different whole numbers is a class; with more it is a regression.
MOST_CLASSES = 20


def infer_schema(
    data: pa.Table,
    *,
    target: str | None = None,
    protected: Iterable[str] = (),
    favourable: object = None,
    groups: Iterable[Group] = (),
    ignored: Iterable[str] = (),
) -> Schema:
    """The narrowest schema that holds every row of the table. ``groups`` are columns that are one category."""
    check_names(data.column_names)
    by_first = {group.own_columns[0]: group for group in groups}
    inside = {column: group for group in by_first.values() for column in group.own_columns}
    left_out = {target, *ignored}
    columns = [name for name in data.column_names if name not in left_out and inside.get(name) is by_first.get(name)]
    names = [by_first[name].name if name in by_first else name for name in columns] + ([target] if target else [])
    chosen = tuple(protected)
    if target is not None and target not in data.column_names:
        raise TableError(f"target {target!r} is not in the table; {choose_from(target, data.column_names)}")
    for what, wanted in (("target", [target] if target else []), ("protected attribute", chosen)):
        for name in wanted:
            if name not in names:
                raise TableError(f"{what} {name!r} is not in the table; {choose_from(name, names)}")
    if target in chosen:
        raise SchemaError(f"target {target!r} cannot be protected as well; leave it out of the protected attributes.")
    attributes = tuple(
        by_first[name].attribute(protected=by_first[name].name in chosen)
        if name in by_first
        else infer_attribute(name, data[name], protected=name in chosen)
        for name in columns
    )
    classes = infer_classes(data[target]) if target else ()
    value = None if favourable is None else text_of(favourable)
    return Schema(attributes, target, classes, value, order_guessed=True)


def infer_attribute(name: str, column: Any, *, protected: bool = False) -> Attribute:
    """Text is a category, whole numbers are integers, other numbers are real."""
    import pyarrow as pa

    column = plain(column)
    if len(column) == column.null_count:
        raise TableError(f"column {name!r} holds no value at all; drop it or describe it in the schema.")
    if pa.types.is_string(column.type):
        found = sorted({text.strip() for text in column.drop_null().to_pylist()})
        labels = (*found, MISSING) if column.null_count else tuple(found)
        return Attribute(name=name, kind="category", labels=labels, protected=protected)
    values = numbers(column.drop_null(), name)
    low, high = float(values.min()), float(values.max())
    whole = bool((values == np.rint(values)).all())
    return Attribute(name=name, kind="integer" if whole else "real", low=low, high=high, protected=protected)


def infer_classes(column: Any) -> tuple[str, ...]:
    """The classes of a target in sorted order, as a classifier would number them; none for a regression."""
    values = [value for value in plain(column).unique().to_pylist() if value is not None]
    continuous = any(isinstance(v, float) and not v.is_integer() for v in values)
    numeric = all(isinstance(v, int | float) for v in values)
    if continuous or (numeric and len(values) > MOST_CLASSES):
        return ()
    return tuple(text_of(value) for value in sorted(values))
