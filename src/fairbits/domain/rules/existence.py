"""Rules against the domain and against a table: does anybody exist, and who breaks them?"""

from __future__ import annotations

import numpy as np

from fairbits.domain.attribute import Codes
from fairbits.domain.rules.rule import over
from fairbits.domain.rules.tree import names_in
from fairbits.domain.schema import Schema
from fairbits.errors import SchemaError

#: People drawn at random when no row of the table keeps all rules.
SAMPLE = 50_000
#: An attribute with more values than this is not enumerated.
MAX_VALUES = 100_000


def check_rules(schema: Schema, rows: Codes) -> tuple[str, ...]:
    """Refuse rules that no person can keep; otherwise count the rows of the table that break each rule.

    Exact where rules look at one attribute at a time. Beyond that, rules are refused when no row of the table keeps
    them all and none of 50,000 people drawn at random does either: then a search could not find anybody who does.
    """
    if not schema.rules:
        return ()
    domains = left_values(schema)
    kept = np.column_stack([rule.holds(rows) for rule in schema.rules])
    if not kept.all(axis=1).any():
        _check_sample(schema, domains)
    return _notes(schema, kept)


def left_values(schema: Schema) -> list[Codes | None]:
    """Values of each attribute that the rules about it alone allow."""
    left: list[Codes | None] = []
    for column, attribute in enumerate(schema.attributes):
        if not attribute.discrete and not attribute.allowed:
            left.append(None)
            continue
        if not attribute.allowed and attribute.upper - attribute.low >= MAX_VALUES:
            left.append(None)
            continue
        values = attribute.values()
        blamed = []
        for rule in schema.rules:
            for part in rule.parts():
                if {name.column for name in names_in(part)} == {column}:
                    values = values[over(part, lambda _column, values=values: values)]  # type: ignore[misc]
                    blamed.append(rule.text)
        if len(values) == 0:
            listed = " and ".join(repr(text) for text in dict.fromkeys(blamed))
            raise SchemaError(
                f"the rules leave no value of attribute {attribute.name!r}: {listed}; change one of them."
            )
        left.append(values)
    return left


def _check_sample(schema: Schema, domains: list[Codes | None]) -> None:
    rng = np.random.default_rng(0)
    columns = [
        rng.choice(values, SAMPLE) if values is not None else _draw(rng, attribute.low, attribute.upper, attribute.kind)
        for attribute, values in zip(schema.attributes, domains, strict=True)
    ]
    people = np.column_stack(columns)
    kept = np.column_stack([rule.holds(people) for rule in schema.rules])
    if kept.all(axis=1).any():
        return
    worst = int(kept.mean(axis=0).argmin())
    raise SchemaError(
        f"no row of the table and none of {SAMPLE:,} people drawn at random keep all {len(schema.rules)} rules; "
        f"the one that excludes most is {schema.rules[worst].text!r} ({1 - kept[:, worst].mean():.1%} of them): "
        f"change or drop it."
    )


def _draw(rng: np.random.Generator, low: float, high: float, kind: str) -> Codes:
    draws = rng.uniform(low, high, SAMPLE)
    return draws if kind == "real" else np.rint(draws)


def _notes(schema: Schema, kept: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> tuple[str, ...]:
    broken = int((~kept.all(axis=1)).sum())
    if not broken:
        return ()
    counts = (~kept).sum(axis=0)
    worst = int(counts.argmax())
    most = f"most of them {schema.rules[worst].text!r} ({counts[worst]:,})" if len(schema.rules) > 1 else "the rule"
    return (
        f"{broken:,} of the {len(kept):,} rows break {most if len(schema.rules) == 1 else f'a rule, {most}'}; "
        f"they are kept, because real people are real.",
    )
