"""NeuFair: a search over sets of neurons to drop (Dasu, Kumar, Tizpaz-Niari, Tan, ISSTA 2024).

A state says which hidden neurons give 0; a move drops one or gives one back. Simulated annealing takes a worse state
with a probability that falls as the temperature does (T₀ / ln(e + move), T₀ such that three in four worse moves are
taken at the start); the random walk takes every state. The best one that was seen is proposed. Their cost is the
equalised-odds difference, and three times that of the network as it is on top where F1 falls below 98 % of what it was;
ours puts mean k of found cases in its place. These settings are those of their public code, which searches for an hour.
A walk begins with the network as it is here, and never drops more than a fifth: a short search does not come back from
a random half. Each state is one network that the engine asks about all rows, or all twins, at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema
from fairbits.errors import TableError
from fairbits.measure import grouping_of, target_of
from fairbits.models import Do, Network
from fairbits.repair.judgement import MIN_GROUP, f1_score
from fairbits.repair.proposals.mitigators import TrainingData, needs_weights
from fairbits.repair.proposals.proposer import Planner, Proposal
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

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Cost = Literal["odds", "k"]


class EqualisedOdds:
    """The largest difference, between groups of one attribute and people of one label, in who is decided right.

    Those are the differences in true and in false positive rates. Groups of fewer than ``MIN_GROUP`` people do not
    count, as in the figures that candidates are judged by.
    """

    def __init__(self, schema: Schema, rows: Codes, labels: Doubles):
        self.cells: list[list[npt.NDArray[np.int64]]] = []
        for column in schema.protected_columns:
            try:
                groups = grouping_of(schema.attributes[column], rows[:, column]).members()
            except TableError:  # nobody among these rows has a value of it
                continue
            for label in np.unique(labels):
                parts = [here[labels[here] == label] for here in groups if len(here) >= MIN_GROUP]
                self.cells.append([part for part in parts if len(part)])

    def __call__(self, share: Callable[[npt.NDArray[np.int64]], Any]) -> Any:
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
        network = planner.network
        if not isinstance(network, Network) or len(network.weights) < 2:
            raise needs_weights(planner, purpose)
        data = TrainingData.of(planner, purpose)
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

    def right(self, network: Network) -> Flags:
        """Whether each row is decided as labelled."""
        return np.asarray(decided(network, self.inputs, self.setting.subject.schema) == self.labels)

    def figures(self, network: Network) -> tuple[float, float]:
        """What is to be lowered, and F1."""
        right, favourable = self.right(network), self.setting.subject.schema.favourable_index
        f1 = f1_score(np.where(right, self.labels, 1 - self.labels), self.labels, favourable)
        if self.cost_name == "odds":
            return float(self.odds(lambda part: right[part].mean())), f1
        evaluation = self.setting.evaluator(network).evaluate(self.cases)
        return float(target_of(evaluation, self.setting.measure).mean()), f1

    def cost(self, multipliers: Doubles) -> float:
        """What is to be lowered, and the penalty where F1 is below its floor."""
        fairness, f1 = self.figures(self.scaled(multipliers))
        return fairness + self._penalty * (f1 < self._floor)


def dropped_neurons(
    scales: Scales, rng: np.random.Generator, allowance: Allowance, *, annealing: bool
) -> tuple[Flags, float]:
    """The cheapest state that a walk saw, as flags of the neurons that it keeps, and its cost."""
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
    return best


@dataclass(frozen=True, slots=True)
class NeuFair:
    """Four proposals: both walks under both costs, which share the seconds evenly."""

    name: str = "neufair"
    seconds: float = SECONDS
    evaluations: int = EVALUATIONS  # of each walk

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Search, and propose the best set of each walk."""
        costs: tuple[Cost, ...] = ("odds", "k")
        for cost in costs:
            scales = Scales(planner, "dropping neurons", cost)
            for way in ("annealing", "walk"):
                name = f"{self.name}-{way}-{cost}"
                planner.watch(f"dropping neurons: {way}, {cost}")
                allowance = Allowance(self.seconds / 4, self.evaluations)
                kept, _ = dropped_neurons(scales, planner.rng(name), allowance, annealing=way == "annealing")
                gone = tuple(Do(*place, 0.0) for place, keep in zip(scales.places, kept, strict=True) if not keep)
                words = f"{len(gone)} neurons dropped, of {allowance.spent - 1:,} sets that a {way} looked at"
                yield Proposal(name, words, scales.scaled(kept.astype(np.float64)), gone)
