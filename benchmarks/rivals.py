"""Batching told from strategy: ADF, Aequitas and dice one individual at a time, against the batched forms.

The plain forms are direct readings in NumPy: the twins of one individual are one small batch, found people are a Python
set, a local step is one evaluation (the inner L-BFGS-B of the public code, which only repeats evaluations on integers,
is left out in their favour). Both sides count distinct ID cases, in turns, on the same subject and machine.

    python -m benchmarks.rivals [--subjects census german default] [--protected sex] [--seconds 5] [--rounds 2]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fairbits.data import Subject, load_subject
from fairbits.domain import Twins
from fairbits.search import Budget, Settings, search_subject

LOCAL, GLOBAL, EPSILON = 1000, 10, 0.025


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

    def people(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        raise NotImplementedError

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
        step = np.where(signs[0] == signs[1], signs[0], 0.0)
        if not step.any():
            step[self.rng.integers(len(step))] = self.rng.choice([-1.0, 1.0])
        return step

    def hop(self, person: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> np.ndarray:
        chances = 1 / (np.abs(self.slopes(rows[[scores.argmin(), scores.argmax()]])).sum(axis=0) + 1e-6)
        step = np.zeros(len(self.free))
        step[self.rng.choice(len(step), p=chances / chances.sum())] = self.rng.choice([-1.0, 1.0])
        return self.moved(person, step)

    def walk(self, person: np.ndarray, worth) -> Iterator[tuple[np.ndarray, np.ndarray]]:
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


class PlainAdf(Plain):
    def people(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        while True:
            person = self.rows[self.rng.integers(len(self.rows))]
            for _ in range(GLOBAL + 1):
                rows, scores = self.scores(person)
                yield person, scores
                if differs(scores):
                    yield from self.walk(person, differs)
                    break
                person = self.moved(person, self.towards(rows[[scores.argmin(), scores.argmax()]]))


class PlainAequitas(Plain):
    def people(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        down, share = np.full(len(self.free), 0.5), np.full(len(self.free), 1 / len(self.free))
        person = self.rows[0].copy()
        while True:
            person[self.free] = np.floor(self.low + self.rng.random(len(self.free)) * (self.high - self.low + 1))
            _, scores = self.scores(person)
            yield person, scores
            here = differs(scores)
            for _ in range(LOCAL if here else 0):
                attribute = self.rng.choice(len(share), p=share)
                step = np.zeros(len(share))
                step[attribute] = -1.0 if self.rng.random() < down[attribute] else 1.0
                hopped = self.moved(person, step)
                _, reached = self.scores(hopped)
                yield hopped, reached
                there = differs(reached)
                praise = 0.001 if there else -0.001
                down[attribute] = np.clip(down[attribute] - step[attribute] * praise, 0.0, 1.0)
                share[attribute] = max(share[attribute] + praise, 0.0)
                share /= share.sum()
                if self.rng.random() < np.exp(min(there - here, 0.0)):
                    person, here = hopped, there


class PlainDice(Plain):
    def people(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        while True:
            person, best = self.rows[self.rng.integers(len(self.rows))], (-1, -1.0)
            for _ in range(GLOBAL):
                rows, scores = self.scores(person)
                yield person, scores
                classes = np.floor(scores / EPSILON)
                values, sizes = np.unique(classes, return_counts=True)
                pair = rows[self.rng.choice(np.flatnonzero(classes == values[sizes.argmax()]), 2)]
                worth = (len(values), float(scores.max() - scores.min()))
                if worth > best:
                    best = worth
                    yield from self.walk(person, spread)
                person = self.moved(person, self.towards(pair))


PLAIN = {"adf": PlainAdf, "aequitas": PlainAequitas, "dice": PlainDice}


def batched(subject: Subject, strategy: str, seconds: float, seed: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        run = search_subject(subject, Settings(Budget(seconds=seconds), strategy, seed=seed), Path(folder) / "run")
        return run.summary["id_cases"] / run.summary["seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", nargs="*", default=["census", "german", "default"])
    parser.add_argument("--protected", default="sex")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    print("| subject | strategy | plain ID/s | batched ID/s | ratio | dice batched to plain |")
    print("| --- | --- | --: | --: | --: | --: |")
    for name in args.subjects:
        subject = load_subject(name).with_protected([args.protected])
        speeds: dict[str, tuple[float, float]] = {}
        for strategy, kind in PLAIN.items():
            batched(subject, strategy, 0.5, 99)
            plain, ours = [], []
            for seed in range(args.rounds):
                plain.append(kind(subject, seed).run(args.seconds))
                ours.append(batched(subject, strategy, args.seconds, seed))
            speeds[strategy] = (float(np.mean(plain)), float(np.mean(ours)))
        for strategy, (slow, fast) in speeds.items():
            ratios = [f"{speed / slow:,.0f} ×" if slow else "–" for speed in (fast, speeds["dice"][1])]
            cells = [f"{name}: {args.protected}", strategy, f"{slow:,.0f}", f"{fast:,.0f}", *ratios]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
