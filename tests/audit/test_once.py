"""One audit asks its model through one evaluator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairbits import Audit, load_subject
from fairbits.measure import Evaluator, evaluator_of, shared_evaluators
from tests.repair.conftest import SCHEMA, people, wired


def test_an_audit_makes_one_evaluator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    models: list[Any] = []
    init = Evaluator.__init__

    def made(self: Evaluator, model: Any, *rest: Any, **more: Any) -> None:
        models.append(model)
        init(self, model, *rest, **more)

    monkeypatch.setattr(Evaluator, "__init__", made)
    audit = Audit(wired(), people(), SCHEMA, name="wired")
    for resume in (False, True):
        models.clear()
        audit.audit(budget="1s", out=tmp_path / "run", threads=1, resume=resume)
        assert sum(model is audit.subject.model for model in models) == 1


def test_outside_of_an_audit_nothing_is_shared() -> None:
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
