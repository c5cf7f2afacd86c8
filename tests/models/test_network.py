from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from fairbits import Network
from fairbits.errors import CapabilityError, ModelError, OptionError
from fairbits.models import Activation, Do, HasGradients, Model, require
from fairbits.models.native.network import NAMES

from ..conftest import random_network

HEADS = [("softmax", 2), ("softmax", 3), ("sigmoid", 1), ("linear", 1)]


@pytest.fixture(params=NAMES)
def activation(request) -> str:
    return request.param


@pytest.mark.parametrize(("head", "outputs"), HEADS)
@pytest.mark.parametrize("of", ["score", "margin", "loss"])
def test_gradients_agree_with_finite_differences(activation: str, head: str, outputs: int, of: str, rng) -> None:
    network = random_network(rng, [5, 9, 6, outputs], activation=activation, head=head, favourable=0)
    rows = rng.normal(size=(40, 5))
    own = None if head == "linear" else network.labels(rows)

    def value(inputs: np.ndarray) -> np.ndarray:
        """The differentiated quantity in float64, written from the definition."""
        current = inputs
        for i, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
            current = current @ w.astype(np.float64) + b
            if i < len(network.activations_after):
                current = network.activations_after[i](current)
        if head == "linear":
            return current[:, 0]
        logits = current if head == "softmax" else np.column_stack([np.zeros(len(current)), current[:, 0]])
        chances = special.softmax(logits, axis=1)
        if of == "score":
            return chances[:, 0]
        if of == "margin":
            return special.logit(chances[:, 0])
        return -np.log(chances[np.arange(len(rows)), own])

    step = 1e-5
    numeric = np.stack([(value(rows + step * e) - value(rows - step * e)) / (2 * step) for e in np.eye(5)], axis=1)
    # Piecewise linear activations have kinks; a row that straddles one within the step has no slope to compare.
    found = network.gradients(rows, of=of)
    close = np.isclose(found, numeric, rtol=2e-3, atol=2e-4).all(axis=1)
    assert close.mean() >= 0.97


def test_loss_gradient_is_the_faded_margin_gradient(rng) -> None:
    network = random_network(rng, [5, 9, 2])
    rows = rng.normal(size=(30, 5))
    certain = np.where(network.scores(rows) >= 0.5, network.scores(rows), 1 - network.scores(rows))
    sign = np.where(network.scores(rows) >= 0.5, 1, -1)
    expected = -((1 - certain) * sign)[:, None] * network.gradients(rows, of="margin")
    np.testing.assert_allclose(network.gradients(rows, of="loss"), expected, atol=1e-5)


def test_scores_are_the_favourable_probability(rng) -> None:
    rows = rng.normal(size=(20, 5))
    three = random_network(rng, [5, 7, 3])
    total = sum(three.with_favourable(i).scores(rows) for i in range(3))
    np.testing.assert_allclose(total, 1, atol=1e-6)
    one = random_network(rng, [5, 7, 1], head="sigmoid")
    np.testing.assert_allclose(one.scores(rows) + one.with_favourable(0).scores(rows), 1, atol=1e-6)
    np.testing.assert_array_equal(one.labels(rows), one.scores(rows) >= 0.5)
    np.testing.assert_array_equal(three.labels(rows), three.activations(rows)[-1].argmax(axis=1))


def test_an_intervention_holds_exactly_one_neuron(activation: str, rng) -> None:
    network = random_network(rng, [5, 8, 6, 2], activation=activation)
    rows = rng.normal(size=(25, 5))
    value = {"tanh": -0.4, "sigmoid": 0.7}.get(activation, 0.9)
    changed = network.with_interventions([Do(1, 4, value)])
    before, after = network.activations(rows), changed.activations(rows)
    np.testing.assert_allclose(after[1][:, 4], value, atol=1e-6)
    np.testing.assert_array_equal(np.delete(after[1], 4, axis=1), np.delete(before[1], 4, axis=1))
    np.testing.assert_array_equal(after[0], before[0])
    assert changed.widths == network.widths


def test_surgery_leaves_the_patient_alone(rng) -> None:
    network = random_network(rng, [5, 8, 2])
    kept = [w.copy() for w in network.weights]
    network.with_interventions([Do(0, 0, 1.0)])
    assert all((a == b).all() for a, b in zip(kept, network.weights, strict=True))


@pytest.mark.parametrize(
    ("name", "value"),
    [("relu", -0.1), ("tanh", 1.0), ("sigmoid", 0.0), ("elu", -0.5), ("gelu", -0.2)],
)
def test_a_value_that_a_neuron_cannot_put_out(name: str, value: float, rng) -> None:
    network = random_network(rng, [3, 4, 2], activation=name)
    with pytest.raises(ModelError, match="can never put out"):
        network.with_interventions([Do(0, 0, value)])


@pytest.mark.parametrize(("do", "complaint"), [(Do(1, 0, 0), "not a hidden layer"), (Do(0, 9, 0), "neuron 9")])
def test_neurons_that_are_not_there(do: Do, complaint: str, rng) -> None:
    with pytest.raises(OptionError, match=complaint):
        random_network(rng, [3, 4, 2]).with_interventions([do])


def test_arrays_that_do_not_fit() -> None:
    good = np.ones((3, 2))
    cases = [
        (([], []), {}, "at least one layer"),
        (([good, np.ones((3, 2))], [np.ones(2), np.ones(2)]), {}, "layer 1 does not fit: 2 values come in"),
        (([good], [np.ones(3)]), {}, "with 3 biases"),
        (([good * np.nan], [np.ones(2)]), {}, "NaN or infinite"),
        (([np.ones(3)], [np.ones(2)]), {}, "needs a matrix"),
        (([good], [np.ones(2)]), {"head": "sigmoid"}, "sigmoid head does not go with 2 outputs"),
        (([good], [np.ones(2)]), {"head": "sofmax"}, "Did you mean 'softmax'"),
        (([good], [np.ones(2)]), {"favourable": 2}, "favourable class 2"),
        (([good], [np.ones(2)]), {"activation": [Activation()]}, "need 0 activations"),
    ]
    for (weights, biases), options, complaint in cases:
        with pytest.raises(ModelError, match=complaint):
            Network.build(weights, biases, **options)
    with pytest.raises(ModelError, match="Did you mean 'relu'"):
        Activation("rleu")


def test_rows_that_do_not_fit(rng) -> None:
    network = random_network(rng, [3, 4, 2])
    with pytest.raises(ModelError, match=r"rows of 3 inputs, but got an array of shape \(2, 4\)"):
        network.scores(np.ones((2, 4)))
    with pytest.raises(OptionError, match="gradients of 'logits'"):
        network.gradients(np.ones((2, 3)), of="logits")


def test_capabilities_are_checked_by_what_a_model_can_do(rng) -> None:
    class Oracle:
        inputs = 3

        def scores(self, inputs: np.ndarray) -> np.ndarray:
            return np.zeros(len(inputs), np.float32)

    assert isinstance(Oracle(), Model)
    require(random_network(rng, [3, 4, 2]), HasGradients, "strategy 'dice'")
    with pytest.raises(CapabilityError, match="strategy 'dice' needs gradients, which 'Oracle' does not offer"):
        require(Oracle(), HasGradients, "strategy 'dice'")


def test_many_rows_score_as_few_do(rng) -> None:
    network = random_network(rng, [5, 9, 6, 3])
    rows = rng.normal(size=(1000, 5)).astype(np.float32)
    pieces = [network.scores(rows[i : i + 100]) for i in range(0, 1000, 100)]
    assert np.allclose(network.scores(rows), np.concatenate(pieces), rtol=1e-6)
    assert network.scores(rows[:0]).shape == (0,)
