"""A run made again from what it wrote down, and compared with what it found."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from fairbits.domain import GrantOptions
from fairbits.errors import OptionError
from fairbits.scale import ExecutorOptions, search
from fairbits.search import Budget, Settings, Watch, kept_budget, kept_settings
from fairbits.store import Run, subject_of
from fairbits.subject import Subject

_COUNTS = """
    SELECT count(*) AS cases, count(*) FILTER (flips) AS id_cases, coalesce(max(k), 0) AS k_max,
           coalesce(sum(k), 0)::BIGINT AS k_sum, coalesce(max(evaluation), 0) AS last_evaluation FROM cases
"""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Whether a run came out the same again."""

    equal: bool
    before: str
    after: str
    differences: tuple[str, ...] = ()


def settings_again(run: Run) -> tuple[Settings, int | None]:
    """Settings that make a run again: no clock, but where it ended each task."""
    summary = run.summary or {}
    limits = replace(kept_budget(run.manifest), seconds=1e9)
    ends = summary.get("ends") or run.manifest["budget"].get("ends")
    if run.summary is None:
        ends = [record.evaluations for record in run.tasks.values()]
    counted = any(getattr(limits, name) is not None for name in ("evaluations", "cases", "queries"))
    budget = replace(limits, ends=None if ends is None else tuple(ends))
    if counted or ends is not None:
        budget = replace(budget, seconds=None)
    settings = Settings(budget=budget, **kept_settings(run.manifest, {}))
    return settings, run.manifest["shards"] if counted or budget == Budget(seconds=1e9) else None


def remake(
    run: Run,
    folder: Path,
    *,
    subject: Subject | None = None,
    executor_options: ExecutorOptions | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    **grants: Unpack[GrantOptions],
) -> Run:
    """Make a run again in another folder, as the command on its page does."""
    about = subject_of(run, subject, **grants)
    settings, tasks = settings_again(run)
    if settings.budget.ends is not None and not any(settings.budget.ends):
        raise OptionError(
            f"the run in {str(run.folder)!r} ended before anybody was asked; there is nothing to compare."
        )
    return search(
        about, settings, folder, executor_options=executor_options, shards=tasks, watch=watch, stop=stop, **grants
    )


def check(
    run: Run,
    *,
    subject: Subject | None = None,
    executor_options: ExecutorOptions | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    **grants: Unpack[GrantOptions],
) -> RunComparison:
    """Make a run again in a temporary folder, and compare what both found."""
    with tempfile.TemporaryDirectory(prefix="fairbits-check-") as place:
        again = remake(
            run,
            Path(place) / "again",
            subject=subject,
            executor_options=executor_options,
            watch=watch,
            stop=stop,
            **grants,
        )
        return compare(run, again)


def compare(run: Run, again: Run) -> RunComparison:
    """Compare two runs by their content."""
    before, after = run.content(anew=True), again.content(anew=True)
    written = (run.summary or {}).get("content")
    differences = []
    if written is not None and written.split(":")[0] == before.split(":")[0] and written != before:
        differences.append(f"the cases in {str(run.folder)!r} are not those that its search wrote down ({written})")
    if before != after:
        one, other = (found.query(_COUNTS).to_pylist()[0] for found in (run, again))
        different = [f"{name} {one[name]:,}, now {other[name]:,}" for name in one if one[name] != other[name]]
        differences += different or ["the figures of some cases, though not how many there are"]
        differences += [
            f"{name} {run.versions[name]}, now {again.versions[name]}"
            for name in run.versions
            if run.versions[name] != again.versions.get(name)
        ]
    return RunComparison(not differences, before, after, tuple(differences))
