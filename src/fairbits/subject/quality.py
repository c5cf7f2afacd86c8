"""How well a model agrees with the labels: the figures that stand at the head of every output.

And whether it is the right way round, held against the labels before anything is said about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from math import sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema, Table, rule_words
from fairbits.errors import ROW, ModelError, rows_named
from fairbits.models import HasClassScores, Model, Network, speaks_of
from fairbits.randomness import sampled_rows
from fairbits.text import percent, shortened

#: Both ends of a 95 % interval of the normal distribution.
Z_95 = 1.959963984540054
#: Fewer people than this say nothing about a regression's unit.
_FEW = 20
#: Halvings of an interval until its ends are as exact as a double.
_HALVINGS = 60

#: Rows that are scored, at most: a native network, and any other model, which may be slow or far away.
MAX_ROWS, MAX_FOREIGN_ROWS = 50_000, 10_000
#: Rows that go through the model at a time.
_CHUNK = 16_384
#: A foreign model's probability may leave [0, 1] by so much and still be rounding.
_ROUNDING = 1e-5

Floats = npt.NDArray[Any]
#: Which rows accuracy is about: such as the model was not trained on, such as it was, or nobody knows.
RowsJudged = Literal["held-out", "training", "unknown"]
_ROWS_WORDS: dict[str, str] = {
    "held-out": "held-out rows",
    "training": "rows it was trained on",
    "unknown": "rows it may have been trained on",
}


def rows_judged_words(on: RowsJudged, rows: int | None) -> str:
    """On which rows something is compared with labels."""
    return f"on {'' if rows is None else f'{rows:,} '}{_ROWS_WORDS[on]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What a model decides about the rows of its table, and how that agrees with their labels.

    Figures that make no sense here (no labels, a regression, a class that never occurs) are None. What compares with
    labels is about held-out rows where there are some; else ``accuracy_on`` says that the model may know the rows.
    """

    rows: int = field(metadata={"json": "quality_rows"})
    rule: str = field(metadata={"json": "decision"})
    threshold: float | None = None
    favourable_rate: float | None = None
    base_rate: float | None = None
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    r2: float | None = None
    rank_correlation: float | None = None
    off: str | None = field(default=None, metadata={"json": None})  # a reason to refuse, and no figure
    accuracy_on: RowsJudged = "unknown"
    accuracy_rows: int | None = None

    @property
    def judged_words(self) -> str:
        """Which rows the comparison with labels is about."""
        return rows_judged_words(self.accuracy_on, self.accuracy_rows)

    def figures(self) -> dict[str, Any]:
        """All figures under their names in JSON; ``rule`` is called ``decision`` there."""
        named = ((one.metadata.get("json", one.name), getattr(self, one.name)) for one in fields(self))
        return {name: value for name, value in named if name is not None}

    def lines(self) -> tuple[str, ...]:
        """The figures in one or two lines of words."""
        rule = f"{self.rule[:1].upper()}{self.rule[1:]}"
        if self.r2 is not None:
            rank = "" if self.rank_correlation is None else f", rank correlation {self.rank_correlation:.2f}"
            judged = f"Against the labels, {self.judged_words}: variance explained {percent(self.r2)}{rank}."
            return (f"{shortened(rule, 160)}.", judged)
        shares = "" if self.favourable_rate is None else f": {percent(self.favourable_rate)} of {self.rows:,} rows"
        labelled = "" if self.base_rate is None else f"; labelled so: {percent(self.base_rate)}"
        first = f"{shortened(rule, 160)}{shares}{labelled}."
        parts = [] if self.accuracy is None else [f"accuracy {percent(self.accuracy)}"]
        if self.auc is not None:
            parts.append(f"AUC {self.auc:.3f} (95 % interval {self.auc_low:.3f} to {self.auc_high:.3f})")
        if not parts:
            return (first, "There are no labels to compare with.")
        return (first, f"Against the labels, {self.judged_words}: {', '.join(parts)}.")


def quality_of(model: Model, encoding: Encoding, schema: Schema, table: Table, *, test: Table | None = None) -> Quality:
    """Score the rows of a table as they are, once, and compare with their labels, or with those of a test table.

    The labels of held-out rows alone are compared with, where there are some.
    """
    if test is not None and test.labels is not None and len(test):
        judged = quality_of(model, encoding, schema, replace(test, held_out=np.ones(len(test), np.bool_)))
        rows = quality_of(model, encoding, schema, table)
        return replace(judged, rows=rows.rows, favourable_rate=rows.favourable_rate, base_rate=rows.base_rate)
    max_rows = MAX_ROWS if isinstance(model, Network) else MAX_FOREIGN_ROWS
    if table.scores is None and len(table) > max_rows:
        table = table.rows(sampled_rows(len(table), max_rows, np.random.default_rng(0)))
    found, decisions = scored_rows(model, encoding, schema, table)
    scores, labels, own, rule = found.astype(np.float32), table.labels, schema.favourable_index, schema.rule
    words = rule_words(schema.favourable, rule.threshold, probability=schema.score_range is None)
    known: dict[str, Any] = {"rows": len(scores), "rule": words, "threshold": rule.threshold}
    weight = None if table.weight is None or not table.weight.any() else table.weight
    if decisions is not None:
        known["favourable_rate"] = float(np.average(decisions == own, weights=weight))
    if not schema.regression and labels is not None:
        known["base_rate"] = float(np.average(labels == own, weights=weight))
    known["accuracy_on"] = "unknown" if table.held_out is None else "held-out" if table.held_out.any() else "training"
    if labels is None:
        return Quality(**known)
    kept = np.arange(len(table))
    if table.held_out is not None and table.held_out.any():
        kept = np.flatnonzero(table.held_out)
    scores, labels, known["accuracy_rows"] = scores[kept], labels[kept], len(kept)
    weight = None if weight is None or not weight[kept].any() else weight[kept]
    if schema.regression:
        known |= {
            "r2": variance_explained(scores, labels, weight),
            "rank_correlation": rank_correlation(scores, labels, weight),
        }
        return Quality(**known, off=another_unit(scores, labels))
    if decisions is not None:
        right = decisions[kept] == labels
        known["accuracy"] = float(np.average(right, weights=weight))
        known["balanced_accuracy"] = balanced_accuracy(right, labels, weight)
    people = None if table.person is None else table.person[kept]
    area = area_under_curve(scores, labels == own, people=people, weight=weight)
    if area is not None:
        known |= dict(zip(("auc", "auc_low", "auc_high"), area, strict=True))
    return Quality(**known)


def scored_rows(
    model: Model, encoding: Encoding, schema: Schema, table: Table
) -> tuple[Floats, npt.NDArray[np.int64] | None]:
    """Scores of rows as they are, by the model or from the table, and what is decided about each (None: nothing is)."""
    if table.scores is not None:
        return table.scores, schema.rule.decide(table.scores) if len(schema.classes) == 2 else None
    found = []
    for start in range(0, len(table), _CHUNK):
        with rows_named(start, place=table.place):
            found.append(_answered(model, encoding.encode(table.codes[start : start + _CHUNK]), schema))
    scores = np.concatenate([one for one, _ in found])
    with rows_named(place=table.place):
        check_scores(scores, schema)
    decisions = [one for _, one in found if one is not None]
    return scores, np.concatenate(decisions) if decisions else None


def check_scores(scores: Floats, schema: Schema) -> None:
    """Refuse scores, a row for each person, that are not finite, or outside 0 and 1 where they are probabilities."""
    bad, what, remedy = ~np.isfinite(scores), "that are not finite", "check its inputs"
    if not bad.any() and schema.probabilities:
        bad = (scores < -_ROUNDING) | (scores > 1 + _ROUNDING)
        what = "outside 0 to 1"
        remedy = (
            'say what it puts out: output = "value" under [model] and threshold = … under [table] for points, hazards '
            "or a margin, from which on a decision is favourable on their own scale (in Python output=, threshold=); "
            'or output = "logit" for log-odds'
        )
    if bad.any():
        raise ModelError.of_row(
            f"the model gave {bad.sum():,} scores {what} (first: {scores[bad][0]:g} for the person in {ROW}); "
            f"{remedy}.",
            int(np.argmax(bad)) // (bad.size // len(bad)),
        )


def _answered(
    model: Model, inputs: npt.NDArray[np.floating], schema: Schema
) -> tuple[Floats, npt.NDArray[np.int64] | None]:
    """The scores of encoded rows, and the position of the class that each is decided for."""
    if len(schema.classes) > 2 and isinstance(model, HasClassScores):
        whole = np.asarray(model.class_scores(inputs))
        return whole[:, schema.favourable_index], schema.rule.most_likely(whole)
    scores = np.asarray(model.scores(inputs)).reshape(-1)
    return scores, schema.rule.decide(scores) if len(schema.classes) == 2 else None


def decided(model: Model, inputs: npt.NDArray[np.floating], schema: Schema) -> npt.NDArray[np.int64] | None:
    """The position of the class that each encoded row is decided for, by the subject's one rule."""
    return None if schema.regression else _answered(model, inputs, schema)[1]


def balanced_accuracy(
    right: npt.NDArray[np.bool_], labels: npt.NDArray[np.float64], weight: npt.NDArray[np.float64] | None = None
) -> float:
    """The mean over the classes of the share decided as labelled."""
    shares = []
    for here in (labels == one for one in np.unique(labels)):
        own = None if weight is None or not weight[here].any() else weight[here]  # without any weight the plain share
        shares.append(np.average(right[here], weights=own))
    return float(np.mean(shares))


def area_under_curve(
    scores: Floats,
    positive: npt.NDArray[np.bool_],
    *,
    people: npt.NDArray[np.int64] | None = None,
    weight: npt.NDArray[np.float64] | None = None,
) -> tuple[float, float, float] | None:
    """The area under the ROC curve with a 95 % interval.

    The area is the Mann-Whitney statistic, ties counted half. The interval is method 5 of Newcombe (2006),
    "Confidence intervals for an effect size measure based on the Mann–Whitney statistic. Part 2": the areas that
    Hanley and McNeil's variance (1982), at that area, does not tell apart from the one seen. Unlike Wald's it stays
    within 0 and 1 and has a width at 0 and 1 too; at one half it is the Mann-Whitney test. Where several rows are one
    person, or have weights, they count for as many independent ones as the variance among people says (Kish's design
    effect).

    Examples
    --------
    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))[0]
    0.875
    """
    every = np.ones(len(positive)) if weight is None else weight
    ones, zeros = (int((every[own] > 0).sum()) for own in (positive, ~positive))
    if not ones or not zeros:
        return None
    ranks, whole = midranks(scores, weight), [float(every[own].sum()) for own in (positive, ~positive)]
    area = (float((every * (ranks - 0.5))[positive].sum()) - whole[0] ** 2 / 2) / (whole[0] * whole[1])
    effect = 1.0
    if people is not None or weight is not None:
        # What each row moves the area by (DeLong 1988), summed over people, against as many rows that count alike.
        parts, alike = np.empty(len(scores)), 0.0
        for own, sign, mine, others in ((positive, 1, whole[0], whole[1]), (~positive, -1, whole[1], whole[0])):
            above = (ranks[own] - midranks(scores[own], None if weight is None else weight[own])) / others
            share = every[own] / mine
            apart = above - float(share @ above)
            parts[own] = sign * share * apart
            alike += float(share @ apart**2) / int((share > 0).sum())
        person = np.arange(len(parts)) if people is None else np.unique(people, return_inverse=True)[1]
        spread, sizes = float((np.bincount(person, parts) ** 2).sum()), np.bincount(person, every)
        unequal = (ones + zeros) * float((sizes**2).sum() / sizes.sum() ** 2)
        effect = max(1.0, spread / alike) if alike else unequal
    half = (ones + zeros) / effect / 2 - 1
    # Both ends by halving: where the area lies as far away as the deviation there.
    ends = []
    for end in (0.0, 1.0):
        outside, inside = end, area
        for _ in range(_HALVINGS):
            theta = (outside + inside) / 2
            shared = max(1 + half * ((1 - theta) / (2 - theta) + theta / (1 + theta)), 1.0)
            away = Z_95 * sqrt(theta * (1 - theta) * shared / (ones * zeros / effect**2))
            outside, inside = (theta, inside) if abs(theta - area) >= away else (outside, theta)
        ends.append((outside + inside) / 2)
    return area, ends[0], ends[1]


def midranks(values: Floats, weight: npt.NDArray[np.float64] | None = None) -> npt.NDArray[np.float64]:
    """The place of each value among all, from 1; equal values share the mean of their places. A weight is as many."""
    member = np.unique(np.asarray(values), return_inverse=True)[1].reshape(-1)
    counts = np.bincount(member, weight)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[member])


def rank_correlation(one: Floats, other: Floats, weight: npt.NDArray[np.float64] | None = None) -> float | None:
    """Spearman's correlation; None where one of the two never varies."""
    ranks = midranks(one, weight), midranks(other, weight)
    if min(float(r.std()) for r in ranks) == 0:
        return None
    spread = np.cov(*ranks, aweights=weight)
    return float(spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1]))


def another_unit(scores: Floats, target: Floats) -> str | None:
    """Why a regression probably predicts in another unit than the table's target, or the other way round.

    Ranks say whether it is about the same thing; a variance explained below zero, where a straight line through the
    same predictions would explain half of the variance more, says that their amounts are not the target's.
    """
    rank = rank_correlation(scores, target)
    if rank is None or len(target) < _FEW:
        return None
    turned, error = float(np.arctanh(np.clip(rank, -0.999999, 0.999999))), Z_95 / float(np.sqrt(len(target) - 3))
    if turned + error < 0:
        return f"goes against the target (rank correlation {rank:.2f})"
    explained = variance_explained(scores, target)
    line = float(np.corrcoef(np.asarray(scores, np.float64), target)[0, 1]) ** 2
    if explained >= 0 or turned - error <= 0 or line - explained <= 0.5:
        return None
    return (
        f"ranks people as the target does (rank correlation {rank:.2f}) but is far off in amount (variance explained "
        f"{percent(explained, 0)}): it predicts {_around(scores)}, and the target is {_around(target)}"
    )


def _around(values: Floats) -> str:
    low, middle, high = np.quantile(np.asarray(values, np.float64), (0.01, 0.5, 0.99))
    return f"about {middle:.4g} ({low:.4g} to {high:.4g})"


def variance_explained(
    scores: Floats, target: npt.NDArray[np.float64], weight: npt.NDArray[np.float64] | None = None
) -> float:
    """The share of the target's variance that the scores explain: 1 where all are exact, 0 where the mean does as well.

    A target that never varies has none to explain.

    Examples
    --------
    >>> variance_explained(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    0.5
    """
    spread = float(np.average((target - np.average(target, weights=weight)) ** 2, weights=weight))
    missed = float(np.average((np.asarray(scores, dtype=np.float64) - target) ** 2, weights=weight))
    return 1.0 - missed / spread if spread else 0.0


def against_labels(quality: Quality, model: Model, schema: Schema, *, named: bool) -> str | None:
    """Why a model is refused that decides against the labels, with what cures it; None where it does not."""
    if quality.off is not None:
        return (
            f"the model {quality.off}; let it predict the column {schema.target!r} in the table's own unit (the exp of "
            f"a log, a wage by the hour or by the year), or name the column that it predicts, or keep it as it is with "
            f"--allow-inverted."
        )
    if quality.auc_high is None or quality.auc_high >= 0.5:
        return None
    found = (
        f"the model decides against the labels: its AUC for {schema.favourable!r} is {quality.auc:.3f} (95 % interval "
        f"{quality.auc_low:.3f} to {quality.auc_high:.3f}), so it is probably read the wrong way round"
    )
    keep = "or keep it as it is with --allow-inverted"
    single = speaks_of(model, schema)
    if named:
        own = ", ".join(schema.classes)
        return f"{found}; it names its classes itself ({own}): check that the table's labels mean the same, {keep}."
    if single is not None:
        other = next(name for name in schema.classes if name != single)
        return f'{found}; write score_of = "{other}" under [model] (in Python score_of={other!r}), {keep}.'
    if len(schema.classes) == 2:
        order = ", ".join(f'"{name}"' for name in reversed(schema.classes))
        return f"{found}; write classes = [{order}] under [table] (in Python in the schema), {keep}."
    return f"{found}; list the classes in the order of its outputs, classes = […] under [table], {keep}."
