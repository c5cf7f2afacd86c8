"""A model that predicts a number decides nothing: no face speaks of flips or accuracy, all of explained variance."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from fairbits import Schema, Table, plot
from fairbits.cli.terminal import show
from fairbits.debug import debug_run
from fairbits.repair import RepairResult, repair_run
from fairbits.report import ReportData, compute_report, repair_blocks
from fairbits.report.sections.details import has_inside
from fairbits.store import Run
from fairbits.subject import make_subject
from tests.report.drawn import render_html, render_markdown

from ..conftest import random_network, random_people
from .conftest import ordinary_schema, search


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, RepairResult, ReportData]:
    schema = Schema(attributes=ordinary_schema().attributes, target="pay")
    rng = np.random.default_rng(1)
    network = random_network(rng, [4, 6, 1], head="linear")
    codes = random_people(rng, schema, 200)
    subject = make_subject("pay", network, schema, Table(codes))
    pay = network.scores(subject.encoding.encode(codes)) + rng.normal(0, 0.1, 200)
    subject = make_subject("pay", network, schema, Table(codes, pay))
    run = search(subject, tmp_path_factory.mktemp("runs") / "pay", evaluations=500)
    debug_run(run, subject=subject, samples=40, threads=1)
    result = repair_run(run, subject=subject, retrain=False, threads=1, max_accuracy_loss=0.9)
    return run, result, compute_report(run, subject=subject, threads=1)


def test_on_the_terminal(found: tuple[Run, RepairResult, ReportData], capsys: pytest.CaptureFixture[str]) -> None:
    show(repair_blocks(found[1]), everything=True)
    shown = capsys.readouterr().out
    assert "90.0 % of variance explained may be lost" in " ".join(shown.split())
    assert re.search(r"repair +variance explained +change, 95 % +mean k +proved *\n", shown)
    assert re.search(r"^ ?variance explained on rows +\d", shown, re.MULTILINE)
    assert "ccuracy" not in shown
    assert "ID rate" not in shown
    assert max(map(len, shown.splitlines()[:25])) <= 80


@pytest.mark.parametrize("face", [render_html, render_markdown])
def test_on_paper(found: tuple[Run, RepairResult, ReportData], face) -> None:
    page = face(found[2])
    assert ("variance explained on rows" in page) is (face is render_html)  # Markdown leaves figure by figure to it
    assert re.search(r"(>|\| )variance explained(<| \|)", page)
    for word in ("flip", "ID rate", "accuracy on", "in accuracy", "less accurate", "accuracy |", ">accuracy<"):
        assert word not in re.sub("<style>.*</style>", "", page, flags=re.DOTALL), word


def test_rows_of_markdown_fit_their_heads(found: tuple[Run, RepairResult, ReportData]) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", render_markdown(found[2]), re.MULTILINE):
        assert len({line.replace(r"\|", "").count("|") for line in table.splitlines()}) == 1, table


def test_in_a_picture(found: tuple[Run, RepairResult, ReportData]) -> None:
    drawn = plot.pareto(found[0])._repr_svg_()
    assert "variance explained on held-out rows" in drawn
    assert "90 % less variance explained" in drawn


def test_a_model_without_hidden_layers_has_no_picture_of_them(found: tuple[Run, RepairResult, ReportData]) -> None:
    """A linear model has its inputs and its output: a sentence, instead of a drawing with nothing in it."""
    debugged = found[2].debugged
    assert debugged is not None
    assert has_inside(debugged)
    straight = replace(debugged, layers=tuple(layer for layer in debugged.layers if layer.layer in (0, 1)), neurons=())
    page = render_html(replace(found[2], debugged=straight))
    assert "no layer in between to look into" in page
    assert "suspect layer is framed" not in page
    assert "pic-network" not in page
