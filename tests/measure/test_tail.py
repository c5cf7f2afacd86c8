"""The tail: intervals of quantiles that hold, planted tails extrapolated, and tails of which nothing is said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from fairbits import Attribute, Network, Schema, Table
from fairbits.measure import Evaluator, Tail, measure_table, tail_of
from fairbits.store import record_from_json


def test_quantiles_by_hand_and_their_ends() -> None:
    gaps = np.arange(1, 1001) / 2000
    found = tail_of(gaps[np.random.default_rng(0).permutation(1000)], np.random.default_rng(0))
    assert [one.level for one in found.quantiles] == [0.9, 0.99, 0.999]
    assert [one.value for one in found.quantiles] == [0.45, 0.495, 0.4995]
    low, high = (int(stats.binom.ppf(end, 1000, 0.9)) for end in (0.025, 0.975))
    assert (found.quantiles[0].low, found.quantiles[0].high) == (gaps[low - 1], gaps[high])
    assert found.quantiles[2].high == 1.0  # beyond the largest of a thousand people nothing is known but the end
    assert tail_of(gaps, np.random.default_rng(0), highest=None).quantiles[2].high is None
    assert found.largest == 0.5


def test_intervals_of_quantiles_hold_whatever_the_gaps_are_like() -> None:
    rng, hits = np.random.default_rng(1), np.zeros(2)
    laws = [stats.beta(0.3, 0.3), stats.beta(2, 9), stats.truncexpon(b=20, scale=0.05)]
    for law in laws:
        for _ in range(60):
            found = tail_of(law.rvs(300, random_state=rng), rng)
            hits += [one.low <= law.ppf(one.level) <= (one.high or 1) for one in found.quantiles]
    assert (hits >= 0.93 * 180).all()


@pytest.mark.parametrize(
    ("law", "highest"),
    [
        (stats.beta(1.5, 4), 1.0),
        (stats.beta(0.5, 2), 1.0),
        (stats.uniform(0, 0.6), 1.0),
        (stats.truncexpon(b=10, scale=0.1), 1.0),
        (stats.genpareto(0.2, scale=2), None),
    ],
)
def test_planted_tails_are_extrapolated(law: stats.rv_continuous, highest: float | None) -> None:
    held = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        found = tail_of(law.rvs(2000, random_state=rng), rng, highest=highest).extreme
        assert found is not None
        assert found.one_in == 10_000
        assert found.p >= 0.1
        assert highest is None or found.gap.high <= highest
        held += found.gap.low <= law.ppf(1 - 1e-4) <= found.gap.high
    assert held >= 9


def test_what_does_not_fit_is_not_extrapolated() -> None:
    rng = np.random.default_rng(2)
    two = np.concatenate([rng.random(2000) * 0.3, 0.9 + 0.001 * rng.random(25)])
    for gaps, words in (
        (two, "no generalised Pareto"),
        (np.round(rng.random(2000), 1) * 0.9, "no generalised Pareto"),
        (np.zeros(2000), "no tail"),
        (rng.random(300), "300 people are too few"),
        (np.append(rng.random(2000), 1.0), "nothing lies beyond"),
    ):
        found = tail_of(gaps, rng)
        assert found.extreme is None
        assert words in found.why


def test_somebody_with_several_rows_counts_once() -> None:
    found = tail_of([0.1, 0.4, 0.2, 0.3], np.random.default_rng(0), people=np.array([7, 7, 9, 9]))
    assert (found.people, found.largest) == (2, 0.4)


def test_a_measurement_has_its_tail() -> None:
    schema = Schema(
        attributes=(
            Attribute(name="sex", kind="integer", low=0, high=1, protected=True),
            Attribute(name="skill", kind="integer", low=0, high=9),
        ),
        target="hired",
        classes=("no", "yes"),
    )
    network = Network.build([np.array([[1.0], [0.1]])], [np.array([-0.5])], head="sigmoid")
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 2, 200), rng.integers(0, 10, 200)]).astype(np.float64)
    found = measure_table(Evaluator(network, schema), Table(codes), rng)
    assert found.tail is not None
    assert found.tail.largest == pytest.approx(float(found.evaluation.span.max()))
    assert record_from_json(Tail, json.loads(json.dumps(found.summary()["tail"]))) == found.tail
