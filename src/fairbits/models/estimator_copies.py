"""Copies of a fitted estimator, with a seed of their own, and fitting them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any

from fairbits.errors import CapabilityError, FairbitsError
from fairbits.models.black_box import attribute, reason

#: Names of parameters that take a seed (also whatever ends in ``_seed``), and a number of threads.
_SEEDS, _THREADS = {"random_state", "random_seed", "seed"}, {"n_jobs", "thread_count", "num_threads", "nthread"}
#: Parameters that stop a training by rows of its own, which are not at hand when it is trained again.
_LIGHTGBM_STOPS = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")
_CATBOOST_STOPS = ("early_stopping_rounds", "od_wait", "od_pval", "od_type", "use_best_model", "eval_fraction")
_CATBOOST_TREES = ("iterations", "n_estimators", "num_boost_round", "num_trees")


def fresh_estimator(estimator: Any, seed: int) -> Any:
    """An unfitted copy of a fitted estimator: one thread, every seed in it the same, and as many trees as it kept."""
    try:
        made = _unfitted(estimator)
        known = made.get_params()
    except Exception as error:  # noqa: BLE001 - every library has its own way of saying that it cannot be cloned
        raise CapabilityError(
            f"{type(estimator).__name__!r} cannot be cloned and trained again: {reason(error)}"
        ) from None
    last = {name: name.rpartition("__")[2] for name in known}
    seeds = {name: seed for name, own in last.items() if own in _SEEDS or own.endswith("_seed")}
    single = {name: 1 for name, own in last.items() if own in _THREADS and known[name] != 1}
    return made.set_params(**seeds, **single)


def fit_again(estimator: Any, rows: Any, targets: Any, weights: Mapping[str, Any] | None = None) -> None:
    """Fit a copy, in place and on one core."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether it converged shows in its figures
            estimator.fit(rows, targets, **(weights or {}))
    except FairbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything; its complaint is shown
        raise CapabilityError(f"{type(estimator).__name__} could not be fitted again: {reason(error)}") from None


def _unfitted(estimator: Any) -> Any:
    from sklearn.base import clone

    steps = attribute(estimator, "steps")
    if isinstance(steps, list):  # a step may be what scikit-learn cannot clone
        given = estimator.get_params(deep=False)
        return type(estimator)(**{**given, "steps": [(name, _unfitted(step)) for name, step in steps]})
    if isinstance(estimator, str) or estimator is None:  # a step that does nothing
        return estimator
    library = type(estimator).__module__.partition(".")[0]
    if library == "catboost":
        return _fresh_catboost(estimator)
    made = clone(estimator)
    if library == "xgboost" and attribute(estimator, "early_stopping_rounds") is not None:
        kept = attribute(estimator, "best_iteration")
        made.set_params(early_stopping_rounds=None, **({} if kept is None else {"n_estimators": int(kept) + 1}))
    elif library == "lightgbm":
        made.set_params(**_lightgbm_settings(estimator))
    return made


def _lightgbm_settings(estimator: Any) -> dict[str, Any]:
    """What a copy must be told: when to stop, and which numbers are categories, where ``fit`` alone was told."""
    given = estimator.get_params()
    found: dict[str, Any] = {name: 0 for name in _LIGHTGBM_STOPS if given.get(name)}
    kept = attribute(estimator, "best_iteration_")
    if kept:
        found["n_estimators"] = int(kept)
    booster = attribute(estimator, "booster_")
    if booster is not None and not attribute(booster, "pandas_categorical"):
        about = booster.dump_model(num_iteration=1)["feature_infos"]
        places = [i for i, name in enumerate(booster.feature_name()) if about.get(name, {}).get("values")]
        if places:
            found["categorical_feature"] = places
    return found


def _fresh_catboost(estimator: Any) -> Any:
    """A CatBoost model names only parameters that were given, and its lists are copies, which ``clone`` refuses."""
    given = {name: copy.deepcopy(value) for name, value in estimator.get_params().items()}
    for name in _CATBOOST_STOPS:
        given.pop(name, None)
    kept = attribute(estimator, "tree_count_")
    if kept:
        trees = next((name for name in _CATBOOST_TREES if name in given), _CATBOOST_TREES[0])
        given[trees] = int(kept)
    if not _SEEDS & set(given):
        given["random_seed"] = 0
    given.setdefault("thread_count", 1)
    places = estimator.get_cat_feature_indices()  # also those that were named to ``fit`` alone
    if len(places):
        given["cat_features"] = [int(place) for place in places]
    return type(estimator)(**given)
