"""A guarded model behind an address: asked in this process without a socket."""

from __future__ import annotations

import numpy as np
import pytest
from starlette.testclient import TestClient

from fairbits import Attribute, Guard, Schema, Table
from fairbits.explore import guard_app

from ..report.conftest import build_subject, ordinary_schema


@pytest.fixture(scope="module")
def guard() -> Guard:
    return Guard.of(build_subject(ordinary_schema(), "small"), guarantee=2, threads=1)


def test_people_are_scored(guard: Guard) -> None:
    client = TestClient(guard_app(guard), base_url="http://127.0.0.1:8765")
    about = client.get("/").json()
    assert about["k_max_proved"] == 2
    assert about["scores_per_decision"] == guard.m
    codes = guard.subject.table.codes[:3]
    people = [guard.schema.read(row) for row in codes]
    found = client.post("/scores", json={"people": people}).json()
    assert found["scores"] == pytest.approx(guard.people_scores(codes).tolist())
    assert set(found["decisions"]) <= set(guard.schema.classes)
    assert found["proof"].startswith("Proved for everybody")


@pytest.mark.parametrize("guarantee", [1, 2])
def test_nobody_needs_to_declare(guarantee: int) -> None:
    """Left out, null or unknown: the average over twins; at K = 1 that is what everybody gets."""
    guard = Guard.of(build_subject(ordinary_schema(), "small"), guarantee=guarantee, threads=1)
    client = TestClient(guard_app(guard), base_url="http://127.0.0.1:8765")
    codes = guard.subject.table.codes[:4]
    average = guard.with_guarantee(1).people_scores(codes).tolist()
    protected = guard.schema.protected
    for change in ({}, dict.fromkeys(protected), dict.fromkeys(protected, "nobody's"), dict.fromkeys(protected, -1e9)):
        people = [
            {**{name: value for name, value in guard.schema.read(row).items() if name not in protected}, **change}
            for row in codes
        ]
        found = client.post("/scores", json={"people": people}).json()
        assert found["scores"] == pytest.approx(average)
    free = next(name for name in guard.schema.names if name not in protected)
    strange = client.post("/scores", json={"people": [{**guard.schema.read(codes[0]), free: "nobody's"}]})
    assert strange.status_code == 422


def test_decisions_have_the_types_of_the_labels() -> None:
    schema = Schema(
        (
            Attribute(name="pay", kind="integer", low=0, high=5),
            Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
        ),
        target="ok",
        classes=("0", "1"),
        favourable="0",
    )
    codes = np.column_stack([np.arange(40) % 6, np.arange(40) % 2]).astype(float)
    guard = Guard(
        lambda frame: np.asarray(frame["pay"]) / 5,
        Table(codes, (codes[:, 0] < 3) * 1.0),
        schema,
        threads=1,
        refit=False,
        score_of="0",
    )
    client = TestClient(guard_app(guard), base_url="http://127.0.0.1:8765")
    found = client.post("/scores", json={"people": [{"pay": 5, "sex": "f"}, {"pay": 0}]}).json()
    assert found["decisions"] == [0, 1]


def test_refusals(guard: Guard) -> None:
    client = TestClient(guard_app(guard), base_url="http://127.0.0.1:8765")
    assert client.post("/scores", content=b"{").status_code == 400
    assert "people are missing" in client.post("/scores", json=[1]).json()["error"]
    strange = client.post("/scores", json={"people": [{"shoes": "1"}]})
    assert strange.status_code == 422
    assert "'shoes' is not in the schema" in strange.json()["error"]
    elsewhere = TestClient(guard_app(guard), base_url="http://example.org")
    assert elsewhere.get("/").status_code == 400


def test_scores_and_decisions_are_one_answer_and_null_is_a_missing_value() -> None:
    """The model is asked once about everybody and their twins, and what JSON has is read as a table's values are."""
    attributes = (
        Attribute(name="pay", kind="integer", low=0, high=5, missing="model"),
        Attribute(name="home", kind="category", labels=("false", "true")),
        Attribute(name="sex", kind="category", labels=("f", "m"), protected=True),
    )
    schema = Schema(attributes, target="ok", classes=("no", "yes"))
    asked = []

    def model(frame):
        asked.append(frame)
        return np.where(frame["pay"].isna(), 0.9, 0.2) + 0.05 * np.asarray(frame["home"], float)

    codes = np.column_stack([np.arange(40) % 6, np.arange(40) % 2, np.arange(40) // 2 % 2]).astype(float)
    guard = Guard(model, Table(codes, np.arange(40.0) % 2), schema, threads=1, refit=False)
    client = TestClient(guard_app(guard), base_url="http://127.0.0.1:8765")
    asked.clear()
    people = [{"pay": None, "home": True, "sex": "f"}, {"pay": 3.0, "home": False, "sex": "m"}]
    found = client.post("/scores", json={"people": people}).json()
    assert found["scores"] == pytest.approx([0.95, 0.2])
    assert found["decisions"] == ["yes", "no"]
    assert sum(len(frame) for frame in asked) <= 2 * (guard.m + 1)
