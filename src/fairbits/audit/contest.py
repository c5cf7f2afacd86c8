"""Strategies against each other, with the files that they leave: figures, document, page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairbits.audit.command import SubjectOrigin, command_of, duration
from fairbits.paper import DOCUMENT, PAGE, Contest, ContestProgress, StrategyComparison, compare
from fairbits.report import contest_of, write_contest
from fairbits.scale import ExecutorOptions
from fairbits.store import new_folder, write_json
from fairbits.subject import Subject


def compare_strategies(
    subject: Subject,
    contest: Contest,
    strategies: Sequence[str] | None = None,
    *,
    origin: SubjectOrigin,
    out: str | Path | None = None,
    executor_options: ExecutorOptions | None = None,
    progress: ContestProgress | None = None,
) -> StrategyComparison:
    """Compare strategies, and write what was found."""
    place = new_folder(subject.name, "compare") if out is None else Path(out)
    found = compare(
        subject,
        contest,
        strategies,
        folder=place,
        executor_options=executor_options,
        progress=progress,
        **origin.grants,
    )
    found = replace(found, folder=place, command=_command(contest, strategies, origin))
    document = found.as_dict()
    write_json(place / DOCUMENT, document)
    write_contest(contest_of(document, command=found.command), place / PAGE)
    return found


def _command(contest: Contest, strategies: Sequence[str] | None, origin: SubjectOrigin) -> str:
    """What compares again; a budget that is not one of time has no command."""
    budget = contest.budget
    others = (budget.evaluations, budget.cases, budget.queries, budget.ends)
    timed = budget.seconds is not None and all(limit is None for limit in others)
    options = {
        "strategies": "all" if strategies is None else list(strategies),
        "budget": duration(budget.seconds or 0.0),
        "repeats": contest.repeats,
        "seed": contest.seed,
        "partition": contest.partition,
        "protected": origin.protected,
        "epsilon": contest.epsilon,
    }
    return command_of("compare", (origin.name if timed else None,), options, origin.grants)
