"""Bounds of a tree ensemble's sums over boxes of people, for every twin.

Only splits matter: values of an attribute that no split tells apart share a bin, of a real one all those between two
thresholds, and a box is a range of bins for every attribute. One walk through each tree finds the leaves that a box
reaches; which twins come to a leaf is known beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Attribute, Doubles, Encoding, Integers, Lookup, Numeric, Schema, Twins, Unseen
from fairbits.engine.kernels.compiler import compiled, linked
from fairbits.engine.trees import Walk, goes_left, owners_of, sum_slack, thresholds_of, twin_choices
from fairbits.errors import CapabilityError
from fairbits.functions import in_order
from fairbits.models import Ensemble, HasTrees


class TreeArrays(NamedTuple):
    """The trees of one or more sums, as the kernel takes them.

    ``attribute`` is the place of a node's attribute among those of a box, -1 at a leaf, -2 where only the twin decides.
    The first ``cut`` bins go left; where that is no range, ``cut`` is -1 and ``start`` is where the flags of the node's
    bins begin in ``lefts``.
    A tree tells ``kinds`` of twins apart, ``kind`` says which (trees, m). Its leaves are in the order of their values:
    ``rank`` of a leaf's node, ``values`` from ``leaf_start`` on, ``members`` from ``member_start`` on says which kinds
    of twins come to a leaf. It adds to the sums ``first`` up to before ``last``.
    """

    roots: Integers
    first: Integers
    last: Integers
    kinds: Integers
    kind: Integers
    leaf_start: Integers
    member_start: Integers
    members: NDArray[np.bool_]
    values: Doubles
    rank: Integers
    attribute: Integers
    cut: Integers
    start: Integers
    lefts: NDArray[np.bool_]
    left: Integers
    right: Integers
    base: Doubles
    depth: int


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
    def sums(self) -> int:
        """How many sums there are: the score's own, or the lead over each other class."""
        return len(self.arrays.base)

    @property
    def people(self) -> int:
        """How many people there are in all."""
        return self.factor * math.prod(int(counts.sum()) for counts in self.counts)


def _summed(model: HasTrees, classes: int, scored: bool) -> tuple[Ensemble, Integers, Integers]:
    """The trees as real numbers that add up to sums that decide, or (``scored``) that make the score; and to which sums
    each tree adds, from and before. Of several classes these are the leads of the favourable one over each other.
    """
    ensemble, favourable = model.ensemble.plain(), int(getattr(model, "favourable", 1))
    if ensemble.width > 1 and ensemble.link == "identity" and (scored or classes <= 2):
        ensemble = ensemble.only_output(favourable)
    n, outputs = ensemble.trees, ensemble.outputs
    if outputs == 1 and ensemble.width == 1:
        return ensemble, np.zeros(n, np.int64), np.ones(n, np.int64)
    if ensemble.link not in (("softmax",) if scored else ("softmax", "identity")):
        raise CapabilityError(
            f"cells know no bounds for scores of {outputs} classes with the link {ensemble.link!r}; the statistical "
            f"statement holds for them as for every model."
        )
    others = np.delete(np.arange(outputs), favourable)
    base = ensemble.base[favourable] - ensemble.base[others]
    if ensemble.width == 1:  # a tree of the favourable class adds to every lead, one of another to its own
        mine = ensemble.output == favourable
        place = np.searchsorted(others, ensemble.output)
        sign = np.repeat(np.where(mine, 1.0, -1.0), np.diff(np.append(ensemble.roots, len(ensemble.feature))))
        first, last = np.where(mine, 0, place), np.where(mine, len(others), place + 1)
        return replace(ensemble, values=sign[:, None] * ensemble.values, base=base), first, last
    # Leaves of several values: the tree once for every lead.
    nodes, copies = len(ensemble.feature), len(others)
    moved = np.repeat(np.arange(copies) * nodes, nodes)
    repeated = {
        name: np.tile(getattr(ensemble, name), copies)
        for name in ("feature", "threshold", "missing", "missing_left", "sets")
    }
    made = replace(
        ensemble,
        roots=(ensemble.roots[None] + np.arange(copies)[:, None] * nodes).ravel(),
        output=np.repeat(np.arange(copies), n),
        left=np.tile(ensemble.left, copies) + moved,
        right=np.tile(ensemble.right, copies) + moved,
        values=(ensemble.values[:, [favourable]] - ensemble.values[:, others]).T.reshape(-1, 1),
        base=base,
        **repeated,
    )
    return made, made.output, made.output + 1


def tree_boxes(model: HasTrees, schema: Schema, encoding: Encoding, twins: Twins, *, scored: bool = True) -> TreeBoxes:
    """A tree model over boxes of people: its score, or (of three classes or more, not ``scored``) its lead."""
    exactly = sum_slack(model.ensemble, 0, 1) == 0.0
    unit = 2.0**-24 if model.ensemble.adds == "float32" else 2.0**-53
    ensemble, from_sum, to_sum = _summed(model, len(schema.classes), scored)
    # Of the sizes of all terms: the library's rounding in whatever order it adds up, and that of the bounds.
    rounded = 4.0 * (ensemble.trees + 8) * (unit * (not exactly) + 2.0**-53)
    slack = rounded / (1 - rounded) if rounded < 1 else np.inf
    owners, nodes = owners_of(ensemble, encoding), len(ensemble.feature)
    choice_of, choices, _ = twin_choices(ensemble, encoding, twins, owners)
    attribute, start = np.where(ensemble.feature >= 0, -2, -1).astype(np.int64), np.zeros(nodes, np.int64)
    columns: list[int] = []
    codes: list[Doubles] = []
    counts: list[Integers] = []
    lefts = [np.empty(0, np.bool_)]
    cut = np.full(nodes, -1)
    turned = np.zeros(nodes, np.bool_)
    factor, used = 1, 0
    for column in sorted(set(range(len(schema))) - set(twins.columns.tolist())):
        mine = np.flatnonzero(owners == column)
        one = schema.attributes[column]
        named = isinstance(encoding.parts[column], Lookup) or ensemble.sets[mine].max(initial=-1) >= 0
        if one.allowed or one.kind == "category" or (one.discrete and named):
            values = one.domain_values()
            widths = np.ones(len(values), np.int64)
        else:
            values, widths = _cells(ensemble, encoding, column, mine, one)
        if not len(mine) or isinstance(encoding.parts[column], Unseen):
            factor *= int(widths.sum())
            continue
        left = goes_left(ensemble, encoding, column, mine, values)
        new = np.concatenate([[True], (left[:, 1:] != left[:, :-1]).any(axis=0)])
        first = np.flatnonzero(new)
        attribute[mine] = len(columns)
        left = left[:, first]
        turned[mine] = ~left[:, 0] & left[:, -1]  # the last bins go left: as well the other way round
        left[turned[mine]] ^= True
        going = left.sum(axis=1)
        ranged = ((np.arange(len(first)) < going[:, None]) == left).all(axis=1)
        cut[mine[ranged]] = going[ranged]
        start[mine[~ranged]] = used + np.arange(int((~ranged).sum())) * len(first)
        lefts.append(left[~ranged].ravel())
        used += len(lefts[-1])
        columns.append(column)
        codes.append(values[first])
        counts.append(np.add.reduceat(widths, first))
    walk = Walk.of(ensemble, range(ensemble.trees), choice_of, choices)
    children = np.stack([np.arange(len(walk.nodes)) + 1, walk.right])
    back = turned[walk.nodes]
    children[:, back] = children[::-1, back]
    arrays = TreeArrays(
        walk.roots,
        from_sum.astype(np.int64),
        to_sum.astype(np.int64),
        *_sorted_leaves(ensemble, walk),
        attribute[walk.nodes],
        cut[walk.nodes],
        start[walk.nodes],
        np.concatenate(lefts),
        children[0],
        children[1],
        ensemble.base.astype(np.float64),
        walk.depth + 2,
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
        slack,
    )


def _sorted_leaves(ensemble: Ensemble, walk: Walk) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """The kinds of twins that each tree tells apart, and its leaves by value, with the kinds that come to each."""
    leaf = ensemble.feature[walk.nodes] < 0
    rank = np.zeros(len(leaf), np.int64)
    order, members, kind = [np.empty(0, np.int64)], [np.empty((0, 0), np.bool_)], []
    for begin, end in pairwise(np.append(walk.roots, len(leaf)).tolist()):
        leaves = begin + np.flatnonzero(leaf[begin:end])
        leaves = leaves[np.argsort(ensemble.values[walk.nodes[leaves], 0], kind="stable")]
        rank[leaves] = np.arange(len(leaves))
        there, mine = np.unique(walk.members[walk.sets[leaves]], axis=1, return_inverse=True)
        order.append(leaves)
        members.append(there)
        kind.append(mine.ravel())
    kinds = np.array([there.shape[1] for there in members[1:]], np.int64)
    kind_of = np.array(kind, np.int64).reshape(-1, walk.members.shape[1])
    starts = (np.cumsum([some.size for some in parts]) for parts in (order, members))
    values = ensemble.values[walk.nodes[np.concatenate(order)], 0]
    return kinds, kind_of, *starts, np.concatenate([some.ravel() for some in members]), values, rank


def _cells(
    ensemble: Ensemble, encoding: Encoding, column: int, nodes: Integers, attribute: Attribute
) -> tuple[Doubles, Integers]:
    """A number cut where some split turns: a value of each piece, and the pieces' widths: how many whole numbers, or
    parts of 2**-30 of a real one.

    What a value becomes (scaled, rounded to the library's precision) never falls where the value rises, so that the
    last value that a threshold keeps is found by bisection over doubles: no value lies between two pieces.
    """
    part = encoding.parts[column]
    if not len(nodes) or isinstance(part, Unseen):
        count = attribute.upper - attribute.low + 1 if attribute.discrete else 1
        return np.array([attribute.low], dtype=np.float64), np.array([count], dtype=np.int64)
    if not isinstance(part, Numeric) or ensemble.sets[nodes].max(initial=-1) >= 0:
        raise CapabilityError(
            f"attribute {attribute.name!r} is real, but the trees take it as categories; the statistical statement "
            f"holds for them as for every model."
        )
    cuts, rising = thresholds_of(ensemble, nodes), part.scale >= 0

    def kept(codes: Doubles) -> NDArray[np.bool_]:
        inputs = ensemble.rounded(np.asarray(part.encode(codes), encoding.dtype))[:, 0]
        return np.asarray(inputs <= cuts if rising else ~(inputs <= cuts))

    # The last code of the first side of each cut, or -1: as whole numbers, which are in the order of the doubles.
    bounds = np.array([attribute.low, attribute.upper], dtype=np.float64)
    begin, end = bounds.astype(np.int64) if attribute.discrete else in_order((bounds + 0.0).view(np.int64))

    def value_of(order: Integers) -> Doubles:
        return order.astype(np.float64) if attribute.discrete else in_order(order).view(np.float64)

    low, high = np.full(len(cuts), begin - 1), np.full(len(cuts), end)
    while (low < high).any():
        middle = (low | high) - ((low ^ high) >> 1)  # the mean, rounded up, of numbers whose sum may be too large
        there = kept(value_of(middle))
        low, high = np.where(there, middle, low), np.where(there, high, middle - 1)
    ends = np.unique(np.append(low[low >= begin], end))
    begins = np.append(begin, ends[:-1] + 1)
    starts, stops = value_of(begins), value_of(ends)
    if attribute.discrete:
        return starts, ends - begins + 1
    span = max(attribute.upper - attribute.low, np.finfo(np.float64).tiny)
    widths = np.maximum(1, np.rint((stops - starts) / span * 2.0**30)).astype(np.int64)  # a single value is somebody
    return np.clip(starts + (stops - starts) / 2, starts, stops), widths


@compiled
def bound_sums(  # noqa: PLR0912 - tree by tree, kind of twins by kind
    trees: Any, firsts: Any, lasts: Any, lows: Any, highs: Any, sizes: Any, spans: Any, places: Any, cuts: Any
) -> None:
    """Bound the ensemble's sums for every twin over some boxes, and where to split them.

    ``lows`` and ``highs`` are (boxes, sums, m), ``sizes`` (boxes, sums) is what the terms of a sum come to.
    """
    m, attributes = lows.shape[2], firsts.shape[1]
    stack = np.empty(trees.depth, np.int64)
    reached = np.zeros(np.diff(trees.leaf_start).max() if len(trees.roots) else 0, np.bool_)
    weight, heaviest, chosen = np.empty(attributes), np.empty(attributes), np.empty(attributes, np.int64)
    own_low, own_high = np.empty(m), np.empty(m)
    most_kinds = trees.kinds.max() if len(trees.kinds) else 1
    kind_low, kind_high = np.empty(most_kinds), np.empty(most_kinds)
    for box in range(firsts.shape[0]):
        weight[:], heaviest[:], chosen[:] = 0.0, -1.0, -1
        own_low[:], own_high[:] = 0.0, 0.0
        for s in range(len(trees.base)):
            lows[box, s], highs[box, s], sizes[box, s] = trees.base[s], trees.base[s], abs(trees.base[s])
        for t in range(len(trees.roots)):
            begin, end = trees.leaf_start[t], trees.leaf_start[t + 1]
            spot = _reach(trees, trees.roots[t], firsts[box], lasts[box], stack, reached)
            tree_low, tree_high = np.inf, -np.inf
            for c in range(trees.kinds[t]):
                # Leaves stand by value, and every twin comes to one of those reached: the first and the last count.
                flags, r = trees.member_start[t] + c, 0
                while not (reached[r] and trees.members[flags + r * trees.kinds[t]]):
                    r += 1
                kind_low[c], r = trees.values[begin + r], end - begin - 1
                while not (reached[r] and trees.members[flags + r * trees.kinds[t]]):
                    r -= 1
                kind_high[c] = trees.values[begin + r]
                tree_low, tree_high = min(tree_low, kind_low[c]), max(tree_high, kind_high[c])
            reached[: end - begin] = False
            for s in range(trees.first[t], trees.last[t]):
                sizes[box, s] += max(abs(tree_low), abs(tree_high))
                for z in range(m):
                    lows[box, s, z] += kind_low[trees.kind[t, z]]
                    highs[box, s, z] += kind_high[trees.kind[t, z]]
            if trees.kinds[t] > 1:
                for z in range(m):
                    own_low[z] += kind_low[trees.kind[t, z]]
                    own_high[z] += kind_high[trees.kind[t, z]]
            if spot >= 0:  # the first split that the box leaves open
                a = trees.attribute[spot]
                weight[a] += tree_high - tree_low
                if tree_high - tree_low > heaviest[a]:
                    heaviest[a], chosen[a] = tree_high - tree_low, spot
        spans[box] = own_high.max() - own_low.min()
        best, places[box], cuts[box] = -1.0, -1, -1
        for a in range(attributes):
            if chosen[a] >= 0 and weight[a] > best:
                best, places[box] = weight[a], a
        if places[box] >= 0:
            a = places[box]
            cut = trees.cut[chosen[a]] - 1
            if cut < 0:  # the first bin that does not go the way of the one before it
                cut, flags = firsts[box, a], trees.start[chosen[a]]
                while trees.lefts[flags + cut + 1] == trees.lefts[flags + cut]:
                    cut += 1
            cuts[box] = cut


@linked
def _reach(trees: Any, root: int, first: Any, last: Any, stack: Any, reached: Any) -> int:
    """Mark the leaves of one tree that a box reaches, whatever the twin; the first split not settled, or -1."""
    spot, depth, stack[0] = -1, 1, root
    while depth:
        depth -= 1
        node = stack[depth]
        a, cut = trees.attribute[node], trees.cut[node]
        if a == -1:
            reached[trees.rank[node]] = True
            continue
        goes_left = goes_right = True
        if a >= 0 and cut >= 0:
            goes_left, goes_right = first[a] < cut, last[a] >= cut
        elif a >= 0:
            going = 0
            for b in range(first[a], last[a] + 1):
                going += trees.lefts[trees.start[node] + b]
            goes_left, goes_right = going > 0, going <= last[a] - first[a]
        if a >= 0 and goes_left and goes_right and spot < 0:
            spot = node
        if goes_left:
            stack[depth] = trees.left[node]
            depth += 1
        if goes_right:
            stack[depth] = trees.right[node]
            depth += 1
    return spot
