"""The report in a real browser: nothing is fetched or fails, a case opens, dark works, a phone scrolls one way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairbits import Subject
from fairbits.report import compute_report, write_report
from fairbits.store import Run

from ..browsing import launched


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


@pytest.fixture(scope="module", params=["audited", "hostile"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    run: Run = request.getfixturevalue(request.param)
    subject: Subject = request.getfixturevalue("subject" if request.param == "audited" else "hostile_subject")
    folder = tmp_path_factory.mktemp("pages") / request.param
    page: Path = write_report(compute_report(run, subject=subject, threads=1), folder)
    return page.as_uri()


def opened(browser: Any, address: str, **how: Any) -> tuple[Any, list[str]]:
    """The page, and everything that it complained about or asked for."""
    page = browser.new_context(**how).new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: request.url != address and complaints.append(request.url))
    page.goto(address)
    return page, complaints


def test_opens_without_complaint_and_expands(browser: Any, address: str) -> None:
    page, complaints = opened(browser, address)
    assert page.locator("section").count() == 10
    second = page.locator("details.person").nth(1)
    assert not second.locator("dl.facts").is_visible()
    second.locator("summary").focus()
    page.keyboard.press("Enter")
    assert second.locator("dl.facts").is_visible()
    assert second.locator("svg").first.is_visible()
    page.locator("#inside > summary").click()
    neuron = page.locator("svg .part").first
    neuron.focus()
    assert page.locator("output").text_content() == neuron.get_attribute("aria-label")
    assert complaints == []


def test_dark_by_system_and_by_hand(browser: Any, address: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page, complaints = opened(browser, address, color_scheme="light")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) == "rgb(18, 22, 29)"
    page.locator("#look").click()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert complaints == []


def test_a_phone_does_not_scroll_sideways(browser: Any, address: str) -> None:
    page, complaints = opened(browser, address, viewport={"width": 390, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []


def test_readable_without_scripts(browser: Any, address: str) -> None:
    page, complaints = opened(browser, address, java_script_enabled=False)
    assert page.locator("h1").is_visible()
    assert not page.locator("#look").is_visible()
    page.locator("details.person summary").nth(1).click()
    assert page.locator("details.person").nth(1).locator("dl.facts").is_visible()
    assert complaints == []
