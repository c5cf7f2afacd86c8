"""The front as a report of its own: who is on it, what is filed, what is exported, what people see."""

from __future__ import annotations

import csv
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

from fairbits import load_subject
from fairbits.audit import alternatives_to
from fairbits.errors import OptionError
from fairbits.measure import Estimate
from fairbits.repair import Alternatives
from fairbits.repair.alternatives import _balanced, _objectives, explained_variance, proposers_for
from fairbits.repair.judgement import front
from fairbits.report import alternatives_of, render_alternatives
from fairbits.report.alternatives import alternatives_markdown
from tests.cli.calling import fairbits
from tests.repair.conftest import write_subject
from tests.repair.planted import network_subject


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Alternatives:
    pytest.importorskip("optuna", reason="the mitigate extra is not installed")
    return alternatives_to(
        network_subject(),
        proposals=["reweigh", "thresholds", "tune"],
        trials=2,
        quick=True,
        evaluations=400,
        out=tmp_path_factory.mktemp("alternatives") / "run",
        threads=1,
        command="fairbits alternatives planted",
    )


def test_nobody_on_the_front_is_beaten_and_everybody_else_is(found: Alternatives) -> None:
    points = {one.name: np.array(_objectives(one)) for one in found.candidates}
    for one in found.candidates:
        own = points[one.name]
        beaten = any((p >= own).all() and (p > own).any() for name, p in points.items() if name != one.name)
        assert beaten != one.on_front
    assert {"as it is", "average", "guard-2", "reweigh", "thresholds-parity", "tuned-1", "tuned-2"} <= set(points)
    assert found["average"].on_front  # no direct bits at all
    assert found["average"].bits == Estimate(0.0, 0.0, 0.0)  # proved, so the interval has no other end either


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), min_size=1, max_size=30))
def test_the_front_is_never_empty_and_never_beaten(points: list[tuple[int, ...]]) -> None:
    best = front([tuple(map(float, one)) for one in points])
    assert any(best)
    kept = [np.array(p) for p, mine in zip(points, best, strict=True) if mine]
    assert all(any((k >= np.array(p)).all() for k in kept) for p in points)  # whoever is out is covered by somebody


def test_intervals_hold_their_figures(found: Alternatives) -> None:
    for one in found.candidates:
        for figure in (one.accuracy, one.balanced_accuracy, one.bits, one.flips, one.impact_ratio, one.indirect_bits):
            assert isinstance(figure, Estimate)
            assert figure.low <= figure.value <= figure.high
            if figure is one.bits and one.k_max_proved == 1:
                assert figure.high == 0  # proved: there is nothing left to be uncertain of
            else:
                assert figure.low < figure.high or figure is one.indirect_bits  # a lower bound, 0 where nothing is told
    assert found["as it is"].impact_attribute == "sex"


def test_the_log_has_everybody(found: Alternatives) -> None:
    rows = pq.read_table(found.folder / "candidates.parquet").to_pylist()
    document = json.loads((found.folder / "alternatives.json").read_text())
    with (found.folder / "candidates.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    names = [one.name for one in found.candidates]
    assert [row["name"] for row in rows] == names == [line["name"] for line in lines]
    assert [one["name"] for one in document["candidates"]] == names
    assert rows[1]["bits_high"] == document["candidates"][1]["bits"]["high"]
    assert document["command"] == "fairbits alternatives planted"


def test_models_of_the_front_come_back(found: Alternatives) -> None:
    from fairbits import load_model

    kept = [one for one in found.front if one.name != "as it is"]
    assert kept
    for one in kept:
        assert one.files
        assert all((found.folder / file).is_file() for file in one.files)
    again = load_subject(found.folder / "alternatives" / "average" / "repaired.toml")
    assert np.ptp(again.model.scores(again.encoding.encode(np.array([[4.0, 0, 0], [4.0, 1, 0]])))) == 0
    networks = [file for one in kept for file in one.files if file.endswith(".npz")]
    assert all(load_model(found.folder / file).inputs == 3 for file in networks)
    assert not any(one.files for one in found.candidates if not one.on_front)


def test_the_page_and_its_markdown(found: Alternatives) -> None:
    page = (found.folder / "alternatives.html").read_text()
    text = (found.folder / "alternatives.md").read_text()
    for one in found.candidates:
        assert one.name in page
        assert one.name.replace("-", "\\-") in text or one.name in text
    assert "A guard ends direct use only" in page
    assert page.count("<svg") == 3
    hostile = {**found.document(), "subject": "<script>alert(1)</script>", "command": ""}
    assert "<script>alert(1)" not in render_alternatives(alternatives_of(hostile))
    assert "<script>" not in alternatives_markdown(alternatives_of(hostile))
    assert found["as it is"].name in alternatives_of(found.document()).as_is["name"]


def test_who_is_asked() -> None:
    names = [one.name for one in proposers_for(None, trials=0, quick=True)]
    assert names == ["guard", "reweigh", "prejudice", "expgrad", "adversarial", "thresholds"]
    assert [one.name for one in proposers_for(["tune"], trials=7)] == ["guard", "tune"]
    assert proposers_for(["tune"], trials=7)[1].trials == 7  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="trials is -1"):
        proposers_for(None, trials=-1)


def test_the_commands(tmp_path: Path) -> None:
    subject = write_subject(tmp_path / "subject")
    options = ("--quick", "--evaluations", 300, "--threads", 1)
    shown = fairbits("alternatives", subject, "--proposals", "thresholds", *options, "--out", tmp_path / "a")
    assert shown.returncode == 0, shown.stderr
    assert "Not beaten, with 95 % intervals" in shown.stdout
    lines = [line for line in shown.stdout.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80
    made = fairbits("alternatives", subject, "--proposals", "thresholds", "--quick", "--run", tmp_path / "a", "--json")
    assert [one["name"] for one in json.loads(made.stdout)["candidates"]][:2] == ["as it is", "average"]
    wrong = fairbits("alternatives", subject, "--proposals", "magic")
    assert wrong.returncode == 2
    assert "there is no proposal 'magic'" in wrong.stderr


def test_tune_gives_the_same_for_a_seed(tmp_path: Path) -> None:
    pytest.importorskip("optuna", reason="the mitigate extra is not installed")
    subject = write_subject(tmp_path / "subject")
    options = ("--trials", 2, "--evaluations", 200, "--threads", 1, "--json")
    documents = [
        json.loads(fairbits("tune", subject, *options, "--out", tmp_path / name).stdout) for name in ("one", "two")
    ]
    for document in documents:
        document.pop("run")
        document.pop("warnings")  # they say how long a decision took
    assert documents[0] == documents[1]
    assert [one["family"] for one in documents[0]["candidates"]][-2:] == ["tune", "tune"]


def test_a_model_that_tells_no_twins_apart_has_alternatives_too(tmp_path: Path) -> None:
    """Also where a search of one person found too few cases to make halves of."""
    subject = network_subject(240)
    first = subject.model.weights[0].copy()  # type: ignore[attr-defined]
    first[1] = 0
    blind = replace(subject.model, weights=(first, *subject.model.weights[1:]))  # type: ignore[type-var, attr-defined]
    found = alternatives_to(
        replace(subject, model=blind),
        proposals=["thresholds"],
        quick=True,
        evaluations=1,
        out=tmp_path / "run",
        threads=1,
    )
    assert found["as it is"].bits.value == 0
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
