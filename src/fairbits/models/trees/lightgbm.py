"""LightGBM's text files, and boosters in memory, as tree ensembles.

The format is lines of ``key=value``, first of the model, then of each tree; it is read as data, without the library,
whose own reader follows whatever child numbers a file states. How a split decides: ``include/LightGBM/tree.h``
(NumericalDecision, CategoricalDecision); what predictions are made of the sums: the ConvertOutput of each objective.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import Damaged, Ensemble, Link, Tree, whole_number
from fairbits.models.trees.features import Features, Read

_REGRESSIONS = {"regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg"}
_EXPONENTIAL = {"poisson", "gamma", "tweedie"}
#: The versions of the format whose files are read: v2 (LightGBM 2) lacks nothing that is needed here.
_VERSIONS = {"v2", "v3", "v4"}


def is_lightgbm(text: str) -> bool:
    """Whether a text begins as LightGBM's files do."""
    return text.lstrip().startswith("tree\n") or text.startswith("tree\r\n")


def ensemble_of_text(text: str) -> Read:
    """Read a model file."""
    head, *blocks = text.replace("\r\n", "\n").partition("\nend of trees")[0].split("\nTree=")
    facts = _facts(head)
    if not is_lightgbm(text):
        raise Damaged("it does not begin with 'tree', as LightGBM's files do.")
    if "\nend of trees" not in text or ("\nparameters:" in text and "\nend of parameters" not in text):
        raise Damaged("it has no end: it is cut off.")
    version = facts.get("version", "v2")
    if version not in _VERSIONS:
        raise Damaged(f"it has version {version!r} of the format; versions {', '.join(sorted(_VERSIONS))} are read.")
    features = whole_number(facts, "max_feature_idx") + 1
    per_round = whole_number(facts, "num_tree_per_iteration", 1)
    objective, *details = facts.get("objective", "custom").split() or ["custom"]
    settings = dict(entry.partition(":")[::2] for entry in details)
    link, slope, classes = _link(objective, settings, per_round)
    trees = [_tree(block, number, per_round) for number, block in enumerate(blocks)]
    if "tree_sizes" in facts and len(facts["tree_sizes"].split()) != len(trees):
        raise Damaged(f"it announces {len(facts['tree_sizes'].split())} trees, but has {len(trees)}; it is cut off.")
    rounds = max(1, len(trees) // max(per_round, 1))
    divisor = float(rounds) if "average_output" in facts else 1.0
    ensemble = Ensemble.build(
        trees, features=features, base=np.zeros(per_round), link=link, slope=slope, divisor=divisor
    )
    names = tuple(facts.get("feature_names", "").split())
    return Read(ensemble, classes, _features(names, features, facts, text), "the LightGBM model", objective=objective)


def _features(names: tuple[str, ...], count: int, facts: dict[str, str], text: str) -> Features:
    """Names, which features are categories, and what LightGBM remembers of the pandas categories."""
    if len(names) != count:
        raise Damaged(f"it has {count} features, but {len(names)} names.")
    infos = facts.get("feature_infos", "").split()
    categorical = [i for i, info in enumerate(infos[:count]) if info != "none" and not info.startswith("[")]
    lists = _pandas_categories(text)
    made_up = names == tuple(f"Column_{i}" for i in range(count))
    values: dict[int, tuple[Any, ...] | None] = dict.fromkeys(categorical)
    if lists is not None and len(lists) == len(categorical):
        values = {i: tuple(known) for i, known in zip(categorical, lists, strict=True)}
    unplaced = () if lists is None or len(lists) == len(categorical) else tuple(tuple(known) for known in lists)
    return Features(() if made_up else names, count, values, unplaced)


def _pandas_categories(text: str) -> list[list[Any]] | None:
    _, mark, rest = text.rpartition("pandas_categorical:")
    if not mark:
        return None
    try:
        found = json.loads(rest.strip().splitlines()[0])
    except (ValueError, IndexError, RecursionError):
        raise Damaged("its list of pandas categories cannot be read; it is cut off or damaged.") from None
    if found is None or (isinstance(found, list) and all(isinstance(known, list) for known in found)):
        return found or None
    raise Damaged("its pandas categories are no lists.")


def _link(  # noqa: PLR0911 - one per kind of objective
    objective: str, settings: dict[str, str], outputs: int
) -> tuple[Link, float, int | None]:
    """How sums become predictions, the factor before a sigmoid, and how many classes there are."""
    slope = _number(settings.get("sigmoid", "1"), "sigmoid")
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


def _tree(block: str, number: int, per_round: int) -> Tree:
    facts = _facts(block)
    if facts.get("is_linear", "0") != "0":
        raise NotNative("its leaves hold linear models.")
    leaves = whole_number(facts, "num_leaves")
    values = _numbers(facts, "leaf_value", leaves, np.float64)
    inner = leaves - 1  # a tree of one leaf states no splits
    feature = _numbers(facts, "split_feature", inner)
    threshold = _numbers(facts, "threshold", inner, np.float64)
    decision = _numbers(facts, "decision_type", inner)
    left, right = _numbers(facts, "left_child", inner), _numbers(facts, "right_child", inner)
    if min(left.min(initial=0), right.min(initial=0)) < -leaves or feature.min(initial=0) < 0:
        raise Damaged(f"tree {number + 1} has a leaf or feature that does not exist.")
    # Leaves follow the splits: leaf i, written as -1 - i, is node inner + i.
    place = [np.where(child < 0, inner - 1 - child, child) for child in (left, right)]
    more = np.zeros(leaves, dtype=np.int64)
    return Tree(
        feature=np.concatenate([feature, more - 1]),
        threshold=np.concatenate([np.where(decision & 1, 0.0, threshold), more]),
        left=np.concatenate([place[0], more]),
        right=np.concatenate([place[1], more]),
        missing=np.concatenate([(decision >> 2) & 3, more]).astype(np.int8),
        missing_left=np.concatenate([(decision & 3) == 2, more.astype(bool)]),
        values=np.concatenate([np.zeros(inner), values])[:, None],
        output=number % max(per_round, 1),
        categories=_categories(facts, decision, threshold, number),
    )


def _categories(
    facts: dict[str, str], decision: npt.NDArray[np.int64], threshold: npt.NDArray[np.float64], number: int
) -> dict[int, npt.NDArray[np.int64]] | None:
    """The categories that go left, from bits in words of 32."""
    nodes = np.flatnonzero(decision & 1)
    if len(nodes) == 0:
        return None
    bounds = _numbers(facts, "cat_boundaries")
    words = _numbers(facts, "cat_threshold")
    found = {}
    for node in nodes:
        which = int(threshold[node])
        if not (0 <= which < len(bounds) - 1 and 0 <= bounds[which] <= bounds[which + 1] <= len(words)):
            raise Damaged(f"tree {number + 1} has a split whose categories are missing.")
        bits = words[bounds[which] : bounds[which + 1]].astype(np.uint32)
        flags = np.unpackbits(bits.view(np.uint8), bitorder="little")
        found[int(node)] = np.flatnonzero(flags).astype(np.int64)
    return found


def _facts(block: str) -> dict[str, str]:
    """The ``key=value`` lines; a line without a sign is a switch."""
    found = {}
    for line in block.splitlines():
        key, _, value = line.strip().partition("=")
        if key:
            found[key] = value
    return found


def _number(text: str, key: str) -> float:
    try:
        found = float(text)
    except ValueError:
        raise Damaged(f"its {key} is {text[:40]!r}, which is no number.") from None
    if not math.isfinite(found):
        raise Damaged(f"its {key} is {found}.")
    return found


def _numbers(facts: dict[str, str], key: str, count: int | None = None, kind: Any = np.int64) -> npt.NDArray[Any]:
    words = facts.get(key, "").split()
    if count is not None and len(words) != count:
        raise Damaged(f"a tree has {len(words):,} of {key} where {count:,} belong; the file is cut off or damaged.")
    try:
        return np.array(words, dtype=kind)
    except (ValueError, OverflowError):
        raise Damaged(f"a tree has {key} that are no numbers.") from None
