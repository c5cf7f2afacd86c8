"""Pictures as functions, and objects that show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import fairbits
from fairbits import Audit, FairbitsError, Subject, plot
from fairbits.report.figures import portraits
from fairbits.report.figures.portraits import grid_of
from fairbits.report.record import Axes, Portrait
from fairbits.report.sections.people import axes_of, portrait_of
from fairbits.store import Run

from .conftest import HOSTILE, build_subject


@pytest.mark.parametrize(
    "draw",
    [plot.severity, plot.progress, plot.stakes, plot.shapley, plot.network, plot.pareto],
    ids=lambda f: f.__name__,
)
def test_pictures_of_a_run(draw: Callable[[Run], Any], audited: Run) -> None:
    assert "<svg" in draw(audited)._repr_svg_()


def test_twins_of_a_case_a_row_and_somebody(searched: Run, subject: Subject) -> None:
    found = Audit.of(subject).measure(threads=1)
    for who in (found.worst(1)[0], searched.worst(1)[0], {"job": "Tech", "hours": "3"}):
        assert "young" in plot.twins(who, found)._repr_svg_()
        assert "by score" in plot.steps(who, found.evaluator)._repr_svg_()
    assert "<svg" in plot.severity(found)._repr_svg_()


def test_twins_of_a_live_run(subject: Subject, tmp_path) -> None:
    """A run that was started from Python knows its subject; nobody else does."""
    run = Audit.of(subject).search(budget=fairbits.Budget(evaluations=300), out=tmp_path / "run", threads=1)
    assert "young" in plot.twins(run.worst(1)[0], run)._repr_svg_()
    assert "by score" in plot.steps(run.worst(1)[0], run)._repr_svg_()
    shifted = build_subject(subject.schema, "other", seed=11)
    again = Audit.of(shifted).search(
        budget=fairbits.Budget(evaluations=300), out=tmp_path / "run", force=True, threads=1
    )
    drawn = plot.twins({"job": "Tech", "hours": "3"}, again)
    assert drawn._repr_svg_() != plot.twins({"job": "Tech", "hours": "3"}, run)._repr_svg_()  # each by its own model


def test_cells_stand_where_their_labels_say(subject: Subject) -> None:
    """The score in a cell is the model's for that person: columns are the longer attribute, rows the shorter one."""
    evaluator = Audit.of(subject).measure(threads=1).evaluator
    person = portrait_of(evaluator, subject.table.codes[:1])
    grid = grid_of(person, axes_of(evaluator))
    assert grid is not None
    assert grid.row == ("sex", ("Female", "Male"))
    assert grid.column == ("age", ("young", "middle", "old"))
    who = subject.schema.read(subject.table.codes[0]) | {"sex": "Male", "age": "middle"}
    score = subject.model.scores(subject.encoding.encode(subject.schema.codes_of(who)[None, :]))[0]
    assert grid.scores[0, 1, 1] == pytest.approx(float(score), abs=1e-5)


def test_a_stage_that_is_missing_is_named(searched: Run) -> None:
    with pytest.raises(FairbitsError, match="was not debugged"):
        plot.network(searched)
    with pytest.raises(FairbitsError, match="was not repaired"):
        plot.pareto(searched)


def test_objects_show_themselves(hostile: Run, hostile_subject: Subject, audited: Run, subject: Subject) -> None:
    shown = [hostile._repr_html_(), Audit.of(hostile_subject).measure(threads=1)._repr_html_()]
    shown.append(Audit.of(subject).debug(audited, samples=20, threads=1)._repr_html_())
    for html in shown:
        assert html.startswith("<table>")
        assert HOSTILE[0] not in html
        assert "\u202e" not in html
    assert "plot" in dir(fairbits)


def test_a_person_without_classes_is_drawn() -> None:
    """Where whole vectors of scores are compared, no single score says the class."""
    axes = Axes(names=("age", "sex"), values=(("young", "old"), ("Female", "Male")), threshold=None)
    figures = {"k": 2, "q_inf": 1.0, "q_1": 1.0, "low": 0.1, "high": 0.4, "twins": 3, "favourable": 1}
    words = {"place": "as given", "worst": "young, Female", "best": "old, Male", "attributes": {}}
    scores = (0.1, 0.2, float("nan"), 0.4)
    person = Portrait(rank=1, real=False, flips=False, scores=scores, classes=(), **figures, **words)
    for drawn in (portraits.heat_map(person, axes), portraits.staircase(person, axes)):
        assert drawn is not None
        assert "<svg" in drawn._repr_svg_()
