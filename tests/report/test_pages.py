"""What all pages share is written once, and holds for each of them: the report, a comparison, a fleet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from fairbits import Subject
from fairbits.audit.fleet import Fleet, FleetMember, fleet_page
from fairbits.options import CompareOptions
from fairbits.paper import compare
from fairbits.report import compute_report, contest_page, render_page
from fairbits.search import Budget
from fairbits.store import Run
from tests.report.drawn import render_html

from ..browsing import launched
from ..search.planted import planted_subject
from .conftest import HOSTILE, unlinked
from .test_browser import opened

PAGES = ["report", "compare", "fleet"]


@pytest.fixture(scope="module")
def pages(audited: Run, subject: Subject) -> dict[str, str]:
    contest = compare(
        planted_subject(), CompareOptions(budget=Budget(evaluations=500), repeats=2), ["random", "themis"]
    )
    whole = FleetMember("credit", "credit.toml", "credit/report.html", bits=2.5, bits_limit=2.6, k_max=6, flip_rate=0.1)
    broken = FleetMember(HOSTILE[1], "b.toml", error=HOSTILE[0])
    fleet = Fleet(HOSTILE[7], "about 60 s each", "2026-01-01T00:00:00", (whole, broken))
    return {
        "report": render_html(compute_report(audited, subject=subject, threads=1)),
        "compare": render_page(contest_page(contest.as_dict(), command="fairbits compare planted")),
        "fleet": render_page(fleet_page(fleet)),
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


def test_the_frame_of_a_page_is_written_once() -> None:
    templates = Path(str(resources.files("fairbits.report"))) / "templates"
    framed = {file.name for file in templates.glob("*.html") if re.search("<(!DOCTYPE|head|script)", file.read_text())}
    assert framed == {"page.html"}


def test_pages_have_the_same_frame(pages: dict[str, str]) -> None:
    """All but the title is the same up to the page's own styles, and from the end of its content on."""
    heads = {
        re.sub("<title>.*</title>", "", page).partition("</style>")[0].partition(".bar {")[0] for page in pages.values()
    }
    assert len({head.strip() for head in heads}) == 1
    assert len({page.partition("<script>")[2] for page in pages.values()}) == 1
    assert all(page.startswith("<!DOCTYPE html>\n") and page.endswith("</html>") for page in pages.values())


@pytest.mark.parametrize("name", PAGES)
def test_pages_in_a_browser(browser: Any, pages: dict[str, str], name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.html"
    path.write_text(pages[name], encoding="utf-8")
    phone, complaints = opened(browser, path.as_uri(), color_scheme="dark", viewport={"width": 320, "height": 800})
    assert phone.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    assert phone.evaluate("document.documentElement.scrollWidth") <= 320
    phone.locator("#look").click()
    assert phone.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    # What a table is about can be read without scrolling it.
    widths = phone.evaluate("[...document.querySelectorAll('caption')].map(one => one.offsetWidth)")
    assert all(width <= 288 for width in widths)
    assert complaints == []


def test_colours_are_explained_only_where_they_are_used(audited: Run, subject: Subject) -> None:
    data = compute_report(audited, subject=subject, threads=1)
    for flips in (0, 3):
        figures = {**data.searched.figures, "id_cases": flips}
        page = unlinked(render_html(replace(data, searched=replace(data.searched, figures=figures))))
        assert ("decision flips between twins" in page) == (flips > 0)
