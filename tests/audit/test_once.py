"""One audit asks its model through one evaluator, and reads no file of its run twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairbits import Audit, load_subject
from fairbits.measure import Evaluator, evaluator_of, shared_evaluators
from fairbits.store import read_json, read_once, write_json
from tests.repair.conftest import SCHEMA, people, wired


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], Counter[tuple[str, int]]]:
    """The models that evaluators were made for, and how often each state of a JSON file was read as text."""
    models: list[Any] = []
    reads: Counter[tuple[str, int]] = Counter()
    init, read_text = Evaluator.__init__, Path.read_text

    def made(self: Evaluator, model: Any, *rest: Any, **more: Any) -> None:
        models.append(model)
        init(self, model, *rest, **more)

    def read(self: Path, *rest: Any, **more: Any) -> str:
        if self.suffix == ".json":
            reads[str(self), self.stat().st_ino] += 1
        return read_text(self, *rest, **more)

    monkeypatch.setattr(Evaluator, "__init__", made)
    monkeypatch.setattr(Path, "read_text", read)
    return models, reads


def test_an_audit_makes_one_evaluator_and_reads_each_file_once(
    watched: tuple[list[Any], Counter[tuple[str, int]]], tmp_path: Path
) -> None:
    models, reads = watched
    audit = Audit(wired(), people(), SCHEMA, name="wired")
    for resume in (False, True):
        models.clear()
        reads.clear()
        audit.audit(budget="1s", out=tmp_path / "run", threads=1, resume=resume)
        assert sum(model is audit.subject.model for model in models) == 1
        own = {place: count for place, count in reads.items() if str(tmp_path / "run") in place[0]}
        assert set(own.values()) == {1}
        assert {Path(name).name for name, _ in own} >= {"run.json", "debug.json", "repair.json", "certify.json"}


def test_outside_of_an_audit_nothing_is_shared(tmp_path: Path) -> None:
    subject = load_subject("heart")
    with shared_evaluators():
        first = evaluator_of(subject, threads=1)
        assert evaluator_of(subject.checked(), epsilon=first.epsilon, threads=1) is first
        assert evaluator_of(subject.with_protected(subject.schema.protected), threads=1) is first
        assert evaluator_of(subject, epsilon=0.1, threads=1) is not first
        assert evaluator_of(subject.with_protected(["sex"]), threads=1) is not first
    assert evaluator_of(subject, threads=1) is not first
    assert first.with_model(subject.model) is first
    other = replace(subject.model)
    assert first.with_model(other) is first.with_model(other) is not first  # a repair is judged twice, and proved


def test_a_file_that_is_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    write_json(path, {"a": 1})
    with read_once():
        found = read_json(path)
        found["a"] = 3  # what one reader does to its document is nobody else's affair
        assert read_json(path) == {"a": 1}
        write_json(path, {"a": 2})
        assert read_json(path) == {"a": 2}
