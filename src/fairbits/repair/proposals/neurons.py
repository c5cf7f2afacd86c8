"""Sets of neurons to hold: one at a time forward, useless ones dropped again, values refined at the end.

Each step tries every remaining neuron at every value in one call of the engine, on the network as it is by then. Values
are off, and typical ones of the neuron over real people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Doubles
from fairbits.engine import accuracies
from fairbits.errors import ModelError
from fairbits.language import network_of
from fairbits.measure import hold, target_of
from fairbits.models import Do, Network
from fairbits.repair.judgement import BALANCED_FACTOR, Half, Setting, front
from fairbits.subject import decided, variance_explained

#: Where in the distribution of a neuron's output its values are taken, beside zero and the mean.
QUANTILES = (0.1, 0.5, 0.9, 1.0)
#: Outputs closer to zero than this count as off.
OFF = 1e-6


def candidates(network: Any, inputs: npt.NDArray[np.float32]) -> list[Do]:
    """Every hidden neuron at every one of its values; dead neurons are left out."""
    found: list[Do] = []
    for layer, outputs in enumerate(network.activations(inputs)[:-1]):
        for neuron in np.flatnonzero(np.ptp(outputs, axis=0) > OFF).tolist():
            column = outputs[:, neuron]
            typical = [0.0, float(column.mean(dtype=np.float64)), *np.quantile(column, QUANTILES).tolist()]
            found += _attainable(network, layer, neuron, np.unique(np.round(typical, 6)))
    return found


def around(network: Any, inputs: npt.NDArray[np.float32], dos: Sequence[Do], *, values: int = 9) -> list[Do]:
    """The same neurons at values spread over their outputs for real people."""
    outputs = network.activations(inputs)
    found: list[Do] = []
    for do in dos:
        column = outputs[do.layer][:, do.neuron]
        found += _attainable(network, do.layer, do.neuron, np.linspace(column.min(), column.max(), values))
    return found


def _attainable(network: Any, layer: int, neuron: int, values: npt.NDArray[np.float64]) -> list[Do]:
    """Some values are beyond an activation (a sigmoid is never 0): surgery could not write them into a bias."""
    found, inside = [], network_of(network)
    assert inside is not None  # noqa: S101 - nobody else is asked to hold neurons
    for value in values.tolist():
        try:
            inside.activations_after[layer].inverse(value)
        except ModelError:
            continue
        found.append(Do(layer, neuron, value))
    return found


#: Twins, and rows, that a step of the search looks at; the sets that come out are judged on more.
TWINS_LOOKED_AT = 16_000
MIN_CASES, MAX_CASES = 300, 1_000
ROWS_LOOKED_AT = 15_000
#: So much of the accuracy budget is used: the sample may flatter a set by chance.
BUDGET_USED = 0.95
#: At most so many neurons in a set, and so many sets.
MAX_NEURONS, MAX_SETS = 12, 8
#: A step must lower mean k by this share of what it was at the start, or the search ends.
MIN_GAIN = 0.004
#: Accuracy that is not worth counting when gains are weighed against losses; infinity means: gains alone.
THRIFTS = (0.002, float("inf"))


@dataclass(frozen=True, slots=True)
class HeldSet:
    """Neurons held together, with mean k (or Q1, where the run lowers that) and accuracy as the search saw them.

    ``accuracy`` is the start's less what the set costs: less than what it is where rare classes pay for it.
    """

    dos: tuple[Do, ...]
    k: float
    accuracy: float


def held_means(setting: Setting, network: Any, cases: Codes, dos: Sequence[Do]) -> Doubles:
    """Mean k of cases (or Q1, where the run lowers that) under each intervention."""
    found = hold(setting.evaluator(network), cases, dos, bits=setting.measure == "q_1")
    return (found.k if found.q_1 is None else found.q_1).mean(axis=1, dtype=np.float64)


class Bench:
    """The small sample that the search looks at, and the questions it asks about it."""

    def __init__(self, network: Any, plan: Half, setting: Setting):
        self.network, self.setting = network, setting
        self.linear = getattr(network_of(network), "head", None) == "linear"
        self.encoding = setting.subject.encoding
        self.cases = plan.cases[: int(np.clip(TWINS_LOOKED_AT // setting.own.m, MIN_CASES, MAX_CASES))]
        step = max(1, len(plan.rows) // ROWS_LOOKED_AT)
        self.rows, self.labels = plan.rows[::step], plan.labels[::step]
        self.inputs = self.encoding.encode(self.rows)
        self._members = [self.labels == label for label in np.unique(self.labels)] if not self.linear else []
        self._accuracy = self._accuracy_of(network)
        self._recalls = self._recalls_of(network)
        self.start = self.measured(())

    def measured(self, dos: Sequence[Do]) -> HeldSet:
        """Mean k and accuracy of one set of held neurons on the sample."""
        network = self.network.with_interventions(dos)
        k = float(target_of(self.setting.evaluator(network).evaluate(self.cases), self.setting.measure).mean())
        left = self._accuracy_of(network) if self.linear else self._standing(self._recalls_of(network)[:, None])[0]
        return HeldSet(tuple(dos), k, float(left))

    def effects(self, held: Sequence[Do], dos: Sequence[Do]) -> tuple[Doubles, Doubles]:
        """Mean k and accuracy of each further intervention on top of those that are held."""
        network = self.network.with_interventions(held)
        means = held_means(self.setting, network, self.cases, dos)
        changed = (network.with_interventions([do]) for do in dos)
        if self.linear:
            return means, np.array([self._accuracy_of(one) for one in changed])
        if not isinstance(network, Network):
            return means, self._standing(np.array([self._recalls_of(one) for one in changed]).T)
        recalls = [
            accuracies(
                network,
                self.encoding,
                self.rows[here],
                self.labels[here],
                dos,
                threshold=self.setting.own.threshold,
                threads=self.setting.threads,
            )
            for here in self._members
        ]
        return means, self._standing(np.array(recalls))

    def _accuracy_of(self, network: Any, here: Any = slice(None)) -> float:
        """The share of rows decided as labelled; for a regression, the share of the target's variance explained."""
        inputs, labels = self.inputs[here], self.labels[here]
        found = decided(network, inputs, self.setting.subject.schema)
        return variance_explained(network.scores(inputs), labels) if found is None else float((found == labels).mean())

    def _recalls_of(self, network: Any) -> Doubles:
        """The share decided right of each class."""
        return np.array([self._accuracy_of(network, here) for here in self._members])

    def _standing(self, recalls: Doubles) -> Doubles:
        """What is left of the accuracy, by the recalls of the classes, (classes, interventions)."""
        shares = np.array([here.mean() for here in self._members])
        lost = self._recalls.mean() - recalls.mean(axis=0)
        return np.asarray(np.minimum(shares @ recalls, self._accuracy - lost / BALANCED_FACTOR))


def singles(bench: Bench, floor: float, *, layer: int | None = None) -> dict[str, HeldSet]:
    """The paper's two repairs: the best neuron to switch off, and the best to hold on, at no less than this accuracy.

    Where none keeps that accuracy it is the one that loses least, so that the smallest loss is known. ``layer`` keeps
    to the suspect layer. A repair that would not lower mean k is left out.
    """
    tried = [do for do in candidates(bench.network, bench.inputs) if layer in (None, do.layer)]
    if not tried:
        return {}
    ks, exact = bench.effects((), tried)
    off = np.array([abs(do.value) <= OFF for do in tried])
    found: dict[str, HeldSet] = {}
    for name, kind in (("deactivate", off), ("activate", ~off)):
        useful = np.flatnonzero(kind & (ks < bench.start.k))
        if len(useful) == 0:
            continue
        allowed = useful[exact[useful] >= floor]
        best = allowed[np.argmin(ks[allowed])] if len(allowed) else useful[np.argmax(exact[useful])]
        found[name] = HeldSet((tried[best],), float(ks[best]), float(exact[best]))
    return found


def held_sets(bench: Bench, floor: float) -> list[HeldSet]:
    """Sets from a thrifty and a greedy search, fewest neurons first: none beats another in mean k and accuracy."""
    tried = candidates(bench.network, bench.inputs)
    found = list[HeldSet]()
    for thrift in THRIFTS:
        path = _forward(bench, tried, floor, thrift)
        if path:
            found += [*path, _refined(bench, path[-1], floor)]
    if not found:
        return []
    best = [held for held, keep in zip(found, front([(-f.k, f.accuracy) for f in found]), strict=True) if keep]
    ranked = sorted({held.dos: held for held in best}.values(), key=lambda held: -held.k)
    places = np.unique(np.linspace(0, len(ranked) - 1, MAX_SETS).round().astype(int))
    return sorted((ranked[i] for i in places), key=lambda held: (len(held.dos), held.k))


def _forward(bench: Bench, tried: list[Do], floor: float, thrift: float) -> list[HeldSet]:
    """Add the neuron that lowers mean k most for what it costs, until none is left that pays."""
    path, now = list[HeldSet](), bench.start
    for _ in range(2 * MAX_NEURONS):
        taken = {(do.layer, do.neuron) for do in now.dos}
        left = [do for do in tried if (do.layer, do.neuron) not in taken]
        if len(now.dos) >= MAX_NEURONS or not left:
            break
        ks, exact = bench.effects(now.dos, left)
        best = _most_worth(now, ks, exact, floor, thrift, MIN_GAIN * bench.start.k)
        if best is None:
            break
        now = _pruned(bench, HeldSet((*now.dos, left[best]), float(ks[best]), float(exact[best])), floor)
        if any(now.dos == earlier.dos for earlier in path):
            break
        path.append(now)
    return path


def _most_worth(now: HeldSet, ks: Doubles, exact: Doubles, floor: float, thrift: float, min_gain: float) -> int | None:
    gain = now.k - ks
    allowed = np.flatnonzero((exact >= floor) & (gain >= min_gain))
    if len(allowed) == 0:
        return None
    cost = 1.0 if np.isinf(thrift) else np.maximum(now.accuracy - exact[allowed], 0) + thrift
    return int(allowed[np.argmax(gain[allowed] / cost)])


def _pruned(bench: Bench, held: HeldSet, floor: float) -> HeldSet:
    """Give back neurons that no longer do anything: without them k is no higher and accuracy no lower."""
    while len(held.dos) > 2:
        smaller = [bench.measured(held.dos[:i] + held.dos[i + 1 :]) for i in range(len(held.dos))]
        useless = [s for s in smaller if s.k <= held.k and s.accuracy >= max(floor, held.accuracy)]
        if not useless:
            return held
        held = min(useless, key=lambda s: s.k)
    return held


def _refined(bench: Bench, held: HeldSet, floor: float) -> HeldSet:
    """Move one value at a time to where mean k is lowest, while that pays."""
    tried = around(bench.network, bench.inputs, held.dos)
    for _ in range(len(held.dos)):
        ks, exact = bench.effects(held.dos, tried)
        best = _most_worth(held, ks, exact, floor, float("inf"), MIN_GAIN * bench.start.k)
        if best is None:
            return held
        moved = {(do.layer, do.neuron): do for do in (*held.dos, tried[best])}
        held = HeldSet(tuple(moved.values()), float(ks[best]), float(exact[best]))
    return held
