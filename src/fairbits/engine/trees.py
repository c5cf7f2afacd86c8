"""Tree ensembles over people × twins: all twins of a person go through a tree together.

A plan holds what the kernels (`kernels.trees`) need: how codes become bins (only the thresholds that occur in the
ensemble matter), small trees as tables of leaves, large ones as nodes, and what protected values do to both. Sums are
per person, so that neither threads nor company change a bit of them.

Where a library adds up in float32, so do the kernels, in its order: scores are its own to the bit. Its float64 sums
they add up as is quickest, which is off by a few last bits at most and hardly ever another float32; scores at the
threshold are added up again as the library does, so that decisions are its own.

Nodes of large trees lie in the order in which people walk them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import DecisionRule, Doubles, Encoding, Integers, Lookup, Numeric, Schema, Twins
from fairbits.engine.kernels.trees import LEAF, SET, TWIN, trees_chunk
from fairbits.engine.plan import check_values
from fairbits.engine.threads import CHUNK, SHARES, share, thread_count, writeable
from fairbits.engine.tree_leaves import Walks, leaves_of, walks_of
from fairbits.errors import ROW, TableError
from fairbits.models import NAN, ZERO, ZERO_WIDTH, Ensemble, HasTrees, apply_link, exact_link

#: In the precision in which the library adds up.
Sums = NDArray[np.floating]


class Attributes(NamedTuple):
    """How the code of each attribute that some split looks at becomes a bin."""

    columns: Integers
    tabled: NDArray[np.bool_]
    lows: Doubles  # first code of a table, or the shift of a line
    scales: Doubles
    starts: Integers  # in the tables or in the cuts
    sizes: Integers
    single: bool  # compared in float32


class SmallTrees(NamedTuple):
    """Trees as splits that clear leaves, in the order of the kernel's loops."""

    words: Integers  # of a tree's set of leaves
    leaves: Integers
    width: int
    value_starts: Integers
    values: Sums
    split_starts: Integers  # a tree's splits on free attributes
    splits: NDArray[np.int32]  # the first three of the numbers that large trees have for theirs
    split_masks: Integers  # where its words begin
    mask_words: Integers
    masks: NDArray[np.uint64]
    members: NDArray[np.bool_]
    group_starts: Integers  # groups of cells that the tree cannot tell apart
    group_masks: Integers
    kept: NDArray[np.uint64]
    cell_lists: Integers
    cells: Integers
    cell_starts: Integers  # where a tree's sums begin, by output that it adds to


class LargeTrees(NamedTuple):
    """Trees as nodes in the order of a walk: a node, all of its left side, all of its right side.

    ``rows`` has four numbers per node, so that none lies across two lines of the cache. A split: attribute, first bin
    and width of the range that goes left, right child (the left one comes next); where a set of bins goes left, the
    attribute counts down from ``SET`` and the second number says where the set begins. A split on a protected attribute
    has ``TWIN`` there, a leaf ``LEAF``, where its values begin, and its set of twins. Set 0 of twins is all of them;
    others are steps between neighbours in the grid of protected values (``axes``: its sizes): where one is, and by how
    much. Where sums are added in order, steps are the twins themselves, and there are no axes.
    """

    roots: Integers
    outputs: Integers
    width: int
    depth: int
    rows: NDArray[np.int32]
    members: NDArray[np.bool_]
    values: Sums
    set_starts: Integers
    set_places: Integers
    set_steps: Sums
    axes: Integers
    bin_kind: NDArray[np.integer]  # empty, of the narrowest type that holds every bin


class TreeProgram(NamedTuple):
    """Everything, as the kernel takes it."""

    attributes: Attributes
    tables: NDArray[np.int32]
    cuts: Doubles
    small: SmallTrees
    large: LargeTrees
    base: Sums
    in_order: bool
    m: int
    cells: int
    parts: Integers  # (parts, 3): the output, where its sums begin, and the row of ``cell_of``
    cell_of: Integers


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
    thresholds: dict[int, Doubles]
    gaps: dict[int, float]

    def exact(self, codes: Doubles, twins: Integers, threads: int | None) -> Doubles:
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

    def __init__(self, ensemble: Ensemble, schema: Schema, encoding: Encoding, column: int, nodes: Integers):
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
            self._from_rows(ensemble, part, ensemble.rounded(np.asarray(np.vstack([rows, missing]), encoding.dtype)))
        elif isinstance(part, Numeric) and self._ranges(ensemble):
            self.low, self.scale = part.shift, part.scale
            self.cuts = thresholds_of(ensemble, nodes)
            self._range_tests(ensemble, self.cuts)
        else:
            raise NoPlan

    def _ranges(self, ensemble: Ensemble) -> bool:
        """Whether all splits compare with a threshold: none goes by a set of categories."""
        return bool(ensemble.sets[self.nodes].max(initial=-1) < 0)

    def _from_rows(self, ensemble: Ensemble, part: Any, rows: Doubles) -> None:
        """Codes whose rows no split can tell apart share a bin; rows of one column are in the order of its values."""
        if rows.shape[1] == 1 and self._ranges(ensemble):
            cuts = thresholds_of(ensemble, self.nodes)
            found = np.where(np.isnan(rows[:, 0]), 0, 1 + np.searchsorted(cuts, rows[:, 0], side="left"))
            self.table = found.astype(np.int32)
            self._range_tests(ensemble, cuts)
            return
        distinct, inverse = np.unique(np.where(np.isnan(rows), np.inf, rows), axis=0, return_inverse=True)
        values = np.where(np.isposinf(distinct), np.nan, distinct)
        self.table, self.size = inverse.ravel().astype(np.int32), len(values)
        places = {int(feature): place for place, feature in enumerate(part.columns)}
        first, self.test_of = distinct_splits(ensemble, self.nodes)
        for node in self.nodes[first]:  # over few distinct rows: every row is tried
            place = places[int(ensemble.feature[node])]
            self._add(ensemble.goes_left(np.full(self.size, node), values[:, place]))

    def _range_tests(self, ensemble: Ensemble, cuts: Doubles) -> None:
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

    def _add(self, left: NDArray[np.bool_]) -> None:
        """Add a test that sends a set of bins to the left."""
        inside = np.flatnonzero(left)
        low, high = (int(inside[0]), int(inside[-1])) if len(inside) else (1, 0)
        if high - low + 1 == len(inside):
            self.tests.append((low, high, -1))
        else:
            self.tests.append((0, -1, len(self.members)))
            self.members.append(left)


def thresholds_of(ensemble: Ensemble, nodes: Integers) -> Doubles:
    """The different thresholds of nodes; what is read as zero has a range of its own."""
    found = ensemble.threshold[nodes]
    if (ensemble.missing[nodes] == ZERO).any():
        found = np.concatenate([found, [np.nextafter(-ZERO_WIDTH, -np.inf), ZERO_WIDTH]])
    return np.unique(found)


def owners_of(ensemble: Ensemble, encoding: Encoding) -> Integers:
    """By node the column that it splits on: -1 for a feature that is the same for everybody, -2 for a leaf."""
    owner = np.full(encoding.width, -1)
    for column, part in enumerate(encoding.parts):
        owner[part.columns] = column
    return np.where(ensemble.feature >= 0, owner[np.maximum(ensemble.feature, 0)], -2)


def distinct_splits(ensemble: Ensemble, nodes: Integers) -> tuple[Integers, Integers]:
    """The places of nodes that split differently, and by node which of them it is like."""
    rules = ensemble.feature, ensemble.threshold, ensemble.missing, ensemble.missing_left, ensemble.sets
    keys = np.stack([rule[nodes] for rule in rules])
    _, first, inverse = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return first, inverse.ravel()


#: Splits times values that are asked about at once.
AT_ONCE = 16_384


def goes_left(
    ensemble: Ensemble, encoding: Encoding, column: int, nodes: Integers, values: Doubles
) -> NDArray[np.bool_]:
    """Which values each of an attribute's splits sends left, (nodes, values)."""
    part = encoding.parts[column]
    rows = ensemble.rounded(np.asarray(part.encode(values), encoding.dtype).reshape(len(values), -1))
    columns = np.searchsorted(part.columns, ensemble.feature[nodes], sorter=np.argsort(part.columns))
    columns = np.argsort(part.columns)[columns]
    found = np.empty((len(nodes), len(values)), np.bool_)
    step = max(1, AT_ONCE // len(values))
    for start in range(0, len(nodes), step):
        some = slice(start, start + step)
        asked = np.repeat(nodes[some], len(values))
        found[some] = ensemble.goes_left(asked, rows.T[columns[some]].ravel()).reshape(-1, len(values))
    return found


def twin_choices(
    ensemble: Ensemble, encoding: Encoding, twins: Twins | None, owners: Integers
) -> tuple[Integers, NDArray[np.bool_], dict[int, Integers]]:
    """By node that only the twin decides, the row of the table after it that says which twins go left; else -1. And by
    protected attribute, which twins go the same way at all of its splits.
    """
    m = 1 if twins is None else twins.m
    choice_of = np.full(len(owners), -1, np.int64)
    kinds: dict[int, Integers] = {}
    choices = [np.zeros((1, m), np.bool_), np.ones((1, m), np.bool_)]
    fixed = np.flatnonzero(owners == -1)
    if len(fixed):
        values = np.array([encoding.fixed[int(feature)] for feature in ensemble.feature[fixed]], encoding.dtype)
        choice_of[fixed] = ensemble.goes_left(fixed, ensemble.rounded(values))
    for place, column in enumerate([] if twins is None else twins.columns.tolist()):
        nodes = np.flatnonzero(owners == column)
        if twins is not None and len(nodes):
            first, inverse = distinct_splits(ensemble, nodes)
            left = goes_left(ensemble, encoding, column, nodes[first], twins.values[:, place])
            choice_of[nodes] = sum(map(len, choices)) + inverse
            choices.append(left)
            kinds[column] = np.unique(left, axis=1, return_inverse=True)[1].ravel()
    return choice_of, np.concatenate(choices), kinds


@dataclass(frozen=True, slots=True, eq=False)
class Walk:
    """Nodes of some trees as they are walked: a node, then all of its left side, then all of its right side.

    Splits that only the twin decides, and where all twins go the same way, are left out. ``right`` are places among
    ``nodes`` (0 for a leaf; what is left of a split comes next); ``sets`` numbers the twins that come to a node, and
    ``members`` (sets, m) says who they are.
    """

    nodes: Integers
    roots: Integers
    right: Integers
    sets: Integers
    members: NDArray[np.bool_]
    depth: int

    @classmethod
    def of(cls, ensemble: Ensemble, trees: Sequence[int], choice_of: Integers, choices: NDArray[np.bool_]) -> Walk:
        """The walk through some trees."""
        sets = _TwinSets(choices)
        node = ensemble.roots[list(trees)].astype(np.int64)
        mine = np.zeros(len(node), np.int64)
        levels: list[tuple[Integers, Integers, Integers]] = []  # nodes, their sets, and which of them are splits
        while len(node):
            node, sides = _resolved(ensemble, node, mine, choice_of, sets)
            split = np.flatnonzero(ensemble.feature[node] >= 0)
            levels.append((node, mine, split))
            below, mine = node[split], sides[split].ravel()
            node = np.stack([ensemble.left[below], ensemble.right[below]], axis=1).ravel().astype(np.int64)
        place = _places([len(level[0]) for level in levels], [level[2] for level in levels])
        count = sum(len(level[0]) for level in levels)
        whole = np.zeros((3, count), np.int64)
        for depth, (nodes, twins, split) in enumerate(levels):
            at = place[depth]
            whole[0, at], whole[1, at] = nodes, twins
            if len(split):
                whole[2, at[split]] = place[depth + 1][1::2]
        roots = place[0] if levels else np.empty(0, np.int64)
        return cls(whole[0], roots, whole[2], whole[1], np.array(sets.members), len(levels))

    def twin_steps(self, axes: Integers, kind: str) -> dict[str, Any]:
        """The sets of twins, as the kernel takes them; without axes as they are."""
        steps = self.members.astype(np.float64).reshape(len(self.members), *(axes.tolist() or [-1]))
        for axis in range(1, steps.ndim if len(axes) else 1):
            steps = np.diff(steps, axis=axis, prepend=0.0)
        steps = steps.reshape(len(self.members), -1)
        sets, places = np.nonzero(steps)
        return {
            "axes": axes,
            "set_starts": np.searchsorted(sets, np.arange(len(steps) + 1)).astype(np.int64),
            "set_places": places.astype(np.int64),
            "set_steps": steps[sets, places].astype(kind),
        }


class _TwinSets:
    """Sets of twins by number, and the two parts that a choice makes of each."""

    def __init__(self, choices: NDArray[np.bool_]):
        self.choices = choices
        self.members = [np.ones(choices.shape[1], np.bool_)]
        self._numbers = {self.members[0].tobytes(): 0, bytes(choices.shape[1]): -1}

    def parts(self, sets: Integers, choices: Integers) -> Integers:
        """The numbers of the two parts that choices make of sets, (n, 2): -1 for an empty one."""
        keys, inverse = np.unique(sets * len(self.choices) + choices, return_inverse=True)
        found = []
        for there, choice in np.stack(np.divmod(keys, len(self.choices)), axis=1).tolist():
            left = self.members[there] & self.choices[choice]
            found.append([self._number(left), self._number(self.members[there] & ~left)])
        return np.array(found, np.int64)[inverse.ravel()]

    def _number(self, twins: NDArray[np.bool_]) -> int:
        key = twins.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.members)
            self.members.append(twins)
        return self._numbers[key]


def _resolved(
    ensemble: Ensemble, node: Integers, mine: Integers, choice_of: Integers, sets: _TwinSets
) -> tuple[Integers, Integers]:
    """Nodes further down wherever all twins of a node go the same way; and the twins on both sides of each, (n, 2)."""
    node, sides = node.copy(), np.repeat(mine[:, None], 2, axis=1)
    open_ = np.flatnonzero(choice_of[node] >= 0)
    while len(open_):
        parts = sets.parts(mine[open_], choice_of[node[open_]])
        parted = (parts >= 0).all(axis=1)
        sides[open_[parted]] = parts[parted]
        going, left = open_[~parted], parts[~parted, 0] >= 0
        node[going] = np.where(left, ensemble.left[node[going]], ensemble.right[node[going]])
        open_ = going[choice_of[node[going]] >= 0]
    return node, sides


def _places(sizes: Sequence[int], splits: Sequence[Integers]) -> list[Integers]:
    """By level, where each node stands in the walk: after its parent and all that is left of it."""
    below = [np.ones(size, np.int64) for size in sizes]
    for depth in range(len(sizes) - 2, -1, -1):
        below[depth][splits[depth]] += below[depth + 1][0::2] + below[depth + 1][1::2]
    found = [np.cumsum(below[0]) - below[0]] if sizes else []
    for depth in range(len(sizes) - 1):
        parents = found[depth][splits[depth]]
        children = np.empty(sizes[depth + 1], np.int64)
        children[0::2] = parents + 1
        children[1::2] = parents + 1 + below[depth + 1][0::2]
        found.append(children)
    return found


#: Trees with more leaves than this are walked: from about 50 on, that is as fast with two twins, and with 90 half as
#: fast again. Sums in the order of the library cost a walk one for every twin: such trees are walked later.
SMALL_LEAVES, SMALL_LEAVES_IN_ORDER = 48, 256
#: Cells of twins over all small trees: beyond, trees are walked.
MAX_CELLS = 32_000_000
#: Sums of one block of people, in bytes: they stay in the second-level cache.
BLOCK_BYTES, MAX_BLOCK = 800_000, 512
#: The same where large trees are walked: the more people come to a node, the less it costs each of them. Their numbers
#: are kept in 16 bits.
LARGE_BYTES, LARGE_BLOCK = 16_000_000, 16_384


class TreePlanner:
    """Makes a :class:`TreePlan` from a model, a schema and its twins, step by step."""

    def __init__(self, model: HasTrees, schema: Schema, encoding: Encoding, twins: Twins | None):
        ensemble: Ensemble = model.ensemble
        self.model = model
        self.favourable = int(getattr(model, "favourable", 1))
        if ensemble.width > 1 and ensemble.link == "identity" and len(schema.classes) <= 2:
            ensemble = ensemble.only_output(self.favourable)  # a forest: no class needs the others
        self.ensemble, self.encoding, self.schema = ensemble, encoding, schema
        self.twin_values = np.empty((1, 0)) if twins is None else twins.values
        self.protected = {} if twins is None else {int(c): i for i, c in enumerate(twins.columns)}
        gaps = [(i, encoding.gaps[c]) for c, i in self.protected.items() if c in encoding.gaps]
        if any(gap in self.twin_values[:, i] for i, gap in gaps):
            raise NoPlan  # a missing number that twins take
        self.m, self.twins = len(self.twin_values), twins
        self.in_order = ensemble.adds == "float32"
        self.node_owner = owners_of(ensemble, encoding)
        self.choice_of, self.choices, self.kinds = twin_choices(ensemble, encoding, twins, self.node_owner)
        used = np.unique(self.node_owner[self.node_owner >= 0]).tolist()
        self.free = [column for column in used if column not in self.protected]
        self.bins = {
            column: Bins(ensemble, schema, encoding, column, np.flatnonzero(self.node_owner == column))
            for column in self.free
        }

    def plan(self) -> TreePlan:
        """Everything that the kernels take, small trees and large ones."""
        ensemble = self.ensemble
        nodes = [ensemble.nodes(tree) for tree in range(ensemble.trees)]
        used = [self.kinds if self.in_order else np.unique(self.node_owner[mine]).tolist() for mine in nodes]
        asked = [tuple(column for column in mine if column in self.kinds) for mine in used]
        most = SMALL_LEAVES_IN_ORDER if self.in_order else SMALL_LEAVES
        small = [tree for tree, mine in enumerate(nodes) if (ensemble.feature[mine] < 0).sum() <= most]
        cells = sum(int(np.prod([self._values(c) for c in asked[tree]] or [1])) for tree in small)
        if cells > MAX_CELLS or (self.in_order and len(small) < len(nodes)):  # trees of one kind, in their order
            small = []
        large = sorted(set(range(ensemble.trees)) - set(small))
        tables, attributes = self.attributes()
        groups, starts, cell_of, parts, total = self._parts({tree: asked[tree] for tree in small})
        small_trees = self._small(small, cell_of[groups], starts)
        large_trees = self.large(large)
        program = TreeProgram(
            attributes,
            tables,
            np.concatenate([np.empty(0), *(self.bins[c].cuts for c in self.free)]),
            small_trees,
            large_trees,
            np.array(self.ensemble.base, dtype=self.ensemble.adds),
            self.in_order,
            self.m,
            total,
            parts,
            cell_of,
        )
        room = 8 * (total + 2 * self.m * self.ensemble.outputs) + 4 * len(self.free)
        most = LARGE_BLOCK if large else MAX_BLOCK
        block = int(np.clip((LARGE_BYTES if large else BLOCK_BYTES) // room, 16, most)) // 16 * 16
        steps = len(small_trees.splits) // 8 + len(small_trees.group_masks) + len(small_trees.cells) // 8
        work = 50 * (steps + 40 * len(large) * min(self.m, 8) + self.m * len(program.base) * 4 + 50)
        one = self.ensemble.outputs == 1 and self.model.ensemble.outputs > 1
        return TreePlan(
            program,
            self.ensemble,
            self.encoding,
            self.twins,
            self.schema.rule,
            self._error(len(self.protected) if large else 0, len(parts)),
            cache(partial(walks_of, self.ensemble)),
            0 if one else self.favourable,
            self.model.complement,
            block,
            work,
            self._codes_at_thresholds(),
            {column: gap for column, gap in self.encoding.gaps.items() if column in self.bins},
        )

    def _error(self, axes: int, more: int) -> float:
        """How far predictions can be from those of the library, whose sums are added up in another order."""
        slack, link = 2 * sum_slack(self.ensemble, axes, more) / self.ensemble.divisor, self.ensemble.link
        if self.in_order or (slack == 0 and link == "identity"):
            return -1.0
        if link not in ("identity", "logistic", "logistic_each", "softmax"):  # the others may be steep
            return np.inf
        return slack * max(1.0, abs(self.ensemble.slope)) + 2.0**-48

    def _values(self, column: int) -> int:
        """How many values of a protected attribute twins take."""
        return len(np.unique(self.twin_values[:, self.protected[column]]))

    def attributes(self) -> tuple[NDArray[np.int32], Attributes]:
        """How codes become bins: tables of whole numbers, and everything else."""
        made = [self.bins[column] for column in self.free]
        tabled = np.array([b.tabled for b in made], np.bool_)
        tables, cuts = np.array([[len(b.table), len(b.cuts)] for b in made], np.int64).reshape(-1, 2).T
        return np.concatenate([np.empty(0, np.int32), *(b.table for b in made)]), Attributes(
            np.array(self.free, np.int64),
            tabled,
            np.array([b.low for b in made], np.float64),
            np.array([b.scale for b in made], np.float64),
            np.where(tabled, np.cumsum(tables) - tables, np.cumsum(cuts) - cuts),
            np.where(tabled, tables - 1, cuts),
            self.ensemble.precision == "float32",
        )

    def _parts(self, asked: dict[int, tuple[int, ...]]) -> tuple[Integers, Integers, Integers, Integers, int]:
        """Sums are kept by the combinations of protected values that a tree can tell apart at all: by which protected
        attributes it looks at, and by output.

        Gives by tree the row of its combinations, and by tree and output where its sums begin; the combination of each
        twin, in rows; the parts (output, where its sums begin, row); and how many sums there are.
        """
        groups: dict[tuple[int, ...], int] = {}
        starts: dict[tuple[int, int], int] = {}
        cell_of = [np.empty((0, self.m), np.int64)]
        begins = []
        parts = []
        total = 0
        for tree, columns in asked.items():
            group = groups.setdefault(columns, len(groups))
            if group == len(cell_of) - 1:  # values that no split separates are one
                values = np.stack([np.zeros(self.m, np.int64), *(self.kinds[column] for column in columns)])
                cell_of.append(np.unique(values, axis=1, return_inverse=True)[1].reshape(1, -1))
            for w in range(self.ensemble.width):
                output = int(self.ensemble.output[tree]) + w
                if (group, output) not in starts:
                    starts[group, output] = total
                    parts.append((output, total, group))
                    total += int(cell_of[group + 1].max()) + 1
                begins.append(starts[group, output])
        rows = np.array([groups[columns] for columns in asked.values()], np.int64)
        whole = np.array(parts, np.int64).reshape(-1, 3)
        return rows, np.array(begins, np.int64), np.concatenate(cell_of), whole, total

    @cached_property
    def _splits(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """By node the numbers of its split (see `LargeTrees`), and the sets of bins of all attributes in one.

        Where nothing goes left, the range begins at -1, which no bin is.
        """
        rows = np.zeros((len(self.node_owner), 3), np.int32)
        members = [np.empty(0, np.bool_)]
        stored = 0
        rows[:, 0] = TWIN
        for place, column in enumerate(self.free):
            bins = self.bins[column]
            low, high, at = np.array(bins.tests, np.int64).reshape(-1, 3).T
            first = np.where(at >= 0, stored + bins.size * at, np.where(high < low, -1, low))
            made = np.stack([np.where(at >= 0, SET - place, place), first, np.maximum(high - low, 0)], axis=1)
            rows[bins.nodes] = made[bins.test_of]
            members += bins.members
            stored += bins.size * len(bins.members)
        return rows, np.concatenate(members)

    def _small(self, trees: list[int], cells: Integers, starts: Integers) -> SmallTrees:
        """Some trees as tables of leaves; ``cells`` are the combinations of twins that each tells apart."""
        ensemble, (rows, members), choice_of, choices = self.ensemble, self._splits, self.choice_of, self.choices
        walk = Walk.of(ensemble, trees, np.full(len(choice_of), -1), choices)
        leaf = ensemble.feature[walk.nodes] < 0
        before = np.concatenate([[0], np.cumsum(leaf)])  # leaves, from left to right
        ends = np.append(walk.roots, len(walk.nodes))
        sizes = np.diff(before[ends])
        made: dict[str, list[Any]] = {name: [np.empty(0, np.int64)] for name in ("splits", "words", "counts", "cells")}
        made |= {"masks": [np.empty(0, np.uint64)], "kept": [np.empty(0, np.uint64)], "values": [np.empty(0)]}
        free, lists, groups = [0], [0], [0]
        for tree, mine in enumerate(cells):
            begin, stop = int(ends[tree]), int(ends[tree + 1])
            splits = begin + np.flatnonzero(~leaf[begin:stop])
            splits = splits[np.argsort(self.node_owner[walk.nodes[splits]], kind="stable")]  # bins stay in the cache
            bits = np.arange(before[begin], before[begin] + -(-sizes[tree] // 64) * 64)
            cleared = (bits >= before[splits, None]) & (bits < before[walk.right[splits], None])
            masks = ~np.packbits(cleared, axis=1, bitorder="little").view("<u8")
            _, someone = np.unique(mine, return_index=True)  # a twin for every cell
            kept = np.full((len(someone), masks.shape[1]), ~np.uint64(0))
            choice = choice_of[walk.nodes[splits]]
            for place in np.flatnonzero(choice >= 0):  # no person decides these
                kept[~choices[choice[place], someone]] &= masks[place]
            touched = masks[choice < 0] != ~np.uint64(0)
            made["splits"].append(splits[choice < 0])
            made["counts"].append(touched.sum(axis=1))
            made["words"].append(np.nonzero(touched)[1])
            made["masks"].append(masks[choice < 0][touched])
            free.append(free[-1] + len(touched))
            made["values"].append(ensemble.values[walk.nodes[begin:stop][leaf[begin:stop]]].T.ravel())
            distinct, inverse = np.unique(kept, axis=0, return_inverse=True)
            made["kept"].append(distinct.ravel())
            made["cells"].append(np.argsort(inverse.ravel(), kind="stable"))
            lists += (lists[-1] + np.cumsum(np.bincount(inverse.ravel(), minlength=len(distinct)))).tolist()
            groups.append(groups[-1] + len(distinct))
        arrays = {name: np.concatenate(some) for name, some in made.items()}
        words = -(-sizes // 64)
        widths = np.repeat(words, np.diff(groups))
        return SmallTrees(
            words=words,
            leaves=sizes,
            width=ensemble.width,
            value_starts=(np.cumsum(sizes) - sizes) * ensemble.width,
            values=arrays["values"].astype(ensemble.adds),
            split_starts=np.array(free),
            splits=rows[walk.nodes[arrays["splits"]]],
            split_masks=np.concatenate([[0], np.cumsum(arrays["counts"])]),
            mask_words=arrays["words"],
            masks=arrays["masks"],
            members=members,
            group_starts=np.array(groups),
            group_masks=np.cumsum(widths) - widths,
            kept=arrays["kept"],
            cell_lists=np.array(lists),
            cells=arrays["cells"],
            cell_starts=starts,
        )

    def large(self, trees: list[int]) -> LargeTrees:
        """Some trees as arrays of nodes."""
        ensemble = self.ensemble
        rows, members = self._splits
        walk = Walk.of(ensemble, trees, self.choice_of, self.choices)
        leaf = ensemble.feature[walk.nodes] < 0
        found = np.column_stack([rows[walk.nodes], walk.right]).astype(np.int32)
        count = int(leaf.sum())
        found[leaf, 0], found[leaf, 1], found[leaf, 2] = LEAF, ensemble.width * np.arange(count), walk.sets[leaf]
        # Twins are the grid of the protected attributes' values.
        axes = np.array([] if self.in_order else [self._values(column) for column in self.protected], np.int64)
        return LargeTrees(
            roots=walk.roots,
            outputs=np.array(ensemble.output[trees], np.int64),
            width=ensemble.width,
            depth=walk.depth,
            rows=found.ravel(),
            members=members,
            values=ensemble.values[walk.nodes[leaf]].ravel().astype(ensemble.adds),
            bin_kind=np.empty(0, np.uint16 if all(self.bins[c].size < 2**16 for c in self.free) else np.int32),
            **walk.twin_steps(axes, ensemble.adds),
        )

    def _codes_at_thresholds(self) -> dict[int, Doubles]:
        """By attribute with an order: the values on which some split turns, as codes."""
        found = {}
        for column in self.free:
            part = self.encoding.parts[column]
            if not isinstance(part, Numeric) or part.scale == 0:
                continue
            nodes = self.bins[column].nodes
            at = np.unique(self.ensemble.threshold[nodes])
            codes = at / part.scale + part.shift
            attribute = self.schema.attributes[column]
            codes = np.floor(codes) if attribute.discrete and part.scale > 0 else codes
            inside = (codes >= attribute.low) & (codes < attribute.upper)
            found[column] = np.unique(codes[inside])
        return found


def sum_slack(ensemble: Ensemble, axes: int, more: int) -> float:
    """How far rounding can move a sum of leaves in the precision of its library, whatever the order of adding up.

    Each tree adds one leaf of at most its largest size; ``more`` sums of them may be added up in the end. Over ``axes``
    of protected values, large trees add leaves of some twins as steps between neighbours, one for each corner of their
    range, and then sum along each axis. Sums of few-bit numbers, such as votes of pure leaves, are exact.
    """
    largest = sum(float(np.abs(ensemble.values[ensemble.nodes(t)]).max(initial=0.0)) for t in range(ensemble.trees))
    corners = 2.0**axes
    most = corners * (largest + float(np.abs(ensemble.base).max(initial=0.0)))
    parts = 2.0**20 * np.concatenate([ensemble.values.ravel(), ensemble.base])
    if ensemble.adds == "float64" and most < 2.0**30 and (parts == np.rint(parts)).all():
        return 0.0
    unit = 2.0**-24 if ensemble.adds == "float32" else 2.0**-53
    operations = ensemble.trees * corners + more + 4
    return float(operations * unit / (1 - operations * unit) * most) if operations * unit < 1 else np.inf


#: Probabilities of two classes that differ by less than this factor may be equal to the library.
_TIED = np.float32(1 - 2.0**-22)
_NOBODY = (np.empty(0, np.int64), np.empty(0, np.int64))


def tree_plan(model: HasTrees, schema: Schema, encoding: Encoding, twins: Twins | None) -> TreePlan | None:
    """The plan of a tree model, or None where its features cannot be binned."""
    try:
        return TreePlanner(model, schema, encoding, twins).plan()
    except NoPlan:
        return None


def tree_scores(plan: TreePlan, codes: Doubles, *, threads: int | None = None) -> NDArray[np.float32]:
    """The scores of all twins of every person."""
    ready = np.empty((len(codes), plan.m), np.float32)
    doubts: list[tuple[Integers, Integers]] = []

    def keep(start: int, stop: int, sums: Doubles) -> None:
        found = _chosen(plan, _predictions(plan, sums))
        mine = ready[start:stop]
        mine[:] = found
        if plan.rule.threshold is not None and not plan.program.in_order:
            near = _at(np.float32(plan.rule.threshold), mine)
            if near.any():
                people, twins = np.nonzero(near)
                mine[near] = plan.rule.rounded(found[near])
                closest = np.abs(found[near] - plan.rule.threshold) <= plan.error
                doubts.append((start + people[closest], twins[closest]))

    _run(plan, codes, keep, threads)
    people, twins = (np.concatenate(found) for found in zip(_NOBODY, *doubts, strict=True))
    if len(people):
        ready[people, twins] = plan.rule.rounded(_chosen(plan, plan.exact(codes[people], twins, threads)))
    return ready


def tree_class_scores(plan: TreePlan, codes: Doubles, *, threads: int | None = None) -> NDArray[np.float32]:
    """The predictions of all outputs for all twins of every person, (n, m, outputs)."""
    ready = np.empty((len(codes), plan.m, len(plan.program.base)), np.float32)

    def keep(start: int, stop: int, sums: Doubles) -> None:
        ready[start:stop] = _predictions(plan, sums)

    _run(plan, codes, keep, threads)
    if plan.rule.classes > 2:  # which class a tie goes to hangs on the last bits of the library's sums
        own, best = ready[..., plan.favourable], ready.max(axis=2)
        others = np.delete(ready, plan.favourable, axis=2).max(axis=2)
        people, twins = np.nonzero((others >= best * _TIED) & (own >= best * _TIED))
        if len(people):
            ready[people, twins] = plan.rule.rounded_table(plan.exact(codes[people], twins, threads))
    return ready


def _at(cut: np.float32, scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which scores are as near to the threshold as float32 can tell."""
    below, above = np.nextafter(cut, np.float32(-np.inf)), np.nextafter(cut, np.float32(np.inf))
    return (scores >= below) & (scores <= above)


def _predictions(plan: TreePlan, sums: Doubles) -> Doubles:
    """Predictions of all outputs, (n, m, outputs), from sums (n, outputs, m)."""
    turned, trees = np.moveaxis(sums, 1, 2), plan.ensemble
    if plan.program.in_order:
        return exact_link(turned, trees.link, trees.slope, single=True)
    return apply_link(turned / trees.divisor if trees.divisor != 1 else turned, trees.link, trees.slope)


def _chosen(plan: TreePlan, predictions: Doubles) -> Doubles:
    """The score among the predictions of all outputs."""
    found = predictions[..., plan.favourable if predictions.shape[-1] > 1 else 0]
    return 1 - found if plan.complement else found


def _run(plan: TreePlan, codes: Doubles, keep: Any, threads: int | None) -> None:
    codes = np.asarray(codes, dtype=np.float64)
    if plan.gaps:  # the kernels know a missing code as NaN
        codes = codes.copy()
        for column, gap in plan.gaps.items():
            codes[codes[:, column] == gap, column] = np.nan
    program = plan.program

    def chunk(start: int, stop: int) -> None:
        sums = np.empty((stop - start, len(program.base), program.m))
        block = min(plan.block, (stop - start + 15) // 16 * 16)
        bad = trees_chunk(program, writeable(codes[start:stop]), block, sums)
        if bad >= 0:
            _complain(program, codes[start + bad], start + bad)
        keep(start, stop, sums)

    n_threads = thread_count(threads)
    people = CHUNK / plan.work if n_threads == 1 else min(CHUNK / plan.work, len(codes) / (n_threads * SHARES))
    if len(program.large.roots):  # the more people come to a node together, the less it costs each of them
        people = max(people, min(plan.block, len(codes) / n_threads))
    step = max(1, round(people / plan.block)) * plan.block if people >= plan.block else max(16, int(people) // 16 * 16)
    share(lambda start: chunk(start, min(start + step, len(codes))), range(0, len(codes), step), n_threads)


def _complain(program: TreeProgram, codes: Doubles, row: int) -> None:
    known, tabled = program.attributes, program.attributes.tabled
    check_values(codes, row, known.columns[tabled], known.lows[tabled], known.sizes[tabled])
    raise TableError.of_row(f"{ROW} holds a code that the trees have no use for.", row)
