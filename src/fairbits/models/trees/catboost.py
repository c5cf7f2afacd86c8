"""CatBoost's models as tree ensembles, by way of the JSON that CatBoost itself writes.

Symmetric trees ask one question per level; others are nested. A question is a comparison in float32
(``value > border``). Models that take categories turn them into statistics and hashes of their own, and are asked
through CatBoost.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import text_of
from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import NAN, Ensemble, Link, Tree
from fairbits.models.trees.features import Features, Read

_REGRESSIONS = (
    *("RMSE", "MAE", "Quantile", "Expectile", "Huber", "MAPE", "LogCosh", "Lq", "LogLinQuantile", "MSLE"),
    *("MedianAbsoluteError", "SMAPE", "R2", "FairLoss"),
)
#: By loss function: how sums become predictions, and whether these are of classes.
_LINKS: dict[str, tuple[Link, bool]] = {
    **{"Logloss": ("logistic", True), "CrossEntropy": ("logistic", True), "MultiClass": ("softmax", True)},
    **{"MultiClassOneVsAll": ("logistic_each", True), "Poisson": ("exp", False), "Tweedie": ("exp", False)},
    **dict.fromkeys(_REGRESSIONS, ("identity", False)),
}


def ensemble_of_catboost(model: Any) -> Read:
    """Read a fitted model in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text(encoding="utf-8"))
    info, facts = document["features_info"], document["model_info"]
    other = next((kind for kind in ("categorical", "text", "embedding") if info.get(f"{kind}_features")), None)
    if other is not None:
        raise NotNative(f"it has {other} features, which CatBoost itself turns into numbers.")
    floats = {int(feature["feature_index"]): feature for feature in info["float_features"]}
    count = 1 + max(int(feature["flat_feature_index"]) for feature in floats.values())
    names = tuple(str(name) for name in model.feature_names_)[:count]
    made_up = all(name in ("", str(place)) for place, name in enumerate(names))  # columns that never had names
    scale, bias = document["scale_and_bias"]
    if float(scale) != 1.0:
        raise NotNative(f"its sums are scaled by {float(scale):g}.")
    if "oblivious_trees" in document:
        trees = [_symmetric(tree, floats) for tree in document["oblivious_trees"]]
    else:
        trees = [_nested(tree, floats) for tree in document["trees"]]
    outputs = trees[0].values.shape[1] if trees else np.size(bias)
    loss = facts.get("params", {}).get("loss_function", {}).get("type", "")
    if loss not in _LINKS:
        raise NotNative(f"its loss function {loss!r} is not known here.")
    link, decides = _LINKS[loss]
    classes = max(outputs, 2) if decides else 0
    base = np.broadcast_to(np.ravel(bias).astype(np.float64), outputs)
    ensemble = Ensemble.build(trees, features=count, base=base, link=link, precision="float32", base_last=True)
    labels = facts.get("class_params", {}).get("class_names") if classes else None
    texts = None if not labels or len(labels) != classes else tuple(text_of(value) for value in labels)
    features = Features(() if made_up else names, count)
    return Read(ensemble, classes, features, "the CatBoost model", objective=loss, labels=texts)


def _symmetric(tree: Any, floats: Mapping[int, Any]) -> Tree:
    """One question per level; the answers are the bits of the leaf, the first question's the lowest."""
    splits = tree.get("splits") or []
    depth = len(splits)
    leaves = np.array(tree["leaf_values"], np.float64).reshape(1 << depth, -1)
    turned = np.arange(1 << depth).reshape((2,) * depth).T.ravel()  # the bits of each number from right to left
    inner = [splits[level] for level in np.repeat(np.arange(depth), 1 << np.arange(depth))]
    values = np.concatenate([np.zeros((len(inner), leaves.shape[1])), leaves[turned]])
    return _tree([*inner, *[None] * len(leaves)], values, floats)


def _nested(tree: Any, floats: Mapping[int, Any]) -> Tree:
    nodes = [tree]
    for node in nodes:  # grows while it is read: parents come before their children
        nodes += [node["left"], node["right"]] if "split" in node else []
    width = next(np.size(node["value"]) for node in nodes if "split" not in node)
    values = np.array([np.zeros(width) if "split" in node else np.ravel(node["value"]) for node in nodes])
    return _tree([node.get("split") for node in nodes], values, floats)


def _tree(splits: Sequence[Any], values: npt.NDArray[np.float64], floats: Mapping[int, Any]) -> Tree:
    """A tree whose nodes stand level by level, the two children of a split side by side; None asks nothing."""
    strange = next((split["split_type"] for split in splits if split and split["split_type"] != "FloatFeature"), None)
    if strange is not None:
        raise NotNative(f"it asks questions of the kind {strange!r}.")
    asked = [None if split is None else floats[int(split["float_feature_index"])] for split in splits]
    inner = np.array([split is not None for split in splits])
    first = np.where(inner, 2 * np.cumsum(inner) - 1, 0)
    return Tree(
        feature=np.array([-1 if one is None else int(one["flat_feature_index"]) for one in asked]),
        threshold=np.array([0.0 if split is None else float(np.float32(split["border"])) for split in splits]),
        left=first,
        right=first + inner,
        missing=np.full(len(inner), NAN, np.int8),
        missing_left=np.array([one is not None and one.get("nan_value_treatment") != "AsTrue" for one in asked]),
        values=values,
    )
