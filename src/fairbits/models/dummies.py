"""Models trained on ``pandas.get_dummies``: their columns are made from the labels of the table as it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fairbits.domain import Attribute, Encoding, Lookup, Numeric, Part, Schema, Unseen, table_columns, values_of


def dummy_columns(schema: Schema) -> dict[str, tuple[str, int]]:
    """What the labels of categories are called as columns of their own."""
    from fairbits.models.trees.features import spellings

    return {
        f"{attribute.name}_{way}": (attribute.name, i)
        for attribute in schema.attributes
        if attribute.kind == "category" and not attribute.columns
        for i, label in enumerate(attribute.labels)
        for way in spellings(label)
    }


def dummy_encoding(names: Iterable[Any], schema: Schema, *, dtype: Any = np.float32) -> Encoding | None:
    """How people become the columns of a model that was trained on dummies; a dropped label is zero in all of them."""
    wanted, known, dummies = [str(name) for name in names], set(table_columns(schema)), dummy_columns(schema)
    if all(name in known for name in wanted) or not all(name in known or name in dummies for name in wanted):
        return None
    groups = {column: (a.name, i) for a in schema.attributes for i, column in enumerate(a.columns) if column}
    labels: dict[str, dict[int, int]] = {}
    whole: dict[str, int] = {}
    for place, name in enumerate(wanted):
        if name in known and name not in groups:
            whole[name] = place
        else:
            owner, label = groups[name] if name in groups else dummies[name]
            labels.setdefault(owner, {})[label] = place
    if set(labels) & set(whole):
        return None
    parts: list[Part] = []
    for attribute in schema.attributes:
        if attribute.name in whole:
            part = _number(attribute, whole[attribute.name])
            if part is None:
                return None
            parts.append(part)
        elif attribute.name in labels:
            mine = labels[attribute.name]
            table = np.zeros((len(attribute.labels), len(mine)))
            table[list(mine), range(len(mine))] = 1.0
            parts.append(Lookup(np.array([*mine.values()], dtype=np.int64), table))
        else:
            parts.append(Unseen())
    return Encoding(parts, dtype=dtype)


def _number(attribute: Attribute, place: int) -> Part | None:
    """An attribute that is one column of numbers; None where its labels are words."""
    if attribute.kind != "category":
        return Numeric(place, gap=attribute.gap)
    values = values_of(attribute)
    if any(isinstance(value, str) for value in values.tolist()):
        return None
    return Lookup(np.array([place]), np.array([[float(value)] for value in values.tolist()]))


def dummy_note(names: Iterable[Any], schema: Schema) -> str:
    """A note on columns that were made."""
    first = next(str(name) for name in names if str(name) not in table_columns(schema))
    return (
        f"the model takes columns such as {first!r}, which are made from the table's labels as pandas.get_dummies does."
    )
