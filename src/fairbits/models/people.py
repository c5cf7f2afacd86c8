"""People to try a model on before a table is at hand."""

from __future__ import annotations

import numpy as np

from fairbits.domain import Codes, Schema

#: The share of people who lack a number, where people may lack it.
_LACKING = 0.1


def random_people(schema: Schema, count: int, *, lacking: bool = False) -> Codes:
    """People with valid values, drawn from the whole domain; always the same."""
    rng = np.random.default_rng(0)
    columns = [a.clip(rng.uniform(a.low - 0.5, a.upper + 0.5, count)) for a in schema.attributes]
    for column, attribute in zip(columns, schema.attributes, strict=True):
        if lacking and attribute.kind != "category" and attribute.gap is not None:
            column[rng.random(count) < _LACKING] = attribute.gap
    return np.column_stack(columns).astype(np.float64)
