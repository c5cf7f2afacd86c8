"""How a search is cut into shards (tasks, on disk): by its budget and its options, never by who will do them.

A task takes every so-many-th round of the search and its share of the budget. So one task alone is the whole search,
and tasks can be done in any order, anywhere, and again. Where only the clock ends a search, every worker has one task
that goes on until then; where each of them ended is written down, and ``Budget(ends=...)`` makes the same run again.

What it means that a run goes on is decided here, and nowhere else:

* The settings that decide which cases are found stay as they were; whoever asks for others is told which differ.
  Only the budget, the threads and the workers may be others.
* A budget is that of the whole run, not of what is added. The time may be longer or shorter. So may the other limits
  where there is one task; with several, whose shares were cut from them, they stay.
* A budget that has been spent adds nothing, and the run says so.
* A task begins again after its last whole round. Up to the point where it was, it repeats itself: nothing is kept
  twice, no limit ends it, and its clock shows what it showed then. So a run that went on is the run that never stopped.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.engine import Seen, keys_of, thread_count, work_time
from fairbits.errors import OptionError
from fairbits.models import HasGradients
from fairbits.randomness import generator
from fairbits.search.budget import COUNTED, Budget, BudgetSpent, Replay, Stopped, Tally
from fairbits.search.oracle import Clock, Oracle
from fairbits.search.problem import Problem
from fairbits.search.settings import SETTINGS
from fairbits.search.strategy import Strategy
from fairbits.store import Layout, Run, TaskRecord, TaskWriter, check_same, plain, read_records

#: People asked about in a task: at least, so that its search leads somewhere; and at most, where that still leaves
#: as many tasks as this.
MIN_PEOPLE, MAX_PEOPLE, ENOUGH = 250_000, 1_000_000, 64
#: Of a search that only the clock ends, task n takes the rounds from n times this on.
ROUNDS_APART = 1_000_000
#: Evaluations of a task are numbered from its number times this, where its share is not counted in evaluations.
NUMBERS_APART = 1_000_000_000
#: Limits of which every task has a share; the clock is the same for all.
_SHARED = ("evaluations", "cases", "queries")
#: People in a bucket of the cases, about; and how many buckets there are where there are several tasks.
BUCKET_PEOPLE, MIN_BUCKETS, MAX_BUCKETS = 4_000_000, 16, 256


@dataclass(frozen=True, slots=True)
class SearchShard:
    """A piece of a search as plain data: which rounds, and its share of the budget."""

    number: int
    seed: int
    first: int
    stride: int
    end: int | None
    budget: Budget
    offset: int
    elapsed: float = 0.0  # seconds of the search when it is handed out

    def rounds(self, done: int = 0) -> Iterator[int]:
        """Numbers of the task's rounds."""
        first = self.first + done * self.stride
        endless = itertools.count(first, self.stride)
        return endless if self.end is None else iter(range(first, self.end, self.stride))


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """All tasks of a search; make one with ``of``."""

    seed: int
    budget: Budget
    count: int | None
    rounds: int | None = None

    @classmethod
    def of(
        cls, budget: Budget, strategy: Strategy, *, seed: int, m: int, tasks: int | None = None, shared: bool = False
    ) -> ShardPlan:
        """Cut a search into tasks."""
        if tasks is not None and tasks < 1:
            raise OptionError(f"shards is {tasks}; cut the search into one at least.")
        # About how many people the budget asks about, where anything but the clock says so.
        counts = [budget.evaluations, budget.cases, None if budget.queries is None else max(1, budget.queries // m)]
        counted = min((one for one in counts if one is not None), default=None)
        limit = strategy.rounds
        count: int | None = 1
        if limit is not None:  # what a budget leaves of an enumeration depends on its order: one task
            count = min(limit, tasks or (limit if shared else 1)) if counted is None and budget.ends is None else 1
        elif counted is not None:
            usual = max(1, min(counted // MIN_PEOPLE, max(ENOUGH, -(-counted // MAX_PEOPLE))))
            count = min(tasks or usual, counted)
        elif budget.ends is not None:
            count = len(budget.ends)
        elif shared:
            count = None
        if budget.ends is not None and count is not None and len(budget.ends) > count:
            raise OptionError(f"--ends names {len(budget.ends)} tasks, but the search has {count}; give --shards too.")
        return cls(seed, budget, count, limit)

    @property
    def buckets(self) -> int:
        """Into how many buckets, by the hash of the person, the cases of every task are cut."""
        if self.count == 1:  # it knows everybody who was found
            return 1
        people = max(self.budget.evaluations or 0, self.budget.cases or 0)
        return int(np.clip(1 << max(0, (people // BUCKET_PEOPLE) - 1).bit_length(), MIN_BUCKETS, MAX_BUCKETS))

    def tasks(self) -> Iterator[SearchShard]:
        """In the order in which they are handed out."""
        numbers: Iterable[int] = itertools.count() if self.count is None else range(self.count)
        if self.budget.ends is not None:
            numbers = [number for number, end in enumerate(self.budget.ends) if end]
        return map(self.task, numbers)

    def task(self, number: int) -> SearchShard:
        """One task of the plan."""
        limits, offset = self._share(number)
        if self.budget.ends is not None:
            end = self.budget.ends[number]
            limits["evaluations"] = min(limits.get("evaluations", end), end)
        first, stride, last = number, self.count or 1, self.rounds
        if self.rounds is not None:  # an enumeration is cut into stretches, which are written in order
            first = number * self.rounds // stride
            last, stride = (number + 1) * self.rounds // stride, 1
        elif self._by_the_clock:
            first, stride = number * ROUNDS_APART, 1
        return SearchShard(number, self.seed, first, stride, last, Budget(**limits), offset)

    @property
    def _by_the_clock(self) -> bool:
        """Whether nothing but a clock, or where one ended an earlier run, ends the tasks."""
        return all(getattr(self.budget, name) is None for name in _SHARED)

    def _share(self, number: int) -> tuple[dict[str, Any], int]:
        """The limits of a task, and where its evaluations are numbered from."""
        limits = {name: limit for name in COUNTED if (limit := getattr(self.budget, name)) is not None}
        if self.count is None or self.count == 1 or self.rounds is not None or self._by_the_clock:
            return limits, number * NUMBERS_APART
        shares = {name: _split(total, self.count, number) for name, total in limits.items() if name in _SHARED}
        total = self.budget.evaluations
        before = [] if total is None else [_split(total, self.count, other) for other in range(number)]
        return {**limits, **shares}, number * NUMBERS_APART if total is None else sum(before)


def _split(total: int, count: int, number: int) -> int:
    """Share ``number`` of a total, as equal as whole numbers can be."""
    return total // count + (number < total % count)


def kept_settings(manifest: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run that goes on."""
    said = {name: value for name, value in asked.items() if value is not None and value != {}}
    check_same({name: manifest.get(name) for name in said}, said)
    return {name: manifest[name] for name in SETTINGS if manifest.get(name) is not None}


def kept_plan(run: Run, plan: ShardPlan, tasks: int | None) -> ShardPlan:
    """The tasks of a resumed run: those that it was cut into, under the budget that is asked for now."""
    count, was = run.manifest["shards"], run.manifest["budget"]
    if tasks is not None and tasks != count:
        has = "one task for every worker" if count is None else f"{count} shard{'' if count == 1 else 's'}"
        raise OptionError(f"the run in {str(run.folder)!r} has {has}, not {tasks}; leave --shards out.")
    now = plain(asdict(plan.budget))
    for name in (*_SHARED, "ends") if count != 1 else ():
        if was.get(name) != now[name]:
            raise OptionError(
                f"this run cannot go on with a budget of {now[name]} {name}: its shards were cut from "
                f"{was.get(name)}; repeat that budget, or start a new run."
            )
    return replace(plan, count=count)


def is_open(task: SearchShard, record: TaskRecord | None, m: int) -> bool:
    """Whether a task has work left."""
    if record is None or record.ended is None:
        return True
    done = {"seconds": record.seconds, "evaluations": record.evaluations, "cases": record.rows}
    done["queries"] = record.tally.get("queries", 0) + m - 1  # a person is asked about with all twins, or not at all
    limits = asdict(task.budget)
    spent = any(limits[name] is not None and so_far >= limits[name] for name, so_far in done.items())
    return record.ended != "rounds" and not spent


def begin_again(task: SearchShard, record: TaskRecord | None) -> tuple[int, Tally, Replay | None, Budget]:
    """Where a task begins.

    Where less is allowed now than was done, the task still repeats all of what it did: its record speaks of that.
    """
    if record is None:
        return 0, Tally(), None, task.budget
    state = record.state or {"rounds": 0, "evaluations": 0, "seconds": 0.0, "tally": {}}
    # Cases on disk may be ahead of the last round; the repeated one will not keep them again, so count them now.
    tally = replace(Tally(**state["tally"]), cases=record.rows)
    replay = Replay(state["evaluations"], record.evaluations, state["seconds"], record.seconds)
    allowed = task.budget.evaluations
    budget = replace(task.budget, evaluations=None if allowed is None else max(allowed, record.evaluations))
    return state["rounds"], tally, replay, budget


def notes_on(budget: Budget, tally: Tally, seconds: float) -> list[str]:
    """Notes on a budget that was spent before the run went on."""
    done = {"evaluations": tally.evaluations, "cases": tally.cases, "queries": tally.queries, "seconds": seconds / 1.1}
    return [
        f"the run had used {getattr(tally, name, seconds):,.0f} {name} before it went on, more than the {limit:,.0f} "
        f"it was given now: nothing was added."
        for name, so_far in done.items()
        if (limit := getattr(budget, name)) is not None and so_far > limit
    ]


#: A clock may be missed by this share of the budget, or by so many seconds; and what part of that a batch may take.
LATE, LATE_SECONDS, BATCHES = 0.05, 1.0, 8
#: People in the largest batch that strategies ask about, about: a model that is quick enough for it needs no cutting.
LARGEST_ASK = 4096
#: The same for our own kernels, whose speed a few people say little about.
NATIVE_ASK = 1024


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
    sample_row = problem.rows[:1]
    if learn:
        problem.distance_figures(sample_row)
    else:
        problem.nearest.find(sample_row, threads=1)
    problem.evaluator.evaluate(sample_row)
    if isinstance(problem.evaluator.model, HasGradients):
        problem.evaluator.gradients(sample_row, np.zeros(1, dtype=np.int64))
        problem.evaluator.forecast(sample_row, np.zeros(1, dtype=np.int64))
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
    setup: WorkerSetup,
    task: SearchShard,
    *,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> tuple[TaskRecord, float]:
    """Do one task, or go on with what an earlier attempt at it left."""
    problem = setup.problem
    record = read_records(setup.folder, task.number).get(task.number)
    done, tally, replay, budget = begin_again(task, record)
    with TaskWriter(
        setup.folder,
        setup.layout,
        task.number,
        offset=task.offset,
        buckets=setup.buckets,
        before=record,
        complete=problem.distance_figures,
        in_step=thread_count(problem.evaluator.threads) == 1,
    ) as writer:
        oracle = Oracle(
            problem,
            budget,
            writer,
            seen=_seen_before(problem, writer),
            tally=tally,
            clock=setup.clock,
            used_seconds=task.elapsed,
            replay=replay,
            batch=setup.batch,
            watch=None if progress is None else lambda counted, _: progress(counted),
            stop=stop,
        )
        oracle.findings |= (record.state or {}).get("findings", {}) if record is not None else {}
        ended = _rounds(setup.strategy, oracle, task, writer, done)
        oracle.close_round(finished=False)
        found = writer.commit(
            ended,
            evaluations=oracle.tally.evaluations,
            seconds=oracle.seconds,
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


def _rounds(strategy: Strategy, oracle: Oracle, task: SearchShard, writer: TaskWriter, done: int) -> str:
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
