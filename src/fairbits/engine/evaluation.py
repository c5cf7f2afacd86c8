"""The front of the engine: batches of people in, figures per person out, on as many threads as asked for.

Each person's figures depend on that person alone: neither the threads nor the order change a bit of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.batches import run_batch, spread, writeable
from fairbits.engine.kernels.evaluate import run_chunk
from fairbits.engine.kernels.partition import Ruler, classes_chunk, ruler_of
from fairbits.engine.kernels.simd import PEOPLE
from fairbits.engine.plan import Head, Plan
from fairbits.engine.program import scratch
from fairbits.errors import OptionError

Partition = Literal["constrained", "grid"]


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

    def updated(self, chosen: NDArray[np.int64], newer: Evaluation) -> Evaluation:
        """These figures, with those of some people replaced."""
        arrays = {name: value.copy() for name, value in self._arrays().items()}
        for name, value in newer._arrays().items():
            arrays[name][chosen] = value
        return Evaluation(**arrays, m=self.m)

    @classmethod
    def concatenate(cls, pieces: Sequence[Evaluation]) -> Evaluation:
        """Several batches as one."""
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
) -> Evaluation:
    """Score all twins of every person and measure them, without keeping the scores."""
    bounded = plan.head is not Head.LINEAR
    figures = empty_figures(len(codes))
    ruler = ruler_of(plan.m, epsilon, partition, bounded, threshold)
    _run(plan, codes, ruler=ruler, figures=figures, ready=np.empty((0, 0), np.float32), threads=threads)
    return Evaluation(**figures._asdict(), m=plan.m)


def scores(plan: Plan, codes: NDArray[np.float64], *, threads: int | None = None) -> NDArray[np.float32]:
    """Scores of all twins of every person."""
    ready = np.empty((len(codes), plan.m), np.float32)
    ruler = Ruler(False, np.float32(0), np.float32(0), False, np.float32(0), np.zeros(0), np.float32(0.5))
    _run(plan, codes, ruler=ruler, figures=empty_figures(0), ready=ready, threads=threads)
    return ready


def classes(
    scores: NDArray[np.float32],
    *,
    epsilon: float,
    partition: Partition,
    bounded: bool = True,
    threads: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """k and Q1 of every row of scores."""
    scores = np.asarray(scores, dtype=np.float32)
    if scores.ndim != 2 or scores.shape[1] < 1:
        raise OptionError(f"scores must have shape (n, m) with m >= 1, but got {scores.shape}.")
    if not np.isfinite(scores).all():
        raise OptionError("scores must be finite, but hold NaN or infinity.")
    n, m = scores.shape
    ruler = ruler_of(m, epsilon, partition, bounded)
    figures = empty_figures(n)

    def run(start: int, stop: int) -> None:
        classes_chunk(writeable(scores[start:stop]), scratch(m * PEOPLE), start, ruler, figures)

    spread(run, n, m * 500, threads)
    return figures.k, figures.q_1


def empty_figures(n: int) -> _Figures:
    """Empty arrays for the figures of n people."""
    whole, real = np.int32, np.float32
    kinds: tuple[Any, ...] = (whole, real, real, real, whole, whole, whole)
    return _Figures(*(np.empty(n, kind) for kind in kinds))


def _run(
    plan: Plan,
    codes: NDArray[np.float64],
    *,
    ruler: Ruler,
    figures: _Figures,
    ready: NDArray[np.float32],
    threads: int | None,
) -> None:
    program = plan.program

    def run(people: NDArray[np.float64], n: int, start: int) -> int:
        return int(run_chunk(program, scratch(program.size), people, n, start, ruler, figures, ready))

    work = plan.m * (program.weights.size + 4 * program.bias.size + 50)
    run_batch(plan, codes, run, work=work, threads=threads)
