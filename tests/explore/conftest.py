"""Explorers over small searched runs, asked in this process without a socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairbits import Subject
from fairbits.debug import debug_run
from fairbits.explore import Explorer, build_app

from ..report.conftest import build_subject, hostile_schema, ordinary_schema, search

HOST, TOKEN = "127.0.0.1:8765", "a-token_of-the-tests"


def explorer_of(subject: Subject, folder: Path, *, debugged: bool = False) -> Explorer:
    run = search(subject, folder, evaluations=600)
    if debugged:
        debug_run(run, subject=subject, samples=40, threads=1)
    return Explorer(run, subject=subject)


class Client(TestClient):
    """Knows the address and the token."""

    def __init__(self, explorer: Explorer):
        app: Any = build_app(explorer, token=TOKEN, hosts=[HOST])
        super().__init__(app, base_url=f"http://{HOST}")
        self.params = {"token": TOKEN}
        self.explorer = explorer

    def ask(self, **question: Any) -> dict[str, Any]:
        answer = self.post("/answer", json=question)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@pytest.fixture(scope="session")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Explorer:
    folder = tmp_path_factory.mktemp("runs") / "ordinary"
    return explorer_of(build_subject(ordinary_schema(), "small"), folder, debugged=True)


@pytest.fixture(scope="session")
def hostile_explorer(tmp_path_factory: pytest.TempPathFactory) -> Explorer:
    return explorer_of(build_subject(hostile_schema(), "<script>"), tmp_path_factory.mktemp("runs") / "hostile")


@pytest.fixture
def client(explorer: Explorer) -> Client:
    return Client(explorer)
