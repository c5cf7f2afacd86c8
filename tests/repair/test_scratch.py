"""Networks trained anew for small tables: blind, better than a guess, and chosen without rows that are held out."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fairbits.domain import Encoding
from fairbits.errors import CapabilityError
from fairbits.measure import Evaluator
from fairbits.repair.proposals import weights as anew
from fairbits.repair.proposals.weights import LENGTHS, MEAN_UPDATES, STARTS, trained_from_scratch
from tests.repair.conftest import SCHEMA, people, wired


def test_it_is_blind_and_has_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    # As long as it takes to learn; what is left out is longer, and chosen where it does better.
    for name, value in {"LENGTHS": LENGTHS[:4], "STARTS": STARTS, "MEAN_UPDATES": MEAN_UPDATES}.items():
        monkeypatch.setattr(anew, name, value)
    table, encoding = people(), Encoding.identity(SCHEMA)
    labels = (table.codes[:, 0] > 4).astype(float)
    made = trained_from_scratch(wired(), SCHEMA, encoding, table.codes, labels, np.random.default_rng(0))
    assert Evaluator(made.network, SCHEMA, encoding, threads=1).blind
    assert made.network.widths == wired().widths
    decided = SCHEMA.rule.decide(made.network.scores(encoding.encode(table.codes)))
    assert (decided == labels).mean() > 0.8
    said = re.search(r"(\d+) updates, chosen by cross-validation on training rows \(([\d.]+) % there", made.words)
    assert said is not None
    assert float(said[2]) > 75


def test_the_threshold_gains_balance_and_spares_accuracy() -> None:
    """100 people: at 0.5 all are favoured; the cut at 0.62 costs nothing and is right about half of the others."""
    scores = np.linspace(0.55, 0.95, 100)
    labels = np.ones(100)
    labels[:20] = labels[40:50] = 0
    shift = anew._best_shift(scores, labels, SCHEMA)
    accuracy, balanced = anew._quality(scores, shift, labels, SCHEMA)
    best = max(anew._quality(scores, float(s), labels, SCHEMA)[0] for s in np.linspace(-4, 4, 801))
    assert accuracy >= best - anew.SPARED
    assert balanced > anew._quality(scores, 0.0, labels, SCHEMA)[1] + 0.2
    assert anew._best_shift(scores, np.ones(100), SCHEMA) == 0.0  # nothing to gain: it stays


def test_the_same_seed_gives_the_same_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anew, "LENGTHS", (20,))
    monkeypatch.setattr(anew, "MEAN_UPDATES", 20)
    table, encoding = people(), Encoding.identity(SCHEMA)
    labels = (table.codes[:, 0] > 4).astype(float)
    one, same, other = (
        trained_from_scratch(wired(), SCHEMA, encoding, table.codes, labels, np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.network.weights[0], same.network.weights[0])
    assert (one.network.weights[0] != other.network.weights[0]).any()


@pytest.mark.parametrize("rows", [20, 6_000])
def test_tables_too_small_or_too_large(rows: int) -> None:
    table = people(rows)
    with pytest.raises(CapabilityError, match=f"{rows:,} rows"):
        trained_from_scratch(
            wired(), SCHEMA, Encoding.identity(SCHEMA), table.codes, np.zeros(rows), np.random.default_rng(0)
        )
