"""Pictures as functions, and objects that show themselves in a notebook."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fairbits
from fairbits import Audit, FairbitsError, Subject, plot
from fairbits.certify import Certificate
from fairbits.repair import read_repair
from fairbits.report import compute_report
from fairbits.report.figures import portraits
from fairbits.report.figures.charts import pictures_of
from fairbits.report.figures.portraits import grid_of
from fairbits.report.record import Axes, Portrait
from fairbits.report.sections.people import axes_of, portrait_of
from fairbits.store import Run

from .conftest import HOSTILE, build_subject


@pytest.mark.parametrize(
    "draw",
    [plot.severity, plot.progress, plot.shapley, plot.network, plot.pareto],
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
    measured = Audit.of(hostile_subject).measure(threads=1)
    repaired = read_repair(audited.folder)
    for result in (hostile, measured, Audit.of(subject).debug(audited, samples=20, threads=1), repaired):
        html = result._repr_html_()
        assert html.startswith("<style>.fairbits.fairbits {")  # nothing outside of it changes its look
        assert html.endswith("</div>")
        assert "<table>" in html
        assert HOSTILE[0] not in html
        assert "\u202e" not in html
        assert "<svg" in result.plot()._repr_svg_()
    assert "plot" in dir(fairbits)


def test_a_certificate_shows_itself(subject: Subject) -> None:
    found = Audit.of(subject).certify(budget=1, threads=1)
    assert found.statements[0].population in found._repr_html_()
    assert "certified" in found.plot()._repr_svg_()
    frame = found.to_frame()
    assert list(frame["people"]) == [one.people for one in found.statements]
    with pytest.raises(FairbitsError, match="no statement to draw"):
        Certificate(()).plot()


def test_a_notebook_keeps_the_layers_apart() -> None:
    """Measuring brings in neither the report nor a library of frames."""
    code = "import sys, fairbits.store; print(sorted({'fairbits.report', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_of_the_users_library(library: str) -> None:
    frames: Any = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    sex, income = rng.choice(["f", "m"], 60), rng.integers(0, 5, 60)
    table = frames.table if library == "pyarrow" else frames.DataFrame
    people = table({"sex": sex, "income": income, "paid": np.where(income > 2, "yes", "no")})
    audit = Audit.from_table(
        lambda rows: 0.2 + 0.1 * np.asarray(rows["income"]) + 0.2 * (np.asarray(rows["sex"]) == "m"),
        people,
        target="paid",
        favourable="yes",
        protected=["sex"],
    )
    found = audit.measure(threads=1)
    frame = found.to_frame()
    assert type(frame).__module__.partition(".")[0] == library
    assert np.asarray(frame["k"]).tolist() == found.evaluation.k.tolist()
    rows = frame.reset_index()["row"] if library == "pandas" else frame["row"]
    assert np.asarray(rows).tolist() == list(range(60))


def test_frames_of_a_run_and_a_repair(audited: Run) -> None:
    assert len(audited.to_frame()) == len(audited)
    repaired = read_repair(audited.folder)
    assert repaired is not None
    frame = repaired.to_frame()
    assert frame["repair"][0] == "as it is"
    assert frame["chosen"].sum() == 1
    assert frame["k_mean"][0] == repaired.before_held_out.k_mean


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


@pytest.mark.usefixtures("all_portraits_are_drawn")
def test_everybody_on_a_page_has_a_portrait(audited: Run, subject: Subject) -> None:
    data = compute_report(audited, subject=subject, threads=1)
    people = {f"{'row' if person.real else 'case'}-{person.rank}" for person in data.people}
    assert len(people) > 4
    assert {name.rpartition("-")[0] for name in pictures_of(data)} >= people
