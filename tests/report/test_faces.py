"""One record, three formats: the same figures everywhere, parts only for stages that were run."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Schema, Subject
from fairbits.report import (
    ReportData,
    compute_report,
    json_schema,
    summary_of,
    write_report,
)
from fairbits.report.figures.portraits import grid_of
from fairbits.report.html import link_terms
from fairbits.report.page import parts_of
from fairbits.report.sections.paperwork import POINTERS
from fairbits.store import Run
from tests.report.drawn import render_html, render_markdown, render_words

from .conftest import build_subject, ordinary_schema, search, unlinked

DOCS = Path(__file__).parents[2] / "docs"
ORDER = [
    "summary",
    "affected",
    "who",
    "treatment",
    "people",
    "repairs",
    "certainty",
    "limitations",
    "sign-off",
    "details",
]
FOLDS = ["drivers", "inside", "origin", "severity", "reproduce", "files", "regulations", "glossary"]


class Page(HTMLParser):
    """Collects what the tests ask about."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def data(audited: Run, subject: Subject) -> ReportData:
    return compute_report(audited, subject=subject, threads=1)


@pytest.fixture(scope="module")
def page(data: ReportData) -> str:
    return render_html(data)


def test_the_same_figures_on_every_face(data: ReportData, page: str) -> None:
    document, summary = render_markdown(data), summary_of(data)
    assert data.sentence in document
    assert summary["report"]["sentence"] == data.sentence
    assert f"{data.bits:.2f} of {data.about.bits_limit:.2f} bits" in page
    rate = data.measured.flip_rate
    assert rate is not None
    for face in (page, document):
        assert f"{100 * rate.value:.1f} %" in face
        assert data.reproduction.identity in face
        assert "10.1109/ICSE48619.2023.00136" in face
    assert summary["measure"]["flip_rate"] == rate.value


def test_sections_come_in_order(page: str) -> None:
    assert re.findall(r'<section id="([\w-]+)"', page) == ORDER
    assert re.findall(r'<details class="detail" id="([\w-]+)"', page) == FOLDS


def test_a_stage_that_was_not_run_has_no_section(searched: Run, subject: Subject) -> None:
    import jsonschema

    data = compute_report(searched, subject=subject, threads=1)
    assert data.debugged is None
    assert data.repaired is None
    assert [part.name for part in parts_of(data)] == [name for name in ORDER if name not in ("who", "repairs")]
    assert re.findall(r'<details class="detail" id="([\w-]+)"', render_words(data)) == FOLDS[3:]
    assert "## What to do" not in render_markdown(data)
    summary = summary_of(data)
    assert summary["debug"] is None
    assert summary["repair"] is None
    jsonschema.validate(summary, json_schema())


def test_the_summary_keeps_the_names_of_the_search(data: ReportData, audited: Run) -> None:
    import jsonschema

    summary = summary_of(data)
    jsonschema.validate(summary, json_schema())
    assert audited.summary is not None
    assert {name: summary[name] for name in audited.summary} == audited.summary


def test_the_schema_refuses_what_is_wrong(data: ReportData) -> None:
    import jsonschema

    summary = summary_of(data)
    summary["report"]["near"][0]["exact"] = "yes"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(summary, json_schema())


def test_the_published_schema_is_the_one_in_the_package() -> None:
    published = Path(__file__).resolve().parents[2] / "docs" / "summary.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == json_schema()


def test_writing_twice_gives_the_same(audited: Run, subject: Subject, tmp_path: Path) -> None:
    """The second report reads the measurement and the summary that the first one wrote."""
    for folder in ("one", "two"):
        write_report(compute_report(Run.open(audited.folder), subject=subject, threads=1), tmp_path / folder)
    for name in ("report.html", "report.md", "summary.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_nothing_is_fetched(page: str) -> None:
    found = Page(page)
    outside = [
        attrs
        for tag, attrs in found.tags
        if any((attrs.get(n) or "").startswith(("http", "//")) for n in ("src", "href", "xlink:href", "srcset"))
    ]
    # Links that somebody may follow: the paper, and the texts of the appendix. Nothing is loaded from anywhere.
    assert {tag for tag, attrs in found.tags if attrs in outside} == {"a"}
    links = {"https://doi.org/10.1109/ICSE48619.2023.00136", *(one.address for one in POINTERS)}
    assert {attrs["href"] for attrs in outside} == links
    assert not found.all("link")
    assert "@import" not in page
    assert "url(http" not in page
    assert "default-src 'none'" in page


def test_a_text_of_law_is_dated(page: str) -> None:
    for one in POINTERS:
        assert date.fromisoformat(one.day) < datetime.now(UTC).date()
        assert html.escape(f"{one.place}; text of {one.day}") in page


def test_the_page_is_accessible(page: str) -> None:
    found = Page(page)
    assert found.all("html")[0]["lang"] == "en"
    for tag in ("header", "main", "nav", "footer", "h1"):
        assert len(found.all(tag)) == 1, tag
    assert all(attrs.get("scope") in ("row", "col") for attrs in found.all("th"))
    pictures = found.all("svg")
    assert len(pictures) >= 10
    ids = [attrs["id"] for _, attrs in found.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    for attrs in pictures:
        assert attrs["role"] in ("img", "group")
        assert set((attrs["aria-labelledby"] or "").split()) <= set(ids)
    neurons = [attrs for attrs in found.all("g") if attrs.get("class") == "part"]
    assert neurons
    assert all(attrs["tabindex"] == "0" and "neuron" in (attrs["aria-label"] or "") for attrs in neurons)


def test_no_word_that_promises_too_much(page: str, data: ReportData) -> None:
    for face in (page, render_markdown(data)):
        assert not re.search(r"\b(unbiased|debias\w*|fair model|is fair)\b", face, re.IGNORECASE)
        assert "lower bound" in face


def test_a_search_that_did_not_end(searched: Run, subject: Subject, tmp_path: Path) -> None:
    """Killed: run.json says running, and there is no summary."""
    import shutil

    import jsonschema

    folder = tmp_path / "killed"
    shutil.copytree(searched.folder, folder)
    (folder / "summary.json").unlink(missing_ok=True)
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**record, "status": "running"}))
    data = compute_report(Run.open(folder), subject=subject, threads=1)
    assert "The search is running" in render_words(data)
    jsonschema.validate(summary_of(data), json_schema())


@pytest.mark.parametrize("protected", [["sex"], ["age", "sex", "job"], ["age", "sex", "job", "more"]])
def test_one_two_three_and_four_protected_attributes(protected: list[str], tmp_path: Path) -> None:
    schema = replace(
        ordinary_schema(),
        attributes=(*ordinary_schema().attributes, Attribute(name="more", kind="integer", low=0, high=2)),
    ).with_protected(protected)
    subject = build_subject(schema, "several", rows=60)
    data = compute_report(search(subject, tmp_path / "run", evaluations=300), subject=subject, threads=1)
    page = render_html(data)
    assert ('id="pic-row-1-line-title"' in page) == (len(protected) == 1)
    assert ('id="pic-row-1-map-title"' in page) == (len(protected) in (2, 3))
    assert ('id="pic-row-1-steps-title"' in page) == (len(protected) > 1)


def test_a_regression_has_no_decisions(tmp_path: Path) -> None:
    import jsonschema

    from fairbits import Network, Table
    from fairbits.subject import make_subject

    from ..conftest import random_network, random_people

    schema = Schema(attributes=ordinary_schema().attributes, target="pay")
    rng = np.random.default_rng(1)
    network: Network = random_network(rng, [4, 6, 1], head="linear")
    codes = random_people(rng, schema, 50)
    subject = make_subject("pay", network, schema, Table(codes, rng.normal(size=50)))
    data = compute_report(search(subject, tmp_path / "run", evaluations=300), subject=subject, threads=1)
    page = unlinked(render_html(data))
    assert data.measured.flip_rate is None
    assert "decision flips" not in page
    assert "Rows with more than one class" in page
    jsonschema.validate(summary_of(data), json_schema())


def test_a_protected_number_is_read_by_its_ranges(tmp_path: Path) -> None:
    age = Attribute(name="age", kind="integer", low=18, high=90, protected=True, ranges=(("young", 25), ("old", 70)))
    schema = ordinary_schema()
    ranged = build_subject(replace(schema, attributes=(age, *schema.attributes[1:])), "ranged")
    data = compute_report(search(ranged, tmp_path / "run", evaluations=500), subject=ranged, threads=1)
    assert data.axes.values == (("young", "old", "own age"), ("Female", "Male"))
    person = next(one for one in data.people if one.real)
    grid = grid_of(person, data.axes)
    assert grid is not None
    assert grid.row is not None
    # Whoever has an age that stands for no range has a column of their own, and the ring is in it.
    codes = ranged.schema.codes_of({**person.attributes, **person.own})
    place = [25, 70].index(codes[0]) if codes[0] in (25, 70) else 2
    words = dict([grid.row, grid.column])
    assert words["age"] == (("young", "old", "own age") if place == 2 else ("young", "old"))
    own = np.argwhere(grid.own)
    assert len(own) == 1
    score = ranged.model.scores(ranged.encoding.encode(codes[None]))[0]
    assert grid.scores[tuple(own[0])] == pytest.approx(float(score), abs=1e-5)
    assert data.about.sizes == (2, 2)
    assert [stake.value for stake in data.searched.stakes] == ["young", "old", "Female", "Male"]
    assert "young" in render_html(data)


def test_terms_of_art_lead_to_the_glossary(page: str) -> None:
    """Every link has its entry, the entries are those of the documentation, and labels from outside are no links."""
    linked = set(re.findall(r'<a class="term" href="#([\w-]+)">', page))
    assert linked == set(re.findall(r'<div id="(term-[\w-]+)"><dt>', page))
    assert {"term-k", "term-twins", "term-bits", "term-epsilon", "term-flip"} <= linked
    for part in re.findall(r"<section.*?</section>", page, re.DOTALL):
        within = re.findall(r'<a class="term" href="#([\w-]+)">', part)
        assert len(within) == len(set(within))
    stated = DOCS.joinpath("glossary.md").read_text(encoding="utf-8")
    assert re.findall(r"{include} (\S+)", stated) == ["../src/fairbits/report/templates/glossary.md"]
    assert link_terms("<bdi>k twins</bdi> <code>k</code> runs") == ("<bdi>k twins</bdi> <code>k</code> runs", set())


def test_the_page_says_whose_the_model_is(audited: Run, subject: Subject) -> None:
    said = replace(subject, about={"purpose": "credit", "owner": "<b>risk</b>", "version": "7"})
    data = compute_report(audited, subject=said, threads=1)
    drawn = render_words(data)
    for name, value in (("purpose", "credit"), ("owner", "&lt;b&gt;risk&lt;/b&gt;"), ("version", "7")):
        assert f"<dt><bdi>{name}</bdi></dt><dd><bdi>{value}</bdi></dd>" in drawn
    assert summary_of(data)["report"]["about"]["version"] == "7"
