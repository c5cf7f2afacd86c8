"""Group figures against a plain loop, and what happens to groups of a handful of people."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fairbits import Schema
from fairbits.repair import group_figures
from tests.conftest import random_people


def test_against_a_loop(people_schema: Schema, rng: np.random.Generator) -> None:
    rows = random_people(rng, people_schema, 700)
    favoured, deserved = rng.random(700) < 0.4, rng.random(700) < 0.6
    found = {figures.attributes: figures for figures in group_figures(people_schema, rows, favoured, deserved)}
    assert set(found) == {("age",), ("sex",), ("age", "sex")}
    for names, figures in found.items():
        columns = [people_schema.column(name) for name in names]
        rates: dict[tuple[float, ...], list[float]] = {}
        for key in {tuple(row[columns]) for row in rows}:
            here = [i for i in range(700) if tuple(rows[i][columns]) == key]
            good, bad = [i for i in here if deserved[i]], [i for i in here if not deserved[i]]
            rates[key] = [sum(favoured[i] for i in part) / len(part) for part in (here, good, bad)]
        gaps = [max(abs(a[i] - b[i]) for a, b in combinations(rates.values(), 2)) for i in range(3)]
        assert figures.selection == pytest.approx(gaps[0])
        assert figures.equal_opportunity == pytest.approx(gaps[1])
        assert figures.average_odds == pytest.approx((gaps[1] + gaps[2]) / 2)
        assert sum(group.people for group in figures.groups) == 700
        assert figures.too_small == ()
    assert {group.name for group in found["sex",].groups} == {"Female", "Male"}


def test_small_groups_are_named_and_left_out(people_schema: Schema, rng: np.random.Generator) -> None:
    rows = random_people(rng, people_schema, 200)
    rows[:, 3] = 0
    rows[:29, 3] = 1
    favoured = rows[:, 3] == 1
    sex = group_figures(people_schema, rows, favoured, favoured)[1]
    assert sex.too_small == ("Male",)
    assert [group.name for group in sex.groups] == ["Female"]
    assert (sex.selection, sex.equal_opportunity, sex.average_odds) == (None, None, None)
