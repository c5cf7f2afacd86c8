"""scikit-learn's trees, forests and boosters as tree ensembles, from objects in memory (and so from .skops files).

Only their arrays are looked at. Trees compare float32 values with float64 thresholds; HistGradientBoosting compares
float64 and keeps sets of categories, of which unknown ones count as missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import text_of
from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import NAN, Damaged, Ensemble, Features, Link, Read, Tree, check_tree

_FORESTS = {"RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"}
_TREES = {"DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"}
_BOOSTERS = {"GradientBoostingClassifier", "GradientBoostingRegressor"}
_HISTOGRAMS = {"HistGradientBoostingClassifier", "HistGradientBoostingRegressor"}
#: What becomes of the sums of a HistGradientBoostingRegressor, by its loss.
_LINKS: dict[str, Link] = {
    **dict.fromkeys(("squared_error", "absolute_error", "quantile"), "identity"),
    **dict.fromkeys(("poisson", "gamma"), "exp"),
}
_DUMMIES = {"DummyClassifier", "DummyRegressor"}


def is_sklearn_ensemble(estimator: Any) -> bool:
    """Whether it is one of scikit-learn's own tree models (a subclass may predict otherwise)."""
    kind = type(estimator)
    known = _FORESTS | _TREES | _BOOSTERS | _HISTOGRAMS
    return kind.__name__ in known and kind.__module__.startswith("sklearn.")


def ensemble_of_sklearn(estimator: Any) -> Read:
    kind = type(estimator).__name__
    classes = getattr(estimator, "classes_", None)
    if not hasattr(estimator, "n_features_in_"):
        raise NotNative(f"this {kind} has not been fitted.")
    if isinstance(classes, list) or getattr(estimator, "n_outputs_", 1) > 1:
        raise NotNative(f"this {kind} predicts several targets at once.")
    labels = None if classes is None else tuple(text_of(value) for value in np.asarray(classes).tolist())
    features = int(estimator.n_features_in_)
    if kind in _HISTOGRAMS:
        ensemble = _histogram(estimator, labels)
    elif kind in _BOOSTERS:
        ensemble = _boosted(estimator, labels, features)
    else:
        members = estimator.estimators_ if kind in _FORESTS else [estimator]
        width = 1 if labels is None else len(labels)
        trees = [_tree(member.tree_, classifies=labels is not None) for member in members]
        ensemble = Ensemble.build(
            trees, features=features, base=np.zeros(width), precision="float32", divisor=float(max(len(trees), 1))
        )
    names = tuple(str(name) for name in getattr(estimator, "feature_names_in_", ()))
    number = 0 if labels is None else len(labels)
    if number == 1:
        raise NotNative(f"this {kind} knows a single class.")
    return Read(ensemble, number, Features(names, ensemble.features), f"the {kind}", labels=labels)


def _tree(tree: Any, *, classifies: bool, output: int = 0) -> Tree:
    leaf = np.asarray(tree.children_left) == -1
    values = np.asarray(tree.value, dtype=np.float64)
    if values.ndim != 3 or values.shape[1] != 1:
        raise Damaged("a tree has values of an unknown shape.")
    values = values[:, 0, :]
    if classifies:
        totals = values.sum(axis=1, keepdims=True)
        counted = np.abs(totals - 1) > 1e-6  # files of scikit-learn before 1.3 hold counts; today's hold the shares
        values = np.divide(values, totals, out=values.copy(), where=counted & (totals > 0))
    missing_left = getattr(tree, "missing_go_to_left", None)
    n = len(leaf)
    return Tree(
        feature=np.where(leaf, -1, np.asarray(tree.feature)).astype(np.int64),
        threshold=np.where(leaf, 0.0, np.asarray(tree.threshold, dtype=np.float64)),
        left=np.asarray(tree.children_left, dtype=np.int64),
        right=np.asarray(tree.children_right, dtype=np.int64),
        missing=np.full(n, NAN, dtype=np.int8),
        missing_left=np.zeros(n, np.bool_) if missing_left is None else np.asarray(missing_left).astype(np.bool_),
        values=values,
        output=output,
    )


def _boosted(estimator: Any, labels: tuple[str, ...] | None, features: int) -> Ensemble:
    """Gradient boosting: regression trees for every class, on top of a first guess that is the same for everybody."""
    start = estimator.init_
    if start != "zero" and type(start).__name__ not in _DUMMIES:
        raise NotNative(f"it starts from another model's predictions (init = {type(start).__name__}).")
    rounds = np.asarray(estimator.estimators_, dtype=object)
    outputs = rounds.shape[1]
    base = np.asarray(estimator._raw_predict_init(np.zeros((1, features), dtype=np.float32)), dtype=np.float64)
    trees = [_tree(member.tree_, classifies=False, output=k) for members in rounds for k, member in enumerate(members)]
    return Ensemble.build(
        trees,
        features=features,
        base=base.ravel()[:outputs],
        link="identity" if labels is None else "logistic" if outputs == 1 else "softmax",
        slope=2.0 if labels is not None and estimator.loss == "exponential" else 1.0,
        precision="float32",
        scale=float(estimator.learning_rate),
    )


def _histogram(estimator: Any, labels: tuple[str, ...] | None) -> Ensemble:
    rounds = estimator._predictors
    outputs = len(rounds[0]) if rounds else np.size(estimator._baseline_prediction)
    bins = estimator._bin_mapper
    known, places = (
        bins.make_known_categories_bitsets() if hasattr(bins, "make_known_categories_bitsets") else (None, None)
    )
    trees = [
        _histogram_tree(predictor, known, places, output=k) for round_ in rounds for k, predictor in enumerate(round_)
    ]
    if labels is None and estimator.loss not in _LINKS:
        raise NotNative(f"its loss {estimator.loss!r} is not known here.")
    return Ensemble.build(
        trees,
        features=int(getattr(estimator, "_n_features", estimator.n_features_in_)),
        base=np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel(),
        link=_LINKS[estimator.loss] if labels is None else "logistic" if outputs == 1 else "softmax",
    )


def _histogram_tree(predictor: Any, known: Any, places: Any, *, output: int) -> Tree:
    nodes = predictor.nodes
    leaf = nodes["is_leaf"].astype(np.bool_)
    split = nodes["is_categorical"].astype(np.bool_) & ~leaf
    categories, seen = {}, {}
    for node in np.flatnonzero(split):
        row = int(nodes["bitset_idx"][node])
        if not 0 <= row < len(predictor.raw_left_cat_bitsets):
            raise Damaged("a tree has a split whose categories are missing.")
        categories[int(node)] = _bits(predictor.raw_left_cat_bitsets[row])
        seen[int(node)] = _bits(known[int(places[nodes["feature_idx"][node]])])
    return Tree(
        feature=np.where(leaf, -1, nodes["feature_idx"]).astype(np.int64),
        threshold=np.where(leaf | split, 0.0, nodes["num_threshold"]).astype(np.float64),
        left=np.where(leaf, 0, nodes["left"]).astype(np.int64),
        right=np.where(leaf, 0, nodes["right"]).astype(np.int64),
        missing=np.full(len(nodes), NAN, dtype=np.int8),
        missing_left=nodes["missing_go_to_left"].astype(np.bool_),
        values=nodes["value"].astype(np.float64)[:, None],
        output=output,
        categories=categories or None,
        known=seen or None,
    )


def check_trees(model: Any) -> None:
    """Refuse an object with a scikit-learn tree whose nodes make no tree: predicting would follow them anywhere."""
    waiting, seen = [model], set()
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, str | bytes | int | float | bool | type(None)):
            continue
        seen.add(id(found))
        if type(found).__name__ == "Tree" and type(found).__module__ == "sklearn.tree._tree":
            tree = _tree(found, classifies=False)
            check_tree(tree, 0, int(found.n_features), tree.values.shape[1])
        elif type(found).__name__ == "TreePredictor":
            tree = _histogram_tree(found, [np.zeros(8, np.uint32)], np.zeros(2**16, np.int64), output=0)
            check_tree(tree, 0, 2**16, 1)
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, list | tuple | set) or (isinstance(found, np.ndarray) and found.dtype == object):
            waiting += list(np.ravel(found)) if isinstance(found, np.ndarray) else list(found)
        elif hasattr(found, "__dict__"):
            waiting += vars(found).values()


def _bits(words: Any) -> npt.NDArray[np.int64]:
    flags = np.unpackbits(np.asarray(words, dtype=np.uint32).view(np.uint8), bitorder="little")
    return np.flatnonzero(flags).astype(np.int64)
