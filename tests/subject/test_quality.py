"""How a model agrees with the labels: the figures against plain counting, and the interval of the AUC by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairbits import Table
from fairbits.domain.schema import DecisionRule
from fairbits.errors import ModelError
from fairbits.store import record_from_json
from fairbits.subject import make_subject, quality
from fairbits.subject.quality import Quality, area_under_curve, midranks, rank_correlation

from ..conftest import random_network, random_people


def test_the_area_is_the_share_of_pairs_in_the_right_order(rng) -> None:
    for ties in (3, 1000):
        scores = rng.integers(0, ties, 60) / ties
        positive = rng.random(60) < 0.4
        pairs = list(itertools.product(scores[positive], scores[~positive]))
        plain = np.mean([(one > two) + 0.5 * (one == two) for one, two in pairs])
        area, low, high = area_under_curve(scores, positive)
        assert area == pytest.approx(plain)
        assert 0 <= low < area < high <= 1
    assert area_under_curve(np.ones(5), np.ones(5, bool)) is None
    np.testing.assert_array_equal(midranks(np.array([3, 1, 3, 2])), [3.5, 1, 3.5, 2])


def test_at_one_half_the_interval_is_the_test_of_mann_and_whitney(rng) -> None:
    """Newcombe's method 5 with the null variance (m + n + 1) / 12mn: the ends touch 0.5 where that test does."""
    ones, zeros = 30, 70
    edge = 0.5 - 1.959963984540054 * np.sqrt((ones + zeros + 1) / (12 * ones * zeros))
    positive = np.arange(100) < ones
    for _ in range(300):
        area, _, high = area_under_curve(rng.normal(size=100) - 0.4 * positive, positive)
        assert (high < 0.5) == (area < edge)


@pytest.mark.parametrize(("ones", "zeros", "shift"), [(15, 15, 0.0), (8, 60, 1.0), (40, 40, 2.0), (25, 10, 3.0)])
def test_the_interval_holds_what_it_says(ones: int, zeros: int, shift: float, rng) -> None:
    """Two normal groups: the true area is Φ(shift / √2). 1,500 tables; a binomial error of 0.6 points."""
    from scipy.stats import norm

    truth, positive = norm.cdf(shift / np.sqrt(2)), np.arange(ones + zeros) < ones
    held = 0
    for _ in range(1500):
        _, low, high = area_under_curve(rng.normal(size=ones + zeros) + shift * positive, positive)
        held += low <= truth <= high
    assert 0.925 <= held / 1500 <= 0.99


def test_few_rows_say_nothing() -> None:
    area, low, high = area_under_curve(np.array([0.9, 0.1]), np.array([False, True]))
    assert (area, low) == (0.0, 0.0)
    assert high > 0.5


def test_the_rule_at_the_threshold_itself() -> None:
    rule = DecisionRule(2, 0, 0.7)
    assert rule.favours(np.array([0.7, np.nextafter(np.float32(0.7), np.float32(0))])).tolist() == [True, False]
    assert rule.decide([0.7, 0.1]).tolist() == [0, 1]
    three = DecisionRule(3, 2, None)
    assert three.most_likely(np.array([[0.4, 0.2, 0.4], [0.4, 0.4, 0.2], [0.1, 0.5, 0.4]])).tolist() == [2, 0, 1]


@pytest.mark.parametrize("classes", [2, 3])
def test_figures_of_a_subject(classes: int, people_schema, rng) -> None:
    from dataclasses import replace

    names = ("a", "b", "c")[:classes]
    schema = replace(people_schema, target="y", classes=names, favourable="b")
    network = random_network(rng, [9, 12, classes], favourable=1)
    people = random_people(rng, people_schema, 500)
    first = make_subject("first", network, schema, Table(people))
    table = first.model.class_scores(first.encoding.encode(people))
    labels = np.where(rng.random(500) < 0.8, table.argmax(axis=1), rng.integers(0, classes, 500)).astype(float)
    found = make_subject("s", network, schema, Table(people, labels)).checked().quality
    assert found.accuracy == (table.argmax(axis=1) == labels).mean()
    recalls = [(table.argmax(axis=1)[labels == c] == c).mean() for c in range(classes)]
    assert found.balanced_accuracy == pytest.approx(np.mean(recalls))
    assert found.favourable_rate == (table.argmax(axis=1) == 1).mean()
    assert found.base_rate == (labels == 1).mean()
    assert found.auc == pytest.approx(area_under_curve(table[:, 1], labels == 1)[0], abs=1e-6)
    assert found.threshold == (0.5 if classes == 2 else None)
    assert record_from_json(Quality, found.figures()) == found
    without = make_subject("s", network, schema, Table(people)).checked().quality
    assert (without.accuracy, without.auc, without.base_rate) == (None, None, None)
    assert without.favourable_rate == found.favourable_rate
    assert "There are no labels to compare with." in without.lines()


def test_a_regression_has_its_own_figures(people_schema, rng) -> None:
    from dataclasses import replace

    schema = replace(people_schema, target="pay", classes=(), favourable=None)
    network = random_network(rng, [9, 6, 1], head="linear")
    people = random_people(rng, people_schema, 200)
    scores = make_subject("s", network, schema, Table(people)).model
    subject = make_subject("s", network, schema, Table(people))
    values = np.asarray(scores.scores(subject.encoding.encode(people)), dtype=float)
    noisy = values + rng.normal(0, 0.1 * values.std(), 200)
    found = make_subject("s", network, schema, Table(people, noisy)).checked().quality
    assert found.r2 == pytest.approx(1 - np.mean((values - noisy) ** 2) / np.var(noisy))
    assert found.rank_correlation == pytest.approx(rank_correlation(values, noisy))
    assert (found.auc, found.auc_high, found.accuracy, found.threshold) == (None, None, None, None)
    assert "variance explained 9" in found.lines()[1]
    assert rank_correlation(np.ones(3), np.arange(3)) is None


def test_large_tables_are_sampled(people_schema, rng, monkeypatch) -> None:
    from dataclasses import replace

    monkeypatch.setattr(quality, "MAX_ROWS", 100)
    schema = replace(people_schema, target="y", classes=("a", "b"), favourable="b")
    people = random_people(rng, people_schema, 300)
    subject = make_subject("s", random_network(rng, [9, 4, 2]), schema, Table(people, rng.integers(0, 2, 300) * 1.0))
    found = [quality.quality_of(subject.model, subject.encoding, subject.schema, subject.table) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].rows == 100


def test_a_refused_model_can_be_kept_as_it_is(people_schema, rng) -> None:
    from dataclasses import replace

    schema = replace(people_schema, target="y", classes=("a", "b"), favourable="b")
    network = random_network(rng, [9, 12, 1], head="sigmoid")
    people = random_people(rng, people_schema, 400)
    first = make_subject("s", network, schema, Table(people))
    scores = first.model.scores(first.encoding.encode(people))
    labels = (scores < np.median(scores)).astype(float)
    subject = make_subject("s", network, schema, Table(people, labels))
    with pytest.raises(ModelError, match=r'score_of = "a" under \[model\] \(in Python score_of=\'a\'\)'):
        subject.checked()
    kept = subject.checked(as_is=True)
    assert kept.as_is
    assert kept.checked().notes == kept.notes  # asked again, it says nothing twice


def test_rows_of_one_person_count_once(rng) -> None:
    """60 people of 10 equal rows each: the interval is about that of one row each, and holds the truth."""
    held = 0
    for _ in range(200):
        positive = rng.random(60) < 0.5
        scores = rng.normal(size=60) + positive
        people = np.repeat(np.arange(60), 10)
        area, low, high = area_under_curve(scores[people], positive[people], people=people)
        plain = area_under_curve(scores, positive)
        assert area == pytest.approx(plain[0])
        assert (high - low) == pytest.approx(plain[2] - plain[1], rel=0.15)
        held += low <= 0.7602 <= high
    assert held >= 180
