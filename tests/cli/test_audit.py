"""`fairbits audit` and `fairbits report`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairbits.audit.auditing import Shares
from fairbits.cli.app import app
from fairbits.errors import FairbitsError

QUICK = ["--budget", "2s", "--threads", "1"]


def call(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits") / "german"
    call("audit", "german", "--out", str(folder), *QUICK)
    return folder


def test_every_stage_leaves_its_files(run: Path) -> None:
    names = ("run.json", "measure.json", "debug.json", "repair.json", "summary.json", "report.html", "report.md")
    assert all((run / name).is_file() for name in names)


def test_a_second_audit_does_nothing_twice(run: Path) -> None:
    before = {name: (run / name).stat().st_mtime_ns for name in ("run.json", "debug.json", "repair.json")}
    shown = call("audit", "--resume", str(run), "--threads", "1")
    assert {name: (run / name).stat().st_mtime_ns for name in before} == before
    assert len(shown.splitlines()) <= 25
    assert shown.rstrip().replace("\n", "").endswith("report.html")


def test_report_writes_where_it_is_told(run: Path, tmp_path: Path) -> None:
    shown = call("report", str(run), "--out", str(tmp_path / "here"))
    assert Path(shown.strip()) == tmp_path / "here" / "report.html"
    assert (tmp_path / "here" / "summary.json").is_file()


def test_stages_can_be_left_out(tmp_path: Path) -> None:
    """Without a search, the cases are the rows of the table, and the figure about them is exact."""
    folder = tmp_path / "run"
    out = json.loads(call("audit", "german", "--skip", "search,debug,repair", "--out", str(folder), "--json", *QUICK))
    assert out["summary"]["strategy"] == "exhaustive"
    assert "k_max_on_data" in out["summary"]["exact"]
    assert out["summary"]["debug"] is None
    assert not (folder / "debug.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit"], "no subject was given"),
        (["audit", "german", "--skip", "serach"], "Did you mean 'search'"),
        (["audit", "german", "--budget", "0s"], "budget"),
        (["report", "nowhere"], "does not exist"),
    ],
)
def test_wrong_use_gets_a_sentence(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FairbitsError, match=message):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


def test_other_settings_do_not_go_on(run: Path) -> None:
    with pytest.raises(FairbitsError, match="--seed is 5, but the run was made with 0"):
        CliRunner().invoke(app, ["audit", "--resume", str(run), "--seed", "5"], catch_exceptions=False)


def test_a_budget_is_split() -> None:
    assert Shares.of(60).search + 2 * Shares.of(60).attack < 60
    assert Shares.of(60).retrain
    assert not Shares.of(20).retrain
