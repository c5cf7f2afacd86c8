"""CARE: neurons with the largest causal effects, and a swarm that looks for multipliers (Sun et al., ICSE 2022).

The causal effect of a neuron is how far holding it at a value moves the figure, averaged over values spread over its
outputs; all neurons and values are asked in one call of the engine. The outputs of the neurons with the largest effects
are then multiplied, by factors that particle swarm optimisation looks for. The cost is NeuFair's (odds or mean k, and a
penalty where F1 falls), so that both searches are after the same. Numbers of particles and neurons, and the swarm's
coefficients (the usual ones of Clerc and Kennedy 2002), are ours: the paper's could not be confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.engine import accuracies
from fairbits.measure import hold
from fairbits.models import Do
from fairbits.repair.proposals.neufair import EVALUATIONS, SECONDS, Allowance, Cost, EqualisedOdds, Scales
from fairbits.repair.proposals.neurons import around
from fairbits.repair.proposals.proposer import Planner, Proposal

#: Values that a neuron is held at, and rows that odds are looked at then.
VALUES, ROWS = 6, 1_000
#: Neurons that are multiplied, and the largest factor; particles.
TOP, LARGEST, PARTICLES = 10, 2.0, 20
#: How much of its speed a particle keeps, and how hard its own best and everybody's best pull.
INERTIA, PULL = 0.73, 1.5

Doubles = npt.NDArray[np.float64]


def causal_effects(scales: Scales) -> Doubles:
    """How far holding each neuron moves the figure, on the mean over the values that it is held at."""
    network, setting = scales.network, scales.setting
    tried = around(network, scales.inputs, [Do(*place, 0.0) for place in scales.places], values=VALUES)
    if scales.cost_name == "k":
        found = hold(setting.evaluator(network), scales.cases, tried, bits=setting.measure == "q_1")
        moved = found.k_mean if found.q_1 is None else found.q_1.mean(axis=1, dtype=np.float64)
        start = scales.figures(network)[0]
    else:
        step, own = max(1, len(scales.rows) // ROWS), setting.own
        rows, labels = scales.rows[::step], scales.labels[::step]
        odds, now = EqualisedOdds(own.schema, rows, labels), scales.right(network)[::step]

        def right(part: npt.NDArray[np.int64]) -> Doubles:
            here = rows[part], labels[part]
            return accuracies(network, own.encoding, *here, tried, threshold=own.threshold, threads=setting.threads)

        moved, start = odds(right), float(odds(lambda part: now[part].mean()))
    numbers = {place: number for number, place in enumerate(scales.places)}
    owner = np.array([numbers[do.layer, do.neuron] for do in tried], np.int64)
    apart = np.broadcast_to(np.abs(moved - start), len(owner))
    sums = np.bincount(owner, apart, minlength=len(numbers))
    return np.asarray(sums / np.maximum(np.bincount(owner, minlength=len(numbers)), 1))


def swarm(
    scales: Scales, chosen: npt.NDArray[np.int64], rng: np.random.Generator, allowance: Allowance
) -> tuple[Doubles, float]:
    """The cheapest multipliers of all neurons that a swarm over those of the chosen ones met, and their cost."""

    def cost(place: Doubles) -> float:
        everybody = np.ones(len(scales.places))
        everybody[chosen] = place
        return scales.cost(everybody) if allowance.left() else np.inf

    shape = (PARTICLES, len(chosen))
    places, speeds = rng.uniform(0, LARGEST, shape), rng.uniform(-0.5, 0.5, shape)
    places[::2] = rng.integers(0, 2, places[::2].shape)  # half of them begin with neurons on or off
    places[0] = 1.0  # the network as it is
    own, found = places.copy(), np.array([cost(place) for place in places])
    costs = found.copy()
    while np.isfinite(found[-1]):  # until the allowance is spent
        best = own[costs.argmin()]
        pulls = rng.random((2, *shape)) * PULL
        speeds = INERTIA * speeds + pulls[0] * (own - places) + pulls[1] * (best - places)
        places = np.clip(places + speeds, 0.0, LARGEST)
        found = np.array([cost(place) for place in places])
        better = found < costs
        own[better], costs[better] = places[better], found[better]
    multipliers = np.ones(len(scales.places))
    multipliers[chosen] = own[costs.argmin()]
    return multipliers, float(costs.min())


@dataclass(frozen=True, slots=True)
class Care:
    """Two proposals, one for each cost; the seconds are shared evenly."""

    name: str = "care"
    seconds: float = SECONDS
    evaluations: int = EVALUATIONS  # of each swarm

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Look for the neurons, then for their multipliers."""
        costs: tuple[Cost, ...] = ("odds", "k")
        for cost in costs:
            planner.watch(f"multiplying neurons by their causal effects: {cost}")
            allowance = Allowance(self.seconds / 2, self.evaluations)
            scales = Scales(planner, "multiplying neurons", cost)
            chosen = np.argsort(-causal_effects(scales), kind="stable")[:TOP]
            name = f"{self.name}-{cost}"
            multipliers, _ = swarm(scales, chosen, planner.rng(name), allowance)
            factors = [f"{scales.places[i][0] + 1}:{scales.places[i][1]}×{multipliers[i]:.2g}" for i in chosen]
            words = f"the neurons with the largest causal effects multiplied: {' '.join(factors)}"
            yield Proposal(name, words, scales.scaled(multipliers))
