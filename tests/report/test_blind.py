"""A model that cannot tell twins apart: exactly 0 bits, said plainly on every face, with nothing failed or in doubt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Audit, Network, Subject
from fairbits.audit import AuditResult
from fairbits.blocks import TableBlock
from fairbits.cli.terminal import show
from fairbits.debug import debug_run
from fairbits.report import audit_look, measure_look
from fairbits.report.compute import measured_now
from fairbits.report.sections.summary import flip_blocks
from fairbits.report.sections.treatment import bound_blocks
from fairbits.subject import make_subject
from tests.report.drawn import render_html, render_markdown

from .conftest import build_subject, ordinary_schema

WRONG = ("lower bound", "mixed", "failed", "not possible", "could not be done", "-0.0", "−0.0", "-0 %", "at least")


def without_weight() -> Subject:
    """A network whose protected inputs have no weight."""
    subject = build_subject(ordinary_schema(), "small")
    assert isinstance(subject.model, Network)
    first = subject.model.weights[0].copy()
    first[list(subject.schema.protected_columns)] = 0
    return replace(subject, model=replace(subject.model, weights=(first, *subject.model.weights[1:])))


def without_columns() -> Subject:
    """A function that never gets the protected attributes, one of which has more values than twins take."""
    subject = build_subject(ordinary_schema(), "small")
    age = Attribute(name="age", kind="integer", low=1, high=3, protected=True, ranges=(("young", 1), ("old", 3)))
    schema = replace(subject.schema, attributes=(age, *subject.schema.attributes[1:]))
    audit = Audit(
        lambda rows: 1 / (1 + np.exp(4 - rows[:, 1].astype(float))),
        subject.table,
        schema,
        columns=["job", "hours"],
        input_format="codes",
    )
    return make_subject("unseen", audit.subject.model, schema, subject.table, encoding=audit.subject.encoding)


@pytest.fixture(scope="module", params=[without_weight, without_columns])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    make: Callable[[], Subject] = request.param
    return Audit.of(make()).audit(budget="3s", out=tmp_path_factory.mktemp("runs") / "blind", threads=1)


def test_every_face_says_exactly_nothing(found: AuditResult, capsys: pytest.CaptureFixture[str]) -> None:
    data = found.data
    assert found.faults == {}
    assert data.warnings == ()
    assert all(one.exact and one.k == 1 for one in data.near)
    page = re.sub(
        r"<style.*?</style>|<script.*?</script>|<dl class=\"facts glossary.*?</dl>", "", render_html(data), flags=re.S
    )
    show(audit_look(data, asked=(), faults=found.faults, seconds=found.seconds, waited=""))
    terminal = capsys.readouterr().out.replace("(+: a lower bound)", "")
    for face in (page, render_markdown(data), terminal):
        assert "exactly 0 of" in " ".join(face.replace("<em>", "").replace("</em>", "").split())
        # Indirect bits are a bound, and groups have calibrations of either sign; direct bits are exact.
        direct = re.sub(r"−0\.\d{3}", "", face.replace("(at least", "("))
        for word in WRONG:
            assert word not in direct, word


def test_the_files_say_so(found: AuditResult) -> None:
    summary = json.loads((found.page.parent / "summary.json").read_text())
    assert summary["measure"]["blind"] is True
    assert summary["measure"]["q_inf_max"] == 0


def test_the_measurement_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    for make in (without_weight, without_columns):
        subject = make()
        measured = Audit.of(subject).measure(threads=1)
        show(measure_look(subject, measured, (), top=5))
        shown = " ".join(capsys.readouterr().out.split())
        assert "This model uses exactly 0 of" in shown
        assert "everybody, examined or not" in shown
        assert "up to" not in shown.split("Note")[0]


def test_a_model_that_merely_shows_nothing_is_not_called_blind() -> None:
    """Weights so small that no twin differs by ε here: nothing was found, which is less than a proof."""
    subject = build_subject(ordinary_schema(), "small")
    assert isinstance(subject.model, Network)
    first = subject.model.weights[0].copy()
    first[list(subject.schema.protected_columns)] *= 1e-6
    faint = replace(subject, model=replace(subject.model, weights=(first, *subject.model.weights[1:])))
    measured = Audit.of(faint).measure(threads=1)
    assert measured.evaluation.k.max() == 1
    assert not measured.evaluator.blind
    assert measured.summary()["blind"] is False


def test_debugging_people_who_are_treated_alike_explains_nothing(tmp_path: Path) -> None:
    subject = without_weight()
    run = Audit.of(subject).search(budget="0.3s", out=tmp_path / "run", threads=1)
    assert debug_run(run, subject=subject, samples=30, threads=1).origin.words.startswith("Nothing to explain")


def test_no_bound_is_given_on_more_bits_than_there_are() -> None:
    found = Audit.of(build_subject(ordinary_schema(), "small")).measure(epsilon=1e-6)
    measured = measured_now(found)
    assert measured.bound["bits"] == measured.figures["bits_limit"]
    assert not list(bound_blocks(measured))
    assert len(list(bound_blocks(replace(measured, bound={**measured.bound, "bits": 0.5})))) == 1


def test_plausible_twins_have_columns_where_they_say_more() -> None:
    subject = build_subject(ordinary_schema(), "small")
    (table,) = flip_blocks(measured_now(Audit.of(subject).measure()))
    assert isinstance(table, TableBlock)
    assert len(table.columns) == len(table.rows[0]) == 2
    ruled = replace(subject, schema=replace(subject.schema, plausible=("sex = own sex",)))
    (table,) = flip_blocks(measured_now(Audit.of(ruled).measure()))
    assert isinstance(table, TableBlock)
    assert len(table.columns) == len(table.rows[0]) == 3
