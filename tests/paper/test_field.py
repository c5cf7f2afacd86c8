"""The default beside every other strategy: who is called ahead, tied and behind, and what is said about it."""

from __future__ import annotations

import csv

import pytest

from fairbits.errors import OptionError
from fairbits.paper.field import Duel, duel, field_findings, field_row
from fairbits.paper.research import Plan
from fairbits.paper.subjects import roster


def runs(*rates: float, k: int = 2) -> list[dict[str, float]]:
    return [{"id_per_second": rate, "k_max": k} for rate in rates]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([10.0, 12.0], [5.0, 6.0], "ahead"),
        ([10.0, 12.0], [12.0, 10.5], "tied"),
        ([10.0, 10.1], [12.0, 12.1], "behind"),
        ([10.0], [9.9], "ahead"),  # one run: no spread, no tie
        ([0.0, 0.0], [0.0, 0.0], "none found"),
    ],
)
def test_a_tie_is_a_difference_within_the_spread(ours: list[float], theirs: list[float], verdict: str) -> None:
    assert Duel(ours, "adf", theirs).verdict == verdict


def test_the_best_rival_is_the_one_with_the_largest_mean() -> None:
    found = duel({"climb": [5.0], "adf": [1.0], "dice": [2.0], "sg": [0.0]})
    assert (found.rival, found.ours, found.theirs) == ("dice", [5.0], [2.0])


GROUPS = {
    ("a", "sex"): {"climb": runs(10.0, 11.0), "adf": runs(1.0, 2.0), "sg": runs(0.0, 0.0)},
    ("a", "age"): {"climb": runs(10.0, 11.0, k=3), "adf": runs(14.0, 15.0, k=4), "sg": runs(0.0, 0.0)},
    ("b", "sex"): {"climb": runs(10.0, 11.0), "adf": runs(20.0, 21.0), "sg": runs(0.0, 0.0)},
}


def test_a_row_names_the_rival_and_the_largest_k() -> None:
    row = field_row("a: age", GROUPS["a", "age"])
    assert row[:2] == ["a: age", 10.5]
    assert row[3:5] == ["adf", 14.5]
    assert row[6:] == ["behind", 3, 4]


def test_findings_count_cells_and_subjects() -> None:
    says = field_findings(GROUPS)
    assert says[0] == "ID cases per second, cell by cell: climb is ahead in 1 and behind in 2 of 3 cells."
    # Subject a: 10.5 against a mean of 8 over its two attributes.
    assert says[1].endswith("climb is ahead in 1 and behind in 1 of 2 subjects.")
    assert says[2] == "Behind on b (adf 1.95 ×)."
    assert "sg" not in says[3]  # never found anything: no mean of logarithms
    assert says[4] == "The largest k that anybody found, climb found too in 2 of 3 cells."


def test_every_run_of_the_field_is_kept_and_shared_with_rq2(tmp_path) -> None:
    terms = {"seconds": 0.1, "threads": 1}
    field = Plan.of("field", roster(["heart"]), tmp_path, strategies=["climb", "random", "themis"], **terms).run()
    assert [row[0] for row in field.rows] == ["heart: age", "heart: sex"]
    with (tmp_path / "field-all.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["protected"], row["strategy"]) for row in rows} == {
        (protected, who) for protected in ("age", "sex") for who in ("climb", "random", "themis")
    }
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    again = Plan.of("rq2", roster(["heart"]), tmp_path, strategies=["climb", "random"], **terms).run()
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == made
    assert [row[1] for row in again.rows] == ["climb", "random"] * 2


@pytest.mark.parametrize("strategies", [["climb"], ["dice", "adf"]])
def test_a_field_needs_the_default_and_a_rival(tmp_path, strategies: list[str]) -> None:
    with pytest.raises(OptionError, match="the field is 'climb' and its rivals"):
        Plan.of("field", roster(["heart"]), tmp_path, strategies=strategies)
