"""A small decision tree that nobody's protected values can reach: k = 1 and no flip, by the way it is made.

The tree splits on unprotected attributes alone, so that all twins of a person end in the same leaf; the checker that
proves it looks at the tree. Two are proposed. The one of depth 2 has most training rows decided as labelled of all such
trees over the cuts that were listed: once the root is chosen, the nodes below it do not depend on each other, so that
the counts of every pair of cuts, which are one matrix product, tell the best of all of them; no solver of mixed-integer
programmes is needed for that, and no time limit. The deeper one is grown greedily (CART). What any decision that
ignores protected attributes could reach on these rows, with a leaf for each kind of person, bounds what either misses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.data import Fitted
from fairbits.domain import Attribute, Doubles, Encoding, Schema, Unseen, text_of
from fairbits.errors import CapabilityError
from fairbits.models import ModelOptions, adapt, fit_to_schema
from fairbits.repair.choice import Planner
from fairbits.repair.proposals.mitigators import TrainingData
from fairbits.repair.records import Proposal

#: Depth of the greedy tree, and rows that a leaf of it needs.
DEPTH, LEAF_ROWS = 4, 10
#: Cuts that the optimal tree chooses from at most, the most telling ones, and cuts of one attribute among them.
CUTS, CUTS_EACH = 400, 32
#: Labels that a sentence lists.
LISTED = 4


@dataclass(frozen=True, slots=True)
class OptimalTree:
    """A tree of depth 2: (column, threshold) of root, left and right node; up to the threshold, people go left."""

    splits: tuple[tuple[int, float], ...]
    cuts: int  # that were compared


@dataclass(frozen=True, slots=True)
class FairTree:
    """Two proposals: an optimal tree of depth 2, and a greedy one of depth 4."""

    name: str = "tree"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Fit both to the labels of the training rows."""
        from sklearn.tree import DecisionTreeClassifier

        from fairbits.repair.writers.check import class_values

        data = TrainingData.of(planner, "a fair tree")
        schema, parts = data.subject.schema, data.subject.encoding.parts
        # Values of a number may be missing in the table; a category has a label for that.
        lacks = [one.gap is not None and not one.labels for one in schema.attributes]
        free = [i for i in schema.free_columns if not isinstance(parts[i], Unseen) and not lacks[i]]
        if not free:
            raise CapabilityError(
                "a fair tree splits on unprotected attributes that nobody lacks, and this model takes none."
            )
        encoding = Encoding.identity(schema, columns=[schema.names[i] for i in free], dtype=np.float64)
        shown = np.asarray(encoding.encode(data.rows), np.float64)
        labels = data.labels.astype(np.int64)
        names = np.array(class_values(data.subject))[labels]
        most = ignoring(shown, labels) / len(labels)
        shown = shown.astype(np.float32).astype(np.float64)  # as trees compare numbers
        planner.watch("choosing the optimal tree of depth 2")
        best = optimal_tree(shown, labels, np.arange(len(free)))
        grown = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF_ROWS, random_state=0)
        made = {
            "tree-2": (f"the best tree of depth 2 over {best.cuts} cuts", built(best, shown, names)),
            f"tree-{DEPTH}": (f"a greedy tree of depth {DEPTH}", grown.fit(shown, names)),
        }
        for name, (words, tree) in made.items():
            missed = 100 * (most - float((tree.predict(shown) == names).mean()))
            gap = f"at most {missed:.1f} points below any decision without protected attributes, on training rows"
            text = f"{words}, {gap}: {tree_words(nodes_of(tree, schema), schema, encoding)}"
            fitted = _fitted(tree, schema, encoding)
            yield Proposal(name, text, fitted.model, retrained=True, fitted=fitted)


def _fitted(tree: Any, schema: Schema, encoding: Encoding) -> Fitted:
    """The tree as a model that is asked with codes of people, whatever the subject's own model takes."""
    names = tuple(name for name, part in zip(schema.names, encoding.parts, strict=True) if not isinstance(part, Unseen))
    loaded = adapt(tree, schema, ModelOptions(input_format="codes", columns=names))
    found = fit_to_schema(replace(loaded, encoding=encoding), schema)
    return Fitted(found.model, found.encoding, tree)


def nodes_of(tree: Any, schema: Schema) -> dict[str, list[Any]]:
    """A fitted tree as lists, a value for each node: leaves have the shares of the schema's classes."""
    found, names = tree.tree_, [text_of(one) for one in tree.classes_.tolist()]
    shares = found.value[:, 0, [names.index(one) for one in schema.classes]]
    lists = {"left": found.children_left, "right": found.children_right, "feature": found.feature}
    lists |= {"threshold": found.threshold, "values": shares / shares.sum(axis=1, keepdims=True)}
    return {name: values.tolist() for name, values in lists.items()}


def tree_words(nodes: dict[str, list[Any]], schema: Schema, encoding: Encoding, node: int = 0) -> str:
    """A tree over codes as people read it: if …, then …, else …; leaves say what is decided."""
    if nodes["left"][node] < 0:
        return schema.classes[schema.rule.most_likely(np.array([nodes["values"][node]]))[0]]
    sides = [tree_words(nodes, schema, encoding, nodes[side][node]) for side in ("left", "right")]
    if sides[0] == sides[1]:
        return sides[0]
    left, right = (f"({text})" if text.startswith("if ") else text for text in sides)
    owner = next(i for i, part in enumerate(encoding.parts) if nodes["feature"][node] in part.columns)
    return f"if {_condition(schema.attributes[owner], nodes['threshold'][node])} then {left}, else {right}"


def _condition(attribute: Attribute, cut: float) -> str:
    """Whom a split sends to the left."""
    if not attribute.labels:
        return f"{attribute.name} ≤ {np.floor(cut) if attribute.discrete else cut:.9g}"  # all digits of a float32
    shown = attribute.shown_labels()
    first = int((attribute.low + np.arange(len(shown)) <= cut).sum())
    inside, others = shown[:first], shown[first:]
    few, word = (inside, "is") if len(inside) <= len(others) else (others, "is not")
    more = f" or {len(few) - LISTED} more" if len(few) > LISTED else ""
    return f"{attribute.name} {word} {' or '.join(few[:LISTED])}{more}"


def ignoring(inputs: Doubles, labels: npt.NDArray[np.int64]) -> int:
    """Rows decided as labelled where everybody who is alike gets the commoner label: no tree over these has more."""
    kinds = np.unique(inputs, axis=0, return_inverse=True)[1].ravel()
    ones = np.bincount(kinds, weights=labels)
    return int(np.maximum(ones, np.bincount(kinds) - ones).sum())


def optimal_tree(inputs: Doubles, labels: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> OptimalTree:
    """The tree of depth 2 with most rows decided as labelled, over the most telling cuts."""
    cuts = _cuts(inputs, labels, columns)
    above = np.column_stack([inputs[:, column] > cut for column, cut in cuts])
    counts = np.stack([_pair_counts(above[labels == label]) for label in (0, 1)])  # (label, side, side, cuts, cuts)
    by_side = counts.max(axis=0).sum(axis=1)  # rows right on each side of a root, by the cut of the node there
    root = int(by_side.max(axis=2).sum(axis=0).argmax())
    below = by_side[:, root].argmax(axis=1)
    return OptimalTree(tuple(cuts[i] for i in (root, *below)), len(cuts))


def _pair_counts(above: npt.NDArray[np.bool_]) -> Doubles:
    """How many rows are below or above one cut, and below or above another, (2, 2, cuts, cuts)."""
    table = above.astype(np.float32)  # counts up to 16 million are exact
    both, each = (table.T @ table).astype(np.float64), above.sum(axis=0)
    first, second = each[:, None], each[None]
    return np.array([[len(above) - first - second + both, second - both], [first - both, both]])


def _cuts(inputs: Doubles, labels: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> list[tuple[int, float]]:
    """Cuts between values of attributes, those first that alone lower the Gini impurity most."""
    found = []
    for column, values in ((column, inputs[:, column]) for column in columns.tolist()):
        present = np.unique(values)
        between = (present[1:] + present[:-1]) / 2
        if len(between) > CUTS_EACH:
            between = np.unique(np.quantile(values, np.linspace(0, 1, CUTS_EACH + 2)[1:-1]))
        for cut in between[between < present[-1]].tolist():
            side = values > cut
            impurity = sum(one.mean() * (1 - one.mean()) * len(one) for one in (labels[side], labels[~side]))
            found.append((impurity, column, cut))
    if not found:
        raise CapabilityError("a fair tree needs an unprotected attribute that differs between the training rows.")
    return [(column, cut) for _, column, cut in sorted(found)[:CUTS]]


def built(best: OptimalTree, inputs: Doubles, names: npt.NDArray[Any]) -> Any:
    """The tree as a fitted DecisionTreeClassifier: leaves give the shares of the classes among their rows."""
    from sklearn.tree import DecisionTreeClassifier
    from sklearn.tree._tree import Tree

    made = DecisionTreeClassifier(max_depth=2).fit(inputs, names)
    classes = (names[:, None] == made.classes_[None, :]).astype(np.float64)
    first, left, right = (inputs[:, column] > cut for column, cut in best.splits)
    inside = [
        np.ones(len(names), np.bool_),
        ~first,
        ~first & ~left,
        ~first & left,
        first,
        first & ~right,
        first & right,
    ]
    nodes = np.zeros(7, made.tree_.__getstate__()["nodes"].dtype)
    nodes["left_child"], nodes["right_child"] = [1, 2, -1, -1, 5, -1, -1], [4, 3, -1, -1, 6, -1, -1]
    nodes["feature"], nodes["threshold"] = -2, -2.0
    nodes["feature"][[0, 1, 4]], nodes["threshold"][[0, 1, 4]] = zip(*best.splits, strict=True)
    nodes["n_node_samples"] = nodes["weighted_n_node_samples"] = [one.sum() for one in inside]
    for place, above in enumerate((0, 0, 1, 1, 0, 4, 4)):  # a node that nobody reaches says what the one above it does
        inside[place] = inside[place] if inside[place].any() else inside[above]
    shares = np.stack([classes[one].mean(axis=0) for one in inside])
    nodes["impurity"] = 1 - (shares**2).sum(axis=1)
    tree = Tree(inputs.shape[1], np.array([len(made.classes_)], dtype=np.intp), 1)
    tree.__setstate__({"max_depth": 2, "node_count": 7, "nodes": nodes, "values": shares[:, None, :].copy()})
    made.tree_ = tree
    return made
