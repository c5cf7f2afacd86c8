"""What the explorer says about a person is what the model and the measure say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairbits import Schema, qid
from fairbits.domain.rule import Rule
from fairbits.explore import Explorer
from fairbits.explore.explorer import Hold
from fairbits.measure import evaluator_of
from fairbits.models import Do, HasActivations
from fairbits.store import Run
from fairbits.subject import make_subject

from ..audit.test_tasks import task
from ..report.conftest import HOSTILE, build_subject, ordinary_schema
from .conftest import Client, explorer_of


def row_of(explorer: Explorer, free: list[float]) -> np.ndarray:
    codes = np.array([attribute.low for attribute in explorer.schema.attributes], dtype=float)
    codes[list(explorer.schema.free_columns)] = free
    return codes


def test_figures_are_those_of_the_measure(client: Client) -> None:
    explorer = client.explorer
    for person in client.get("/start").json()["people"][:4]:
        found = client.ask(codes=person["codes"])
        scores = explorer.evaluator.scores(row_of(explorer, person["codes"])[None])
        expected = qid(scores)
        assert found["k"] == expected.k[0] == person["k"]
        assert found["bits"] == pytest.approx(np.log2(found["k"]))
        np.testing.assert_allclose(found["scores"], scores[0], atol=1e-6)
        assert max(found["classes"]) + 1 == found["k"]
        labels = explorer.evaluator.twins.labels
        assert (found["worst"], found["best"]) == (labels[scores[0].argmin()], labels[scores[0].argmax()])


def test_a_changed_attribute_changes_the_answer(client: Client) -> None:
    person = client.get("/row", params={"number": 1}).json()
    answers = [client.ask(codes=[person["codes"][0], hours])["scores"] for hours in (0, 9)]
    assert answers[0] != answers[1]


def test_a_held_neuron_is_surgery(client: Client) -> None:
    explorer = client.explorer
    codes = client.get("/start").json()["people"][0]["codes"]
    held = client.ask(codes=codes, hold=[{"layer": 1, "neuron": 3, "at": "mean"}], layer=1)
    plain = client.ask(codes=codes)
    inputs = explorer.subject.encoding.encode(explorer.subject.table.codes)
    mean = float(explorer.subject.model.activations(inputs)[0][:, 3].mean())
    network = explorer.subject.model.with_interventions([Do(0, 3, mean)])
    twins = explorer.evaluator.twins.expand(row_of(explorer, codes)[None])[0]
    np.testing.assert_allclose(held["scores"], network.scores(explorer.subject.encoding.encode(twins)), atol=1e-5)
    assert held["before"]["k"] == plain["k"]
    assert held["before"]["accuracy"] == plain["accuracy"]
    assert held["spread"][0][3] == pytest.approx(held["spread"][1][3]) == pytest.approx(mean, abs=1e-4)
    assert client.ask(codes=codes)["scores"] == plain["scores"]  # nothing stays held


def test_debugging_is_shown_where_it_was_done(client: Client) -> None:
    layers = client.get("/start").json()["layers"]
    assert [layer["width"] for layer in layers] == [12, 8]
    suspects = [layer for layer in layers if layer["suspect"]]
    assert all(len(layer["acd"]) == layer["width"] for layer in suspects)
    assert all(layer["acd"] is None for layer in layers if not layer["suspect"])


def test_rows_know_who_they_are(client: Client) -> None:
    explorer = client.explorer
    person = client.get("/row", params={"number": 7}).json()
    codes = explorer.subject.table.codes[6]
    assert person["codes"] == [codes[i] for i in explorer.schema.free_columns]
    assert explorer.evaluator.twins.values[person["own"]].tolist() == [
        codes[i] for i in explorer.schema.protected_columns
    ]
    assert client.ask(codes=person["codes"])["distance"] == "like a row of the table"


def test_rules_leave_twins_out(tmp_path: Path) -> None:
    plain = ordinary_schema()
    texts = ('age = "old" -> job != "Farm"', 'job = "Care" -> hours <= 5')
    schema: Schema = replace(plain, rules=tuple(Rule.of(text, plain.attributes) for text in texts))
    client = Client(explorer_of(build_subject(schema, "ruled"), tmp_path / "run"))
    found = client.ask(codes=[2, 3])
    gone = [score is None for score in found["scores"]]
    real = client.explorer.evaluator.valid_twins(row_of(client.explorer, [2, 3])[None])
    assert real is not None
    assert gone == (~real[0]).tolist()
    assert found["twins"] == 6 - sum(gone)
    notes = client.ask(codes=[3, 9])["notes"]
    valid = client.explorer.evaluator.validity.people(row_of(client.explorer, [3, 9])[None])[0]
    assert valid == (not notes)


def test_a_regression_says_what_a_held_neuron_costs(tmp_path: Path) -> None:
    client = Client(explorer_of(task("regression", rules=()), tmp_path / "run"))
    start = client.get("/start").json()
    assert start["judged"] == 300
    _, least, _, most = np.array(start["layers"][0]["values"])
    neuron = int((most - least).argmax())
    held = client.ask(codes=start["people"][0]["codes"], hold=[{"layer": 1, "neuron": neuron, "at": "max"}])
    assert held["before"]["accuracy"] == pytest.approx(1.0)  # the target is what the network puts out
    subject = client.explorer.subject
    network = subject.model.with_interventions([client.explorer.switches.do(Hold(1, neuron, "max"))])
    labels = subject.table.labels
    missed = np.mean((network.scores(subject.encoding.encode(subject.table.codes)) - labels) ** 2)
    assert held["accuracy"] == pytest.approx(1 - missed / np.var(labels), abs=1e-5)
    assert held["accuracy"] < 0.99


class _ScoresOnly:
    """A black box."""

    def __init__(self, network: object, inputs: int):
        self._network, self.inputs = network, inputs

    def scores(self, inputs: object) -> np.ndarray:
        return self._network.scores(inputs)  # type: ignore[attr-defined]


def test_a_black_box_says_why_it_has_no_neurons(tmp_path: Path) -> None:
    native = build_subject(ordinary_schema(), "boxed")
    box = _ScoresOnly(native.model, native.model.inputs)
    assert not isinstance(box, HasActivations)
    boxed = make_subject("boxed", box, native.schema, native.table, encoding=native.encoding)
    client = Client(explorer_of(boxed, tmp_path / "run"))
    start = client.get("/start").json()
    assert start["layers"] == []
    assert "scores only" in start["no_layers"]
    codes = start["people"][0]["codes"]
    people = np.stack([row_of(client.explorer, one["codes"]) for one in start["people"][:5]])
    k = [client.ask(codes=one["codes"])["k"] for one in start["people"][:5]]
    assert k == evaluator_of(native).evaluate(people).k.tolist()
    assert max(k) > 1
    refused = client.post("/answer", json={"codes": codes, "hold": [{"layer": 1, "neuron": 0, "at": "zero"}]})
    assert refused.status_code == 422
    assert "no neuron can be held" in refused.json()["error"]


def test_hostile_labels_are_cut_and_turned_harmless(hostile_explorer: Explorer) -> None:
    client = Client(hostile_explorer)
    text = client.get("/start").text + str(client.ask(codes=[0, 0]))
    assert "\u202e" not in text
    assert HOSTILE[7][:400] not in text
    assert HOSTILE[0] in client.get("/start").json()["attributes"][0]["choices"][0][1]  # the page sets it as text
    for path in ("/", "/explore.js"):
        assert "alert(1)" not in client.get(path).text


def test_nothing_is_written(client: Client) -> None:
    run: Run = client.explorer.run
    before = {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")}
    client.ask(codes=client.get("/start").json()["people"][0]["codes"], layer=1)
    assert {path: path.stat().st_mtime_ns for path in run.folder.rglob("*")} == before


def test_the_guard_bounds_k_and_shows_its_proof(client: Client) -> None:
    person = client.get("/start").json()["people"][0]
    plain = client.ask(codes=person["codes"])
    assert plain["proof"] == ""
    assert plain["k"] > 1
    guarded = client.ask(codes=person["codes"], guard=1)
    assert guarded["k"] == 1
    assert not guarded["flips"]
    assert guarded["proof"].startswith("Proved for everybody")
    assert guarded["before"]["k"] == plain["k"]
    assert client.post("/answer", json={"codes": person["codes"], "guard": 0}).status_code == 422
