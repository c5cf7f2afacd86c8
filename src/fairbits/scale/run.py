"""A search whose tasks are done by workers: processes of this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from fairbits.domain import GrantOptions
from fairbits.scale.executor import RETRIES, ExecutorOptions, Job, Portable, Signals, carry_out, open_executor
from fairbits.search import (
    Ending,
    Events,
    SearchShard,
    Settings,
    Watch,
    WorkerSetup,
    perform,
    prepare,
    problem_of,
    search_subject,
)
from fairbits.store import Layout, Run, TaskRecord, place_of
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
    chosen = None
    if executor_options is not None and executor_options.many:
        packed = Portable.of(subject, **grants) if executor_options.elsewhere else subject
        chosen = Workers(executor_options, packed)
    threads = settings.threads if executor_options is None else executor_options.each
    return search_subject(
        subject,
        replace(settings, threads=threads),
        folder,
        tasks=shards,
        runner=chosen,
        resume=resume,
        force=force,
        watch=watch,
        stop=stop,
        began=began,
    )


@dataclass(frozen=True, slots=True)
class Workers:
    """Has tasks done by an executor, and again where a worker was lost."""

    executor_options: ExecutorOptions
    subject: Subject | Portable

    @property
    def many(self) -> bool:
        """Whether several workers share a search that only the clock ends: one alone shares with no other."""
        return self.executor_options.elsewhere

    @property
    def threads(self) -> int | None:
        """Threads of each worker."""
        return self.executor_options.each

    def manifest(self) -> dict[str, Any]:
        """What run.json says about the workers."""
        return {"workers": self.executor_options.workers, "ray": self.executor_options.ray}

    def carry_out(self, bench: WorkerSetup, settings: Settings, tasks: Iterator[SearchShard], events: Events) -> Ending:
        """Do all tasks of a search."""
        shared = _Shared(self.subject, settings, str(bench.folder), bench.buckets, bench.batch)
        job = Job(_prepare, _perform, shared)
        with open_executor(self.executor_options, job, stop=events.stop, progress=events.progress) as executor:
            events.started(executor.name, executor.slots)
            carried = carry_out(
                executor,
                ((task.number, task) for task in tasks),
                pack=lambda task: replace(task, elapsed=events.elapsed()),
                on_done=lambda number, found: events.done(number, *found),
                on_fault=lambda number, attempt, fault: events.fault(number, attempt, fault.kind, fault.words),
                on_tick=events.tick,
                stop=events.stop,
            )
        lost = {number: fault.words for number, fault in carried.lost.items()}
        return Ending(carried.stopped, lost, RETRIES + 1)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all workers of a search are given, once."""

    subject: Subject | Portable  # itself only where nothing goes to another process
    settings: Settings
    folder: str
    buckets: int
    batch: int | None


def _prepare(shared: _Shared) -> WorkerSetup:
    """Open the subject and get ready to search it."""
    subject = shared.subject.open() if isinstance(shared.subject, Portable) else shared.subject
    problem, strategy = problem_of(subject, shared.settings)
    prepare(problem, strategy)
    folder = place_of(shared.folder)
    return WorkerSetup(problem, strategy, Layout(subject.schema), folder, shared.buckets, shared.batch)


def _perform(bench: WorkerSetup, task: SearchShard, signals: Signals) -> tuple[TaskRecord, float]:
    return perform(bench, task, stop=signals.stop, progress=signals.progress)
