"""The front of the engine: batches of people in, figures per person out, on as many threads as asked for.

A kernel takes whole tiles of people and says where the first tile is that it cannot use. Which person of it is to
blame, and for what, is found out here: that may take its time. Each person's figures depend on that person alone:
neither the threads nor the order change a bit of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.evaluate import run_chunk
from fairbits.engine.kernels.lanes import PEOPLE
from fairbits.engine.kernels.partition import Partition, Ruler, masked_chunk, masked_rows, ruler_of, vectors_chunk
from fairbits.engine.plan import Plan, check_values, scratch
from fairbits.engine.threads import one_core, spread, writeable
from fairbits.engine.wide import BLOCK
from fairbits.errors import ROW, FairbitsError, ModelError, OptionError, TableError, rows_named

#: Runs a kernel on whole tiles of codes, of which the first n are people and the first is row `start` of the batch:
#: (codes, n, start). Gives the row where the first tile in trouble begins, or -1.
Run = Callable[[NDArray[np.float64], int, int], int]

#: Scores whose classes NumPy has counted before a kernel is compiled.
FEW_SCORES = 1_000_000

#: Scalar work per twin, and per twin and class, in units of the engine's multiply-adds.
_WORK, _VECTOR_WORK = 300, 600


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Figures per person: arrays with one entry each, for people with m twins."""

    k: NDArray[np.int32]
    q_1: NDArray[np.float32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    low_twin: NDArray[np.int32]
    high_twin: NDArray[np.int32]
    favourable: NDArray[np.int32]
    m: int
    twins: NDArray[np.int32] | None = None
    decisions: NDArray[np.int32] | None = None

    @property
    def q_inf(self) -> NDArray[np.float64]:
        """Bits of protected information: log2 k."""
        return np.log2(self.k)

    @property
    def span(self) -> NDArray[np.float32]:
        """Distance from the lowest to the highest score."""
        return self.high - self.low

    @property
    def flips(self) -> NDArray[np.bool_]:
        """Whose twins do not all get the same decision."""
        if self.decisions is not None:
            return self.decisions > 1
        return (self.favourable > 0) & (self.favourable < (self.m if self.twins is None else self.twins))

    def rows(self, chosen: NDArray[Any]) -> Evaluation:
        """Figures of some of the people."""
        return Evaluation(**{name: value[chosen] for name, value in self._arrays().items()}, m=self.m)

    def put(self, chosen: NDArray[np.int64], newer: Evaluation) -> None:
        """Replace the figures of some people."""
        for name, value in newer._arrays().items():
            getattr(self, name)[chosen] = value

    @classmethod
    def concatenate(cls, pieces: Sequence[Evaluation]) -> Evaluation:
        """Several batches as one."""
        if len(pieces) == 1:
            return pieces[0]
        names = pieces[0]._arrays()
        return cls(**{name: np.concatenate([getattr(p, name) for p in pieces]) for name in names}, m=pieces[0].m)

    def _arrays(self) -> dict[str, Any]:
        """The arrays that are present, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "m"}
        return {name: value for name, value in found.items() if value is not None}


class _Figures(NamedTuple):
    """The same arrays, as the kernel takes them."""

    k: NDArray[np.int32]
    q_1: NDArray[np.float32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    low_twin: NDArray[np.int32]
    high_twin: NDArray[np.int32]
    favourable: NDArray[np.int32]


def evaluate(
    plan: Plan,
    codes: NDArray[np.float64],
    *,
    epsilon: float,
    partition: Partition,
    threshold: float = 0.5,
    threads: int | None = None,
    kept: NDArray[np.float32] | None = None,
) -> Evaluation:
    """Score all twins of every person and measure them; scores are kept only where there is an array for them."""
    ruler = ruler_of(plan.m, epsilon, partition, plan.head != "linear", threshold)
    if plan.fused:
        figures = _empty_figures(len(codes))
        ready = np.empty((0, 0), np.float32) if kept is None else kept
        _run(plan, codes, ruler=ruler, figures=figures, ready=ready, threads=threads)
        return Evaluation(**figures._asdict(), m=plan.m)
    pieces, people = [], max(plan.layers.people, BLOCK // plan.m)
    for start in range(0, max(len(codes), 1), people):
        with rows_named(start):
            some = codes[start : start + people]
            figures, ready = _empty_figures(len(some)), np.empty((len(some), plan.m), np.float32)
            _run(plan, some, ruler=ruler, figures=figures, ready=ready, threads=threads)
            if kept is not None:
                kept[start : start + people] = ready
            found = count_classes(ready, np.ones(ready.shape, np.bool_), ruler, threads=threads)
            pieces.append(replace(found, favourable=figures.favourable, twins=None))
    return Evaluation.concatenate(pieces)


def scores(plan: Plan, codes: NDArray[np.float64], *, threads: int | None = None) -> NDArray[np.float32]:
    """Scores of all twins of every person."""
    ready = np.empty((len(codes), plan.m), np.float32)
    ruler = Ruler(False, np.float32(0), np.float32(0), False, np.float32(0), np.zeros(0), np.float32(0.5))
    _run(plan, codes, ruler=ruler, figures=_empty_figures(0), ready=ready, threads=threads)
    return ready


def masked(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_],
    *,
    epsilon: float,
    partition: Partition,
    bounded: bool = True,
    decides: bool = True,
    threshold: float = 0.5,
    threads: int | None = None,
) -> Evaluation:
    """Figures over the valid twins of people; someone without any has k = 1 and no span."""
    ruler = ruler_of(scores.shape[1], epsilon, partition, bounded, threshold)
    return count_classes(scores, valid, ruler, decides=decides, threads=threads)


def count_classes(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_],
    ruler: Ruler,
    *,
    decides: bool = True,
    threads: int | None = 1,
) -> Evaluation:
    """Figures over the valid twins of people; few scores do not wait for a compiler, with the same results."""
    n, m = scores.shape
    figures, twins = _empty_figures(n), np.empty(n, np.int32)

    def compiled(start: int, stop: int) -> None:
        part, mask = writeable(scores[start:stop]), writeable(valid[start:stop])
        masked_chunk(part, mask, start, ruler, decides, figures, twins)

    plain = partial(masked_rows, scores, valid, ruler, decides, figures, twins)
    spread(plain if n * m <= FEW_SCORES else compiled, n, m * _WORK, threads)
    return Evaluation(**figures._asdict(), m=m, twins=twins)


def vectors(
    scores: NDArray[np.float32],
    valid: NDArray[np.bool_] | None = None,
    *,
    epsilon: float,
    favourable: int,
    threads: int | None = None,
) -> Evaluation:
    """Figures of people whose twins have a probability for every class.

    Low and high are those of the favourable class; ``decisions`` counts the different most likely classes.
    """
    if scores.ndim != 3 or not 0 <= favourable < scores.shape[2]:
        raise OptionError(f"scores must have shape (n, m, classes) and favourable be one, but got {scores.shape}.")
    n, m, classes = scores.shape
    mask = np.ones((n, m), np.bool_) if valid is None else valid
    figures, twins, decisions = _empty_figures(n), np.empty(n, np.int32), np.empty(n, np.int32)
    ruler = ruler_of(m, epsilon, "constrained", True)

    def run(start: int, stop: int) -> None:
        part = writeable(scores[start:stop]), writeable(mask[start:stop])
        vectors_chunk(*part, start, favourable, ruler, figures, twins, decisions)

    spread(run, n, m * classes * _VECTOR_WORK, threads)
    counts = None if valid is None else twins
    return Evaluation(**figures._asdict(), m=m, twins=counts, decisions=decisions)


def _empty_figures(n: int) -> _Figures:
    """Empty arrays for the figures of n people."""
    k, low_twin, high_twin, favourable = (np.empty(n, np.int32) for _ in range(4))
    q_1, low, high = (np.empty(n, np.float32) for _ in range(3))
    return _Figures(k, q_1, low, high, low_twin, high_twin, favourable)


def _run(
    plan: Plan,
    codes: NDArray[np.float64],
    *,
    ruler: Ruler,
    figures: _Figures,
    ready: NDArray[np.float32],
    threads: int | None,
) -> None:
    if plan.fused:
        program = plan.program

        def run(people: NDArray[np.float64], n: int, start: int) -> int:
            with scratch(plan, program.size) as buffer:
                return int(run_chunk(program, buffer, people, n, start, ruler, figures, ready))
    else:
        run = partial(plan.layers.score, ruler=ruler, favourable=figures.favourable, ready=ready)
    run_batch(plan, codes, run, work=plan.work, threads=threads)


def run_batch(
    plan: Plan, codes: NDArray[np.float64], run: Run, *, work: int, threads: int | None, tile: int | None = None
) -> None:
    """Run a kernel on all rows of codes, in chunks over threads; wide layers take as many people at a time as given."""
    codes = np.asarray(codes, dtype=np.float64)
    needed = int(max(plan.numeric_columns.max(initial=-1), plan.lookup_columns.max(initial=-1))) + 1
    if codes.ndim != 2 or codes.shape[1] < needed:
        raise TableError(f"codes must have shape (n, d) with d >= {needed}, but got {codes.shape}.")

    def chunk(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):  # what is not finite is found out
            rows = codes[start:stop]
            faulty = run(whole_tiles(writeable(rows)) if plan.fused else rows, stop - start, start)
            if faulty >= 0:
                _complain(plan, codes, range(faulty, min(faulty + PEOPLE, stop)), run)

    if plan.fused:
        spread(chunk, len(codes), work, threads)
    else:
        with one_core():
            spread(chunk, len(codes), work, threads, tile=tile or plan.layers.people)


def whole_tiles(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows, with those of the last tile again and again until it is full; only the end of a batch needs it."""
    rest = len(rows) % PEOPLE
    return np.concatenate([rows[:-rest], rows[-rest:][np.arange(PEOPLE) % rest]]) if rest else rows


def _complain(plan: Plan, codes: NDArray[np.float64], rows: range, run: Run) -> None:
    """The kernel met a code it has no use for, or a network that overflows, in one of these rows: say which."""
    for row in rows:
        for column, shift in zip(plan.numeric_columns, plan.numeric_shifts, strict=True):
            code = codes[row, column]
            if not abs(code - shift) <= np.finfo(np.float32).max:
                raise TableError.of_row(
                    f"codes must be finite as float32, but column {column + 1} of {ROW} holds {code}.", row
                )
        check_values(codes[row], row, plan.lookup_columns, plan.lookup_lows, plan.lookup_sizes)
    for row in rows:
        if run(whole_tiles(writeable(codes[row : row + 1])), 1, row) >= 0:
            raise ModelError.of_row(
                f"the network must stay within float32, but it overflows for {ROW}; "
                f"check its weights and the scale of the codes.",
                row,
            )
    raise FairbitsError.of_row(f"the kernel refused the tile at {ROW}, but every row of it looks fine.", rows.start)
