"""The table of mitigators: one row per family, a line about the guard, and nothing made twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairbits.paper import cells, mitigation
from fairbits.paper.subjects import Roster
from tests.cli.calling import fairbits
from tests.repair.planted import network_subject

ROSTER = Roster(["planted"], [])


def test_the_table_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mitigation, "FAMILIES", ("guard", "thresholds", "reweigh"))
    monkeypatch.setattr(cells, "load_subject", lambda _: network_subject())
    made, real = [], mitigation.study

    def counted(run, subject, proposers, **options):  # type: ignore[no-untyped-def]
        made.append(proposers[0].name)
        if made[-1] == "reweigh" and len(made) == 3:
            raise KeyboardInterrupt
        return real(run, subject, proposers, **options)

    monkeypatch.setattr(mitigation, "study", counted)
    terms = {"quick": True, "evaluations": 300, "threads": 1}
    with pytest.raises(KeyboardInterrupt):
        mitigation.mitigation_table(ROSTER, tmp_path, **terms)
    table = mitigation.mitigation_table(ROSTER, tmp_path, **terms)
    assert made == ["guard", "thresholds", "reweigh", "reweigh"]  # what was finished is not made again
    again = mitigation.mitigation_table(ROSTER, tmp_path, **terms)
    assert len(made) == 4
    assert again.rows == table.rows
    assert [row[1] for row in table.rows][:2] == ["as it is", "average"]
    assert [row[1] for row in table.rows][3] == "reweigh"
    assert [line.split(":")[0] for line in table.findings] == ["thresholds", "reweigh"]
    assert (tmp_path / "mitigation.md").is_file()
    # Other code, or another model under the same name, and the cells are stale.
    monkeypatch.setattr(mitigation, "content_of", lambda *_: "other")
    mitigation.mitigation_table(ROSTER, tmp_path, **terms)
    assert len(made) == 7
    monkeypatch.setattr(cells, "load_subject", lambda _: network_subject(600))
    mitigation.mitigation_table(ROSTER, tmp_path, **terms)
    assert len(made) == 10
    assert "guard-1" in (tmp_path / "mitigation-all.csv").read_text()


def test_what_the_findings_say() -> None:
    def one(accuracy: float, bits: float, gap: float) -> dict[str, object]:
        return {
            "accuracy_plan": accuracy,
            "accuracy": {"value": accuracy},
            "bits": {"value": bits},
            "selection_gap": gap,
        }

    guard = one(0.8, 0.0, 0.2)
    best = {
        "x": {"as it is": one(0.8, 1.0, 0.2), "guard": guard, "reweigh": one(0.8, 0.5, 0.1), "tune": one(0.7, 1, 1)},
        "y": {"as it is": one(0.8, 1.0, 0.2), "guard": guard, "reweigh": one(0.81, 0.7, 0.3), "tune": one(0.7, 1, 1)},
    }
    reweigh, tune = mitigation.findings(best)
    assert "as accurate as the guard on 2 of 2 subjects" in reweigh
    assert "more direct bits on 2 (median 0.60, the guard 0)" in reweigh
    assert "smaller selection gap on 1" in reweigh
    assert tune == "tune: no candidate is as accurate as the guard on any of 2 subjects."


def test_options_that_do_not_apply() -> None:
    wrong = fairbits("paper", "rq1", "--quick")
    assert wrong.returncode == 2
    assert "--quick does not apply to 'rq1'" in wrong.stderr
    assert fairbits("paper", "mitigation", "--repeats", 3).returncode == 2


def test_the_contest_of_repairs_through_the_command(tmp_path: Path) -> None:
    asked = (
        "paper",
        "repairs",
        "--subjects",
        "german",
        "--budget",
        "0.3s",
        "--threads",
        1,
        "--out",
        tmp_path,
        "--json",
    )
    found = fairbits(*asked)
    assert found.returncode == 0, found.stderr
    table = json.loads(found.stdout)
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    assert rows[0]["repair"] == "as it is"
    assert {(row["repair"], row["by"]) for row in rows[1:]} >= {
        (who, by) for who in ("ours", "neufair", "care") for by in ("odds", "k")
    }
    assert all(0 <= row["odds"] <= 1 and 0 <= row["F1"] <= 1 and row["k"] >= 1 for row in rows)
    for row in rows:  # whoever is named is there, and is better
        for beaten, more in (("beaten (odds, F1)", ("odds", "F1")), ("beaten (k, acc)", ("k", "acc"))):
            better = next((one for one in rows if row[beaten] and one["candidate"] == row[beaten]), None)
            assert not row[beaten] or (better[more[0]] <= row[more[0]] and better[more[1]] >= row[more[1]])
    assert "their metric" in table["findings"][0]
    assert any("69 %" in note for note in table["notes"])
    assert (tmp_path / "repairs.csv").is_file()
    assert fairbits("paper", "repairs", "--full").returncode == 2


def test_who_is_beaten() -> None:
    def one(name: str, odds: float, f1: float, k: float) -> dict[str, object]:
        plan = {"equalised_odds_plan": odds, "f1_plan": f1, "k_mean_plan": k, "accuracy_plan": f1}
        return {"name": name, "equalised_odds": odds, "f1": f1, "k_mean_cases": k, "accuracy": {"value": f1}, **plan}

    start, mine, other = one("as it is", 0.2, 0.8, 5), one("blind", 0.1, 0.79, 1), one("walk", 0.05, 0.5, 4)
    assert mitigation._best([mine, other], start, "odds")["name"] == "blind"  # the walk has lost its F1
    assert mitigation._best([other], start, "k")["name"] == "walk"
    entries = [("", "", start), ("ours", "odds", mine), ("neufair", "odds", one("walk", 0.1, 0.8, 4))]
    assert mitigation._beaten_by(mine, "ours", entries, "odds") == "walk"
    assert mitigation._beaten_by(mine, "ours", entries, "k") == ""
    says = mitigation._standing({"x": "walk", "y": "", "z": None}, "odds and F1 (their metric)")
    assert says == (
        "Ours is undominated in odds and F1 (their metric) on 1 of 3 subjects; beaten on x by walk; not known on z."
    )
