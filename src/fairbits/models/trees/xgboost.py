"""XGBoost's own files (JSON and UBJSON, draft 12), and boosters in memory, as tree ensembles.

Both are one document, which is read as data, with every length checked. XGBoost compares in float32 and goes left where
``value < condition``; categories in a split's set go right. It adds up in float32, from the base score on, tree after
tree. Its schema: ``doc/model.schema`` of XGBoost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute
from fairbits.functions import c_log
from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import NAN, Damaged, Ensemble, Link, Tree, whole_number
from fairbits.models.trees.features import Features, Read

_SCALARS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4", b"D": ">f8"}
_CONSTANTS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
_MAX_DEPTH = 64


def read_ubjson(content: bytes) -> Any:
    """The document in a file."""
    reader = _Reader(content)
    return reader.value(reader.marker(), 0)


class _Reader:
    """A place in the bytes that moves on with everything that is read."""

    def __init__(self, content: bytes):
        self._content = content
        self._at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._content):
            raise Damaged("it ends in the middle: the UBJSON is cut off or damaged.")
        self._at += count
        return self._content[self._at - count : self._at]

    def marker(self) -> bytes:
        found = self.take(1)
        while found == b"N":  # no-op
            found = self.take(1)
        return found

    def value(self, marker: bytes, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise Damaged(f"its UBJSON is nested deeper than {_MAX_DEPTH} levels.")
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker in _SCALARS:
            kind = np.dtype(_SCALARS[marker])
            return np.frombuffer(self.take(kind.itemsize), dtype=kind)[0].item()
        if marker == b"C":
            return self.take(1).decode("latin-1")
        if marker in (b"S", b"H"):
            return self.text()
        if marker == b"[":
            return self._array(depth)
        if marker == b"{":
            return self._object(depth)
        raise Damaged(f"its UBJSON has the unknown mark {marker!r}.")

    def length(self) -> int:
        marker = self.marker()
        if marker not in (b"i", b"U", b"I", b"l", b"L"):
            raise Damaged(f"its UBJSON has the mark {marker!r} where a length belongs.")
        return int(self.value(marker, 0))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8", errors="replace")

    def _counted(self) -> tuple[bytes | None, int | None, bytes]:
        """The type and number of what follows, where they are stated, and the mark after that."""
        kind, count, marker = None, None, self.marker()
        if marker == b"$":
            kind, marker = self.take(1), self.marker()
        if marker == b"#":
            count, marker = self.length(), b""
        elif kind is not None:
            raise Damaged("its UBJSON states a type, but no number.")
        if count is not None and (count < 0 or (count > len(self._content) and kind not in _CONSTANTS)):
            raise Damaged(f"its UBJSON announces {count:,} entries, more than the file has bytes.")
        return kind, count, marker

    def _array(self, depth: int) -> Any:
        kind, count, marker = self._counted()
        if kind in _SCALARS and count is not None:
            dtype = np.dtype(_SCALARS[kind])
            return np.frombuffer(self.take(count * dtype.itemsize), dtype=dtype).astype(dtype.newbyteorder("="))
        if count is not None:
            if kind in _CONSTANTS:
                raise Damaged("its UBJSON has an array of constants, which XGBoost never writes.")
            return [self.value(kind or self.marker(), depth + 1) for _ in range(count)]
        found = []
        while marker != b"]":
            found.append(self.value(marker, depth + 1))
            marker = self.marker()
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count, marker = self._counted()
        found: dict[str, Any] = {}
        if count is not None:
            for _ in range(count):
                key = self.text()
                found[key] = self.value(kind or self.marker(), depth + 1)
            return found
        while marker != b"}":
            if marker not in (b"i", b"U", b"I", b"l", b"L"):
                raise Damaged(f"its UBJSON has the mark {marker!r} where a name belongs.")
            key = self.take(int(self.value(marker, 0))).decode("utf-8", errors="replace")
            found[key] = self.value(self.marker(), depth + 1)
            marker = self.marker()
        return found


_IDENTITY = (
    *("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror"),
    *("reg:linear", "reg:expectileerror", "rank:pairwise", "rank:ndcg", "rank:map"),
)
#: The newest version whose files are known.
_NEWEST = 3
#: Numbers that tables often hold in place of a missing one.
_SENTINEL = re.compile(r"-?9{3,}")
_EXPONENTIAL = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")


def ensemble_of_document(document: Any, *, bare: bool = False) -> Read:
    """Read a model's document; a ``bare`` booster takes all of its trees, and adds dropped ones in another order."""
    learner = _table(document, "learner")
    if _major(document) > _NEWEST:
        raise NotNative(
            f"it was written by XGBoost {_major(document)}, and files up to version {_NEWEST} are known here."
        )
    facts = _table(learner, "learner_model_param")
    features = whole_number(facts, "num_feature")
    classes = whole_number(facts, "num_class", 0)
    targets = whole_number(facts, "num_target", 1)
    outputs = max(classes, targets, 1)
    objective = str(_table(learner, "objective").get("name", ""))
    link, decides = _link(objective, outputs)
    booster = _table(learner, "gradient_booster")
    base = _base(facts, objective, outputs, _major(document))
    names = tuple(str(name) for name in learner.get("feature_names") or ())
    kinds = [str(kind) for kind in learner.get("feature_types") or ()]
    if (names and len(names) != features) or (kinds and len(kinds) != features):
        raise Damaged(f"it has {features} features, but {len(names)} names and {len(kinds)} types.")
    name = booster.get("name")
    if name == "gblinear":
        raise NotNative("its booster is gblinear, which has weights and no trees.")
    if name not in ("gbtree", "dart"):
        raise Damaged(f"its booster is {name!r}; gbtree, dart and gblinear are known.")
    inner = _table(booster, "gbtree") if name == "dart" else booster
    model = _table(inner, "model")
    trees = _trees(model)
    if name == "dart":
        drops = _numbers(booster, "weight_drop", np.float32)
        if len(drops) != len(trees):
            raise Damaged(f"it has {len(trees)} trees, but {len(drops)} weights for them.")
        trees = [_dropped(tree, drop, base, bare) for tree, drop in zip(trees, drops, strict=True)]
    made_up = names == tuple(f"f{i}" for i in range(features))
    known = _categories(model.get("cats"), kinds, features)
    kept = len(trees) if bare else _best_rounds(learner, model, len(trees))
    ensemble = Ensemble.build(
        trees[:kept],
        features=features,
        base=base,
        link=link,
        precision="float32",
        adds="float32",
    )
    notes: tuple[str, ...] = ()
    if kept < len(trees):
        notes = (
            f"the model was trained with early stopping, so its first {kept:,} of {len(trees):,} trees predict, as "
            f"XGBoost's scikit-learn classes have it (a bare Booster takes all of them).",
        )
    number = {True: classes or 2, False: 0, None: None}[decides]
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


def _best_rounds(learner: Mapping[str, Any], model: Mapping[str, Any], trees: int) -> int:
    """How many trees predict where training stopped early."""
    facts = learner.get("attributes")
    best = facts.get("best_iteration") if isinstance(facts, dict) else None
    if best is None or not str(best).isdigit() or "iteration_indptr" not in model:
        return trees
    bounds = _numbers(model, "iteration_indptr", np.int64)
    return int(np.clip(bounds[int(best) + 1], 0, trees)) if int(best) + 1 < len(bounds) else trees


def _link(objective: str, outputs: int) -> tuple[Link, bool | None]:
    if objective in ("binary:logistic", "reg:logistic"):
        return ("logistic" if outputs == 1 else "logistic_each"), (True if objective == "binary:logistic" else None)
    if objective == "binary:logitraw":
        return "identity", None
    if objective == "binary:hinge":
        return "step", True
    if objective in ("multi:softprob", "multi:softmax"):
        return "softmax", True
    if objective in _EXPONENTIAL:
        return "exp", False
    if objective in _IDENTITY:
        return "identity", False
    raise NotNative(f"its objective {objective!r} is not known here.")


def _major(document: Any) -> int:
    """The first number of the version that wrote the file."""
    stated = document.get("version")
    found = np.asarray(stated).ravel().tolist() if isinstance(stated, list | np.ndarray) else []
    return int(found[0]) if found and isinstance(found[0], int) else 0


def _dropped(tree: Tree, drop: np.float32, base: npt.NDArray[np.float64], bare: bool) -> Tree:
    """A tree of a DART booster, with its weight. Asked for rows in place, as by the scikit-learn classes, XGBoost adds
    the base score to each tree and takes it away again."""
    values = tree.values.astype(np.float32)
    if not bare:
        start = base[tree.output : tree.output + values.shape[1]].astype(np.float32)
        values = (values + start) - start
    return replace(tree, values=(values * drop).astype(np.float64))


def _base(facts: Mapping[str, Any], objective: str, outputs: int, major: int) -> npt.NDArray[np.float64]:
    """What the sums start from: the stated value is a prediction, except where nothing bends it."""
    text = str(facts.get("base_score", "0.5")).strip("[] ")
    try:
        stated = np.array(text.split(","), dtype=np.float32)
    except ValueError:
        raise Damaged(f"its base_score is {text[:40]!r}, which is no number.") from None
    if len(stated) not in (1, outputs):
        raise Damaged(f"it has {len(stated)} base scores for {outputs} outputs.")
    logistic = (
        ("binary:logistic", "reg:logistic") if major >= 3 else ("binary:logistic", "reg:logistic", "binary:logitraw")
    )
    if objective in logistic:
        if not ((stated > 0) & (stated < 1)).all():
            raise Damaged(f"its base_score is {text[:40]}; a probability lies between 0 and 1.")
        stated = -c_log(np.float32(1) / stated - np.float32(1))
    elif objective in _EXPONENTIAL:
        if not (stated > 0).all():
            raise Damaged(f"its base_score is {text[:40]}; it must be larger than 0.")
        stated = c_log(stated)
    return np.broadcast_to(stated, outputs).astype(np.float64)


def _trees(model: Mapping[str, Any]) -> list[Tree]:
    found = model.get("trees")
    if not isinstance(found, list):
        raise Damaged("its list of trees is missing.")
    groups = _numbers(model, "tree_info", np.int64, len(found)).tolist()
    return [_tree(tree, number, groups[number]) for number, tree in enumerate(found)]


def _tree(tree: Any, number: int, group: int) -> Tree:
    if not isinstance(tree, dict):
        raise Damaged(f"tree {number + 1} is no table of arrays.")
    left, right = _numbers(tree, "left_children", np.int64), _numbers(tree, "right_children", np.int64)
    leaf = left == -1
    condition = _numbers(tree, "split_conditions", np.float32)
    if len(condition) != len(left) or len(right) != len(left):
        raise Damaged(f"tree {number + 1} has arrays of different lengths.")
    if whole_number(_table(tree, "tree_param"), "size_leaf_vector", 1) > 1:
        raise NotNative("its leaves hold a value for every output.")
    feature = np.where(leaf, -1, _numbers(tree, "split_indices", np.int64, len(left)))
    if (feature[~leaf] < 0).any():
        raise Damaged(f"tree {number + 1} splits on a feature below 0.")
    missing_left = _numbers(tree, "default_left", np.int64, len(left)) != 0
    # "Smaller than" in float32 is "at most the next float32 below".
    below = np.nextafter(condition, np.float32(-np.inf)).astype(np.float64)
    sets = _sets(tree, number)
    for node in sets:
        if not 0 <= node < len(left):
            raise Damaged(f"tree {number + 1} has categories for node {node}, which does not exist.")
        # The set goes right there; here a set goes left.
        left[node], right[node], missing_left[node] = right[node], left[node], not missing_left[node]
        below[node] = 0.0
    kinds = _numbers(tree, "split_type", np.int64) if "split_type" in tree else np.zeros(len(left), np.int64)
    if any(node not in sets for node in np.flatnonzero((kinds == 1) & ~leaf)):
        raise Damaged(f"tree {number + 1} has a split whose categories are missing.")
    return Tree(
        feature=feature,
        threshold=np.where(leaf, 0.0, below),
        left=left,
        right=right,
        missing=np.full(len(left), NAN, dtype=np.int8),
        missing_left=missing_left,
        values=np.where(leaf, condition, 0.0).astype(np.float64)[:, None],
        output=group,
        categories=sets or None,
    )


def _sets(tree: Mapping[str, Any], number: int) -> dict[int, npt.NDArray[np.int64]]:
    if len(tree.get("categories_nodes", ())) == 0:
        return {}
    members = _numbers(tree, "categories", np.int64)
    nodes = _numbers(tree, "categories_nodes", np.int64)
    starts = _numbers(tree, "categories_segments", np.int64, len(nodes))
    sizes = _numbers(tree, "categories_sizes", np.int64, len(nodes))
    if ((starts < 0) | (sizes < 0) | (starts + sizes > len(members))).any():
        raise Damaged(f"tree {number + 1} has a split whose categories are missing.")
    return {int(n): members[s : s + k] for n, s, k in zip(nodes, starts, sizes, strict=True)}


def _categories(cats: Any, kinds: list[str], features: int) -> dict[int, tuple[Any, ...] | None]:
    """Which features are categories, and the values that XGBoost (3.1 and later) remembers of each."""
    found: dict[int, tuple[Any, ...] | None] = {i: None for i, kind in enumerate(kinds) if kind == "c"}
    entries = cats.get("enc") if isinstance(cats, dict) else None
    if not isinstance(entries, list) or len(entries) != features:
        return found
    for i, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("values"), list | np.ndarray):
            continue
        if len(entry["values"]) == 0:
            continue
        values = entry["values"]
        if "offsets" in entry:
            bounds = _numbers(entry, "offsets", np.int64)
            raw = (_numbers(entry, "values", np.int64) & 0xFF).astype(np.uint8).tobytes()
            if ((bounds < 0) | (bounds > len(raw))).any():
                raise Damaged(f"the categories of feature {i} are damaged.")
            found[i] = tuple(raw[a:b].decode("utf-8", errors="replace") for a, b in pairwise(bounds.tolist()))
        else:
            found[i] = tuple(np.asarray(values).tolist())
    return found


def document_of_bytes(content: bytes) -> Any:
    """The document in a JSON or UBJSON file."""
    text = content.lstrip()
    if text[:1] == b"{" and text[1:2] in (b'"', b" ", b"\n", b"\r", b"\t"):
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Damaged(f"it is no readable JSON: {str(error).splitlines()[0][:120]}.") from None

    return read_ubjson(content)


def _table(parent: Any, key: str) -> dict[str, Any]:
    found = parent.get(key) if isinstance(parent, dict) else None
    if not isinstance(found, dict):
        raise Damaged(f"it has no table {key!r}, which XGBoost's files have.")
    return found


def _numbers(parent: Mapping[str, Any], key: str, kind: Any, count: int | None = None) -> npt.NDArray[Any]:
    found = parent.get(key)
    if not isinstance(found, list | np.ndarray):
        raise Damaged(f"it has no list {key!r}, which XGBoost's files have.")
    try:
        with np.errstate(over="ignore"):
            array = np.array(found, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise Damaged(f"its list {key!r} holds something else than numbers.") from None
    if array.ndim != 1 or (count is not None and len(array) != count):
        raise Damaged(f"its list {key!r} has {array.size:,} numbers where {count} belong.")
    if kind is np.int64 and (not np.isfinite(array).all() or (np.abs(array) > 2**53).any()):
        raise Damaged(f"its list {key!r} holds numbers out of bounds.")
    return array.astype(kind)


def is_xgboost(document: Any) -> bool:
    """Whether a document has the main table of XGBoost's files."""
    return isinstance(document, dict) and isinstance(document.get("learner"), dict)
