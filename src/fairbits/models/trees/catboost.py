"""CatBoost's models (.cbm, JSON, in memory) as tree ensembles.

CatBoost itself writes its binary format as JSON, which is then read as data. Symmetric trees ask one question per
level; others are nested. A question is a comparison in float32 (``value > border``) or a category of its own. Models
that look at statistics of categories (CTR) are asked through CatBoost.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Schema, text_of
from fairbits.errors import MissingDependencyError, ModelError
from fairbits.models.black_box import reason
from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import NAN, Damaged, Ensemble, Link, Tree
from fairbits.models.trees.features import MISSING_TEXTS, Features, Read, spellings

_CLASSIFIES: dict[str, Link] = {
    "Logloss": "logistic",
    "CrossEntropy": "logistic",
    "MultiClass": "softmax",
    "MultiClassOneVsAll": "logistic_each",
}
_EXPONENTIAL = {"Poisson", "Tweedie"}
_REGRESSIONS = {
    *("RMSE", "MAE", "Quantile", "Expectile", "Huber", "MAPE", "LogCosh", "Lq", "LogLinQuantile", "MSLE"),
    *("MedianAbsoluteError", "SMAPE", "R2", "FairLoss"),
}
_MAX_DEPTH = 64


def open_file(file: Path) -> Any:
    """CatBoost's own object for a .cbm or JSON file."""
    catboost = _library()
    model = catboost.CatBoostRegressor()  # puts out the exponential where its loss has one
    try:
        model.load_model(str(file), format="json" if file.suffix.lower() == ".json" else "cbm")
        if len(getattr(model, "classes_", ())) > 1:
            model = catboost.CatBoostClassifier()
            model.load_model(str(file), format="json" if file.suffix.lower() == ".json" else "cbm")
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise ModelError(f"the model {str(file)!r} cannot be opened by CatBoost: {reason(error)}") from None
    return model


def read_cbm(file: Path, schema: Schema | None) -> Read:
    """Read a binary file by way of CatBoost."""
    return read_live(open_file(file), schema)


def read_live(model: Any, schema: Schema | None) -> Read:
    """Read a model in memory by way of the JSON that it writes."""
    catboost = _library()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        pool = _pool(catboost, model, schema)
        try:
            model.save_model(str(path), format="json", pool=pool)
        except catboost.CatBoostError as error:
            raise NotNative(f"CatBoost cannot write its trees as JSON ({reason(error)})") from None
        document = json.loads(path.read_text(encoding="utf-8"))
    return _read(document)


def read_document(document: Mapping[str, Any], file: Path, schema: Schema | None) -> Read:
    """Read a JSON file; where it lacks the hashes of its categories, CatBoost is asked for them."""
    info = document["features_info"]
    if isinstance(info, dict) and info.get("categorical_features") and not info.get("cat_features_hash"):
        _read(document)  # refuses a damaged file before the library sees it
        return read_live(open_file(file), schema)
    return _read(document)


def _library() -> Any:
    try:
        import catboost
    except ImportError:
        raise MissingDependencyError("catboost", "catboost", "reading .cbm files") from None
    return catboost


def _pool(catboost: Any, model: Any, schema: Schema | None) -> Any:
    """Rows that name every category of the schema once: CatBoost writes hashes for the values that it is shown."""
    places = list(model.get_cat_feature_indices())
    if not places:
        return None
    if schema is None:
        raise NotNative("the names of its categories are known with a schema only.")
    names = [str(name) for name in model.feature_names_]
    known = {attribute.name: attribute for attribute in schema.attributes}
    columns: dict[int, list[str]] = {}
    for place in places:
        attribute = known.get(names[place]) or (schema.attributes[place] if place < len(schema.attributes) else None)
        if attribute is None or attribute.kind == "real":
            raise NotNative(f"its categories of {names[place]!r} are not known.")
        codes = range(int(attribute.low), int(attribute.upper) + 1)
        texts = list(attribute.labels) if attribute.kind == "category" else [str(code) for code in codes]
        columns[place] = [way for text in texts for way in spellings(text)] + list(MISSING_TEXTS)
    rows = max(len(found) for found in columns.values())
    table = np.zeros((rows, len(names)), dtype=object)
    table[:] = 0.0
    for place, found in columns.items():
        table[:, place] = [found[i % len(found)] for i in range(rows)]
    return catboost.Pool(table, cat_features=places, feature_names=names)


def _read(document: Any) -> Read:
    try:
        return _checked(document)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise Damaged(f"its JSON is not as CatBoost writes it ({type(error).__name__}: {str(error)[:80]}).") from None


def _checked(document: Any) -> Read:
    info, facts = document["features_info"], document["model_info"]
    floats, categories = info.get("float_features") or [], info.get("categorical_features") or []
    for kind in ("text_features", "embedding_features"):
        if info.get(kind):
            raise NotNative(f"it has {kind.replace('_', ' ')}.")
    flat = {
        int(f["flat_feature_index"]): str(f.get("feature_name") or f.get("feature_id") or "")
        for f in (*floats, *categories)
    }
    count = max(flat, default=-1) + 1
    if not 0 < count <= 1_000_000:
        raise Damaged(f"it has {count:,} features.")
    names = tuple(flat.get(i, "") for i in range(count))
    made_up = all(name in ("", str(place)) for place, name in enumerate(names))  # columns that never had names
    columns = _Columns(document, floats, categories)
    scale, bias = document["scale_and_bias"]
    if float(scale) != 1.0:
        raise NotNative(f"its sums are scaled by {float(scale):g}.")
    base = np.array(bias if isinstance(bias, list) else [bias], dtype=np.float64)
    loss = facts.get("params", {}).get("loss_function", {}).get("type", "")
    trees = _trees(document, columns)
    outputs = trees[0].values.shape[1] if trees else len(base)
    base = np.broadcast_to(base, outputs) if len(base) in (1, outputs) else base
    link, classes = _link(loss, outputs)
    labels = facts.get("class_params", {}).get("class_names") if classes else None
    ensemble = Ensemble.build(
        trees,
        features=count,
        base=base,
        link=link,
        precision="float32",
        base_last=True,
    )
    texts = None if not labels or len(labels) != classes else tuple(text_of(value) for value in labels)
    features = Features(() if made_up else names, count, columns.values(), seen=columns.seen())
    return Read(ensemble, classes, features, "the CatBoost model", objective=loss, labels=texts)


def _link(loss: str, outputs: int) -> tuple[Link, int | None]:
    if loss in _CLASSIFIES:
        return _CLASSIFIES[loss], max(outputs, 2)
    if loss in _EXPONENTIAL:
        return "exp", 0
    if loss in _REGRESSIONS:
        return "identity", 0
    raise NotNative(f"its loss function {loss!r} is not known here.")


class _Columns:
    """The columns that splits look at: numbers and categories as they come."""

    def __init__(self, document: Any, floats: list[Any], categories: list[Any]):
        self._floats = {int(f["feature_index"]): f for f in floats}
        self._categories = {int(f["feature_index"]): int(f["flat_feature_index"]) for f in categories}
        hashes = document["features_info"].get("cat_features_hash") or []
        #: The number of a category is its place here; all categorical features share one list.
        self.texts = [str(entry["value"]) for entry in hashes]
        self._place = {int(entry["hash"]) & 0xFFFFFFFF: i for i, entry in enumerate(hashes)}
        #: Categories that the model has seen, by feature.
        self._seen: dict[int, set[str]] = {}
        for feature in categories:
            known = (self._place.get(int(value) & 0xFFFFFFFF) for value in feature.get("values") or ())
            mine = {self.texts[place] for place in known if place is not None}
            self._seen[int(feature["flat_feature_index"])] = mine

    def seen(self) -> dict[int, frozenset[str]]:
        """The texts that the model has seen of each categorical feature, as far as they have been named."""
        return {flat: frozenset(texts) for flat, texts in self._seen.items()}

    def values(self) -> dict[int, tuple[Any, ...] | None]:
        """What the categorical features' numbers stand for."""
        return {flat: tuple(self.texts) for flat in self._categories.values()}

    def question(self, split: Any) -> tuple[int, float, bool, np.ndarray[Any, Any] | None]:
        """Column, border, where missing values go (left: "no"), and the category that goes right, if it is one."""
        kind = split["split_type"]
        if kind == "FloatFeature":
            feature = self._floats[int(split["float_feature_index"])]
            treatment = feature.get("nan_value_treatment", "AsIs")
            return int(feature["flat_feature_index"]), float(np.float32(split["border"])), treatment != "AsTrue", None
        if kind == "OneHotFeature":
            flat = self._categories[int(split["cat_feature_index"])]
            place = self._place.get(int(split["value"]) & 0xFFFFFFFF)
            # A category that the schema does not have: nobody is asked about it.
            return flat, 0.0, True, np.array([] if place is None else [place], dtype=np.int64)
        if kind == "OnlineCtr":
            raise NotNative("it splits on statistics of its categories, which CatBoost computes.")
        raise NotNative(f"it asks questions of the kind {kind!r}.")


def _trees(document: Any, columns: _Columns) -> list[Tree]:
    if "oblivious_trees" in document:
        return [_symmetric(tree, columns, number) for number, tree in enumerate(document["oblivious_trees"])]
    return [_nested(tree, columns, number) for number, tree in enumerate(document["trees"])]


def _symmetric(tree: Any, columns: _Columns, number: int) -> Tree:
    """One question per level; the answers are the bits of the leaf, the first question's the lowest."""
    questions = [columns.question(split) for split in tree.get("splits") or []]
    depth = len(questions)
    if depth > 20:
        raise Damaged(f"tree {number + 1} has {depth} levels; CatBoost has 16 at most.")
    values = np.array(tree["leaf_values"], dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or len(values) % (1 << depth):
        raise Damaged(f"tree {number + 1} has {values.size:,} leaf values for {1 << depth:,} leaves.")
    builder = _Builder()
    # A complete tree in the order of levels: node i has the children 2i + 1 ("no") and 2i + 2 ("yes").
    inner = (1 << depth) - 1
    for node in range(inner):
        level = (node + 1).bit_length() - 1
        builder.split(questions[level], 2 * node + 1, 2 * node + 2)
    table = values.reshape(1 << depth, -1)
    for leaf in range(1 << depth):  # the path from the root is the leaf's number from its highest bit down
        place = int(format(leaf, f"0{depth}b")[::-1], 2) if depth else 0
        builder.leaf(table[place])
    return builder.tree()


def _nested(tree: Any, columns: _Columns, number: int) -> Tree:
    builder = _Builder()
    waiting: list[tuple[Any, int]] = [(tree, 0)]
    order: list[Any] = []
    for node, level in waiting:  # grows while it is read: parents come before their children
        if level > _MAX_DEPTH * 4 or len(waiting) > 5_000_000:
            raise Damaged(f"tree {number + 1} is too large.")
        if "split" in node:
            order.append((node["split"], len(waiting)))
            waiting += [(node["left"], level + 1), (node["right"], level + 1)]
        else:
            order.append(node["value"])
    for entry in order:
        if isinstance(entry, tuple):
            builder.split(columns.question(entry[0]), entry[1], entry[1] + 1)
        else:
            builder.leaf(np.atleast_1d(np.array(entry, dtype=np.float64)))
    return builder.tree()


class _Builder:
    """Nodes, one after the other."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, float, int, int, bool]] = []
        self._values: list[np.ndarray[Any, Any] | None] = []
        self._sets: dict[int, np.ndarray[Any, Any]] = {}

    def split(self, question: tuple[int, float, bool, Any], no: int, yes: int) -> None:
        column, border, missing_no, category = question
        if category is None:
            self._rows.append((column, border, no, yes, missing_no))
        else:
            self._sets[len(self._rows)] = category
            self._rows.append((column, 0.0, yes, no, False))
        self._values.append(None)

    def leaf(self, values: np.ndarray[Any, Any]) -> None:
        self._rows.append((-1, 0.0, 0, 0, False))
        self._values.append(values)

    def tree(self) -> Tree:
        width = next(len(values) for values in self._values if values is not None)
        columns = list(zip(*self._rows, strict=True))
        return Tree(
            feature=np.array(columns[0], np.int64),
            threshold=np.array(columns[1], np.float64),
            left=np.array(columns[2], np.int64),
            right=np.array(columns[3], np.int64),
            missing=np.full(len(self._rows), NAN, np.int8),
            missing_left=np.array(columns[4], np.bool_),
            values=np.array([np.zeros(width) if values is None else values for values in self._values]),
            categories=self._sets or None,
        )
