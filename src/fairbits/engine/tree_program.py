"""What the tree kernels take: bins of attributes, small trees as tables of leaves, large ones as nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import DecisionRule, Encoding, Twins
from fairbits.engine.tree_leaves import Walks, leaves_of
from fairbits.models import Ensemble, Link

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
    firsts: Floats  # the first cut, stretches per unit from there on, and the cuts before each stretch
    stretches: Floats
    hints: Ints


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
    part_outputs: Ints
    part_starts: Ints
    part_cells: Ints
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
    link: Link
    slope: float
    divisor: float
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
