"""The evidence in three parts, and how a model does on one of them: accuracy, bits, and what groups of people get.

A candidate that was trained flatters itself on the rows that it was trained on, and so does the model as it came. So
proposals learn from ``training`` alone, the choice looks at ``plan`` alone, and what is shown is ``held_out``. Where
the subject holds rows out, those are cut in two for the choice and the judgement, and neither the model nor a candidate
has seen any of them. Where it holds none out, half of the table trains candidates and a quarter each chooses and
judges: candidates have not seen those, the model may have.

Blinding and neurons leave proxies alone, and the figures of groups show it. So do indirect bits: the average over a
person's twins is the same for all of them, so whatever it tells about a protected attribute comes through others
(METHOD.md 10.3). Held-out figures have 95 % intervals, to lay candidates side by side.

What a change costs, and how much more it may cost than the rows show: both models decide about the same rows, so losses
are compared in pairs, by Agresti and Min's interval for matched proportions (Statistics in Medicine 2005), which adds
half a row to each of the four kinds of pairs. Without a single difference among 74 rows it still says that 1.7 points
may be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from fairbits.data import Fitted
from fairbits.domain import Codes, Schema, Table, Truth
from fairbits.engine import Evaluation
from fairbits.errors import CapabilityError, OptionError, TableError
from fairbits.functions import normal_quantile
from fairbits.measure import (
    Estimate,
    Evaluator,
    Grouping,
    Measure,
    bounded_means,
    crossed,
    evaluator_of,
    grouping_of,
    groupings_of,
    lowest_ratio,
    student_mean,
    wilson,
)
from fairbits.models import Array, Model, kind_of
from fairbits.proxies import ScoreBits, score_bits
from fairbits.randomness import even_rows, generator
from fairbits.repair.records import Estimates, Figures, GroupRate, Proof, RepairEvidence, RepairGroup
from fairbits.store import Run
from fairbits.subject import Subject, balanced_accuracy, decided, variance_explained

#: At most so many cases are measured: the mean over them is within a percent of the mean over all.
PLAN_CASES, HELD_OUT_CASES = 2_000, 5_000
#: Cases that are ever trained on.
MAX_POOL = 100_000
#: Fewer held-out rows than this cannot tell two points of accuracy from nothing.
FEW_ROWS = 500
#: With fewer rows in a part, indirect bits are about all rows of the table.
MANY_PEOPLE = 200
#: The fewest rows that can be cut into parts, and of those that the model has not seen.
FEWEST_ROWS, FEWEST_UNSEEN = 4, 2


@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """One part of the evidence: cases, rows of the table and their labels."""

    cases: Codes
    rows: Codes
    labels: npt.NDArray[np.float64]
    people: Table | None = None  # for figures that need many and no labels: all rows of the table where these are few


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """The parts of the evidence, no row or case in two of them: to choose on, to judge on, to learn from."""

    plan: Half
    held_out: Half
    training: Half
    evidence: RepairEvidence

    @property
    def pool(self) -> Codes:
        """The cases that may be learned from."""
        return self.training.cases


def split(run: Run, subject: Subject, rng: np.random.Generator, *, rows_for_cases: bool = False) -> Halves:
    """Split the cases of a run and the rows of its subject.

    With ``rows_for_cases`` a run without cases is no error: the rows stand for them.
    """
    tables, unseen, notes = _rows(subject, rng)
    if rows_for_cases and len(run) < len(tables):
        cases = [table.codes[rng.permutation(len(table))] for table in tables]
        notes += ["the search found nobody whose twins differ, so figures on cases are about rows."]
    else:
        cases = _cases(run, rng)
    if any(table.labels is None for table in tables):
        raise TableError(
            f"the table of {subject.name!r} has no labels, so nobody can say what a repair costs in accuracy; "
            f"name the target under [table]."
        )
    seen = [table.observed for table in tables if table.observed is not None]
    observed = np.concatenate(seen) if len(seen) == len(tables) else None
    everybody = Table(np.concatenate([table.codes for table in tables]), observed=observed)
    training, plan, held_out = (
        Half(mine, table.codes, np.asarray(table.labels), table if len(table) >= MANY_PEOPLE else everybody)
        for mine, table in zip(cases, tables, strict=True)
    )
    if (rows := len(held_out.rows)) < FEW_ROWS:
        one = "" if subject.schema.regression else f", so one row moves accuracy by {100 / rows:.1f} points"
        notes.append(f"only {rows} rows are held out{one}: differences of a few points may be chance.")
    sizes = (len(plan.cases), len(plan.rows), len(held_out.cases), len(held_out.rows))
    return Halves(plan, held_out, training, RepairEvidence(*sizes, unseen, tuple(notes), len(training.rows)))


def _cases(run: Run, rng: np.random.Generator) -> list[Codes]:
    """Cases to learn from, to choose on and to judge on, each in random order: as many as are ever looked at."""
    total = len(run)
    if total < 3:
        count = ("no cases", "a single case", "two cases")[total]
        raise OptionError(
            f"the run in {str(run.folder)!r} has {count}, so there is nothing to repair by; "
            f"search longer, or with a smaller --epsilon."
        )
    # All that is not needed elsewhere is learned from.
    plan, judged = min(total // 3, PLAN_CASES), min(total // 3, HELD_OUT_CASES)
    parts = np.split(rng.permutation(total), [total - plan - judged, total - judged])
    chosen = [parts[0][:MAX_POOL], *parts[1:]]
    return np.split(run.codes_at(np.concatenate(chosen)), np.cumsum([len(part) for part in chosen])[:-1])


def _rows(subject: Subject, rng: np.random.Generator) -> tuple[list[Table], bool, list[str]]:
    """Rows to learn from, to choose on and to judge on; whether the model has not seen the latter two; and notes."""
    known, unseen = subject.table.training(), subject.unseen
    if unseen is not None and len(_people(unseen)) >= FEWEST_UNSEEN and len(known):
        halves = [np.sort(half) for half in np.array_split(rng.permutation(_people(unseen)), 2)]
        return [known, *(_rows_about(unseen, half) for half in halves)], True, []
    if len(_people(known)) < FEWEST_ROWS:
        raise TableError(f"the table of {subject.name!r} has {len(known)} rows; a repair needs some to be judged on.")
    order = rng.permutation(_people(known))
    quarter = len(order) // 4
    parts = np.split(order, [len(order) - 2 * quarter, len(order) - quarter])
    note = (
        "the table marks no rows as held out, so candidates learn from half of it, and a quarter each was set aside "
        "to choose and to judge on. But the model may have been trained on them: then it looks better there than it "
        "is, and losses look larger; rows that it has not seen would tell."
    )
    return [_rows_about(known, part) for part in parts], False, [note]


def _people(table: Table) -> npt.NDArray[np.int64]:
    """Whom the rows are about: a person's rows stay together, because who was learned from is no longer unseen."""
    return np.arange(len(table)) if table.person is None else np.unique(table.person)


def _rows_about(table: Table, people: npt.NDArray[np.int64]) -> Table:
    return table.rows(people if table.person is None else np.isin(table.person, people))


#: A rate over fewer people than this says little, and is left out.
MIN_GROUP = 30


#: The share of samples in which the true loss lies below the upper end.
CONFIDENCE = 0.9
#: The same for each end of the intervals beside held-out figures: together they hold in 95 % of samples.
TWO_SIDED = 0.975


def balanced_loss(
    before: Truth, after: Truth, labels: npt.NDArray[np.float64], *, confidence: float = CONFIDENCE
) -> Estimate:
    """Loss of balanced accuracy (below 0: a gain), with the ends of its one-sided intervals."""
    members = [labels == label for label in np.unique(labels)]
    counts = [[mine.sum() + 2, (before & ~after & mine).sum(), (after & ~before & mine).sum()] for mine in members]
    n, worse, better = np.array(counts, np.float64).T
    lost = (worse - better) / n  # adjusted, as is its variance
    variance = (worse + better + 1 - n * lost**2) / n**2
    value = float(np.mean([before[mine].mean() - after[mine].mean() for mine in members]))
    reach = normal_quantile(confidence) * float(np.sqrt(variance.sum())) / len(members)
    return Estimate(value, float(lost.mean()) - reach, float(lost.mean()) + reach)


def variance_loss(
    before: npt.NDArray[np.floating],
    after: npt.NDArray[np.floating],
    values: npt.NDArray[np.float64],
    *,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """Loss of explained variance of a regression, with an upper end."""
    total = float(np.var(values)) or 1.0
    extra = ((after - values) ** 2 - (before - values) ** 2) / total
    value = float(np.mean(extra, dtype=np.float64))
    spread = float(np.std(extra, ddof=1)) / np.sqrt(len(extra)) if len(extra) > 1 else np.inf
    reach = normal_quantile(confidence) * float(spread)
    return Estimate(value, value - reach, value + reach)


def known_groupings(schema: Schema, rows: Codes) -> list[Grouping]:
    """The groups of each protected attribute of which anybody among these rows has a value."""
    found = []
    for i in schema.protected_columns:
        with suppress(TableError):
            found.append(grouping_of(schema.attributes[i], rows[:, i]))
    return found


def group_figures(schema: Schema, rows: Codes, favoured: Truth, deserved: Truth) -> tuple[RepairGroup, ...]:
    """For every protected attribute and every intersection of them, by the groups that the page has too.

    ``favoured`` says who is decided for, ``deserved`` who is labelled so.
    """
    single = known_groupings(schema, rows)
    subsets = [subset for size in range(1, len(single) + 1) for subset in combinations(single, size)]
    return tuple(_of_groups(subset, favoured, deserved) for subset in subsets)


def _of_groups(subset: Sequence[Grouping], favoured: Truth, deserved: Truth) -> RepairGroup:
    table = subset[0] if len(subset) == 1 else crossed(subset)
    people = [(name, here) for name, here in zip(table.labels, table.members(), strict=True) if len(here)]
    groups = tuple(_rates(name, favoured[here], deserved[here]) for name, here in people if len(here) >= MIN_GROUP)
    odds = [_gap(one.true_positive_rate for one in groups), _gap(one.false_positive_rate for one in groups)]
    known = [gap for gap in odds if gap is not None]
    return RepairGroup(
        attributes=tuple(one.name for one in subset),
        groups=groups,
        too_small=tuple(name for name, here in people if len(here) < MIN_GROUP),
        selection=_gap(one.selection_rate for one in groups),
        equal_opportunity=odds[0],
        average_odds=sum(known) / 2 if len(known) == 2 else None,
        equalised_odds=max(known, default=None),
    )


def _rates(name: str, favoured: Truth, deserved: Truth) -> GroupRate:
    odds = (float(part.mean()) if len(part) else None for part in (favoured[deserved], favoured[~deserved]))
    return GroupRate(name, len(favoured), float(favoured.mean()), *odds)


def _gap(rates: Iterable[float | None]) -> float | None:
    """The largest rate minus the smallest, where at least two groups have one."""
    known = [rate for rate in rates if rate is not None]
    return max(known) - min(known) if len(known) > 1 else None


#: With fewer people nothing can be known; more than so many are not asked (fewer where each costs a call).
MIN_PEOPLE, MAX_PEOPLE, MAX_FOREIGN = 200, 2_000, 1_000


def indirect_bits(evaluator: Evaluator, schema: Schema, people: Table) -> tuple[str, ScoreBits] | None:
    """The protected attribute of which the average over the twins tells most, and what; None with too few people."""
    people = people.rows(even_rows(len(people), MAX_PEOPLE if evaluator.native else MAX_FOREIGN))
    try:
        groupings = groupings_of(schema, people)
    except TableError:  # an attribute that has no value in any of these rows
        return None
    groupings = tuple(one for one in groupings if one.known.sum() >= MIN_PEOPLE and (one.counts > 0).sum() > 1)
    if not groupings:
        return None
    evaluator = evaluator.over_values
    scores = evaluator.scores(people.codes).astype(np.float64)
    valid = evaluator.valid_twins(people.codes)
    if valid is not None:
        scores = np.where(valid | ~valid.any(axis=1, keepdims=True), scores, np.nan)
    average = np.nanmean(scores, axis=1)
    found = [(one.name, score_bits(one, average, generator(0, "repair", "indirect", one.name))) for one in groupings]
    return max(found, key=lambda one: one[1].bits)


#: Balanced accuracy may fall by so many times the accuracy budget. Without a bound, a network that decides for the
#: majority whatever it is told has k = 1 and loses next to no accuracy where one class is rare.
BALANCED_FACTOR = 2.0
#: The share of rows that are not the tail.
TAIL = 0.99
#: Rows of the table whose twins are measured; accuracy is taken on all of them.
ROWS_MEASURED = 3_000


@runtime_checkable
class AsksPeople(Protocol):
    """A model that is asked about people rather than inputs, by the engine: guards and thresholds by group."""

    def people_scores(self, codes: Codes) -> Array:
        """The score of each person."""

    def people_class_scores(self, codes: Codes) -> Array:
        """The probabilities of all classes of each person."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What stays the same whatever the network: the subject, and how scores of twins become classes."""

    subject: Subject
    epsilon: float
    partition: str
    threads: int | None = None
    measure: Measure = "q_inf"

    @cached_property
    def own(self) -> Evaluator:
        """Asks the subject's own network about people and their twins."""
        return evaluator_of(self.subject, epsilon=self.epsilon, partition=self.partition, threads=self.threads)

    def evaluator(self, network: Model) -> Evaluator:
        """Ask another model about people and their twins in the same way."""
        return self.own.with_model(network)

    def about(self, fitted: Fitted | None) -> Setting:
        """The same for a model that was fitted anew and may take other inputs."""
        if fitted is None or fitted.encoding is self.subject.encoding:
            return self
        return replace(self, subject=replace(self.subject, model=fitted.model, encoding=fitted.encoding))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The figures of a model on one part of the evidence, what it decides or predicts there, and what is right."""

    figures: Figures
    answers: npt.NDArray[np.floating | np.integer]
    labels: npt.NDArray[np.float64]
    evaluation: Evaluation  # of the rows that were measured
    indirect: tuple[str, ScoreBits] | None = None  # of the attribute that the average tells most about
    groups: tuple[RepairGroup, ...] = ()


def judge(model: Model, half: Half, setting: Setting) -> Judged:
    """The figures of a model on one part of the evidence.

    Accuracy is of all rows; their bits are of ``ROWS_MEASURED`` of them at most, evenly over the table.
    """
    evaluator, schema = setting.evaluator(model), setting.subject.schema
    regression, favourable = schema.regression, schema.favourable_index
    measured = evaluator.evaluate(half.rows[even_rows(len(half.rows), ROWS_MEASURED)])
    answers = answers_of(model, setting.subject, half.rows)
    indirect = indirect_bits(evaluator, schema, Table(half.rows) if half.people is None else half.people)
    decided_for, labelled = answers == favourable, half.labels == favourable
    groups = () if regression else group_figures(schema, half.rows, decided_for, labelled)
    single = [one for one in groups if len(one.attributes) == 1]
    rates = [[group.selection_rate for group in one.groups] for one in single]
    figures = Figures(
        variance_explained(answers, half.labels) if regression else float((answers == half.labels).mean()),
        None if regression else balanced_accuracy(answers == half.labels, half.labels),
        *_figures(evaluator.evaluate(half.cases), regression),
        *_figures(measured, regression),
        indirect_bits=None if indirect is None else indirect[1].bits,
        indirect_bits_low=None if indirect is None else indirect[1].low,
        selection_gap=max((g.selection for g in single if g.selection is not None), default=None),
        odds_gap=max((g.average_odds for g in single if g.average_odds is not None), default=None),
        equalised_odds=max((g.equalised_odds for g in single if g.equalised_odds is not None), default=None),
        f1=None if regression else f1_score(answers, half.labels, favourable),
        # Nothing is known with one group, or where nobody is selected.
        impact_ratio=min((min(r) / max(r) for r in rates if len(r) > 1 and max(r) > 0), default=None),
        gap_tail=float(np.quantile(measured.span, TAIL, method="inverted_cdf")),
        gap_max=float(measured.span.max()),
    )
    return Judged(figures, answers, half.labels, measured, indirect, groups)


def f1_score(answers: npt.NDArray[np.floating | np.integer], labels: npt.NDArray[np.float64], positive: int) -> float:
    """F1 of one class, the favourable one here: 0 where nobody is decided for it or labelled so."""
    found, true = answers == positive, labels == positive
    return float(2 * (found & true).sum() / max(1, found.sum() + true.sum()))


def answers_of(model: Model, subject: Subject, rows: Codes) -> npt.NDArray[np.floating | np.integer]:
    """What a model decides about people, as class numbers; of a regression, the values that it predicts."""
    schema = subject.schema
    if isinstance(model, AsksPeople):
        if len(schema.classes) > 2:
            return schema.rule.most_likely(model.people_class_scores(rows))
        scores = model.people_scores(rows)
        return scores if schema.regression else schema.rule.decide(scores)
    inputs = subject.encoding.encode(rows)
    classes = decided(model, np.asarray(inputs), schema)
    if classes is not None:
        return classes
    if schema.regression:
        return np.asarray(model.scores(inputs))
    raise CapabilityError(
        f"the target has {len(schema.classes)} classes, and {kind_of(model)!r} gives the score of one, which "
        f"does not say what is decided; a repair needs the probabilities of all of them."
    )


def losses(before: Judged, after: Judged, *, confidence: float = CONFIDENCE) -> tuple[Estimate, Estimate | None]:
    """What is lost in accuracy and in balanced accuracy (a regression: in explained variance), with its ends."""
    if before.figures.balanced_accuracy is None:
        values = [np.asarray(judged.answers, np.float64) for judged in (before, after)]
        return variance_loss(values[0], values[1], before.labels, confidence=confidence), None
    was, now = before.answers == before.labels, after.answers == after.labels
    return (
        balanced_loss(was, now, np.zeros(len(was)), confidence=confidence),  # of rows that are all of one class
        balanced_loss(was, now, before.labels, confidence=confidence),
    )


def front(points: Iterable[tuple[float, ...]]) -> list[bool]:
    """Which points nobody beats: as good in every coordinate (larger is better) and better in one."""
    table = np.array(list(points), dtype=np.float64)
    return [not ((table >= point).all(axis=1) & (table > point).any(axis=1)).any() for point in table]


def _figures(found: Evaluation, regression: bool) -> tuple[float, int, float, float, float | None]:
    return (
        float(found.k.mean()),
        int(found.k.max()),
        float(found.q_inf.mean()),
        float(found.q_1.mean(dtype=np.float64)),
        None if regression else float(found.flips.mean()),
    )


#: Resamples behind the intervals of mean bits.
RESAMPLES = 300


def estimates_of(judged: Judged, setting: Setting, proof: Proof | None = None) -> Estimates:
    """The figures of a judgement with their intervals; what is proved bounds the interval of bits too."""
    evaluation = judged.evaluation
    ratio, attribute = _lowest_ratio(judged.groups)
    indirect: dict[str, Any] = {}
    if judged.indirect is not None:
        name, told = judged.indirect
        # Where the lower end is cut at 0, chance alone (the largest shuffle) says how far the figure may move.
        high = min(told.entropy, told.bits + max(told.bits - told.low, told.placebo_high))
        indirect = {"indirect_bits": Estimate(told.bits, told.low, max(told.bits, high))}
        indirect |= {"indirect_attribute": name, "indirect_placebo": told.placebo}
    limit = float(np.log2(max(setting.own.m, 2) if proof is None else proof.bound))
    bits = bounded_means(
        np.asarray(evaluation.q_inf, np.float64)[:, None],
        generator(0, "alternatives", "bits"),
        lows=0.0,
        highs=max(limit, float(evaluation.q_inf.max(initial=0.0))),
        resamples=RESAMPLES,
    )[0]
    regression = setting.subject.schema.regression
    return Estimates(
        accuracy=explained_variance(judged.answers, judged.labels, judged.figures.accuracy)
        if regression
        else wilson(int((judged.answers == judged.labels).sum()), len(judged.labels)),
        balanced_accuracy=None if regression else _balanced(judged),
        bits=bits,
        flips=None if regression else wilson(int(evaluation.flips.sum()), len(evaluation.flips)),
        impact_ratio=ratio,
        impact_attribute=attribute,
        **indirect,
    )


def explained_variance(answers: npt.ArrayLike, labels: npt.ArrayLike, value: float) -> Estimate:
    """The share of the variance that answers explain, with an interval by the delta method.

    Both the errors and the variance of the labels come from the same rows, so a row counts with what it adds to the
    one less what it adds to the other.
    """
    truth = np.asarray(labels, dtype=np.float64)
    errors, spread = (np.asarray(answers, np.float64) - truth) ** 2, (truth - truth.mean()) ** 2
    around = student_mean((errors - (1 - value) * spread) / (float(spread.mean()) or 1.0))
    half = (around.high - around.low) / 2
    return Estimate(value, float(value - half), float(min(1.0, value + half)))


def _balanced(judged: Judged) -> Estimate:
    """The mean of the classes' own rates; their intervals are put together as Zou and Donner do (2008)."""
    right = judged.answers == judged.labels
    members = [judged.labels == label for label in np.unique(judged.labels)]
    rates = [wilson(int(right[mine].sum()), int(mine.sum())) for mine in members]
    value = float(np.mean([one.value for one in rates]))
    below = float(np.sqrt(sum((one.value - one.low) ** 2 for one in rates))) / len(rates)
    above = float(np.sqrt(sum((one.high - one.value) ** 2 for one in rates))) / len(rates)
    return Estimate(value, max(0.0, value - below), min(1.0, value + above))


def _lowest_ratio(groups: Sequence[RepairGroup]) -> tuple[Estimate | None, str | None]:
    """The lowest impact ratio of single attributes; as many as there are share the error of the interval."""
    single = [one for one in groups if len(one.attributes) == 1]
    known = []
    for one in single:
        people = np.array([group.people for group in one.groups], dtype=np.float64)
        chosen = np.array([group.selection_rate for group in one.groups]) * people
        found = lowest_ratio(chosen, people, level=1 - 0.05 / len(single))
        if found is not None:
            known.append((found[0], one.attributes[0]))
    if not known:
        return None, None
    lowest, attribute = min(known, key=lambda one: one[0].value)
    low, high = min(one.low for one, _ in known), min(one.high for one, _ in known)
    return Estimate(lowest.value, min(low, lowest.value), max(high, lowest.value)), attribute
