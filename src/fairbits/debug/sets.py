"""The smallest set of neurons, over all hidden layers, that explains most of the bits (Definition IV.3).

A set explains what goes when all of its neurons are held at once. Neurons are taken one at a time, each the one that
lowers the mean bits of one half of the cases most on top of those held already, at one of two values that are fixed
beforehand (its mean or its minimum over the data), as long as the accuracy stays within the loss allowed: a set that
switches the whole network off explains nothing. When most of the bits are gone, neurons that later ones have made
useless are given back. What is reported comes from the other half of the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fairbits.debug.neurons import (
    ACTIVE,
    INACTIVE,
    NAMES,
    ROWS,
    accuracy_floor,
    accuracy_of,
    can_hold,
    held_accuracies,
    values_of,
)
from fairbits.debug.records import Floats, NeuronSet, NeuronSets, halves
from fairbits.domain import Codes
from fairbits.measure import Evaluator, Measure, bounded_ratio, hold
from fairbits.models import Do, Network
from fairbits.subject import Subject

#: Most of the bits: more than half of them.
MOST = 0.5
#: Neurons in a set, at most, and the share of the bits that one more must explain.
MAX_NEURONS, LEAST = 12, 0.005
#: Twins of the half that chooses, and rows, that a step looks at; and people of it at least.
TWINS, FEWEST_CASES, MAX_ROWS = 24_000, 100, 5_000
RESAMPLES = 1000


def neuron_sets(
    evaluator: Evaluator,
    subject: Subject,
    cases: Codes,
    *,
    measure: Measure,
    rng: np.random.Generator,
    stage: Callable[[str], None] | None = None,
    chains: npt.NDArray[np.int64] | None = None,
) -> NeuronSets:
    """The size–effect curve of sets of neurons, and the smallest set that explains most of the bits."""
    search = _Search(evaluator, subject, cases, measure, rng, chains)
    if not search.tried or search.before[0].mean() <= 0 or search.before[1].mean() <= 0:
        return NeuronSets((), None, MOST)
    curve: list[NeuronSet] = []
    dos: tuple[Do, ...] = ()
    explained = 0.0
    for size in range(1, MAX_NEURONS + 1):
        if stage is not None:
            stage(f"looking for the smallest set of neurons: {size - 1} held, {explained:.0%} of the bits explained")
        step = search.best_next(dos, explained)
        if step is None:
            break
        dos, explained = step
        curve.append(search.judged(dos, explained))
    minimal = next((one for one in curve if _enough(one)), None)
    return NeuronSets(tuple(curve), None if minimal is None else search.pruned(minimal), MOST)


class _Search:
    """The two halves of the cases, the rows, and the questions about sets."""

    def __init__(
        self,
        evaluator: Evaluator,
        subject: Subject,
        cases: Codes,
        measure: Measure,
        rng: np.random.Generator,
        chains: npt.NDArray[np.int64] | None,
    ):
        self.evaluator, self.measure, self.rng = evaluator, measure, rng
        network = subject.model
        assert isinstance(network, Network)  # noqa: S101 - checked by whoever calls
        self.network = network
        choosing, self.reporting = halves(cases)
        self.chains = None if chains is None else halves(chains)[1]
        self.choosing = choosing[:: max(1, len(choosing) // max(FEWEST_CASES, TWINS // evaluator.m))]
        self.before = [self._bits(evaluator, people) for people in (self.choosing, self.reporting)]
        rows = np.sort(rng.permutation(len(subject.table))[:MAX_ROWS])
        self.subject = replace(subject, table=subject.table.rows(rows))
        baseline = accuracy_of(network, self.subject)
        self.floor = -np.inf if baseline is None else accuracy_floor(baseline, self.subject)
        self.tried = self._candidates()

    def _candidates(self) -> list[Do]:
        hidden = range(len(self.network.weights) - 1)
        if not hidden:
            return []
        tables = values_of(self.subject, self.subject.table.codes[: 4 * ROWS], hidden)
        places = [NAMES.index(name) for name in (ACTIVE, INACTIVE)]
        found = [
            Do(layer, neuron, float(table[place, neuron]))
            for layer, table in zip(hidden, tables, strict=True)
            for neuron in range(table.shape[1])
            for place in places
            if table[1, neuron] < table[2, neuron]  # one that never moves carries nothing
        ]
        return [do for do in dict.fromkeys(found) if can_hold(self.network, do, np.zeros(2, np.float32))]

    def _bits(self, evaluator: Evaluator, people: Codes) -> Floats:
        found = evaluator.evaluate(people)
        return (found.q_inf if self.measure == "q_inf" else found.q_1).astype(np.float64)

    def best_next(self, dos: tuple[Do, ...], explained: float) -> tuple[tuple[Do, ...], float] | None:
        """The set with one neuron more that explains most on the half that chooses; None where none adds anything."""
        taken = {(do.layer, do.neuron) for do in dos}
        left = [do for do in self.tried if (do.layer, do.neuron) not in taken]
        if not left:
            return None
        network = self.network.with_interventions(dos)
        held = hold(self.evaluator.with_model(network), self.choosing, left, bits=self.measure == "q_1")
        bits = np.log2(held.k).mean(axis=1) if held.q_1 is None else held.q_1.mean(axis=1, dtype=np.float64)
        shares = 1 - bits / self.before[0].mean()
        accuracy = held_accuracies(network, self.subject, left, self.evaluator)
        fine = np.flatnonzero((np.isnan(accuracy) | (accuracy >= self.floor)) & (shares >= explained + LEAST))
        if len(fine) == 0:
            return None
        best = int(fine[np.argmax(shares[fine])])
        return (*dos, left[best]), float(shares[best])

    def judged(self, dos: tuple[Do, ...], choosing: float) -> NeuronSet:
        """A set on the half of the cases that chose none of it."""
        network = self.network.with_interventions(dos)
        after = self._bits(self.evaluator.with_model(network), self.reporting)
        high = self.evaluator.bits_limit
        left = bounded_ratio(after, self.before[1], self.rng, high=high, resamples=RESAMPLES, people=self.chains)
        return NeuronSet(dos, left.remainder, choosing, accuracy_of(network, self.subject))

    def pruned(self, found: NeuronSet) -> NeuronSet:
        """The same without neurons that later ones have made useless: without them most of the bits are still gone."""
        while len(found.neurons) > 1:
            smaller = [found.neurons[:i] + found.neurons[i + 1 :] for i in range(len(found.neurons))]
            shares = [self._share(dos) for dos in smaller]
            best = int(np.argmax(shares))
            network = self.network.with_interventions(smaller[best])
            accuracy = accuracy_of(network, self.subject)
            fewer = self.judged(smaller[best], shares[best])
            if not _enough(fewer) or (accuracy is not None and accuracy < self.floor):
                return found
            found = fewer
        return found

    def _share(self, dos: Sequence[Do]) -> float:
        network = self.network.with_interventions(dos)
        return float(1 - self._bits(self.evaluator.with_model(network), self.choosing).mean() / self.before[0].mean())


def _enough(found: NeuronSet) -> bool:
    """Whether both halves of the cases say that most of the bits are explained."""
    return min(found.explained_choosing, found.explained.value) > MOST
