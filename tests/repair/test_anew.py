"""Networks trained anew for small tables: blind, better than a guess, and chosen without rows that are held out."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits.domain import Encoding
from fairbits.errors import CapabilityError
from fairbits.measure import Evaluator
from fairbits.repair.proposals import anew
from fairbits.repair.proposals.anew import UPDATES, trained_anew
from tests.repair.conftest import SCHEMA, people, wired


def test_it_is_blind_and_has_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anew, "UPDATES", UPDATES)
    table, encoding = people(), Encoding.identity(SCHEMA)
    labels = (table.codes[:, 0] > 4).astype(float)
    made = trained_anew(wired(), SCHEMA, encoding, table.codes, labels, np.random.default_rng(0))
    assert Evaluator(made.network, SCHEMA, encoding, threads=1).blind
    assert made.network.widths == wired().widths
    decided = SCHEMA.rule.decide(made.network.scores(encoding.encode(table.codes)))
    assert (decided == labels).mean() > 0.8
    assert made.accuracy > 0.75
    assert f"{made.updates} updates, chosen by cross-validation on training rows" in made.words


def test_the_same_seed_gives_the_same_network() -> None:
    table, encoding = people(), Encoding.identity(SCHEMA)
    labels = (table.codes[:, 0] > 4).astype(float)
    one, same, other = (
        trained_anew(wired(), SCHEMA, encoding, table.codes, labels, np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one.network.weights[0], same.network.weights[0])
    assert (one.network.weights[0] != other.network.weights[0]).any()


@pytest.mark.parametrize("rows", [20, 6_000])
def test_tables_too_small_or_too_large(rows: int) -> None:
    table = people(rows)
    with pytest.raises(CapabilityError, match=f"{rows:,} rows"):
        trained_anew(wired(), SCHEMA, Encoding.identity(SCHEMA), table.codes, np.zeros(rows), np.random.default_rng(0))
