"""XGBoost's boosters as tree ensembles, by way of the document that XGBoost itself writes.

XGBoost compares in float32 and goes left where ``value < condition``; categories in a split's set go right. It adds up
in float32, from the base score on, tree after tree. Its schema: ``doc/model.schema`` of XGBoost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute
from fairbits.functions import c_log
from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import NAN, Ensemble, Link, Tree
from fairbits.models.trees.features import Features, Read

_IDENTITY = (
    *("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror"),
    *("reg:linear", "reg:expectileerror", "rank:pairwise", "rank:ndcg", "rank:map"),
)
_EXPONENTIAL = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_LOGISTIC = ("binary:logistic", "reg:logistic")
#: By objective: how sums become predictions, and whether these decide between classes (None: not known).
_LINKS: dict[str, tuple[Link, bool | None]] = {
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
    if objective not in _LINKS:
        raise NotNative(f"its objective {objective!r} is not known here.")
    link, decides = _LINKS[objective]
    link = "logistic_each" if link == "logistic" and outputs > 1 else link
    booster = learner["gradient_booster"]
    if booster["name"] != "gbtree":
        what = {"gblinear": "has weights and no trees", "dart": "weighs its trees"}
        raise NotNative(f"its booster is {booster['name']}, which {what.get(booster['name'], 'is not known here')}.")
    base = _base(facts, objective, outputs, int(document["version"][0]))
    model = booster["model"]
    trees = [_tree(tree, group) for tree, group in zip(model["trees"], model["tree_info"], strict=True)]
    best, bounds = learner["attributes"].get("best_iteration"), model.get("iteration_indptr")
    early = not bare and best is not None and bounds is not None  # trees after the best round do not predict
    kept = min(bounds[min(int(best) + 1, len(bounds) - 1)], len(trees)) if early else len(trees)
    ensemble = Ensemble.build(
        trees[:kept], features=features, base=base, link=link, precision="float32", adds="float32"
    )
    notes: tuple[str, ...] = ()
    if kept < len(trees):
        notes = (
            f"the model was trained with early stopping, so its first {kept:,} of {len(trees):,} trees predict, as "
            f"XGBoost's scikit-learn classes have it (a bare Booster takes all of them).",
        )
    number = {True: classes or 2, False: 0, None: None}[decides]
    names = tuple(learner.get("feature_names") or ())
    made_up = names == tuple(f"f{i}" for i in range(features))
    known = _categories(model.get("cats") or {}, learner.get("feature_types") or [])
    made = Features(() if made_up else names, features, known, refuses=True)
    return Read(ensemble, number, made, "the XGBoost model", objective=objective, notes=notes)


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


def _tree(tree: Mapping[str, Any], group: int) -> Tree:
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


def _categories(cats: Mapping[str, Any], kinds: Sequence[str]) -> dict[int, tuple[Any, ...] | None]:
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
