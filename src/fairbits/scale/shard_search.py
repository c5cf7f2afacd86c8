"""What a worker of a sharded search does: prepare once, then search shard after shard."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairbits.data import Subject
from fairbits.engine.crew import thread_count
from fairbits.randomness import generator
from fairbits.scale.job import Signals
from fairbits.scale.planning import Shard
from fairbits.scale.portable import Portable
from fairbits.search import BudgetSpent, Oracle, Settings
from fairbits.search.budget import Stopped
from fairbits.search.problem import Problem
from fairbits.search.running import prepare as prepare_search
from fairbits.search.running import problem_of
from fairbits.search.strategy import Strategy
from fairbits.store import ShardWriter
from fairbits.store.places import place_of
from fairbits.store.records import Layout


@dataclass(frozen=True, slots=True)
class Shared:
    """What all shards of a search share."""

    subject: Subject | Portable  # itself only where nothing goes to another process
    settings: Settings
    folder: str


@dataclass(frozen=True, slots=True)
class Bench:
    """A worker's own: everything that is compiled, indexed and clustered once."""

    problem: Problem
    strategy: Strategy
    layout: Layout
    folder: Path


@dataclass(frozen=True, slots=True)
class Task:
    """A shard, and how many seconds of the run had passed when it was handed out."""

    shard: Shard
    elapsed: float


def prepare(shared: Shared) -> Bench:
    """Open the subject and get ready to search it."""
    subject = shared.subject.open() if isinstance(shared.subject, Portable) else shared.subject
    problem, strategy = problem_of(subject, shared.settings)
    prepare_search(problem, strategy)
    return Bench(problem, strategy, Layout(subject.schema), place_of(shared.folder))


def perform(bench: Bench, task: Task, signals: Signals) -> dict[str, Any]:
    """Search one shard. Its cases are written as they are found; its record comes last, and makes them count."""
    shard = task.shard
    writer = ShardWriter(
        bench.folder,
        bench.layout,
        shard.number,
        offset=shard.offset,
        complete=bench.problem.realism,
        in_step=thread_count(bench.problem.evaluator.threads) == 1,
    )
    try:
        oracle = Oracle(
            bench.problem,
            shard.budget,
            writer,
            used_seconds=task.elapsed,
            watch=lambda tally, _: signals.tell(tally),
            stop=signals.stop,
        )
        ended = _rounds(bench.strategy, oracle, shard)
        oracle.close_round()
        found: dict[str, Any] = {
            "ended": ended,
            "seconds": oracle.seconds - task.elapsed,
            "tally": asdict(oracle.tally),
            "findings": oracle.findings,
        }
        if ended == "stopped":
            writer.flush()
            return found
        return writer.commit(found)
    finally:
        writer.close()


def _rounds(strategy: Strategy, oracle: Oracle, shard: Shard) -> str:
    """Round after round; says what ended it: the strategy, its share of the budget, the clock, or a person."""
    try:
        for number in shard.rounds():
            strategy.round(oracle, generator(shard.seed, strategy.name, number), number)
            oracle.close_round()
    except Stopped:
        return "stopped"
    except BudgetSpent:
        seconds = shard.budget.seconds
        return "time" if seconds is not None and oracle.seconds >= seconds else "share"
    return "rounds"
