"""Repair by training further on the rows of the table.

Either with found cases among them, each labelled by the majority of its twins; or with a penalty on differences between
the scores of twins, of rows and found cases alike (as in GRFT). Afterwards the last bias is moved until as many rows as
before get the favourable decision: training further tends to give up on the rarer class.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.domain import DEFAULT_THRESHOLD, Codes, DecisionRule
from fairbits.measure import Evaluator
from fairbits.models import Fitting, Network, refit
from fairbits.repair.evidence import Halves
from fairbits.repair.judgement import Setting
from fairbits.repair.proposals.blind import protected_inputs
from fairbits.subject import decided

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
        self._evaluator = setting.own.over_values
        self._protected = protected_inputs(schema, self._encoding)
        cases = halves.pool[: max(1, int(CASES_PER_ROW * len(halves.training.rows)))]
        self._rows, self._labels = self._encoding.encode(halves.training.rows), halves.training.labels
        self._cases = self._encoding.encode(self._as_anybody(cases, rng))
        self._opinions = majority_labels(network, self._evaluator, cases)
        self._values = self._encoded_twins(halves.training.rows[0])
        self._paired = (halves.training.rows, halves.pool[:PAIRED_CASES])
        self._paired_inputs = (self._rows, self._encoding.encode(self._paired[1]))
        self._threshold = setting.own.threshold
        self._share = favourable_share(network, self._rows, threshold=self._threshold)

    def with_cases(self, network: Network, rng: np.random.Generator) -> Network:
        """The network, trained further on rows and cases."""
        inputs = np.concatenate([self._rows, self._cases])
        targets = np.concatenate([self._labels, self._opinions])
        return self._recentred(refit(network, inputs, targets, rng, fitting=Fitting(UPDATES)))

    def consistent(self, network: Network, rng: np.random.Generator, weight: float) -> Network:
        """The network, trained further on rows, while differences between twins are penalised."""
        fitting = Fitting(UPDATES, consistency=weight, whole=self._evaluator.by_vector)
        trained = refit(network, self._rows, self._labels, rng, fitting=fitting, pairs=self._pairs)
        return self._recentred(trained)

    def blind(self, network: Network, rng: np.random.Generator) -> Network:
        """The network, trained further on rows; the weights of protected inputs stay as they are."""
        fitting = Fitting(UPDATES)
        trained = refit(network, self._rows, self._labels, rng, fitting=fitting, frozen=self._protected)
        return self._recentred(trained)

    def _recentred(self, network: Network) -> Network:
        """The trained network, deciding for as many rows as the original did."""
        return recentred(network, self._rows, self._share, threshold=self._threshold)

    def _pairs(self, rng: np.random.Generator, count: int) -> tuple[Inputs, Inputs]:
        """Two twins of one person each, half of them rows of the table and half of them found cases."""
        half = count // 2
        drawn = [
            rng.integers(0, len(group), size) for group, size in zip(self._paired, (half, count - half), strict=True)
        ]
        one = np.concatenate([inputs[mine] for inputs, mine in zip(self._paired_inputs, drawn, strict=True)])
        people = np.concatenate([codes[mine] for codes, mine in zip(self._paired, drawn, strict=True)])
        other = one.copy()
        for side in (one, other):
            side[:, self._protected] = self._values[self._random_twins(people, rng)]
        return one, other

    def _as_anybody(self, people: Codes, rng: np.random.Generator) -> Codes:
        """The people, each under protected values drawn at random."""
        rows = people.copy()
        twins = self._evaluator.twins
        rows[:, twins.columns] = twins.values[self._random_twins(people, rng)]
        return rows

    def _random_twins(self, people: Codes, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """One twin of each person, of those that can exist."""
        valid = self._evaluator.valid_twins(people)
        if valid is None:
            return rng.integers(0, self._evaluator.m, len(people))
        return np.argmax(valid * (1 - rng.random(valid.shape)), axis=1)

    def _encoded_twins(self, person: Codes) -> Inputs:
        """The protected inputs of every twin, (m, protected inputs)."""
        return self._encoding.encode_twins(person[None, :], self._evaluator.twins)[0][:, self._protected]


def majority_labels(network: Network, evaluator: Evaluator, people: Codes) -> npt.NDArray[np.float64]:
    """The decision that the majority of each person's twins get: a class (the lower one at a tie), or the
    median value.
    """
    evaluator = evaluator.over_values
    found = np.empty(len(people))
    m = evaluator.m
    for rows, block in evaluator.twins.blocks(people):
        inputs = evaluator.encoding.encode(block.reshape(-1, block.shape[-1]))
        valid = evaluator.valid_twins(people[rows])
        there = np.ones((len(block), m), np.bool_) if valid is None else valid
        if network.head == "linear":
            found[rows] = np.nanmedian(np.where(there, network.scores(inputs).reshape(-1, m), np.nan), axis=1)
            continue
        labels = np.where(there, np.asarray(decided(network, inputs, evaluator.schema)).reshape(-1, m), -1)
        votes = np.stack([(labels == label).sum(axis=1) for label in range(network.classes)], axis=1)
        found[rows] = votes.argmax(axis=1)
    return found


def favourable_share(network: Network, inputs: Inputs, *, threshold: float = DEFAULT_THRESHOLD) -> float | None:
    """Share of rows that get the favourable decision."""
    rule = DecisionRule(2, network.favourable, threshold)
    return float(rule.favours(network.scores(inputs)).mean()) if network.classes == 2 else None


def recentred(
    network: Network, inputs: Inputs, share: float | None, *, threshold: float = DEFAULT_THRESHOLD
) -> Network:
    """The network with its last bias moved so that this share of the rows gets the favourable decision."""
    if share is None or not 0 < share < 1:
        return network
    logits = network.logits(inputs).astype(np.float64)
    sign = 1 if network.favourable == 1 else -1
    margins = sign * (logits[:, 0] if network.head == "sigmoid" else logits[:, 1] - logits[:, 0])
    shift = float(special.logit(threshold)) - float(np.quantile(margins, 1 - share))
    bias = network.biases[-1].copy()
    bias[network.favourable if network.head == "softmax" else 0] += shift if network.head == "softmax" else sign * shift
    return replace(network, biases=(*network.biases[:-1], bias))
