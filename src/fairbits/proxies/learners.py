"""Two kinds of learners that err in different places: boosted trees, and a ridge over random waves.

Both are made for hundreds of fits in a row over a few thousand people: arrays and one compiled kernel, no threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.proxies.oblivious_trees import LOGIT, SOFTMAX, SQUARES, boost_trees, sum_trees

#: Cut points of a column: for guessing a group, and for learning a number from many people.
BINS, FINE_BINS, MANY_PEOPLE = 32, 64, 2000
#: Trees at most, for groups and for numbers; levels, how fast they learn, and how many may pass without a gain.
TREES, NUMBER_TREES, DEPTH, RATE, RIDGE, PATIENCE, NUMBER_PATIENCE = 150, 400, 4, 0.15, 3.0, 8, 20
#: The share of people who only say when to stop.
HELD_OUT = 0.15
#: A category with more labels is ranked by what is to be learned; one with fewer gets a column per label.
MANY_LABELS = 12
#: Random waves at most, and people for each at least.
WAVES, PEOPLE_PER_WAVE = 300, 4

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """Trees grown on some people, to be asked about others; see :func:`boosted`."""

    cuts: tuple[Floats, ...]
    ranks: tuple[tuple[int, Floats, Floats], ...]
    start: Floats
    n_trees: int
    splits: Integers
    leaves: Floats
    loss: int
    finished: bool  # whether held-out people no longer gained; otherwise more trees would have learned more

    def sums(self, features: Floats) -> Floats:
        """Sums of the trees, an output per row: a mean, a logit, or the exponents of a softmax."""
        bins = _binned(_ranked(features, self.ranks), self.cuts)
        found = np.repeat(self.start[:, None], len(features), axis=1)
        sum_trees(bins, self.n_trees, self.splits.shape[2], self.splits, self.leaves, found)
        return found

    def probabilities(self, features: Floats) -> Floats:
        """Probability of each group."""
        sums = self.sums(features)
        if self.loss == LOGIT:
            p = special.expit(sums[0])
            return np.column_stack([1.0 - p, p])
        return np.asarray(special.softmax(sums, axis=0).T)


def boosted(
    features: Floats,
    categorical: tuple[bool, ...],
    wanted: npt.NDArray[np.floating] | Integers,
    rng: np.random.Generator,
    *,
    n_groups: int = 0,
) -> Boosted:
    """Boosted oblivious trees that stop where held-out people no longer gain."""
    n = len(wanted)
    order = rng.permutation(n)
    n_fit = max(1, n - max(1, int(HELD_OUT * n)))
    own = np.asarray(wanted, dtype=np.float64)[order]
    if n_groups == 0:
        loss, spread = SQUARES, float(own[:n_fit].std()) or 1.0
        start = np.array([own[:n_fit].mean()])
        target, outputs = (own - start[0]) / spread, 1
    else:
        loss, spread, outputs = (LOGIT, 1.0, 1) if n_groups == 2 else (SOFTMAX, 1.0, n_groups)
        start, target = np.zeros(outputs), own
    ranks = _ranks(features[order[:n_fit]], categorical, own[:n_fit], n_groups)
    columns = _ranked(features, ranks)[order]
    n_bins = FINE_BINS if n_groups == 0 and n_fit >= MANY_PEOPLE else BINS
    max_trees, patience = (NUMBER_TREES, NUMBER_PATIENCE) if n_groups == 0 else (TREES, PATIENCE)
    cuts = tuple(_cuts(column, n_bins) for column in columns[:n_fit].T)
    splits = np.zeros((max_trees, outputs, DEPTH, 2), dtype=np.int64)
    leaves = np.zeros((max_trees, outputs, 2**DEPTH))
    bins = _binned(columns, cuts)
    n_trees = int(
        boost_trees(bins, target, n_fit, n_bins, outputs, loss, max_trees, DEPTH, RATE, RIDGE, patience, splits, leaves)
    )
    finished = n_trees <= max_trees - patience
    return Boosted(cuts, ranks, start, n_trees, splits[:n_trees], leaves[:n_trees] * spread, loss, finished)


@dataclass(frozen=True, slots=True, eq=False)
class Waves:
    """People as random waves of their features (Rahimi and Recht 2007), the same for every fit."""

    values: Floats

    @classmethod
    def of(cls, features: Floats, categorical: tuple[bool, ...], rng: np.random.Generator) -> Waves:
        """Random waves of people's features.

        Numbers enter as normal scores of their ranks, labels as columns; there are waves of three lengths, and the
        columns themselves.
        """
        base = _normal_scores(one_hot(features, categorical))
        n, width = base.shape
        count = int(np.clip(n // PEOPLE_PER_WAVE, 10, WAVES))
        lengths = np.resize([0.7, 1.5, 3.0], count) * np.sqrt(max(1.0, width / 2))
        angles = base @ (rng.normal(size=(width, count)) / lengths) + rng.uniform(0, 2 * np.pi, count)
        return cls(np.concatenate([np.ones((n, 1)), base, np.cos(angles) * np.sqrt(2)], axis=1))

    def mean(self, wanted: Floats, fit: Integers) -> Floats:
        """E[wanted] of everybody by ridge regression; its weight by generalised cross-validation (Golub 1979)."""
        x, centre = self.values[fit], float(wanted[fit].mean())
        y = wanted[fit] - centre
        size, n = x.shape[1], len(fit)
        roots, axes = np.linalg.eigh(x.T @ x)
        roots = np.maximum(roots, 0.0)
        along = axes.T @ (x.T @ y)
        best, weights = np.inf, np.zeros(size)
        for ridge in np.geomspace(1e-3, 1e3, 13):
            w = along / (roots + ridge)
            left = float(y @ y - 2 * w @ along + (w * w) @ roots)
            freedom = float((roots / (roots + ridge)).sum())
            score = left / max(1e-9, 1 - freedom / n) ** 2
            if score < best:
                best, weights = score, axes @ w
        return np.asarray(self.values @ weights + centre)


def one_hot(features: Floats, categorical: tuple[bool, ...]) -> Floats:
    """Numbers as they are, categories of few labels as a column for each."""
    parts = []
    for column, is_one in zip(features.T, categorical, strict=True):
        labels = np.unique(column)
        wide = is_one and 2 < len(labels) <= MANY_LABELS
        parts.append((column[:, None] == labels[None]).astype(np.float64) if wide else column[:, None])
    return np.concatenate(parts, axis=1)


def _normal_scores(columns: Floats) -> Floats:
    """Each column as the normal quantiles of its ranks: no tail is heavy after that."""
    found = np.empty(columns.shape)
    for i, column in enumerate(columns.T):
        values, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        if len(values) <= 2:
            found[:, i] = place - place.mean()
            continue
        middle = (np.cumsum(counts) - 0.5 * counts) / len(column)
        found[:, i] = special.ndtri(middle)[place]
    return found


def _ranks(
    features: Floats, categorical: tuple[bool, ...], wanted: Floats, n_groups: int
) -> tuple[tuple[int, Floats, Floats], ...]:
    """Labels of large categories by what is to be learned: column, labels, smoothed means."""
    found = []
    targets = (
        [wanted] if n_groups <= 2 else [np.asarray(wanted == k, dtype=np.float64) for k in range(min(3, n_groups))]
    )
    for i, is_one in enumerate(categorical):
        labels, place = np.unique(features[:, i], return_inverse=True)
        if not is_one or len(labels) <= MANY_LABELS:
            continue
        counts = np.bincount(place)
        for one in targets:
            sums = np.bincount(place, weights=one)
            found.append((i, labels, (sums + 10 * one.mean()) / (counts + 10)))
    return tuple(found)


def _ranked(features: Floats, ranks: tuple[tuple[int, Floats, Floats], ...]) -> Floats:
    """The columns, and for each ranking one more; labels nobody has learned get the middle."""
    if not ranks:
        return features
    more = []
    for i, labels, means in ranks:
        place = np.minimum(np.searchsorted(labels, features[:, i]), len(labels) - 1)
        more.append(np.where(labels[place] == features[:, i], means[place], np.median(means)))
    return np.column_stack([features, *more])


def _cuts(column: Floats, n_bins: int) -> Floats:
    values = np.unique(column)
    if len(values) <= n_bins:
        return np.asarray((values[1:] + values[:-1]) / 2)
    return np.unique(np.quantile(column, np.linspace(0, 1, n_bins + 1)[1:-1]))


def _binned(columns: Floats, cuts: tuple[Floats, ...]) -> npt.NDArray[np.uint8]:
    found = np.empty(columns.shape, dtype=np.uint8)
    for i, own in enumerate(cuts):
        found[:, i] = np.searchsorted(own, columns[:, i], side="left")
    return found
