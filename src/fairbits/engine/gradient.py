"""How the model's answer about a person, taken as one of its twins, changes with each of the codes."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairbits.engine.evaluation import run_batch, whole_tiles
from fairbits.engine.forecast import Foresight
from fairbits.engine.kernels.gradients import gradients_chunk
from fairbits.engine.plan import Plan, round_up, scratch
from fairbits.engine.threads import writeable
from fairbits.errors import ROW, OptionError, choose_from

Slope = Literal["margin", "score"]
Floats = NDArray[np.float32]


def gradients(
    plan: Plan,
    codes: NDArray[np.float64],
    twins: ArrayLike,
    *,
    of: Slope = "margin",
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Derivatives by code of every row, taken as its twin number `twins[row]`: an (n, d) array like `codes`.

    Of the margin: the favourable logit minus the log-sum of the others, whose sigmoid is the score (with a linear
    head, of the output). It does not fade where the network is certain; the slope of the score does. A
    categorical attribute has the mean of one step of code up and one down, as in `Encoding.pull_back`. Columns
    that the plan does not read have 0: among them the protected ones, whose codes are ignored.
    """
    if of not in get_args(Slope):
        raise OptionError(f"gradients of {of!r} are not known; {choose_from(of, get_args(Slope))}")
    codes = np.asarray(codes, dtype=np.float64)
    result = np.zeros(codes.shape, np.float32)
    _run(plan, codes, twins, of == "score", (result, np.empty(0, np.float32)), threads)
    return result


def foresight(plan: Plan, codes: NDArray[np.float64], twins: ArrayLike, *, threads: int | None = None) -> Foresight:
    """Slopes and inner gradients with which any change of any code can be forecast: see ``Contributions``."""
    codes = np.asarray(codes, dtype=np.float64)
    width = round_up(int(plan.program.widths[0])) if plan.adjoint.table_columns.size else 0
    found = Foresight(np.zeros(codes.shape, np.float32), np.empty((len(codes), width), np.float32))
    _run(plan, codes, twins, False, (found.slopes, found.inner.ravel()), threads)
    return found


def _run(
    plan: Plan,
    codes: NDArray[np.float64],
    twins: ArrayLike,
    score: bool,
    results: tuple[Floats, Floats],
    threads: int | None,
) -> None:
    numbers = _checked(plan, twins, len(codes))
    program, adjoint = plan.program, plan.adjoint

    def run(people: NDArray[np.float64], n: int, start: int) -> int:
        chosen = whole_tiles(writeable(numbers[start : start + n]))
        buffer = scratch(adjoint.size)
        return int(gradients_chunk(program, adjoint, buffer, people, chosen, n, start, score, *results))

    work = adjoint.weights.size + (program.table_starts.size + adjoint.table_starts.size + 8) * program.widths[0]
    run_batch(plan, codes, run, work=int(work), threads=threads)


def _checked(plan: Plan, twins: ArrayLike, n: int) -> NDArray[np.int64]:
    numbers = np.asarray(twins)
    if numbers.shape != (n,) or (n and numbers.dtype.kind not in "iu"):
        raise OptionError(
            f"twins must be {n} whole numbers, one per row of codes, but got shape {numbers.shape} of {numbers.dtype}."
        )
    for row in np.flatnonzero((numbers < 0) | (numbers >= plan.m))[:1]:
        raise OptionError.of_row(f"twins must be within 0..{plan.m - 1}, but {ROW} has {numbers[row]}.", int(row))
    return numbers.astype(np.int64)
