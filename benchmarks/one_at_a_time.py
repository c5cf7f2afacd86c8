"""The yardstick of `dice`: the same algorithm as its authors run it, one individual at a time.

Twins of one individual are one small batch; the local phase is SciPy's basin hopping around L-BFGS-B on an objective
that casts to integers; cases are a Python set. Nothing is made slow on purpose: it is what a direct reading gives.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import basinhopping

from fairbits.domain import Twins
from fairbits.subject import Subject


class _Done(Exception):
    pass


class PlainDice:
    """Algorithm 1 on one subject, until the time is up."""

    def __init__(self, subject: Subject, *, epsilon: float = 0.025, seed: int = 0):
        self.network, self.schema, self.rows = subject.model, subject.schema, subject.table.codes
        self.twins = Twins(subject.schema)
        self.encoding = subject.encoding
        self.free = np.array(subject.schema.free_columns)
        self.low = np.array([subject.schema.attributes[i].low for i in self.free])
        self.high = np.array([subject.schema.attributes[i].upper for i in self.free])
        self.epsilon, self.rng = epsilon, np.random.default_rng(seed)
        self.cases: set[bytes] = set()
        self.calls = 0

    def run(self, seconds: float) -> float:
        """Distinct cases a second."""
        self.start, self.seconds = time.perf_counter(), seconds
        try:
            while True:
                self._seed(self.rows[self.rng.integers(len(self.rows))].copy())
        except _Done:
            pass
        return len(self.cases) / (time.perf_counter() - self.start)

    def _scores(self, person: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if time.perf_counter() - self.start > self.seconds:
            raise _Done
        self.calls += 1
        rows = np.repeat(person[None], self.twins.m, axis=0)
        rows[:, self.twins.columns] = self.twins.values
        self.cases.add(person[self.free].tobytes())
        return rows, self.network.scores(self.encoding.encode(rows))

    def _seed(self, person: np.ndarray) -> None:
        best_k, best_span = 1, 0.0
        for _ in range(10):
            rows, scores = self._scores(person)
            classes = np.floor(scores / self.epsilon).astype(int)
            values, sizes = np.unique(classes, return_counts=True)
            largest = np.flatnonzero(classes == values[sizes.argmax()])
            pair = rows[self.rng.choice(largest, 2)]
            signs = np.sign(self.network.gradients(self.encoding.encode(pair), of="loss"))[:, self.free]
            direction = np.where(signs[0] == signs[1], signs[0], 0)
            if not direction.any():
                direction[self.rng.integers(len(direction))] = self.rng.choice([-1, 1])
            k, span = len(values), float(scores.max() - scores.min()) if len(values) > 1 else 0.0
            if k > best_k or (k == best_k and span > best_span):
                best_k, best_span = k, span
                self._local(person.copy())
            person[self.free] = np.clip(person[self.free] + direction, self.low, self.high)

    def _local(self, person: np.ndarray) -> None:
        def objective(values: np.ndarray) -> float:
            person[self.free] = np.clip(values.astype(int), self.low, self.high)
            _, scores = self._scores(person)
            return -float(np.floor(scores.max() / self.epsilon) - np.floor(scores.min() / self.epsilon))

        def hop(values: np.ndarray) -> np.ndarray:
            person[self.free] = np.clip(values.astype(int), self.low, self.high)
            rows, scores = self._scores(person)
            ends = rows[[scores.argmin(), scores.argmax()]]
            slopes = np.abs(self.network.gradients(self.encoding.encode(ends), of="loss")[:, self.free]).sum(axis=0)
            chances = 1 / (slopes + 1e-9)
            moved = values.copy()
            moved[self.rng.choice(len(values), p=chances / chances.sum())] += self.rng.choice([-1.0, 1.0])
            return np.clip(moved, self.low, self.high)

        basinhopping(
            objective, person[self.free].copy(), niter=1000, take_step=hop, minimizer_kwargs={"method": "L-BFGS-B"}
        )
