"""The page of a comparison: figures, pictures with words, and the same manners in a browser as the report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbits.options import CompareOptions
from fairbits.paper import compare
from fairbits.report import contest_page, render_page, write_contest
from fairbits.search import Budget

from ..browsing import launched
from ..search.planted import planted_subject
from .conftest import HOSTILE
from .test_browser import opened

NAMES = ["dice", "random", "themis"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found = compare(planted_subject(), CompareOptions(budget=Budget(evaluations=3_000), repeats=2), NAMES).as_dict()
    return {**found, "subject": HOSTILE[0], "left_out": {"adf": "gradients"}}


@pytest.fixture(scope="module")
def address(document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("pages") / "compare.html"
    write_contest(document, path, command="fairbits compare small")
    return path.as_uri()


def test_everything_is_on_the_page(document: dict[str, Any]) -> None:
    page = render_page(contest_page(document, command="fairbits compare small"))
    assert HOSTILE[0] not in page
    assert page.count("<svg") == page.count("<desc") == 3
    for heading in (
        "local success",
        "1,000th, s",
        "mean Q∞",
        "mean Q1",
        "leaves covered",
        "L1 to a real row",
        "A12",
    ):
        assert heading in page
    assert "adf was left out: it needs gradients" in page
    # Nine of the planted people are ID cases, and drawing finds all of them in both runs.
    assert '<th scope="row"><bdi>random</bdi></th><td class="n">9 ± 0</td>' in page
    assert "random 9" in re.findall(r"<desc[^>]*>(At the end[^<]*)", page)[0]


def test_one_run_shows_no_deviation_and_no_test(document: dict[str, Any]) -> None:
    rows = [{**row, "runs": row["runs"][:1], "against_dice": None} for row in document["strategies"]]
    rows = [{k: {**v, "deviation": None} if isinstance(v, dict) else v for k, v in row.items()} for row in rows]
    once = {**document, "contest": {**document["contest"], "repeats": 1}, "strategies": rows}
    page = render_page(contest_page(once))
    assert "One run each" in page
    assert "±" not in page
    assert page.count("<svg") == 3


def test_the_legend_names_the_yardstick_only_where_it_ran(document: dict[str, Any]) -> None:
    assert "</i>dice</span>" in render_page(contest_page(document))
    others = [{**row, "against_dice": None} for row in document["strategies"] if row["strategy"] != "dice"]
    page = render_page(contest_page({**document, "strategies": others}))
    assert "</i>this strategy</span>" in page
    assert "</i>dice</span>" not in page


def test_nobody_found_is_said(document: dict[str, Any]) -> None:
    nothing = {"mean": 0.0, "deviation": 0.0}
    rows = [{**row, "id_cases": nothing} for row in document["strategies"]]
    page = render_page(contest_page({**document, "strategies": rows}))
    assert "none found" in page
    assert "<svg" not in page


def test_the_page_in_a_browser(browser: Any, address: str) -> None:
    page, complaints = opened(browser, address, color_scheme="dark", java_script_enabled=False)
    assert page.locator("figure svg").count() == 3
    assert page.locator("figure svg").first.is_visible()
    assert not page.locator("#look").is_visible()
    assert complaints == []
    ground = "getComputedStyle(document.body).backgroundColor"
    phone, complaints = opened(browser, address, color_scheme="dark", viewport={"width": 320, "height": 800})
    assert phone.evaluate(ground) == "rgb(18, 22, 29)"
    assert phone.evaluate("document.documentElement.scrollWidth") <= 320
    phone.locator("#look").click()
    assert phone.evaluate(ground) == "rgb(255, 255, 255)"
    assert complaints == []
