"""The chosen measure: it leads the search, ranks cases, is written down, and cannot change on the way."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fairbits.data import load_subject
from fairbits.engine import Evaluation
from fairbits.errors import OptionError
from fairbits.measure import MEASURES, check_measure, effective_classes, evaluator_of
from fairbits.report.sections.paperwork import commands
from fairbits.search import Budget, Settings, kept_settings, search_subject
from fairbits.search.strategies.climb import height
from fairbits.store import Run
from fairbits.subject import Subject


@pytest.fixture(scope="module")
def subject() -> Subject:
    return load_subject("german")


@pytest.fixture(scope="module", params=["climb", "dice"])
def runs(request: pytest.FixtureRequest, subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    place = tmp_path_factory.mktemp("measure")
    found = {}
    for measure in MEASURES:
        settings = Settings(
            budget=Budget(evaluations=9000),
            strategy=request.param,
            options={"seeds": 16},
            seed=1,
            epsilon=0.01,
            threads=1,
            measure=measure,
        )
        found[measure] = search_subject(subject, settings, place / measure)
    return found


def figures(subject: Subject) -> Evaluation:
    return evaluator_of(subject, epsilon=0.01, threads=1).evaluate(subject.table.codes[:200])


def test_effective_classes(subject: Subject) -> None:
    found = figures(subject)
    assert np.array_equal(effective_classes(found, "q_inf"), found.k)
    shannon = effective_classes(found, "q_1")
    assert (shannon >= 1 - 1e-6).all()
    assert (shannon <= found.k + 1e-4).all()
    assert np.argmax(height(found, measure="q_1") - 100 * found.flips) == np.argmax(shannon - 100 * found.flips)
    with pytest.raises(OptionError, match="measure 'q_2' is not known"):
        check_measure("q_2")
    with pytest.raises(OptionError, match="measure 'q2'"):
        Settings(budget=Budget(evaluations=1), measure="q2")


def test_it_leads_the_search_and_ranks_the_cases(runs: dict[str, Run]) -> None:
    best = {
        measure: run.query("SELECT max(q_1) AS q, max(k) AS k FROM cases").to_pylist()[0]
        for measure, run in runs.items()
    }
    assert best["q_1"]["q"] >= best["q_inf"]["q"] - 0.05
    for measure, run in runs.items():
        shown = run.cases(top=50, labels=False)
        ranked = shown["k" if measure == "q_inf" else "q_1"].to_numpy()
        assert (np.diff(ranked) <= 0).all()
        assert run.manifest["measure"] == measure
        assert (run.summary or {})["objective"] == measure
    one, other = (run.content() for run in runs.values())
    assert one != other


def test_it_is_printed_and_kept(runs: dict[str, Run], subject: Subject) -> None:
    run = runs["q_1"]
    assert "--measure q_1" in commands(run.manifest, run.summary or {}, {})[0]
    assert "--measure" not in commands(runs["q_inf"].manifest, runs["q_inf"].summary or {}, {})[0]
    assert kept_settings(run.manifest, {})["measure"] == "q_1"
    with pytest.raises(OptionError, match="measure"):
        kept_settings(run.manifest, {"measure": "q_inf"})


def test_debug_and_repair_lower_it(tmp_path: Path, subject: Subject) -> None:
    from fairbits.debug import debug_run
    from fairbits.repair import repair_run

    run = search_subject(subject, Settings(budget=Budget(evaluations=1500), threads=1, measure="q_1"), tmp_path / "run")
    found = debug_run(run, subject=subject, samples=60, trainings=0, sets=False, threads=1)
    assert found.measure == "q_1"
    best = found.best(count=1)[0].best
    assert best is not None
    assert best.q_1_mean is not None
    assert best.choosing < found.figure[::2].mean() <= np.log2(subject_twins(subject))
    mended = repair_run(run, subject=subject, retrain=False, quick=True, max_accuracy_loss=0.1, threads=1)
    assert mended.measure == "q_1"
    assert mended.chosen is not None
    assert mended.chosen.plan.q_1_mean < mended.before_plan.q_1_mean
    assert json.loads((Path(run.folder) / "repair.json").read_text())["measure"] == "q_1"


def subject_twins(subject: Subject) -> int:
    return evaluator_of(subject).m
