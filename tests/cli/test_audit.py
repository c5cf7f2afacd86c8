"""`fairbits audit` and `fairbits report`, as they are typed."""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from fairbits import Budget, load_subject
from fairbits.audit import audit_subject
from fairbits.audit.pipeline import Pipeline, Shares, check_time, is_current
from fairbits.cli.app import app
from fairbits.errors import FairbitsError
from fairbits.options import AuditOptions
from fairbits.report import compute_report
from fairbits.search import Settings, search_subject
from fairbits.store import Run
from tests.cli.calling import fairbits

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
    assert next(line for line in shown.splitlines() if line.startswith("page")).endswith("report.html")
    # A command is not broken: two of them beside each other were longer than a terminal is wide.
    assert shown.splitlines()[-2:] == [f"next  fairbits explore {run}", f"      fairbits gate {run}"]


def test_what_a_stage_read_is_told_by_content_and_not_by_the_time_of_files(run: Path) -> None:
    opened = Run.open(run)
    assert all(is_current(opened, name) for name in ("debug.json", "repair.json"))
    (run / "run.json").touch()  # newer than all stages, and yet nothing has changed
    assert is_current(Run.open(run), "debug.json")
    document = json.loads((run / "debug.json").read_text())
    other = run / "other.json"
    other.write_text(json.dumps(document | {"content": "duckdb-0:0"}))  # newest of all, but of other cases
    assert not is_current(opened, "other.json")
    other.unlink()


def test_a_run_of_ordinary_people_goes_on_in_an_audit(tmp_path: Path) -> None:
    settings = Settings(budget=Budget(evaluations=400), strategy="random", min_plausibility=20.0, within=2, threads=1)
    search_subject(load_subject("german"), settings, tmp_path / "run")
    options = AuditOptions(seconds=2.0, threads=1, skip=frozenset({"debug", "repair"}))
    found = audit_subject(load_subject("german"), options, tmp_path / "run", resume=True)
    assert (found.run.manifest["min_plausibility"], found.run.manifest["within"]) == (20.0, 2)
    with pytest.raises(FairbitsError, match=r"made with min_plausibility 20\.0, but 30\.0 was asked for"):
        CliRunner().invoke(
            app, ["audit", "--resume", str(tmp_path / "run"), "--min-plausibility", "30"], catch_exceptions=False
        )


def test_a_stage_that_does_not_fit_says_so_instead_of_overrunning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debugging that takes for ever ends when its time is over, and the audit goes on."""
    monkeypatch.setattr("fairbits.debug.run.layer_distances", lambda *_, **__: time.sleep(30))
    said: list[tuple[str, str, str]] = []
    for seconds in (15.0, 20.0, 60.0, 600.0):
        plan = Shares.of(seconds)
        assert plan.debug_by < plan.repair_by <= 1.3 * seconds - plan.certify - 6.0
    auditing = replace(Shares.of(2.0), debug_by=0.0)
    monkeypatch.setattr(Shares, "of", classmethod(lambda *_: auditing))
    options = AuditOptions(seconds=2.0, threads=1, skip=frozenset({"repair"}))
    found = audit_subject(load_subject("german"), options, tmp_path / "run", progress=lambda *words: said.append(words))
    assert "did not fit into the budget of 2 s" in found.faults["debug"]
    assert "fairbits debug" in found.faults["debug"]
    assert said[0][:2] == ("plan", "plan")
    assert "search 0.7 s" in said[0][2]
    assert "repair" not in said[0][2]
    told = [f"Debug not run: {found.faults['debug']}"]
    assert [one for one in found.data.warnings if "Debug" in one] == told
    again = compute_report(Run.open(found.run.folder), subject=load_subject("german"))
    assert [one for one in again.warnings if "Debug" in one] == told


@pytest.mark.parametrize(("measured", "outcome"), [(0.1, "done"), (1.5, "failed")])
def test_a_slow_model_is_not_repaired_where_that_would_overrun(measured: float, outcome: str, tmp_path: Path) -> None:
    """Repair asks a model about as often as measuring ten times does: where that does not fit it is not begun."""
    subject, said = load_subject("heart"), []
    run = search_subject(
        subject, Settings(budget=Budget(evaluations=20), strategy="random", threads=1), tmp_path / "run"
    )
    pipeline = Pipeline(
        subject, AuditOptions(seconds=15.0, threads=1), run.folder, progress=lambda *words: said.append(words)
    )
    check = partial(check_time, "repair", pipeline.clock, measured)
    pipeline._do("repair", run, lambda _: None, kept=lambda: False, check=check)
    assert said[-1][:2] == ("repair", outcome)
    assert ("fairbits repair" in said[-1][2]) == (outcome == "failed")


def test_a_late_audit_still_repairs(tmp_path: Path) -> None:
    """A busy machine leaves less time: what is left out is the attack, not the repair."""
    settings = Settings(budget=Budget(evaluations=400), strategy="random", threads=1)
    run = search_subject(load_subject("heart"), settings, tmp_path / "run")
    pipeline = Pipeline(load_subject("heart"), AuditOptions(seconds=60.0, threads=1), run.folder)
    pipeline.clock._begin -= 45.0
    check = partial(check_time, "repair", pipeline.clock, pipeline.measured)
    pipeline._do("repair", run, pipeline._repair, kept=lambda: False, check=check)
    assert not pipeline.clock.faults
    document = json.loads((run.folder / "repair.json").read_text())
    assert document["attack_before"] is None
    assert document["chosen"]


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
        (["audit"], "nothing to audit was given"),
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


def test_a_certified_run_is_replaced_where_that_is_asked_for(run: Path, tmp_path: Path) -> None:
    """What the message names is an option of this command, and does what it says."""
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    assert {"certify.json", "proxies.json", "repair.json"} <= {path.name for path in copy.iterdir()}
    words = ("audit", "heart", "--budget", "1s", "--skip", "debug,repair,certify,proxies", "--out", copy)
    refused = fairbits(*words)
    assert (refused.returncode, "add --force to replace a run" in refused.stderr) == (2, True)
    done = fairbits(*words, "--force")
    assert done.returncode == 0
    assert re.findall(r"^(\w+) +not run: (.*)", done.stderr, re.M) == [
        (stage, "--skip") for stage in ("debug", "repair", "certify", "proxies")
    ]
    assert {"certify.json", "proxies.json", "repair.json"}.isdisjoint(path.name for path in copy.iterdir())


def test_other_settings_do_not_go_on(run: Path) -> None:
    with pytest.raises(FairbitsError, match="made with seed 0, but 5 was asked for"):
        CliRunner().invoke(app, ["audit", "--resume", str(run), "--seed", "5"], catch_exceptions=False)


def test_a_budget_is_split() -> None:
    assert Shares.of(60).search + 2 * Shares.of(60).attack < 60
    assert Shares.of(120).retrain
    assert Shares.of(60).quick
    assert not Shares.of(90).quick
    assert not Shares.of(20).retrain
