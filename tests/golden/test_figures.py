"""Figures of commands are those of the commit before the packages were moved; what changed on purpose is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.calling import fairbits
from tools.golden.commands import commands, needed
from tools.golden.comparison import CHANGES, KEPT, compared
from tools.golden.figures import figures, made

FIGURES = json.loads(KEPT.read_text(encoding="utf-8"))
QUICK = {name: command for name, command in commands().items() if command.quick}
#: Commands that work on files of others, one after the other; those that are left need nothing.
CHAIN = {name: command for name, command in QUICK.items() if "heart files" in name or name == "export heart"}


def call(words: list[str]) -> str:
    done = fairbits(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", [name for name in QUICK if name not in CHAIN])
def test_a_command_gives_the_same_figures(name: str, tmp_path: Path) -> None:
    found = made(call, {name: QUICK[name]}, tmp_path)[name]
    assert compared(name, FIGURES[name], found).faults == []


@pytest.mark.usefixtures("learners_as_users_have_them")
def test_commands_about_a_run_give_the_same_figures(tmp_path: Path) -> None:
    found = made(call, CHAIN, tmp_path)
    assert {name: compared(name, FIGURES[name], found[name]).faults for name in CHAIN} == {name: [] for name in CHAIN}


def test_a_command_comes_after_what_it_needs() -> None:
    """`--only` takes what others left in the folder of a run: a repaired model is there once it was repaired."""
    assert list(needed("measure repaired heart files")) == [
        *("export heart", "search heart files"),
        *(f"{stage} heart files" for stage in ("cases", "debug", "repair", "report", "measure repaired")),
    ]
    assert list(needed("compare")) == ["compare heart"]


def test_a_difference_is_seen() -> None:
    kept = {"k_max": 7, "k_mean": 2.5, "top[0].k": 3}
    assert compared("search", kept, {**kept, "k_mean": 2.5 + 1e-9, "more": 1}).faults == []
    assert compared("search", kept, {**kept, "k_max": 8}).faults == ["k_max: 7 → 8"]
    assert compared("search", kept, {"k_max": 7, "k_mean": 2.5}).faults == ["top[0].k: 3 → nothing"]
    changed = compared("measure heart", {"k_mean_low": 1.0, "k_mean": 2.0}, {"k_mean_low": 1.1, "k_mean": 2.0})
    assert (changed.equal, sum(changed.changed.values()), changed.faults) == (1, 1, [])


def test_records_are_told_apart_by_what_they_are_about() -> None:
    layers = [{"layer": 2, "delta": 0.5}, {"layer": 1, "delta": 0.25}]
    assert figures({"layers": layers}) == {
        "layers[2].layer": 2,
        "layers[2].delta": 0.5,
        "layers[1].layer": 1,
        "layers[1].delta": 0.25,
    }


def test_every_change_names_figures_that_are_kept() -> None:
    kept = [f"{name}: {path}" for name, found in FIGURES.items() for path in found]
    for one in CHANGES:
        for pattern in one["figures"]:
            assert any(re.fullmatch(pattern, figure) for figure in kept), f"no figure is like {pattern}"
