"""Bits in labels: planted, known, found; absent, not found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairbits import Table
from fairbits.debug.origin import label_bits
from tests.debug.conftest import SCHEMA

pytestmark = pytest.mark.usefixtures("learners_as_users_have_them")


def people(rng: np.random.Generator, rows: int) -> np.ndarray:
    return np.column_stack([rng.integers(0, 2, rows), rng.integers(0, 10, (rows, 2))]).astype(np.float64)


def entropy(p: float) -> float:
    return float(-p * np.log2(p) - (1 - p) * np.log2(1 - p))


def test_a_planted_dependence(rng: np.random.Generator) -> None:
    """P(yes) is 0.2 or 0.8 by sex, whatever the rest: 1 − H(0.2) bits."""
    codes = people(rng, 8000)
    labels = (rng.random(8000) < np.where(codes[:, 0] == 1, 0.8, 0.2)).astype(np.float64)
    found = label_bits(SCHEMA, Table(codes, labels), np.random.default_rng(0))
    truth = 1 - entropy(0.2)
    assert found.present
    assert found.bits.low - 0.02 < truth < found.bits.high + 0.02
    assert found.bits.value == pytest.approx(truth, abs=0.03)
    assert found.label_bits == pytest.approx(1, abs=0.03)


def test_what_goes_through_the_rest_does_not_count(rng: np.random.Generator) -> None:
    """Skill depends on sex, and the label on skill alone: nothing is left for sex to tell."""
    codes = people(rng, 6000)
    codes[:, 1] = np.clip(codes[:, 1] // 2 + 5 * codes[:, 0], 0, 9)
    labels = (rng.random(6000) < codes[:, 1] / 10).astype(np.float64)
    found = label_bits(SCHEMA, Table(codes, labels), np.random.default_rng(0))
    assert 0 == found.bits.low <= found.bits.value < 0.01  # bits are never negative
    assert found.bits.value <= found.bits.high < 0.02
    assert not found.present


def test_a_regression(rng: np.random.Generator) -> None:
    schema = replace(SCHEMA, classes=(), favourable=None)
    codes = people(rng, 4000)
    noise = rng.normal(size=4000)
    used = label_bits(schema, Table(codes, codes[:, 1] + 4 * codes[:, 0] + noise), np.random.default_rng(0))
    # Not knowing sex adds a variance of 4 to one of 1.
    assert used.bits.value == pytest.approx(0.5 * np.log2(5), abs=0.15)
    unused = label_bits(schema, Table(codes, codes[:, 1] + noise), np.random.default_rng(0))
    assert not unused.present


def test_nothing_but_protected_attributes(rng: np.random.Generator) -> None:
    schema = SCHEMA.with_protected(SCHEMA.names)
    codes = people(rng, 3000)
    labels = codes[:, 0].copy()
    found = label_bits(schema, Table(codes, labels), np.random.default_rng(0))
    assert found.bits.value == pytest.approx(1, abs=0.02)


def test_the_same_seed_gives_the_same(rng: np.random.Generator) -> None:
    codes = people(rng, 500)
    table = Table(codes, rng.integers(0, 2, 500).astype(np.float64))
    one, two = (label_bits(SCHEMA, table, np.random.default_rng(3)) for _ in range(2))
    assert one == two
