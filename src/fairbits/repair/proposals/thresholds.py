"""Thresholds by group: a threshold of its own for every group, so that all are selected equally often.

Hardt, Price, Srebro, "Equality of Opportunity in Supervised Learning" (2016), without its lottery: where two thresholds
would have to be mixed at random, the nearest one decides, so that the same person always gets the same decision. It
needs scores only, and it *uses* the protected value: what it mends between groups it adds to the direct bits.

Which groups a mitigator is told about is one column of numbers. Several attributes are crossed; groups of fewer than 30
training rows are joined as "others". Where most people would end there, every attribute is cut in two (the most
frequent value and the rest; numbers at their median) before they are crossed. The words say which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.domain import Attribute, Codes, Schema, Twins, Unseen
from fairbits.errors import CapabilityError
from fairbits.measure import Evaluator
from fairbits.models import Array, Model, checked_rows
from fairbits.repair.choice import Planner, Proposal
from fairbits.repair.proposals.guard import decoded, moved_odds

#: Rows that a group needs to be told apart, and the share of rows that may end among the others.
MIN_ROWS, MAX_OTHERS = 30, 0.2
OTHERS = "others"

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """The groups by number: ``by_twin`` has the group of each protected combination, in the order of the twins."""

    labels: tuple[str, ...]
    by_twin: Integers
    twins: Twins
    words: str

    def of(self, codes: Codes) -> Integers:
        """The group of each person."""
        return np.asarray(self.by_twin[self.twins.index_of(codes)])


def coding_of(schema: Schema, rows: Codes) -> Coding:
    """The groups of the training rows, as fine as their numbers allow."""
    twins = Twins(schema)
    own = twins.index_of(rows)
    names = " × ".join(schema.attributes[i].name for i in twins.columns)
    fine = _joined(np.arange(twins.m), list(twins.labels), own)
    if fine is not None:
        by_twin, labels, joined = fine
        words = f"groups of {names}: {len(labels)}" + (f" ({joined} small joined as others)" if joined else "")
        return Coding(labels, by_twin, twins, words)
    halves, half_labels = _halved(schema, twins, rows)
    coarse = _joined(halves, half_labels, own, most_others=1.0)
    if coarse is None:
        raise CapabilityError(
            f"the {len(rows):,} training rows fall into one group of {names} of at least {MIN_ROWS} people, so there "
            f"is nothing that a mitigator could make alike; average and guard need no groups."
        )
    by_twin, labels, _ = coarse
    return Coding(labels, by_twin, twins, f"groups of {names}, each attribute cut in two: {len(labels)}")


def _joined(
    group_of: Integers, labels: list[str], own: Integers, *, most_others: float = MAX_OTHERS
) -> tuple[Integers, tuple[str, ...], int] | None:
    """Groups large enough keep their number, the rest share one; None where too many people would."""
    counts = np.bincount(group_of[own], minlength=len(labels))
    large = np.flatnonzero(counts >= MIN_ROWS)
    rest = int(counts.sum() - counts[large].sum())
    if len(large) < 1 or rest > most_others * len(own) or len(large) + (rest > 0) < 2:
        return None
    number = np.full(len(labels), len(large), dtype=np.int64)
    number[large] = np.arange(len(large))
    if not rest:  # combinations that nobody has go with the largest group
        number[number == len(large)] = int(np.argmax(counts[large]))
    joined = int(((counts > 0) & (counts < MIN_ROWS)).sum())
    return number[group_of], (*(labels[i] for i in large), *([OTHERS] if rest else [])), joined


def _halved(schema: Schema, twins: Twins, rows: Codes) -> tuple[Integers, list[str]]:
    """The group of every twin when each attribute is cut in two, and what the groups are called."""
    number, labels = np.zeros(twins.m, dtype=np.int64), [""]
    for place, column in enumerate(twins.columns):
        attribute, values = schema.attributes[column], twins.values[:, place]
        own = rows[:, column][np.isfinite(rows[:, column])]
        if attribute.kind == "category":
            present, counts = np.unique(own, return_counts=True)
            usual = present[np.argmax(counts)]
            high, words = values != usual, (attribute.read(usual), f"not {attribute.read(usual)}")
        else:
            middle = float(np.median(own))
            high, words = values > middle, (f"{attribute.name} ≤ {middle:g}", f"{attribute.name} > {middle:g}")
        number = 2 * number + high
        labels = [", ".join(filter(None, (before, word))) for before in labels for word in words]
    return number, labels


#: Scores this close to 0 and 1 are moved as if they were this far.
TINY = 1e-6
#: Scores no further apart than this are tied: they are float32, and the order of sums differs between libraries.
_TIED = 4e-6

Doubles = npt.NDArray[np.float64]


class GroupThresholds:
    """A model whose log-odds are moved by group, so that one threshold decides for all as each group's own would."""

    def __init__(self, evaluator: Evaluator, coding: Coding, shifts: Doubles):
        if len(evaluator.schema.classes) != 2:
            raise CapabilityError(
                f"thresholds by group decide between two classes, and this target has {len(evaluator.schema.classes)}."
            )
        evaluator = evaluator.over_values
        self._evaluator, self.coding, self.shifts = evaluator, coding, np.asarray(shifts, np.float64)
        self.model: Model = evaluator.model
        self.schema, self.encoding = evaluator.schema, evaluator.encoding
        self.inputs = int(self.encoding.width)
        self.tau = float("inf")  # nothing bounds the distance from the average over twins
        #: By how much the log-odds of each protected combination are moved.
        self.by_twin = self.shifts[coding.by_twin]

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The moved score of each encoded row."""
        rows = checked_rows(inputs, self.inputs, "the model", self.encoding.dtype)
        own = np.asarray(self.model.scores(rows), np.float64)
        codes = np.zeros((len(rows), len(self.schema)))
        for column in self.coding.twins.columns:
            part, attribute = self.encoding.parts[column], self.schema.attributes[column]
            if not isinstance(part, Unseen):
                codes[:, column] = decoded(part, rows, whole=attribute.discrete)
        return self._moved(own, self.shifts[self.coding.of(codes)])

    def people_scores(self, codes: Codes) -> Array:
        """The moved score of each person, a row of codes."""
        own = np.asarray(self.model.scores(self.encoding.encode(codes)), np.float64)
        return self._moved(own, self.shifts[self.coding.of(codes)])

    def people_class_scores(self, codes: Codes) -> Array:
        """The probabilities of both classes of each person."""
        return self.schema.rule.both(self.people_scores(codes))

    def twin_scores(self, codes: Codes) -> Array:
        """Moved scores of every twin of every person, (n, m)."""
        return self._moved(self._evaluator.scores(codes).astype(np.float64), self.by_twin[None, :])

    def twin_class_scores(self, codes: Codes) -> Array:
        """Probabilities of both classes for every twin, (n, m, 2)."""
        return self.schema.rule.both(self.twin_scores(codes))

    def fits(self, evaluator: Evaluator) -> bool:
        """Whether an evaluator means the same twins."""
        return self._evaluator.asks_alike(evaluator)

    def _moved(self, scores: Doubles, shifts: Doubles) -> Array:
        return moved_odds(scores, shifts, TINY).astype(np.float32)


def twin_cuts(attribute: Attribute) -> list[float]:
    """From which codes on each of the values that twins take, but the first, stands for a person."""
    cuts = [float(np.nextafter((low + high) / 2, high)) for low, high in pairwise(attribute.twin_values())]
    return [*cuts[: len(cuts) - len(attribute.cuts)], *attribute.cuts]


def fitted_thresholds(
    evaluator: Evaluator, coding: Coding, rows: Codes, labels: npt.NDArray[np.float64], *, alike: str
) -> GroupThresholds:
    """The thresholds at which groups are selected as often as everybody is."""
    schema, shifts = evaluator.schema, np.zeros(len(coding.labels))
    scores = np.clip(np.asarray(evaluator.model.scores(evaluator.encoding.encode(rows)), np.float64), TINY, 1 - TINY)
    if alike != "parity":
        rows, scores = rows[labels == schema.favourable_index], scores[labels == schema.favourable_index]
    rate = float(schema.rule.favours(scores).mean()) if len(rows) else 0.0
    cut, groups = float(np.clip(evaluator.threshold, TINY, 1 - TINY)), coding.of(rows)
    for group in np.unique(groups) if 0 < rate < 1 else ():
        shifts[group] = special.logit(cut) - _log_odds_at(scores[groups == group], rate)
    return GroupThresholds(evaluator, coding, shifts)


def _log_odds_at(scores: Doubles, rate: float) -> float:
    """The log-odds halfway between two scores at which the share of scores above comes nearest to ``rate``.

    Scores closer than rounding are one: a cut between them would decide otherwise in every other library.
    """
    values = np.sort(scores)
    first = np.flatnonzero(np.concatenate([[True], np.diff(values) > _TIED]))
    above = 1 - np.concatenate([first, [len(values)]]) / len(values)  # with the cut before each of them, and at last
    place = int(np.argmin(np.abs(above - rate)))
    last, odds = np.append(first[1:], len(values)) - 1, special.logit(values)
    below, beyond = np.append(odds[0] - 2.0, odds[last]), np.append(odds[first], odds[-1] + 2.0)
    return float(0.5 * (below[place] + beyond[place]))


_ALIKE = {
    "parity": "selected equally often",
    "opportunity": "selected equally often among those labelled favourable",
}


@dataclass(frozen=True, slots=True)
class ThresholdsByGroup:
    """Two proposals: equal selection rates, and equal true positive rates."""

    name: str = "thresholds"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Fit the thresholds to the training rows."""
        subject, training = planner.setting.subject, planner.halves.training
        if len(subject.schema.classes) != 2:
            raise CapabilityError("thresholds by group decide between two classes, and this model does not.")
        planner.watch("thresholds by group")
        coding = coding_of(subject.schema, training.rows)
        evaluator = planner.setting.evaluator(planner.network)
        for alike, words in _ALIKE.items():
            found = fitted_thresholds(evaluator, coding, training.rows, training.labels, alike=alike)
            text = f"a threshold for each group, so that all are {words}; uses protected values directly"
            yield Proposal(f"thresholds-{alike}", f"{text}; {coding.words}", found, coding=coding.words)
