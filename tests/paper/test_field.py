"""The default beside every other strategy: who is called ahead, tied and behind, and what is said about it."""

from __future__ import annotations

import csv

import pytest

from fairbits.errors import OptionError
from fairbits.paper.research import ExperimentPlan, field_findings, field_row, pairwise
from fairbits.paper.subjects import roster
from fairbits.search import Budget


def runs(*rates: float, k: int = 2) -> list[dict[str, float]]:
    return [{"id_per_second": rate, "k_max": k} for rate in rates]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([10.0, 12.0, 11.0, 13.0], [5.0, 6.0, 7.0, 8.0], "ahead"),
        ([10.0, 12.0, 11.0, 13.0], [12.0, 10.5, 9.0, 14.0], "tied"),
        ([10.0, 10.1, 10.2, 10.3], [12.0, 12.1, 12.2, 12.3], "behind"),
        ([10.0, 12.0], [5.0, 6.0], "tied"),  # two runs each: p is a third at best
        ([10.0], [1.0], "one run"),
        ([0.0, 0.0], [0.0, 0.0], "none found"),
    ],
)
def test_the_test_decides_who_is_ahead(ours: list[float], theirs: list[float], verdict: str) -> None:
    assert pairwise({"climb": ours, "adf": theirs}).verdict == verdict


def test_a_rival_of_many_must_be_told_apart_after_correction() -> None:
    """4 against 4 runs give p = 0.029: enough for one rival, not for two."""
    ours, theirs = [10.0, 11.0, 12.0, 13.0], [1.0, 2.0, 3.0, 4.0]
    assert pairwise({"climb": ours, "adf": theirs}).verdict == "ahead"
    assert pairwise({"climb": ours, "adf": theirs, "sg": theirs}).verdict == "tied"


def test_the_best_rival_is_the_one_with_the_largest_mean() -> None:
    found = pairwise({"climb": [5.0], "adf": [1.0], "dice": [2.0], "sg": [0.0]})
    assert (found.rival, found.ours, found.theirs) == ("dice", [5.0], [2.0])


GROUPS = {
    ("a", "sex"): {"climb": runs(*range(10, 15)), "adf": runs(*range(1, 6)), "sg": runs(*[0.0] * 5)},
    ("a", "age"): {"climb": runs(*range(10, 15), k=3), "adf": runs(*range(15, 20), k=4), "sg": runs(*[0.0] * 5)},
    ("b", "sex"): {"climb": runs(*range(10, 15)), "adf": runs(*range(20, 25)), "sg": runs(*[0.0] * 5)},
}


def test_a_row_names_the_rival_and_the_largest_k() -> None:
    row = field_row("a: age", GROUPS["a", "age"])
    assert row[:2] == ["a: age", 12.0]
    assert row[3:5] == ["adf", 17.0]
    assert row[6:] == ["behind", 3, 4]


def test_findings_count_cells() -> None:
    says = field_findings(GROUPS)
    assert says[0] == "ID cases per second, cell by cell: climb is ahead in 1 and behind in 2 of 3 cells."
    assert says[1] == "Behind on a by age (adf 1.42 ×) and b by sex (adf 1.83 ×)."
    assert "sg" not in says[2]  # never found anything: no mean of logarithms
    assert says[3] == "The largest k that anybody found, climb found too in 2 of 3 cells."


def test_many_cells_of_few_runs_still_compare_the_two_over_all_of_them() -> None:
    cells = {
        (name, "sex"): {"climb": runs(10.0, 11.0), "adf": runs(3.0, 4.0), "sg": runs(10.0 + sign, 11.0 - sign)}
        for name, sign in zip("abcdefgh", (1, -2, 3, -4, 5, -6, 7, -8), strict=True)
    }
    says = field_findings(cells)
    assert says[0].endswith("climb is tied in 8 of 8 cells.")
    assert says[1] == "With 2 runs a cell no test can tell so many strategies apart: that takes 5 at least."
    assert says[2].endswith("climb finds more than adf.")


def test_every_run_of_the_field_is_kept_and_shared_with_rq2(tmp_path) -> None:
    terms = {"budget": Budget(evaluations=2_000), "threads": 1}
    field = ExperimentPlan(
        "field", roster(["heart"]), tmp_path, strategies=["climb", "random", "themis"], **terms
    ).run()
    assert [row[0] for row in field.rows] == ["heart: age", "heart: sex"]
    with (tmp_path / "field-all.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["protected"], row["strategy"]) for row in rows} == {
        (protected, who) for protected in ("age", "sex") for who in ("climb", "random", "themis")
    }
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    again = ExperimentPlan("rq2", roster(["heart"]), tmp_path, strategies=["climb", "random"], **terms).run()
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()} == made
    assert [row[1] for row in again.rows] == ["climb", "random"] * 2


@pytest.mark.parametrize("strategies", [["climb"], ["dice", "adf"]])
def test_a_field_needs_the_default_and_a_rival(tmp_path, strategies: list[str]) -> None:
    with pytest.raises(OptionError, match="the field is 'climb' and its rivals"):
        ExperimentPlan("field", roster(["heart"]), tmp_path, budget=Budget(evaluations=10), strategies=strategies)
