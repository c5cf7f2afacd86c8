"""The campaign of `make kills` in small: a search killed at random instants ends like one that was not."""

from __future__ import annotations

import os

import pytest

from benchmarks.kills import STAGES, campaign


@pytest.mark.skipif(not hasattr(os, "fork"), reason="victims are forked")
def test_a_few_kills() -> None:
    name = "search, one process"
    found = campaign(3, seed=5, stages={name: STAGES[name]})[name]
    assert found.wrong == []
    assert found.kills >= 3
    assert found.equal == found.runs >= 1
