"""Work that is shared among workers, processes of this machine or a Ray cluster: a search, by its tasks; debugging,
where a shard holds some neurons at some values and measures the cases again, or trains one model and scores the twins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from fairbits.debug import Trained, TrainOut, Tried, TryOut, train_here, try_here
from fairbits.domain import Codes, GrantOptions
from fairbits.errors import FairbitsError
from fairbits.measure import Evaluator, Measure, evaluator_of
from fairbits.models import Do
from fairbits.scale.executor import RETRIES, ExecutorOptions, Job, Listener, Portable, carry_out
from fairbits.search import (
    Ending,
    SearchInProgress,
    SearchShard,
    Settings,
    Watch,
    WorkerSetup,
    perform,
    prepare,
    problem_of,
    search_subject,
)
from fairbits.store import Layout, Run, place_of
from fairbits.subject import Subject


def search(
    subject: Subject,
    settings: Settings,
    folder: str | Path | None = None,
    *,
    executor_options: ExecutorOptions | None = None,
    shards: int | None = None,
    resume: bool = False,
    force: bool = False,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    began: float | None = None,
    **grants: Unpack[GrantOptions],
) -> Run:
    """Search by whomever was asked for, and give back the run.

    A budget in evaluations gives the same cases whoever does it.
    """
    executor_options = executor_options or ExecutorOptions(threads=settings.threads)
    by_workers = None
    if executor_options.elsewhere:
        by_workers = partial(_by_workers, executor_options, Portable.of(subject, **grants))
    return search_subject(
        subject,
        replace(settings, threads=executor_options.each),
        folder,
        tasks=shards,
        executor_options=executor_options,
        by_workers=by_workers,
        resume=resume,
        force=force,
        watch=watch,
        stop=stop,
        began=began,
    )


def _by_workers(
    executor_options: ExecutorOptions,
    subject: Portable,
    setup: WorkerSetup,
    settings: Settings,
    tasks: Iterator[SearchShard],
    search: SearchInProgress,
) -> Ending:
    """Have all tasks done by an executor, and again where a worker was lost."""
    folder, buckets, batch = str(setup.folder), setup.buckets, setup.batch

    def prepared(about: Portable) -> WorkerSetup:
        problem, strategy = problem_of(about.open(), settings)
        prepare(problem, strategy)
        return WorkerSetup(problem, strategy, Layout(problem.schema), place_of(folder), buckets, batch)

    listener = Listener(
        started=search.start,
        done=lambda number, outcome: search.done(number, *outcome),
        fault=lambda number, attempt, fault: search.fault(number, attempt, fault.kind, fault.words),
        tick=search.tick,
        stop=search.stop,
    )
    carried = carry_out(
        executor_options,
        Job(prepared, lambda setup, task, stop: perform(setup, task, stop=stop), subject),
        ((task.number, task) for task in tasks),
        listener,
        pack=lambda task: replace(task, elapsed=search.elapsed),
    )
    lost = {number: f"after {RETRIES + 1} tries: {fault.words}" for number, fault in carried.lost.items()}
    return Ending(carried.stopped, lost)


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
        results = _done(executor_options, subject, prepare, hold, blocks, "neurons of block {} could not be held")
        return Tried(*(np.concatenate([getattr(block, part.name) for block in results]) for part in fields(Tried)))

    return try_out


def train_out_by(executor_options: ExecutorOptions) -> TrainOut | None:
    """A function that trains models with an executor; None where this process does it anyway."""
    if not executor_options.many:
        return None

    def train_out(subject: Subject, people: Codes, seeds: Sequence[int], *, epochs: int | None = None) -> list[Trained]:
        return _done(
            executor_options,
            subject,
            lambda about: about,
            lambda about, seed: train_here(about, people, [seed], epochs=epochs)[0],
            seeds,
            "training {} was not done",
        )

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
        lambda shared: prepare(shared.open() if isinstance(shared, Portable) else shared),
        lambda state, shard, _: perform(state, shard),
        Portable.of(subject) if executor_options.elsewhere else subject,
    )
    carried = carry_out(executor_options, job, enumerate(shards))
    for number, fault in carried.lost.items():
        raise FairbitsError(f"{lost.format(number + 1)}: {fault.words}; try with fewer workers.")
    return [carried.results[number] for number in range(len(shards))]
