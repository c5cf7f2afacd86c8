"""One task of a search, from what an earlier attempt left to its record on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from fairbits.engine import Seen, keys_of, thread_count, work_time
from fairbits.randomness import generator
from fairbits.search.budget import BudgetSpent, Stopped
from fairbits.search.oracle import Clock, Oracle
from fairbits.search.problem import Problem
from fairbits.search.resume import begin_again
from fairbits.search.strategy import Strategy
from fairbits.search.tally import Tally
from fairbits.search.tasks import Task
from fairbits.store import Layout, TaskRecord, TaskWriter, read_records

#: A clock may be missed by this share of the budget, or by so many seconds; and what part of that a batch may take.
LATE, LATE_SECONDS, BATCHES = 0.05, 1.0, 8
#: People in the largest batch that strategies ask about, about: a model that is quick enough for it needs no cutting.
LARGEST_ASK = 4096
#: The same for our own kernels, whose speed a few people say little about.
NATIVE_ASK = 1024


@dataclass(frozen=True, slots=True)
class Order:
    """A task that is handed out."""

    task: Task
    elapsed: float


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker needs for all of its tasks: everything that is compiled, indexed and clustered once."""

    problem: Problem
    strategy: Strategy
    layout: Layout
    folder: Path
    buckets: int
    batch: int | None
    clock: Clock = work_time


def prepare(problem: Problem, strategy: Strategy, *, learn: bool = True) -> None:
    """Do everything that is done once, before the clock starts: compile, index, cluster."""
    someone = problem.rows[:1]
    if learn:
        problem.realism(someone)
    else:
        problem.nearest.find(someone, threads=1)
    problem.evaluator.evaluate(someone)
    if problem.evaluator.has_gradients:
        problem.evaluator.gradients(someone, np.zeros(1, dtype=np.int64))
        problem.evaluator.foresight(someone, np.zeros(1, dtype=np.int64))
    if learn and strategy.rounds is None:
        _ = problem.partitions
    strategy.prepare(problem)


def batch_for(problem: Problem, seconds: float | None) -> int | None:
    """Number of people to ask a slow model about at a time, so that a clock can end the search in time.

    It is chosen once, before the clock starts, and written down: a model's output can depend in its last bit on how
    many rows it gets, so a run that is made again must ask in the same portions.
    """
    if seconds is None:
        return None
    allowed = max(LATE * seconds, LATE_SECONDS) / BATCHES
    problem.evaluator.evaluate(problem.rows[:1])  # compiles, connects
    people, each, tries = 1, float("inf"), 0
    while people <= min(256, len(problem.rows)):
        begin = time.perf_counter()
        problem.evaluator.evaluate(problem.rows[:people])
        took = time.perf_counter() - begin
        each = min(each, took / people)
        if took <= min(allowed / 4, 0.1):
            people *= 4
        elif tries:
            break
        else:
            tries += 1  # a machine that is busy with something else may be slow once
    fitting = int(allowed / max(each, 1e-9))
    enough = NATIVE_ASK if problem.evaluator.native else LARGEST_ASK
    return None if fitting >= enough else 1 << max(0, fitting.bit_length() - 1)


def perform(
    bench: WorkerSetup,
    order: Order,
    *,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> tuple[TaskRecord, float]:
    """Do one task, or go on with what an earlier attempt at it left."""
    problem, task = bench.problem, order.task
    record = read_records(bench.folder, task.number).get(task.number)
    done, tally, replay, budget = begin_again(task, record)
    with TaskWriter(
        bench.folder,
        bench.layout,
        task.number,
        offset=task.offset,
        buckets=bench.buckets,
        before=record,
        complete=problem.realism,
        in_step=thread_count(problem.evaluator.threads) == 1,
    ) as writer:
        oracle = Oracle(
            problem,
            budget,
            writer,
            seen=_seen_before(problem, writer),
            tally=tally,
            clock=bench.clock,
            used_seconds=order.elapsed,
            replay=replay,
            batch=bench.batch,
            watch=None if progress is None else lambda counted, _: progress(counted),
            stop=stop,
        )
        oracle.findings |= (record.state or {}).get("findings", {}) if record is not None else {}
        oracle.tally.goal = bench.strategy.people
        ended = _rounds(bench.strategy, oracle, task, writer, done)
        oracle.close_round(finished=False)
        seconds = oracle.seconds
        found = writer.commit(
            ended,
            evaluations=oracle.tally.evaluations,
            seconds=seconds,
            tally=asdict(oracle.tally),
            findings=oracle.findings,
        )
    return found, oracle.replayed


def _seen_before(problem: Problem, writer: TaskWriter) -> Seen | None:
    """Whom an earlier attempt has kept; None where there was none."""
    if writer.before is None or not writer.before.rows:
        return None
    seen = Seen(capacity_hint=max(writer.before.rows * 2, 1_000_000))
    for codes in writer.stored_codes():
        seen.add(keys_of(codes, problem.person))
    return seen


def _rounds(strategy: Strategy, oracle: Oracle, task: Task, writer: TaskWriter, done: int) -> str:
    """Round after round; says what ended it: the strategy, its share of the budget, the clock, or a person."""
    try:
        for count, number in enumerate(task.rounds(done), done + 1):
            strategy.round(oracle, generator(task.seed, strategy.name, number), number)
            oracle.close_round(finished=True)
            writer.checkpoint(
                {
                    "rounds": count,
                    "evaluations": oracle.tally.evaluations,
                    "seconds": oracle.seconds,
                    "tally": asdict(oracle.tally),
                    "findings": dict(oracle.findings),
                }
            )
    except Stopped:
        return "stopped"
    except BudgetSpent:
        seconds = task.budget.seconds
        return "time" if seconds is not None and oracle.seconds >= seconds else "share"
    return "rounds"
