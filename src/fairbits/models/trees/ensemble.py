"""Tree ensembles as plain arrays: every library's trees, one after the other, in one form; and as a model.

A split sends a value to the left where ``value <= threshold``, or where the value is in a set of categories; values
are first rounded to the precision that the library compares in. What counts as missing, and where it goes, is stated
per split. The readers beside this file turn each library's own rules into these, so that scores come out the same: to
the last bit, because sums are added in the library's precision and order (``predicted``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import DecisionRule, Doubles
from fairbits.errors import ModelError
from fairbits.functions import c_exp, expit, softmax
from fairbits.models.base import Array, SeveralClasses, checked_rows

#: Nodes of one tree that make sense; how much memory and time all of them take is limited where a file is tried out.
MAX_TREE_NODES = 5_000_000


class Damaged(ModelError):
    """An ensemble whose nodes do not make trees."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """One tree while it is read: arrays by node, the root first."""

    feature: npt.NDArray[np.int64]
    threshold: Doubles
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    missing: npt.NDArray[np.int8]
    missing_left: npt.NDArray[np.bool_]
    values: Doubles
    output: int = 0
    categories: dict[int, npt.NDArray[np.int64]] | None = None
    known: dict[int, npt.NDArray[np.int64]] | None = None


def check_tree(tree: Tree, number: int, features: int, outputs: int) -> None:
    """Refuse arrays that are no tree: children outside, shared or in a circle, features that do not exist."""
    n = len(tree.feature)
    name = f"tree {number + 1}"
    if n == 0:
        raise Damaged(f"{name} has no nodes.")
    if n > MAX_TREE_NODES:
        raise Damaged(f"{name} has {n:,} nodes, more than the {MAX_TREE_NODES:,} that are read.")
    if any(len(array) != n for array in (tree.threshold, tree.left, tree.right, tree.missing, tree.values)):
        raise Damaged(f"{name} has arrays of different lengths.")
    inner = tree.feature >= 0
    if (tree.feature >= features).any():
        raise Damaged(f"{name} splits on feature {int(tree.feature.max())}, but there are {features}.")
    if not 0 <= tree.output <= outputs - tree.values.shape[1]:
        raise Damaged(f"{name} adds to output {tree.output}, but there are {outputs}.")
    children = np.concatenate([tree.left[inner], tree.right[inner]])
    if len(children) and not (children.min() > 0 and children.max() < n):
        raise Damaged(f"{name} has a child outside of its {n:,} nodes.")
    if len(np.unique(children)) != len(children):
        raise Damaged(f"{name} has a node with two parents, so that it is no tree.")
    if not np.isfinite(tree.values[~inner]).all() or np.isnan(tree.threshold[inner]).any():
        raise Damaged(f"{name} has a leaf whose value is not finite, or a split whose threshold is no number.")


def from_root(tree: Tree) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The nodes that can be reached, level by level, the two children of a split side by side; and where each one's
    children stand in that order. What a library has pruned but kept in its arrays is left out.
    """
    order, children = [np.zeros(1, dtype=np.int64)], []
    total = 1
    while len(order[-1]):
        level = order[-1]
        split = tree.feature[level] >= 0
        begin = np.zeros(len(level), dtype=np.int64)
        begin[split] = total + 2 * np.arange(int(split.sum()))
        children.append(begin)
        below = np.stack([tree.left[level[split]], tree.right[level[split]]], axis=1).ravel()
        order.append(below)
        total += len(below)
    return np.concatenate(order), np.concatenate(children)


Precision = Literal["float32", "float64"]
Link = Literal["identity", "logistic", "softmax", "exp", "softplus", "step", "square", "logistic_each"]

#: What a split takes for a missing value: nothing (NaN is read as 0), zeros and NaN, or NaN alone.
NOTHING, ZERO, NAN = 0, 1, 2
#: LightGBM reads everything as near to zero as this as zero.
ZERO_WIDTH = float(np.float32(1e-35))

#: What an ensemble knows of each node.
_BY_NODE: dict[str, Any] = {
    **{"feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing": np.int8},
    **{"missing_left": np.bool_, "sets": np.int32, "values": np.float64},
}


@dataclass(frozen=True, slots=True, eq=False)
class Ensemble:
    """All trees of a model as flat, read-only arrays; make one with ``build``.

    Tree t begins at node ``roots[t]`` and adds the values of the leaf that a row reaches to the outputs from
    ``output[t]`` on. ``adds`` is the precision of these sums: XGBoost has float32, everybody else float64. Sums start
    from ``base`` or, where ``base_last``, end with it; a forest then divides by the number of its trees (``divisor``).
    """

    features: int
    roots: npt.NDArray[np.int64]
    output: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int32]
    threshold: Doubles
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    missing: npt.NDArray[np.int8]
    missing_left: npt.NDArray[np.bool_]
    sets: npt.NDArray[np.int32]
    members: tuple[npt.NDArray[np.bool_], ...]
    known: tuple[npt.NDArray[np.bool_] | None, ...]
    values: Doubles
    base: Doubles
    link: Link = "identity"
    slope: float = 1.0
    precision: Precision = "float64"
    adds: Precision = "float64"
    base_last: bool = False
    divisor: float = 1.0

    @classmethod
    def build(
        cls,
        trees: Sequence[Tree],
        *,
        features: int,
        base: npt.ArrayLike,
        link: Link = "identity",
        slope: float = 1.0,
        precision: Precision = "float64",
        adds: Precision = "float64",
        base_last: bool = False,
        divisor: float = 1.0,
        scale: float = 1.0,
    ) -> Ensemble:
        """Trees that were read, checked and put one after the other; ``scale`` multiplies what each adds."""
        base = np.array(base, dtype=np.float64).ravel()
        if not len(base) or not np.isfinite(base).all():
            raise Damaged("the value that it starts from is not finite, or not there.")
        widths = {tree.values.shape[1] for tree in trees} or {1}
        if len(widths) > 1:
            raise Damaged("its trees have leaves of several widths.")
        pieces: list[dict[str, Any]] = [dict.fromkeys(_BY_NODE, np.empty(0)) | {"values": np.empty((0, *widths))}]
        members: list[npt.NDArray[np.bool_]] = []
        known: list[npt.NDArray[np.bool_] | None] = []
        roots, start = [], 0
        for number, tree in enumerate(trees):
            check_tree(tree, number, features, len(base))
            order, first = from_root(tree)
            inner = tree.feature[order] >= 0
            sets = np.full(len(tree.feature), -1, dtype=np.int32)
            for node, chosen in (tree.categories or {}).items():
                sets[node] = len(members)
                members.append(_flags(chosen))
                known.append(None if tree.known is None else _flags(tree.known[node]))
            mine = {name: getattr(tree, name)[order] for name in ("feature", "threshold", "missing", "missing_left")}
            left = np.where(inner, start + first, 0)
            values = np.where(inner[:, None], 0.0, tree.values[order] * scale)
            pieces.append({**mine, "left": left, "right": left + inner, "sets": sets[order], "values": values})
            roots.append(start)
            start += len(order)
        arrays = {
            name: np.concatenate([piece[name] for piece in pieces]).astype(kind) for name, kind in _BY_NODE.items()
        }
        arrays |= {"roots": np.array(roots, np.int64), "output": np.array([one.output for one in trees], np.int64)}
        for array in (*arrays.values(), base, *members):
            array.setflags(write=False)
        return cls(
            features=features,
            members=tuple(members),
            known=tuple(known),
            base=base,
            link=link,
            slope=slope,
            precision=precision,
            adds=adds,
            base_last=base_last,
            divisor=divisor,
            **arrays,
        )

    @property
    def trees(self) -> int:
        return len(self.roots)

    @property
    def outputs(self) -> int:
        """How many sums the trees add to."""
        return len(self.base)

    @property
    def width(self) -> int:
        """How many outputs a leaf adds to."""
        return self.values.shape[1]

    def nodes(self, tree: int) -> slice:
        end = self.roots[tree + 1] if tree + 1 < self.trees else len(self.feature)
        return slice(int(self.roots[tree]), int(end))

    def rounded(self, values: npt.ArrayLike) -> Doubles:
        """Values in the precision in which the library compares them."""
        with np.errstate(over="ignore"):
            return np.asarray(np.asarray(values, dtype=self.precision), dtype=np.float64)

    def goes_left(self, nodes: npt.NDArray[np.integer[Any]], values: Doubles) -> npt.NDArray[np.bool_]:
        """Which way a value takes at each of some splits."""
        rule, sets = self.missing[nodes], self.sets[nodes]
        gone = np.isnan(values)
        numeric = sets < 0
        read = np.where(gone & (rule != NAN) & numeric, 0.0, values)
        missing = (gone & ((rule == NAN) | ~numeric)) | ((rule == ZERO) & numeric & (np.abs(read) <= ZERO_WIDTH))
        with np.errstate(invalid="ignore"):
            left = read <= self.threshold[nodes]
        categorical = np.flatnonzero(~numeric & ~gone)
        for number in np.unique(sets[categorical]).tolist():
            mine = categorical[sets[categorical] == number]
            left[mine], missing[mine] = self._in_set(number, values[mine])
        return np.where(missing, self.missing_left[nodes], left)

    def _in_set(self, number: int, values: Doubles) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which categories are in a split's set, and which ones the split takes for missing."""
        codes = np.where(np.abs(values) < 2**31, values, -1).astype(np.int64)
        inside = _among(self.members[number], codes)
        known = self.known[number]
        return inside, np.zeros(len(codes), np.bool_) if known is None else ~(inside | _among(known, codes))

    def leaves(self, rows: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """The leaf (by node) that each row of features reaches in every tree, (n, trees)."""
        values = self.rounded(rows)
        found = np.empty((len(values), self.trees), dtype=np.int32)
        people = np.arange(len(values))
        for tree, root in enumerate(self.roots):
            at = np.full(len(values), root, dtype=np.int32)
            going = people
            while len(going):
                going = going[self.feature[at[going]] >= 0]
                here = at[going]
                left = self.goes_left(here, values[going, self.feature[here]])
                at[going] = np.where(left, self.left[here], self.right[here])
            found[:, tree] = at
        return found

    def predicted(self, leaves: npt.NDArray[np.int32]) -> Doubles:
        """What the library predicts for rows of these leaves, (n, trees), to the bit: one column, or one per class."""
        return exact_link(self.sums(leaves), self.link, self.slope, single=self.adds == "float32")

    def sums(self, leaves: npt.NDArray[np.int32]) -> Doubles:
        """Sums of the values of leaves, (n, trees), before the link, as the library adds them."""
        base, values = self.base.astype(self.adds), self.values.astype(self.adds, copy=False)
        total = np.tile(np.zeros_like(base) if self.base_last else base, (len(leaves), 1))
        for tree in range(self.trees):
            first = self.output[tree]
            total[:, first : first + self.width] += values[leaves[:, tree]]
        total = total + base if self.base_last else total
        return np.asarray(total / self.divisor, dtype=np.float64)

    def linked(self, sums: Doubles) -> Doubles:
        """Predictions from sums, up to rounding: one column, or one for every class."""
        return apply_link(sums, self.link, self.slope)

    def plain(self) -> Ensemble:
        """The same trees, whose values add up to the sums as real numbers do: for bounds and shares, not for scores."""
        if self.divisor == 1.0 and self.adds == "float64":
            return self
        values, base = self.values / self.divisor, self.base / self.divisor
        return replace(self, values=values, base=base, divisor=1.0, adds="float64")

    def reordered(self, order: Sequence[int]) -> Ensemble:
        """The same trees with output ``order[i]`` in place i."""
        base = self.base[list(order)].copy()
        if self.width == 1:
            return replace(self, output=np.argsort(order)[self.output], base=base)
        return replace(self, values=np.ascontiguousarray(self.values[:, list(order)]), base=base)

    def only_output(self, output: int) -> Ensemble:
        """The same trees with one of several outputs of a leaf, where no other is needed to tell it (no softmax)."""
        return replace(self, values=np.ascontiguousarray(self.values[:, [output]]), base=self.base[[output]].copy())


_LINKS: dict[Link, Callable[[Doubles], Doubles]] = {
    **{"identity": lambda sums: sums, "logistic": expit, "logistic_each": expit, "exp": np.exp},
    **{"softmax": lambda sums: softmax(sums, axis=-1), "softplus": lambda sums: np.logaddexp(0, sums)},
    **{"step": lambda sums: (sums > 0).astype(np.float64), "square": lambda sums: np.sign(sums) * sums * sums},
}


def apply_link(sums: Doubles, link: Link, slope: float = 1.0) -> Doubles:
    """Predictions from the sums of an ensemble; ``slope`` is a factor before a sigmoid."""
    with np.errstate(over="ignore"):
        return _LINKS[link](slope * sums if link in ("logistic", "logistic_each") else sums)


def exact_link(sums: Doubles, link: Link, slope: float = 1.0, *, single: bool = False) -> Doubles:
    """Predictions from the sums of an ensemble, in the arithmetic of its library: float32 or float64, powers by C.

    XGBoost: ``common/math.h``. scikit-learn's softmax is NumPy's; LightGBM's and CatBoost's differ from it by less than
    a float32 can tell.
    """
    x = sums.astype(np.float32) if single else sums
    one = x.dtype.type(1)
    if link in ("logistic", "logistic_each"):
        found = one / (c_exp(np.minimum(-x, x.dtype.type(88.7)) if single else -slope * x) + one)
    elif link == "softmax" and single:
        powers = c_exp(x - x.max(axis=-1, keepdims=True))
        found = powers / np.cumsum(powers, axis=-1, dtype=np.float64)[..., -1:].astype(np.float32)
    else:
        found = c_exp(x) if link == "exp" else apply_link(sums, link, slope)
    return np.asarray(found, dtype=np.float64)


def _among(flags: npt.NDArray[np.bool_], codes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    there = (codes >= 0) & (codes < len(flags))
    found = np.zeros(len(codes), np.bool_)
    found[there] = flags[codes[there]]
    return found


def _flags(categories: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    chosen = np.asarray(categories, dtype=np.int64)
    if len(chosen) and (chosen.min() < 0 or chosen.max() >= 2**24):
        raise Damaged(f"it has a category numbered {int(chosen.max())}; numbers from 0 to {2**24 - 1:,} make sense.")
    flags = np.zeros(int(chosen.max(initial=-1)) + 1, dtype=np.bool_)
    flags[chosen] = True
    return flags


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """What a reader made of a model. ``classes`` as in TreeModel; ``labels`` are their names, where it names them.

    ``names`` are those of features, as a library may also make them up for an array. ``categories`` holds the values of
    each categorical feature in the order of the model's numbers for them, or None where the model does not remember
    them. ``refuses`` says that the library refuses categories that it has never seen, where others read them as
    missing.
    """

    ensemble: Ensemble
    classes: int | None
    name: str
    names: tuple[str, ...]
    categories: Mapping[int, tuple[Any, ...] | None] = field(default_factory=dict)
    refuses: bool = False
    objective: str = ""
    labels: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


#: Rows whose leaves are found at once.
_ROWS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class TreeModel(SeveralClasses):
    """An ensemble, and which of its predictions is the score."""

    ensemble: Ensemble
    classes: int | None = None
    favourable: int = 1
    name: str = "the tree ensemble"
    rule: DecisionRule | None = None

    @property
    def inputs(self) -> int:
        return self.ensemble.features

    def scores(self, inputs: npt.ArrayLike) -> Array:
        found = self.chosen(self._predictions(inputs))
        return found.astype(np.float32) if self.rule is None else self.rule.rounded(found)

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        found = self._predictions(inputs)
        both = found if found.shape[1] > 1 else np.column_stack([1 - found[:, 0], found[:, 0]])
        return both.astype(np.float32) if self.rule is None else self.rule.rounded_table(both)

    def chosen(self, predictions: Doubles) -> Doubles:
        if predictions.shape[-1] > 1:
            return predictions[..., self.favourable]
        only = predictions[..., 0]
        return 1 - only if self.complement else only

    @property
    def complement(self) -> bool:
        """Whether the score is what the only prediction, the probability of class 1, leaves to class 0."""
        return bool(self.ensemble.outputs == 1 and self.classes and self.favourable == 0)

    def with_favourable(self, index: int) -> TreeModel:
        if self.classes and not 0 <= index < self.classes:
            raise ModelError(f"class {index} does not exist; {self.name} decides between {self.classes}.")
        return replace(self, favourable=index)

    def _predictions(self, inputs: npt.ArrayLike) -> Doubles:
        rows = checked_rows(inputs, self.inputs, self.name, np.float64)
        pieces = (self.ensemble.leaves(rows[start : start + _ROWS]) for start in range(0, max(len(rows), 1), _ROWS))
        return np.concatenate(list(map(self.ensemble.predicted, pieces)))
