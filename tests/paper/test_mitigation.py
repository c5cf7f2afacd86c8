"""The table of mitigators: one row per family, a line about the guard, and nothing made twice."""

from __future__ import annotations

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
