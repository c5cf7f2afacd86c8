"""Tree ensembles over people × twins: all twins of a person go through a tree together.

A plan holds what the kernels (`tree_kernels`) need: how codes become bins (only the thresholds that occur in the
ensemble matter), small trees as tables of leaves, large ones as nodes, and what protected values do to both. Sums are
float64 and per person, so that neither threads nor company change a bit of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding, Lookup, Numeric, Schema, Twins
from fairbits.engine.batches import CHUNK, SHARES, writeable
from fairbits.engine.kernels.trees import HINTS, trees_chunk
from fairbits.engine.threads import share, thread_count
from fairbits.errors import TableError
from fairbits.models import NAN, ZERO, ZERO_WIDTH, Ensemble, HasTrees, apply_link

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Trees with more leaves than this are walked.
SMALL_LEAVES = 256
#: Whole numbers with more values than this are binned by search, like reals.
MAX_TABLE = 65_536
#: Cells of twins over all small trees: beyond, trees are walked.
MAX_CELLS = 32_000_000
#: Sums of one block of people, in bytes: they stay in the second-level cache.
BLOCK_BYTES, MAX_BLOCK = 800_000, 512


class NoPlan(Exception):
    """The ensemble and the encoding do not make a plan: a feature that needs every real value by itself."""


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
    values: Floats
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
    """Trees as nodes. A walker stays at leaves (kind 1) and protected splits (kind 2), which are their own child."""

    roots: Ints
    outputs: Ints
    simple: NDArray[np.bool_]  # no split is a set of bins
    width: int
    rows: NDArray[np.int32]  # attribute, first bin and width of the range that goes left, first child: 4 per node
    branches: NDArray[np.int32]  # the first child (the second follows), of protected splits too
    kinds: NDArray[np.int8]
    places: NDArray[np.int32]  # of a leaf's values, a split's set of bins (else -1), or a protected split's twins
    members: NDArray[np.bool_]
    twins: NDArray[np.uint64]
    values: Floats


class TreeProgram(NamedTuple):
    """Everything, as the kernel takes it."""

    attributes: Attributes
    tables: NDArray[np.int32]
    cuts: Floats
    small: SmallTrees
    large: LargeTrees
    base: Floats
    m: int
    words: int
    everybody: NDArray[np.uint64]
    cells: int
    part_outputs: Ints
    part_starts: Ints
    part_cells: Ints
    cell_of: Ints


@dataclass(frozen=True, slots=True, eq=False)
class TreePlan:
    """An ensemble over one encoding and one set of twins, ready to run.

    ``favourable`` is the output that is the score (after the link), ``complement`` says that it is what the only
    output leaves. ``thresholds`` holds, by attribute, the codes that are the last on their side of some split.
    """

    program: TreeProgram
    link: str
    slope: float
    favourable: int
    complement: bool
    block: int
    work: int
    thresholds: dict[int, Floats]
    gaps: dict[int, float]  # by attribute, the code of a missing number

    @property
    def m(self) -> int:
        """How many twins a person has."""
        return self.program.m


def tree_plan(model: HasTrees, schema: Schema, encoding: Encoding, twins: Twins | None) -> TreePlan | None:
    """The plan of a tree model, or None where its features cannot be binned.

    Parameters
    ----------
    model
        The model.
    schema
        The attributes, and what is decided.
    encoding
        How attributes become features.
    twins
        Combinations of protected values; None scores rows just as they are.

    Returns
    -------
    TreePlan | None
        The plan, or None.
    """
    try:
        return _Planner(model, schema, encoding, twins).plan()
    except NoPlan:
        return None


def tree_scores(plan: TreePlan, codes: Floats, *, threads: int | None = None) -> NDArray[np.float32]:
    """The scores of all twins of every person.

    Parameters
    ----------
    plan
        The trees as arrays.
    codes
        People, (n, attributes).
    threads
        Number of threads; None means all cores.

    Returns
    -------
    NDArray[np.float32]
        Scores, (n, m).
    """
    ready = np.empty((len(codes), plan.m), np.float32)

    def keep(start: int, stop: int, sums: Floats) -> None:
        ready[start:stop] = _scores(plan, sums)

    _run(plan, codes, keep, threads)
    return ready


def tree_class_scores(plan: TreePlan, codes: Floats, *, threads: int | None = None) -> NDArray[np.float32]:
    """The predictions of all outputs for all twins of every person, (n, m, outputs).

    Parameters
    ----------
    plan
        The trees as arrays.
    codes
        People, (n, attributes).
    threads
        Number of threads; None means all cores.

    Returns
    -------
    NDArray[np.float32]
        Predictions, (n, m, outputs).
    """
    ready = np.empty((len(codes), plan.m, len(plan.program.base)), np.float32)

    def keep(start: int, stop: int, sums: Floats) -> None:
        ready[start:stop] = apply_link(np.moveaxis(sums, 1, 2), plan.link, plan.slope)  # type: ignore[arg-type]

    _run(plan, codes, keep, threads)
    return ready


def _scores(plan: TreePlan, sums: Floats) -> Floats:
    if plan.link == "softmax":
        found = apply_link(np.moveaxis(sums, 1, 2), "softmax")[..., plan.favourable]
    else:
        place = plan.favourable if sums.shape[1] > 1 else 0
        found = apply_link(sums[:, place], plan.link, plan.slope)  # type: ignore[arg-type]
    return 1 - found if plan.complement else found


def _run(plan: TreePlan, codes: Floats, keep: Any, threads: int | None) -> None:
    codes = np.asarray(codes, dtype=np.float64)
    if plan.gaps:  # the kernels know a missing code as NaN
        codes = codes.copy()
        for column, gap in plan.gaps.items():
            codes[codes[:, column] == gap, column] = np.nan
    program = plan.program

    def chunk(start: int, stop: int) -> None:
        sums = np.empty((stop - start, len(program.base), program.m))
        bad = trees_chunk(program, writeable(codes[start:stop]), plan.block, sums)
        if bad >= 0:
            _complain(program, codes[start + bad], start + bad)
        keep(start, stop, sums)

    hands = thread_count(threads)
    people = CHUNK / plan.work if hands == 1 else min(CHUNK / plan.work, len(codes) / (hands * SHARES))
    step = max(1, round(people / plan.block)) * plan.block if people >= plan.block else max(16, int(people) // 16 * 16)
    share(lambda start: chunk(start, min(start + step, len(codes))), range(0, len(codes), step), hands)


def _complain(program: TreeProgram, codes: Floats, row: int) -> None:
    known = program.attributes
    for column, low, size, tabled in zip(known.columns, known.lows, known.sizes, known.tabled, strict=True):
        place = codes[column] - low
        if tabled and not (0 <= place < size and place == np.floor(place)):
            raise TableError(
                f"codes of column {column} must be whole numbers within {low:g}..{low + size - 1:g}, "
                f"but row {row} holds {codes[column]}."
            )
    raise TableError(f"row {row} holds a code that the trees have no use for.")


class _Tests:
    """The different splits of one attribute, as sets of its bins that go left: a range, or any set."""

    def __init__(self, size: int):
        self.size = size
        self.rows: list[tuple[int, int, int]] = []  # low, high, start in `members` (-1: a range)
        self.members: list[NDArray[np.bool_]] = []
        self._by_start: dict[int, NDArray[np.bool_]] = {}
        self._stored = 0

    def add_range(self, low: int, high: int) -> int:
        self.rows.append((low, high, -1))
        return len(self.rows) - 1

    def set_at(self, start: int) -> NDArray[np.bool_]:
        return self._by_start[start]

    def add_set(self, left: NDArray[np.bool_]) -> int:
        inside = np.flatnonzero(left)
        if len(inside) and inside[-1] - inside[0] + 1 == len(inside):
            return self.add_range(int(inside[0]), int(inside[-1]))
        if len(inside) == 0:
            return self.add_range(1, 0)
        self.rows.append((0, -1, self._stored))
        self._by_start[self._stored] = left
        self.members.append(left)
        self._stored += len(left)
        return len(self.rows) - 1


class _Bins:
    """How one attribute is binned, and which of its bins each split of the ensemble sends left."""

    def __init__(self, ensemble: Ensemble, schema: Schema, encoding: Encoding, column: int, nodes: Ints):
        part = encoding.parts[column]
        attribute = schema.attributes[column]
        self.column, self.nodes = column, nodes
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
            self._from_rows(ensemble, part, ensemble.rounded(encoding.dtype_rounded(np.concatenate([rows, missing]))))
        elif isinstance(part, Numeric):
            if part.gap is not None and not np.isnan(part.missing):  # encoders fill it with a value
                raise NoPlan
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
        nodes, size = self.nodes, len(cuts) + 2
        self.tests, self.size = _Tests(size), size
        last = np.searchsorted(cuts, ensemble.threshold[nodes], side="left") + 1
        rule, missing_left = ensemble.missing[nodes], ensemble.missing_left[nodes]
        nan_left = np.where(
            rule == NAN, missing_left, np.where(rule == ZERO, missing_left, ensemble.threshold[nodes] >= 0)
        )
        zero = np.searchsorted(cuts, ZERO_WIDTH, side="left") + 1 if (rule == ZERO).any() else 0
        keys = np.stack([last, nan_left, np.where(rule == ZERO, 1 + missing_left, 0)], axis=1).astype(np.int64)
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        numbers = np.empty(len(distinct), np.int64)
        for i, (high, at_start, zero_rule) in enumerate(distinct.tolist()):
            if zero_rule == 0:
                numbers[i] = self.tests.add_range(0 if at_start else 1, high)
                continue
            left = np.zeros(size, np.bool_)
            left[1 : high + 1] = True
            left[0] = bool(at_start)
            left[zero] = zero_rule == 2
            numbers[i] = self.tests.add_set(left)
        self.test_of = numbers[inverse.ravel()]

    def _set_tests(self, ensemble: Ensemble, values: Floats, places: Ints) -> None:
        """Splits over few distinct rows: every row is tried."""
        nodes, size = self.nodes, len(values)
        self.tests, self.size = _Tests(size), size
        keys: dict[tuple[Any, ...], int] = {}
        self.test_of = np.empty(len(nodes), np.int64)
        for i, node in enumerate(nodes.tolist()):
            chosen = int(ensemble.sets[node])
            key = (
                int(places[i]),
                float(ensemble.threshold[node]),
                int(ensemble.missing[node]),
                bool(ensemble.missing_left[node]),
                None if chosen < 0 else ensemble.members[chosen].tobytes(),
            )
            if key not in keys:
                column = values[:, places[i]]
                keys[key] = self.tests.add_set(ensemble.goes_left(np.full(size, node), column))
            self.test_of[i] = keys[key]

    def bins_of(self, codes: Floats, single: bool) -> Ints:
        """The bins of some codes."""
        if self.tabled:
            return self.table[np.rint(codes - self.low).astype(np.int64)].astype(np.int64)
        values = (codes - self.low) * self.scale
        values = values.astype(np.float32).astype(np.float64) if single else values
        return np.where(np.isnan(values), 0, 1 + np.searchsorted(self.cuts, values, side="left"))

    def left(self, test: int) -> NDArray[np.bool_]:
        """Which bins a test sends left."""
        low, high, start = self.tests.rows[test]
        if start < 0:
            places = np.arange(self.size)
            return (places >= low) & (places <= high)
        return self.tests.set_at(start)


class _Planner:
    """Makes a plan, step by step."""

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
        self.m = len(self.twin_values)
        owner = np.full(encoding.width, -1)
        for column, part in enumerate(encoding.parts):
            owner[part.columns] = column
        self.fixed = encoding.fixed
        self.node_owner = np.where(ensemble.feature >= 0, owner[np.maximum(ensemble.feature, 0)], -2)
        self.bins: dict[int, _Bins] = {}
        self.node_test = np.full(len(ensemble.feature), -1, np.int64)
        for column in np.unique(self.node_owner[self.node_owner >= 0]).tolist():
            nodes = np.flatnonzero(self.node_owner == column)
            made = _Bins(ensemble, schema, encoding, column, nodes)
            self.bins[column] = made
            self.node_test[nodes] = made.test_of
        self.free = [c for c in self.bins if c not in self.protected]
        self.place = {c: i for i, c in enumerate(self.free)}
        single = ensemble.precision == "float32"
        self.twin_bins = {
            c: self.bins[c].bins_of(self.twin_values[:, self.protected[c]], single)
            for c in self.protected
            if c in self.bins
        }
        self.single = single

    def plan(self) -> TreePlan:
        shapes = [self._shape(tree) for tree in range(self.ensemble.trees)]
        small = [tree for tree, shape in enumerate(shapes) if shape.leaves <= SMALL_LEAVES]
        cells = sum(int(np.prod([self._values(c) for c in shapes[t].protected] or [1])) for t in small)
        if cells > MAX_CELLS:
            small = []
        large = sorted(set(range(self.ensemble.trees)) - set(small))
        tables, attributes = self._attributes()
        parts, cell_of, part_list, total = self._parts([shapes[t] for t in small], small)
        small_trees = self._small(small, shapes, parts)
        large_trees = self._large(large)
        words = (self.m + 63) // 64
        everybody = np.full(words, ~np.uint64(0))
        if self.m % 64:
            everybody[-1] = np.uint64((1 << (self.m % 64)) - 1)
        program = TreeProgram(
            attributes,
            tables,
            np.concatenate([np.empty(0), *(self.bins[c].cuts for c in self.free)]),
            small_trees,
            large_trees,
            np.array(self.ensemble.base, dtype=np.float64),
            self.m,
            words,
            everybody,
            total,
            np.array([part[0] for part in part_list], dtype=np.int64),
            np.array([part[1] for part in part_list], dtype=np.int64),
            np.array([part[2] for part in part_list], dtype=np.int64),
            np.array(cell_of, dtype=np.int64).reshape(-1, self.m),
        )
        room = 8 * (total + self.m * self.ensemble.outputs) + (16 * self.m if large else 0)
        block = int(np.clip(BLOCK_BYTES // room, 16, MAX_BLOCK)) // 16 * 16
        steps = len(small_trees.split_attributes) // 8 + len(small_trees.group_masks) + len(small_trees.cells) // 8
        work = 50 * (steps + 40 * len(large) * min(self.m, 8) + self.m * len(program.base) * 4 + 50)
        one = self.ensemble.outputs == 1 and self.model.ensemble.outputs > 1
        return TreePlan(
            program,
            self.ensemble.link,
            self.ensemble.slope,
            0 if one else self.favourable,
            self.model.complement,
            block,
            work,
            self._codes_at_thresholds(),
            {column: gap for column, gap in self.encoding.gaps.items() if column in self.bins},
        )

    def _values(self, column: int) -> int:
        """How many values of a protected attribute twins take."""
        return len(np.unique(self.twin_values[:, self.protected[column]]))

    def _shape(self, tree: int) -> _Shape:
        mine = self.ensemble.nodes(tree)
        owners = np.unique(self.node_owner[mine])
        used = [int(c) for c in owners if c >= 0]
        return _Shape(
            int((self.ensemble.feature[mine] < 0).sum()),
            tuple(c for c in used if c not in self.protected),
            tuple(c for c in used if c in self.protected),
        )

    def _attributes(self) -> tuple[NDArray[np.int32], Attributes]:
        tables, starts, sizes, cut_start, table_start = [np.empty(0, np.int32)], [], [], 0, 0
        for column in self.free:
            bins = self.bins[column]
            starts.append(table_start if bins.tabled else cut_start)
            sizes.append(len(bins.table) - 1 if bins.tabled else len(bins.cuts))
            if bins.tabled:
                tables.append(bins.table)
                table_start += len(bins.table)
            else:
                cut_start += len(bins.cuts)
        made = [self.bins[column] for column in self.free]
        return np.concatenate(tables).astype(np.int32), Attributes(
            np.array(self.free, np.int64),
            np.array([b.tabled for b in made], np.bool_),
            np.array([b.low for b in made], np.float64),
            np.array([b.scale for b in made], np.float64),
            np.array(starts, np.int64),
            np.array(sizes, np.int64),
            self.single,
            *_hints([b.cuts for b in made]),
        )

    def _parts(self, shapes: list[_Shape], trees: list[int]) -> Any:
        """Sums are kept by the combinations of protected values that a tree can tell apart at all: by which protected
        attributes it looks at, and by output."""
        groups: dict[tuple[int, ...], int] = {}
        cell_of: list[Ints] = []
        sizes: list[int] = []
        starts: dict[tuple[int, int], int] = {}
        parts: list[tuple[int, int, int]] = []
        total = 0
        for shape, tree in zip(shapes, trees, strict=True):
            if shape.protected not in groups:
                groups[shape.protected] = len(cell_of)
                cell, size = np.zeros(self.m, np.int64), 1
                for column in shape.protected:
                    values, place = np.unique(self.twin_values[:, self.protected[column]], return_inverse=True)
                    cell, size = cell * len(values) + place, size * len(values)
                cell_of.append(cell)
                sizes.append(size)
            group = groups[shape.protected]
            for w in range(self.ensemble.width):
                output = int(self.ensemble.output[tree]) + w
                if (group, output) not in starts:
                    starts[group, output] = total
                    parts.append((output, total, group))
                    total += sizes[group]
        return (groups, starts, cell_of, sizes), cell_of, parts, total

    def _all_tests(self) -> tuple[dict[int, Ints], NDArray[np.bool_]]:
        """By attribute the rows (low, high, start of the set) of its tests, with the sets of all attributes in one."""
        rows, members, stored = {}, [np.empty(0, np.bool_)], 0
        for column, bins in self.bins.items():
            table = np.array(bins.tests.rows, np.int64).reshape(-1, 3)
            table[table[:, 2] >= 0, 2] += stored
            rows[column] = table
            members += bins.tests.members
            stored += sum(len(flags) for flags in bins.tests.members)
        return rows, np.concatenate(members)

    def _small(self, trees: list[int], shapes: list[_Shape], parts: Any) -> SmallTrees:  # noqa: PLR0915 - one array after the other
        groups, starts, cell_of, _ = parts
        ensemble, width = self.ensemble, self.ensemble.width
        rows, members = self._all_tests()
        made: dict[str, list[Any]] = {name: [] for name in SmallTrees._fields}
        for name in ("split_starts", "split_masks", "group_starts", "cell_lists"):
            made[name].append(0)
        value_start = kept_start = 0
        for tree in trees:
            shape, mine = shapes[tree], ensemble.nodes(tree)
            words = (shape.leaves + 63) // 64
            inner, first, last, order = _leaf_ranges(ensemble, mine)
            group = groups[shape.protected]
            _, someone = np.unique(cell_of[group], return_index=True)  # a twin for every cell
            kept = np.full((len(someone), words), ~np.uint64(0))
            by_attribute = np.argsort(self.node_owner[inner], kind="stable")  # a person's bins stay in the cache
            for i in by_attribute.tolist():
                node = int(inner[i])
                column = int(self.node_owner[node])
                mask = ~_bit_range(int(first[i]), int(last[i]), words)
                if column < 0:  # a feature that is the same for everybody
                    if not self._fixed_left(node):
                        kept &= mask
                elif column in self.protected:
                    left = self.bins[column].left(int(self.node_test[node]))[self.twin_bins[column][someone]]
                    kept[~left] &= mask
                else:
                    low, high, start = rows[column][self.node_test[node]].tolist()
                    if start < 0 and high < low:  # nothing goes left
                        low, high = -1, -1
                    made["split_attributes"].append(self.place[column])
                    made["split_lows"].append(low)
                    made["split_spans"].append(high - low if start < 0 else 0)
                    made["split_members"].append(start)
                    touched = np.flatnonzero(mask != ~np.uint64(0))
                    made["mask_words"] += touched.tolist()
                    made["masks"].append(mask[touched])
                    made["split_masks"].append(made["split_masks"][-1] + len(touched))
            made["split_starts"].append(len(made["split_attributes"]))
            made["words"].append(words)
            made["leaves"].append(len(order))
            made["value_starts"].append(value_start)
            made["values"].append(ensemble.values[order].T.ravel())
            value_start += len(order) * width
            distinct, inverse = np.unique(kept, axis=0, return_inverse=True)
            made["group_masks"] += range(kept_start, kept_start + distinct.size, words)
            made["kept"].append(distinct.ravel())
            kept_start += distinct.size
            made["group_starts"].append(len(made["group_masks"]))
            made["cells"].append(np.argsort(inverse.ravel(), kind="stable"))
            counts = np.bincount(inverse.ravel(), minlength=len(distinct))
            made["cell_lists"] += (made["cell_lists"][-1] + np.cumsum(counts)).tolist()
            made["cell_starts"] += [starts[group, int(ensemble.output[tree]) + w] for w in range(width)]
        made["members"] = [members]
        special = {"split_lows": np.int32, "split_spans": np.uint32, "members": np.bool_, "values": np.float64}
        special |= {"masks": np.uint64, "kept": np.uint64}
        joined = {"values", "masks", "kept", "members", "cells"}
        arrays: dict[str, Any] = {}
        for name, found in made.items():
            kind = special.get(name, np.int64)
            whole = np.concatenate([np.empty(0, kind), *found]) if name in joined else np.array(found)
            arrays[name] = whole.astype(kind)
        return SmallTrees(**{**arrays, "width": width})

    def _fixed_left(self, node: int) -> bool:
        """The way that everybody takes at a split on a feature which no attribute fills."""
        value = self.ensemble.rounded(np.array([self.fixed[int(self.ensemble.feature[node])]]))
        return bool(self.ensemble.goes_left(np.array([node]), value)[0])

    def _large(self, trees: list[int]) -> LargeTrees:
        ensemble, words = self.ensemble, (self.m + 63) // 64
        tests, members = self._all_tests()
        chosen = [ensemble.nodes(tree) for tree in trees]
        order = np.concatenate([np.empty(0, np.int64), *(np.arange(mine.start, mine.stop) for mine in chosen)])
        roots = np.cumsum([0, *(mine.stop - mine.start for mine in chosen)])
        shift = np.repeat(roots[:-1] - np.array([mine.start for mine in chosen], np.int64), np.diff(roots))
        leaf, owners = ensemble.feature[order] < 0, self.node_owner[order]
        here = np.arange(len(order))
        count = len(order)
        attributes, lows, spans = np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.uint32)
        children = np.where(leaf, here, ensemble.left[order] + shift).astype(np.int32)
        branches, kinds, places = children.copy(), leaf.astype(np.int8), np.full(count, -1, np.int64)
        places[leaf] = ensemble.width * np.arange(int(leaf.sum()))
        spans[leaf] = np.uint32(2**32 - 1)
        twin_sets: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
        known = 0
        for column in np.unique(owners[~leaf]).tolist():
            mine = np.flatnonzero(~leaf & (owners == column))
            if column < 0:  # features that are the same for everybody
                left = np.array([self._fixed_left(int(node)) for node in order[mine]])
                lows[mine], spans[mine] = np.where(left, 0, -1), np.where(left, 2**32 - 1, 0).astype(np.uint32)
                continue
            number = self.node_test[order[mine]]
            if column in self.protected:
                distinct, inverse = np.unique(number, return_inverse=True)
                mine_left = (self.bins[column].left(test)[self.twin_bins[column]] for test in distinct.tolist())
                twin_sets += [_bits(left, words) for left in mine_left]
                places[mine] = (known + inverse.ravel()) * words
                known += len(distinct)
                kinds[mine], children[mine], spans[mine] = 2, mine, np.uint32(2**32 - 1)
                continue
            rows = tests[column][number]
            nothing = rows[:, 1] < rows[:, 0]
            attributes[mine] = self.place[column]
            lows[mine] = np.where(nothing, -1, rows[:, 0])
            spans[mine] = np.where(nothing, 0, rows[:, 1] - rows[:, 0]).astype(np.uint32)
            places[mine] = rows[:, 2]
        sets = (kinds == 0) & (places >= 0)
        return LargeTrees(
            roots=roots[:-1].astype(np.int64),
            outputs=np.array(ensemble.output[trees], np.int64),
            simple=np.array([not sets[a:b].any() for a, b in pairwise(roots.tolist())], np.bool_),
            width=ensemble.width,
            rows=np.stack([attributes, lows, spans.view(np.int32), children], axis=1).ravel(),
            branches=branches,
            kinds=kinds,
            places=places.astype(np.int32),
            members=members,
            twins=np.concatenate(twin_sets),
            values=ensemble.values[order[leaf]].ravel(),
        )

    def _codes_at_thresholds(self) -> dict[int, Floats]:
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


class _Shape(NamedTuple):
    """What matters about a tree: how many leaves, and which attributes it looks at."""

    leaves: int
    free: tuple[int, ...]
    protected: tuple[int, ...]


def _hints(cuts: list[Floats]) -> tuple[Floats, Floats, Ints]:
    """Where to look for a value among the cuts of each attribute."""
    firsts, stretches = np.zeros(len(cuts)), np.zeros(len(cuts))
    hints = np.zeros((len(cuts), HINTS + 1), np.int64)
    for i, mine in enumerate(cuts):
        finite = mine[np.isfinite(mine)]
        width = float(finite[-1] - finite[0]) if len(finite) else 0.0
        firsts[i] = finite[0] if len(finite) else 0.0
        hints[i, -1] = len(mine)
        if 0 < width < np.inf and np.isfinite(HINTS / width):
            stretches[i] = HINTS / width
            hints[i, 1:-1] = np.searchsorted(mine, firsts[i] + np.arange(1, HINTS) / stretches[i])
        else:
            hints[i, 1:] = len(mine)
    return firsts, stretches, hints.ravel()


def _bits(flags: NDArray[np.bool_], words: int) -> NDArray[np.uint64]:
    padded = np.zeros(words * 64, np.uint8)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view(np.uint64)


def _bit_range(first: int, last: int, words: int) -> NDArray[np.uint64]:
    """Bits from `first` to before `last`."""
    whole = (1 << last) - (1 << first)
    return np.frombuffer(whole.to_bytes(words * 8, "little"), dtype="<u8").astype(np.uint64)


def _leaf_ranges(ensemble: Ensemble, mine: slice) -> tuple[Ints, Ints, Ints, Ints]:
    """The splits of a tree, for each the range of leaves on its left (leaves count from left to right), and the
    leaves in that order."""
    start = mine.start
    inner = (ensemble.feature[mine] >= 0).tolist()
    left, right = (ensemble.left[mine] - start).tolist(), (ensemble.right[mine] - start).tolist()
    below = [1] * len(inner)
    for node in range(len(inner) - 1, -1, -1):  # children come after their parents
        if inner[node]:
            below[node] = below[left[node]] + below[right[node]]
    first = [0] * len(inner)
    splits, lows, highs = [], [], []
    order = np.empty(below[0], np.int64)
    for node, splits_here in enumerate(inner):
        if not splits_here:
            order[first[node]] = start + node
            continue
        first[left[node]], first[right[node]] = first[node], first[node] + below[left[node]]
        splits.append(start + node)
        lows.append(first[node])
        highs.append(first[right[node]])
    return tuple(np.array(found, np.int64) for found in (splits, lows, highs, order))  # type: ignore[return-value]
