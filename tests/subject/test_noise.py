"""A model that answers otherwise the second time is said to; null bits stand beside bits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from fairbits import Attribute, Audit, Budget, Schema
from fairbits.cli.app import app
from fairbits.errors import OptionError
from fairbits.measure import Evaluator, Noise, evaluator_of, noise_of
from fairbits.measure.population import null_figures
from fairbits.models import Network, Repeated
from fairbits.report import compute_report, summary_of
from fairbits.store import Run, plain, record_from_json, subject_of
from tests.repair.conftest import SCHEMA, people, wired, write_subject


class Noisy:
    """The wired network, each answer off by as much as a normal draw; counts the rows it is asked about."""

    def __init__(self, level: float, seed: int = 0):
        self.level, self.rng, self.asked = level, np.random.default_rng(seed), 0

    def __call__(self, rows: Any) -> np.ndarray:
        self.asked += len(rows)
        exact = wired().scores(np.asarray(rows, dtype=np.float32))
        return np.clip(exact + self.rng.normal(0, self.level, len(rows)), 0, 1)


def audit_of(model: Any) -> Audit:
    return Audit(model, people(), SCHEMA, input_format="codes")


def test_a_model_that_answers_the_same_is_not_said_to_vary() -> None:
    found = audit_of(lambda rows: wired().scores(rows)).measure(threads=1)
    assert found.noise is None
    assert (found.summary()["null_q_inf_mean"], found.summary()["null_q_inf_max"]) == (0.0, 0.0)


def test_a_network_is_not_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Audit(wired(), people(), SCHEMA).subject
    asked: list[int] = []
    scores = Network.scores

    def counted(self: Network, inputs: Any) -> Any:
        asked.append(len(inputs))
        return scores(self, inputs)

    monkeypatch.setattr(Network, "scores", counted)
    assert noise_of(subject, evaluator_of(subject)) is None
    assert not subject.identity.probe.varies
    assert asked == [255]  # 85 rows under 3 twins, once


def test_the_size_of_the_noise_and_the_bits_that_it_makes() -> None:
    found = audit_of(Noisy(0.1)).measure(threads=1)
    noise = found.noise
    assert noise is not None
    # Differences of two normal draws: the 95 % quantile of their size is 1.96 · √2 · 0.1 = 0.277 away from the ends.
    assert noise.quantile == pytest.approx(0.25, abs=0.05)
    assert noise.quantile < noise.largest < 0.6
    assert noise.varied > 0.8
    assert 0.5 < noise.null_q_inf_mean <= noise.null_q_inf_max <= np.log2(3)
    assert found.summary()["null_q_inf_mean"] == noise.null_q_inf_mean
    varies, null, below = noise.notes(0.025)
    assert "answers vary: of 255 rows asked twice" in varies
    assert f"the largest by {noise.largest:.3g}" in varies
    assert "one and the same twin asked 3 times" in null
    assert "ε = 0.025 lies below the noise" in below
    assert len(noise.notes(noise.quantile)) == 2
    assert record_from_json(Noise, json.loads(json.dumps(plain(noise)))) == noise


def test_the_epsilon_that_a_note_proposes_is_enough() -> None:
    noise = Noise(1, 1.0, 0.1931, 0.3, 1, 3, 0.0, 0.0, 0.0)
    assert "--epsilon 0.2 or more" in noise.notes(0.025)[-1]
    assert len(noise.notes(0.2)) == 2


def test_null_bits_of_a_random_model_are_its_bits() -> None:
    rng = np.random.default_rng(1)
    found = audit_of(lambda rows: rng.random(len(rows))).measure(threads=1)
    assert found.noise is not None
    assert found.noise.null_q_inf_mean == pytest.approx(found.q_inf_mean.value, abs=0.15)


class Uncertain:
    """Answers between 0.4 and 0.6, or three probabilities close to a third, whoever is asked about."""

    inputs = 2

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def scores(self, rows: Any) -> np.ndarray:
        return self.rng.uniform(0.4, 0.6, len(rows))


class UncertainOfThree(Uncertain):
    def class_scores(self, rows: Any) -> np.ndarray:
        return self.rng.dirichlet([50, 50, 50], len(rows))


PAIR = (
    Attribute(name="sex", kind="category", labels=("a", "b"), protected=True),
    Attribute(name="age", kind="integer", high=9),
)


@pytest.mark.parametrize(("threshold", "share"), [(0.5, 0.5), (0.8, 0.0)])
def test_null_flips_are_those_of_the_subjects_own_threshold(threshold: float, share: float) -> None:
    schema = Schema(attributes=PAIR, target="y", classes=("no", "yes"), threshold=threshold)
    found = null_figures(Evaluator(Uncertain(), schema), np.zeros((400, 2)))
    assert found.flips.mean() == pytest.approx(share, abs=0.1)


def test_null_flips_between_three_classes_are_by_the_most_likely_one() -> None:
    schema = Schema(attributes=PAIR, target="y", classes=("no", "maybe", "yes"))
    found = null_figures(Evaluator(UncertainOfThree(), schema), np.zeros((400, 2)))
    assert found.flips.mean() == pytest.approx(2 * 1 / 3 * 2 / 3, abs=0.1)


def test_repeats_average_answers() -> None:
    once, often = (audit_of(Noisy(0.1)).measure(threads=1, repeats=repeats) for repeats in (1, 25))
    assert once.noise is not None
    assert often.noise is not None
    assert often.noise.repeats == 25
    assert often.noise.quantile == pytest.approx(once.noise.quantile / 5, rel=0.3)
    exact = Audit(wired(), people(), SCHEMA).measure(threads=1)
    assert abs(often.k_mean.value - exact.k_mean.value) < abs(once.k_mean.value - exact.k_mean.value)


def test_repeats_cost_so_many_answers_and_no_network() -> None:
    model = Noisy(0.0)
    wrapped = Repeated(audit_of(model).subject.model, 7)
    before = model.asked
    wrapped.scores(np.zeros((5, 3)))
    assert model.asked - before == 35
    subject = Audit(wired(), people(), SCHEMA).subject.with_repeats(7)
    assert isinstance(subject.model, Network)
    assert subject.repeats == 1
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(OptionError, match="repeats is"):
            subject.with_repeats(wrong)  # type: ignore[arg-type]


def test_three_classes_are_averaged_too() -> None:
    rng = np.random.default_rng(2)
    schema = replace(SCHEMA, classes=("a", "b", "c"), favourable="c", scores="vector")

    def shares(rows: Any) -> np.ndarray:
        found = rng.random((len(rows), 3))
        return found / found.sum(axis=1, keepdims=True)

    audit = Audit(shares, people(), schema, input_format="codes")
    found = audit.measure(threads=1, repeats=4)
    assert found.noise is not None
    assert found.noise.null_q_inf_mean == pytest.approx(found.q_inf_mean.value, abs=0.2)


def test_a_search_keeps_what_it_knows_of_the_noise(tmp_path: Path) -> None:
    audit = audit_of(Noisy(0.1))
    where = {"strategy": "random", "out": tmp_path / "run", "threads": 1}
    run = audit.search(budget=Budget(evaluations=60), repeats=3, **where)
    assert run.manifest["repeats"] == 3
    assert run.manifest["noise"]["repeats"] == 3
    assert run.summary is not None
    assert run.summary["null_q_inf_max"] == run.manifest["noise"]["null_q_inf_max"] > 0
    # It goes on with as many repeats, its report says so, and another number is refused.
    assert subject_of(Run.open(run.folder), audit.subject).repeats == 3
    audit.search(budget=Budget(evaluations=80), repeats=3, resume=True, **where)
    with pytest.raises(OptionError, match="repeats 3, but 2 was asked for"):
        audit.search(budget=Budget(evaluations=80), repeats=2, resume=True, **where)
    data = compute_report(run, subject=audit.subject)
    assert data.measured.noise is not None
    assert "Its answers vary: one and the same twin shows up to" in data.sentence
    assert data.about.notes[0].startswith("the model's answers vary")
    assert summary_of(data)["measure"]["noise"]["repeats"] == 3
    assert "--repeats 3" in data.reproduction.commands[0]


class Random(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        rows = json.loads(self.rfile.read(int(self.headers["content-length"])))["rows"]
        # A little skill in it: pure chance decides against the labels, and is refused for it, in one call of forty.
        skill = np.array([row["skill"] for row in rows]) / 9
        answer = json.dumps(
            {"scores": (0.8 * np.random.default_rng().random(len(rows)) + 0.2 * skill).tolist()}
        ).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Path]:
    """A subject whose service answers at random, and which remembers what it was told."""
    pytest.importorskip("httpx", reason="the http extra is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Random)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    path = write_subject(tmp_path / "about")
    path.write_text(path.read_text().replace("model.npz", f"http://127.0.0.1:{server.server_port}/score"))
    yield path
    server.shutdown()
    server.server_close()


def test_a_random_endpoint_is_said_to_be_one(endpoint: Path, tmp_path: Path) -> None:
    """Although rows that were asked about are remembered, so that no row is ever answered in two ways."""
    shown = CliRunner().invoke(app, ["measure", str(endpoint), "--top", "0"])
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.output.split())
    assert "the model's answers vary" in words
    assert "null bits, of one and the same twin asked 3 times" in words
    told = json.loads(CliRunner().invoke(app, ["certify", str(endpoint), "--budget", "0.2s", "--json"]).stdout)
    assert {one["kind"] for one in told["statements"]} == {
        "statistical"
    }  # it remembers answers, and must be asked anew
    assert any("answers the same question differently" in note for note in told["notes"])
    assert "ε = 0.025 lies below the noise" in words
    told = json.loads(CliRunner().invoke(app, ["measure", str(endpoint), "--json", "--repeats", "2"]).stdout)
    assert told["repeats"] == told["noise"]["repeats"] == 2
    assert told["null_q_inf_mean"] > 0.5
    assert told["notes"][0].startswith("the model's answers vary")
    assert len(told["identity"]) == 16
    out = str(tmp_path / "run")
    found = CliRunner().invoke(
        app, ["search", str(endpoint), "--evaluations", "60", "--strategy", "random", "--out", out]
    )
    assert "null bits, of one and the same twin" in " ".join(found.output.split())
    resumed = CliRunner().invoke(app, ["search", "--resume", out, "--evaluations", "80", "--json"])
    assert resumed.exit_code == 0, resumed.output
    assert json.loads(resumed.stdout)["noise"]["varied"] == 1.0
