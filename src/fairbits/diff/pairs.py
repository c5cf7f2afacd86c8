"""Two models on the same people: what each answers, and how far they are apart, everybody held against themselves.

`diff` compares two models that are there, `gate` a model with what an earlier one said; both take answers and changes
from here. A pair is far sharper than two separate intervals. Rates: the exact one-sided test of McNemar (1947) on those
whose answer changed. Means: a paired bootstrap (Rubin 1981) whose ends hold for rare changes too, see
:func:`fairbits.measure.bounded_means`. Where people have several rows, all of these draw people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Doubles, Integers, Truth, rule_words
from fairbits.engine import Evaluation
from fairbits.measure import Estimate, Evaluator, Grouping, bounded_means, lowest_ratio, worth_of
from fairbits.store import plain
from fairbits.subject import Quality, Subject, scored_rows

FORMAT = 1
#: The decision about people whom a model tells the score of one class among several only, or a number.
UNDECIDED = -1
#: Groups of fewer people are named elsewhere, and left out of ratios.
MIN_GROUP = 30
#: Draws of a bootstrap over a few cells: cheap, so more than usual.
DRAWS = 4000

#: The number of the person of each row; None where each is somebody else.
People = Integers | None


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a model answered about people: one entry for each; ``figures`` are those of their twins, where it was asked
    just now.
    """

    k: Integers
    flips: Truth
    scores: Doubles
    decisions: Integers
    identity: str
    rule: str = ""
    figures: Evaluation | None = None

    @property
    def bits(self) -> Doubles:
        """Bits of protected information: log2 k."""
        return np.log2(self.k)

    @property
    def decides(self) -> bool:
        """Whether the model decides about people as they are."""
        return not bool((self.decisions == UNDECIDED).all())

    def same_as(self, other: Answers) -> bool:
        """Whether nobody is answered otherwise: same classes, same flips, same decisions, same scores."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("k", "flips", "decisions", "scores")
        )


def answers_of(
    subject: Subject,
    evaluator: Evaluator,
    *,
    identity: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Answers:
    """Ask a model about the people of its table as they are, and about their twins."""
    schema, table = subject.schema, subject.table
    scores, decided = scored_rows(subject.model, subject.encoding, schema, table)
    figures = evaluator.evaluate(table.codes, progress=progress)
    decisions = np.full(len(table), UNDECIDED, dtype=np.int64) if decided is None else decided
    flips = np.zeros(len(table), dtype=np.bool_) if schema.regression else np.asarray(figures.flips)
    rule = rule_words(schema.favourable, schema.rule.threshold, probability=schema.score_range is None)
    return Answers(figures.k.astype(np.int64), flips, scores.astype(np.float64), decisions, identity, rule, figures)


@dataclass(frozen=True, slots=True)
class PairedChange:
    """A change among the same people."""

    value: float
    low: float
    high: float
    worse: int
    better: int
    p_value: float | None = None


def mcnemar(worse: int, better: int) -> float:
    """The exact one-sided test of McNemar: how often chance alone gives so many changes for the worse.

    Examples
    --------
    >>> mcnemar(0, 0), round(mcnemar(8, 1), 4)
    (1.0, 0.0195)
    """
    from scipy.special import betainc

    if worse == 0:
        return 1.0
    # the upper tail of the binomial law at 1/2; scipy.stats has it too, but takes a second to import
    return float(betainc(worse, better + 1, 0.5))


def paired_changes(
    before: Doubles,
    after: Doubles,
    rng: np.random.Generator,
    *,
    spans: npt.ArrayLike,
    level: float = 0.95,
    resamples: int = 1000,
    people: People = None,
    weight: Doubles | None = None,
) -> list[PairedChange]:
    """How the means of columns, (n, c), moved between two answers about the same people; none moves by more than its
    span. Whoever has several rows counts once among the worse or the better, by which way most of them went.
    """
    moved = np.round(after - before, 9)
    ends = np.asarray(spans, dtype=np.float64)
    drawn: dict[str, Any] = {"level": level, "resamples": resamples, "people": people, "weight": weight}
    estimates = bounded_means(moved, rng, lows=-ends, highs=ends, **drawn)
    own = moved
    if people is not None:
        own = np.zeros((int(people.max()) + 1, moved.shape[1]))
        np.add.at(own, people, moved)
    worse, better = (own > 0).sum(axis=0), (own < 0).sum(axis=0)
    return [
        PairedChange(estimate.value, estimate.low, estimate.high, int(up), int(down))
        for estimate, up, down in zip(estimates, worse, better, strict=True)
    ]


def mean_change(
    before: npt.NDArray[Any],
    after: npt.NDArray[Any],
    rng: np.random.Generator,
    *,
    limit: float,
    level: float,
    people: People = None,
    weight: Doubles | None = None,
) -> PairedChange:
    """How a mean rose between two answers about the same people."""
    was, now = (np.asarray(side, dtype=np.float64)[:, None] for side in (before, after))
    return paired_changes(was, now, rng, spans=limit, level=level, people=people, weight=weight)[0]


def rate_change(
    before: Truth,
    after: Truth,
    rng: np.random.Generator,
    *,
    level: float,
    people: People = None,
    weight: Doubles | None = None,
) -> PairedChange:
    """How a share of people rose between two answers about the same people, with McNemar's test.

    It counts people alike, so it says nothing about weighted ones: there the interval alone decides.
    """
    changes = mean_change(before, after, rng, limit=1.0, level=level, people=people, weight=weight)
    return changes if weight is not None else replace(changes, p_value=mcnemar(changes.worse, changes.better))


def impact(
    groups: Grouping, selected: Truth, level: float, people: People = None, weight: Doubles | None = None
) -> tuple[Estimate, str] | None:
    """The lowest selection rate of a group over the highest, with an interval, and whose it is.

    The interval is that of :func:`fairbits.measure.lowest_ratio`.
    """
    counts, chosen = (_counted(groups, side, weight) for side in (groups.known, selected))
    worth, fit = _worth(groups, [selected], people, weight)
    lowest = lowest_ratio(chosen[fit] / counts[fit] * worth[fit], worth[fit], level=level)
    return None if lowest is None else (lowest[0], f"{groups.name} {groups.labels[fit[lowest[1]]]}")


def impact_change(
    groups: Grouping,
    before: Truth,
    after: Truth,
    rng: np.random.Generator,
    *,
    level: float,
    people: People = None,
    weight: Doubles | None = None,
) -> PairedChange | None:
    """How far the lowest ratio of selection rates dropped, by a paired bootstrap over people.

    The lowest ratio is that of a pair of groups. Where pair a is the lowest after, the drop is at most that of pair a,
    and where pair b was the lowest before, at least that of pair b; so the ends are taken over all pairs that may be
    the lowest. In each group one more person stands where they move that end furthest, so that changes too rare for
    the sample are allowed for.
    """
    counts, *cells = (
        _counted(groups, members, weight)
        for members in [groups.known, ~before & ~after, after & ~before, before & ~after, before & after]
    )
    shares = np.column_stack(cells) / np.where(counts > 0, counts, 1.0)[:, None]
    old, new = (shares[:, moment].sum(axis=1) for moment in (_BEFORE, _AFTER))
    worth, fit = _worth(groups, [before, after, before != after], people, weight)
    if len(fit) < 2 or old[fit].sum() == 0 or new[fit].sum() == 0:
        return None
    known = groups.known
    worse, better = int((before & ~after)[known].sum()), int((after & ~before)[known].sum())
    drawn = rng.standard_gamma(np.broadcast_to((shares * worth[:, None])[fit], (DRAWS, len(fit), 4)))
    extra = rng.standard_exponential((DRAWS, len(fit)))
    outside = 0.5 - level / 2
    high = _largest_drop(drawn, extra, _BEFORE, _AFTER, outside)
    low = -_largest_drop(drawn, extra, _AFTER, _BEFORE, outside)  # what rose, seen from the other side
    value = float(_lowest(old[fit]) - _lowest(new[fit]))
    return PairedChange(value, min(low, value), max(high, value), worse, better)


#: Cells of a group by decision before and after: neither, only after, only before, both.
_AFTER, _BEFORE = (1, 3), (2, 3)


def _largest_drop(
    drawn: Doubles, extra: Doubles, first: tuple[int, int], second: tuple[int, int], outside: float
) -> float:
    """The upper end of how far the lowest ratio falls from the first moment to the second."""
    total = drawn.sum(axis=2) + extra
    was, now = (drawn[..., moment].sum(axis=2) for moment in (first, second))
    # The one more person of the lower group is selected at the first moment only, that of the higher one at the second.
    lower, higher = ((was + extra) / total, now / total), (was / total, (now + extra) / total)
    tiny = np.finfo(np.float64).tiny
    largest = np.full(len(drawn), -1.0)
    for one, other in _lowest_pairs(now / drawn.sum(axis=2), outside):
        at = [np.minimum(lower[i][:, one] / np.maximum(higher[i][:, other], tiny), 1.0) for i in (0, 1)]
        largest = np.maximum(largest, at[0] - at[1])
    return float(np.quantile(largest, 1 - outside))


def _lowest_pairs(rates: Doubles, outside: float) -> list[tuple[int, int]]:
    """Pairs of groups, of a lower and a higher rate, whose ratio is the lowest in more than a tenth of ``outside``."""
    groups = rates.shape[1]
    times = np.bincount(rates.argmin(axis=1) * groups + rates.argmax(axis=1), minlength=groups * groups)
    often = np.flatnonzero(times > outside * len(rates) / 10)
    return [(int(pair) // groups, int(pair) % groups) for pair in often if pair // groups != pair % groups]


def _worth(
    groups: Grouping, answers: Sequence[Truth], people: People, weight: Doubles | None
) -> tuple[Doubles, Integers]:
    """How many independent people each group is worth, by the answer that makes them fewest; and who are enough."""
    counts = groups.counts.astype(np.float64)
    for code in np.flatnonzero(counts) if people is not None or weight is not None else ():
        here = groups.codes == code
        whose, own = (None if column is None else column[here] for column in (people, weight))
        empty = own is not None and not own.any()
        counts[code] = 0.0 if empty else min(worth_of(answer[here], whose, own) for answer in answers)
    return counts, np.flatnonzero(counts >= MIN_GROUP)


def _counted(groups: Grouping, who: Truth, weight: Doubles | None) -> Doubles:
    """How many of each group they are, or the sum of their weights."""
    here = groups.known & who
    own = None if weight is None else weight[here]
    return np.bincount(groups.codes[here], own, len(groups.labels)).astype(np.float64)


def _lowest(rates: Doubles) -> Doubles:
    top = rates.max(axis=-1)
    return np.asarray(np.where(top > 0, rates.min(axis=-1) / np.where(top > 0, top, 1.0), 1.0))


def widest(changes: Sequence[PairedChange]) -> PairedChange:
    """The largest of several changes, with ends that hold for the largest of the true ones."""
    worst = max(changes, key=lambda change: change.value)
    low, high = max(change.low for change in changes), max(change.high for change in changes)
    return PairedChange(worst.value, min(low, worst.value), high, worst.worse, worst.better, worst.p_value)


@dataclass(frozen=True, slots=True)
class Shift:
    """One figure of both models, and the change with its paired 95 % interval."""

    name: str
    words: str
    before: float | None
    after: float | None
    change: PairedChange | None
    share: bool = False
    worse: int = 0

    @property
    def verdict(self) -> str:
        """worse or better where the whole interval says so; else "open", and "same" where nothing moved."""
        if self.change is None:
            return "–"
        if self.change.low <= 0 <= self.change.high:
            still = self.change.low == self.change.high or (self.before == self.after and self.change.value == 0)
            return "same" if still else "open"
        if not self.worse:
            return "differs"
        return "worse" if (self.change.low > 0) == (self.worse > 0) else "better"


@dataclass(frozen=True, slots=True)
class GroupShift:
    """One group of people as they are: how the decisions about them changed, and their k."""

    attribute: str
    group: str
    people: int
    selection_before: float | None
    selection_after: float | None
    selection_change: PairedChange | None
    lost: int | None
    gained: int | None
    k_change: PairedChange
    rose: float


@dataclass(frozen=True, slots=True)
class PersonShift:
    """One person who got worse: more classes than before, or a wider span."""

    place: str
    own: Mapping[str, str]
    k_before: int
    k_after: int
    span_before: float
    span_after: float
    score_before: float
    score_after: float
    decision_before: str | None
    decision_after: str | None
    flips_before: bool
    flips_after: bool
    worst: str
    best: str


@dataclass(frozen=True, slots=True)
class Changed:
    """How many decisions changed, and in which direction."""

    people: int
    rate: Estimate
    lost: int
    gained: int
    made_right: int | None
    made_wrong: int | None


@dataclass(frozen=True, slots=True)
class LayerShift:
    """How far the outputs of one layer are apart."""

    layer: int
    width: int
    distance: float
    relative: float
    rise: float


@dataclass(frozen=True, slots=True)
class SideFacts:
    """One of both models."""

    name: str
    model: str
    sha256: str | None
    identity: str
    quality: Quality


@dataclass(frozen=True, slots=True)
class ModelDiff:
    """Everything that a comparison says.

    Parameters
    ----------
    a, b
        The two models.
    rows, rows_total
        People compared, and people in the table.
    m, epsilon, partition, seed, protected, regression
        The terms, equal for both.
    shifts
        Each figure under both models.
    changed
        Whose decision changes; None where nothing is decided.
    k_rose, k_fell
        For how many people k is higher, or lower, under ``b``.
    groups, people
        What changes for groups, and for whom most.
    score_distance, score_distance_max
        Mean and largest difference of scores.
    layers, parted, adds_most
        Where two networks of one shape part: each layer, the one where outputs part, and the one that adds most.
    notes, command
        What must be known to read it, and the command that makes it again.
    """

    a: SideFacts
    b: SideFacts
    rows: int
    rows_total: int
    m: int
    epsilon: float
    partition: str
    seed: int
    protected: tuple[str, ...]
    regression: bool
    shifts: tuple[Shift, ...]
    changed: Changed | None  # None where nothing is decided
    k_rose: int
    k_fell: int
    groups: tuple[GroupShift, ...]
    people: tuple[PersonShift, ...]
    score_distance: float
    score_distance_max: float
    layers: tuple[LayerShift, ...]
    parted: int | None  # the layer where the outputs part, None where they do not
    adds_most: int | None
    notes: tuple[str, ...]
    command: str = ""

    def __repr__(self) -> str:
        return f"<ModelDiff over {self.rows:,} rows: k rises for {self.k_rose:,}, falls for {self.k_fell:,}>"

    @property
    def same(self) -> bool:
        """Whether no score differs at all, and both decide by the same rule."""
        return self.score_distance_max == 0 and self.a.quality.rule == self.b.quality.rule

    def __getitem__(self, name: str) -> Shift:
        return next(shift for shift in self.shifts if shift.name == name)

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        people = f"{self.rows:,} people"
        if self.same:
            return f"Both models give these {people} and all their twins the same scores."
        if self.changed is None or self.regression:
            k = self["k_mean"]
            moved = {"worse": "more", "better": "fewer"}.get(k.verdict, "about as many")
            return (
                f"From A to B, the twins of {people} fall into {moved} classes (mean k {k.before:.2f} → {k.after:.2f})."
            )
        flips, many = self["flip_rate"], self.changed.people
        shares = f"{100 * (flips.before or 0):.1f} % → {100 * (flips.after or 0):.1f} %"
        bits = f"decisions that would differ if only protected values did: {shares} ({flips.verdict})"
        some = f"{many:,} of {people} ({100 * self.changed.rate.value:.1f} %) get"
        return f"From A to B, {some if many else f'none of {people} gets'} a different decision; {bits}."

    def document(self) -> dict[str, Any]:
        """For JSON."""
        document: dict[str, Any] = plain(self)
        document |= {"format": FORMAT, "sentence": self.sentence, "same": self.same}
        document["shifts"] = [{**plain(shift), "verdict": shift.verdict} for shift in self.shifts]
        document |= {name: {**document[name], "quality": getattr(self, name).quality.figures()} for name in ("a", "b")}
        return document
