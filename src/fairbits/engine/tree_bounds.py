"""Bounds of a tree ensemble's sum over boxes of people, for every twin.

Only splits matter: values of an attribute that no split tells apart share a bin, of a real one all those between two
thresholds, and a box is a range of bins for every attribute. In each tree a walk follows both sides of every split that
a box does not settle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Attribute, Encoding, Numeric, Schema, Twins, Unseen
from fairbits.engine.kernels.compiler import compiled, linked
from fairbits.engine.trees import sum_slack
from fairbits.errors import CapabilityError
from fairbits.models import ZERO, ZERO_WIDTH, Ensemble, HasTrees

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Nodes that a walk can have before it at once: more than the levels of a tree that is read.
STACK = 16_384


class TreeArrays(NamedTuple):
    """An ensemble of one output, as the kernel takes it.

    ``attribute`` is the place of a node's attribute among those of a box, -1 at a leaf, -2 where only the twin decides.
    ``start`` is where the node's counts begin in ``lefts``: how many of the first b bins go left. ``twin_left`` is
    (nodes, m); ``shared`` says which trees look at no twin.
    """

    roots: Integers
    shared: NDArray[np.bool_]
    attribute: Integers
    start: Integers
    lefts: Integers
    left: Integers
    right: Integers
    twin_left: NDArray[np.bool_]
    values: Doubles
    base: float


@dataclass(frozen=True, slots=True, eq=False)
class TreeBoxes:
    """An ensemble over boxes of people: ranges of bins of values that no split separates."""

    arrays: TreeArrays
    columns: Integers
    codes: tuple[Doubles, ...]
    counts: tuple[Integers, ...]
    factor: int
    link: str
    slope: float
    complement: bool
    m: int
    slack: float

    @property
    def people(self) -> int:
        """How many people there are in all."""
        return self.factor * math.prod(int(counts.sum()) for counts in self.counts)

    @property
    def cells(self) -> int:
        """How many combinations of bins there are."""
        return math.prod(len(counts) for counts in self.counts)


def tree_boxes(  # noqa: PLR0915 - attribute by attribute
    model: HasTrees, schema: Schema, encoding: Encoding, twins: Twins
) -> TreeBoxes:
    """A tree model over boxes of people."""
    ensemble = model.ensemble
    slack = sum_slack(ensemble, len(twins.columns), twins.m) / ensemble.divisor
    ensemble = ensemble.plain()
    if ensemble.width > 1 and ensemble.link == "identity" and len(schema.classes) <= 2:
        ensemble = ensemble.only_output(int(getattr(model, "favourable", 1)))
    if ensemble.outputs != 1 or ensemble.width != 1:
        raise CapabilityError(
            f"cells need trees that add up to one sum, but these make {ensemble.outputs}; the statistical statement "
            f"holds for them as for every model."
        )
    owner = np.full(encoding.width, -1)
    for column, part in enumerate(encoding.parts):
        owner[part.columns] = column
    nodes = len(ensemble.feature)
    inner = np.flatnonzero(ensemble.feature >= 0)
    node_owner = np.full(nodes, -2)
    node_owner[inner] = owner[ensemble.feature[inner]]
    attribute, start = np.where(ensemble.feature >= 0, -2, -1).astype(np.int64), np.zeros(nodes, np.int64)
    twin_left = np.zeros((nodes, twins.m), np.bool_)
    columns: list[int] = []
    codes: list[Doubles] = []
    counts: list[Integers] = []
    lefts = [np.empty(0, np.int64)]
    factor, used = 1, 0
    protected = {int(column): place for place, column in enumerate(twins.columns)}
    for column in range(len(schema)):
        mine = np.flatnonzero(node_owner == column)
        one = schema.attributes[column]
        if column in protected:
            values, widths = twins.values[:, protected[column]], np.ones(twins.m, np.int64)
        elif one.discrete or one.allowed:
            values = one.domain_values()
            widths = np.ones(len(values), np.int64)
        else:
            values, widths = _cells(ensemble, encoding, column, mine, one)
        if not len(mine) or isinstance(encoding.parts[column], Unseen):
            factor *= 1 if column in protected else len(values)
            continue
        left = _goes_left(ensemble, encoding, column, mine, values)
        if column in protected:
            twin_left[mine] = left
            continue
        new = np.concatenate([[True], (left[:, 1:] != left[:, :-1]).any(axis=0)])
        first = np.flatnonzero(new)
        attribute[mine] = len(columns)
        start[mine] = used + np.arange(len(mine)) * (len(first) + 1)
        sums = np.zeros((len(mine), len(first) + 1), np.int64)
        sums[:, 1:] = np.cumsum(left[:, first], axis=1)
        lefts.append(sums.ravel())
        used += sums.size
        columns.append(column)
        codes.append(values[first])
        counts.append(np.add.reduceat(widths, first))
    for feature, value in encoding.fixed.items():
        mine = np.flatnonzero(ensemble.feature == feature)
        at = ensemble.rounded(encoding.dtype_rounded(np.full(len(mine), value)))
        twin_left[mine] = ensemble.goes_left(mine, at)[:, None]
    shared = np.array([not (attribute[ensemble.nodes(t)] == -2).any() for t in range(ensemble.trees)], np.bool_)
    arrays = TreeArrays(
        ensemble.roots.astype(np.int64),
        shared,
        attribute,
        start,
        np.concatenate(lefts),
        ensemble.left.astype(np.int64),
        ensemble.right.astype(np.int64),
        twin_left,
        np.ascontiguousarray(ensemble.values[:, 0]),
        float(ensemble.base[0]),
    )
    return TreeBoxes(
        arrays,
        np.array(columns, dtype=np.int64),
        tuple(codes),
        tuple(counts),
        factor,
        ensemble.link,
        ensemble.slope,
        bool(model.complement),
        twins.m,
        slack + sum_slack(ensemble, 0, 1),
    )


def _cells(
    ensemble: Ensemble, encoding: Encoding, column: int, nodes: Integers, attribute: Attribute
) -> tuple[Doubles, Integers]:
    """A real attribute cut where some split turns: a value of each piece, and the pieces' widths in parts of 2**-30.

    What a value becomes (scaled, rounded to the library's precision) never falls where the value rises, so that the
    last value that a threshold keeps is found by bisection over doubles: no value lies between two pieces.
    """
    part = encoding.parts[column]
    if not len(nodes) or isinstance(part, Unseen):
        return np.array([attribute.low], dtype=np.float64), np.ones(1, np.int64)
    if not isinstance(part, Numeric) or ensemble.sets[nodes].max(initial=-1) >= 0:
        raise CapabilityError(
            f"attribute {attribute.name!r} is real, but the trees take it as categories; the statistical statement "
            f"holds for them as for every model."
        )
    cuts = ensemble.threshold[nodes]
    if (ensemble.missing[nodes] == ZERO).any():
        cuts = np.concatenate([cuts, [np.nextafter(-ZERO_WIDTH, -np.inf), ZERO_WIDTH]])
    cuts = np.unique(cuts)
    rising = part.scale >= 0

    def kept(codes: Doubles) -> NDArray[np.bool_]:
        inputs = ensemble.rounded(encoding.dtype_rounded(part.encode(codes)))[:, 0]
        return np.asarray(inputs <= cuts if rising else ~(inputs <= cuts))

    # The last code of the first side of each cut, or -1: as whole numbers that are in the order of the doubles.
    low = np.full(len(cuts), _ordered(np.array([attribute.low]))[0] - 1)
    high = np.full(len(cuts), _ordered(np.array([attribute.upper]))[0])
    while (low < high).any():
        middle = (low | high) - ((low ^ high) >> 1)  # the mean, rounded up, of numbers whose sum may be too large
        there = kept(_doubles(middle))
        low, high = np.where(there, middle, low), np.where(there, high, middle - 1)
    first = _ordered(np.array([attribute.low]))[0]
    ends = np.unique(low[(low >= first)])
    ends = np.unique(np.append(ends, _ordered(np.array([attribute.upper]))[0]))
    begins = np.concatenate([[first], ends[:-1] + 1])
    starts, stops = _doubles(begins), _doubles(ends)
    span = max(attribute.upper - attribute.low, np.finfo(np.float64).tiny)
    widths = np.maximum(1, np.rint((stops - starts) / span * 2.0**30)).astype(np.int64)  # a single value is somebody
    return np.clip(starts + (stops - starts) / 2, starts, stops), widths


def _ordered(values: Doubles) -> Integers:
    """Whole numbers in the order of doubles: neighbours differ by 1."""
    bits = np.asarray(values + 0.0, dtype=np.float64).view(np.int64)  # -0.0 is 0.0
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _doubles(order: Integers) -> Doubles:
    """The doubles of such numbers."""
    return np.where(order < 0, np.int64(-(2**63)) - order, order).view(np.float64)


def _goes_left(ensemble: Any, encoding: Encoding, column: int, nodes: Integers, values: Doubles) -> NDArray[np.bool_]:
    """Which values each of an attribute's splits sends left, (nodes, values)."""
    part = encoding.parts[column]
    rows = ensemble.rounded(encoding.dtype_rounded(np.asarray(part.encode(values)).reshape(len(values), -1)))
    places = {int(feature): place for place, feature in enumerate(part.columns)}
    found = np.empty((len(nodes), len(values)), np.bool_)
    for i, node in enumerate(nodes.tolist()):
        found[i] = ensemble.goes_left(np.full(len(values), node), rows[:, places[int(ensemble.feature[node])]])
    return found


@compiled
def bound_sums(  # noqa: PLR0912 - tree by tree, twin by twin
    trees: Any, firsts: Any, lasts: Any, lows: Any, highs: Any, spans: Any, places: Any, cuts: Any
) -> None:
    """Bound the ensemble's sum for every twin over some boxes, and where to split them."""
    m = lows.shape[1]
    attributes = firsts.shape[1]
    stack = np.empty(STACK, np.int64)
    weight = np.empty(attributes)
    chosen = np.empty(attributes, np.int64)
    heaviest = np.empty(attributes)
    own_low, own_high = np.empty(m), np.empty(m)
    for box in range(firsts.shape[0]):
        first, last = firsts[box], lasts[box]
        for a in range(attributes):
            weight[a], chosen[a], heaviest[a] = 0.0, -1, -1.0
        for z in range(m):
            lows[box, z] = trees.base
            highs[box, z] = trees.base
            own_low[z] = own_high[z] = 0.0
        for t in range(trees.roots.shape[0]):
            for z in range(m):
                low, high, spot = _walk(trees, trees.roots[t], z, first, last, stack)
                if trees.shared[t]:
                    for y in range(m):
                        lows[box, y] += low
                        highs[box, y] += high
                else:
                    lows[box, z] += low
                    highs[box, z] += high
                    own_low[z] += low
                    own_high[z] += high
                if spot >= 0:  # the first split that the box leaves open
                    a = trees.attribute[spot]
                    weight[a] += high - low
                    if high - low > heaviest[a]:
                        heaviest[a], chosen[a] = high - low, spot
                if trees.shared[t]:
                    break
        spans[box] = own_high.max() - own_low.min()
        best, places[box], cuts[box] = -1.0, -1, -1
        for a in range(attributes):
            if chosen[a] >= 0 and weight[a] > best:
                best, places[box] = weight[a], a
        if places[box] >= 0:
            a = places[box]
            base = trees.start[chosen[a]]
            # The first bin that does not go the way of the one before it.
            cut = first[a]
            side = trees.lefts[base + cut + 1] - trees.lefts[base + cut]
            while trees.lefts[base + cut + 2] - trees.lefts[base + cut + 1] == side:
                cut += 1
            cuts[box] = cut


@linked
def _walk(trees: Any, root: int, z: int, first: Any, last: Any, stack: Any) -> Any:
    """The least and the most that one tree adds for one twin over a box, and the first split that is not settled."""
    low, high, spot = np.inf, -np.inf, -1
    stack[0] = root
    depth = 1
    while depth:
        depth -= 1
        node = stack[depth]
        a = trees.attribute[node]
        if a == -1:
            low, high = min(low, trees.values[node]), max(high, trees.values[node])
        elif a == -2:
            stack[depth] = trees.left[node] if trees.twin_left[node, z] else trees.right[node]
            depth += 1
        else:
            base = trees.start[node]
            going = trees.lefts[base + last[a] + 1] - trees.lefts[base + first[a]]
            if going > 0:
                stack[depth] = trees.left[node]
                depth += 1
            if going < last[a] - first[a] + 1:
                stack[depth] = trees.right[node]
                depth += 1
                if going > 0 and spot < 0:
                    spot = node
    return low, high, spot


__all__ = ["TreeBoxes", "bound_sums", "tree_boxes"]
