"""What it means that a run goes on: the one place that decides it.

* The settings that decide which cases are found stay as they were; whoever asks for others is told which differ.
  Only the budget, the threads and the workers may be others.
* A budget is that of the whole run, not of what is added. The time may be longer or shorter. So may the other limits
  where there is one task; with several, whose shares were cut from them, they stay.
* A budget that has been spent adds nothing, and the run says so.
* A task begins again after its last whole round. Up to the point where it was, it repeats itself: nothing is kept
  twice, no limit ends it, and its clock shows what it showed then. So a run that went on is the run that never stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from fairbits.errors import OptionError
from fairbits.search.budget import Budget
from fairbits.search.tally import Replay, Tally
from fairbits.search.tasks import Task, TaskPlan
from fairbits.store import Run, TaskRecord, check_same

#: Settings of a search that a run keeps.
SETTINGS = ("strategy", "options", "seed", "epsilon", "partition", "within", "min_plausibility", "batch", "measure")
#: Limits that tasks share.
_SHARED = ("evaluations", "cases", "queries", "ends")


def kept_settings(manifest: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run that goes on."""
    manifest = {"measure": "q_inf", **manifest}  # runs of earlier versions know one measure
    said = {name: value for name, value in asked.items() if value is not None and value != {}}
    check_same({name: manifest.get(name) for name in said}, said)
    return {name: manifest[name] for name in SETTINGS if manifest.get(name) is not None}


def kept_plan(run: Run, plan: TaskPlan, tasks: int | None) -> TaskPlan:
    """The tasks of a resumed run: those that it was cut into, under the budget that is asked for now."""
    count, was = run.manifest["shards"], run.manifest["budget"]
    if tasks is not None and tasks != count:
        has = "one task for every worker" if count is None else f"{count} shard{'' if count == 1 else 's'}"
        raise OptionError(f"the run in {str(run.folder)!r} has {has}, not {tasks}; leave --shards out.")
    now = asdict(plan.budget)
    for name in _SHARED if count != 1 else ():
        before, asked = was.get(name), now[name]
        if (None if before is None else _plain(before)) != (None if asked is None else _plain(asked)):
            raise OptionError(
                f"this run cannot go on with a budget of {_plain(asked)} {name}: its shards were cut from "
                f"{_plain(before)}; repeat that budget, or start a new run."
            )
    return replace(plan, count=count)


def kept_budget(manifest: Mapping[str, Any]) -> Budget:
    """The budget that a run was last given."""
    return Budget(**manifest["budget"])


def is_open(task: Task, record: TaskRecord | None, m: int) -> bool:
    """Whether a task has work left."""
    if record is None or record.ended is None:
        return True
    return record.ended != "rounds" and not _spent(task.budget, record, m)


def begin_again(task: Task, record: TaskRecord | None) -> tuple[int, Tally, Replay | None, Budget]:
    """Where a task begins.

    Where less is allowed now than was done, the task still repeats all of what it did: its record speaks of that.
    """
    if record is None:
        return 0, Tally(), None, task.budget
    state = record.state or {"rounds": 0, "evaluations": 0, "seconds": 0.0, "tally": {}}
    # Cases on disk may be ahead of the last round; the repeated one will not keep them again, so count them now.
    tally = replace(Tally(**state["tally"]), cases=record.rows)
    replay = Replay(state["evaluations"], record.evaluations, state["seconds"], record.seconds)
    budget = task.budget
    if budget.evaluations is not None:
        budget = replace(budget, evaluations=max(budget.evaluations, record.evaluations))
    return state["rounds"], tally, replay, budget


def notes_on(budget: Budget, tally: Tally, seconds: float) -> list[str]:
    """Notes on a budget that was spent before the run went on."""
    done = {"evaluations": tally.evaluations, "cases": tally.cases, "queries": tally.queries, "seconds": seconds}
    found = []
    for name, so_far in done.items():
        limit = getattr(budget, name)
        if limit is not None and so_far > limit * (1.1 if name == "seconds" else 1.0):
            found.append(
                f"the run had used {so_far:,.0f} {name} before it went on, more than the {limit:,.0f} it was given "
                f"now: nothing was added."
            )
    return found


def _spent(budget: Budget, record: TaskRecord, m: int) -> bool:
    queries = record.tally.get("queries", 0) + m
    return (
        (budget.seconds is not None and record.seconds >= budget.seconds)
        or (budget.evaluations is not None and record.evaluations >= budget.evaluations)
        or (budget.cases is not None and record.rows >= budget.cases)
        or (budget.queries is not None and queries > budget.queries)
    )


def _plain(limit: Any) -> Any:
    return list(limit) if isinstance(limit, Iterable) else limit
