"""Figures of commands are those of the commit before the packages were moved; what changed on purpose is left out."""

from __future__ import annotations

import json

import pytest

from tests.cli.calling import fairbits
from tools.golden import KEPT, commands, differences, figures

FIGURES = json.loads(KEPT.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", commands())
def test_a_command_gives_the_same_figures(name: str, tmp_path) -> None:
    words = commands()[name]
    out = ["--out", tmp_path / "run"] if words[0] == "search" else []
    done = fairbits(*words, *out, "--json")
    assert done.returncode == 0, done.stderr
    assert differences(FIGURES[name], figures(json.loads(done.stdout))) == []


def test_a_difference_is_seen() -> None:
    kept = {"k_max": 7, "k_mean": 2.5, "top[0].k": 3}
    assert differences(kept, {**kept, "k_mean": 2.5 + 1e-9, "more": 1}) == []
    assert differences(kept, {"k_max": 8, "k_mean": 2.5, "top[0].k": 3}) == ["k_max: 7 → 8"]
    assert differences(kept, {"k_max": 7, "k_mean": 2.5}) == ["top[0].k: 3 → None"]
