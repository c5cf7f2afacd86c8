"""The commands that a report prints give the same cases again, also where the search was ended by the clock."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairbits import Budget, load_subject
from fairbits.cli.app import app
from fairbits.report import words
from fairbits.search import Settings, search_subject
from fairbits.store import Run

_ORDER = "SELECT * EXCLUDE (seconds) FROM cases ORDER BY evaluation"


@pytest.mark.parametrize(
    "settings",
    [{}, {"strategy": "dice", "seed": 3, "epsilon": 0.0123456789}, {"within": 2, "min_plausibility": 10.0}],
    ids=["default", "dice", "bounded"],
)
def test_a_timed_run_is_made_again(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    subject = load_subject("german")
    timed = search_subject(
        subject, Settings(Budget(seconds=1.0), **settings), tmp_path / "timed", clock=lambda: next(ticks) / 8
    )
    assert timed.summary is not None
    command = words.commands(timed.manifest, timed.summary, {})[0]
    assert command.startswith("fairbits search german ")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    again = Run.open("again")
    assert again.query(_ORDER).equals(timed.query(_ORDER))
    assert len(again) > 100
