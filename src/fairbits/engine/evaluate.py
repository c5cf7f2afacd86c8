"""The front of the engine: batches of people in, figures per person out, on as many threads as asked for.

People are handed to the kernel in chunks of about a millisecond of work, so that threads end together. Each
person's figures depend on that person alone: neither the threads nor the order change a bit of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels import run_chunk
from fairbits.engine.partition import classes_chunk, entropy_terms, last_bin
from fairbits.engine.plan import Head, Plan
from fairbits.engine.program import scratch
from fairbits.engine.simd import PEOPLE
from fairbits.errors import FairbitsError, OptionError, TableError

Partition = Literal["constrained", "grid"]

CHUNK = 5e7
"""Multiply-adds in a chunk: about a millisecond of one core, long beside a call from Python."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Figures per person: arrays with one entry each, for people with m twins.

    `favourable` is the number of twins that get the favourable decision: a score of at least 0.5; with three
    or more classes, no other class more likely (a tie counts as favourable); always 0 for a linear head.
    `twins` says how many of the m twins can exist, where rules leave some out: the figures are about those only.
    `decisions` counts the different decisions among them, where all classes are compared.
    """

    k: NDArray[np.int32]
    q_1: NDArray[np.float32]
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    low_twin: NDArray[np.int32]  # the first twin with the lowest score
    high_twin: NDArray[np.int32]  # the first twin with the highest score
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
        """The figures of some of the people."""
        return Evaluation(**{name: value[chosen] for name, value in self._arrays().items()}, m=self.m)

    def updated(self, chosen: NDArray[np.bool_], newer: Evaluation) -> Evaluation:
        """These figures, with those of the chosen people replaced by newer ones."""
        fresh = newer._arrays()
        arrays = {name: np.where(chosen, fresh[name], value) for name, value in self._arrays().items()}
        return Evaluation(**arrays, m=self.m)

    @classmethod
    def concatenate(cls, pieces: Sequence[Evaluation]) -> Evaluation:
        """Several batches as one."""
        names = pieces[0]._arrays()
        return cls(**{name: np.concatenate([getattr(p, name) for p in pieces]) for name in names}, m=pieces[0].m)

    def _arrays(self) -> dict[str, Any]:
        """The figures that there are."""
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


class _Ruler(NamedTuple):
    """How classes are told apart, as the kernel takes it."""

    classes: bool
    epsilon: np.float32
    grid: bool
    last: np.float32
    terms: NDArray[np.float64]


def evaluate(
    plan: Plan,
    codes: NDArray[np.float64],
    *,
    epsilon: float,
    partition: Partition,
    threads: int | None = None,
) -> Evaluation:
    """Score all twins of every person (a row of codes) and measure them, without keeping the scores."""
    bounded = plan.head is not Head.LINEAR
    figures = _figures(len(codes))
    ruler = _ruler(plan.m, epsilon, partition, bounded)
    _run(plan, codes, ruler=ruler, figures=figures, ready=np.empty((0, 0), np.float32), threads=threads)
    return Evaluation(**figures._asdict(), m=plan.m)


def scores(plan: Plan, codes: NDArray[np.float64], *, threads: int | None = None) -> NDArray[np.float32]:
    """The scores of all twins of every person: an (n, m) array."""
    ready = np.empty((len(codes), plan.m), np.float32)
    ruler = _Ruler(False, np.float32(0), False, np.float32(0), np.zeros(0))
    _run(plan, codes, ruler=ruler, figures=_figures(0), ready=ready, threads=threads)
    return ready


def classes(
    scores: NDArray[np.float32],
    *,
    epsilon: float,
    partition: Partition,
    bounded: bool = True,
    threads: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """k and Q1 of every row of a ready (n, m) array. `bounded` says that scores are probabilities.

    Only the grid partition asks: a probability of 1 belongs to the last bin below it.
    """
    scores = np.asarray(scores, dtype=np.float32)
    if scores.ndim != 2 or scores.shape[1] < 1:
        raise OptionError(f"scores must have shape (n, m) with m >= 1, but got {scores.shape}.")
    if not np.isfinite(scores).all():
        raise OptionError("scores must be finite, but hold NaN or infinity.")
    n, m = scores.shape
    ruler = _ruler(m, epsilon, partition, bounded)
    figures = _figures(n)

    def run(start: int, stop: int) -> None:
        classes_chunk(_writeable(scores[start:stop]), scratch(m * PEOPLE), start, ruler, figures)

    _spread(run, n, m * 500, threads)
    return figures.k, figures.q_1


def _figures(n: int) -> _Figures:
    whole, real = np.int32, np.float32
    kinds: tuple[Any, ...] = (whole, real, real, real, whole, whole, whole)
    return _Figures(*(np.empty(n, kind) for kind in kinds))


def _ruler(m: int, epsilon: float, partition: str, bounded: bool) -> _Ruler:
    if not (epsilon > 0 and np.isfinite(epsilon)):
        raise OptionError(f"epsilon must be a positive number, but got {epsilon}.")
    if partition not in ("constrained", "grid"):
        raise OptionError(f"partition must be 'constrained' or 'grid', but got {partition!r}.")
    return _Ruler(True, np.float32(epsilon), partition == "grid", last_bin(epsilon, bounded), entropy_terms(m))


def _writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Kernels are compiled for contiguous writeable arrays only; others are copied, a chunk at a time."""
    return np.require(array, requirements=["C", "A", "W"])


def _whole_tiles(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Repeat the last person until the tile is full; only the end of a batch needs it."""
    missing = -len(codes) % PEOPLE
    return np.concatenate([codes, np.repeat(codes[-1:], missing, axis=0)]) if missing else codes


def _run(
    plan: Plan,
    codes: NDArray[np.float64],
    *,
    ruler: _Ruler,
    figures: _Figures,
    ready: NDArray[np.float32],
    threads: int | None,
) -> None:
    codes = np.asarray(codes, dtype=np.float64)
    needed = int(max(plan.numeric_columns.max(initial=-1), plan.lookup_columns.max(initial=-1))) + 1
    if codes.ndim != 2 or codes.shape[1] < needed:
        raise TableError(f"codes must have shape (n, d) with d >= {needed}, but got {codes.shape}.")
    program = plan.program

    def run(start: int, stop: int) -> None:
        part = _whole_tiles(_writeable(codes[start:stop]))
        faulty = run_chunk(program, scratch(program.size), part, stop - start, start, ruler, figures, ready)
        if faulty >= 0:
            _complain(plan, codes[faulty:stop], faulty)

    work = plan.m * (program.weights.size + 4 * program.bias.size + 50)
    _spread(run, len(codes), work, threads)


def _spread(run: Callable[[int, int], None], n: int, work: int, threads: int | None) -> None:
    """Call `run` on consecutive ranges of people, of whole tiles and about `CHUNK` multiply-adds each."""
    threads = os.cpu_count() or 1 if threads is None else threads
    if threads < 1:
        raise OptionError(f"threads must be 1 or more, but got {threads}.")
    step = max(1, round(CHUNK / (work * PEOPLE))) * PEOPLE
    starts = range(0, n, step)
    if threads == 1 or len(starts) < 2:
        for start in starts:
            run(start, min(start + step, n))
        return
    with ThreadPoolExecutor(min(threads, len(starts)), thread_name_prefix="fairbits") as pool:
        for _ in pool.map(lambda start: run(start, min(start + step, n)), starts):
            pass


def _complain(plan: Plan, codes: NDArray[np.float64], first: int) -> None:
    """The kernel met a code it has no use for, in one of these rows: say which."""
    for column, shift in zip(plan.numeric_columns, plan.numeric_shifts, strict=True):
        values = codes[:, column]
        for row in np.flatnonzero(~(np.abs(values - shift) <= np.finfo(np.float32).max)):
            raise TableError(
                f"codes must be finite as float32, but row {first + row}, column {column} holds {values[row]}."
            )
    for column, low, size in zip(plan.lookup_columns, plan.lookup_lows, plan.lookup_sizes, strict=True):
        values = codes[:, column]
        known = (values >= low) & (values < low + size) & (values == np.floor(values))
        for row in np.flatnonzero(~known):
            raise TableError(
                f"codes of column {column} must be whole numbers within {low}..{low + size - 1}, "
                f"but row {first + row} holds {values[row]}."
            )
    raise FairbitsError(f"the kernel refused a code in the tile at row {first}, but every code looks fine.")
