"""What the tree kernels take: bins of attributes (only the thresholds that occur in an ensemble matter), small trees as
tables of leaves, large ones as nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import DecisionRule, Encoding, Lookup, Numeric, Schema, Twins
from fairbits.engine.tree_leaves import Walks, leaves_of
from fairbits.models import NAN, ZERO, ZERO_WIDTH, Ensemble

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: In the precision in which the library adds up.
Sums = NDArray[np.floating]


class Attributes(NamedTuple):
    """How the code of each attribute that some split looks at becomes a bin."""

    columns: Ints
    tabled: NDArray[np.bool_]
    lows: Floats  # first code of a table, or the shift of a line
    scales: Floats
    starts: Ints  # in the tables or in the cuts
    sizes: Ints
    single: bool  # compared in float32


class SmallTrees(NamedTuple):
    """Trees as splits that clear leaves, in the order of the kernel's loops."""

    words: Ints  # of a tree's set of leaves
    leaves: Ints
    width: int
    value_starts: Ints
    values: Sums
    split_starts: Ints  # a tree's splits on free attributes
    split_attributes: Ints
    split_lows: NDArray[np.int32]
    split_spans: NDArray[np.uint32]
    split_members: Ints  # where its set of bins begins; -1: a range
    split_masks: Ints  # where its words begin
    mask_words: Ints
    masks: NDArray[np.uint64]
    members: NDArray[np.bool_]
    group_starts: Ints  # groups of cells that the tree cannot tell apart
    group_masks: Ints
    kept: NDArray[np.uint64]
    cell_lists: Ints
    cells: Ints
    cell_starts: Ints  # where a tree's sums begin, by output that it adds to


class LargeTrees(NamedTuple):
    """Trees as nodes in the order of a walk: a node, all of its left side, all of its right side.

    ``rows`` has four numbers per node, so that none lies across two lines of the cache. A split: attribute, first bin
    and width of the range that goes left, right child (the left one comes next); where a set of bins goes left, the
    attribute counts down from ``SET`` and the second number says where the set begins. A split on a protected attribute
    has ``TWIN`` there, a leaf ``LEAF``, where its values begin, and its set of twins. Set 0 of twins is all of them;
    others are steps between neighbours in the grid of protected values (``axes``: its sizes): where one is, and by how
    much. Where sums are added in order, steps are the twins themselves, and there are no axes.
    """

    roots: Ints
    outputs: Ints
    width: int
    m: int
    depth: int
    rows: NDArray[np.int32]
    members: NDArray[np.bool_]
    values: Sums
    set_starts: Ints
    set_places: Ints
    set_steps: Sums
    axes: Ints
    bin_kind: NDArray[np.integer]  # empty, of the narrowest type that holds every bin


class TreeProgram(NamedTuple):
    """Everything, as the kernel takes it."""

    attributes: Attributes
    tables: NDArray[np.int32]
    cuts: Floats
    small: SmallTrees
    large: LargeTrees
    base: Sums
    in_order: bool
    m: int
    cells: int
    parts: Ints  # (parts, 3): the output, where its sums begin, and the row of ``cell_of``
    cell_of: Ints


@dataclass(frozen=True, slots=True, eq=False)
class TreePlan:
    """An ensemble over one encoding and one set of twins, ready to run.

    ``error`` is how far a prediction can be from the library's; below 0 where they are the same.
    """

    program: TreeProgram
    ensemble: Ensemble
    encoding: Encoding
    twins: Twins | None
    rule: DecisionRule
    error: float
    walks: Callable[[], Walks]
    favourable: int
    complement: bool
    block: int
    work: int
    thresholds: dict[int, Floats]
    gaps: dict[int, float]

    def exact(self, codes: Floats, twins: Ints, threads: int | None) -> Floats:
        """All predictions for one twin of each of some people, walked one by one, to the last bit the library's."""
        rows = codes.copy()
        if self.twins is not None:
            rows[:, self.twins.columns] = self.twins.values[twins]
        inputs = self.ensemble.rounded(self.encoding.encode(rows))
        return self.ensemble.predicted(leaves_of(self.ensemble, self.walks(), inputs, threads=threads))

    @property
    def m(self) -> int:
        """How many twins a person has."""
        return self.program.m


#: Whole numbers with more values than this are binned by search, like reals.
MAX_TABLE = 65_536


class NoPlan(Exception):
    """The ensemble and the encoding do not make a plan: a feature that needs every real value by itself."""


class Bins:
    """How one attribute is binned, and which of its bins each split of the ensemble sends left."""

    def __init__(self, ensemble: Ensemble, schema: Schema, encoding: Encoding, column: int, nodes: Ints):
        part = encoding.parts[column]
        attribute = schema.attributes[column]
        self.column, self.nodes = column, nodes
        #: The different splits, as sets of bins that go left: first and last of a range and -1, or the place of a set.
        self.tests: list[tuple[int, int, int]] = []
        self.members: list[NDArray[np.bool_]] = []
        discrete = attribute.discrete and attribute.upper - attribute.low < MAX_TABLE
        self.tabled = isinstance(part, Lookup) or (isinstance(part, Numeric) and discrete)
        self.low, self.scale = 0.0, 1.0
        self.table, self.cuts = np.empty(0, np.int32), np.empty(0)
        if self.tabled:
            low = part.low if isinstance(part, Lookup) else int(attribute.low)
            size = len(part.table) if isinstance(part, Lookup) else int(attribute.upper - attribute.low) + 1
            self.low = float(low)
            rows = part.encode(low + np.arange(size, dtype=np.float64))
            missing = np.full((1, rows.shape[1]), np.nan)  # a code that is missing
            self._from_rows(
                ensemble, part, ensemble.rounded(np.asarray(np.concatenate([rows, missing]), encoding.dtype))
            )
        elif isinstance(part, Numeric):
            self.low, self.scale = part.shift, part.scale
            self._from_cuts(ensemble)
        else:
            raise NoPlan

    def _from_rows(self, ensemble: Ensemble, part: Any, rows: Floats) -> None:
        """Codes whose rows no split can tell apart share a bin; rows of one column are in the order of its values."""
        features = ensemble.feature[self.nodes]
        places = {int(feature): place for place, feature in enumerate(part.columns)}
        if rows.shape[1] == 1:
            cuts = np.unique(self._thresholds(ensemble))
            gone = np.isnan(rows[:, 0])
            plain = ensemble.sets[self.nodes].max(initial=-1) < 0
            if plain:
                found = np.where(gone, 0, 1 + np.searchsorted(cuts, rows[:, 0], side="left"))
                self._range_tests(ensemble, cuts)
                self.table = found.astype(np.int32)
                return
        distinct, inverse = np.unique(np.where(np.isnan(rows), np.inf, rows), axis=0, return_inverse=True)
        values = np.where(np.isposinf(distinct), np.nan, distinct)
        self.table = inverse.ravel().astype(np.int32)
        self._set_tests(ensemble, values, np.array([places[int(f)] for f in features]))

    def _from_cuts(self, ensemble: Ensemble) -> None:
        if ensemble.sets[self.nodes].max(initial=-1) >= 0:
            raise NoPlan
        self.cuts = np.unique(self._thresholds(ensemble))
        self._range_tests(ensemble, self.cuts)

    def _thresholds(self, ensemble: Ensemble) -> Floats:
        found = ensemble.threshold[self.nodes]
        if (ensemble.missing[self.nodes] == ZERO).any():  # what is read as zero has a bin of its own
            found = np.concatenate([found, [np.nextafter(-ZERO_WIDTH, -np.inf), ZERO_WIDTH]])
        return found

    def _range_tests(self, ensemble: Ensemble, cuts: Floats) -> None:
        """Splits that compare: bins 1 to that of the threshold go left, and bin 0 (missing) where the split says so."""
        nodes, self.size = self.nodes, len(cuts) + 2
        last = np.searchsorted(cuts, ensemble.threshold[nodes], side="left") + 1
        rule, missing_left = ensemble.missing[nodes], ensemble.missing_left[nodes]
        nan_left = np.where(
            rule == NAN, missing_left, np.where(rule == ZERO, missing_left, ensemble.threshold[nodes] >= 0)
        )
        zero = np.searchsorted(cuts, ZERO_WIDTH, side="left") + 1 if (rule == ZERO).any() else 0
        keys = np.stack([last, nan_left, np.where(rule == ZERO, 1 + missing_left, 0)], axis=1).astype(np.int64)
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        for high, at_start, zero_rule in distinct.tolist():
            if zero_rule == 0:
                self.tests.append((0 if at_start else 1, high, -1))
                continue
            left = np.zeros(self.size, np.bool_)
            left[1 : high + 1] = True
            left[0], left[zero] = at_start, zero_rule == 2
            self._add(left)
        self.test_of = inverse.ravel()

    def _set_tests(self, ensemble: Ensemble, values: Floats, places: Ints) -> None:
        """Splits over few distinct rows: every row is tried."""
        nodes, self.size = self.nodes, len(values)
        rules = ensemble.threshold[nodes], ensemble.missing[nodes], ensemble.missing_left[nodes], ensemble.sets[nodes]
        _, first, inverse = np.unique(np.stack([places, *rules]), axis=1, return_index=True, return_inverse=True)
        for node, place in zip(nodes[first], places[first], strict=True):
            self._add(ensemble.goes_left(np.full(self.size, node), values[:, place]))
        self.test_of = inverse.ravel()

    def _add(self, left: NDArray[np.bool_]) -> None:
        """Add a test that sends a set of bins to the left."""
        inside = np.flatnonzero(left)
        low, high = (int(inside[0]), int(inside[-1])) if len(inside) else (1, 0)
        if high - low + 1 == len(inside):
            self.tests.append((low, high, -1))
        else:
            self.tests.append((0, -1, len(self.members)))
            self.members.append(left)

    def bins_of(self, codes: Floats, single: bool) -> Ints:
        """The bins of some codes."""
        if self.tabled:
            return self.table[np.rint(codes - self.low).astype(np.int64)].astype(np.int64)
        values = (codes - self.low) * self.scale
        values = values.astype(np.float32).astype(np.float64) if single else values
        return np.where(np.isnan(values), 0, 1 + np.searchsorted(self.cuts, values, side="left"))

    def left(self, test: int) -> NDArray[np.bool_]:
        """Which bins a test sends left."""
        low, high, place = self.tests[test]
        bins = np.arange(self.size)
        return self.members[place] if place >= 0 else (bins >= low) & (bins <= high)
