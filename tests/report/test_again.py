"""The commands that a report prints give the same cases again, also where the search was ended by the clock."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fairbits import Budget, load_subject
from fairbits.audit import AuditRun
from fairbits.audit.run import compare, settings_again
from fairbits.cli.app import app
from fairbits.report.sections.paperwork import commands
from fairbits.scale import ExecutorOptions
from fairbits.scale.run import search
from fairbits.search import Settings, search_subject, shards
from fairbits.store import Run
from fairbits.store.folder import read_records

_ORDER = "SELECT * EXCLUDE (seconds) FROM cases ORDER BY evaluation"


def made_again(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Do what the page says."""
    assert run.summary is not None
    command = commands(run.manifest, run.summary, {})[0]
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    again = Run.open(folder / "again")
    assert again.query(_ORDER).equals(run.query(_ORDER))
    assert again.summary is not None
    assert again.content(anew=True) == run.content(anew=True) == run.summary["content"] == again.summary["content"]
    return again


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"strategy": "dice", "seed": 3, "epsilon": 0.0123456789, "options": {"seeds": 400, "feedback": "binary"}},
        {"within": 2, "min_plausibility": 10.0, "partition": "grid"},
        {"strategy": "random", "threads": 2},
    ],
    ids=["default", "dice", "bounded", "threads"],
)
def test_a_timed_run_is_made_again(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "MIN_PEOPLE", 200)  # an uncounted search is one task, a counted one would be many
    ticks = itertools.count()
    subject = load_subject("german").with_protected(["sex"])
    timed = search_subject(
        subject, Settings(budget=Budget(seconds=1.0), **settings), tmp_path / "timed", clock=lambda: next(ticks) / 40
    )
    assert len(made_again(timed, tmp_path, monkeypatch)) > 100
    assert timed.summary is not None
    assert timed.summary["evaluations"] > 500


@pytest.mark.parametrize(
    ("budget", "shards"),
    [
        (Budget(evaluations=4000), None),
        (Budget(evaluations=4001), 3),
        (Budget(cases=700), None),
        (Budget(queries=60_000), None),
    ],
    ids=["evaluations", "shards", "cases", "queries"],
)
def test_other_budgets(budget: Budget, shards: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(budget=budget, options={"seeds": 50}, threads=1)
    run = search_subject(load_subject("german"), settings, tmp_path / "run", tasks=shards)
    made_again(run, tmp_path, monkeypatch)


def test_a_timed_run_by_several_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = load_subject("german")
    run = search(
        subject,
        Settings(budget=Budget(seconds=0.4), options={"seeds": 50}),
        tmp_path / "run",
        executor_options=ExecutorOptions(workers=2),
    )
    assert run.summary is not None
    assert len(run.summary["ends"]) == run.summary["shards"] == 2
    made_again(run, tmp_path, monkeypatch)


def test_a_search_that_the_clock_ends_among_its_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    settings = Settings(budget=Budget(seconds=1.0, evaluations=60_000), options={"seeds": 50}, threads=1)
    run = search_subject(load_subject("german"), settings, tmp_path / "run", tasks=30, clock=lambda: next(ticks) / 1000)
    assert run.summary is not None
    assert 1 < len(run.summary["ends"]) < 30
    made_again(run, tmp_path, monkeypatch)


def test_a_run_that_somebody_stopped_and_that_went_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()
    subject, settings = load_subject("german"), Settings(budget=Budget(seconds=60), options={"seeds": 50}, threads=1)
    run = search_subject(subject, settings, tmp_path / "run", stop=lambda: next(calls) > 30)
    assert run.status == "interrupted"
    made_again(run, tmp_path, monkeypatch)
    longer = Settings(budget=Budget(evaluations=run.summary["evaluations"] + 777), options={"seeds": 50}, threads=1)
    more = search_subject(subject, longer, tmp_path / "run", resume=True)
    unbroken = search_subject(subject, longer, tmp_path / "unbroken")
    assert compare(more, unbroken).equal


def test_report_check(tmp_path: Path) -> None:
    ticks = itertools.count()
    settings = Settings(budget=Budget(seconds=1.0), options={"seeds": 50}, threads=1)
    run = search_subject(load_subject("german"), settings, tmp_path / "run", clock=lambda: next(ticks) / 100)

    def ask(*more: str) -> Any:
        return CliRunner().invoke(app, ["report", str(run.folder), "--check", *more], catch_exceptions=False)

    same = ask()
    assert same.exit_code == 0
    assert "The same again" in same.output
    # A run whose record says that it went on a little longer than its cases do.
    record = read_records(run.folder)[0]
    record_file, summary_file = run.folder / "tasks" / record.name, run.folder / "summary.json"
    summary = json.loads(summary_file.read_text())
    summary_file.write_text(json.dumps(summary | {"ends": [summary["ends"][0] + 50]}))
    other = ask("--json")
    assert other.exit_code == 1
    assert json.loads(other.output)["differences"][0].startswith("cases ")
    assert record_file.is_file()


def test_a_run_that_has_not_ended_can_be_checked(tmp_path: Path) -> None:
    class BrokenError(Exception):
        pass

    calls = itertools.count()

    def watch(*_: object) -> None:
        if next(calls) > 20:
            raise BrokenError

    subject = load_subject("german")
    settings = Settings(budget=Budget(seconds=60), options={"seeds": 50}, threads=1)
    with pytest.raises(BrokenError):
        search_subject(subject, settings, tmp_path / "run", watch=watch)
    run = Run.open(tmp_path / "run")
    assert (run.status, run.summary) == ("failed", None)
    assert settings_again(run)[0].budget.ends == (run.tasks[0].evaluations,)
    assert AuditRun.open(run.folder).check().equal
