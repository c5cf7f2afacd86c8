"""The twins of a person: the same person under every combination of protected values, and which of them can exist.

Where twins take some values of a number only (ranges, steps), or where a person may lack a value, people have values
of their own that no twin takes. These are twins as well: every combination with the person's own value in place of one
that twins take. They stand after the m combinations that everybody has.

A rule that looks only at attributes that are not protected decides about the person. One that looks at protected
attributes decides about each twin: ``age < 18 -> marital_status != "Married"`` leaves a married person without the
twins below 18. Whoever is in the table exists, whatever the rules say: real people are never argued away, and neither
is the combination of protected values that they really have.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes, Integers
from fairbits.domain.rule import Rule, Truth, columns_of, evaluated
from fairbits.domain.schema import Schema
from fairbits.domain.table import Keys, row_keys
from fairbits.errors import SchemaError
from fairbits.text import percent, shortened


class Twins:
    """The m combinations of protected values.

    Order: the protected attributes in column order, the last one changing fastest (as ``itertools.product``).

    Parameters
    ----------
    schema
        The attributes; at least one is protected.
    max_twins
        Largest number of combinations; by default what the schema says.
    own
        Whether a person's own value is one more where twins take some values only; without, all have the same twins.

    Raises
    ------
    SchemaError
        If no attribute is protected, or if there are more combinations than that.
    """

    def __init__(self, schema: Schema, *, max_twins: int | None = None, own: bool = True):
        limit = schema.max_twins if max_twins is None else max_twins
        if not schema.protected and not schema.observed:
            raise SchemaError(
                "no attribute is protected, so there are no twins to compare; "
                "mark at least one with protected = true, or name it with --protected."
            )
        self.schema = schema
        self.columns = np.array(schema.protected_columns, dtype=np.int64)
        sizes = {schema.attributes[i].name: schema.attributes[i].twin_count for i in schema.protected_columns}
        m = math.prod(sizes.values())
        if m > limit:
            widest = max(sizes, key=lambda name: sizes[name])
            parts = " × ".join(f"{name} {size}" for name, size in sizes.items())
            raise SchemaError(
                f"the protected attributes have {m:,} combinations ({parts}), more than {limit:,}; "
                f"coarsen {widest!r} with a larger step or ranges, or raise the limit (twins under [limits])."
            )
        self._domains = [schema.attributes[i].twin_values() for i in schema.protected_columns]
        self._open = [own and schema.attributes[i].open for i in schema.protected_columns]
        axes = [np.append(d, np.nan) if o else d for d, o in zip(self._domains, self._open, strict=True)]
        # All combinations, the last attribute changing fastest; without any, a person's only twin is the person.
        every = (
            np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)) if axes else np.empty((1, 0))
        )
        mine = np.isnan(every).any(axis=1)
        #: All combinations, those at a person's own value last; NaN where it is the person's own.
        self.patterns: Codes = np.concatenate([every[~mine], every[mine]])
        #: How many combinations everybody has, and how many a person can have with those at values of their own.
        self.m, self.most = m, len(self.patterns)
        self.values: Codes = self.patterns[:m]
        #: Where each combination along the axes stands among all combinations.
        self.grid: Integers = np.argsort(np.argsort(mine, kind="stable"), kind="stable")

    @property
    def axes(self) -> tuple[tuple[str, ...], ...]:
        """The values along each protected attribute, in words; where people may have one of their own, it is last."""
        named = zip((self.schema.attributes[i] for i in self.columns), self._domains, self._open, strict=True)
        return tuple((*(a.read_twin(code) for code in d), *([f"own {a.name}"] if own else [])) for a, d, own in named)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Each combination as people read it, e.g. "30–39, White, Female"."""
        return self.all_labels[: self.m]

    @cached_property
    def all_labels(self) -> tuple[str, ...]:
        """The same, followed by those at a person's own values: "own age, White, Female"."""
        every = [", ".join(words) for words in product(*self.axes)]
        return tuple(every[place] for place in np.argsort(self.grid))

    def label(self, twin: int, person: Codes) -> str:
        """One twin of one person as people read it, the person's own value by its name: "33, Female".

        Parameters
        ----------
        twin
            Position of the twin among all combinations.
        person
            The person's codes, (attributes,).
        """
        attributes = [(self.schema.attributes[i], person[i]) for i in self.columns]
        return ", ".join(
            one.read(own) if np.isnan(code) else one.read_twin(code)
            for (one, own), code in zip(attributes, self.patterns[twin], strict=True)
        )

    def as_twins(self, codes: Codes, twins: npt.NDArray[np.integer[Any]]) -> Codes:
        """People as one of their twins each, (n, attributes).

        Parameters
        ----------
        codes
            People, (n, attributes).
        twins
            Positions of the twins among all combinations, (n,).
        """
        rows = codes.copy()
        chosen = self.patterns[twins]
        rows[:, self.columns] = np.where(np.isnan(chosen), codes[:, self.columns], chosen)
        return rows

    def own(self, codes: Codes) -> npt.NDArray[np.bool_]:
        """Which combinations at their own values people have beside the m that everybody has, (n, most − m).

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        found = np.ones((len(codes), self.most - self.m), np.bool_)
        for i, domain, wanted in zip(self.columns, self._domains, np.isnan(self.patterns[self.m :]).T, strict=True):
            found &= ~(np.isin(codes[:, i], domain)[:, None] & wanted)
        return found

    def count(self, codes: Codes) -> npt.NDArray[np.int64]:
        """How many twins people have before any rule, (n,): one more along an attribute whose own value is beside.

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        found = np.ones(len(codes), np.int64)
        for i, values, own in zip(self.columns, self._domains, self._open, strict=True):
            found *= len(values) + (own & ~np.isin(codes[:, i], values))
        return found

    def place_of(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Position of people as they are among all their combinations, their own values as such, (n,).

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        index = np.zeros(len(codes), dtype=np.int64)
        for i, values, own in zip(self.columns, self._domains, self._open, strict=True):
            place = np.maximum(self.schema.attributes[i].twin_place(codes[:, i]), 0)
            place = np.where(np.isin(codes[:, i], values), place, len(values)) if own else place
            index = index * (len(values) + own) + place
        return np.asarray(self.grid[index])

    def expand(self, codes: Codes) -> Codes:
        """All twins of a batch of people, (n, m, attributes): person first, then twin.

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        twins = np.repeat(codes[:, None, :], self.m, axis=1)
        twins[:, :, self.columns] = self.values
        return twins

    def index_of(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Position of the combination that stands for each person, 0 to m − 1: by the ranges, where there are any.

        A missing value that no twin takes counts as the first value.

        Parameters
        ----------
        codes
            People, (n, attributes).
        """
        index = np.zeros(len(codes), dtype=np.int64)
        for i, values in zip(self.columns, self._domains, strict=True):
            index = index * len(values) + np.maximum(self.schema.attributes[i].twin_place(codes[:, i]), 0)
        return index


#: Rows of the table that must have a combination of protected values.
MIN_ROWS = 10
#: Values of a protected number that a sentence lists.
MAX_SHOWN = 8
#: Which figures of a measurement rest on the values that twins take.
TWIN_FIGURES = ("k_mean", "k_max", "q_inf_mean", "q_inf_max", "q_1_mean", "q_1_max", "split_rate", "flip_rate")
#: What kind of figure it is: certain, at least so much, or an estimate.
FigureKind = Literal["exact", "lower bound", "statistical"]


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that was not asked.

    Attributes
    ----------
    limit
        "values" (twins take some values of a protected number only), "missing" (twins of others never lack a value),
        "support" (some combinations of protected values hardly occur) or "training" (accuracy on rows that the model
        may know).
    figures
        The figures that it limits, by their names in JSON.
    kind
        What these figures become, where it changes their kind.
    attribute
        The attribute that it is about.
    count, of
        How many values were asked, or combinations are supported, of how many.
    values
        The values that were asked, in words.
    """

    limit: Literal["values", "missing", "support", "training"]
    figures: tuple[str, ...]
    kind: FigureKind | None = None
    attribute: str | None = None
    count: int | None = None
    of: int | None = None
    values: str | None = None

    @property
    def text(self) -> str:
        """The same in a sentence."""
        name = shortened(self.attribute or "", 60)
        if self.limit == "values":
            return (
                f"Twins take {self.count} values of {name} ({self.values}) and each person's own; others are not "
                f"asked: the figures are lower bounds where all values count."
            )
        if self.limit == "missing":
            return (
                f"{name} may be missing in the table; twins of those who have a value never lack it "
                f'(missing = "value" makes that a value of twins too).'
            )
        if self.limit == "support":
            return (
                f"Of {self.of:,} combinations of protected values, {self.count:,} occur in at least {MIN_ROWS} rows of "
                f"the table; the others are rare there or do not occur."
            )
        return "Accuracy is on rows that the model may have been trained on; on others it is likely lower."

    @property
    def note(self) -> str:
        """The same among other notes."""
        return f"{self.text[:1].lower()}{self.text[1:]}"

    def document(self) -> dict[str, Any]:
        """As JSON, the sentence included."""
        return {**asdict(self), "figures": list(self.figures), "text": self.text}


def twin_limits(schema: Schema) -> tuple[Limit, ...]:
    """What the twins of a schema leave out."""
    found = []
    for column in schema.protected_columns:
        attribute = schema.attributes[column]
        if attribute.gap is not None and attribute.missing != "value":
            found.append(Limit("missing", TWIN_FIGURES, attribute=attribute.name))
        if attribute.representatives and attribute.twin_count <= schema.max_twins:  # more are refused
            values = [attribute.read(code) for code in attribute.twin_values()]
            shown = ", ".join(values if len(values) <= MAX_SHOWN else [*values[: MAX_SHOWN - 1], "…", values[-1]])
            found.append(
                Limit(
                    "values",
                    TWIN_FIGURES,
                    kind="lower bound",
                    attribute=attribute.name,
                    count=attribute.twin_count,
                    values=shown,
                )
            )
    return tuple(found)


class Validity:
    """The rules of a schema, or other ones, over people and over their twins."""

    def __init__(
        self, schema: Schema, twins: Twins, rows: Codes | None = None, *, rules: tuple[Rule, ...] | None = None
    ):
        rules = schema.rules if rules is None else rules
        self.schema = schema
        self._twins = twins
        protected = set(schema.protected_columns)
        self._of_people = tuple(rule for rule in rules if not protected.intersection(rule.columns))
        self._of_twins = tuple(rule for rule in rules if protected.intersection(rule.columns))
        #: Whether there are rules at all, and whether some look at protected attributes: fewer than m twins for some.
        self.any, self.about_twins = bool(rules), bool(self._of_twins)
        self._free = np.array(schema.free_columns, dtype=np.int64)
        self.rows = rows
        self._broken: dict[tuple[Rule, ...], tuple[Keys, Keys]] = {}

    def twins(self, codes: Codes) -> Truth:
        """Which twins of these people can exist under the rules, or occur in the table.

        (n, m), and after these, where twins take not every value, those at people's own values.
        """
        twins = self._twins
        valid = np.ones((len(codes), twins.most), dtype=np.bool_)
        for rule in self._of_twins:
            valid &= evaluated(rule.program, lambda column: self._column(codes, column))
        people, rows = self._broken_by(self._of_twins)
        if len(people):
            real = np.flatnonzero(np.isin(row_keys(codes[:, self._free].T, len(codes)), people))
            for twin in range(twins.most if len(real) else 0):
                same = twins.as_twins(codes[real], np.full(len(real), twin))
                valid[real, twin] |= np.isin(row_keys(same.T, len(same)), rows)
        if twins.most > twins.m:
            valid[:, twins.m :] &= twins.own(codes)
        return valid

    def people(self, codes: Codes) -> Truth:
        """Which people can exist: the rules about people hold, and at least one twin can exist."""
        valid = np.ones(len(codes), dtype=np.bool_)
        for rule in self._of_people:
            valid &= rule.holds(codes)
        people, _ = self._broken_by(self._of_people)
        if len(people):
            doubtful = np.flatnonzero(~valid)
            valid[doubtful] = np.isin(row_keys(codes[doubtful][:, self._free].T, len(doubtful)), people)
        if self._of_twins:
            left = np.flatnonzero(valid)
            valid[left] = self.twins(codes[left]).any(axis=1)
        return valid

    def _column(self, codes: Codes, column: int) -> Codes:
        """The values of a column: of people (n, 1), or of twins (1, twins), (n, twins) where some are people's own."""
        if column not in self.schema.protected_columns:
            return codes[:, max(column, ~column)][:, None]
        pattern = self._twins.patterns[:, self.schema.protected_columns.index(column)][None, :]
        own = np.isnan(pattern)
        return np.where(own, codes[:, column][:, None], pattern) if own.any() else pattern

    def _broken_by(self, rules: tuple[Rule, ...]) -> tuple[Keys, Keys]:
        """Numbers for the rows of the table that break one of these rules: for who they are, and as which twins."""
        if rules not in self._broken:
            rows = np.empty((0, len(self.schema))) if self.rows is None or not rules else self.rows
            people = rows[~np.logical_and.reduce([rule.holds(rows) for rule in rules])] if len(rows) else rows
            same = self._twins.as_twins(people, self._twins.place_of(people)) if len(people) else people
            self._broken[rules] = row_keys(people[:, self._free].T, len(people)), row_keys(same.T, len(people))
        return self._broken[rules]


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
            f"the one that excludes most is {schema.rules[worst].text!r} ({percent(1 - possible[:, worst].mean())} of "
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
