"""Figures of the page from plain values: what is near, who is lowest, whose moves ended, which file was changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbits import Attribute, Schema, Twins
from fairbits.report.compute import near_of, stakes_of
from fairbits.report.manifest import verify, write_manifest
from fairbits.report.sections.details import seeds_in_words


@pytest.mark.parametrize("rows_exact", [True, False])
def test_the_largest_k_by_distance(rows_exact: bool) -> None:
    """A row is near itself: what it shows holds for everybody further off, as a lower bound."""
    summary = {"k_max_on_data": 2, "k_max_within_1": 3, "k_max_within_2": 5, "k_max": 8, "exact": ["k_max_within_1"]}
    found = near_of(summary, rows_k_max=4, rows_exact=rows_exact, limit=8)
    assert [one.k for one in found] == [4, 4, 5, 4, 8]
    assert [one.exact for one in found] == [rows_exact, True, False, False, True]  # the last is all there can be
    assert found[0].bits == 2.0
    assert [one.exact for one in near_of({}, rows_k_max=1, rows_exact=False, blind=True)] == [True] * 5


def test_who_is_lowest_and_who_is_highest() -> None:
    sex = Attribute(name="sex", kind="category", labels=("F", "M"), protected=True)
    old = Attribute(name="old", kind="category", labels=("no", "yes"), protected=True)
    twins = Twins(Schema((sex, old), target="t", classes=("0", "1")))
    lowest = {twin: 1.0 for twin in range(4) if twins.patterns[twin].tolist() == [0, 1]}
    highest = {twin: 0.5 for twin in range(4) if twins.patterns[twin, 0] == 1}
    found = {(one.attribute, one.value): (one.lowest, one.highest) for one in stakes_of(twins, lowest, highest)}
    assert found == {
        ("sex", "F"): (1.0, 0.0),
        ("sex", "M"): (0.0, 1.0),
        ("old", "no"): (0.0, 0.5),
        ("old", "yes"): (1.0, 0.5),
    }


def test_whom_the_figures_of_seeds_are_about() -> None:
    assert seeds_in_words({"seeds": 20, "seeds_finished": 0}) == seeds_in_words({"seeds": 20}) == "seeds"
    assert seeds_in_words({"seeds": 2000, "seeds_finished": 1500}) == "1,500 seeds that had their full share of moves"


def test_every_way_to_change_a_folder(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("1234")
    write_manifest(tmp_path, about={})
    assert verify(tmp_path).good
    (tmp_path / "a.json").write_text("1235")  # as long as it was
    (tmp_path / "b.json").unlink()
    (tmp_path / "c.json").write_text("1")
    found = verify(tmp_path)
    assert (found.changed, found.missing, found.added, found.good) == (("a.json",), ("b.json",), ("c.json",), False)
