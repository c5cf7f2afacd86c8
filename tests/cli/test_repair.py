"""`fairbits repair`: what people see, what scripts get, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairbits import load_subject
from fairbits.cli.app import app
from fairbits.errors import OptionError
from fairbits.store import Run
from tests.repair.conftest import run, searched, write_subject  # noqa: F401 - a fixture

from .calling import fairbits


def ask(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["repair", *map(str, arguments)])
    if result.exception:
        raise result.exception
    return result.stdout


def test_the_terminal(run: Run) -> None:  # noqa: F811
    look = ask(run.folder, "--no-retrain", "--attack-budget", "0", "--threads", 1)
    assert len(look.splitlines()) <= 25
    assert look.splitlines()[-1].startswith("next  fairbits measure")
    shown = ask(run.folder, "--no-retrain", "--attack-budget", "500", "--threads", 1, "--all")
    assert "mean k of cases goes from" in " ".join(shown.split())
    assert "shrink-50" in shown
    assert "k ≤ 1 (proved) for everybody" in " ".join(shown.split())
    assert "fresh search" in shown
    assert "Between groups" in shown
    assert "Written, loaded again and compared" in look
    assert "the model may have been trained on them" in " ".join(shown.split())
    lines = [line for line in shown.splitlines() if str(run.folder) not in line]
    assert max(map(len, lines)) <= 80


def test_json(run: Run) -> None:  # noqa: F811
    found = json.loads(ask(run.folder, "--no-retrain", "--attack-budget", "0", "--choose", "blind", "--json"))
    assert found["chosen"] == "blind"
    assert (found["attack_before"], found["attack_after"]) == (None, None)
    assert found["files"] == ["repaired.npz", "repaired.onnx"]
    blind = next(repair for repair in found["repairs"] if repair["name"] == "blind")
    assert blind["held_out"]["k_mean"] == 1


def test_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"has no run\.json"):
        ask(tmp_path)
    searched(load_subject(write_subject(tmp_path / "subject")), tmp_path / "run", evaluations=100)
    with pytest.raises(OptionError, match="'soon' is not a duration"):
        ask(tmp_path / "run", "--attack-budget", "soon")
    done = fairbits("repair", tmp_path / "run", "--max-accuracy-loss", "-1")
    assert done.returncode == 2
    assert done.stderr.startswith("fairbits: the accuracy budget is -1")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "repairs.parquet").exists()
