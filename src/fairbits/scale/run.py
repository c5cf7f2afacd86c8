"""A search whose tasks are done by workers: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from fairbits.domain import GrantOptions
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
    shared = _Shared(subject, settings, str(setup.folder), setup.buckets, setup.batch)
    listener = Listener(
        started=search.start,
        done=lambda number, found: search.done(number, *found),
        fault=lambda number, attempt, fault: search.fault(number, attempt, fault.kind, fault.words),
        tick=search.tick,
        stop=search.stop,
    )
    carried = carry_out(
        executor_options,
        Job(_prepare, lambda setup, task, signals: perform(setup, task, stop=signals.stop), shared),
        ((task.number, task) for task in tasks),
        listener,
        pack=lambda task: replace(task, elapsed=search.elapsed),
    )
    lost = {number: f"after {RETRIES + 1} tries: {fault.words}" for number, fault in carried.lost.items()}
    return Ending(carried.stopped, lost)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all workers of a search are given, once."""

    subject: Portable
    settings: Settings
    folder: str
    buckets: int
    batch: int | None


def _prepare(shared: _Shared) -> WorkerSetup:
    """Open the subject and get ready to search it."""
    problem, strategy = problem_of(shared.subject.open(), shared.settings)
    prepare(problem, strategy)
    layout = Layout(problem.schema)
    return WorkerSetup(problem, strategy, layout, place_of(shared.folder), shared.buckets, shared.batch)
