"""Tree ensembles over people × twins: all twins of a person go through a tree together.

A plan holds what the kernels (`kernels.trees`) need: how codes become bins (only the thresholds that occur in the
ensemble matter), small trees as tables of leaves, large ones as nodes, and what protected values do to both. Sums are
per person, so that neither threads nor company change a bit of them.

Where a library adds up in float32, so do the kernels, in its order: scores are its own to the bit. Its float64 sums
they add up as is quickest, which is off by a few last bits at most and hardly ever another float32; scores at the
threshold are added up again as the library does, so that decisions are its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Encoding, Schema, Twins
from fairbits.engine.kernels.trees import trees_chunk
from fairbits.engine.threads import CHUNK, SHARES, share, thread_count, writeable
from fairbits.engine.tree_planner import TreePlanner
from fairbits.engine.tree_program import Floats, Ints, NoPlan, TreePlan, TreeProgram
from fairbits.errors import TableError
from fairbits.models import HasTrees, apply_link, exact_link

_NOBODY = (np.empty(0, np.int64), np.empty(0, np.int64))


def tree_plan(model: HasTrees, schema: Schema, encoding: Encoding, twins: Twins | None) -> TreePlan | None:
    """The plan of a tree model, or None where its features cannot be binned."""
    try:
        return TreePlanner(model, schema, encoding, twins).plan()
    except NoPlan:
        return None


def tree_scores(plan: TreePlan, codes: Floats, *, threads: int | None = None) -> NDArray[np.float32]:
    """The scores of all twins of every person."""
    ready = np.empty((len(codes), plan.m), np.float32)
    doubts: list[tuple[Ints, Ints]] = []

    def keep(start: int, stop: int, sums: Floats) -> None:
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


def tree_class_scores(plan: TreePlan, codes: Floats, *, threads: int | None = None) -> NDArray[np.float32]:
    """The predictions of all outputs for all twins of every person, (n, m, outputs)."""
    ready = np.empty((len(codes), plan.m, len(plan.program.base)), np.float32)

    def keep(start: int, stop: int, sums: Floats) -> None:
        ready[start:stop] = _predictions(plan, sums)

    _run(plan, codes, keep, threads)
    return ready


def _at(cut: np.float32, scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which scores are as near to the threshold as float32 can tell."""
    below, above = np.nextafter(cut, np.float32(-np.inf)), np.nextafter(cut, np.float32(np.inf))
    return (scores >= below) & (scores <= above)


def _predictions(plan: TreePlan, sums: Floats) -> Floats:
    """Predictions of all outputs, (n, m, outputs), from sums (n, outputs, m)."""
    turned, trees = np.moveaxis(sums, 1, 2), plan.ensemble
    if plan.program.in_order:
        return exact_link(turned, trees.link, trees.slope, single=True)
    return apply_link(turned / trees.divisor if trees.divisor != 1 else turned, trees.link, trees.slope)


def _chosen(plan: TreePlan, predictions: Floats) -> Floats:
    """The score among the predictions of all outputs."""
    found = predictions[..., plan.favourable if predictions.shape[-1] > 1 else 0]
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
