"""The tables of docs/paper.md: where they stand on the page, and the sentences that are made from their rows."""

from __future__ import annotations

import pytest

from benchmarks.paper import PAGE, PARTS, replaced
from benchmarks.plain_forms import PLAIN
from fairbits.errors import OptionError
from fairbits.paper.tables import Results, ablation_findings, rq1_findings, rq2_findings, rq3_findings
from fairbits.search.registry import RIVALS


def test_the_page_has_a_place_for_every_part() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in PARTS:
        assert f"\n\n{name} again\n\n<!-- end: {name} -->" in replaced(page, name, f"{name} again")
    with pytest.raises(OptionError, match="begin: rq9"):
        replaced(page, "rq9", "")


def test_every_rival_has_a_plain_form() -> None:
    assert {kind.name for kind in RIVALS} | {"dice"} == set(PLAIN)


def test_findings_of_rq1() -> None:
    rows = [
        ["a", "dice", 4, 1.0, 10, 2.0, 4, 1.0, 2.0, 1.0, 1, 1, 1],
        ["a", "climb", 4, 1.0, 10, 3.0, 4, 1.0, 2.0, 1.0, 1, 1, 1],
        ["", "paper", 4, 1.0, 10, 2.5, None, 1.0, 2.0, 1.0, 1, 1, 1],
    ]
    found = rq1_findings(rows)
    assert found[0] == "K_F / K_I, smallest to largest: dice 2; climb 3; the paper 2.50."
    assert found[1] == "Largest K_F: climb in 1 of 1 subjects."
    assert found[2] == "Largest k max: dice in 1 and climb in 1 of 1 subjects (a tie counts for both)."
    assert found[3] == "K_F above the paper's, which had an hour: dice on 0 and climb on 1 of 1 subjects."
    assert "50 % of its Q∞" in found[4]


def test_findings_of_rq2() -> None:
    rows = [
        ["a: sex", "adf", 20.0, None, 50.0, None, 0.5, None, 1.0, None],
        ["a: sex", "dice", 10.0, None, 50.0, None, 0.1, None, None, None],
        ["a: age", "adf", 0.0, None, None, None, None, None, None, None],
        ["a: age", "dice", 5.0, None, 50.0, None, 0.3, None, None, None],
    ]
    found = rq2_findings(rows)
    assert found[0] == "Most ID cases: adf in 1 and dice in 1 of 2 cells."
    assert "adf 2.00 ×" in found[1]  # a cell where nobody was found has no ratio


def test_findings_of_rq3_and_the_ablation() -> None:
    where = [["a", "dice", 3, 50.0, 1.0, 1.0, "none", "1 .50"], ["a", "paper", 3, None, 2.0, None, "none", "2 .10"]]
    what = [
        ["a", "dice", 90.0, 4.0, None, None, 88.0, 2.0, 0.5, 3, -60.0, -2.5],
        ["a", "paper", 90.0, 4.0, None, None, 88.0, 3.0, 500.0, None, None, None],
    ]
    layers, neurons = rq3_findings(where, what)
    assert layers[0].startswith("The suspect is the paper's layer on 1 of 1 subjects.")
    assert "ours: mean k falls by 50 % (1 of 1 subjects have one), in 0.50 s" in neurons[0]
    assert "the paper: mean k falls by 25 %" in neurons[1]
    assert "falls by 60 %; within two points of accuracy there too on 0 of 1" in neurons[2]
    assert rq3_findings([], []) == ([], [])


def test_networks_that_the_paper_does_not_know_are_not_held_against_it() -> None:
    nothing = [None] * 10
    where = [["mine", "dice*", None], ["mine", "dice", 1], ["mine", "paper", None]]
    what = [["mine", "dice", 90, 4.0, 89, 3.0, None, None, None, None, None, None], ["mine", "paper", *nothing]]
    layers, neurons = rq3_findings(where, what)
    assert layers == []
    assert neurons == ["The better single neuron, ours: mean k falls by 25 % (1 of 1 subjects have one)."]
    rows = [["a", who, 9, ids, 50.0, 5, k, 1.0, 1.0] for who, ids, k in (("constrained", 15, 3.0), ("binary", 10, 2.0))]
    assert ablation_findings(rows)[0] == "Quantitative feedback finds 50 % more ID cases than binary feedback."


def test_a_table_ends_with_what_it_says() -> None:
    text = Results("Title", ("a", "b"), [["x", 1.5]], ["Known."], ["Said."]).markdown()
    assert text == "### Title\n\n| a | b |\n| --- | --: |\n| x | 1.50 |\n\nKnown.\n\n- Said.\n"
