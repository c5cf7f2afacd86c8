"""Protected numbers for twins: named ranges with one real value each, so that m stays within a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fairbits.domain.attribute import Attribute, Codes
from fairbits.domain.kinds import Number
from fairbits.domain.schema import Schema
from fairbits.errors import SchemaError

#: A protected number with at most this many values keeps them all.
FEW_VALUES = 12
#: Ranges that a protected number gets to begin with.
RANGES = 6


def coarsened(schema: Schema, columns: Mapping[str, Codes], *, max_twins: int) -> Schema:
    """The schema with ranges for protected numbers of many values, as many ranges as the limit of twins allows."""
    wide = [a.name for a in schema.attributes if a.protected and _is_wide(a)]
    for count in range(RANGES, 1, -1):
        attributes = [
            with_ranges(a, columns[a.name], count) if isinstance(a, Number) and a.name in wide else a
            for a in schema.attributes
        ]
        if twins_of(attributes) <= max_twins:
            return replace(schema, attributes=tuple(attributes), max_twins=max_twins)
    sizes = {a.name: a.twin_count for a in attributes if a.protected}
    widest = max(sizes, key=lambda name: sizes[name])
    parts = " × ".join(f"{name} {size}" for name, size in sizes.items())
    raise SchemaError(
        f"the protected attributes have {twins_of(attributes):,} combinations ({parts}), more than {max_twins:,}; "
        f"merge values of {widest!r} in the table, protect fewer attributes, or raise --max-twins."
    )


def with_ranges(attribute: Number, values: Codes, count: int) -> Number:
    """The attribute cut into ranges that hold about as many people each; the median value stands for its range."""
    cuts = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)[1:-1], method="higher"))
    place = np.searchsorted(cuts, values, side="right")
    ranges = []
    for here in np.unique(place):
        inside = np.sort(values[place == here])
        low, high, middle = inside[0], inside[-1], inside[len(inside) // 2]
        name = attribute.read(low) if low == high else f"{attribute.read(low)}–{attribute.read(high)}"
        ranges.append((name, float(middle), float(low)))
    return replace(
        attribute,
        ranges=tuple((name, middle) for name, middle, _ in ranges),
        cuts=tuple(low for _, _, low in ranges[1:]),
    )


def twins_of(attributes: list[Attribute]) -> int:
    """Number of combinations of protected values."""
    return int(np.prod([float(a.twin_count) for a in attributes if a.protected]))


def _is_wide(attribute: Attribute) -> bool:
    if attribute.kind == "category" or attribute.labels:
        return False
    return attribute.kind == "real" or len(attribute.values()) > FEW_VALUES
