"""A search from its first round to its summary: on disk, reproducible, and able to go on after any end.

Round r of seed s always proposes the same people. A run that was killed goes on by repeating the round that it was in:
people who are on disk already are recognised and not kept twice, so that it ends with the cases of an unbroken run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.data import Subject
from fairbits.engine.crew import thread_count
from fairbits.errors import OptionError
from fairbits.measure import evaluator_of
from fairbits.randomness import generator
from fairbits.search.budget import Budget, BudgetSpent, Stopped
from fairbits.search.oracle import Clock, Oracle, Tally
from fairbits.search.problem import Problem
from fairbits.search.registry import DEFAULT, STRATEGIES, make_strategy
from fairbits.search.seen import Seen, keys_of
from fairbits.search.strategy import Strategy, people_in
from fairbits.search.summary import summarise
from fairbits.store import Run, RunWriter
from fairbits.store.places import new_folder

Watch = Callable[[Tally, float], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides which cases a search finds, and how long it may take."""

    budget: Budget
    strategy: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    epsilon: float | None = None
    partition: str = "constrained"
    within: int | None = None
    min_plausibility: float | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise OptionError(f"the seed is {self.seed}; it must be 0 or larger.")


def search_subject(
    subject: Subject,
    settings: Settings,
    folder: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Clock = time.perf_counter,
) -> Run:
    """Search, keep everything on disk, and give back the run. ``stop`` is asked before every batch."""
    problem, _ = problem_of(subject, settings)
    place = Path(folder) if folder is not None else new_folder(subject.name, settings.strategy)
    settings, strategy = fitted(settings, problem, settings.budget, place if resume else None)
    manifest = manifest_of(subject, settings, problem.evaluator.epsilon)
    keeping: dict[str, Any] = {"complete": problem.realism, "in_step": thread_count(settings.threads) == 1}
    if resume:
        writer = RunWriter.resume(place, manifest, **keeping)
    else:
        writer = RunWriter.create(place, manifest, subject.schema, force=force, **keeping)
    with writer:
        prepare(problem, strategy)
        known = _restored(problem, writer)
        oracle = Oracle(problem, settings.budget, writer, watch=watch, stop=stop, clock=clock, **known)
        oracle.tally.goal = strategy.people
        status = _rounds(strategy, oracle, writer, settings.seed)
        oracle.close_round()
        writer.flush()
        exact = strategy.rounds is not None and status == "finished"
        summary = summarise(Run.open(place), oracle, settings, exact_within=strategy.exact_within if exact else None)
        writer.finish(status, summary)
    return Run.open(place)


def problem_of(subject: Subject, settings: Settings) -> tuple[Problem, Strategy]:
    """What is searched, and how: refuses settings that make no sense for this subject."""
    evaluator = evaluator_of(subject, epsilon=settings.epsilon, partition=settings.partition, threads=settings.threads)
    problem = Problem(evaluator, subject.table, within=settings.within, min_plausibility=settings.min_plausibility)
    return problem, make_strategy(settings.strategy, settings.options, problem)


def fitted(
    settings: Settings, problem: Problem, budget: Budget, before: Path | None = None
) -> tuple[Settings, Strategy]:
    """Settings with the options that the strategy fits to a budget, and the strategy that they make.

    Parameters
    ----------
    settings
        As asked for; options that are given stay as they are.
    problem
        What is searched.
    budget
        Of one task: the whole search, or a shard of it.
    before
        The folder of the run that goes on, if one does: it keeps the options that it began with.
    """
    kind, given = STRATEGIES.get(settings.strategy), settings.options
    if kind is None:  # an enumeration has nothing to fit
        return settings, make_strategy(settings.strategy, given, problem)
    if before is not None:
        record = Run.open(before).manifest
        kept = record["options"] if record["strategy"] == settings.strategy else {}
        given = {**{name: kept[name] for name in kept if name in kind.fits}, **given}
    m, native = problem.evaluator.m, problem.evaluator.native
    options = kind.fitted(given, people=people_in(budget, m=m, native=native), m=m)
    return replace(settings, options=options), make_strategy(settings.strategy, options, problem)


def _rounds(strategy: Strategy, oracle: Oracle, writer: RunWriter, seed: int) -> str:
    """Round after round until the budget or the strategy ends; says how it ended."""
    first = (writer.last_checkpoint or {}).get("rounds", 0)
    numbers = itertools.count(first) if strategy.rounds is None else range(first, strategy.rounds)
    try:
        for number in numbers:
            strategy.round(oracle, generator(seed, strategy.name, number), number)
            oracle.close_round()
            writer.checkpoint({"rounds": number + 1, "seconds": oracle.seconds, "tally": asdict(oracle.tally)})
    except BudgetSpent as end:
        # A strategy that would have come to an end of its own did not get there.
        return "interrupted" if isinstance(end, Stopped) or strategy.rounds is not None else "finished"
    return "finished"


def prepare(problem: Problem, strategy: Strategy) -> None:
    """Everything that is done once: compile, index, cluster. The clock starts afterwards."""
    someone = problem.rows[:1]
    problem.realism(someone)
    problem.evaluator.evaluate(someone)
    if problem.evaluator.has_gradients:
        problem.evaluator.gradients(someone, np.zeros(1, dtype=np.int64))
    if strategy.rounds is None:
        _ = problem.partitions
    strategy.prepare(problem)


def _restored(problem: Problem, writer: RunWriter) -> dict[str, Any]:
    """What an oracle must know to go on with the run on disk; nothing for a new one."""
    if not writer.cases and not writer.last_checkpoint:
        return {}
    seen = Seen(capacity_hint=max(writer.cases * 2, 1_000_000))
    for codes in writer.stored_codes():
        seen.add(keys_of(codes, problem.person))
    state = writer.last_checkpoint or {}
    known = Run.open(writer.folder).query(
        "SELECT count(*) AS cases, count(*) FILTER (flips) AS ids, coalesce(max(seconds), 0) AS seconds FROM cases"
    )
    stored = known.to_pylist()[0]
    tally = Tally(**state.get("tally", {}))
    # Cases on disk may be ahead of the checkpoint; the repeated round will not keep them again, so count them now.
    tally.cases, tally.id_cases = stored["cases"], stored["ids"]
    return {
        "seen": seen,
        "tally": tally,
        "used_seconds": max(float(stored["seconds"]), float(state.get("seconds", 0.0))),
    }


def manifest_of(subject: Subject, settings: Settings, epsilon: float) -> dict[str, Any]:
    """What run.json keeps about a search."""
    return {
        "subject": subject.name,
        "source": subject.source,
        "fingerprint": subject.fingerprint(),
        "protected": list(subject.schema.protected),
        "strategy": settings.strategy,
        "options": dict(settings.options),
        "seed": settings.seed,
        "epsilon": epsilon,
        "partition": settings.partition,
        "within": settings.within,
        "min_plausibility": settings.min_plausibility,
        "threads": settings.threads,
        "budget": asdict(settings.budget),
        "quality": None if subject.quality is None else subject.quality.figures(),
        "as_is": subject.as_is,
    }
