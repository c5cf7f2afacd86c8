"""Training a native network further: Adam on plain arrays, and a penalty on pairs that should be scored alike.

Single-threaded on purpose: the networks are small, and the result must not depend on the number of cores. Inputs are
standardised while training and the scaling is folded back afterwards, so that steps mean the same for every input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.errors import ModelError
from fairbits.models.native.network import Network, forward

Floats = npt.NDArray[Any]
#: Draws so many pairs of encoded rows whose scores ought to be equal.
Pairs = Callable[[np.random.Generator, int], tuple[Floats, Floats]]

_DECAY_1, _DECAY_2, _TINY = 0.9, 0.999, 1e-8
#: Rows that the prejudice of a step is estimated by, and of each group at least.
_DRAWN, _FEWEST_DRAWN = 512, 16
#: Mean scores of groups stay this far from 0 and 1, where their log-odds end.
_LOWEST = 1e-4


@dataclass(frozen=True, slots=True)
class Fitting:
    """How long and how hard to train. The learning rate falls to zero over the updates."""

    updates: int = 2000
    batch: int = 256
    learning_rate: float = 1e-3
    consistency: float = 0.0
    whole: bool = False
    prejudice: float = 0.0


def refit(
    network: Network,
    inputs: npt.ArrayLike,
    targets: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    fitting: Fitting | None = None,
    pairs: Pairs | None = None,
    frozen: npt.ArrayLike = (),
    sample_weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> Network:
    """A network of the same shape, trained further on encoded rows."""
    from threadpoolctl import threadpool_limits

    fitting = fitting or Fitting()
    rows, wanted = np.asarray(inputs, dtype=np.float32), np.asarray(targets)
    weights = np.ones(len(rows)) if sample_weights is None else np.asarray(sample_weights, dtype=np.float64)
    weights = (weights / weights.mean()).astype(np.float32)
    members = None if groups is None else _Members(np.asarray(groups))
    scaling = Scaling(rows)
    learner, scaled = Learner(scaling.unfolded(network), targets=wanted), scaling(rows)
    kept = np.asarray(frozen, dtype=np.int64)
    with threadpool_limits(1):
        for mine, rate in _steps(len(rows), fitting, rng):
            loss = learner.slopes(scaled[mine], wanted[mine], weights[mine])
            if pairs is not None and fitting.consistency:
                one, other = pairs(rng, fitting.batch // 2 or 1)
                loss.add(learner.pair_slopes(scaling(one), scaling(other), whole=fitting.whole), fitting.consistency)
            if members is not None:
                loss.add(learner.prejudice_slopes(scaled[members.drawn(rng)], members.shares), fitting.prejudice)
            loss.weights[0][kept] = 0
            learner.step(loss, rate)
    return scaling.folded(learner.network())


class _Members:
    """The rows of every group, and how many people it has: as many of each are drawn, so that small ones are heard."""

    def __init__(self, groups: npt.NDArray[Any]):
        self.rows = [np.flatnonzero(groups == value) for value in np.unique(groups)]
        self.shares = np.array([len(one) for one in self.rows]) / len(groups)

    def drawn(self, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Row numbers, the same number from every group, group after group."""
        each = max(_FEWEST_DRAWN, _DRAWN // len(self.rows))
        return np.concatenate([one[rng.integers(0, len(one), each)] for one in self.rows])


@dataclass(slots=True)
class Slopes:
    """A loss, and its slope along every weight and bias, in one array as the learner has them."""

    loss: float
    flat: Floats
    weights: list[Floats]

    def add(self, other: Slopes, factor: float) -> None:
        self.loss += factor * other.loss
        self.flat += self.flat.dtype.type(factor) * other.flat


class Learner:
    """The arrays of a network while they change. Losses are means over rows; values count in units of their spread.

    All of them are views of one array: an update is then a few operations, however many layers there are.
    """

    def __init__(self, network: Network, *, targets: Floats, dtype: Any = np.float32):
        self._origin = network
        self.flat = np.concatenate([a.ravel() for a in (*network.weights, *network.biases)]).astype(dtype)
        self.weights, self.biases = self._views(self.flat)
        self._unit = (float(np.std(targets)) if network.head == "linear" else 1.0) or 1.0
        self._time = 0
        self._first, self._second = np.zeros_like(self.flat), np.zeros_like(self.flat)

    def _views(self, flat: Floats) -> tuple[list[Floats], list[Floats]]:
        pieces, start = [], 0
        for array in (*self._origin.weights, *self._origin.biases):
            pieces.append(flat[start : start + array.size].reshape(array.shape))
            start += array.size
        return pieces[: len(pieces) // 2], pieces[len(pieces) // 2 :]

    def network(self) -> Network:
        arrays = [tuple(a.astype(np.float32) for a in group) for group in (self.weights, self.biases)]
        if not all(np.isfinite(a).all() for group in arrays for a in group):
            raise ModelError("training diverged: the weights are no longer finite; choose a smaller learning rate.")
        return replace(self._origin, weights=arrays[0], biases=arrays[1])

    def slopes(self, rows: Floats, targets: Floats, weights: Floats) -> Slopes:
        """Cross-entropy against classes, or the squared error against values, with its slopes.

        Targets of shape (n, classes) are probabilities: the cross-entropy against them (Hinton et al. 2015).
        """
        befores, afters = self._forward(rows)
        slope, losses = self._losses(afters[-1], targets)
        return self._backward(rows, befores, afters, slope * weights[:, None], float((losses * weights).mean()))

    def _losses(self, logits: Floats, targets: Floats) -> tuple[Floats, Floats]:
        if self._origin.head == "linear":
            miss = (logits[:, 0] - targets.astype(logits.dtype)) / logits.dtype.type(self._unit)
            return (2 * miss / self._unit)[:, None], miss**2
        wanted, soft = targets.astype(logits.dtype), targets.ndim == 2
        if soft and self._origin.head == "sigmoid":
            return special.expit(logits) - wanted[:, 1:], np.logaddexp(0, logits[:, 0]) - wanted[:, 1] * logits[:, 0]
        if self._origin.head == "sigmoid":
            sign = np.where(targets == 1, 1, -1).astype(logits.dtype)
            margin = sign * logits[:, 0]
            return (-sign * special.expit(-margin))[:, None], np.logaddexp(0, -margin)
        logs = _log_masses(logits)
        slope = np.exp(logs)
        if soft:
            return slope - wanted, -(wanted * logs).sum(axis=1)
        own = (np.arange(len(logits)), targets.astype(np.int64))
        slope[own] -= 1
        return slope, -logs[own]

    def prejudice_slopes(self, rows: Floats, shares: npt.NDArray[np.float64]) -> Slopes:
        """What the decision tells about the group, in nats: the mutual information of both (Kamishima et al. 2012).

        With p_s the mean score of group s and p that of everybody, it is the mean over groups of KL(p_s ‖ p), whose
        slope along the score of one of n_s people is share_s / n_s · (logit p_s − logit p).
        """
        befores, afters = self._forward(rows)
        scores, tilt = self._scores(afters[-1])
        means = np.clip(scores.reshape(len(shares), -1).mean(axis=1, dtype=np.float64), _LOWEST, 1 - _LOWEST)
        base = float(shares @ means)
        gap = special.logit(means) - special.logit(base)
        loss = float(shares @ (special.rel_entr(means, base) + special.rel_entr(1 - means, 1 - base)))
        pull = np.repeat(shares * len(shares) * gap, len(rows) // len(shares))  # `_backward` divides by all rows
        return self._backward(rows, befores, afters, (tilt * pull[:, None]).astype(rows.dtype), loss)

    def pair_slopes(self, one: Floats, other: Floats, *, whole: bool = False) -> Slopes:
        """The squared difference between the scores of pairs, with its slopes."""
        rows = np.concatenate([one, other])
        befores, afters = self._forward(rows)
        if whole and self._origin.head == "softmax":
            masses = special.softmax(afters[-1], axis=1)
            apart = masses[: len(one)] - masses[len(one) :]
            both = np.concatenate([apart, -apart])
            slope = 4 * masses * (both - (both * masses).sum(axis=1, keepdims=True))
            return self._backward(rows, befores, afters, slope, float(np.mean((apart**2).sum(axis=1))))
        scores, tilt = self._scores(afters[-1])
        difference = scores[: len(one)] - scores[len(one) :]
        # Twice the mean over the rows of both halves: each pair counts once.
        slope = tilt * (4 * np.concatenate([difference, -difference]))[:, None]
        return self._backward(rows, befores, afters, slope.astype(rows.dtype), float(np.mean(difference**2)))

    def step(self, slopes: Slopes, rate: float) -> None:
        self._time += 1
        rate *= float(np.sqrt(1 - _DECAY_2**self._time) / (1 - _DECAY_1**self._time))
        slope = slopes.flat
        self._first += (1 - _DECAY_1) * (slope - self._first)
        self._second += (1 - _DECAY_2) * (slope * slope - self._second)
        self.flat -= self.flat.dtype.type(rate) * self._first / (np.sqrt(self._second) + _TINY)

    def _scores(self, logits: Floats) -> tuple[Floats, Floats]:
        """The score of each row, and its slope along the logits."""
        network = self._origin
        if network.head == "linear":
            return logits[:, 0] / self._unit, np.full_like(logits, 1 / self._unit)
        if network.head == "sigmoid":
            sign = 1 if network.favourable == 1 else -1
            score = special.expit(sign * logits[:, 0])
            return score, (sign * score * (1 - score))[:, None]
        masses = special.softmax(logits, axis=1)
        score = masses[:, network.favourable]
        tilt = -masses * score[:, None]
        tilt[:, network.favourable] += score
        return score, tilt

    def _forward(self, rows: Floats) -> tuple[list[Floats], list[Floats]]:
        return forward(self.weights, self.biases, self._origin.activations_after, rows)

    def _backward(
        self, rows: Floats, befores: Sequence[Floats], afters: Sequence[Floats], slope: Floats, loss: float
    ) -> Slopes:
        """From the slope along each row's logits to the mean slope along the arrays."""
        slope = slope / slope.dtype.type(len(rows))
        flat = np.empty_like(self.flat)
        weights, biases = self._views(flat)
        for i in range(len(self.weights) - 1, -1, -1):
            np.matmul((afters[i - 1] if i else rows).T, slope, out=weights[i])
            slope.sum(axis=0, out=biases[i])
            if i:
                slope = (slope @ self.weights[i].T) * self._origin.activations_after[i - 1].slope(befores[i - 1])
        return Slopes(loss, flat, weights)


def _log_masses(logits: Floats) -> Floats:
    """Logarithms of the softmax by the steps of SciPy, bit for bit, without its look at kinds of arrays."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


class Scaling:
    """Inputs in units of their spread, and networks that take them so."""

    def __init__(self, rows: Floats):
        self.mean, self.spread = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
        self.spread[self.spread == 0] = 1.0
        # The same as the hot loop takes it.
        self._shift, self._factor = self.mean.astype(np.float32), (1 / self.spread).astype(np.float32)

    def __call__(self, rows: Floats) -> Floats:
        return np.asarray((rows - self._shift) * self._factor)

    def unfolded(self, network: Network) -> Network:
        first = network.weights[0].astype(np.float64)
        return _with_first(network, first * self.spread[:, None], network.biases[0] + self.mean @ first)

    def folded(self, network: Network) -> Network:
        first = network.weights[0].astype(np.float64) / self.spread[:, None]
        return _with_first(network, first, network.biases[0] - self.mean @ first)


def _with_first(network: Network, weights: Floats, bias: Floats) -> Network:
    w, b = weights.astype(np.float32), bias.astype(np.float32)
    return replace(network, weights=(w, *network.weights[1:]), biases=(b, *network.biases[1:]))


def _steps(rows: int, fitting: Fitting, rng: np.random.Generator) -> Iterator[tuple[npt.NDArray[np.int64], float]]:
    """Batches of row numbers, everybody once per epoch, with the learning rate of each."""
    size, order, place = min(fitting.batch, rows), rng.permutation(rows), 0
    for update in range(fitting.updates):
        if place + size > rows:
            order, place = rng.permutation(rows), 0
        yield order[place : place + size], fitting.learning_rate * (1 - update / fitting.updates)
        place += size
