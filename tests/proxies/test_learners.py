"""Learners made for many small fits: what they must learn, and what they must not."""

from __future__ import annotations

import numpy as np
import pytest

from fairbits.proxies.usable import Waves, boosted


def test_boosted_numbers_learn_steps_and_products():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(3000, 3))
    y = 2 * (x[:, 0] > 0.2) + x[:, 1] * x[:, 2]
    learned = boosted(x[:2000], (False,) * 3, y[:2000], rng)
    left = y[2000:] - learned.predict(x[2000:])
    assert left.var() < 0.06 * y.var()


@pytest.mark.parametrize("groups", [2, 4])
def test_boosted_groups_give_probabilities_that_mean_what_they_say(groups):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 2))
    logits = np.outer(x[:, 0], np.arange(groups) - 1.0)
    codes = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    p = boosted(x[:3000], (False, False), codes[:3000], rng, n_groups=groups).predict(x[3000:])
    assert p.shape == (1000, groups)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    truth = np.exp(logits[3000:]) / np.exp(logits[3000:]).sum(axis=1, keepdims=True)
    assert np.abs(p - truth).mean() < 0.06


def test_nothing_to_learn_is_the_base_rate():
    rng = np.random.default_rng(2)
    x, codes = rng.normal(size=(2000, 5)), (rng.random(2000) < 0.3).astype(int)
    p = boosted(x, (False,) * 5, codes, rng, n_groups=2).predict(rng.normal(size=(500, 5)))
    assert np.abs(p[:, 1] - 0.3).mean() < 0.06


def test_a_category_of_many_labels_is_learned_and_an_unknown_label_is_no_error():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 200, size=(6000, 1)).astype(float)
    effect = rng.normal(size=200)
    y = effect[codes[:, 0].astype(int)] + 0.1 * rng.normal(size=6000)
    learned = boosted(codes[:5000], (True,), y[:5000], rng)
    assert (y[5000:] - learned.predict(codes[5000:])).var() < 0.15 * y.var()
    assert np.isfinite(learned.predict(np.array([[999.0]]))).all()


def test_waves_learn_what_is_smooth_and_survive_heavy_tails():
    rng = np.random.default_rng(4)
    x = rng.standard_t(2, size=(3000, 2))
    y = np.tanh(x[:, 0]) * np.cos(x[:, 1].clip(-3, 3))
    waves = Waves.of(x, (False, False), rng)
    found = waves.mean(y, np.arange(2000))[2000:]
    assert (y[2000:] - found).var() < 0.1 * y.var()
