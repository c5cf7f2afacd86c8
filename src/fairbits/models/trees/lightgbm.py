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
from fairbits.models.trees.ensemble import Damaged, Ensemble, Link, Tree, check_tree
from fairbits.models.trees.features import Features, Read

#: By objective: how sums become predictions, and how many classes there are (None: not known, 0: a regression).
_LINKS: dict[str, tuple[Link, int | None]] = {
    **{"binary": ("logistic", 2), "multiclass": ("softmax", 0), "multiclassova": ("logistic_each", 0)},
    **dict.fromkeys(("cross_entropy", "xentropy"), ("logistic", None)),
    **dict.fromkeys(("cross_entropy_lambda", "xentlambda"), ("softplus", None)),
    **dict.fromkeys(("poisson", "gamma", "tweedie"), ("exp", 0)),
    **dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), ("identity", 0)),
    **dict.fromkeys(("lambdarank", "rank_xendcg"), ("identity", 0)),
    **dict.fromkeys(("custom", "none", ""), ("identity", None)),
}


def ensemble_of_booster(booster: Any) -> Read:
    """Read a booster in memory."""
    head, *blocks = booster.model_to_string().partition("\nend of trees")[0].split("\nTree=")
    facts = _facts(head)
    per_round = int(facts["num_tree_per_iteration"])
    objective, *details = facts.get("objective", "custom").split() or ["custom"]
    link, slope, classes = _link(objective, dict(entry.partition(":")[::2] for entry in details), per_round)
    parts = [_facts(block) for block in blocks]
    if any(map(_is_linear, parts)):
        raise NotNative("its leaves hold linear models.")
    trees = [_tree(part, number % per_round) for number, part in enumerate(parts)]
    divisor = float(max(1, len(trees) // per_round)) if "average_output" in facts else 1.0
    names, infos = tuple(facts["feature_names"].split()), facts["feature_infos"].split()
    ensemble = Ensemble.build(
        trees, features=len(names), base=np.zeros(per_round), link=link, slope=slope, divisor=divisor
    )
    categorical = [i for i, info in enumerate(infos) if info != "none" and not info.startswith("[")]
    lists = [tuple(known) for known in booster.pandas_categorical or ()]
    if len(lists) > len(categorical) + infos.count("none"):  # ordered ones are numbers to it; "none" never varied
        raise NotNative("its categories do not say which columns they belong to.")
    known = lists if len(lists) == len(categorical) else [None] * len(categorical)
    values = dict(zip(categorical, known, strict=True))
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
        _check_tree(found, features, number)
        lines += [f"Tree={number}", *_lines(found, _TREE), "", ""]
    _, mark, categories = rest.rpartition("pandas_categorical:")
    return "\n".join([*lines, "end of trees", "", mark + categories.strip().partition("\n")[0], ""])


def _lines(facts: dict[str, str], keys: tuple[str, ...]) -> list[str]:
    return [key if key == "average_output" else f"{key}={facts[key]}" for key in keys if key in facts]


def _check_tree(facts: dict[str, str], features: int, number: int) -> None:
    leaves, tree = int(facts["num_leaves"]), _tree(facts, 0)
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
    if _is_linear(facts):
        terms, used = _numbers(facts, "num_features"), _numbers(facts, "leaf_features")
        sizes = [len(facts.get(key, "").split()) for key in ("leaf_const", "leaf_features", "leaf_coeff")]
        if len(terms) != leaves or (terms < 0).any() or sizes != [leaves, *[int(terms.sum())] * 2]:
            raise ValueError(f"tree {number + 1} has more or fewer terms than it says")
        if ((used < 0) | (used >= features)).any():
            raise ValueError(f"tree {number + 1} has a feature that does not exist")


def _link(objective: str, settings: dict[str, str], outputs: int) -> tuple[Link, float, int | None]:
    """How sums become predictions, the factor before a sigmoid, and how many classes there are."""
    if objective not in _LINKS:
        raise NotNative(f"its objective {objective!r} is not known here.")
    link, classes = _LINKS[objective]
    slope = float(settings.get("sigmoid", "1")) if objective in ("binary", "multiclassova") else 1.0
    if link == "identity" and classes == 0 and "sqrt" in settings:
        link = "square"
    return link, slope, outputs if link in ("softmax", "logistic_each") else classes


def _is_linear(facts: dict[str, str]) -> bool:
    return facts.get("is_linear", "0") != "0"


def _tree(facts: dict[str, str], output: int) -> Tree:
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
    """The categories that go left, from bits in words of 32; refused where a split's are not there."""
    bounds, words = _numbers(facts, "cat_boundaries"), _numbers(facts, "cat_threshold").astype(np.uint32)
    sets, which = int(facts.get("num_cat", 0)), threshold[nodes]
    fit = len(bounds) == (sets + 1 if sets or len(bounds) else 0)
    ordered = len(bounds) == 0 or (bounds[0] == 0 and (np.diff(bounds) >= 0).all() and bounds[-1] == len(words))
    if not fit or not ordered or ((which < 0) | (which >= sets)).any():
        raise ValueError("a split has categories that are missing")
    spans = [(int(node), *bounds[int(threshold[node]) :][:2]) for node in nodes]
    bits = {node: np.unpackbits(words[start:end].view(np.uint8), bitorder="little") for node, start, end in spans}
    return {node: np.flatnonzero(flags).astype(np.int64) for node, flags in bits.items()}


def _facts(block: str) -> dict[str, str]:
    """The ``key=value`` lines; a line without a sign is a switch."""
    lines = (line.partition("=") for line in block.split("\n"))
    return {key.strip(): value for key, _, value in lines if key.strip()}


def _numbers(facts: dict[str, str], key: str, kind: Any = np.int64) -> npt.NDArray[Any]:
    return np.array(facts.get(key, "").split(), dtype=kind)
