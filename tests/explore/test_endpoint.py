"""A guarded model behind an address: asked in this process without a socket."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from fairbits import Guard
from fairbits.explore.endpoint import guard_app

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


def test_refusals(guard: Guard) -> None:
    client = TestClient(guard_app(guard), base_url="http://127.0.0.1:8765")
    assert client.post("/scores", content=b"{").status_code == 400
    assert "people are missing" in client.post("/scores", json=[1]).json()["error"]
    strange = client.post("/scores", json={"people": [{"shoes": "1"}]})
    assert strange.status_code == 422
    assert "'shoes' is not in the schema" in strange.json()["error"]
    elsewhere = TestClient(guard_app(guard), base_url="http://example.org")
    assert elsewhere.get("/").status_code == 400
