"""What a change of codes does to a tree ensemble, by the thresholds that it crosses.

A change matters to those trees only that have a split between the old bin and the new one. An index says which trees
these are; only they are walked again. For boosted trees they are few: foreseeing costs a fraction of asking.
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding, Schema
from fairbits.engine.batches import spread, writeable
from fairbits.engine.kernels.simd import compiled
from fairbits.engine.kernels.trees import HINTS, bins_by_search, bins_by_table
from fairbits.engine.tree_bins import NoPlan
from fairbits.engine.tree_planner import TreePlanner
from fairbits.engine.tree_program import Attributes, Floats, Ints, LargeTrees
from fairbits.models import HasTrees, apply_link

#: Foreseeing pays where a change crosses thresholds of at most this share of the trees, on average.
MAX_SHARE = 0.25

#: About as long as so many multiply-adds of the engine, per tree.
_WORK = 100


class Crossings(NamedTuple):
    """Which trees have a split between two neighbouring bins: by attribute and bin, the trees beyond it."""

    firsts: Ints  # where the bins of an attribute begin among ``starts``
    starts: Ints  # where the trees of an edge begin; edge b lies between bins b - 1 and b
    trees: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class TreeForecast:
    """An ensemble of one sum, ready to foresee what changes of codes do to it."""

    attributes: Attributes
    tables: NDArray[np.int32]
    cuts: Floats
    nodes: LargeTrees
    crossings: Crossings
    base: float
    link: str
    slope: float
    complement: bool
    gaps: dict[int, float]

    def scores(self, people: Floats, changed: Floats, *, threads: int | None = None) -> Floats:
        """Scores of several changed copies of everybody.

        Parameters
        ----------
        people
            Rows of codes as they are, (n, attributes).
        changed
            Copies of them with some codes changed, (tries, n, attributes).
        threads
            How many threads; None: one for every processor.

        Returns
        -------
        numpy.ndarray
            (tries, n).
        """
        tries, n = changed.shape[:2]
        together = np.concatenate([people[None], changed]).reshape((tries + 1) * n, -1)
        for column, gap in self.gaps.items():
            together[together[:, column] == gap, column] = np.nan
        bins = np.empty((len(self.attributes.columns), len(together)), np.int32)
        wrong = _bin_rows(self.attributes, self.tables, self.cuts, writeable(together), bins)
        sums = np.empty((tries, n))
        if wrong >= 0:  # a code outside of its domain: nothing is known about that
            return np.full((tries, n), np.nan)
        by_person = np.ascontiguousarray(bins.T)

        def run(start: int, stop: int) -> None:
            _foresee_rows(self.nodes, self.crossings, self.base, by_person, n, start, stop, sums)

        spread(run, n, _WORK * len(self.nodes.roots), threads)
        found = apply_link(sums, self.link, self.slope)  # type: ignore[arg-type]
        return 1 - found if self.complement else found


def forecast_of(model: HasTrees, schema: Schema, encoding: Encoding) -> TreeForecast | None:
    """The forecast of a tree ensemble, or None where it would not pay or cannot be.

    Parameters
    ----------
    model
        The ensemble.
    schema, encoding
        How codes become its features.

    Returns
    -------
    TreeForecast or None
        None for several sums, sets of bins, and trees of which a change crosses thresholds of too many.
    """
    try:
        planner = TreePlanner(model, schema, encoding, None)
        trees = list(range(planner.ensemble.trees))
        if planner.ensemble.outputs != 1 or not trees:
            return None
        crossings = _crossings(planner)
        if crossings is None:
            return None
        tables, attributes = planner.attributes()
        nodes = planner.large(trees)
    except NoPlan:
        return None
    reduced = model.ensemble.outputs > 1
    return TreeForecast(
        attributes,
        tables,
        np.concatenate([np.empty(0), *(planner.bins[column].cuts for column in planner.free)]),
        nodes,
        crossings,
        float(planner.ensemble.base[0]),
        planner.ensemble.link,
        planner.ensemble.slope,
        bool(model.complement) and not reduced,
        {column: gap for column, gap in encoding.gaps.items() if column in planner.bins},
    )


def _crossings(planner: TreePlanner) -> Crossings | None:
    """The index; None where splits are sets of bins, or a change would cross thresholds of too many trees."""
    ensemble = planner.ensemble
    tree_of = np.searchsorted(ensemble.roots, np.arange(len(ensemble.feature)), side="right") - 1
    firsts: list[int] = []
    starts: list[int] = []
    lists, total = [], 0
    shares = []
    for column in planner.free:
        bins = planner.bins[column]
        rows = np.array(bins.tests.rows, np.int64).reshape(-1, 3)[bins.test_of]
        if (rows[:, 2] >= 0).any():
            return None
        real = rows[:, 1] >= rows[:, 0]
        trees = tree_of[bins.nodes][real]
        edges = np.concatenate([rows[real, 0], rows[real, 1] + 1])  # bins are told apart where a range begins or ends
        pairs = np.unique(np.stack([edges, np.concatenate([trees, trees])], axis=1), axis=0)
        pairs = pairs[(pairs[:, 0] > 0) & (pairs[:, 0] < bins.size)]
        counts = np.bincount(pairs[:, 0], minlength=bins.size + 1)
        firsts.append(len(starts))
        starts += (total + np.cumsum(counts) - counts).tolist()
        lists.append(pairs[:, 1])
        total += len(pairs)
        shares.append(counts[counts > 0])
    starts.append(total)
    usual = np.concatenate([np.empty(0), *shares])
    if not len(usual) or usual.mean() > MAX_SHARE * ensemble.trees:
        return None
    return Crossings(np.array(firsts, np.int64), np.array(starts, np.int64), np.concatenate(lists).astype(np.int32))


@compiled
def _bin_rows(attributes, tables, cuts, codes, bins):
    """Bins of all codes, (attributes, rows); gives the first row with a code of no bin, or -1."""
    for a in range(len(attributes.columns)):
        column, first, size = attributes.columns[a], attributes.starts[a], attributes.sizes[a]
        mine, into = codes[:, column], bins[a]
        if attributes.tabled[a]:
            wrong = bins_by_table(tables[first : first + size + 1], attributes.lows[a], mine, into)
            if wrong >= 0:
                return wrong
        else:
            bins_by_search(
                cuts[first : first + size],
                attributes.hints[a * (HINTS + 1) : (a + 1) * (HINTS + 1)],
                attributes.firsts[a],
                attributes.stretches[a],
                attributes.lows[a],
                attributes.scales[a],
                attributes.single,
                mine,
                into,
            )
    return -1


@compiled
def _leaf(nodes, root, bins):
    """What one tree adds for one row of bins."""
    at = 5 * np.int64(root)
    attribute = nodes.rows[at]
    while attribute >= 0:
        right = np.uint32(bins[attribute] - nodes.rows[at + 1]) > np.uint32(nodes.rows[at + 2])
        at = 5 * np.int64(nodes.rows[at + 4] if right else nodes.rows[at + 3])
        attribute = nodes.rows[at]
    return nodes.values[nodes.rows[at + 1]]


@compiled
def _foresee_rows(nodes, crossings, base, bins, n, start, stop, sums):
    """Sums of every try of some people; row (t + 1) · n + i of the bins is try t of person i, row i the person."""
    trees = len(nodes.roots)
    now = np.empty(trees)
    seen = np.full(trees, -1, np.int64)
    stamp = 0
    for i in range(start, stop):
        before = bins[i]
        total = base
        for t in range(trees):
            now[t] = _leaf(nodes, nodes.roots[t], before)
            total += now[t]
        for attempt in range(sums.shape[0]):
            after = bins[(attempt + 1) * n + i]
            stamp += 1
            change = 0.0
            for a in range(len(after)):
                low, high = min(before[a], after[a]), max(before[a], after[a])
                if low == high:
                    continue
                first = crossings.firsts[a]
                for place in range(crossings.starts[first + low + 1], crossings.starts[first + high + 1]):
                    t = crossings.trees[place]
                    if seen[t] != stamp:
                        seen[t] = stamp
                        change += _leaf(nodes, nodes.roots[t], after) - now[t]
            sums[attempt, i] = total + change


__all__ = ["Crossings", "TreeForecast", "forecast_of"]
