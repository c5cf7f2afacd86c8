"""Bits of words above what nothing protected makes: planted groups are found, single names are not claimed."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits.functions import expit
from fairbits.measure.words import AGAIN, NEUTRAL, REALISATION, half_signs, word_bits

PEOPLE, GROUPS, WORDS = 25, 4, 8


def answers(rng: np.random.Generator, *, group: float, name: float) -> tuple[list[np.ndarray], float]:
    """Scores of a classifier that adds a weight for one group's cues, and one for each name; its bits without names."""
    base = rng.normal(0, 1, PEOPLE)
    weights = [group if place == 0 else 0.0 for place in range(GROUPS)]
    scores = [expit(base[:, None] + weight + rng.normal(0, name, WORDS)[None, :]) for weight in weights]
    apart = np.abs(expit(base + group) - expit(base)) > 0.025
    return scores, float(apart.mean())


@pytest.mark.parametrize("name", [0.05, 0.3, 1.0])
def test_names_alone_are_not_claimed(name: float) -> None:
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        wrong += word_bits(answers(rng, group=0.0, name=name)[0], rng, draws=200).claimed
    assert wrong <= 5


@pytest.mark.parametrize("words", [(4, 30), (4, 6, 8, 20), (8,) * 8])
def test_names_of_one_group_that_scatter_more_are_not_claimed(words: tuple[int, ...]) -> None:
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(9_000 + seed)
        base = rng.normal(0, 0.6, (5, 1))
        scatter = [0.9 if place == 0 else 0.09 for place in range(len(words))]
        scores = [expit(base + rng.normal(0, one, count)) for one, count in zip(scatter, words, strict=True)]
        wrong += word_bits(scores, rng, neutral=expit(base + rng.normal(0, 0.09, 6)), draws=200).claimed
    assert wrong <= 5


def test_a_planted_group_is_found_with_its_bits() -> None:
    right = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        scores, bits = answers(rng, group=0.8, name=0.05)
        found = word_bits(scores, rng, draws=200)
        assert found.above is not None
        right += found.claimed and abs(found.above.value - bits) < 0.1
    assert right >= 95


def test_names_make_as_many_bits_as_their_null_says() -> None:
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        one = word_bits(answers(rng, group=0.0, name=0.3)[0], rng, draws=100)
        found.append((one.bits.value, one.nulls[1].bits))
    bits, null = np.mean(np.array(found, dtype=np.float64), axis=0)
    assert bits == pytest.approx(null, abs=0.1)
    assert bits > 0.5  # one name per group would show them all


@pytest.mark.parametrize("count", [2, 3, 7, 8])
def test_a_difference_of_halves_varies_as_the_mean_does(count: int) -> None:
    weights = half_signs(count, np.random.default_rng(0), 50)
    assert np.allclose(weights.sum(axis=1), 0)  # what all realisations share is gone
    assert np.allclose((weights**2).sum(axis=1), 1 / count)


def test_a_model_that_answers_otherwise_is_not_claimed() -> None:
    rng = np.random.default_rng(0)
    first, second = ([rng.random((PEOPLE, 2)) for _ in range(GROUPS)] for _ in range(2))
    found = word_bits(first, rng, again=(first, second), neutral=rng.random((PEOPLE, 6)))
    assert not found.claimed
    assert {null.null: (null.bits or 0) > 0.5 for null in found.nulls} == dict.fromkeys(
        (AGAIN, REALISATION, NEUTRAL), True
    )


def test_what_realisations_share_is_no_noise() -> None:
    rng = np.random.default_rng(0)
    carrier = rng.normal(0, 1, WORDS)  # "the woman", "the man": their article moves both
    base = rng.normal(0, 0.5, PEOPLE)
    scores = [expit(base[:, None] + weight + carrier[None, :]) for weight in (0.0, 0.8)]
    found = word_bits(scores, rng)
    assert found.claimed
    assert found.nulls[1].bits == pytest.approx(0, abs=0.2)


def test_few_realisations_claim_nothing() -> None:
    scores = [np.full((9, 3), 0.1), np.full((9, 3), 0.9)]
    found = word_bits(scores, np.random.default_rng(0))
    assert found.above is not None
    assert found.above.low == 1
    assert not found.claimed


def test_one_realisation_claims_nothing() -> None:
    scores = [np.full((5, 1), 0.1), np.full((5, 1), 0.9)]
    found = word_bits(scores, np.random.default_rng(0), again=(scores, scores))
    assert found.bits.value == 1
    assert found.above is None
    assert not found.claimed
    assert found.nulls[0].bits == 0
    assert "one realisation" in found.nulls[1].reason
    assert "neutral" in found.nulls[2].reason


def test_a_group_is_found_among_strong_names() -> None:
    def names(rng: np.random.Generator, words: int) -> np.ndarray:
        """All odd ones in one direction, and to each of five people a little differently."""
        return 0.3 * (np.exp(rng.normal(0, 1, words)) - np.exp(0.5) + rng.normal(0, 0.5, (5, words)))

    right = wrong = 0
    for seed in range(60):
        rng = np.random.default_rng(7_000 + seed)
        base = rng.uniform(-1.5, 1.0, (5, 1))
        words, neutral = [base + names(rng, WORDS) for _ in range(GROUPS)], base + names(rng, 6)
        for group in (0.0, 0.8):
            scores = [1 - np.exp(-np.exp(one + group * (place == 0))) for place, one in enumerate(words)]
            found = word_bits(scores, rng, neutral=1 - np.exp(-np.exp(neutral)))
            assert found.above is not None
            assert found.claimed == (found.above.low > 0)
            assert found.chance is None or found.chance <= 0.005
            right += found.claimed and group > 0
            wrong += found.claimed and group == 0
    assert wrong <= 2
    assert right >= 20
