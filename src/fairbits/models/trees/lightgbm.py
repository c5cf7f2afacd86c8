"""LightGBM's boosters as tree ensembles, by way of the text that LightGBM itself writes.

The format is lines of ``key=value``, first of the model, then of each tree. How a split decides:
``include/LightGBM/tree.h`` (NumericalDecision, CategoricalDecision); what predictions are made of the sums: the
ConvertOutput of each objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import Ensemble, Link, Tree
from fairbits.models.trees.features import Features, Read

_REGRESSIONS = {"regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg"}
_EXPONENTIAL = {"poisson", "gamma", "tweedie"}


def ensemble_of_booster(booster: Any) -> Read:
    """Read a booster in memory."""
    head, *blocks = booster.model_to_string().partition("\nend of trees")[0].split("\nTree=")
    facts = _facts(head)
    per_round = int(facts["num_tree_per_iteration"])
    objective, *details = facts.get("objective", "custom").split() or ["custom"]
    link, slope, classes = _link(objective, dict(entry.partition(":")[::2] for entry in details), per_round)
    trees = [_tree(_facts(block), number % per_round) for number, block in enumerate(blocks)]
    divisor = float(max(1, len(trees) // per_round)) if "average_output" in facts else 1.0
    names, infos = tuple(facts["feature_names"].split()), facts["feature_infos"].split()
    ensemble = Ensemble.build(
        trees, features=len(names), base=np.zeros(per_round), link=link, slope=slope, divisor=divisor
    )
    categorical = [i for i, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    lists = [tuple(known) for known in booster.pandas_categorical or ()]
    values: dict[int, tuple[Any, ...] | None] = dict.fromkeys(categorical)
    if len(lists) == len(categorical):
        values = dict(zip(categorical, lists, strict=True))
    made_up = names == tuple(f"Column_{i}" for i in range(len(names)))
    features = Features(() if made_up else names, len(names), values)
    return Read(ensemble, classes, features, "the LightGBM model", objective=objective)


#: What predictions are made of; LightGBM's reader does without the rest, and trusts whatever stands in it.
_HEAD = (
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx"),
    *("objective", "average_output", "feature_names", "feature_infos"),
)
_TREE = (
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
    lines = ["tree", *_lines(facts, _HEAD), ""]
    for number, block in enumerate(blocks):
        found = _facts(block)
        _check_tree(found, features, number + 1)
        lines += [f"Tree={number}", *_lines(found, _TREE), "", ""]
    _, mark, categories = rest.rpartition("pandas_categorical:")
    return "\n".join([*lines, "end of trees", "", mark + categories.strip().partition("\n")[0], ""])


def _lines(facts: dict[str, str], keys: tuple[str, ...]) -> list[str]:
    return [key if key == "average_output" else f"{key}={facts[key]}" for key in keys if key in facts]


def _check_tree(facts: dict[str, str], features: int, number: int) -> None:
    leaves = int(facts["num_leaves"])
    inner = {key: _numbers(facts, key) for key in ("split_feature", "decision_type", "left_child", "right_child")}
    inner["threshold"] = threshold = _numbers(facts, "threshold", np.float64)
    lengths = {len(found) for found in inner.values()}
    if leaves < 1 or lengths - {leaves - 1} or len(_numbers(facts, "leaf_value", np.float64)) != leaves:
        raise ValueError(f"tree {number} has more or fewer numbers than nodes")
    for key in ("shrinkage", "leaf_const", "num_features", "leaf_features", "leaf_coeff"):
        _numbers(facts, key, np.float64)
    if facts.get("is_linear", "0") not in ("0", "1"):
        raise ValueError(f"tree {number} says neither that it is linear nor that it is not")
    if facts.get("is_linear") == "1":
        terms = _numbers(facts, "num_features")
        used = _numbers(facts, "leaf_features")
        sizes = [len(facts.get(key, "").split()) for key in ("leaf_features", "leaf_coeff")]
        if (
            not len(terms) == len(facts.get("leaf_const", "").split()) == leaves
            or (terms < 0).any()
            or sizes != [int(terms.sum())] * 2
        ):
            raise ValueError(f"tree {number} has more or fewer terms than it says")
        if ((used < 0) | (used >= features)).any():
            raise ValueError(f"tree {number} has a feature that does not exist")
    children = np.concatenate([inner["left_child"], inner["right_child"]])
    split = inner["split_feature"]
    # Every node but the root is the child of one other: nothing is reached twice, and nothing goes round in circles.
    every = np.concatenate([np.arange(1, leaves - 1), -1 - np.arange(leaves)]) if leaves > 1 else children
    if not np.array_equal(np.sort(children), np.sort(every)) or ((split < 0) | (split >= features)).any():
        raise ValueError(f"tree {number} has a leaf, split or feature that does not exist")
    bounds, words = _numbers(facts, "cat_boundaries"), _numbers(facts, "cat_threshold")
    which = threshold[(inner["decision_type"] & 1) == 1]
    fit = len(bounds) == int(facts.get("num_cat", 0)) + 1 or (len(bounds) == 0 and facts.get("num_cat", "0") == "0")
    ordered = len(bounds) == 0 or (bounds[0] == 0 and (np.diff(bounds) >= 0).all() and bounds[-1] == len(words))
    if not fit or not ordered or ((which < 0) | (which >= max(len(bounds) - 1, 0))).any():
        raise ValueError(f"tree {number} has a split whose categories are missing")


def _link(  # noqa: PLR0911 - one per kind of objective
    objective: str, settings: dict[str, str], outputs: int
) -> tuple[Link, float, int | None]:
    """How sums become predictions, the factor before a sigmoid, and how many classes there are."""
    slope = float(settings.get("sigmoid", "1"))
    if objective == "binary":
        return "logistic", slope, 2
    if objective == "multiclass":
        return "softmax", 1.0, outputs
    if objective == "multiclassova":
        return "logistic_each", slope, outputs
    if objective in ("cross_entropy", "xentropy"):
        return "logistic", 1.0, None
    if objective in ("cross_entropy_lambda", "xentlambda"):
        return "softplus", 1.0, None
    if objective in _EXPONENTIAL:
        return "exp", 1.0, 0
    if objective in _REGRESSIONS:
        return ("square" if "sqrt" in settings else "identity"), 1.0, 0
    if objective in ("custom", "none", ""):
        return "identity", 1.0, None
    raise NotNative(f"its objective {objective!r} is not known here.")


def _tree(facts: dict[str, str], output: int) -> Tree:
    if facts.get("is_linear", "0") != "0":
        raise NotNative("its leaves hold linear models.")
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
        categories=_categories(facts, np.flatnonzero(decision & 1), threshold) or None,
    )


def _categories(
    facts: dict[str, str], nodes: npt.NDArray[np.int64], threshold: npt.NDArray[np.float64]
) -> dict[int, npt.NDArray[np.int64]]:
    """The categories that go left, from bits in words of 32."""
    bounds, words = _numbers(facts, "cat_boundaries"), _numbers(facts, "cat_threshold").astype(np.uint32)
    spans = [(int(node), *bounds[int(threshold[node]) :][:2]) for node in nodes]
    bits = {node: np.unpackbits(words[start:end].view(np.uint8), bitorder="little") for node, start, end in spans}
    return {node: np.flatnonzero(flags).astype(np.int64) for node, flags in bits.items()}


def _facts(block: str) -> dict[str, str]:
    """The ``key=value`` lines; a line without a sign is a switch."""
    lines = (line.partition("=") for line in block.split("\n"))
    return {key.strip(): value for key, _, value in lines if key.strip()}


def _numbers(facts: dict[str, str], key: str, kind: Any = np.int64) -> npt.NDArray[Any]:
    return np.array(facts.get(key, "").split(), dtype=kind)
