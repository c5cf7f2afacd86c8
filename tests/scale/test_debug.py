"""Neurons held by many workers do what they do when one process holds them."""

from __future__ import annotations

import numpy as np

from fairbits.debug.neurons import try_here
from fairbits.measure import Evaluator, evaluator_of
from fairbits.models import Do
from fairbits.scale import ExecutorOptions
from fairbits.scale import run as debugging
from tests.audit.test_tasks import task
from tests.search.planted import every_person, planted_subject


def test_blocks_of_interventions_are_put_together_in_order(monkeypatch) -> None:
    monkeypatch.setattr(debugging, "BLOCK", 3)
    subject = planted_subject()
    evaluator = Evaluator(subject.model, subject.schema, subject.encoding, threads=1)
    cases = every_person(subject.schema)
    dos = [Do(0, 0, value) for value in (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)]
    alone = try_here(evaluator, subject, cases, dos, judged=True)
    spread = debugging.try_out_by(ExecutorOptions(workers=1))
    assert spread is not None
    together = spread(evaluator, subject, cases, dos, judged=True)
    for name in ("accuracy", "k", "id_rate"):
        assert np.array_equal(getattr(alone, name), getattr(together, name))
    assert debugging.try_out_by(ExecutorOptions()) is None


def test_workers_know_the_rows_that_break_a_rule() -> None:
    subject = task("two", rules=("age > 50 -> hours < 40", "age < 30 -> hours > 20"))
    evaluator = evaluator_of(subject, threads=1)
    cases = subject.table.codes[:120]
    assert not np.array_equal(
        evaluator.evaluate(cases).k, Evaluator(subject.model, subject.schema, subject.encoding).evaluate(cases).k
    )  # the rows make a difference here
    dos = [Do(0, 1, 0.7), Do(0, 3, 0.0), Do(1, 2, 1.5)]
    alone = try_here(evaluator, subject, cases, dos, judged=True)
    spread = debugging.try_out_by(ExecutorOptions(workers=1))
    assert spread is not None
    together = spread(evaluator, subject, cases, dos, judged=True)
    for name in ("accuracy", "k", "id_rate"):
        assert np.array_equal(getattr(alone, name), getattr(together, name))
