"""Who it is, in words: at most three rules of at most three conditions that tell whose decision flips, or whose k is
above a value (METHOD.md 18).

Candidates are the leaves of small decision trees over the attributes that are not protected. One half of the people
learns them: half of it grows the trees, the rest chooses among unions of leaves by their F-measure, with a floor under
their precision. The other half says what they are worth. People who are alike in all unprotected attributes, and rows
of one person, are in the same half. A rule is written in the language of `domain.rule`: as a condition of ``--where``
it names the people that it was judged on.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import ceil, floor, inf, log10
from typing import Any, Literal

import numpy as np

from fairbits.domain import Attribute, Codes, Doubles, Integers, Rule, Schema, Table, Truth, people_of, rule_name
from fairbits.measure import Estimate, Evaluator, rate_of
from fairbits.randomness import sampled_rows
from fairbits.subject import Subject
from fairbits.text import from_to, percent

#: Rules, and conditions of each.
MAX_RULES, DEPTH = 3, 3
#: Trees that are grown, and the candidates of which unions are tried.
TREES, CANDIDATES = 12, 24
#: What of the base rate a union's precision must reach where it is chosen, the next where nothing reaches the first;
#: the last is what each of its rules must reach.
FLOORS = (1.5, 1.25, 1.1)
#: What one more rule must add to the F-measure, and people that a rule must hold for where it is chosen.
WORTH, LEAST = 0.02, 10
#: So few labels of an ordered attribute are listed.
LISTED = 3
#: The share of people that learn, and of those the share that grows trees.
LEARNING, GROWING = 0.5, 0.5
#: People of either kind without whom nothing is learned, and rows that are asked of a quick and of a foreign model.
FEWEST, MAX_ROWS, MAX_FOREIGN = 20, 40_000, 4_000


@dataclass(frozen=True, slots=True)
class RegionRule:
    """A rule about people, and what it is worth among people who have not chosen it.

    Attributes
    ----------
    text
        In the language of rules, with labels: ``--where`` takes it.
    people
        For how many of the people judged it holds.
    share, precision, coverage
        Their share of all people; who of them flips (or has such a k); and who of those who do is among them. With
        95 % intervals.
    """

    text: str
    people: int
    share: Estimate
    precision: Estimate
    coverage: Estimate


@dataclass(frozen=True, slots=True)
class Description:
    """Who flips, or has a k above a value, in rules.

    Attributes
    ----------
    target, above
        "flips", or "k" with the value that k is above.
    base
        The share of all people judged who do.
    rules, together, why
        The rules, the one that covers most first, and all of them as one; nothing where none beats the base rate, with
        the reason in a sentence.
    learned, judged
        Rows that rules were learned on, and others that figures are of.
    source, where, grants
        What to name on the command line, the rule of the region that these people are of, where there are such, and
        the flags without which the model is not opened.
    """

    target: Literal["flips", "k"]
    above: int | None
    base: Estimate | None
    rules: tuple[RegionRule, ...] = ()
    together: RegionRule | None = None
    learned: int = 0
    judged: int = 0
    why: str = ""
    source: str | None = None
    where: str | None = None
    grants: tuple[str, ...] = ()

    def command(self, stage: str, rule: RegionRule) -> str | None:
        """What restricts a stage (such as "search") to a rule's people, as one types it; None: a subject of Python."""
        if self.source is None:
            return None
        text = rule.text if self.where is None else f"({self.where}) and {rule.text}"
        return shlex.join(["fairbits", stage, self.source, "--where", text, *self.grants])

    @property
    def what(self) -> str:
        """What is told of people, in words."""
        return "whose decision flips" if self.target == "flips" else f"whose k is above {self.above}"

    @property
    def words(self) -> str:
        """The answer in a sentence."""
        if self.together is None or self.base is None:
            return self.why
        one, many = self.together, len(self.rules)
        such = "the decision flips" if self.target == "flips" else f"k is above {self.above}"
        share, precision, coverage = (percent(each.value, 0) for each in (one.share, one.precision, one.coverage))
        ends = [from_to(each.low, each.high, 0) for each in (one.precision, one.coverage)]
        return (
            f"{'One rule describes' if many == 1 else f'{many} rules describe'} people {self.what}; "
            f"{'it covers' if many == 1 else 'they cover'} {share} of people. Among those {such} for {precision} "
            f"({ends[0]}), against {percent(self.base.value, 0)} of all {self.judged:,} rows judged. "
            f"Of all people {self.what}, {coverage} ({ends[1]}) are covered."
        )

    def __str__(self) -> str:
        lines = [f"  {one.text}   ({percent(one.precision.value, 0)} of {one.people:,} people)" for one in self.rules]
        return "\n".join([self.words, *lines])


def describe_people(
    evaluator: Evaluator, subject: Subject, rng: np.random.Generator, *, above: int | None = None
) -> Description:
    """Rules for who flips; or who has k above a value, where one is given or nothing is decided.

    Without a value it is the upper quartile of the half that learns.
    """
    schema, table = evaluator.schema, subject.table
    table = table.rows(sampled_rows(len(table), MAX_ROWS if evaluator.native else MAX_FOREIGN, rng))
    figures = evaluator.evaluate(table.codes)
    people = people_of(schema, table)
    learning, growing = _halves(schema, table, people, rng)
    if schema.regression or above is not None:
        above = int(np.quantile(figures.k[learning], 0.75, method="lower")) if above is None else above
        above = max(1, above if (figures.k[learning] > above).any() else above - 1)
    hits = figures.flips if above is None else figures.k > above
    found = Description(
        target="flips" if above is None else "k",
        above=above,
        base=None,
        learned=int(learning.sum()),
        judged=int((~learning).sum()),
        source=subject.source,
        where=subject.where,
        grants=tuple(subject.options.typed_grants()),
    )
    return _described(found, schema, table, hits, (learning, growing), people, rng)


def _halves(schema: Schema, table: Table, people: Integers | None, rng: np.random.Generator) -> tuple[Truth, Truth]:
    """Which rows learn, and which of them grow trees; whoever is alike stays together."""
    free = np.ascontiguousarray(table.codes[:, list(schema.free_columns)])
    whose = people if table.person is not None else None
    whose = np.unique(free, axis=0, return_inverse=True)[1].ravel() if whose is None else whose
    lots = rng.random(int(whose.max(initial=0)) + 1)[whose]
    return lots < LEARNING, lots < LEARNING * GROWING


def _described(
    found: Description,
    schema: Schema,
    table: Table,
    hits: Truth,
    halves: tuple[Truth, Truth],
    people: Integers | None,
    rng: np.random.Generator,
) -> Description:
    codes = table.codes
    learning, growing = halves
    judging, choosing = ~learning, learning & ~growing
    few = min(int(flags[half].sum()) for flags in (hits, ~hits) for half in (learning, judging))
    if few < FEWEST:
        those = f"{int(hits.sum()):,} of {len(hits):,} rows are people {found.what}"
        return replace(found, why=f"{those}: too few, or too few others, to describe them in rules.")

    def rate(flags: Truth, among: Truth) -> Estimate:
        """How many of these rows they are, all of them rows that rules are judged on."""
        here = judging & among
        whose = None if people is None else people[here]
        return rate_of(flags[here], people=whose, weight=None if table.weight is None else table.weight[here])

    def judged(rule: Rule) -> RegionRule | None:
        inside = rule.holds(codes)
        many = int((inside & judging).sum())
        ends = (inside, judging), (hits, inside), (inside, hits)
        return RegionRule(rule.text, many, *(rate(*one) for one in ends)) if many else None

    base = rate(hits, judging)
    rules = _chosen(list(_candidates(schema, codes, hits, growing, rng)), codes, hits, choosing)
    ranked = tuple(sorted(filter(None, map(judged, rules)), key=lambda one: -one.coverage.value))
    text = " or ".join(one.text if len(ranked) == 1 else f"({one.text})" for one in ranked)
    together = judged(Rule.of(text, schema.attributes)) if ranked else None
    if together is None or together.precision.low <= base.value:
        why = (
            f"No rule of up to {DEPTH} conditions, learned on one half of the people, tells people {found.what} better "
            f"than the base rate ({percent(base.value)}) on the other half."
        )
        return replace(found, base=base, why=why)
    return replace(found, base=base, rules=ranked, together=together)


def _chosen(rules: list[Rule], codes: Codes, hits: Truth, choosing: Truth) -> list[Rule]:
    """The union of at most three rules with the largest F-measure among people who grew none of them."""
    hits, base = hits[choosing], float(hits[choosing].mean())
    if not rules or not hits.any():
        return []
    floors = [min(factor * base, (1 + base) / 2) for factor in FLOORS]
    inside = np.array([rule.holds(codes[choosing]) for rule in rules])
    measure, precision = _f_measure(inside, hits)
    useful = np.flatnonzero((precision >= floors[-1]) & (inside.sum(axis=1) >= LEAST))
    best = useful[np.argsort(-measure[useful], kind="stable")[:CANDIDATES]].tolist()
    sets = [one for size in range(1, MAX_RULES + 1) for one in combinations(best, size)]
    unions = np.array([inside[list(one)].any(axis=0) for one in sets], dtype=bool).reshape(-1, len(hits))
    measure, precision = _f_measure(unions, hits)
    measure -= WORTH * np.array([len(one) for one in sets])
    for enough in (np.flatnonzero(precision >= least) for least in floors):
        if len(enough):
            return [rules[place] for place in sets[int(enough[measure[enough].argmax()])]]
    return []


def _f_measure(inside: Truth, hits: Truth) -> tuple[Doubles, Doubles]:
    """F-measure and precision of sets of people, one a row."""
    right, size = (inside & hits).sum(axis=1), inside.sum(axis=1)
    return 2 * right / (size + hits.sum()), right / np.maximum(size, 1)


def _candidates(schema: Schema, codes: Codes, hits: Truth, growing: Truth, rng: np.random.Generator) -> Iterator[Rule]:
    """Leaves of trees of other shapes and of other draws of the people, as rules, each once."""
    from sklearn.tree import DecisionTreeClassifier

    columns = {i: schema.attributes[i] for i in schema.free_columns if np.ptp(codes[growing, i]) > 0}
    # A number is asked about itself, a category about each of its labels.
    features = [(i, c) for i, one in columns.items() for c in (one.values() if one.kind == "category" else (None,))]
    if not features:
        return
    table = np.column_stack([codes[growing, i] if code is None else codes[growing, i] == code for i, code in features])
    wanted, rows, seen = hits[growing], np.arange(int(growing.sum())), set()
    for number in range(TREES):
        drawn = rows if number < 4 else rng.integers(0, len(rows), len(rows))
        tree = DecisionTreeClassifier(
            max_depth=DEPTH - (number % 4 == 3),
            min_samples_leaf=max(5, len(rows) // (50, 200)[number % 2]),
            class_weight=(None, "balanced")[number // 2 % 2],
            max_features=None if number < 8 else 0.5,
            random_state=int(rng.integers(2**31)),
        ).fit(table[drawn], wanted[drawn])
        for path in _leaves(tree.tree_):
            text = _text(schema, features, table, path)
            if text is not None and text not in seen:
                seen.add(text)
                yield Rule.of(text, schema.attributes)


#: A condition of a path: the feature, the threshold, and whether values above it are meant.
_Step = tuple[int, float, bool]


def _leaves(tree: Any) -> Iterator[list[_Step]]:
    paths: list[tuple[int, list[_Step]]] = [(0, [])]
    while paths:
        node, path = paths.pop()
        if tree.children_left[node] < 0 and path:
            yield path
        for above, side in enumerate((tree.children_left, tree.children_right)):
            if side[node] >= 0:
                step = int(tree.feature[node]), float(tree.threshold[node]), bool(above)
                paths.append((int(side[node]), [*path, step]))


@dataclass(slots=True)
class _Condition:
    """What a path says about one attribute: an interval of numbers, a label, or labels that it is not."""

    low: float = -inf
    high: float = inf
    label: float | None = None
    others: list[float] = field(default_factory=list)


def _text(schema: Schema, features: list[tuple[int, float | None]], table: Codes, path: list[_Step]) -> str | None:
    """A path as a rule; None where it takes more conditions than a rule may have."""
    said: dict[int, _Condition] = {}
    for feature, threshold, above in path:
        column, code = features[feature]
        one = said.setdefault(column, _Condition())
        if code is not None:
            one.label, one.others = (code, one.others) if above else (one.label, [*one.others, code])
            continue
        values = table[:, feature]
        ends = float(values[values <= threshold].max()), float(values[values > threshold].min())
        cut = _cut(schema.attributes[column], *ends, above=above)
        one.low, one.high = (max(one.low, cut), one.high) if above else (one.low, min(one.high, cut))
    texts = [text for column, one in said.items() for text in _said(schema.attributes[column], one)]
    return " and ".join(texts) if len(texts) <= DEPTH else None


def _said(attribute: Attribute, one: _Condition) -> Iterator[str]:
    name = rule_name(attribute.name)
    # The code of a missing number lies below all others, and whoever lacks one is not meant.
    low = attribute.low if attribute.gap is not None and one.low == -inf and one.high < inf else one.low
    inside: Iterable[float] = [] if one.label is None else [one.label]
    outside: Iterable[float] = sorted(one.others)
    if attribute.kind != "category":
        codes = attribute.values() if attribute.labels else np.full(int(low == one.high), low)
        meant = (codes >= low) & (codes <= one.high)
        inside, outside = (some if len(some) <= LISTED else [] for some in (codes[meant], codes[~meant]))
    for listed, word, single in ((inside, "in", "="), (outside, "not in", "!=")):
        values = [_value(attribute, code) for code in listed]
        if values:
            yield f"{name} {single} {values[0]}" if len(values) == 1 else f"{name} {word} {{{', '.join(values)}}}"
            return
    if low > -inf:
        yield f"{name} >= {_value(attribute, low)}"
    if one.high < inf:
        yield f"{name} <= {_value(attribute, one.high)}"


def _cut(attribute: Attribute, below: float, beyond: float, *, above: bool) -> float:
    """A readable number between two neighbouring values: the lowest that is meant, or the highest."""
    if attribute.labels:
        return beyond if above else below
    if attribute.discrete:
        return readable(below + 1, beyond) if above else readable(below, beyond - 1)
    inner = np.nextafter(below, inf) if above else below, beyond if above else np.nextafter(beyond, -inf)
    return readable(*map(float, inner))


def readable(low: float, high: float) -> float:
    """The number with the fewest digits from low to high.

    Examples
    --------
    >>> readable(37, 44), readable(0.1234, 0.1271), readable(-3, 2), readable(41, 41)
    (40.0, 0.125, 0.0, 41.0)
    """
    if low <= 0 <= high:
        return 0.0
    power = ceil(log10(max(abs(low), abs(high))))
    for digits in range(power, power - 18, -1):
        for part in (1, 2):  # halves of a power of ten read as well as whole ones
            step = 10.0**digits / part
            found = ceil(low / step) * step
            if found <= high:
                shown = float(f"{max(found, low):.15g}")
                return shown if low <= shown <= high else low
    return low


def _value(attribute: Attribute, code: float) -> str:
    if attribute.labels:
        return '"' + re.sub(r'([\\"])', r"\\\1", attribute.shown_labels()[floor(code - attribute.low)]) + '"'
    return f"{code:.15g}"
