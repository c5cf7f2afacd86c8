"""One individual at a time: what the plain forms of all strategies have in common.

The twins of one individual are one small batch, found people are a Python set, a local step is one evaluation (the
inner L-BFGS-B of some public codes, which only repeats evaluations on integers, is left out in their favour).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from fairbits.domain import Twins
from fairbits.subject import Subject

LOCAL, GLOBAL, EPSILON = 1000, 10, 0.025
People = Iterator[tuple[np.ndarray, np.ndarray]]


class Plain:
    """What the three have in common: one individual, its twins, their scores."""

    def __init__(self, subject: Subject, seed: int):
        self.network, self.encoding, self.rows = subject.model, subject.encoding, subject.table.codes
        self.twins = Twins(subject.schema)
        self.free = np.array(subject.schema.free_columns)
        attributes = [subject.schema.attributes[i] for i in self.free]
        self.low, self.high = np.array([a.low for a in attributes]), np.array([a.upper for a in attributes])
        self.rng = np.random.default_rng(seed)

    def run(self, seconds: float) -> float:
        """Distinct ID cases a second."""
        found: set[bytes] = set()
        begin = time.perf_counter()
        for person, scores in self.people():
            if scores.min() < 0.5 <= scores.max():
                found.add(person[self.free].tobytes())
            if time.perf_counter() - begin > seconds:
                break
        return len(found) / (time.perf_counter() - begin)

    def people(self) -> People:
        """Individuals in the order in which the strategy asks about them, with their twins' scores."""
        raise NotImplementedError

    def drawn(self) -> np.ndarray:
        """Somebody drawn uniformly from the domain."""
        person = self.rows[0].copy()
        person[self.free] = np.floor(self.low + self.rng.random(len(self.free)) * (self.high - self.low + 1))
        return person

    def scores(self, person: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.repeat(person[None], self.twins.m, axis=0)
        rows[:, self.twins.columns] = self.twins.values
        return rows, self.network.scores(self.encoding.encode(rows))

    def slopes(self, rows: np.ndarray) -> np.ndarray:
        encoded = self.encoding.encode(rows)
        return self.encoding.pull_back(self.network.gradients(encoded, of="loss"), rows)[:, self.free]

    def moved(self, person: np.ndarray, step: np.ndarray) -> np.ndarray:
        result = person.copy()
        result[self.free] = np.clip(person[self.free] + step, self.low, self.high)
        return result

    def towards(self, pair: np.ndarray) -> np.ndarray:
        signs = np.sign(self.slopes(pair))
        return self.agreed(signs)

    def agreed(self, signs: np.ndarray) -> np.ndarray:
        """Where both twins point the same way; somewhere at random if that is nowhere."""
        step = np.where(signs[0] == signs[1], signs[0], 0.0)
        if not step.any():
            step[self.rng.integers(len(step))] = self.rng.choice([-1.0, 1.0])
        return step

    def hop(self, person: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        chances = 1 / (np.abs(self.slopes(rows[[scores.argmin(), scores.argmax()]])).sum(axis=0) + 1e-6)
        step = np.zeros(len(self.free))
        step[self.rng.choice(len(step), p=chances / chances.sum())] = self.rng.choice([-1.0, 1.0])
        return self.moved(person, step)

    def walk(self, person: np.ndarray, worth: Callable[[np.ndarray], float]) -> People:
        rows, scores = self.scores(person)
        here = worth(scores)
        for _ in range(LOCAL):
            hopped = self.hop(person, rows, scores)
            there, reached = self.scores(hopped)
            yield hopped, reached
            if self.rng.random() < np.exp(min(worth(reached) - here, 0.0)):
                person, rows, scores, here = hopped, there, reached, worth(reached)


def differs(scores: np.ndarray) -> float:
    return float(scores.min() < 0.5 <= scores.max())


def spread(scores: np.ndarray) -> float:
    return float(np.floor(scores.max() / EPSILON) - np.floor(scores.min() / EPSILON))
