"""A small decision tree that nobody's protected values can reach: k = 1 and no flip, by the way it is made.

The tree takes the model's own inputs and splits on those of unprotected attributes alone, so that all twins of a person
end in the same leaf; the checker that proves it looks at the tree. Two are proposed. The one of depth 2 is optimal over
the cuts that were listed: a mixed-integer programme (HiGHS, by SciPy) chooses the split of every node, the class of
every leaf and the way of every pattern of answers, so that most training rows are decided as labelled; where time ends
first, the words say how many more a better one could have. The deeper one is grown greedily (CART); what any decision
that ignores protected attributes could reach on these rows, with a leaf for each kind of person, bounds what it misses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.data import asked
from fairbits.errors import CapabilityError
from fairbits.repair.proposals.mitigators import TrainingData
from fairbits.repair.proposals.proposer import Planner, Proposal

Doubles = npt.NDArray[np.float64]

#: Depth of the greedy tree, and rows that a leaf of it needs.
DEPTH, LEAF_ROWS = 4, 10
#: Cuts that the optimal tree chooses from, cuts of one input among them, patterns of answers, and seconds.
CUTS, CUTS_EACH, PATTERNS, SECONDS = 24, 8, 400, 10.0


@dataclass(frozen=True, slots=True)
class OptimalTree:
    """A tree of depth 2: (input, threshold) of root, left and right node; inputs at most the threshold go left."""

    splits: tuple[tuple[int, float], ...]
    leaves: tuple[int, ...]
    right: int  # rows decided as labelled
    bound: float  # more than any tree over these cuts can have


@dataclass(frozen=True, slots=True)
class FairTree:
    """Two proposals: an optimal tree of depth 2, and a greedy one of depth 4."""

    name: str = "tree"
    depth: int = DEPTH
    seconds: float = SECONDS  # that the optimal one may take

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Fit both to the labels of the training rows."""
        from sklearn.tree import DecisionTreeClassifier

        data = TrainingData.of(planner, "a fair tree")
        subject = data.subject
        free = [subject.encoding.parts[i].columns for i in subject.schema.free_columns]
        columns = np.concatenate(free).astype(np.int64) if free else np.empty(0, np.int64)
        if len(columns) == 0:
            raise CapabilityError("a fair tree splits on unprotected attributes, and this model takes none.")
        inputs = np.asarray(subject.encoding.encode(data.rows), np.float64)
        shown = np.zeros_like(inputs)  # a protected input is the same for everybody, so that no split asks for it
        shown[:, columns] = inputs[:, columns]
        names = np.array(subject.schema.classes)[data.labels.astype(np.int64)]
        rows = len(names)
        planner.watch("choosing the optimal tree of depth 2")
        best = optimal_tree(shown, data.labels.astype(np.int64), columns, seconds=self.seconds)
        miss = max(0.0, best.bound - best.right) / rows
        words = f"the best tree of depth 2 over {CUTS} cuts" if miss < 1e-9 else "a tree of depth 2"
        gap = "optimal" if miss < 1e-9 else f"a better one has at most {100 * miss:.1f} points more"
        yield self._proposal("tree-2", f"{words}, {gap} on training rows", built(best, shown, names), data)
        planner.watch(f"growing a tree of depth {self.depth}")
        grown = DecisionTreeClassifier(max_depth=self.depth, min_samples_leaf=LEAF_ROWS, random_state=0)
        grown.fit(shown, names)
        right, most = (
            float((grown.predict(shown) == names).mean()),
            ignoring(shown, data.labels.astype(np.int64)) / rows,
        )
        text = f"a greedy tree of depth {self.depth}, at most {100 * (most - right):.1f} points below the best there is"
        yield self._proposal(
            f"tree-{self.depth}", f"{text} without protected attributes, on training rows", grown, data
        )

    def _proposal(self, name: str, words: str, tree: Any, data: TrainingData) -> Proposal:
        fitted = asked(tree, data.subject)
        return Proposal(
            name, f"{words}; no split on a protected attribute", fitted.model, retrained=True, fitted=fitted
        )


def ignoring(inputs: Doubles, labels: npt.NDArray[np.int64]) -> int:
    """Rows decided as labelled where everybody who is alike gets the commoner label: no tree over these has more."""
    kinds = np.unique(inputs, axis=0, return_inverse=True)[1].ravel()
    ones = np.bincount(kinds, weights=labels)
    return int(np.maximum(ones, np.bincount(kinds) - ones).sum())


def optimal_tree(
    inputs: Doubles, labels: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], *, seconds: float = SECONDS
) -> OptimalTree:
    """The tree of depth 2 with most rows decided as labelled, over the most telling cuts."""
    cuts = _cuts(inputs, labels, columns)
    answers = np.column_stack([inputs[:, column] > cut for column, cut in cuts])
    patterns, kinds = np.unique(answers, axis=0, return_inverse=True)
    kinds = kinds.ravel()
    counts = np.column_stack([np.bincount(kinds, weights=labels == one, minlength=len(patterns)) for one in (0, 1)])
    if (
        len(patterns) > PATTERNS
    ):  # the most frequent ones are solved for; the others count for the bound as if all right
        kept = np.argsort(-counts.sum(axis=1), kind="stable")[:PATTERNS]
        missing = float(counts.max(axis=1).sum() - counts[kept].max(axis=1).sum())
        patterns, counts = patterns[kept], counts[kept]
    else:
        missing = 0.0
    chosen, leaves, bound = _solved(patterns, counts.astype(np.float64), seconds)
    splits = tuple(cuts[place] for place in chosen)
    first, *below = (inputs[:, column] > cut for column, cut in splits)
    leaf = 2 * first + np.where(first, below[1], below[0])
    right = int((np.array(leaves)[leaf] == labels).sum())
    return OptimalTree(splits, leaves, right, bound + missing)


def _cuts(inputs: Doubles, labels: npt.NDArray[np.int64], columns: npt.NDArray[np.int64]) -> list[tuple[int, float]]:
    """Cuts between values of inputs, those first that alone lower the Gini impurity most."""
    found = []
    for column in columns.tolist():
        values = np.unique(inputs[:, column])
        between = (values[1:] + values[:-1]) / 2
        if len(between) > CUTS_EACH:
            between = np.unique(np.quantile(inputs[:, column], np.linspace(0, 1, CUTS_EACH + 2)[1:-1]))
        for cut in between[between < values[-1]].tolist():
            side = inputs[:, column] > cut
            impurity = sum(one.mean() * (1 - one.mean()) * len(one) for one in (labels[side], labels[~side]))
            found.append((impurity, column, cut))
    if not found:
        raise CapabilityError("a fair tree needs an unprotected attribute that differs between the training rows.")
    return [(column, cut) for _, column, cut in sorted(found)[:CUTS]]


def _solved(
    patterns: npt.NDArray[np.bool_], counts: Doubles, seconds: float
) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """Splits of root, left and right node, classes of the leaves, and what nobody can exceed.

    Variables: split b[v, f], class c[l] and, for each pattern, the rows of a class that leaf l gets right, as shares
    r[i, l, y]. A pattern is right in a leaf only if every split above sends it there and the leaf has its class.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    kinds, cuts = patterns.shape
    leaves, nodes = 4, 3
    b = np.arange(nodes * cuts).reshape(nodes, cuts)
    c = b.size + np.arange(leaves)
    r = b.size + leaves + np.arange(kinds * leaves * 2).reshape(kinds, leaves, 2)
    size = int(r.max()) + 1
    entries: list[tuple[int, int, float]] = []
    limits: list[tuple[float, float]] = []

    def constrain(terms: list[tuple[int, float]], low: float, high: float) -> None:
        entries.extend((len(limits), column, value) for column, value in terms)
        limits.append((low, high))

    for node in range(nodes):
        constrain([(int(one), 1.0) for one in b[node]], 1, 1)
    for kind in range(kinds):
        for y in range(2):
            constrain([(int(r[kind, leaf, y]), 1.0) for leaf in range(leaves)], -np.inf, 1)
            for leaf in range(leaves):
                one = int(r[kind, leaf, y])
                constrain([(one, 1.0), (int(c[leaf]), -1.0 if y else 1.0)], -np.inf, 0 if y else 1)
                for node, goes in ((0, leaf // 2), (1 + leaf // 2, leaf % 2)):
                    there = b[node][patterns[kind] == bool(goes)]
                    constrain([(one, 1.0), *((int(split), -1.0) for split in there)], -np.inf, 0)
    rows, columns, values = zip(*entries, strict=True)
    matrix = coo_array((values, (rows, columns)), shape=(len(limits), size)).tocsc()
    ends = np.array(limits)
    aim = np.zeros(size)
    aim[r.ravel()] = -np.broadcast_to(counts[:, None, :], r.shape).ravel()
    whole = np.zeros(size)
    whole[: b.size + leaves] = 1
    found = milp(
        aim,
        constraints=LinearConstraint(matrix, ends[:, 0], ends[:, 1]),
        integrality=whole,
        bounds=Bounds(0, 1),
        options={"time_limit": seconds},
    )
    if found.x is None:
        raise CapabilityError(f"no tree was found within {seconds:g} s: {found.message}")
    splits = tuple(int(found.x[b[node]].argmax()) for node in range(nodes))
    return splits, tuple(int(found.x[one] > 0.5) for one in c), float(-found.mip_dual_bound)


def built(best: OptimalTree, inputs: Doubles, names: npt.NDArray[np.str_]) -> Any:
    """The tree as a fitted DecisionTreeClassifier: leaves give the shares of the classes among their rows."""
    from sklearn.tree import DecisionTreeClassifier
    from sklearn.tree._tree import Tree

    made = DecisionTreeClassifier(max_depth=2).fit(inputs, names)
    classes = (names[:, None] == made.classes_[None, :]).astype(np.float64)
    first, left, right = (inputs[:, column] > cut for column, cut in best.splits)
    everybody = np.ones(len(names), np.bool_)
    inside = [everybody, ~first, ~first & ~left, ~first & left, first, first & ~right, first & right]
    nodes = np.zeros(7, made.tree_.__getstate__()["nodes"].dtype)
    nodes["left_child"], nodes["right_child"] = [1, 2, -1, -1, 5, -1, -1], [4, 3, -1, -1, 6, -1, -1]
    nodes["feature"], nodes["threshold"] = -2, -2.0
    for node, (column, cut) in zip((0, 1, 4), best.splits, strict=True):
        nodes["feature"][node], nodes["threshold"][node] = column, cut
    sizes = np.array([int(one.sum()) for one in inside])
    nodes["n_node_samples"], nodes["weighted_n_node_samples"] = sizes, sizes
    shares = np.stack([classes[one].mean(axis=0) if one.any() else classes.mean(axis=0) for one in inside])
    nodes["impurity"] = 1 - (shares**2).sum(axis=1)
    tree = Tree(inputs.shape[1], np.array([len(made.classes_)], dtype=np.intp), 1)
    tree.__setstate__({"max_depth": 2, "node_count": 7, "nodes": nodes, "values": shares[:, None, :].copy()})
    made.tree_ = tree
    return made
