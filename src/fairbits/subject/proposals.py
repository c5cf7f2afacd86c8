"""Rules about plausible twins that a table supports: pairs of values that hardly ever meet, such as husband and female.

All pairs of a protected value with another one, or with a value of an unprotected category, are looked at. Given how
often each value occurs, independent values would meet in E rows on average. A pair is proposed where at most 5 % of E
rows have it, and so few have a chance of at most 0.05 / pairs by the Poisson law of mean E. So a table in which
everything is independent gives no proposal in at least 95 % of draws. A few rows that say otherwise are slips or
exceptions: Census has one female husband among 13,193.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import KEYWORDS, Attribute, Codes, Schema

#: Most meetings as a share of what independence gives, and the chance of any proposal where all is independent.
MEETINGS, CHANCE = 0.05, 0.05
#: A category of more values than this is an identifier or a place; a number of more values is no category.
MAX_LABELS, MAX_NUMBERS = 100, 12

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ProposedRule:
    """A rule about plausible twins, and its evidence: rows that break it, and how many independence would give."""

    text: str
    rows: int
    expected: float

    @property
    def evidence(self) -> str:
        """The evidence in words."""
        many = {0: "no row breaks it", 1: "1 row breaks it"}.get(self.rows, f"{self.rows:,} rows break it")
        return f"{many}; {self.expected:,.0f} would if the values were independent"


def proposed_rules(schema: Schema, codes: Codes) -> list[ProposedRule]:
    """The rules that a table supports, the one with the strongest evidence first."""
    from scipy.special import pdtr

    tables = list(_tables(schema, codes))
    pairs = sum(int(np.count_nonzero(expected)) for _, _, _, expected in tables)
    found = []
    for one, other, rows, expected in tables:
        rare = (rows <= MEETINGS * expected) & (expected > 0)
        rare &= pdtr(rows, expected) <= CHANCE / max(pairs, 1)
        alike: dict[tuple[int, ...], list[int]] = defaultdict(list)  # values of one that the same values never meet
        for value in np.flatnonzero(rare.any(axis=1)):
            alike[tuple(np.flatnonzero(rare[value]).tolist())].append(int(value))
        for barred, values in alike.items():
            here = np.ix_(values, barred)
            left = [place for place in range(len(_codes(other))) if place not in barred]
            text = f"{_among(one, values)} -> {_among(other, left)}"
            found.append(ProposedRule(text, int(rows[here].sum()), float(expected[here].sum())))
    return sorted(found, key=lambda proposal: proposal.rows - proposal.expected)


def _tables(schema: Schema, codes: Codes) -> Iterator[tuple[Attribute, Attribute, Integers, npt.NDArray[np.float64]]]:
    """Pairs of attributes, the second one protected, with the rows of each pair of values, and those expected."""
    for column in schema.protected_columns:
        for beside, one in enumerate(schema.attributes):
            if beside == column or (one.protected and beside > column) or not (one.protected or _category(one)):
                continue
            other = schema.attributes[column]
            first, second = _places(one, codes[:, beside]), _places(other, codes[:, column])
            known = (first >= 0) & (second >= 0)
            shape = len(_codes(one)), len(_codes(other))
            rows = np.bincount(first[known] * shape[1] + second[known], minlength=shape[0] * shape[1]).reshape(shape)
            yield one, other, rows, np.outer(rows.sum(axis=1), rows.sum(axis=0)) / max(int(known.sum()), 1)


def _category(attribute: Attribute) -> bool:
    most = MAX_LABELS if attribute.kind == "category" else MAX_NUMBERS
    return attribute.discrete and len(_codes(attribute)) <= most


def _codes(attribute: Attribute) -> Codes:
    """The values that rules name: those of twins, without the one that stands for a missing value."""
    values = attribute.twin_values() if attribute.protected else attribute.values()
    return values[np.isfinite(values) & (values != (np.nan if attribute.gap is None else attribute.gap))]


def _places(attribute: Attribute, codes: Codes) -> Integers:
    """Which of these values each row has, by its range; −1 where it has none."""
    values = _codes(attribute)
    if attribute.ranges:
        known = np.isfinite(codes) & (codes != (np.nan if attribute.gap is None else attribute.gap))
        return np.where(known, np.searchsorted(attribute.cuts, codes, side="right"), -1)
    place = np.minimum(np.searchsorted(values, codes), len(values) - 1)
    return np.where(values[place] == codes, place, -1)


def _among(attribute: Attribute, places: list[int]) -> str:
    """The condition that an attribute has one of these values, as short as may be."""
    name = attribute.name
    if not name.isidentifier() or name.lower() in (*KEYWORDS, "own"):
        name = "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
    if attribute.ranges:
        return _within(name, attribute.cuts, places)
    said = [_value(attribute, code) for code in _codes(attribute)]
    others = [value for place, value in enumerate(said) if place not in places]
    chosen, equal, among = [said[place] for place in places], "=", "in"
    if len(others) < len(chosen):
        chosen, equal, among = others, "!=", "not in"
    return f"{name} {equal} {chosen[0]}" if len(chosen) == 1 else f"{name} {among} {{{', '.join(chosen)}}}"


def _within(name: str, cuts: tuple[float, ...], places: list[int]) -> str:
    parts = []
    for first in (place for place in places if place - 1 not in places):
        last = first
        while last + 1 in places:
            last += 1
        ends = ([f"{name} >= {cuts[first - 1]:.15g}"] if first else []) + (
            [f"{name} < {cuts[last]:.15g}"] if last < len(cuts) else []
        )
        parts.append(" and ".join(ends))
    return parts[0] if len(parts) == 1 else f"({' or '.join(f'({part})' for part in parts)})"


def _value(attribute: Attribute, code: float) -> str:
    if not attribute.labels:
        return f"{code:.15g}"
    label = attribute.labels[int(code - attribute.low)]
    return '"' + label.replace("\\", "\\\\").replace('"', '\\"') + '"'
