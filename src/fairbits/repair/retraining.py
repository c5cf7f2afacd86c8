"""Repair by training: go on with the found cases, each labelled by the majority of its twins.

With a weight on consistency, differences between the scores of twins are penalised as well (as in GRFT).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Twins
from fairbits.domain.attribute import Codes
from fairbits.models import Network
from fairbits.models.fitting import Fitting, Pairs, refit
from fairbits.repair.blinding import protected_inputs
from fairbits.repair.evidence import Halves
from fairbits.repair.judging import Setting

#: Found cases added for every row of the table: more would teach the network its own opinions.
CASES_PER_ROW = 0.5
UPDATES = 1_500
#: Found cases that pairs of twins are drawn from.
PAIRED_CASES = 20_000
#: Weight of the consistency penalty; a mild one where nothing was shrunk before, because a high one costs accuracy.
CONSISTENCY, MILD = 10.0, 3.0

Inputs = npt.NDArray[np.float32]


class Retrainer:
    """The lessons for a network, made once: rows with their labels, cases with their majority, pairs of twins."""

    def __init__(self, network: Network, halves: Halves, setting: Setting, rng: np.random.Generator):
        schema, self._encoding = setting.subject.schema, setting.subject.encoding
        self._twins = Twins(schema)
        self._protected = protected_inputs(schema, self._encoding)
        cases = halves.pool[: max(1, int(CASES_PER_ROW * len(halves.plan.rows)))]
        rows = self._encoding.encode(halves.plan.rows)
        found = self._encoding.encode(self._as_anybody(cases, rng))
        opinions = majority_labels(network, self._encoding, self._twins, cases)
        self._inputs = np.concatenate([rows, found])
        self._targets = np.concatenate([halves.plan.labels, opinions])
        self._values = self._encoded_twins(halves.plan.rows[0])
        self._paired = (rows, self._encoding.encode(halves.pool[:PAIRED_CASES]))

    def __call__(
        self, network: Network, rng: np.random.Generator, *, consistency: float = 0.0, blind: bool = False
    ) -> Network:
        """The network, trained further; ``blind`` keeps the weights of protected inputs as they are."""
        fitting = Fitting(updates=UPDATES, consistency=consistency)
        frozen = self._protected if blind else ()
        return refit(network, self._inputs, self._targets, rng, fitting=fitting, pairs=self._pairs, frozen=frozen)

    @property
    def _pairs(self) -> Pairs:
        rows, found = self._paired

        def draw(rng: np.random.Generator, count: int) -> tuple[Inputs, Inputs]:
            half = count // 2
            one = np.concatenate([_some(rows, half, rng), _some(found, count - half, rng)])
            other = one.copy()
            for side in (one, other):
                side[:, self._protected] = self._values[rng.integers(0, self._twins.m, count)]
            return one, other

        return draw

    def _as_anybody(self, people: Codes, rng: np.random.Generator) -> Codes:
        """The people, each under protected values drawn at random."""
        rows = people.copy()
        rows[:, self._twins.columns] = self._twins.values[rng.integers(0, self._twins.m, len(rows))]
        return rows

    def _encoded_twins(self, person: Codes) -> Inputs:
        """The protected inputs of every twin, (m, protected inputs)."""
        return self._encoding.encode_twins(person[None, :], self._twins)[0][:, self._protected]


def majority_labels(network: Network, encoding: Encoding, twins: Twins, people: Codes) -> npt.NDArray[np.float64]:
    """What most twins of each person get: a class (the lower one at a tie), or the median value."""
    found = np.empty(len(people))
    for rows, block in twins.blocks(people):
        inputs = encoding.encode(block.reshape(-1, block.shape[-1]))
        if network.head == "linear":
            found[rows] = np.median(network.scores(inputs).reshape(-1, twins.m), axis=1)
            continue
        labels = network.labels(inputs).reshape(-1, twins.m)
        votes = np.stack([(labels == label).sum(axis=1) for label in range(network.classes)], axis=1)
        found[rows] = votes.argmax(axis=1)
    return found


def _some(rows: Inputs, count: int, rng: np.random.Generator) -> Inputs:
    return rows[rng.integers(0, len(rows), count)]
