"""Debugging with many workers: a shard holds some neurons at some values and measures the cases again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbits.debug import Tried, TryOut, try_here
from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.measure import Evaluator, Measure, evaluator_of
from fairbits.models import Do
from fairbits.scale.coordinator import carry_out
from fairbits.scale.executors.options import ExecutorOptions, open_executor
from fairbits.scale.portable import Portable
from fairbits.scale.tasks import Job, Signals
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
        with open_executor(executor_options, Job(_prepare, _perform, shared)) as executor:
            carried = carry_out(executor, enumerate(blocks))
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
