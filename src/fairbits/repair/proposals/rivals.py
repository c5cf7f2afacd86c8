"""Rivals: what other systems do about the neurons of a network, each by its own search.

*NeuFair* (Dasu, Kumar, Tizpaz-Niari, Tan, ISSTA 2024) looks for neurons to drop. A state says which hidden neurons give
0; a move drops one or gives one back. Simulated annealing takes a worse state with a probability that falls as the
temperature does (T₀ / ln(e + move), T₀ such that three in four worse moves are taken at the start); the random walk
takes every state. The best one that was seen is proposed. Their cost is the equalised-odds difference, and three times
that of the network as it is on top where F1 falls below 98 % of what it was; ours puts mean k of found cases in its
place. These settings are those of their public code, which searches for an hour. A walk begins with the network as it
is here, and never drops more than a fifth: a short search does not come back from a random half.

*CARE* (Sun et al., ICSE 2022) multiplies the outputs of the neurons with the largest causal effects (how far holding a
neuron moves the figure, averaged over values spread over its outputs), by factors that particle swarm optimisation
looks for, at NeuFair's cost. Numbers of particles and neurons, and the swarm's coefficients (the usual ones of Clerc
and Kennedy 2002), are ours: the paper's could not be confirmed.

A *fairness fine-tune* after ProF (Ma, Wang, Xuan, Wang, ASE 2025), which bounds what a network says about the whole set
of a person's twins and has a solver change weights until that is consistent. Here is what remains of the idea without
bounds and solver, and so without its guarantee: the twins with the lowest and the highest score, of rows and found
cases, are pulled together while the labels are learned, and who those twins are is looked up anew each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal, get_args

import numpy as np

from fairbits.domain import Codes, Doubles, Inputs, Integers, Schema, Truth
from fairbits.engine import accuracies
from fairbits.measure import target_of
from fairbits.models import Do, Fitting, Network, refit
from fairbits.repair.choice import Planner
from fairbits.repair.judgement import MIN_GROUP, f1_score, known_groupings
from fairbits.repair.proposals.mitigators import network_data
from fairbits.repair.proposals.neurons import around, held_means
from fairbits.repair.proposals.weights import favourable_share, recentred
from fairbits.repair.records import Proposal
from fairbits.subject import decided

#: F1 must stay above this share of what it was; where it does not, so many times the start's cost is added.
F1_KEPT, PENALTY = 0.98, 3.0
#: Share of worse moves that are taken at the first temperature, and moves that it is estimated by.
ACCEPTED, TRIED = 0.75, 20
#: Neurons that are dropped, at most: a share of all, and two where that is less.
MOST, FEW = 0.2, 2
#: Rows and twins that a state is judged by.
ROWS, TWINS = 4_000, 16_000
SECONDS, EVALUATIONS = 120.0, 2_000
#: Values that a neuron is held at for its causal effect, and rows that odds are looked at then.
VALUES, ROWS_HELD = 6, 1_000
#: Neurons that are multiplied, and the largest factor; particles; how much of its speed a particle keeps, and how hard
#: its own best and everybody's best pull.
TOP, LARGEST, PARTICLES, INERTIA, PULL = 10, 2.0, 20, 0.73, 1.5
#: Weights of the penalty in the order in which they are tried; rounds, and updates in each; rows, and as many cases,
#: whose widest pairs are pulled together.
WEIGHTS, ROUNDS, UPDATES, PAIRED = (3.0, 10.0, 30.0), 4, 250, 1_000

Cost = Literal["odds", "k"]


class EqualisedOdds:
    """The largest difference, between groups of one attribute and people of one label, in who is decided right.

    Those are the differences in true and in false positive rates. Groups of fewer than ``MIN_GROUP`` people do not
    count, as in the figures that candidates are judged by.
    """

    def __init__(self, schema: Schema, rows: Codes, labels: Doubles):
        self.cells: list[list[Integers]] = []
        for groups in known_groupings(schema, rows):
            for label in np.unique(labels):
                parts = [here[labels[here] == label] for here in groups.members() if len(here) >= MIN_GROUP]
                self.cells.append([part for part in parts if len(part)])

    def __call__(self, share: Callable[[Integers], Any]) -> Any:
        """The figure, by the share of some rows that is decided right: a number, or one for each candidate."""
        gaps = [np.ptp([share(part) for part in cell], axis=0) for cell in self.cells if cell]
        return np.max(gaps, axis=0) if gaps else 0.0


@dataclass(slots=True)
class Allowance:
    """What a search may spend: seconds, evaluations, or whichever is used up first."""

    seconds: float
    evaluations: int
    start: float = field(default_factory=monotonic)
    spent: int = 0

    def left(self) -> bool:
        """Count an evaluation, and say whether it may be made."""
        self.spent += 1
        return self.spent <= self.evaluations and monotonic() - self.start < self.seconds


class Scales:
    """Networks whose hidden neurons are multiplied, (neurons,) all layers in a row, and what each costs."""

    def __init__(self, planner: Planner, purpose: str, cost: Cost):
        network, data = network_data(planner, purpose, hidden=1)
        self.network, self.setting, self.cost_name = network, planner.setting, cost
        self.places = [(layer, neuron) for layer, w in enumerate(network.weights[1:]) for neuron in range(len(w))]
        step = max(1, len(data.rows) // ROWS)
        self.rows, self.labels = data.rows[::step], data.labels[::step]
        self.inputs = data.subject.encoding.encode(self.rows)
        self.cases = planner.halves.pool[: max(1, TWINS // self.setting.own.m)]
        self.odds = EqualisedOdds(data.subject.schema, self.rows, self.labels)
        fairness, f1 = self.figures(network)
        self._floor, self._penalty = F1_KEPT * f1, PENALTY * fairness

    def scaled(self, multipliers: Doubles) -> Network:
        """The network whose neurons' outputs are multiplied: the weights behind them take that up."""
        ends = np.cumsum([len(w) for w in self.network.weights[1:]])[:-1]
        parts = np.split(multipliers.astype(np.float32), ends)
        behind = (w * part[:, None] for w, part in zip(self.network.weights[1:], parts, strict=True))
        return replace(self.network, weights=(self.network.weights[0], *behind))

    def right(self, network: Network) -> Truth:
        """Whether each row is decided as labelled."""
        return np.asarray(decided(network, self.inputs, self.setting.subject.schema) == self.labels)

    def figures(self, network: Network) -> tuple[float, float]:
        """What is to be lowered, and F1."""
        right = self.right(network)
        favourable = self.setting.subject.schema.favourable_index
        f1 = f1_score(np.where(right, self.labels, 1 - self.labels), self.labels, favourable)
        if self.cost_name == "odds":
            return float(self.odds(lambda part: right[part].mean())), f1
        evaluation = self.setting.evaluator(network).evaluate(self.cases)
        return float(target_of(evaluation, self.setting.measure).mean()), f1

    def cost(self, multipliers: Doubles) -> float:
        """What is to be lowered, and the penalty where F1 is below its floor."""
        fairness, f1 = self.figures(self.scaled(multipliers))
        return fairness + self._penalty * (f1 < self._floor)


def dropped_neurons(scales: Scales, rng: np.random.Generator, allowance: Allowance, *, annealing: bool) -> Truth:
    """The cheapest state that a walk saw, as flags of the neurons that it keeps."""
    size = len(scales.places)
    most = max(FEW, int(MOST * size))
    state = np.ones(size, np.bool_)
    now = scales.cost(state.astype(np.float64))
    best, rises, moves = (state, now), list[float](), 0
    while allowance.left():
        moves += 1
        moved = state.copy()
        moved[rng.choice(np.flatnonzero(~state) if (~state).sum() >= most else size)] ^= True
        cost = scales.cost(moved.astype(np.float64))
        if cost > now and len(rises) < TRIED:
            rises.append(cost - now)
        temperature = float(np.mean(rises)) / -np.log(ACCEPTED) / np.log(np.e + moves) if rises else 1.0
        if not annealing or cost <= now or rng.random() < np.exp((now - cost) / temperature):
            state, now = moved, cost
        if now < best[1]:
            best = (state, now)
    return best[0]


@dataclass(frozen=True, slots=True)
class NeuFair:
    """Four proposals: both walks under both costs, which share the seconds evenly."""

    name: str = "neufair"
    seconds: float = SECONDS
    evaluations: int = EVALUATIONS  # of each walk

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Search, and propose the best set of each walk."""
        for cost in get_args(Cost):
            scales = Scales(planner, "dropping neurons", cost)
            for way in ("annealing", "walk"):
                name = f"{self.name}-{way}-{cost}"
                planner.watch(f"dropping neurons: {way}, {cost}")
                allowance = Allowance(self.seconds / 4, self.evaluations)
                kept = dropped_neurons(scales, planner.rng(name), allowance, annealing=way == "annealing")
                gone = tuple(Do(*place, 0.0) for place, keep in zip(scales.places, kept, strict=True) if not keep)
                words = f"{len(gone)} neurons dropped, of {allowance.spent - 1:,} sets that a {way} looked at"
                yield Proposal(name, words, scales.scaled(kept.astype(np.float64)), gone)


def causal_effects(scales: Scales) -> Doubles:
    """How far holding each neuron moves the figure, on the mean over the values that it is held at."""
    network, setting = scales.network, scales.setting
    tried = around(network, scales.inputs, [Do(*place, 0.0) for place in scales.places], values=VALUES)
    if scales.cost_name == "k":
        moved = held_means(setting, network, scales.cases, tried)
        start = scales.figures(network)[0]
    else:
        step = max(1, len(scales.rows) // ROWS_HELD)
        own = setting.own
        rows, labels = scales.rows[::step], scales.labels[::step]
        odds = EqualisedOdds(own.schema, rows, labels)
        now = scales.right(network)[::step]

        def right(part: Integers) -> Doubles:
            here = rows[part], labels[part]
            return accuracies(network, own.encoding, *here, tried, threshold=own.threshold, threads=setting.threads)

        moved = odds(right)
        start = float(odds(lambda part: now[part].mean()))
    numbers = {place: number for number, place in enumerate(scales.places)}
    owner = np.array([numbers[do.layer, do.neuron] for do in tried], np.int64)
    sums = np.bincount(owner, np.broadcast_to(np.abs(moved - start), len(owner)), minlength=len(numbers))
    return np.asarray(sums / np.maximum(np.bincount(owner, minlength=len(numbers)), 1))


def swarm(scales: Scales, chosen: Integers, rng: np.random.Generator, allowance: Allowance) -> Doubles:
    """The cheapest multipliers of all neurons that a swarm over those of the chosen ones met."""

    def everybody(place: Doubles) -> Doubles:
        multipliers = np.ones(len(scales.places))
        multipliers[chosen] = place
        return multipliers

    def costs_of(places: Doubles) -> Doubles:
        return np.array([scales.cost(everybody(place)) if allowance.left() else np.inf for place in places])

    shape = (PARTICLES, len(chosen))
    places, speeds = rng.uniform(0, LARGEST, shape), rng.uniform(-0.5, 0.5, shape)
    places[::2] = rng.integers(0, 2, places[::2].shape)  # half of them begin with neurons on or off
    places[0] = 1.0  # the network as it is
    own, found = places.copy(), costs_of(places)
    costs = found.copy()
    while np.isfinite(found[-1]):  # until the allowance is spent
        best = own[costs.argmin()]
        pulls = rng.random((2, *shape)) * PULL
        speeds = INERTIA * speeds + pulls[0] * (own - places) + pulls[1] * (best - places)
        places = np.clip(places + speeds, 0.0, LARGEST)
        found = costs_of(places)
        better = found < costs
        own[better], costs[better] = places[better], found[better]
    return everybody(own[costs.argmin()])


@dataclass(frozen=True, slots=True)
class Care:
    """Two proposals, one for each cost; the seconds are shared evenly."""

    name: str = "care"
    seconds: float = SECONDS
    evaluations: int = EVALUATIONS  # of each swarm

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Look for the neurons, then for their multipliers."""
        for cost in get_args(Cost):
            planner.watch(f"multiplying neurons by their causal effects: {cost}")
            allowance = Allowance(self.seconds / 2, self.evaluations)
            scales = Scales(planner, "multiplying neurons", cost)
            chosen = np.argsort(-causal_effects(scales), kind="stable")[:TOP]
            name = f"{self.name}-{cost}"
            multipliers = swarm(scales, chosen, planner.rng(name), allowance)
            factors = [f"{scales.places[i][0] + 1}:{scales.places[i][1]}×{multipliers[i]:.2g}" for i in chosen]
            words = f"the neurons with the largest causal effects multiplied: {' '.join(factors)}"
            yield Proposal(name, words, scales.scaled(multipliers))


@dataclass(frozen=True, slots=True)
class FairnessFinetune:
    """A proposal for each weight of the penalty that is reached within the seconds."""

    name: str = "finetune"
    weights: tuple[float, ...] = WEIGHTS
    seconds: float = SECONDS

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Train, round by round; the last bias keeps the share of favourable decisions."""
        start, setting = monotonic(), planner.setting
        network, data = network_data(planner, "a fairness fine-tune")
        encoding, own = setting.subject.encoding, setting.own.over_values
        inputs = encoding.encode(data.rows)
        share = favourable_share(network, inputs, threshold=own.threshold)
        for weight in self.weights:
            name = f"{self.name}-{weight:g}"
            rng = planner.rng(name)
            planner.watch(f"fine-tuning with a penalty of {weight:g} on the widest gap between twins")
            some = rng.choice(len(data.rows), min(PAIRED, len(data.rows)), replace=False)
            people = np.concatenate([data.rows[some], planner.halves.pool[:PAIRED]])
            fitting = Fitting(UPDATES, consistency=weight, whole=own.by_vector)
            found = network
            for _ in range(ROUNDS):
                if monotonic() - start >= self.seconds:
                    return
                ends = setting.evaluator(found).over_values.evaluate(people)
                sides = np.stack([people, people])
                sides[:, :, own.twins.columns] = own.twins.values[np.stack([ends.low_twin, ends.high_twin])]
                pairs = np.stack([encoding.encode(side) for side in sides])

                def drawn(rng: np.random.Generator, count: int, pairs: Inputs = pairs) -> tuple[Inputs, Inputs]:
                    low, high = pairs[:, rng.integers(0, pairs.shape[1], count)]
                    return low, high

                found = refit(found, inputs, data.labels, rng, fitting=fitting, pairs=drawn)
            found = recentred(found, inputs, share, threshold=own.threshold)
            words = f"trained further on labels and on {weight:g} times the gap between the lowest and highest twin"
            yield Proposal(name, words, found, retrained=True)
