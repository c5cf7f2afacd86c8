"""Names and labels with markup, formulas, direction marks or ten thousand letters come out as text, everywhere."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest

from fairbits import Subject
from fairbits.audit.run import _guarded
from fairbits.report import ReportData, compute_report, json_schema, summary_of
from fairbits.report.markdown import text, value_text
from fairbits.report.sections.paperwork import POINTERS
from fairbits.store import Run
from fairbits.text import harmless, shortened
from tests.report.drawn import render_html, render_markdown

from .conftest import HOSTILE
from .test_faces import Page


@pytest.fixture(scope="module")
def data(hostile: Run, hostile_subject: Subject) -> ReportData:
    return compute_report(hostile, subject=hostile_subject, threads=1)


@pytest.fixture(scope="module")
def page(data: ReportData) -> str:
    return render_html(data)


def test_no_markup_comes_through(page: str) -> None:
    found = Page(page)
    assert len(found.all("script")) == 1
    assert not found.all("img")
    assert not [attrs for _, attrs in found.tags if any(name.startswith("on") for name in attrs)]
    links = {"https://doi.org/10.1109/ICSE48619.2023.00136", *(one.address for one in POINTERS)}
    assert {attrs["href"] for attrs in found.all("a") if not (attrs["href"] or "").startswith("#")} == links
    assert "&lt;script&gt;" in page
    assert "{{ 7*7 }}" in page  # a template in a label is a label


def test_no_letter_turns_the_page_round(page: str, data: ReportData) -> None:
    for face in (page, render_markdown(data)):
        turning = {
            c
            for c in face
            if unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI", "FSI", "PDF", "PDI")
        }
        assert not turning


def test_labels_are_cut_to_a_length(page: str, data: ReportData) -> None:
    assert "z" * 400 not in page
    assert "z" * 400 not in render_markdown(data)
    assert len(page) < 6_000_000


def test_markdown_stays_in_its_cells(data: ReportData) -> None:
    # Indented lines are code, where nothing is markup.
    document = "\n".join(line for line in render_markdown(data).splitlines() if not line.startswith("    "))
    assert not re.search(r"(?<!\\)<(?!https://)", document)
    assert not re.search(r"(?<!\\)\]\(", document)
    for block in document.split("\n\n"):
        lines = block.splitlines()
        if len(lines) > 1 and lines[1].startswith("| ---"):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert len(widths) == 1, lines[0]


def test_formulas_are_text() -> None:
    for formula in ("=1+1", "+1", "-1", "@SUM(A1)"):
        assert text(formula).startswith("'")


def test_json_keeps_the_truth(data: ReportData) -> None:
    import jsonschema

    summary = summary_of(data)
    jsonschema.validate(summary, json_schema())
    assert summary["subject"] == HOSTILE[0]
    assert any(HOSTILE[7] in str(stake) for stake in summary["measure"]["stakes"])


def test_control_letters_and_lone_surrogates(tmp_path: Path) -> None:
    strange = "a\x00b\x1bc\ud800d\u2028e"
    assert harmless(strange).encode() == "a\ufffdb\ufffdc\ufffdd\ufffde".encode()
    assert len(shortened(strange * 100, 20)) == 20


@pytest.mark.parametrize("label", ["-710", "+3", "-1,234.5", "-.5", "-2e3", "-3 %"])
def test_numbers_are_no_formulas(label: str) -> None:
    assert value_text(label) == label
    assert _guarded(pa.array([label])).to_pylist() == [label]


@pytest.mark.parametrize("label", ["-1+1", "+A1", "=1", "@x", "-2+3+cmd|' /C calc'!A0", "-", "--5"])
def test_formulas_are_quoted(label: str) -> None:
    assert value_text(label).startswith("'")
    assert _guarded(pa.array([label])).to_pylist() == [f"'{label}"]
