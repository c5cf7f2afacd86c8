"""Perceptrons and linear models of scikit-learn as native networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.errors import ModelError
from fairbits.models.native.activations import Activation
from fairbits.models.native.network import Head, Network
from fairbits.models.sklearn_pipelines import taken_apart, winner

_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "identity"}
_HEADS: dict[str, Head] = {"softmax": "softmax", "logistic": "sigmoid", "identity": "linear"}
LOGISTIC = {"LogisticRegression", "LogisticRegressionCV"}
_REGRESSIONS = {
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "SGDRegressor"),
    *(
        "HuberRegressor",
        "QuantileRegressor",
        "BayesianRidge",
        "ARDRegression",
        "TheilSenRegressor",
        "Lars",
        "LassoLars",
    ),
}


def is_perceptron(estimator: Any) -> bool:
    """Whether a model has the attributes of an MLPClassifier or MLPRegressor."""
    marks = ("activation", "hidden_layer_sizes", "solver")
    return _of_sklearn(estimator) and all(hasattr(estimator, name) for name in marks)


def _of_sklearn(estimator: Any) -> bool:
    return any(home.__module__.partition(".")[0] == "sklearn" for home in type(estimator).__mro__)


def is_linear(estimator: Any) -> bool:
    """Whether its score is a weighted sum of its inputs, behind a sigmoid or softmax where it classifies."""
    kind = type(estimator)
    if not kind.__module__.startswith("sklearn.linear_model.") or not hasattr(estimator, "coef_"):
        return False
    outputs = int(np.prod(np.shape(estimator.coef_)[:-1]))  # one for a flat list
    if kind.__name__ in _REGRESSIONS:
        return outputs == 1
    if kind.__name__ == "SGDClassifier":
        return outputs == 1 and estimator.loss == "log_loss"  # several classes are shares of sigmoids, no softmax
    one_by_one = getattr(estimator, "solver", "") == "liblinear" or getattr(estimator, "multi_class", "") == "ovr"
    return kind.__name__ in LOGISTIC and (outputs == 1 or not one_by_one)


def network_of_linear(estimator: Any) -> Network:
    """A linear or logistic model as a network of one layer."""
    weights = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64)).T
    biases = np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64).ravel(), weights.shape[1])
    head: Head = "linear" if not hasattr(estimator, "classes_") else "sigmoid" if weights.shape[1] == 1 else "softmax"
    return Network.build([weights], [biases], head=head)


def linear_with(estimator: Any, network: Network) -> Any:
    """Put a network's weights into a linear model, in place; unchanged ones keep every bit."""
    shape = np.shape(estimator.coef_)
    changed = network.weights[0].T.reshape(shape)
    same = np.asarray(estimator.coef_, dtype=np.float32) == changed
    estimator.coef_ = np.where(same, estimator.coef_, changed)
    biases = np.reshape(network.biases[0], np.shape(estimator.intercept_))
    kept = np.where(np.asarray(estimator.intercept_, dtype=np.float32) == biases, estimator.intercept_, biases)
    estimator.intercept_ = kept if np.ndim(kept) else float(kept)
    return estimator


def network_of_sklearn(estimator: Any) -> Network:
    """The network inside a fitted MLPClassifier or MLPRegressor; class order as in ``classes_``."""
    kind = type(estimator).__name__
    if not is_perceptron(estimator):
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


def perceptron_in(estimator: Any) -> Any:
    """The perceptron at the end of a model, whose weights a repair may change."""
    final = taken_apart(winner(estimator))[1]
    network_of_sklearn(final)
    return final
