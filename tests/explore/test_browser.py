"""The explorer in a real browser: k answers when an attribute changes and when a neuron is switched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairbits.explore import Explorer, build_app, listen
from fairbits.explore.app import asked_of, hosts_of, server_of

from ..audit.test_tasks import task
from ..browsing import launched
from .conftest import explorer_of


@contextmanager
def served(explorer: Explorer) -> Iterator[str]:
    with listen() as listening:
        hosts = hosts_of(listening)
        server = server_of(build_app(explorer, token="secret", hosts=hosts))  # noqa: S106
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://{hosts[0]}/?token=secret"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as made:
        yield made


def opened(browser: Any, address: str, **how: Any) -> tuple[Any, list[str]]:
    page = browser.new_context(**how).new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    page.locator("#k").filter(has_not_text="…").wait_for()
    return page, complaints


def telling(explorer: Explorer) -> tuple[float, dict[str, Any]]:
    """A value of the first person's hours, and a hold, that change k."""
    codes = explorer.everybody()[0]["codes"]

    def k(**question: Any) -> int:
        return int(explorer.answer(asked_of({"codes": codes, **question}, explorer.schema))["k"])

    hours = next(hours for hours in range(10) if k(codes=[codes[0], hours]) != k())
    holds = [{"layer": 1, "neuron": neuron, "at": "zero"} for neuron in range(12)]
    return hours, next(hold for hold in holds if k(hold=[hold]) != k())


def test_k_answers(browser: Any, explorer: Explorer) -> None:
    hours, hold = telling(explorer)
    with served(explorer) as address:
        page, complaints = opened(browser, address)
        k = page.locator("#k")
        found = k.text_content()
        quality = page.locator("#quality").text_content() or ""
        assert "Favourable when" in quality
        assert "accuracy" in quality
        page.get_by_label("hours", exact=True).first.fill(str(hours))
        k.filter(has_not_text=found).wait_for()
        page.locator("#as-found").click()
        k.filter(has_text=found).wait_for()
        page.get_by_role("button", name="layer 1").first.click()
        page.locator("#dots button").nth(hold["neuron"]).focus()
        page.keyboard.press("Enter")
        page.locator("#effect").filter(has_text="→").wait_for()
        assert k.text_content() != found
        page.locator("#reset").click()
        k.filter(has_text=found).wait_for()
        page.get_by_label("hours", exact=True).first.fill("77")
        assert "takes 0 to 9" in (page.locator("#fault:visible").text_content() or "")
        assert page.locator("table.map td[data-twin]").count() == 6
        assert [one for one in complaints if "422" not in one] == []


@pytest.mark.parametrize("width", [320, 1200])
def test_hostile_labels_are_text(browser: Any, hostile_explorer: Explorer, width: int) -> None:
    with served(hostile_explorer) as address:
        page, complaints = opened(browser, address, viewport={"width": width, "height": 800}, color_scheme="dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
        assert complaints == []


def test_whole_vectors_have_no_numbers_and_say_so(browser: Any, tmp_path: Path) -> None:
    explorer = explorer_of(task("vector", rules=()), tmp_path / "run")
    asked = [asked_of({"codes": person["codes"]}, explorer.schema) for person in explorer.everybody()]
    place = next(i for i, one in enumerate(asked) if not explorer.answer(one)["classes"])
    with served(explorer) as address:
        page, complaints = opened(browser, address)
        page.locator("#case").select_option(str(place))
        words = page.locator("#map-words").filter(has_text="the probability of mid; classes and decisions")
        words.filter(has_not_text="the number is").wait_for()
        assert page.locator("#stairs svg text").first.text_content() == "0.00"
        assert complaints == []


def test_a_regression_names_its_cost(browser: Any, tmp_path: Path) -> None:
    with served(explorer_of(task("regression", rules=()), tmp_path / "run")) as address:
        page, complaints = opened(browser, address)
        page.locator("#dots button").first.click()
        page.locator("#effect").filter(has_text="Variance explained on 300 rows: 100.0 %").wait_for()
        assert complaints == []
