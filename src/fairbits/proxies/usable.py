"""Usable bits: what the score still tells about an attribute once the justified attributes J are known.

Two observers, boosted trees both, guess the attribute of people whom they have not seen: one from J, one from J and the
score S. The gain in log-loss is what S adds *for such an observer* (Xu et al. 2020, "usable information").

The plain gain is no bound. An observer that is weak at J is helped by S as a summary of J although S adds nothing:
with true value 0 the plain difference said 0.166 bits. So both observers are also given Ŝ = E[S|J], fitted on other
people by two kinds of learners, and by one after the other.

What is left of the trap is measured by a placebo that no protected value can have reached: observers who have Ŝ from
half of the people are given Ŝ from all of them (plus the residual of somebody with much the same Ŝ). That gain is the
step of a learning curve; were the error of Ŝ to fall like n^-0.32, everything still missing would be worth four such
steps. Four steps are the placebo, and nothing is claimed that does not exceed it by more than chance. By the same
count, where four steps of Ŝ's own learning curve could explain half of what is left of S, nothing is claimed at all:
what looks like news may be a part of J that nobody has learned yet.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.stats import rankdata

from fairbits.domain import Doubles, Integers
from fairbits.functions import normal_quantile
from fairbits.measure import Grouping
from fairbits.randomness import sampled_rows

#: People that learn and are guessed, at most; more are drawn from.
MAX_PEOPLE = 40_000
#: Fewer people than this, and boosted observers say nothing worth printing.
MIN_PEOPLE = 200
#: Groups that an observer tells apart, at most: the smaller ones of more are one, which can only lower the figure.
MAX_GROUPS = 8
#: Neighbours in order of Ŝ among whom residuals are swapped.
NEIGHBOURS = 50
#: Scores of the placebo: how far apart observers of them are is what chance does to a learner.
STAND_INS = 8
#: Estimates of E[S|J]: trees, waves, and trees on what the waves leave; an error that is as near as this is as good.
LEARNERS, AS_NEAR = 3, 1.02
#: Gains are cut at so many bits: one person cannot carry the figure.
CLIP = 6.0
#: What an ideal Ŝ could still add, in steps of the learning curve from half of the people to all: 1 / (2^0.32 - 1).
STEPS = 4.0
#: Where more of the rest of S than this may still be a part of J, nothing is claimed.
MAX_LEARNABLE = 0.5
LEVEL = 0.95
#: Trees at most, for groups and for numbers; leaves, how fast they learn, and how many may pass without a gain.
TREES, NUMBER_TREES, LEAVES, RATE, RIDGE, PATIENCE, NUMBER_PATIENCE = 150, 400, 16, 0.15, 3.0, 8, 20
#: The share of people who only say when to stop, and the labels that trees can tell apart; more are taken as numbers.
HELD_OUT, MOST_LABELS = 0.15, 255
#: A category with more labels is a number for waves; one with fewer gets a column per label.
MANY_LABELS = 12
#: Random waves at most, and people for each at least.
WAVES, PEOPLE_PER_WAVE = 300, 4


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """Boosted trees, as many as served people best whom they were not grown on; without any, the base rates."""

    model: Any
    trees: int
    base: Doubles
    finished: bool  # whether held-out people no longer gained; otherwise more trees would have learned more

    def predict(self, features: Doubles) -> Doubles:
        """A number for each row, or the probability of each group."""
        if not self.trees:
            return np.repeat(self.base[None], len(features), axis=0).squeeze(axis=1 if self.base.size == 1 else ())
        stages = getattr(self.model, "staged_predict_proba", self.model.staged_predict)
        with _one_core():
            return np.asarray(next(islice(stages(features), self.trees - 1, None)))


def boosted(
    features: Doubles,
    categorical: tuple[bool, ...],
    wanted: npt.NDArray[np.floating] | Integers,
    rng: np.random.Generator,
    *,
    n_groups: int = 0,
) -> Boosted:
    """Trees that stop where held-out people no longer gain, for a number or for groups 0, 1, …"""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    most, patience = (TREES, PATIENCE) if n_groups else (NUMBER_TREES, NUMBER_PATIENCE)
    kinds = [
        is_one and len(np.unique(column)) <= MOST_LABELS for column, is_one in zip(features.T, categorical, strict=True)
    ]
    model = (HistGradientBoostingClassifier if n_groups else HistGradientBoostingRegressor)(
        learning_rate=RATE,
        max_iter=most,
        max_leaf_nodes=LEAVES,
        l2_regularization=RIDGE,
        max_bins=MOST_LABELS,
        categorical_features=kinds,
        early_stopping=True,
        validation_fraction=HELD_OUT,
        n_iter_no_change=patience,
        random_state=int(rng.integers(2**31)),
    )
    with _one_core():
        model.fit(features, wanted)
    base = np.bincount(np.asarray(wanted, np.int64)) / len(wanted) if n_groups else np.array([wanted.mean()])
    return Boosted(model, int(np.argmax(model.validation_score_)), base, model.n_iter_ < most)


def _one_core() -> AbstractContextManager[Any]:
    """Fits of a few thousand people are quick alone: threads would only wait for each other."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1)


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """People as random waves of their features (Rahimi and Recht 2007), the same for every fit."""

    values: Doubles

    @classmethod
    def of(cls, features: Doubles, categorical: tuple[bool, ...], rng: np.random.Generator) -> Waves:
        """Random waves of people's features.

        Numbers enter as normal scores of their ranks, labels as columns; there are waves of three lengths, and the
        columns themselves.
        """
        columns = _one_hot(features, categorical)
        n, width = columns.shape
        base = special.ndtri((rankdata(columns, axis=0) - 0.5) / n)  # no tail is heavy after that
        count = int(np.clip(n // PEOPLE_PER_WAVE, 10, WAVES))
        lengths = np.resize([0.7, 1.5, 3.0], count) * np.sqrt(max(1.0, width / 2))
        angles = base @ (rng.normal(size=(width, count)) / lengths) + rng.uniform(0, 2 * np.pi, count)
        return cls(np.concatenate([np.ones((n, 1)), base, np.cos(angles) * np.sqrt(2)], axis=1))

    def mean(self, wanted: Doubles, fit: Integers) -> Doubles:
        """E[wanted] of everybody by ridge regression; its weight by generalised cross-validation (Golub 1979)."""
        x, centre = self.values[fit], float(wanted[fit].mean())
        y = wanted[fit] - centre
        roots, axes = np.linalg.eigh(x.T @ x)
        roots = np.maximum(roots, 0.0)[:, None]
        along = axes.T @ (x.T @ y)
        ridges = np.geomspace(1e-3, 1e3, 13)
        weights = along[:, None] / (roots + ridges)
        left = y @ y - 2 * along @ weights + (weights**2 * roots).sum(axis=0)
        freedom = (roots / (roots + ridges)).sum(axis=0)
        best = int(np.argmin(left / np.maximum(1e-9, 1 - freedom / len(fit)) ** 2))
        return np.asarray(self.values @ (axes @ weights[:, best]) + centre)


def _one_hot(features: Doubles, categorical: tuple[bool, ...]) -> Doubles:
    """Numbers as they are, categories of few labels as a column for each."""
    labels = [np.unique(column) if is_one else () for column, is_one in zip(features.T, categorical, strict=True)]
    parts = [
        (column[:, None] == own).astype(np.float64) if 2 < len(own) <= MANY_LABELS else column
        for column, own in zip(features.T, labels, strict=True)
    ]
    return np.column_stack(parts)


@dataclass(frozen=True, slots=True)
class UsableBits:
    """What the score adds about one attribute for an observer who knows the justified attributes."""

    bits: float
    estimate: float
    low: float
    placebo: float
    placebo_high: float
    explained: float
    learnable: float
    people: int


@dataclass(frozen=True, slots=True, eq=False)
class Justified:
    """The justified attributes J of people, their scores S, and what J predicts of S. Made once for all protected
    attributes; one entry per person that was drawn.
    """

    rows: npt.NDArray[np.int64]
    features: Doubles
    categorical: tuple[bool, ...]
    scores: Doubles
    summaries: Doubles
    weaker: Doubles
    stand_ins: Doubles
    fold: npt.NDArray[np.int64]
    explained: float
    learnable: float


def justified_of(
    features: Doubles, categorical: tuple[bool, ...], scores: npt.NDArray[np.floating], rng: np.random.Generator
) -> Justified:
    """Fit E[S|J] on halves, each for the other."""
    rows = sampled_rows(len(scores), MAX_PEOPLE, rng)
    features, wanted = features[rows], np.asarray(scores, dtype=np.float64)[rows]
    n = len(wanted)
    fold, finished = np.zeros(n, dtype=np.int64), True
    fold[rng.permutation(n)[: n // 2]] = 1
    summaries, weaker = np.empty((2, n, LEARNERS))
    waves = Waves.of(features, categorical, rng)
    for half in (0, 1):
        fit, here = np.flatnonzero(fold != half), np.flatnonzero(fold == half)
        for found, people in ((summaries, fit), (weaker, fit[sampled_rows(len(fit), len(fit) // 2, rng)])):
            with _one_core():
                waved = waves.mean(wanted, people)
            trees = boosted(features[people], categorical, wanted[people], rng)
            rest = boosted(features[people], categorical, (wanted - waved)[people], rng)
            left = waved[here] + rest.predict(features[here])
            found[here] = np.column_stack([trees.predict(features[here]), waved[here], left])
            errors = ((found[here][:, [0, 2]] - wanted[here, None]) ** 2).mean(axis=0)
            # A learner that ran out of trees shows no learning curve: the same trees from half of the people are as
            # good. It does no harm where other trees that stopped by themselves are as near.
            done = [error for error, one in zip(errors, (trees, rest), strict=True) if one.finished]
            finished &= min(done, default=np.inf) <= AS_NEAR * float(errors.min())
    best = _mixed(summaries, wanted)
    left, before = (wanted - best) ** 2, (wanted - _mixed(weaker, wanted)) ** 2
    error, variance = float(left.mean()), float(wanted.var())
    fall = before - left
    explained = float(np.clip(1.0 - error / variance, 0.0, 1.0)) if variance > 0 else 1.0
    steepest = float(fall.mean() + normal_quantile(LEVEL) * fall.std() / np.sqrt(n))
    learnable = float(np.clip(STEPS * steepest / error, 0.0, 1.0)) if finished and error > 0 else 1.0
    stand_ins = np.stack([best + _swapped(best, wanted - best, rng) for _ in range(STAND_INS)])
    return Justified(rows, features, categorical, wanted, summaries, weaker, stand_ins, fold, explained, learnable)


def usable_bits(
    groups: Grouping, justified: Justified, rng: np.random.Generator, *, level: float = LEVEL
) -> UsableBits | None:
    """What the score adds about an attribute for somebody who knows the justified attributes."""
    groups = groups.take(justified.rows)
    # A group too small to be in both halves several times is no group that an observer could learn.
    kept = np.flatnonzero(groups.counts >= 20)
    rows = np.flatnonzero(np.isin(groups.codes, kept))
    codes = _merged(np.searchsorted(kept, groups.codes[rows]))
    n_groups = min(len(kept), MAX_GROUPS)
    if len(rows) < MIN_PEOPLE or n_groups < 2:
        return None
    known, weak = (np.column_stack([justified.features, one]) for one in (justified.summaries, justified.weaker))
    kinds = (*justified.categorical, *(False,) * LEARNERS)
    sets = (
        (known, kinds),
        (np.column_stack([known, justified.scores]), (*kinds, False)),
        (weak, kinds),
        (np.column_stack([weak, justified.stand_ins[0]]), (*kinds, False)),
    )
    of_row = np.full(len(groups), -1, dtype=np.int64)
    of_row[rows] = codes
    halves = [(rows[justified.fold[rows] != half], rows[justified.fold[rows] == half]) for half in (0, 1)]
    if min(len(one) for half in halves for one in half) < 20:
        return None
    # The same people stop both observers of a comparison, so that chance does not tell them apart.
    seeds = [int(rng.integers(2**31)) for _ in halves]

    def loss(columns: Doubles, kinds: tuple[bool, ...], later: int) -> Doubles:
        return np.concatenate(
            [
                _log2_loss(columns, kinds, of_row, fit, test, n_groups, seed=seed + later)
                for (fit, test), seed in zip(halves, seeds, strict=True)
            ]
        )

    none, own, weaker, better = (loss(columns, which, 0) for columns, which in sets)
    first = _claimed(justified, none, own, weaker, better, None, level=level)
    if first.bits == 0:
        return first  # the stand-ins can only take a claim away
    stand_ins = [
        loss(np.column_stack([known, one]), (*kinds, False), i) for i, one in enumerate(justified.stand_ins, 1)
    ]
    return _claimed(justified, none, own, weaker, better, np.stack(stand_ins), level=level)


def _claimed(
    justified: Justified,
    none: Doubles,
    own: Doubles,
    weaker: Doubles,
    better: Doubles,
    stand_ins: Doubles | None,
    *,
    level: float,
) -> UsableBits:
    """What may be said: the gain, less the placebo, less what chance does to those tried and to the learners.

    Without stand-ins it is a first look, which errs upwards: the better of the observers that lack the score is not
    known yet, nor what chance does to a learner.
    """
    z, root = normal_quantile(level), np.sqrt(len(none))
    reference, fits = none, 0.0
    if stand_ins is not None:
        chance = stand_ins.mean(axis=1)
        fits = float(special.stdtrit(len(chance) - 1, level) * chance.std(ddof=1) * np.sqrt(1 + 1 / len(chance)))
        reference = none if none.mean() <= chance.mean() else stand_ins.mean(axis=0)
    gain, step = np.clip(reference - own, -CLIP, CLIP), np.clip(weaker - better, -CLIP, CLIP)
    estimate = float(gain.mean())
    low = estimate - float(np.hypot(z * gain.std(ddof=1) / root, fits))
    placebo = STEPS * max(0.0, float(step.mean()))
    high = placebo + STEPS * z * float(step.std(ddof=1)) / root
    excess = gain - STEPS * step if placebo > 0 else gain
    beyond = float(excess.mean()) - float(np.hypot(z * excess.std(ddof=1) / root, fits))
    sure = min(low, beyond) > 0 and justified.learnable < MAX_LEARNABLE
    return UsableBits(
        bits=estimate if sure else 0.0,
        estimate=estimate,
        low=min(low, beyond) if sure else 0.0,
        placebo=placebo,
        placebo_high=float(high),
        explained=justified.explained,
        learnable=justified.learnable,
        people=len(gain),
    )


def _merged(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same groups, those beyond the largest seven as one where there are more than eight."""
    sizes = np.bincount(codes)
    if len(sizes) <= MAX_GROUPS:
        return codes
    place = np.full(len(sizes), MAX_GROUPS - 1, dtype=np.int64)
    place[np.argsort(-sizes, kind="stable")[: MAX_GROUPS - 1]] = np.arange(MAX_GROUPS - 1)
    return place[codes]


def _mixed(summaries: Doubles, wanted: Doubles) -> Doubles:
    """The learners' estimates weighted by how near each is."""
    errors = np.maximum(((summaries - wanted[:, None]) ** 2).mean(axis=0), 1e-300)
    weights = (errors.min() / errors) ** 2
    return np.asarray(summaries @ (weights / weights.sum()))


def _log2_loss(
    columns: Doubles,
    categorical: tuple[bool, ...],
    codes: npt.NDArray[np.int64],
    fit: npt.NDArray[np.int64],
    test: npt.NDArray[np.int64],
    n_groups: int,
    *,
    seed: int,
) -> Doubles:
    """The held-out loss of one observer, in bits per person."""
    present = np.flatnonzero(np.bincount(codes[fit], minlength=n_groups) > 1)
    base = (np.bincount(codes[fit], minlength=n_groups) + 0.5) / (len(fit) + 0.5 * n_groups)
    guess = np.tile(base, (len(test), 1))
    if len(present) > 1:
        fit = fit[np.isin(codes[fit], present)]
        wanted = np.searchsorted(present, codes[fit])
        learned = boosted(columns[fit], categorical, wanted, np.random.default_rng(seed), n_groups=len(present))
        guess[:, present] = 0.99 * learned.predict(columns[test]) + 0.01 * guess[:, present]
        guess /= guess.sum(axis=1, keepdims=True)
    return np.asarray(-np.log2(guess[np.arange(len(test)), codes[test]]))


def _swapped(order: Doubles, residuals: Doubles, rng: np.random.Generator) -> Doubles:
    """Residuals changed among people next to each other in the given order."""
    rank = np.argsort(order, kind="stable")
    found = np.empty(len(order))
    found[rank] = residuals[rank[np.lexsort((rng.random(len(order)), np.arange(len(order)) // NEIGHBOURS))]]
    return found
