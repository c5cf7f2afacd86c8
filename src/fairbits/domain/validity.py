"""Who can exist under a schema's rules: which people, and which of their twins.

A rule that looks only at attributes that are not protected decides about the person. One that looks at protected
attributes decides about each twin: ``age < 18 -> marital_status != "Married"`` leaves a married person without the
twins below 18. Whoever is in the table exists, whatever the rules say: real people are never argued away, and neither
is the combination of protected values that they really have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes
from fairbits.domain.rule import Rule, Truth, columns_of, evaluated
from fairbits.domain.schema import Schema
from fairbits.domain.twins import Twins
from fairbits.errors import SchemaError

Indices = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class _Exceptions:
    """Rows of the table that break a rule: sorted keys of who they are, their codes, and which twin they are."""

    keys: Keys
    people: Codes
    protected: Codes
    twin: Indices


class Validity:
    """The rules of a schema, over people and over their twins."""

    def __init__(self, schema: Schema, twins: Twins, rows: Codes | None = None):
        self.schema = schema
        self._twins = twins
        protected = set(schema.protected_columns)
        self._of_people = [rule for rule in schema.rules if not protected.intersection(rule.columns)]
        self._of_twins = [rule for rule in schema.rules if protected.intersection(rule.columns)]
        self._free = np.array(schema.free_columns, dtype=np.int64)
        self._multipliers = np.random.default_rng(0).integers(0, 2**63, len(self._free), dtype=np.uint64) * 2 + 1
        self._places = {column: place for place, column in enumerate(schema.protected_columns)}
        self.rows = rows

    @property
    def any(self) -> bool:
        """Whether there are rules at all."""
        return bool(self.schema.rules)

    @property
    def about_twins(self) -> bool:
        """Whether some rule looks at protected attributes, so that people may have fewer than m twins."""
        return bool(self._of_twins)

    def twins(self, codes: Codes) -> Truth:
        """Which twins of these people can exist under the rules, or occur in the table.

        (n, m), and after these, where twins take not every value, those at people's own values.
        """
        twins = self._twins
        valid = np.ones((len(codes), twins.most), dtype=np.bool_)
        if twins.most > twins.m:
            valid[:, twins.m :] = twins.own(codes)
        for rule in self._of_twins:
            valid[:, : twins.m] &= rule.over(lambda column: self._column(codes, column))
            if twins.most > twins.m:
                valid[:, twins.m :] &= rule.over(lambda column: self._own_column(codes, column))
        real = self._real_twins
        if len(real.keys):
            person, entry = _matches(self._keys(codes), codes[:, self._free], real)
            pattern = twins.patterns[real.twin[entry]]
            mine = (np.isnan(pattern) <= (codes[person][:, twins.columns] == real.protected[entry])).all(axis=1)
            valid[person[mine], real.twin[entry[mine]]] = True
        return valid

    def people(self, codes: Codes) -> Truth:
        """Which people can exist: the rules about people hold, and at least one twin can exist."""
        valid = np.ones(len(codes), dtype=np.bool_)
        for rule in self._of_people:
            valid &= rule.holds(codes)
        if len(self._real_people.keys) and not valid.all():
            doubtful = np.flatnonzero(~valid)
            person, _ = _matches(self._keys(codes[doubtful]), codes[doubtful][:, self._free], self._real_people)
            valid[doubtful[person]] = True
        if self._of_twins:
            left = np.flatnonzero(valid)
            valid[left] = self.twins(codes[left]).any(axis=1)
        return valid

    def _column(self, codes: Codes, column: int) -> Codes:
        if column in self._places:
            return self._twins.values[:, self._places[column]][None, :]
        return codes[:, column][:, None]

    def _own_column(self, codes: Codes, column: int) -> Codes:
        if column not in self._places:
            return codes[:, column][:, None]
        pattern = self._twins.patterns[self._twins.m :, self._places[column]][None, :]
        return np.where(np.isnan(pattern), codes[:, column][:, None], pattern)

    @cached_property
    def _real_people(self) -> _Exceptions:
        return self._exceptions(self._of_people)

    @cached_property
    def _real_twins(self) -> _Exceptions:
        return self._exceptions(self._of_twins)

    def _exceptions(self, rules: list[Rule]) -> _Exceptions:
        rows = np.empty((0, len(self.schema))) if self.rows is None or not rules else self.rows
        kept = np.array([rule.holds(rows) for rule in rules], dtype=np.bool_).reshape(len(rules), len(rows))
        chosen = np.flatnonzero(~kept.all(axis=0)) if len(rows) else np.empty(0, dtype=np.int64)
        keys = self._keys(rows[chosen])
        order = np.argsort(keys, kind="stable")
        people = rows[chosen][order]
        twin = self._twins.place_of(people)
        return _Exceptions(keys[order], people[:, self._free], people[:, self._twins.columns], twin)

    def _keys(self, codes: Codes) -> Keys:
        """A number for who a person is; equal people have equal numbers, others practically never."""
        bits = np.ascontiguousarray(codes[:, self._free] + 0.0).view(np.uint64)  # + 0.0 turns −0 into 0
        mixed = (bits ^ (bits >> np.uint64(29))) * self._multipliers
        return np.asarray((mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64))


def _matches(keys: Keys, people: Codes, known: _Exceptions) -> tuple[Indices, Indices]:
    """Pairs (person, entry) of people who are the same; one person may match several entries."""
    first, last = np.searchsorted(known.keys, keys), np.searchsorted(known.keys, keys, side="right")
    hit = np.flatnonzero(last > first)
    counts = last[hit] - first[hit]
    person = np.repeat(hit, counts)
    offset = np.arange(len(person)) - np.repeat(np.cumsum(counts) - counts, counts)
    entry = np.repeat(first[hit], counts) + offset
    same = (people[person] == known.people[entry]).all(axis=1)
    return person[same], entry[same]


def with_stand_ins(values: npt.NDArray[Any], valid: Truth | None) -> npt.NDArray[Any]:
    """Values of twins, where those that cannot exist stand where the person's first one stands that can.

    So nobody's twins are further apart than those who exist.
    """
    if valid is None:
        return values
    stand_in = values[np.arange(len(values)), valid.argmax(axis=1)]
    return np.where(valid if values.ndim == 2 else valid[:, :, None], values, stand_in[:, None])


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
    rng = np.random.default_rng(0)
    people = np.column_stack([_drawn(schema, column, rng) for column in range(len(schema))])
    kept, possible = (np.column_stack([rule.holds(some) for rule in schema.rules]) for some in (rows, people))
    if not kept.all(axis=1).any() and not possible.all(axis=1).any():
        worst = int(possible.mean(axis=0).argmin())
        raise SchemaError(
            f"no row of the table and none of {SAMPLE:,} people drawn at random keep all {len(schema.rules)} rules; "
            f"the one that excludes most is {schema.rules[worst].text!r} ({1 - possible[:, worst].mean():.1%} of "
            f"them): change or drop it."
        )
    broken, counts = int((~kept.all(axis=1)).sum()), (~kept).sum(axis=0)
    if not broken:
        return ()
    worst = int(counts.argmax())
    most = f"a rule, most of them {schema.rules[worst].text!r} ({counts[worst]:,})" if len(counts) > 1 else "the rule"
    return (f"{broken:,} of the {len(kept):,} rows break {most}; they are kept, because real people are real.",)


def _drawn(schema: Schema, column: int, rng: np.random.Generator) -> Codes:
    """Values of one attribute at random, among those that the rules about it alone allow."""
    attribute = schema.attributes[column]
    if not attribute.allowed and (not attribute.discrete or attribute.upper - attribute.low >= MAX_VALUES):
        drawn = rng.uniform(attribute.low, attribute.upper, SAMPLE)
        return np.rint(drawn) if attribute.discrete else drawn
    values, blamed = attribute.values(), []
    for rule in schema.rules:
        for part in rule.parts():
            if set(columns_of(part)) == {column}:
                values = values[evaluated(part, lambda _column, values=values: values)]  # type: ignore[misc]
                blamed.append(rule.text)
    if len(values) == 0:
        listed = " and ".join(repr(text) for text in dict.fromkeys(blamed))
        raise SchemaError(f"the rules leave no value of attribute {attribute.name!r}: {listed}; change one of them.")
    return rng.choice(values, SAMPLE)
