"""From Python: a run that can be debugged, repaired and reported, now and when it is opened again."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairbits
from fairbits import Audit, Budget
from fairbits.audit.run import AuditRun
from fairbits.debug import DebugResult
from fairbits.errors import OptionError
from fairbits.repair import RepairResult
from fairbits.store import Run
from tests.repair.conftest import CARRIER, SCHEMA, people, wired, write_subject


def test_everything_follows_from_a_search(tmp_path: Path) -> None:
    audit = Audit(wired(), people(), SCHEMA, name="wired")
    run = audit.search(budget=Budget(evaluations=800), strategy="random", out=tmp_path / "run", threads=1)
    assert isinstance(run, AuditRun)
    found = run.debug(samples=100, threads=1)
    assert repr(found).startswith("<DebugResult of 'wired': ")
    assert len(repr(found)) < 120
    assert isinstance(found, DebugResult)
    assert (found.suspect, found.best()[0].neuron) == (CARRIER[0] + 1, CARRIER[1])
    mended = run.repair(max_accuracy_loss=0.02, retrain=False, attack_budget=Budget(evaluations=200), seed=3, threads=1)
    assert repr(mended).startswith("<RepairResult of 'wired': ")
    assert len(repr(mended)) < 120
    assert isinstance(mended, RepairResult)
    assert (mended.seed, mended.max_accuracy_loss, mended.chosen.held_out.k_max) == (3, 0.02, 1)
    assert "deactivate-suspect" in mended.names  # it knows what debugging found
    page = run.report(out=tmp_path / "page", threads=1)
    assert page.is_file()
    assert len(run.cases(top=5)) == len(run.worst(5)) == 5
    # The model lives in Python only: whoever opens the run has to bring it.
    with pytest.raises(OptionError, match=r"started from Python; hand over its model and table, as Audit\(…\)\.open"):
        fairbits.open_run(run.folder).debug()
    for again in (audit.open(run.folder), fairbits.open_run(run.folder, subject=audit.subject)):
        assert again.debug(samples=20, inside=False).subject == "wired"
    assert audit.debug(Run.open(run.folder), samples=20, inside=False).layers == ()


def test_a_run_from_a_file_is_opened_by_its_folder_alone(tmp_path: Path) -> None:
    audit = Audit.of(write_subject(tmp_path / "subject"))
    audit.search(budget=Budget(evaluations=300), strategy="random", out=tmp_path / "run", threads=1)
    run = fairbits.open_run(tmp_path / "run")
    assert run.subject.identity == audit.subject.identity
    result = run.repair(retrain=False, attack_budget=None, threads=1)
    assert result.attack_before is None
    assert result.subject_file is not None
    # The repaired model is a subject like any other.
    assert Audit.of(result.subject_file).measure(threads=1).summary()["k_max"] == 1
    with pytest.raises(OptionError, match="does not exist"):
        fairbits.open_run(tmp_path / "nowhere")


def test_many_hands_debug_and_repair_as_one_does(tmp_path: Path) -> None:
    audit = Audit(wired(), people(), SCHEMA, name="wired")
    run = audit.search(budget=Budget(evaluations=400), strategy="random", out=tmp_path / "run", threads=1)
    alone, together = run.debug(samples=50, threads=1), run.debug(samples=50, workers=2)
    assert together.neurons == alone.neurons
    how = {"retrain": False, "attack_budget": Budget(evaluations=200)}
    mended, shared = run.repair(**how, threads=1), run.repair(**how, workers=1)
    assert shared.chosen.name == mended.chosen.name
    assert shared.attack_after is not None
    assert shared.attack_after.evaluations == 200
    for stage in (run.debug, run.repair):
        with pytest.raises(OptionError, match="workers is 0; give at least one"):
            stage(workers=0)
