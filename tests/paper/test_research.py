"""The paper's tables in their smallest form, and the published figures beside them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fairbits import Network
from fairbits.data import load_subject
from fairbits.errors import OptionError, UsageError
from fairbits.paper import localisation, subjects
from fairbits.paper.localisation import rq3
from fairbits.paper.research import ExperimentPlan, ablation
from fairbits.paper.subjects import SUBJECTS, Roster, networks, number, published, roster, row_of
from fairbits.paper.tables import datasets
from fairbits.search import Budget
from fairbits.subject.export import export_subject

from ..cli.calling import fairbits
from ..search.planted import planted_subject

#: Counted, not timed: what a busy machine finds in a fifth of a second is not what a free one does.
SHORT = Budget(evaluations=40_000)


def test_published_figures_are_all_there() -> None:
    for table, rows in (("datasets", 10), ("rq1", 10), ("rq2", 21), ("rq3_localization", 10), ("rq3_mitigation", 10)):
        assert len(published(table)) == rows
    assert [row["dataset"] for row in published("rq1")] == list(SUBJECTS)
    assert number(row_of("rq1", "census"), "k_final") == 35.61
    assert number(row_of("rq1", "german-600"), "k_final") == 9.56
    assert number(row_of("rq2", "meps15-synthetic", protected="age"), "neuronfair_seconds_to_1000") is None
    assert row_of("rq1", "mine") is None


@pytest.fixture
def nothing_added(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(subjects, "available", lambda name: None)
    monkeypatch.setattr("fairbits.data.sources.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("fairbits.data.sources.installed_file", lambda source: None)
    monkeypatch.setattr("fairbits.data.sources._ask_openml", _offline)


def _offline(source, _ask):
    raise UsageError(f"the data of {source.name!r} are not on this machine; run 'data add {source.name} FILE'.")


def test_missing_data_are_named_with_what_stands_in(nothing_added) -> None:
    found = roster(["german", "compas", "meps15"])
    assert found.names == ["german", "meps15-synthetic"]
    assert "compas is left out: the data of 'compas' are not on this machine" in found.notes[0]
    assert "data add compas" in found.notes[0]
    assert "meps15-synthetic (generated people) stands in" in found.notes[1]
    with pytest.raises(UsageError, match="compas is left out"):
        roster(["compas"])
    with pytest.raises(OptionError, match="nothing built in is called 'gremlin'"):
        roster(["gremlin"])
    table = datasets(found)
    assert table.rows[0][:4] == ["german", "in the package", 1000, 600]
    assert table.rows[1][1] == "generated"


def test_rq1_and_rq2_go_on_where_they_were(tmp_path) -> None:
    found = roster(["heart"])
    plan = ExperimentPlan("rq1", found, tmp_path, budget=SHORT)
    first = plan.run()
    assert [row[1] for row in first.rows] == ["dice", "climb", "paper"]
    assert first.rows[2][5] == 10.01
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert plan.run().rows == first.rows
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert "| heart | dice | 14 |" in (tmp_path / "rq1.md").read_text()
    second = ExperimentPlan("rq2", found, tmp_path, budget=SHORT, strategies=["adf", "dice"]).run()
    assert [row[0] for row in second.rows] == ["heart: age"] * 2 + ["heart: sex"] * 2
    assert second.rows[0][3] == 25_800
    assert any("not comparable one to one" in note for note in second.notes)


def test_the_full_plan_is_the_papers(tmp_path) -> None:
    plan = ExperimentPlan("rq2", roster(["heart"]), tmp_path, budget=SHORT, full=True)
    assert plan.contest.budget.seconds == 900
    assert plan.contest.repeats == 10


def test_the_ablation_has_equal_queries(tmp_path) -> None:
    table = ablation(roster(["heart"]), tmp_path, queries=60_000, repeats=1)
    assert [row[1] for row in table.rows] == ["constrained", "grid", "binary"]
    used = [json.loads(path.read_text())["figures"]["queries"] for path in (tmp_path / "cells").iterdir()]
    assert max(used) < 1.1 * 60_000
    assert min(used) > 0.9 * 60_000


def test_rq3_goes_on_where_it_was(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(localisation, "SAMPLES", 200)
    steps: list[str] = []
    where, what = rq3(roster(["heart"]), tmp_path, budget=SHORT, progress=lambda *step: steps.append(step[2]))
    assert steps == ["heart dice: search, debug, repair"]
    assert [row[1] for row in where.rows] == ["dice*", "dice", "paper"]
    ruled, ours, theirs = (dict(zip(where.columns, row, strict=True)) for row in where.rows)
    assert 1 <= ours["layer"] <= 5
    assert 2 <= ruled["layer"] <= 5
    assert 0 < ours["votes %"] <= 100
    assert (theirs["layer"], theirs["ρ"]) == (4, 1.47)
    # The paper's "positive" neurons are those that it activates: Compas, Heart and MEPS15 have no others.
    assert (theirs["switch off: ACD"], theirs["hold on: ACD"]) == ("none", "5 .12, 4 .05, 0 .04")
    mine, printed = (dict(zip(what.columns, row, strict=True)) for row in what.rows)
    assert (printed["k"], printed["off k"], printed["on k"], printed["s"]) == (6.91, None, 6.59, 553)
    assert mine["set"] >= 1
    assert mine["set k %"] < 0
    cell = tmp_path / "cells" / "rq3-heart-dice.json"
    found = json.loads(cell.read_text())
    found = found.get("figures", found)["by_paper"]
    assert mine["k"] == pytest.approx(found["k_mean"])
    assert mine["k"] > 1.5  # whom the search found, its twins tell apart
    held = [(side, found[side][0]["k_mean"]) for side in ("off", "on") if found[side]]
    assert held
    assert all(mine[f"{side} k"] == pytest.approx(k) and k != mine["k"] for side, k in held)
    stamp = cell.stat().st_mtime_ns
    assert rq3(roster(["heart"]), tmp_path, budget=SHORT)[1].rows == what.rows
    assert cell.stat().st_mtime_ns == stamp
    assert "| heart | paper | 4 |" in (tmp_path / "rq3-localisation.md").read_text()
    assert (tmp_path / "rq3-mitigation.csv").read_text().startswith("subject,who,acc %,k,")


def test_networks_from_a_folder(tmp_path) -> None:
    export_subject(load_subject("heart"), tmp_path / "nets" / "one")
    found = networks(tmp_path / "nets")
    assert found.names == ["heart"]
    assert load_subject(found.places["heart"]).source == str(tmp_path / "nets" / "one" / "subject.toml")
    with pytest.raises(OptionError, match="is no folder"):
        networks(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(OptionError, match=r"no subject.toml lies in"):
        networks(tmp_path / "empty")
    export_subject(load_subject("heart"), tmp_path / "nets" / "two")
    with pytest.raises(OptionError, match="are both called 'heart'"):
        networks(tmp_path / "nets")


def test_rq3_where_nobody_is_treated_differently(tmp_path, monkeypatch) -> None:
    constant = Network.build([np.zeros((5, 3)), np.zeros((3, 2))], [np.ones(3), np.array([1.0, -1.0])])
    same = replace(planted_subject(), model=constant)
    monkeypatch.setattr("fairbits.paper.cells.load_subject", lambda name: same)
    where, what = rq3(Roster(["planted"], []), tmp_path, budget=SHORT)
    assert where.rows[0][-2:] == ["none", "none"]
    assert what.rows[0][-3:] == [None, None, None]
    kept = json.loads((tmp_path / "cells" / "rq3-planted-dice.json").read_text())["figures"]
    assert "nothing to lower" in kept["why"]
    assert f"planted, dice: {kept['why']}" in what.notes
    assert what.rows[1][2:] == [None] * 10  # the paper says nothing about it


def test_the_commands(tmp_path) -> None:
    found = fairbits("paper", "rq1", "--subjects", "heart", "--budget", "0.2s", "--out", "here", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "…" not in found.stdout
    assert (tmp_path / "here" / "rq1.csv").exists()
    wrong = fairbits("paper", "rq9", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "question 'rq9' is not known" in wrong.stderr
    again = fairbits("paper", "rq3", "--repeats", "3", cwd=tmp_path)
    assert again.returncode == 2
    assert "rq3 names layers and neurons, which have no mean" in again.stderr
    (tmp_path / "file").write_text("")
    taken = fairbits("paper", "rq1", "--subjects", "heart", "--out", "file/here", cwd=tmp_path)
    assert taken.returncode == 2
    assert "is a file; choose another folder" in taken.stderr
    short = ("compare", "heart", "--protected", "sex", "--budget", "0.2s", "--repeats", "2")
    shown = fairbits(*short, "--strategies", "dice,adf,neuronfair", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    own = ("  fairbits ", "next  ", "page  ")  # what one types or opens is not broken
    assert max(len(line) for line in shown.stdout.splitlines() if not line.startswith(own)) <= 80
    assert "A12" in shown.stdout
    page = next((tmp_path / "runs").glob("heart-compare-*/compare.html"))
    assert "ID cases over time" in page.read_text(encoding="utf-8")
    assert (page.with_suffix(".csv").exists(), page.with_suffix(".json").exists()) == (True, True)
    assert "…" not in shown.stdout
    data = json.loads(fairbits(*short, "--strategies", "random", "--json", cwd=tmp_path).stdout)
    assert data["strategies"][0]["id_cases"]["mean"] > 0
