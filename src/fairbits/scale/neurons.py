"""Debugging with many workers: a shard holds some neurons at some values and measures the cases again, or trains one
model and scores the people's twins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbits.debug import Trained, TrainOut, Tried, TryOut, train_here, try_here
from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.measure import Evaluator, Measure, evaluator_of
from fairbits.models import Do
from fairbits.scale.executor import ExecutorOptions, Job, Portable, Signals, carry_out
from fairbits.subject import Subject

#: Interventions in a shard: enough to share what does not depend on them, few enough to be spread.
BLOCK = 64


@dataclass(frozen=True, slots=True)
class _Shared:
    subject: Subject | Portable
    cases: Codes
    epsilon: float
    partition: str
    threads: int | None
    judged: bool
    measure: Measure


@dataclass(frozen=True, slots=True)
class _Bench:
    evaluator: Evaluator
    subject: Subject
    shared: _Shared


def try_out_by(executor_options: ExecutorOptions) -> TryOut | None:
    """A function that holds neurons at values with an executor."""
    if not executor_options.many:
        return None

    def try_out(
        evaluator: Evaluator,
        subject: Subject,
        cases: Codes,
        dos: list[Do],
        *,
        judged: bool,
        measure: Measure = "q_inf",
    ) -> Tried:
        packed = Portable.of(subject) if executor_options.elsewhere else subject
        shared = _Shared(packed, cases, evaluator.epsilon, evaluator.partition, executor_options.each, judged, measure)
        blocks = [dos[start : start + BLOCK] for start in range(0, len(dos), BLOCK)]
        carried = carry_out(executor_options, Job(_prepare, _perform, shared), enumerate(blocks))
        for number, fault in carried.lost.items():
            raise FairbitsError(f"neurons of block {number} could not be held: {fault.words}; try with fewer workers.")
        found = [carried.results[number] for number in range(len(blocks))]
        return Tried(*(np.concatenate([block[place] for block in found]) for place in range(4)))

    return try_out


def _prepare(shared: _Shared) -> _Bench:
    subject = shared.subject.open() if isinstance(shared.subject, Portable) else shared.subject
    # The same as in one process: it knows the rows of the table, which exist whatever the rules say.
    evaluator = evaluator_of(
        subject, epsilon=shared.epsilon, partition=shared.partition, threads=shared.threads
    ).over_values
    return _Bench(evaluator, subject, shared)


def _perform(bench: _Bench, dos: list[Do], signals: Signals) -> tuple[Any, ...]:  # noqa: ARG001 - a block is short
    shared = bench.shared
    tried = try_here(bench.evaluator, bench.subject, shared.cases, dos, judged=shared.judged, measure=shared.measure)
    return tried.accuracy, tried.k, tried.id_rate, tried.target


@dataclass(frozen=True, slots=True)
class _Training:
    subject: Subject | Portable
    people: Codes
    epochs: int | None


def train_out_by(executor_options: ExecutorOptions) -> TrainOut | None:
    """Trains with these workers; None where this process does it anyway."""
    if not executor_options.many:
        return None

    def train_out(subject: Subject, people: Codes, seeds: Sequence[int], *, epochs: int | None = None) -> list[Trained]:
        packed = Portable.of(subject) if executor_options.elsewhere else subject
        job = Job(_prepare_training, _train, _Training(packed, people, epochs))
        carried = carry_out(executor_options, job, enumerate(seeds))
        for number, fault in carried.lost.items():
            raise FairbitsError(f"training {number + 1} was not done: {fault.words}; try with fewer workers.")
        return [carried.results[number] for number in range(len(seeds))]

    return train_out


def _prepare_training(shared: _Training) -> _Training:
    subject = shared.subject.open() if isinstance(shared.subject, Portable) else shared.subject
    return _Training(subject, shared.people, shared.epochs)


def _train(shared: _Training, seed: int, signals: Signals) -> Trained:  # noqa: ARG001 - a training is not cut short
    assert isinstance(shared.subject, Subject)  # noqa: S101 - opened by _prepare
    return train_here(shared.subject, shared.people, [seed], epochs=shared.epochs)[0]
