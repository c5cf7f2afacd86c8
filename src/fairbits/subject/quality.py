"""How well a model agrees with the labels: the figures that stand at the head of every output.

Is the model the right way round? Held against the labels before anything is said about it.

What a model decides about rows as they are, by the subject's one rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema, Table, rule_words, shortened
from fairbits.errors import ModelError
from fairbits.models import HasClassScores, Model, Network, speaks_of
from fairbits.randomness import sampled_rows

#: Both ends of a 95 % interval of the normal distribution.
Z_95 = 1.959963984540054
#: Fewer people than this say nothing about a regression's unit.
_FEW = 20
#: Halvings of an interval until its ends are as exact as a double.
_HALVINGS = 60

Floats = npt.NDArray[Any]
#: Which rows accuracy is about: such as the model was not trained on, such as it was, or nobody knows.
RowsJudged = Literal["held-out", "training", "unknown"]
_ROWS_WORDS: dict[str, str] = {
    "held-out": "held-out rows",
    "training": "rows it was trained on",
    "unknown": "rows it may have been trained on",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What a model decides about the rows of its table, and how that agrees with their labels.

    Figures that make no sense here (no labels, a regression, a class that never occurs) are None. What compares with
    labels is about held-out rows where there are some; else ``accuracy_on`` says that the model may know the rows.
    """

    rows: int
    rule: str
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
    off: str | None = None
    accuracy_on: RowsJudged = "unknown"
    accuracy_rows: int | None = None

    @property
    def judged_words(self) -> str:
        """Which rows the comparison with labels is about."""
        rows = "" if self.accuracy_rows is None else f"{self.accuracy_rows:,} "
        return f"on {rows}{_ROWS_WORDS[self.accuracy_on]}"

    @property
    def reversed(self) -> bool:
        """Whether the scores go against the labels: the whole interval of the AUC lies below one half."""
        return self.auc_high is not None and self.auc_high < 0.5

    def figures(self) -> dict[str, Any]:
        """All figures under their names in JSON; ``rule`` is called ``decision`` there."""
        found = asdict(self)
        del found["off"]  # a reason to refuse, and no figure
        found["decision"] = found.pop("rule")
        found["quality_rows"] = found.pop("rows")
        return found

    @classmethod
    def of_figures(cls, figures: dict[str, Any]) -> Quality:
        """Undo ``figures``: the record from what a file keeps."""
        names = {"rule": "decision", "rows": "quality_rows"}
        found = {name: figures.get(names.get(name, name)) for name in cls.__slots__}
        return cls(**{**found, "accuracy_on": found["accuracy_on"] or "unknown"})  # type: ignore[arg-type]

    def lines(self) -> tuple[str, ...]:
        """The figures in one or two lines of words."""
        rule = f"{self.rule[:1].upper()}{self.rule[1:]}"
        if self.r2 is not None:
            rank = "" if self.rank_correlation is None else f", rank correlation {self.rank_correlation:.2f}"
            judged = f"Against the labels, {self.judged_words}: variance explained {self.r2:.1%}{rank}."
            return (f"{shortened(rule, 160)}.", judged)
        shares = "" if self.favourable_rate is None else f": {self.favourable_rate:.1%} of {self.rows:,} rows"
        labelled = "" if self.base_rate is None else f"; labelled so: {self.base_rate:.1%}"
        first = f"{shortened(rule, 160)}{shares}{labelled}."
        parts = [] if self.accuracy is None else [f"accuracy {self.accuracy:.1%}"]
        if self.auc is not None:
            parts.append(f"AUC {self.auc:.3f} (95 % interval {self.auc_low:.3f} to {self.auc_high:.3f})")
        if not parts:
            return (first, "There are no labels to compare with.")
        return (first, f"Against the labels, {self.judged_words}: {', '.join(parts)}.")


def agreement(
    *,
    favourable: str | None,
    threshold: float | None,
    favoured: npt.NDArray[np.bool_] | None,
    decisions: npt.NDArray[np.int64] | None,
    scores: Floats,
    labels: Floats | None,
    own: int,
    probability: bool = True,
    held_out: npt.NDArray[np.bool_] | None = None,
) -> Quality:
    """The figures from plain arrays; the labels of held-out rows alone are compared with, where there are some."""
    rule = rule_words(favourable, threshold, probability=probability)
    known: dict[str, Any] = {"rows": len(scores), "rule": rule, "threshold": threshold}
    if favoured is not None and len(favoured):
        known["favourable_rate"] = float(favoured.mean())
    if favourable is not None and labels is not None and len(labels):
        known["base_rate"] = float((labels == own).mean())
    known["accuracy_on"] = "unknown" if held_out is None else "held-out" if held_out.any() else "training"
    if held_out is not None and held_out.any():
        scores = scores[held_out]
        decisions = None if decisions is None else decisions[held_out]
        labels = None if labels is None else labels[held_out]
    known["accuracy_rows"] = None if labels is None else len(labels)
    if favourable is None:
        if labels is not None and len(labels):
            known |= {"r2": variance_explained(scores, labels), "rank_correlation": rank_correlation(scores, labels)}
            known["off"] = another_unit(scores, labels)
        return Quality(**known)
    if labels is None or not len(labels):
        return Quality(**known)
    positive = labels == own
    if decisions is not None:
        right = decisions == labels
        known["accuracy"] = float(right.mean())
        known["balanced_accuracy"] = balanced_accuracy(right, labels)
    area = area_under_curve(scores, positive)
    if area is not None:
        known |= dict(zip(("auc", "auc_low", "auc_high"), area, strict=True))
    return Quality(**known)


def balanced_accuracy(right: npt.NDArray[np.bool_], labels: npt.NDArray[np.float64]) -> float:
    """The mean over the classes of the share decided as labelled."""
    return float(np.mean([right[labels == label].mean() for label in np.unique(labels)]))


def area_under_curve(scores: Floats, positive: npt.NDArray[np.bool_]) -> tuple[float, float, float] | None:
    """The area under the ROC curve with a 95 % interval.

    The area is the Mann-Whitney statistic, ties counted half. The interval is method 5 of Newcombe (2006),
    "Confidence intervals for an effect size measure based on the Mann–Whitney statistic. Part 2": the areas that
    Hanley and McNeil's variance (1982), at that area, does not tell apart from the one seen. Unlike Wald's it stays
    within 0 and 1 and has a width at 0 and 1 too; at one half it is the Mann-Whitney test.

    Examples
    --------
    >>> area_under_curve(np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True]))[0]
    0.875
    """
    ones = int(positive.sum())
    zeros = len(positive) - ones
    if not ones or not zeros:
        return None
    ranks = midranks(scores)
    area = (float(ranks[positive].sum()) - ones * (ones + 1) / 2) / (ones * zeros)
    half = (ones + zeros) / 2 - 1

    def deviation(theta: float) -> float:
        spread = 1 + half * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return Z_95 * float(np.sqrt(theta * (1 - theta) * spread / (ones * zeros)))

    low = _halved(0.0, area, lambda theta: area - theta >= deviation(theta))
    high = _halved(area, 1.0, lambda theta: theta - area < deviation(theta))
    return area, low, high


def _halved(low: float, high: float, below: Any) -> float:
    """Where ``below`` turns from true to false between two ends."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return (low + high) / 2


def midranks(values: Floats) -> npt.NDArray[np.float64]:
    """The place of each value among all, from 1; equal values share the mean of their places."""
    _, member, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: npt.NDArray[np.float64] = (last - (counts - 1) / 2)[member.reshape(-1)]
    return found


def rank_correlation(one: Floats, other: Floats) -> float | None:
    """Spearman's correlation; None where one of the two never varies."""
    ranks = midranks(one), midranks(other)
    if min(float(r.std()) for r in ranks) == 0:
        return None
    return float(np.corrcoef(*ranks)[0, 1])


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
        f"{explained:.0%}): it predicts {_around(scores)}, and the target is {_around(target)}"
    )


def _around(values: Floats) -> str:
    low, middle, high = np.quantile(np.asarray(values, np.float64), (0.01, 0.5, 0.99))
    return f"about {middle:.4g} ({low:.4g} to {high:.4g})"


def variance_explained(scores: Floats, target: npt.NDArray[np.float64]) -> float:
    """The share of the target's variance that the scores explain: 1 where all are exact, 0 where the mean does as well.

    A target that never varies has none to explain.

    Examples
    --------
    >>> variance_explained(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    0.5
    """
    spread = float(np.var(target))
    missed = float(np.mean((np.asarray(scores, dtype=np.float64) - target) ** 2))
    return 1.0 - missed / spread if spread else 0.0


#: Rows that are scored, at most: a native network, and any other model, which may be slow or far away.
MAX_ROWS, MAX_FOREIGN_ROWS = 50_000, 10_000
#: Rows that go through the model at a time.
_CHUNK = 16_384
#: A foreign model's probability may leave [0, 1] by so much and still be rounding.
_ROUNDING = 1e-5

Ask = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def quality_of(model: Model, encoding: Encoding, schema: Schema, table: Table, *, test: Table | None = None) -> Quality:
    """Score the rows of a table as they are, once, and compare with their labels, or with those of a test table."""
    if test is not None and test.labels is not None and len(test):
        judged = quality_of(model, encoding, schema, replace(test, held_out=np.ones(len(test), np.bool_)))
        rows = quality_of(model, encoding, schema, table)
        return replace(judged, rows=rows.rows, favourable_rate=rows.favourable_rate, base_rate=rows.base_rate)
    max_rows = MAX_ROWS if isinstance(model, Network) else MAX_FOREIGN_ROWS
    chosen = sampled_rows(len(table), max_rows, np.random.default_rng(0))
    labels = None if table.labels is None else table.labels[chosen]
    decisions: npt.NDArray[np.int64] | None
    if len(schema.classes) > 2 and isinstance(model, HasClassScores):
        whole = _in_chunks(lambda rows: np.asarray(model.class_scores(rows)), encoding, table, chosen)
        scores, decisions = whole[:, schema.favourable_index], schema.rule.most_likely(whole)
    else:
        scores = _in_chunks(lambda rows: np.asarray(model.scores(rows)), encoding, table, chosen)
        decisions = schema.rule.decide(scores) if len(schema.classes) == 2 else None
    _check_scores(scores, table, chosen, probabilities=schema.probabilities)
    held_out = None if table.held_out is None else table.held_out[chosen]
    return _agreement(schema, scores, decisions, labels, held_out)


def quality_of_scores(schema: Schema, table: Table) -> Quality:
    """The same from the scores that the table holds of a model that is not at hand."""
    scores = np.asarray(table.scores, dtype=np.float32)
    decisions = schema.rule.decide(scores) if len(schema.classes) == 2 else None
    return _agreement(schema, scores, decisions, table.labels, table.held_out)


def _agreement(
    schema: Schema,
    scores: npt.NDArray[np.float32],
    decisions: npt.NDArray[np.int64] | None,
    labels: npt.NDArray[np.float64] | None,
    held_out: npt.NDArray[np.bool_] | None,
) -> Quality:
    return agreement(
        favourable=schema.favourable,
        threshold=schema.rule.threshold,
        probability=schema.score_range is None,
        favoured=None if decisions is None else decisions == schema.favourable_index,
        decisions=decisions,
        scores=scores,
        labels=labels,
        own=schema.favourable_index,
        held_out=held_out,
    )


def against_labels(quality: Quality, model: Model, schema: Schema, *, named: bool) -> str | None:
    """Why a model is refused that decides against the labels, with what cures it; None where it does not."""
    if quality.off is not None:
        return (
            f"the model {quality.off}; let it predict the column {schema.target!r} in the table's own unit (the exp of "
            f"a log, a wage by the hour or by the year), or name the column that it predicts, or keep it as it is with "
            f"--as-is."
        )
    if not quality.reversed:
        return None
    found = (
        f"the model decides against the labels: its AUC for {schema.favourable!r} is {quality.auc:.3f} (95 % interval "
        f"{quality.auc_low:.3f} to {quality.auc_high:.3f}), so it is probably read the wrong way round"
    )
    keep = "or keep it as it is with --as-is"
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


def _in_chunks(ask: Ask, encoding: Encoding, table: Table, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    pieces = [
        np.asarray(ask(encoding.encode(table.codes[chosen[start : start + _CHUNK]])), dtype=np.float32)
        for start in range(0, len(chosen), _CHUNK)
    ]
    return np.concatenate(pieces)


def _check_scores(
    scores: npt.NDArray[np.float32], table: Table, chosen: npt.NDArray[np.int64], *, probabilities: bool
) -> None:
    bad, what, remedy = ~np.isfinite(scores), "that are not finite", "check its inputs"
    if not bad.any() and probabilities:
        bad = (scores < -_ROUNDING) | (scores > 1 + _ROUNDING)
        what = "outside 0 to 1"
        remedy = (
            'say what it puts out: output = "value" under [model] and threshold = … under [table] for points, hazards '
            "or a margin, from which on a decision is favourable on their own scale (in Python output=, threshold=); "
            'or output = "logit" for log-odds'
        )
    if bad.any():
        first = int(np.argmax(bad))
        raise ModelError(
            f"the model gave {bad.sum():,} scores {what} (first: {scores[first]:g} for the person in "
            f"{table.place(int(chosen[first]))}); {remedy}."
        )


def decided(model: Model, inputs: npt.NDArray[np.float32], schema: Schema) -> npt.NDArray[np.int64] | None:
    """The position of the class that each encoded row is decided for."""
    if schema.regression:
        return None
    if len(schema.classes) == 2:
        return schema.rule.decide(model.scores(inputs))
    if not isinstance(model, HasClassScores):
        return None
    return schema.rule.most_likely(np.asarray(model.class_scores(inputs)))
