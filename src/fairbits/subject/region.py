"""The people that a rule names, as a domain of their own: what ``--where`` makes of a subject.

Conditions on one attribute narrow its values, so that searches, samples and proofs stay inside by themselves; whatever
else the rule says is one more rule of the schema. Model, encoding and tolerance stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairbits.domain import NUMPY, Attribute, Rule, Schema, columns_of, evaluated
from fairbits.errors import OptionError

#: Values of a whole number that are listed to narrow it; of more the condition is a rule.
MAX_LISTED = 200_000


def region_of(schema: Schema, where: str) -> tuple[Schema, Rule]:
    """The schema of the people that a rule names, and the rule."""
    rule = Rule.of(where, schema.attributes)
    named = next((i for i in rule.columns if schema.attributes[i].protected), None)
    if named is not None:
        raise OptionError(
            f"--where names {schema.names[named]!r}, which is protected: twins differ in it, so a region cannot; "
            f"leave it out."
        )
    attributes, left = list(schema.attributes), []
    for part in rule.parts():
        columns = set(columns_of(part))
        column = columns.pop()
        narrowed = None if columns else _narrowed(attributes[column], column, part)
        if narrowed is None:
            left.append(part)
        else:
            attributes[column] = narrowed
    # The parts that are left are parts of the whole: where something is left, the whole is the rule.
    rules = (*schema.rules, rule) if left else schema.rules
    return replace(schema, attributes=tuple(attributes), rules=rules), rule


def _narrowed(attribute: Attribute, column: int, part: list[object]) -> Attribute | None:
    """The attribute with the values that keep a condition on it alone; None where they cannot be said."""
    if attribute.discrete or attribute.allowed:
        if not attribute.allowed and attribute.upper - attribute.low >= MAX_LISTED:
            return None
        values = attribute.domain_values()
        kept = values[np.broadcast_to(evaluated(part, lambda _: values), values.shape)]
        if len(kept) == 0:
            raise OptionError(f"--where leaves {attribute.name!r} no value from {values[0]:g} to {values[-1]:g}.")
        return replace(attribute, allowed=tuple(kept.tolist())) if len(kept) < len(values) else attribute
    word, one, other = part if len(part) == 3 else (None, None, None)
    turned = {"<=": ">=", ">=": "<="}
    if one != ["column", column]:
        word, one, other = turned.get(str(word)), other, one
    if word not in turned or one != ["column", column] or attribute.gap is not None or not isinstance(other, list):
        return None
    end = float(evaluated(other, lambda _: np.nan, NUMPY))
    low, high = (
        (max(attribute.low, end), attribute.upper) if word == ">=" else (attribute.low, min(attribute.upper, end))
    )
    if low > high:
        raise OptionError(f"--where leaves {attribute.name!r} no value from {attribute.low:g} to {attribute.upper:g}.")
    return replace(attribute, low=low, high=high)
