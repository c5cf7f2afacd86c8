"""`adf`: gradients lead real people to the decision boundary, then along it.

Zhang, Wang, Sun, Dong, Wang, Wang, Dong, Dai, "White-box Fairness Testing through Adversarial Sampling", ICSE 2020.
Global: up to ten steps along the signs on which the loss gradients of two twins agree, until twins get different
decisions. Local: one attribute at a time, those with small gradients more often. Where we differ from the public
code, and why:

* a person has no protected value of its own here, so the pair is the two twins furthest apart in score (with two twins
  that is the pair of the paper);
* the gradient is that of the logit margin, turned to point away from the present decision: the signs of the loss
  gradient, without its fading to zero where the network is certain;
* a local step is one evaluation, accepted by Metropolis at temperature 1 as its basin hopping does; the inner
  L-BFGS-B of the public code cannot move on integers and re-evaluates the same point;
* seeds and walkers advance together; categories are moved as wholes.

`eidig`: ADF with the gradient of the output, momentum, and gradients that are used several times; `maft`: the same
with slopes that are guessed from the scores of neighbours.

Zhang, Zhang, Zhang, "Efficient White-Box Fairness Testing through Gradient Search", ISSTA 2021. Where we differ from
the public code, and why:

* the gradient is that of the logit margin: the output's has the same signs, but fades to zero where the network is
  certain, which would make the momentum forget everything it met on the way;
* a person has no protected value of its own here, so the pair is the two twins furthest apart in score;
* seeds and walkers advance together, each with its own momentum and its own count of successes; categories are moved
  as wholes, and a step at a bound is turned round.

Wang, Zhang, Yang, Shao, Zhang, "MAFT: Efficient Model-Agnostic Fairness Testing for Deep Neural Networks via Zero-Order
Gradient Search", ICSE 2024: a slope is the difference of two scores one step apart; all attributes of all people are
asked about in one batch, one query per attribute and twin, all of them counted. Beside the above, we differ in this:

* at the upper bound the neighbour is the one below: the public code asks about people outside the domain;
* the step is the attribute's own (1 for integers and categories), so that real attributes have slopes as well;
* scores are what a black box gives, so slopes are those of the score.

`neuronfair`: towards people for whom the neurons that see the protected attributes differ most.

Zheng, Chen, Du, Zhang, Cheng, Ji, Wang, Yu, Chen, "NeuronFair: Interpretable White-Box Fairness Testing through
Biased Neuron Identification", ICSE 2022. The biased layer is the one whose outputs differ most between twins, its
biased neurons the half that differ most; people move so that these tell the twins apart. The network must offer its
layers' outputs and their gradients, which native networks do. Where we differ from the public code, and why:

* the biased layer and neurons are found anew on the seeds of every round, so that rounds share nothing;
* differences are relative to the layer's own size: otherwise the layer with the largest weights always wins;
* the cross-entropy is between the softmax of both twins' biased neurons, which is defined for every activation, and
  its gradient is taken at both twins, because moving a person moves both;
* a person whose direction repeats gets a random sign on one attribute; local phase and pair of twins as in `adf`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.engine import Evaluation
from fairbits.functions import softmax
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices
from fairbits.search.strategies.dice import agreed, draw, hop_plan, inverse
from fairbits.search.strategies.walks import Direction, Guide, Start, WalkStep, apart, approach, to_boundary, walk
from fairbits.search.strategy import AT_LEAST_0, AT_LEAST_1, Limit, Strategy, population


@dataclass(frozen=True)
class Adf(Strategy):
    """The paper's parameters under the paper's defaults."""

    seeds: int | None = None  # how many advance together; None: by the number of twins
    global_moves: int = 10
    local_moves: int = 1000

    name: ClassVar[str] = "adf"
    needs_gradients: ClassVar[bool] = True
    most_seeds: ClassVar[int] = 4096
    limits: ClassVar[Mapping[str, Limit]] = {"seeds": AT_LEAST_1, "global_moves": AT_LEAST_1, "local_moves": AT_LEAST_0}

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Lead some seeds to the decision boundary, and walk along it from each that gets there."""
        seeds = self.seeds or min(self.most_seeds, population(oracle.evaluator.m))
        direction = self._direction(oracle, seeds, rng)
        start = approach(oracle, rng, seeds=seeds, moves=self.global_moves, direction=direction)
        if len(start):
            self._walk(oracle, start, rng)

    def _direction(self, oracle: Oracle, seeds: int, rng: np.random.Generator) -> Direction:  # noqa: ARG002
        """Which way the seeds go."""
        return Momentum(oracle, pair_of_slopes, seeds, 0.0)

    def _walk(self, oracle: Oracle, start: Start, rng: np.random.Generator) -> None:
        """The local phase, from people whose figures are known already."""
        walk(oracle, start, SlopeGuide(oracle, start.people, oracle.again(start.people)), rng, steps=self.local_moves)


class SlopeGuide(Guide):
    """Attributes move with a probability inverse to the summed slopes at the two extreme twins."""

    def __init__(self, oracle: Oracle, people: Codes, figures: Evaluation):
        self._oracle = oracle
        self._weights, _ = hop_plan(oracle, people, figures)

    def choose(self, rng: np.random.Generator) -> tuple[Indices, Codes]:
        """Draw an attribute for each walker, small slopes more often, and a direction."""
        return draw(self._weights, rng), rng.choice([-1.0, 1.0], len(self._weights))

    def learn(self, outcome: WalkStep) -> None:
        """Take the slopes at the new place of walkers who stay there."""
        kept = outcome.kept
        self._weights[kept], _ = hop_plan(self._oracle, outcome.people[kept], outcome.figures.rows(kept))


def pair_of_slopes(oracle: Oracle, people: Codes, figures: Evaluation) -> tuple[Codes, Codes]:
    """Slopes at the twins with the lowest and the highest score."""
    return oracle.gradients(people, figures.low_twin), oracle.gradients(people, figures.high_twin)


#: Slopes at the twins with the lowest and the highest score: (n, free) each.
SlopesOf = Callable[[Oracle, Codes, Evaluation], tuple[Codes, Codes]]


_MOMENTUM: Limit = ("it must be 0 or more, and below 1", lambda value: 0 <= value < 1)


@dataclass(frozen=True)
class Eidig(Adf):
    """The paper's parameters under the paper's defaults."""

    momentum: float = 0.5
    patience: int = 5  # successes after which the slopes are looked at again

    name: ClassVar[str] = "eidig"
    limits: ClassVar[Mapping[str, Limit]] = {**Adf.limits, "momentum": _MOMENTUM, "patience": AT_LEAST_1}
    #: Where the slopes at both extreme twins come from.
    slopes = staticmethod(pair_of_slopes)

    def _direction(self, oracle: Oracle, seeds: int, rng: np.random.Generator) -> Direction:  # noqa: ARG002
        return Momentum(oracle, self.slopes, seeds, self.momentum)

    def _walk(self, oracle: Oracle, start: Start, rng: np.random.Generator) -> None:
        walk_from_start(oracle, start, rng, self.slopes, steps=self.local_moves, patience=self.patience)


class Momentum:
    """Signs on which the slopes of both extreme twins agree, each with some of the slopes before."""

    def __init__(self, oracle: Oracle, slopes: SlopesOf, seeds: int, share: float):
        self._oracle, self._slopes, self._share = oracle, slopes, share
        self._low = np.zeros((seeds, len(oracle.problem.free)))
        self._high = np.zeros_like(self._low)

    def __call__(self, people: Codes, figures: Evaluation, who: Indices) -> Codes:
        """The direction of the people at these places among the seeds."""
        low, high = self._slopes(self._oracle, people, figures)
        self._low[who] = self._share * self._low[who] + low
        self._high[who] = self._share * self._high[who] + high
        return to_boundary(self._oracle, figures) * agreed(self._low[who], self._high[who])


def walk_from_start(
    oracle: Oracle, start: Start, rng: np.random.Generator, slopes: SlopesOf, *, steps: int, patience: int
) -> None:
    """Change one attribute a step; a failure goes back to the start, and slopes are renewed after some successes."""
    problem = oracle.problem
    at_start = inverse(*slopes(oracle, start.people, oracle.again(start.people)))
    current, weights = start.people.copy(), at_start.copy()
    successes: npt.NDArray[np.int64] = np.zeros(len(start), dtype=np.int64)
    for _ in range(steps):
        hopped = problem.step(current, draw(weights, rng), rng.choice([-1.0, 1.0], len(start)))
        hopped = problem.limit(hopped, start.anchors, rng, current=current)
        found = oracle.ask(hopped, seeds=start.seeds, origin="local")
        hit = apart(oracle, found)
        current = np.where(hit[:, None], hopped, start.people)
        weights[~hit] = at_start[~hit]
        successes = np.where(hit, successes + 1, 0)
        due = np.flatnonzero(successes >= patience)
        weights[due] = inverse(*slopes(oracle, hopped[due], found.rows(due)))
        successes[due] = 0


def guessed_slopes(oracle: Oracle, people: Codes, figures: Evaluation) -> tuple[Codes, Codes]:
    """Change of the score per stride of each free attribute, at the twins with the lowest and the highest score."""
    problem = oracle.problem
    n, free = len(people), len(problem.free)
    values = people[:, problem.free]
    ahead = np.where(values + problem.stride <= problem.high, 1.0, -1.0)
    near = np.clip(values + ahead * problem.stride, problem.low, problem.high)
    neighbours = np.repeat(people[:, None, :], free, axis=1)
    neighbours[:, np.arange(free), problem.free] = near
    flat = neighbours.reshape(n * free, people.shape[1])

    def slopes(twins: Indices, scores: Codes) -> Codes:
        reached = oracle.scores_at(flat, np.repeat(twins, free)).reshape(n, free)
        return ahead * (reached - scores[:, None])

    # The scores of the people themselves are known: they are the lowest and the highest of their twins'.
    return (
        slopes(figures.low_twin.astype(np.int64), figures.low.astype(np.float64)),
        slopes(figures.high_twin.astype(np.int64), figures.high.astype(np.float64)),
    )


class Maft(Eidig):
    """EIDIG with guessed slopes, under the same parameters."""

    name: ClassVar[str] = "maft"
    needs_gradients: ClassVar[bool] = False
    slopes = staticmethod(guessed_slopes)


#: People whose activations decide which neurons are biased.
SAMPLE = 512


@dataclass(frozen=True)
class NeuronFair(Adf):
    """ADF's phases towards biased neurons, under the paper's defaults."""

    global_moves: int = 40

    name: ClassVar[str] = "neuronfair"
    needs_layers: ClassVar[bool] = True
    most_seeds: ClassVar[int] = 512  # forty moves of very many would leave no time to walk

    def _direction(self, oracle: Oracle, seeds: int, rng: np.random.Generator) -> Direction:
        return BiasedNeurons(oracle, seeds, rng)


class BiasedNeurons:
    """The way in which the biased neurons of two twins part fastest."""

    def __init__(self, oracle: Oracle, seeds: int, rng: np.random.Generator):
        self._oracle, self._rng = oracle, rng
        self._before = np.zeros((seeds, len(oracle.problem.free)))
        self._chosen: tuple[int, Indices] | None = None

    def __call__(self, people: Codes, figures: Evaluation, who: Indices) -> Codes:
        """Signs for the people at these places among the seeds."""
        low, high = figures.low_twin, figures.high_twin
        if self._chosen is None:
            some = slice(0, SAMPLE)
            pair = [self._oracle.layers(people[some], twins[some]) for twins in (low, high)]
            self._chosen = biased_neurons(pair[0], pair[1])
        layer, neurons = self._chosen
        one, other = (self._oracle.layers(people, twins)[layer] for twins in (low, high))
        part = softmax(one[:, neurons], axis=1) - softmax(other[:, neurons], axis=1)
        slope = np.zeros_like(one)
        slope[:, neurons] = part
        rise = self._oracle.layer_gradients(people, low, layer, slope)
        rise = rise + self._oracle.layer_gradients(people, high, layer, -slope)
        signs = np.sign(rise)
        repeated = np.flatnonzero((signs == self._before[who]).all(axis=1))
        self._before[who] = signs
        attribute = self._rng.integers(0, signs.shape[1], len(repeated))
        signs[repeated, attribute] = self._rng.choice([-1.0, 1.0], len(repeated))
        return signs


def biased_neurons(
    one: tuple[npt.NDArray[np.float32], ...], other: tuple[npt.NDArray[np.float32], ...]
) -> tuple[int, Indices]:
    """The hidden layer whose outputs differ most between twins, and the half of its neurons that differ most.

    A network without hidden layers has only its output to look at.
    """
    hidden = max(len(one) - 1, 1)
    gaps = [np.abs(a - b).mean(axis=0) for a, b in zip(one[:hidden], other[:hidden], strict=True)]
    sizes = [max(float(np.abs(a).mean()), 1e-12) for a in one[:hidden]]
    layer = int(np.argmax([gap.mean() / size for gap, size in zip(gaps, sizes, strict=True)]))
    return layer, np.sort(np.argsort(-gaps[layer], kind="stable")[: max(1, len(gaps[layer]) // 2)])
