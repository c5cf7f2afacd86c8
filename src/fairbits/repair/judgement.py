"""How a network does on one part of the evidence: accuracy on rows, bits on cases and on rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fairbits.data import Fitted
from fairbits.domain import Codes, Schema, Table
from fairbits.engine import Evaluation
from fairbits.errors import CapabilityError
from fairbits.measure import Evaluator, Measure, evaluator_of
from fairbits.models import Model, Network, kind_of
from fairbits.repair.evidence import Half
from fairbits.repair.groups import group_figures
from fairbits.repair.indirect import IndirectBits, indirect_bits
from fairbits.repair.margins import CONFIDENCE, Loss, accuracy_loss, balanced_loss, variance_loss
from fairbits.repair.proposals.group_thresholds import GroupThresholds
from fairbits.repair.proposals.guard import Guard
from fairbits.repair.records import Figures, RepairGroup
from fairbits.subject import Subject, balanced_accuracy, decided, variance_explained

#: Balanced accuracy may fall by so many times the accuracy budget. Without a bound, a network that decides for the
#: majority whatever it is told has k = 1 and loses next to no accuracy where one class is rare.
BALANCED_FACTOR = 2.0
#: Rows of the table whose twins are measured; accuracy is taken on all of them.
ROWS_MEASURED = 3_000


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
    indirect: tuple[IndirectBits, ...] = ()
    groups: tuple[RepairGroup, ...] = ()


def judge(model: Model, half: Half, setting: Setting) -> Judged:
    """The figures of a model on one part of the evidence.

    Accuracy is of all rows; their bits are of ``ROWS_MEASURED`` of them at most, evenly over the table.
    """
    evaluator = setting.evaluator(model)
    regression = setting.subject.schema.regression
    cases = _figures(evaluator.evaluate(half.cases), regression)
    measured = evaluator.evaluate(_spread(half.rows))
    answers = answers_of(model, setting.subject, half.rows)
    people = Table(half.rows) if half.people is None else half.people
    indirect = indirect_bits(evaluator, setting.subject.schema, people)
    largest = max(indirect, key=lambda one: one.bits, default=None)
    groups = groups_of(answers, half, setting.subject)
    single = [one for one in groups if len(one.attributes) == 1]
    figures = Figures(
        variance_explained(answers, half.labels) if regression else float((answers == half.labels).mean()),
        None if regression else balanced_accuracy(answers == half.labels, half.labels),
        *cases,
        *_figures(measured, regression),
        indirect_bits=None if largest is None else largest.bits,
        indirect_bits_low=None if largest is None else largest.low,
        selection_gap=max((g.selection for g in single if g.selection is not None), default=None),
        odds_gap=max((g.average_odds for g in single if g.average_odds is not None), default=None),
        impact_ratio=min((r for r in map(_impact_ratio, single) if r is not None), default=None),
    )
    return Judged(figures, answers, half.labels, measured, indirect, groups)


def groups_of(answers: npt.NDArray[np.floating | np.integer], half: Half, subject: Subject) -> tuple[RepairGroup, ...]:
    """Selection and odds of groups; a regression selects nobody."""
    if subject.schema.regression:
        return ()
    favourable = subject.schema.favourable_index
    return group_figures(subject.schema, half.rows, answers == favourable, half.labels == favourable)


def _impact_ratio(groups: RepairGroup) -> float | None:
    """The lowest selection rate over the highest; None with one group, or where nobody is selected."""
    rates = [one.selection_rate for one in groups.groups]
    return min(rates) / max(rates) if len(rates) > 1 and max(rates) > 0 else None


def answers_of(model: Model, subject: Subject, rows: Codes) -> npt.NDArray[np.floating | np.integer]:
    """What a model decides about people, as class numbers; of a regression, the values that it predicts."""
    schema = subject.schema
    if isinstance(model, Guard | GroupThresholds):  # asked about people, they use the engine
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


def losses(before: Judged, after: Judged, *, confidence: float = CONFIDENCE) -> tuple[Loss, Loss | None]:
    """What is lost in accuracy and in balanced accuracy (a regression: in explained variance), with its ends."""
    if before.figures.balanced_accuracy is None:
        values = [np.asarray(judged.answers, np.float64) for judged in (before, after)]
        return variance_loss(values[0], values[1], before.labels, confidence=confidence), None
    was, now = before.answers == before.labels, after.answers == after.labels
    return (
        accuracy_loss(was, now, confidence=confidence),
        balanced_loss(was, now, before.labels, confidence=confidence),
    )


def accuracy_of(
    network: Network, inputs: npt.NDArray[np.float32], labels: npt.NDArray[np.float64], schema: Schema
) -> float:
    """The share of rows decided as labelled; for a regression, the share of the target's variance explained."""
    classes = decided(network, inputs, schema)
    if classes is None:
        return variance_explained(network.scores(inputs), labels)
    return float((classes == labels).mean())


def front(points: Iterable[tuple[float, ...]]) -> list[bool]:
    """Which points nobody beats: as good in every coordinate (larger is better) and better in one."""
    table = np.array(list(points), dtype=np.float64)
    beaten = [bool(((table >= point).all(axis=1) & (table > point).any(axis=1)).any()) for point in table]
    return [not b for b in beaten]


def _spread(rows: Codes) -> Codes:
    """A sample of the rows, evenly over the table, which may be sorted."""
    if len(rows) <= ROWS_MEASURED:
        return rows
    return rows[np.linspace(0, len(rows) - 1, ROWS_MEASURED).astype(np.int64)]


def _figures(found: Evaluation, regression: bool) -> tuple[float, int, float, float, float | None]:
    return (
        float(found.k.mean()),
        int(found.k.max()),
        float(found.q_inf.mean()),
        float(found.q_1.mean(dtype=np.float64)),
        None if regression else float(found.flips.mean()),
    )
