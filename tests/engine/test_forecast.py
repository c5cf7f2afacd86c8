"""What a change of code is foreseen to do, against the gradient by input times the change of the inputs."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from test_engine_gradients import exact, make_schema, mixed_encoding

from fairbits.domain import Encoding, Twins, Unseen
from fairbits.engine import (
    TwinForecast,
    arranged,
    contributions_of,
    contributions_through,
    forecast,
    gradients,
    plan_of,
)
from fairbits.engine.gradient import forecast_change
from fairbits.models import Network
from tests.conftest import random_network, random_people


@numba.njit
def _foreseen(contributions, one, other, width, attributes, here, there):  # type: ignore[no-untyped-def]
    result, found = np.zeros((len(here), 2)), np.empty(4, np.float32)
    for i in range(len(here)):
        if contributions.tabled[attributes[i]]:
            forecast_change(contributions, one, other, i * width, attributes[i], here[i], there[i], found)
            result[i, 0], result[i, 1] = found[0], found[1]
    return result


class Changes:
    """People, a twin of each, and another value for one of their free attributes."""

    def __init__(self, rng: np.random.Generator, n: int = 200):
        self.schema = make_schema()
        self.twins = Twins(self.schema)
        self.columns = np.array(self.schema.free_columns)
        self.people = random_people(rng, self.schema, n)
        self.others = random_people(rng, self.schema, n)
        self.chosen = rng.integers(0, self.twins.m, n)
        self.attributes = rng.integers(0, len(self.columns), n)
        self.rows = self.twins.expand(self.people)[np.arange(n), self.chosen]

    def expected(self, network: Network, encoding: Encoding) -> np.ndarray:
        changed, i = self.rows.copy(), np.arange(len(self.rows))
        column = self.columns[self.attributes]
        changed[i, column] = self.others[i, column]
        difference = encoding.encode(changed).astype(np.float64) - encoding.encode(self.rows)
        return (exact(network).gradients(encoding.encode(self.rows)) * difference).sum(axis=1)

    def foreseen(self, contributions, known: TwinForecast) -> np.ndarray:  # type: ignore[no-untyped-def]
        i, column = np.arange(len(self.people)), self.columns[self.attributes]
        here, there = self.people[i, column], self.others[i, column]
        both = known.inner.ravel(), (2 * known.inner).ravel()
        found = _foreseen(contributions, *both, known.inner.shape[1], self.attributes, here, there)
        assert np.allclose(found[:, 1], 2 * found[:, 0], atol=1e-5)
        return np.where(contributions.tabled[self.attributes], found[:, 0], known.slopes[i, column] * (there - here))


def encodings(schema, rng):  # type: ignore[no-untyped-def]
    """Some by one-hot, some by embeddings with their columns turned round; one attribute that the model never sees."""
    names = [name for name in schema.names if name != "x1"]
    return {"one-hot": Encoding.one_hot(schema), "embedded": mixed_encoding(schema, rng)} | {
        "unseen": Encoding.one_hot(schema, columns=names)
    }


@pytest.mark.parametrize("kind", ["one-hot", "embedded", "unseen"])
@pytest.mark.parametrize("hidden", [(), (30, 7), (64, 8)])
def test_a_change_does_what_the_gradient_says(kind: str, hidden: tuple[int, ...], rng: np.random.Generator) -> None:
    changes = Changes(rng)
    encoding = encodings(changes.schema, rng)[kind]
    assert any(isinstance(part, Unseen) for part in encoding.parts) == (kind == "unseen")
    network = random_network(rng, (encoding.width, *hidden, 2), activation="tanh")
    expected = changes.expected(network, encoding)
    scale = np.abs(expected).max()

    plan = plan_of(network, encoding, changes.twins)
    known = forecast(plan, changes.people, changes.chosen, threads=1)
    native = changes.foreseen(contributions_of(plan, changes.columns), known)
    np.testing.assert_allclose(native / scale, expected / scale, rtol=0, atol=1e-5)

    by_inputs = network.gradients(encoding.encode(changes.rows))
    slopes = encoding.pull_back(by_inputs, changes.rows).astype(np.float32)
    by_input = TwinForecast(slopes, arranged(by_inputs, encoding))
    foreign = changes.foreseen(contributions_through(encoding, changes.columns), by_input)
    np.testing.assert_allclose(foreign / scale, expected / scale, rtol=0, atol=1e-5)


def test_threads_do_not_change_it(rng: np.random.Generator) -> None:
    changes = Changes(rng, 5000)
    encoding = Encoding.one_hot(changes.schema)
    plan = plan_of(random_network(rng, (encoding.width, 64, 32, 2)), encoding, changes.twins)
    one, two = (forecast(plan, changes.people, changes.chosen, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.slopes, two.slopes)
    assert np.array_equal(one.inner, two.inner)
    assert not one.inner[:, 64:].any()  # the rest of the last tile


def test_without_tables_slopes_are_all_there_is(rng: np.random.Generator) -> None:
    changes = Changes(rng)
    encoding = Encoding.identity(changes.schema)
    plan = plan_of(random_network(rng, (encoding.width, 9, 2)), encoding, changes.twins)
    known = forecast(plan, changes.people, changes.chosen)
    assert known.inner.shape == (len(changes.people), 0)
    assert np.array_equal(known.slopes, gradients(plan, changes.people, changes.chosen))
    assert not contributions_of(plan, changes.columns).tabled.any()
