"""Debugging with many workers: a shard holds some neurons at some values and measures the cases again, or trains one
model and scores the people's twins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from fairbits.debug import Trained, TrainOut, Tried, TryOut, train_here, try_here
from fairbits.domain import Codes
from fairbits.errors import FairbitsError
from fairbits.measure import Evaluator, Measure, evaluator_of
from fairbits.models import Do
from fairbits.scale.executor import ExecutorOptions, Job, Portable, carry_out, opened
from fairbits.subject import Subject

#: Interventions in a shard: enough to share what does not depend on them, few enough to be spread.
BLOCK = 64


def try_out_by(executor_options: ExecutorOptions) -> TryOut | None:
    """A function that holds neurons at values with an executor; None where this process does it anyway."""
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
        how: dict[str, Any] = {
            "epsilon": evaluator.epsilon,
            "partition": evaluator.partition,
            "threads": executor_options.each,
        }

        def prepare(about: Subject) -> tuple[Evaluator, Subject]:
            # The same as in one process: it knows the rows of the table, which exist whatever the rules say.
            return evaluator_of(about, **how).over_values, about

        def hold(bench: tuple[Evaluator, Subject], block: list[Do]) -> Tried:
            return try_here(*bench, cases, block, judged=judged, measure=measure)

        blocks = [dos[start : start + BLOCK] for start in range(0, len(dos), BLOCK)]
        found = _done(executor_options, subject, prepare, hold, blocks, "neurons of block {} could not be held")
        return Tried(*(np.concatenate([getattr(one, part.name) for one in found]) for part in fields(Tried)))

    return try_out


def train_out_by(executor_options: ExecutorOptions) -> TrainOut | None:
    """A function that trains models with an executor; None where this process does it anyway."""
    if not executor_options.many:
        return None

    def train_out(subject: Subject, people: Codes, seeds: Sequence[int], *, epochs: int | None = None) -> list[Trained]:
        def train(about: Subject, seed: int) -> Trained:
            return train_here(about, people, [seed], epochs=epochs)[0]

        return _done(executor_options, subject, lambda about: about, train, seeds, "training {} was not done")

    return train_out


def _done(
    executor_options: ExecutorOptions,
    subject: Subject,
    prepare: Callable[[Subject], Any],
    perform: Callable[[Any, Any], Any],
    shards: Sequence[Any],
    lost: str,
) -> list[Any]:
    """The results of all shards about a subject, in their order; none of them is cut short."""
    job = Job(
        lambda shared: prepare(opened(shared)),
        lambda state, shard, _: perform(state, shard),
        Portable.of(subject) if executor_options.elsewhere else subject,
    )
    carried = carry_out(executor_options, job, enumerate(shards))
    for number, fault in carried.lost.items():
        raise FairbitsError(f"{lost.format(number + 1)}: {fault.words}; try with fewer workers.")
    return [carried.results[number] for number in range(len(shards))]
