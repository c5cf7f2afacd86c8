"""scikit-learn's multi-layer perceptrons as native networks."""

from __future__ import annotations

from typing import Any

from fairbits.errors import ModelError
from fairbits.models.activations import Activation
from fairbits.models.network import Head, Network

_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "identity"}
_HEADS: dict[str, Head] = {"softmax": "softmax", "logistic": "sigmoid", "identity": "linear"}


def network_of_sklearn(estimator: Any) -> Network:
    """The network inside a fitted MLPClassifier or MLPRegressor; class order as in ``classes_``."""
    kind = type(estimator).__name__
    if not hasattr(estimator, "activation") or not hasattr(estimator, "hidden_layer_sizes"):
        raise ModelError(f"{kind} is not a multi-layer perceptron; give an MLPClassifier or MLPRegressor.")
    if not hasattr(estimator, "coefs_"):
        raise ModelError(f"this {kind} has not been fitted; call fit() before handing it over.")
    head = _HEADS[estimator.out_activation_]
    if estimator.n_outputs_ > 1 and head != "softmax":
        raise ModelError(f"this {kind} predicts {estimator.n_outputs_} targets at once; give a model with one.")
    return Network.build(
        estimator.coefs_,
        estimator.intercepts_,
        activation=Activation(_ACTIVATIONS[estimator.activation]),
        head=head,
    )
