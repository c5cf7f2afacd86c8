"""Held-out figures of a model with their 95 % intervals, to lay candidates side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairbits.measure import Estimate, bounded_means, lowest_ratio, student_mean, wilson
from fairbits.randomness import generator
from fairbits.repair.judgement import Judged, Setting
from fairbits.repair.records import Estimates, Proof, RepairGroup

#: Resamples behind the intervals of mean bits.
RESAMPLES = 300


def estimates_of(judged: Judged, setting: Setting, proof: Proof | None = None) -> Estimates:
    """The figures of a judgement with their intervals; what is proved bounds the interval of bits too."""
    evaluation = judged.evaluation
    ratio, attribute = _lowest_ratio(judged.groups)
    strongest = max(judged.indirect, key=lambda one: one.bits, default=None)
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
        accuracy=_accuracy(judged, regression=regression),
        balanced_accuracy=None if regression else _balanced(judged),
        bits=bits,
        flips=None if regression else wilson(int(evaluation.flips.sum()), len(evaluation.flips)),
        impact_ratio=ratio,
        impact_attribute=attribute,
        indirect_bits=None
        if strongest is None
        else Estimate(strongest.bits, strongest.low, max(strongest.bits, strongest.high)),
        indirect_attribute=None if strongest is None else strongest.attribute,
        indirect_placebo=None if strongest is None else strongest.placebo,
    )


def _accuracy(judged: Judged, *, regression: bool) -> Estimate:
    if not regression:
        right = judged.answers == judged.labels
        return wilson(int(right.sum()), len(right))
    return explained_variance(judged.answers, judged.labels, judged.figures.accuracy)


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
    rates = []
    for label in np.unique(judged.labels):
        mine = judged.labels == label
        rates.append(wilson(int((judged.answers[mine] == label).sum()), int(mine.sum())))
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
    value, attribute = min(known, key=lambda one: one[0].value)
    low, high = (min(getattr(one, end) for one, _ in known) for end in ("low", "high"))
    return Estimate(value.value, min(low, value.value), max(high, value.value)), attribute
