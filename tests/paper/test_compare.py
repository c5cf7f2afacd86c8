"""Comparisons: figures, significance, folders that are gone on from, and subjects where there is nothing to find."""

from __future__ import annotations

import csv
import functools
import json
from dataclasses import replace

import numpy as np
import pytest

from fairbits import Network
from fairbits.errors import CapabilityError, OptionError
from fairbits.options import CompareOptions
from fairbits.paper import compare, significance
from fairbits.paper.arena import Entry, StrategyComparison
from fairbits.paper.cells import Cells
from fairbits.paper.significance import against, against_one, deviation, holm, mean, runs_needed, standing
from fairbits.search import STRATEGIES, Budget

from ..search.planted import planted_subject

SHORT = CompareOptions(budget=Budget(evaluations=3_000), repeats=2)


def test_every_strategy_has_every_figure(tmp_path) -> None:
    found = compare(planted_subject(), replace(SHORT, repeats=1), folder=tmp_path)
    assert [entry.strategy for entry in found.entries] == list(STRATEGIES)
    for entry in found.entries:
        assert entry.verdict is None
        assert entry.deviation("id_cases") is None
        run = entry.runs[0]
        assert entry.mean("id_per_second") == pytest.approx(run["id_cases"] / run["seconds"])
        assert 0 <= entry.mean("leaves_covered") <= entry.runs[0]["leaves"]
    drawn = next(entry for entry in found.entries if entry.strategy == "random")
    assert drawn.mean("id_cases") == 9  # everybody with a + b of 17 or 18
    assert 0 < drawn.mean("diversity") < 1
    assert 0 < drawn.mean("changed") <= 3
    json.dumps(found.as_dict())
    with (tmp_path / "compare.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["strategy"] for row in rows] == list(STRATEGIES)
    assert rows[0]["id_cases_deviation"] == ""


def test_finished_runs_are_not_run_again(tmp_path) -> None:
    names = ["dice", "random"]
    steps: list[str] = []
    first = compare(planted_subject(), SHORT, names, folder=tmp_path, progress=lambda *step: steps.append(step[2]))
    assert len(steps) == 4
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "cells").iterdir()}
    assert len(stamps) == 4
    second = compare(planted_subject(), SHORT, names, folder=tmp_path)
    assert second.as_dict() == first.as_dict()
    compare(planted_subject(), replace(SHORT, epsilon=0.05), names, folder=tmp_path)
    assert all(path.stat().st_mtime_ns > stamp for path, stamp in stamps.items())


def test_a_half_written_cell_is_made_again(tmp_path) -> None:
    cells = Cells(tmp_path)
    cells.keep("one", {"a": 1}, {"x": 2})
    assert cells.ready("one", {"a": 1}) == {"x": 2}
    assert cells.ready("one", {"a": 2}) is None
    (tmp_path / "one.json").write_text('{"settings": {"a"')
    assert cells.ready("one", {"a": 1}) is None
    cells.keep("one", {"a": 1}, {"x": 3})
    assert cells.ready("one", {"a": 1}) == {"x": 3}


def test_nothing_to_find_is_a_row_of_zeros(tmp_path) -> None:
    subject = planted_subject()
    constant = Network.build([np.zeros((5, 2))], [np.array([1.0, -1.0])])
    found = compare(replace(subject, model=constant), replace(SHORT, repeats=1))
    for entry in found.entries:
        assert entry.mean("id_cases") == 0
        assert entry.mean("id_per_second") == entry.mean("id_per_million_queries") == 0
        assert entry.mean("diversity") is None
        assert entry.mean("seconds_to_first_id") is None


def test_a_budget_too_small_for_one_step_is_said() -> None:
    found = compare(planted_subject(), CompareOptions(budget=Budget(seconds=1e-9), repeats=1), ["random", "climb"])
    assert found.idle == ["random", "climb"]
    assert [entry.mean("id_cases") for entry in found.entries] == [0, 0]
    assert compare(planted_subject(), replace(SHORT, repeats=1), ["random"]).idle == []


def test_what_a_model_cannot_serve_is_left_out_or_refused() -> None:
    subject = planted_subject()

    class Box:
        inputs = 5

        def scores(self, inputs):
            return subject.model.scores(inputs)

    boxed = replace(subject, model=Box())
    contest = CompareOptions(budget=Budget(evaluations=300), repeats=1)
    found = compare(boxed, contest)
    assert found.left_out == dict.fromkeys(("dice", "adf", "eidig", "neuronfair"), "gradients")
    with pytest.raises(CapabilityError, match=r"'adf' needs gradients.*use some of: climb, random, aequitas"):
        compare(boxed, contest, ["random", "adf"])
    with pytest.raises(OptionError, match=r"'dise' is not known.*Did you mean 'dice'"):
        compare(subject, contest, ["dise"])
    with pytest.raises(OptionError, match="repeats is 0"):
        CompareOptions(budget=Budget(evaluations=300), repeats=0)


def test_holm_agrees_with_statsmodels_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_equals_are_hardly_ever_told_apart(monkeypatch) -> None:
    """Twelve strategies that are all the same: Holm keeps any claim against dice, and any crown, below 5 %."""
    known = functools.cache(against)  # ten others have the same runs below
    monkeypatch.setattr(significance, "against", lambda ours, theirs: known(tuple(ours), tuple(theirs)))
    claims = crowns = twins_crowned = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        runs = {str(i): rng.normal(100, 10, 10).tolist() for i in range(12)}
        claims += any(verdict.p_holm < significance.LEVEL for verdict in against_one(runs, "0").values())
        crowns += standing(runs).winner is not None
        two = {**{name: [1.0 + i for i in range(10)] for name in runs}, "0": runs["0"], "1": runs["1"]}
        twins_crowned += standing(two).winner is not None
    assert claims <= 12  # 6 expected at most; 12 is two and a half deviations above
    assert crowns == 0
    assert 1 <= twins_crowned <= 12  # two equals far above ten others: one test at 5 % decides


def comparison(**runs: list[int]) -> StrategyComparison:
    entries = [Entry(name, [{"id_cases": ids, "evaluations": 1} for ids in mine]) for name, mine in runs.items()]
    return StrategyComparison("small", replace(SHORT, repeats=len(next(iter(runs.values())))), entries)


def test_nobody_is_crowned_whom_the_test_does_not_tell_apart() -> None:
    clear = comparison(climb=[9, 10, 11, 12, 13], dice=[1, 2, 3, 4, 5])
    assert clear.standing.winner == "climb"
    assert (
        clear.sentence
        == "climb found 11 ID cases on average, more than any other strategy (told apart from all of them)."
    )
    close = comparison(climb=[9, 10, 11, 12, 13], dice=[1, 2, 3, 4, 5], adf=[9, 10, 11, 12, 12])
    assert close.standing.winner is None
    assert close.standing.tied == ("adf",)
    assert close.sentence.endswith("the most, but is not told apart from adf.")
    few = comparison(climb=[9, 10], dice=[1, 2])
    assert few.sentence.endswith("not told apart from dice; telling 2 strategies apart takes at least 4 runs each.")
    once = comparison(climb=[9], dice=[1])
    assert once.standing.winner is None
    assert once.sentence.endswith("the most in one run each: another run may change the order.")
    assert comparison(climb=[0, 0], dice=[0, 0]).sentence == "No strategy found an ID case."
    assert [runs_needed(n) for n in (1, 2, 11)] == [4, 5, 6]


def test_significance() -> None:
    better = against([10, 11, 12, 13, 14], [1, 2, 3, 4, 5])
    assert better is not None
    assert (better.a12, better.p < 0.01) == (1.0, True)
    same = against([0, 0], [0, 0])
    assert same is not None
    assert (same.p, same.a12) == (1.0, 0.5)
    assert against([1], [2, 3]) is None
    assert mean([None, 1.0, 3.0]) == 2.0
    assert mean([None]) is None
    assert deviation([1.0]) is None
    assert deviation([1.0, 3.0]) == pytest.approx(np.sqrt(2))
