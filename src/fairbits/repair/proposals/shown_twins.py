"""Twins as the columns of a table show them, for files that take what people read."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.domain import Decoder, Schema, Twins


def shown_twins(schema: Schema, twins: Twins, decoder: Decoder) -> tuple[list[str], list[list[Any]]]:
    """The table's columns of protected attributes, and what each twin has in them."""
    someone = np.array([[attribute.first for attribute in schema.attributes]])
    frame = decoder.frame(twins.expand(someone)[0])
    names = [name for column in twins.columns for name in schema.attributes[column].own_columns]
    rows = zip(*(frame[name] for name in names), strict=True)
    return names, [[plain_value(value) for value in row] for row in rows]


def plain_value(value: Any) -> Any:
    """A value of a frame as JSON holds it."""
    return value.item() if isinstance(value, np.generic) else value
