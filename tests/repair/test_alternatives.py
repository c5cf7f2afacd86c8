"""Mitigators and other settings on the same path: judged, filed, written; and the intervals beside their figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbits import Audit, load_model, load_subject
from fairbits.measure import Estimate
from fairbits.repair import RepairResult, proposers_of
from fairbits.repair.judgement import _balanced, explained_variance, front
from tests.cli.calling import fairbits
from tests.repair.conftest import write_subject
from tests.repair.planted import network_subject, searched


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RepairResult:
    pytest.importorskip("optuna", reason="the mitigate extra is not installed")
    from fairbits.repair import repair_run

    subject = network_subject()
    run = searched(subject, tmp_path_factory.mktemp("alternatives") / "run", 400)
    return repair_run(
        run,
        subject=subject,
        proposals=["reweigh", "thresholds", "settings"],
        trials=2,
        quick=True,
        write_all=True,
        threads=1,
    )


def test_everybody_is_a_candidate(found: RepairResult) -> None:
    assert {"average", "guard-1", "blind", "reweigh", "thresholds-parity", "tuned-1", "tuned-2"} <= set(found.names)
    assert {found[name].family for name in ("tuned-1", "reweigh", "average")} == {"settings", "reweigh", "guard"}


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=30))
def test_the_front_is_never_empty_and_never_beaten(points: list[tuple[int, ...]]) -> None:
    best = front([tuple(map(float, one)) for one in points])
    assert any(best)
    kept = [np.array(p) for p, mine in zip(points, best, strict=True) if mine]
    assert all(any((k >= np.array(p)).all() for k in kept) for p in points)  # whoever is out is covered by somebody


def test_intervals_hold_their_figures(found: RepairResult) -> None:
    for one in found.repairs:
        known = one.estimates
        assert known is not None
        assert known.accuracy.value == one.held_out.accuracy
        assert known.indirect_bits is not None
        for figure in (known.accuracy, known.balanced_accuracy, known.bits, known.flips, known.impact_ratio):
            assert isinstance(figure, Estimate)
            assert figure.low <= figure.value <= figure.high
            if figure is known.bits and one.k_max_proved == 1:
                assert figure.high == 0  # proved: there is nothing left to be uncertain of
            else:
                assert figure.low < figure.high
    assert found.estimates_before is not None
    assert found.estimates_before.impact_attribute == "sex"


def test_what_all_files_have_in_common_is_said_once(found: RepairResult) -> None:
    names = tuple(f"{name}: " for name in found.names)
    own = {one for one in found.warnings if not one.startswith(names)}
    others = [one.partition(": ")[2] for one in found.warnings if one.startswith(names)]
    assert not own & set(others)


def test_the_log_has_everybody(found: RepairResult) -> None:
    assert found.folder is not None
    rows = [row for row in pq.read_table(found.folder / "repairs.parquet").to_pylist() if row["held_out"]]
    document = json.loads((found.folder / "repair.json").read_text())
    assert [row["repair"] for row in rows] == list(found.names) == [one["name"] for one in document["repairs"]]
    first = document["repairs"][0]
    assert rows[0]["bits_held_out_high"] == first["estimates"]["bits"]["high"]
    assert rows[0]["proved"] == first["proof"]["property"] == "flips"
    assert document["options"]["also"] == ["reweigh", "thresholds", "settings"]


def test_models_of_the_front_come_back(found: RepairResult) -> None:
    assert found.folder is not None
    kept = [one for one in found.repairs if one.on_front]
    assert len(kept) > 1
    for one in kept:
        assert one.files
        assert all((found.folder / file).is_file() for file in one.files)
        own = one is found.chosen
        assert all(file.startswith("repaired" if own else f"repairs/{one.name}/") for file in one.files)
    assert not any(one.files for one in found.repairs if not one.on_front and one is not found.chosen)
    networks = [file for one in kept for file in one.files if file.endswith(".npz")]
    assert all(load_model(found.folder / file).inputs == 3 for file in networks)
    for file in (file for one in kept for file in one.files if file.endswith(".toml")):
        assert load_subject(found.folder / file).schema.protected == ("sex",)


def test_who_is_asked() -> None:
    assert [one.name for one in proposers_of(["settings"], trials=7)] == ["settings"]
    assert proposers_of(["settings"], trials=7)[0].trials == 7  # type: ignore[attr-defined]


def test_a_subject_in_place_of_a_run(tmp_path: Path) -> None:
    subject = write_subject(tmp_path / "subject")
    options = ("--quick", "--attack-budget", 0, "--threads", 1, "--with", "thresholds", "--max-accuracy-loss", 0.05)
    shown = fairbits("repair", subject, *options, "--evaluations", 300, "--out", tmp_path / "a", "--all")
    assert shown.returncode == 0, shown.stderr
    assert "thresholds-parity" in shown.stdout
    assert "…" not in shown.stdout.partition("→ chosen")[0].partition("repair ")[2]  # no column is cut
    lines = [line for line in shown.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80
    made = fairbits("repair", tmp_path / "a", *options, "--json")
    assert next(one["name"] for one in json.loads(made.stdout)["repairs"]) == "average"
    for wrong, words in (
        (("repair", tmp_path / "a", "--with", "magic"), "there is no proposal 'magic'"),
        (("repair", tmp_path / "a", "--out", tmp_path / "b"), "are for an audit file"),
    ):
        ended = fairbits(*wrong)
        assert ended.returncode == 2
        assert words in " ".join(ended.stderr.split())


def test_settings_are_the_same_for_a_seed(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="the mitigate extra is not installed")
    audit = Audit.of(write_subject(tmp_path / "subject"))
    asked = {"proposals": ["settings"], "trials": 2, "evaluations": 200, "threads": 1, "quick": True}
    results = [audit.repair(out=tmp_path / name, attack_budget=None, **asked) for name in ("one", "two")]
    assert results[0].names[-2:] == ("tuned-1", "tuned-2")
    for one, two in zip(*(result.repairs for result in results), strict=True):
        assert (one.words, one.plan, one.held_out, one.estimates) == (two.words, two.plan, two.held_out, two.estimates)


def test_a_model_that_tells_no_twins_apart_has_candidates_too(tmp_path: Path) -> None:
    """Also where a search of one person found too few cases to make parts of."""
    subject = network_subject(240)
    first = subject.model.weights[0].copy()  # type: ignore[attr-defined]
    first[1] = 0
    blind = replace(subject.model, weights=(first, *subject.model.weights[1:]))  # type: ignore[type-var, attr-defined]
    about = replace(subject, model=blind)
    from fairbits.repair import repair_run

    run = searched(about, tmp_path / "run", 1)
    found = repair_run(run, subject=about, proposals=["thresholds"], quick=True, threads=1)
    assert found.estimates_before is not None
    assert found.estimates_before.bits.value == 0
    assert found.chosen is None
    assert "no candidate lowers mean k" in found.reason
    assert any("figures on cases are about rows" in note for note in found.evidence.notes)


def judged_as(labels: np.ndarray, answers: np.ndarray) -> Any:
    return SimpleNamespace(labels=labels, answers=answers)


@pytest.mark.parametrize(
    ("sizes", "rates"), [((10, 10), (0.9, 0.9)), ((10, 200), (0.8, 0.9)), ((30, 300), (0.95, 0.98))]
)
def test_the_interval_of_balanced_accuracy_holds(sizes: tuple[int, int], rates: tuple[float, float]) -> None:
    """By the normal law of moved rates it was 87 % of the time for these."""
    rng, held, labels = np.random.default_rng(0), 0, np.repeat([0, 1], sizes)
    for _ in range(400):
        right = rng.random(len(labels)) < np.repeat(rates, sizes)
        found = _balanced(judged_as(labels, np.where(right, labels, 1 - labels)))
        assert 0 <= found.low <= found.value <= found.high <= 1
        held += found.low <= np.mean(rates) <= found.high
    assert held >= 0.93 * 400


@pytest.mark.parametrize("slope", [0.3, 1.0, 3.0])
def test_the_interval_of_the_variance_explained_holds(slope: float) -> None:
    rng, held, truth = np.random.default_rng(1), 0, slope**2 / (slope**2 + 1)
    for _ in range(400):
        answers = slope * rng.normal(size=120)
        labels = answers + rng.normal(size=120)
        value = 1 - float(((labels - answers) ** 2).mean() / labels.var())
        found = explained_variance(answers, labels, value)
        held += found.low <= truth <= found.high
    assert held >= 0.92 * 400
