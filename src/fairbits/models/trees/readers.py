"""Each library's trees as tree ensembles.

The boosters of LightGBM, XGBoost and CatBoost are read by way of what each library itself writes; scikit-learn's trees,
forests and boosters from objects in memory (and so from .skops files), of which only the arrays are looked at. Trees
of scikit-learn compare float32 values with float64 thresholds; its HistGradientBoosting compares float64 and keeps sets
of categories, of which unknown ones count as missing.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute, text_of
from fairbits.functions import c_log
from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import NAN, Damaged, Ensemble, Link, Read, Tree, check_tree

# LightGBM writes lines of ``key=value``, first of the model, then of each tree. How a split decides:
# ``include/LightGBM/tree.h`` (NumericalDecision, CategoricalDecision); what predictions are made of the sums: the
# ConvertOutput of each objective.

#: By objective: how sums become predictions, and how many classes there are (None: not known, 0: a regression).
_LIGHTGBM: dict[str, tuple[Link, int | None]] = {
    **{"binary": ("logistic", 2), "multiclass": ("softmax", 0), "multiclassova": ("logistic_each", 0)},
    **dict.fromkeys(("cross_entropy", "xentropy"), ("logistic", None)),
    **dict.fromkeys(("cross_entropy_lambda", "xentlambda"), ("softplus", None)),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), ("exp", 0)),
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), ("identity", 0)),
    **dict.fromkeys(("lambdarank", "rank_xendcg"), ("identity", 0)),
    **dict.fromkeys(("custom", "none", ""), ("identity", None)),
}


def ensemble_of_booster(booster: Any) -> Read:
    head, *blocks = booster.model_to_string().partition("\nend of trees")[0].split("\nTree=")
    facts = _facts(head)
    per_round = int(facts["num_tree_per_iteration"])
    objective, *details = facts.get("objective", "custom").split() or ["custom"]
    link, slope, classes = _link_of_text(objective, dict(entry.partition(":")[::2] for entry in details), per_round)
    parts = [_facts(block) for block in blocks]
    if any(part.get("is_linear", "0") != "0" for part in parts):
        raise NotNative("its leaves hold linear models.")
    trees = [_tree_of_text(part, number % per_round) for number, part in enumerate(parts)]
    divisor = float(max(1, len(trees) // per_round)) if "average_output" in facts else 1.0
    names, infos = facts["feature_names"].split(), facts["feature_infos"].split()
    ensemble = Ensemble.build(
        trees, features=len(names), base=np.zeros(per_round), link=link, slope=slope, divisor=divisor
    )
    categorical = [i for i, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    lists = [tuple(known) for known in booster.pandas_categorical or ()]
    if len(lists) > len(categorical) + infos.count("none"):  # ordered ones are numbers to it; "none" never varied
        raise NotNative("its categories do not say which columns they belong to.")
    known = lists if len(lists) == len(categorical) else [None] * len(categorical)
    values = dict(zip(categorical, known, strict=True))
    return Read(ensemble, classes, "the LightGBM model", tuple(names), values, objective=objective)


#: What predictions are made of; LightGBM's reader does without the rest, and trusts whatever stands in it.
_HEAD_KEYS = (
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"),
    *("objective", "average_output", "feature_names", "feature_infos"),
)
_TREE_KEYS = (
    *("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child", "right_child"),
    *("leaf_value", "cat_boundaries", "cat_threshold", "is_linear", "shrinkage"),
    *("leaf_const", "num_features", "leaf_features", "leaf_coeff"),
)


def clean_text(text: str) -> str:
    """A file's text without what predictions do not need; refused where its counts and numbers do not fit each other.

    LightGBM's own reader follows whatever a file says, out of its memory too.
    """
    trees, end, rest = text.replace("\r\n", "\n").partition("\nend of trees")
    head, *blocks = trees.split("\nTree=")
    facts = _facts(head)
    features, per_round = int(facts["max_feature_idx"]) + 1, int(facts["num_tree_per_iteration"])
    counted = [len(facts.get(key, "").split()) for key in ("feature_names", "feature_infos")]
    cut = "\nparameters:" in rest and "\nend of parameters" not in rest
    if (
        cut
        or not end
        or counted != [features, features]
        or per_round < 1
        or int(facts.get("num_class", 1)) not in (1, per_round)
    ):
        raise ValueError("it is cut off, or its features or classes do not add up")
    announced = len(facts["tree_sizes"].split()) if "tree_sizes" in facts else len(blocks)
    if announced != len(blocks):
        raise ValueError(f"it announces {announced} trees, but has {len(blocks)}")
    lines = ["tree", *_lines(facts, _HEAD_KEYS), ""]
    for number, block in enumerate(blocks):
        found = _facts(block)
        _check_tree(found, features, number)
        lines += [f"Tree={number}", *_lines(found, _TREE_KEYS), "", ""]
    _, mark, categories = rest.rpartition("pandas_categorical:")
    return "\n".join([*lines, "end of trees", "", mark + categories.strip().partition("\n")[0], ""])


def _lines(facts: dict[str, str], keys: tuple[str, ...]) -> list[str]:
    return [key if key == "average_output" else f"{key}={facts[key]}" for key in keys if key in facts]


def _check_tree(facts: dict[str, str], features: int, number: int) -> None:
    leaves = int(facts["num_leaves"])
    tree = _tree_of_text(facts, 0)
    if leaves < 1 or len(_numbers(facts, "split_feature")) != leaves - 1 or len(tree.feature) != 2 * leaves - 1:
        raise ValueError(f"tree {number + 1} has more or fewer numbers than nodes")
    if (_numbers(facts, "split_feature") < 0).any():
        raise ValueError(f"tree {number + 1} has a feature that does not exist")
    try:
        check_tree(tree, number, features, 1)
    except Damaged as error:
        raise ValueError(str(error)) from None
    for key in ("shrinkage", "leaf_const", "leaf_coeff", "num_features", "leaf_features"):
        _numbers(facts, key, np.float64)
    if facts.get("is_linear", "0") not in ("0", "1"):
        raise ValueError(f"tree {number + 1} says neither that it is linear nor that it is not")
    if facts.get("is_linear") == "1":
        terms, used = _numbers(facts, "num_features"), _numbers(facts, "leaf_features")
        sizes = [len(facts.get(key, "").split()) for key in ("leaf_const", "leaf_features", "leaf_coeff")]
        if len(terms) != leaves or (terms < 0).any() or sizes != [leaves, *[int(terms.sum())] * 2]:
            raise ValueError(f"tree {number + 1} has more or fewer terms than it says")
        if ((used < 0) | (used >= features)).any():
            raise ValueError(f"tree {number + 1} has a feature that does not exist")


def _link_of_text(objective: str, settings: dict[str, str], outputs: int) -> tuple[Link, float, int | None]:
    """How sums become predictions, the factor before a sigmoid, and how many classes there are."""
    if objective not in _LIGHTGBM:
        raise NotNative(f"its objective {objective!r} is not known here.")
    link, classes = _LIGHTGBM[objective]
    slope = float(settings.get("sigmoid", "1")) if objective in ("binary", "multiclassova") else 1.0
    if link == "identity" and classes == 0 and "sqrt" in settings:
        link = "square"
    return link, slope, outputs if link in ("softmax", "logistic_each") else classes


def _tree_of_text(facts: dict[str, str], output: int) -> Tree:
    values, threshold = (_numbers(facts, key, np.float64) for key in ("leaf_value", "threshold"))
    feature, decision = _numbers(facts, "split_feature"), _numbers(facts, "decision_type")
    inner = len(feature)
    # Leaves follow the splits: leaf i, written as -1 - i, is node inner + i.
    children = [_numbers(facts, key) for key in ("left_child", "right_child")]
    left, right = (np.where(child < 0, inner - 1 - child, child) for child in children)
    more = np.zeros(len(values), dtype=np.int64)
    return Tree(
        feature=np.concatenate([feature, more - 1]),
        threshold=np.concatenate([np.where(decision & 1, 0.0, threshold), more]),
        left=np.concatenate([left, more]),
        right=np.concatenate([right, more]),
        missing=np.concatenate([(decision >> 2) & 3, more]).astype(np.int8),
        missing_left=np.concatenate([(decision & 3) == 2, more.astype(bool)]),
        values=np.concatenate([np.zeros(inner), values])[:, None],
        output=output,
        categories=_sets_of_text(facts, np.flatnonzero(decision & 1), threshold) or None,
    )


def _sets_of_text(
    facts: dict[str, str], nodes: npt.NDArray[np.int64], threshold: npt.NDArray[np.float64]
) -> dict[int, npt.NDArray[np.int64]]:
    """The categories that go left, from bits in words of 32; refused where a split's are not there."""
    bounds = _numbers(facts, "cat_boundaries")
    words = _numbers(facts, "cat_threshold").astype(np.uint32)
    sets = int(facts.get("num_cat", 0))
    which = threshold[nodes]
    fit = len(bounds) == (sets + 1 if sets or len(bounds) else 0)
    ordered = len(bounds) == 0 or (bounds[0] == 0 and (np.diff(bounds) >= 0).all() and bounds[-1] == len(words))
    if not fit or not ordered or ((which < 0) | (which >= sets)).any():
        raise ValueError("a split has categories that are missing")
    spans = [(int(node), *bounds[int(threshold[node]) :][:2]) for node in nodes]
    return {node: _bits(words[start:end]) for node, start, end in spans}


def _facts(block: str) -> dict[str, str]:
    """The ``key=value`` lines; a line without a sign is a switch."""
    lines = (line.partition("=") for line in block.split("\n"))
    return {key.strip(): value for key, _, value in lines if key.strip()}


def _numbers(facts: dict[str, str], key: str, kind: Any = np.int64) -> npt.NDArray[Any]:
    return np.array(facts.get(key, "").split(), dtype=kind)


# XGBoost writes JSON (``doc/model.schema``). It compares in float32 and goes left where ``value < condition``; those
# in a set of categories go right. It adds up in float32, from the base score on, tree after tree.

_IDENTITY = (
    *("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror"),
    *("reg:linear", "reg:expectileerror", "rank:pairwise", "rank:ndcg", "rank:map"),
)
_EXPONENTIAL = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_LOGISTIC = ("binary:logistic", "reg:logistic")
#: By objective: how sums become predictions, and whether these decide between classes (None: not known).
_XGBOOST: dict[str, tuple[Link, bool | None]] = {
    **{"binary:logistic": ("logistic", True), "reg:logistic": ("logistic", None), "binary:hinge": ("step", True)},
    **{"binary:logitraw": ("identity", None), **dict.fromkeys(("multi:softprob", "multi:softmax"), ("softmax", True))},
    **{**dict.fromkeys(_EXPONENTIAL, ("exp", False)), **dict.fromkeys(_IDENTITY, ("identity", False))},
}
#: Numbers that tables often hold in place of a missing one.
_SENTINEL = re.compile(r"-?9{3,}")


def ensemble_of_document(document: Any, *, bare: bool = False) -> Read:
    """Read a model's document; a ``bare`` booster takes all of its trees."""
    learner = document["learner"]
    facts = learner["learner_model_param"]
    features, classes = int(facts["num_feature"]), int(facts["num_class"])
    outputs = max(classes, int(facts.get("num_target", 1)), 1)
    objective = str(learner["objective"]["name"])
    if objective not in _XGBOOST:
        raise NotNative(f"its objective {objective!r} is not known here.")
    link, decides = _XGBOOST[objective]
    link = "logistic_each" if link == "logistic" and outputs > 1 else link
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree":
        what = {"gblinear": "has weights and no trees", "dart": "weighs its trees"}
        raise NotNative(f"its booster is {booster['name']}, which {what.get(booster['name'], 'is not known here')}.")
    base = _base(facts, objective, outputs, int(document["version"][0]))
    model = booster["model"]
    trees = [_tree_of_document(tree, group) for tree, group in zip(model["trees"], model["tree_info"], strict=True)]
    best = learner["attributes"].get("best_iteration")
    bounds = model.get("iteration_indptr")
    early = not bare and best is not None and bounds is not None  # trees after the best round do not predict
    kept = min(bounds[min(int(best) + 1, len(bounds) - 1)], len(trees)) if early else len(trees)
    ensemble = Ensemble.build(
        trees[:kept], features=features, base=base, link=link, precision="float32", adds="float32"
    )
    note = (
        f"the model was trained with early stopping, so its first {kept:,} of {len(trees):,} trees predict, as "
        f"XGBoost's scikit-learn classes have it (a bare Booster takes all of them)."
    )
    number = {True: classes or 2, False: 0, None: None}[decides]
    known = _remembered(model.get("cats") or {}, learner.get("feature_types") or [])
    return Read(
        ensemble,
        number,
        "the XGBoost model",
        tuple(learner.get("feature_names") or ()),
        known,
        refuses=True,
        objective=objective,
        notes=(note,) if kept < len(trees) else (),
    )


def missing_notes(attributes: Sequence[Attribute]) -> tuple[str, ...]:
    """A note where numbers end in one that often stands for a missing value: the file does not say which one did."""
    found = [
        (attribute.name, end)
        for attribute in attributes
        if attribute.kind != "category" and not attribute.columns
        for end in (attribute.low, attribute.upper)
        if _SENTINEL.fullmatch(f"{end:.15g}") or (end == attribute.low and end in (-1, -9, -99) and attribute.discrete)
    ]
    if not found:
        return ()
    named = ", ".join(f"{name} ({end:g})" for name, end in found[:3]) + (", …" if len(found) > 3 else "")
    name, end = found[0]
    return (
        f"an XGBoost file does not say which number its training took for a missing value, and some end in one that "
        f"often is: {named}; if it was trained with missing={end:g}, leave those cells of the table empty and write "
        f'missing = "model" under [attributes.{name}].',
    )


def _base(facts: Mapping[str, Any], objective: str, outputs: int, major: int) -> npt.NDArray[np.float64]:
    """What the sums start from: the stated value is a prediction, except where nothing bends it."""
    stated = np.array(str(facts["base_score"]).strip("[] ").split(","), dtype=np.float32)
    if objective in _LOGISTIC or (objective == "binary:logitraw" and major < 3):
        stated = -c_log(np.float32(1) / stated - np.float32(1))
    elif objective in _EXPONENTIAL:
        stated = c_log(stated)
    return np.broadcast_to(stated, outputs).astype(np.float64)


def _tree_of_document(tree: Mapping[str, Any], group: int) -> Tree:
    left, right, feature = (
        np.array(tree[name], np.int64) for name in ("left_children", "right_children", "split_indices")
    )
    leaf = left == -1
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise NotNative("its leaves hold a value for every output.")
    condition = np.array(tree["split_conditions"], np.float32)
    missing_left = np.array(tree["default_left"], np.int64) != 0
    # "Smaller than" in float32 is "at most the next float32 below".
    below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    members = np.array(tree["categories"], np.int64)
    spans = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    sets = {node: members[start : start + size] for node, start, size in spans}
    for node in sets:  # the set goes right there; here a set goes left
        left[node], right[node], missing_left[node] = right[node], left[node], not missing_left[node]
        below[node] = 0.0
    return Tree(
        feature=np.where(leaf, -1, feature),
        threshold=np.where(leaf, 0.0, below),
        left=left,
        right=right,
        missing=np.full(len(left), NAN, dtype=np.int8),
        missing_left=missing_left,
        values=np.where(leaf, condition, 0.0).astype(np.float64)[:, None],
        output=group,
        categories=sets or None,
    )


def _remembered(cats: Mapping[str, Any], kinds: Sequence[str]) -> dict[int, tuple[Any, ...] | None]:
    """Which features are categories, and the values that XGBoost (3.1 and later) remembers of each."""
    found: dict[int, tuple[Any, ...] | None] = {i: None for i, kind in enumerate(kinds) if kind == "c"}
    for i, entry in enumerate(cats.get("enc") or ()):
        values = entry["values"]
        if len(values) and "offsets" in entry:
            raw = bytes(value & 0xFF for value in values)
            values = [raw[a:b].decode("utf-8", errors="replace") for a, b in pairwise(entry["offsets"])]
        if values:
            found[i] = tuple(values)
    return found


# CatBoost writes JSON. Symmetric trees ask one question per level; others are nested. A question is a comparison in
# float32 (``value > border``). Models that take categories turn them into statistics and hashes of their own, and are
# asked through CatBoost.

_VALUES = (
    *("RMSE", "MAE", "Quantile", "Expectile", "Huber", "MAPE", "LogCosh", "Lq", "LogLinQuantile", "MSLE"),
    *("MedianAbsoluteError", "SMAPE", "R2", "FairLoss"),
)
#: By loss function: how sums become predictions, and whether these are of classes.
_CATBOOST: dict[str, tuple[Link, bool]] = {
    **{"Logloss": ("logistic", True), "CrossEntropy": ("logistic", True), "MultiClass": ("softmax", True)},
    **{"MultiClassOneVsAll": ("logistic_each", True), "Poisson": ("exp", False), "Tweedie": ("exp", False)},
    **dict.fromkeys(_VALUES, ("identity", False)),
}


def ensemble_of_catboost(model: Any) -> Read:
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
    scale, bias = document["scale_and_bias"]
    if float(scale) != 1.0:
        raise NotNative(f"its sums are scaled by {float(scale):g}.")
    trees = [_symmetric(tree, floats) for tree in document.get("oblivious_trees", ())]
    trees += [_nested(tree, floats) for tree in document.get("trees", ())]
    loss = facts.get("params", {}).get("loss_function", {}).get("type", "")
    if loss not in _CATBOOST:
        raise NotNative(f"its loss function {loss!r} is not known here.")
    link, decides = _CATBOOST[loss]
    outputs = trees[0].values.shape[1] if trees else np.size(bias)
    classes, base = max(outputs, 2) if decides else 0, np.broadcast_to(np.ravel(bias).astype(np.float64), outputs)
    ensemble = Ensemble.build(trees, features=count, base=base, link=link, precision="float32", base_last=True)
    labels = facts.get("class_params", {}).get("class_names") if classes else None
    texts = None if not labels or len(labels) != classes else tuple(text_of(value) for value in labels)
    names = tuple(str(name) for name in model.feature_names_[:count])
    return Read(ensemble, classes, "the CatBoost model", names, objective=loss, labels=texts)


def _symmetric(tree: Any, floats: Mapping[int, Any]) -> Tree:
    """One question per level; the answers are the bits of the leaf, the first question's the lowest."""
    splits = tree.get("splits") or []
    depth = len(splits)
    leaves = np.array(tree["leaf_values"], np.float64).reshape(1 << depth, -1)
    turned = np.arange(1 << depth).reshape((2,) * depth).T.ravel()  # the bits of each number from right to left
    inner = [splits[level] for level in np.repeat(np.arange(depth), 1 << np.arange(depth))]
    values = np.concatenate([np.zeros((len(inner), leaves.shape[1])), leaves[turned]])
    return _tree_of_questions([*inner, *[None] * len(leaves)], values, floats)


def _nested(tree: Any, floats: Mapping[int, Any]) -> Tree:
    nodes = [tree]
    for node in nodes:  # grows while it is read: parents come before their children
        nodes += [node["left"], node["right"]] if "split" in node else []
    width = next(np.size(node["value"]) for node in nodes if "split" not in node)
    values = np.array([np.zeros(width) if "split" in node else np.ravel(node["value"]) for node in nodes])
    return _tree_of_questions([node.get("split") for node in nodes], values, floats)


def _tree_of_questions(splits: Sequence[Any], values: npt.NDArray[np.float64], floats: Mapping[int, Any]) -> Tree:
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


_FORESTS = {"RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"}
_TREES = {"DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"}
_BOOSTED = {"GradientBoostingClassifier", "GradientBoostingRegressor"}
_HISTOGRAMS = {"HistGradientBoostingClassifier", "HistGradientBoostingRegressor"}
#: What becomes of the sums of a HistGradientBoostingRegressor, by its loss.
_LOSSES: dict[str, Link] = {
    **dict.fromkeys(("squared_error", "absolute_error", "quantile"), "identity"),
    **dict.fromkeys(("poisson", "gamma"), "exp"),
}


def is_sklearn_ensemble(estimator: Any) -> bool:
    """Whether it is one of scikit-learn's own tree models (a subclass may predict otherwise)."""
    known = type(estimator).__name__ in _FORESTS | _TREES | _BOOSTED | _HISTOGRAMS
    return known and type(estimator).__module__.startswith("sklearn.")


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
    elif kind in _BOOSTED:
        ensemble = _boosted(estimator, labels, features)
    else:
        members = estimator.estimators_ if kind in _FORESTS else [estimator]
        width = 1 if labels is None else len(labels)
        trees = [_tree_of_arrays(member.tree_, classifies=labels is not None) for member in members]
        ensemble = Ensemble.build(
            trees, features=features, base=np.zeros(width), precision="float32", divisor=float(max(len(trees), 1))
        )
    if labels is not None and len(labels) == 1:
        raise NotNative(f"this {kind} knows a single class.")
    names = tuple(str(name) for name in getattr(estimator, "feature_names_in_", ()))
    return Read(ensemble, len(labels or ()), f"the {kind}", names, labels=labels)


def _tree_of_arrays(tree: Any, *, classifies: bool, output: int = 0) -> Tree:
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
    start = type(estimator.init_).__name__
    if estimator.init_ != "zero" and start not in ("DummyClassifier", "DummyRegressor"):
        raise NotNative(f"it starts from another model's predictions (init = {start}).")
    rounds = np.asarray(estimator.estimators_, dtype=object)
    outputs = rounds.shape[1]
    base = np.asarray(estimator._raw_predict_init(np.zeros((1, features), dtype=np.float32)), dtype=np.float64)
    trees = [
        _tree_of_arrays(member.tree_, classifies=False, output=k)
        for members in rounds
        for k, member in enumerate(members)
    ]
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
    if labels is None and estimator.loss not in _LOSSES:
        raise NotNative(f"its loss {estimator.loss!r} is not known here.")
    return Ensemble.build(
        trees,
        features=int(getattr(estimator, "_n_features", estimator.n_features_in_)),
        base=np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel(),
        link=_LOSSES[estimator.loss] if labels is None else "logistic" if outputs == 1 else "softmax",
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
            tree = _tree_of_arrays(found, classifies=False)
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
