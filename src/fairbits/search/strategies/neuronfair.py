"""`neuronfair`: towards people for whom the neurons that see the protected attributes differ most.

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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.engine import Evaluation
from fairbits.functions import softmax
from fairbits.search.oracle import Oracle
from fairbits.search.problem import Indices
from fairbits.search.strategies.adf import PHASES, walk_slopes
from fairbits.search.strategies.walks import approach
from fairbits.search.strategy import Limit, Strategy, population

#: People whose activations decide which neurons are biased.
SAMPLE = 512
#: Seeds that advance together, at most: forty moves of very many would leave no time to walk.
LARGEST = 512


@dataclass(frozen=True)
class NeuronFair(Strategy):
    """The paper's parameters under the paper's defaults."""

    seeds: int | None = None
    global_moves: int = 40
    local_moves: int = 1000

    name: ClassVar[str] = "neuronfair"
    needs_gradients: ClassVar[bool] = True
    needs_layers: ClassVar[bool] = True
    limits: ClassVar[Mapping[str, Limit]] = PHASES

    def round(self, oracle: Oracle, rng: np.random.Generator, number: int) -> None:  # noqa: ARG002
        """Move some seeds along their biased neurons, and walk from each whose twins get different decisions."""
        count = self.seeds or min(LARGEST, population(oracle.evaluator.m))
        neurons = BiasedNeurons(oracle, count, rng)
        start = approach(oracle, rng, seeds=count, moves=self.global_moves, direction=neurons)
        walk_slopes(oracle, start, rng, steps=self.local_moves)


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
