"""Which hyper-parameters of a kind of model are searched, and between which ends: one line for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairbits.errors import CapabilityError
from fairbits.models import Network, last_step

#: A parameter's range: ("int", low, high), ("log-int", …), ("real", …), ("log", …) or ("one of", values).
Range = tuple[Any, ...]

_TREE: dict[str, Range] = {
    "max_depth": ("int", 2, 16),
    "min_samples_leaf": ("log-int", 1, 64),
    "criterion": ("one of", ("gini", "entropy")),
}
_FOREST: dict[str, Range] = {
    "n_estimators": ("log-int", 10, 120),
    "max_depth": ("int", 2, 16),
    "min_samples_leaf": ("log-int", 1, 64),
    "max_features": ("one of", ("sqrt", "log2", None)),
}
_BOOSTER: dict[str, Range] = {
    "n_estimators": ("log-int", 10, 200),
    "learning_rate": ("log", 0.01, 0.5),
    "max_depth": ("int", 2, 8),
    "subsample": ("real", 0.5, 1.0),
}
_HISTOGRAM: dict[str, Range] = {
    "max_iter": ("log-int", 10, 200),
    "learning_rate": ("log", 0.01, 0.5),
    "max_leaf_nodes": ("log-int", 4, 64),
    "l2_regularization": ("log", 1e-3, 10.0),
}
_PERCEPTRON: dict[str, Range] = {
    "hidden_layer_sizes": ("one of", ((8,), (16,), (32,), (64,), (16, 8), (32, 16), (64, 32), (32, 16, 8))),
    "alpha": ("log", 1e-6, 1.0),
    "learning_rate_init": ("log", 3e-4, 3e-2),
    "max_iter": ("log-int", 20, 120),
}
SPACES: dict[str, dict[str, Range]] = {
    "LogisticRegression": {"C": ("log", 1e-3, 1e2), "class_weight": ("one of", (None, "balanced"))},
    "SGDClassifier": {"alpha": ("log", 1e-6, 1e-1), "class_weight": ("one of", (None, "balanced"))},
    "Ridge": {"alpha": ("log", 1e-3, 1e3)},
    "DecisionTreeClassifier": _TREE,
    "DecisionTreeRegressor": {name: _TREE[name] for name in ("max_depth", "min_samples_leaf")},
    "RandomForestClassifier": _FOREST,
    "RandomForestRegressor": _FOREST,
    "ExtraTreesClassifier": _FOREST,
    "ExtraTreesRegressor": _FOREST,
    "GradientBoostingClassifier": _BOOSTER,
    "GradientBoostingRegressor": _BOOSTER,
    "HistGradientBoostingClassifier": _HISTOGRAM,
    "HistGradientBoostingRegressor": _HISTOGRAM,
    "AdaBoostClassifier": {"n_estimators": ("log-int", 10, 200), "learning_rate": ("log", 0.01, 2.0)},
    "MLPClassifier": _PERCEPTRON,
    "MLPRegressor": _PERCEPTRON,
    "SVC": {"C": ("log", 1e-2, 1e2), "gamma": ("one of", ("scale", "auto"))},
    "KNeighborsClassifier": {"n_neighbors": ("log-int", 1, 64), "weights": ("one of", ("uniform", "distance"))},
    "GaussianNB": {"var_smoothing": ("log", 1e-12, 1e-1)},
    "LGBMClassifier": {
        "n_estimators": ("log-int", 10, 200),
        "learning_rate": ("log", 0.01, 0.5),
        "num_leaves": ("log-int", 4, 64),
        "min_child_samples": ("log-int", 2, 100),
    },
    "XGBClassifier": {**_BOOSTER, "min_child_weight": ("log", 0.1, 20.0)},
    "CatBoostClassifier": {
        "iterations": ("log-int", 10, 200),
        "learning_rate": ("log", 0.01, 0.5),
        "depth": ("int", 2, 8),
        "l2_leaf_reg": ("log", 0.1, 20.0),
    },
}
SPACES["LGBMRegressor"], SPACES["XGBRegressor"] = SPACES["LGBMClassifier"], SPACES["XGBClassifier"]
SPACES["CatBoostRegressor"] = SPACES["CatBoostClassifier"]


def space_of(estimator: Any) -> dict[str, Callable[[Any], Any]]:
    """For each parameter of an estimator (behind its pipeline) a function that draws it in a trial of optuna."""
    prefix, final = last_step(estimator)
    kind = type(final).__name__
    if kind not in SPACES:
        raise CapabilityError(
            f"the parameters of {kind!r} that could be searched are not known here; known are {', '.join(SPACES)}."
        )
    return {f"{prefix}{name}": _draw(f"{prefix}{name}", ends) for name, ends in SPACES[kind].items()}


def network_settings(trial: Any, network: Network) -> dict[str, Any]:
    """Shape and training of a native network, drawn in a trial of optuna."""
    layers = trial.suggest_int("layers", 1, max(1, min(5, len(network.weights))))
    width = trial.suggest_int("width", 8, 64, log=True)
    return {
        "widths": tuple(max(4, round(width / 2**place)) for place in range(layers)),
        "learning_rate": trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True),
        "updates": trial.suggest_int("updates", 300, 2_000, log=True),
        "batch": trial.suggest_categorical("batch", [64, 128, 256]),
    }


def describe(settings: Mapping[str, Any]) -> str:
    """Settings as people read them."""
    return ", ".join(f"{name.split('__')[-1]} {_shown(value)}" for name, value in settings.items())


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _draw(name: str, ends: Range) -> Callable[[Any], Any]:
    kind = ends[0]
    if kind == "one of":
        values = ends[1]
        # By number: optuna keeps only plain values, and some of these are tuples.
        return lambda trial: values[trial.suggest_categorical(name, list(range(len(values))))]
    low, high = ends[1], ends[2]
    if kind.endswith("int"):
        return lambda trial: trial.suggest_int(name, low, high, log=kind.startswith("log"))
    return lambda trial: trial.suggest_float(name, low, high, log=kind.startswith("log"))
