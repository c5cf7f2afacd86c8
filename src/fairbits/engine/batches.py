"""How a batch of people reaches a kernel: in chunks of about a millisecond of work, so that threads end together.

A kernel takes whole tiles of people and says where the first tile is that it cannot use. Which person of it
is to blame, and for what, is found out here: that may take its time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.simd import PEOPLE
from fairbits.engine.plan import Plan
from fairbits.engine.threads import share, thread_count
from fairbits.errors import ROW, FairbitsError, ModelError, TableError

CHUNK = 5e7
"""Multiply-adds in a chunk: about a millisecond of one core, long beside a call from Python."""

SMALL, SHARES = 4e6, 5
"""Not worth handing to another thread; and how many chunks a thread gets of a small batch, to end with the others."""

Run = Callable[[NDArray[np.float64], int, int], int]
"""Runs a kernel on whole tiles of codes, of which the first n are people and the first is row `start` of the
batch: (codes, n, start). Gives the row where the first tile in trouble begins, or -1."""


def run_batch(plan: Plan, codes: NDArray[np.float64], run: Run, *, work: int, threads: int | None) -> None:
    """Run a kernel on all rows of codes, in chunks over threads."""
    codes = np.asarray(codes, dtype=np.float64)
    needed = int(max(plan.numeric_columns.max(initial=-1), plan.lookup_columns.max(initial=-1))) + 1
    if codes.ndim != 2 or codes.shape[1] < needed:
        raise TableError(f"codes must have shape (n, d) with d >= {needed}, but got {codes.shape}.")

    def chunk(start: int, stop: int) -> None:
        faulty = run(whole_tiles(writeable(codes[start:stop])), stop - start, start)
        if faulty >= 0:
            _complain(plan, codes, range(faulty, min(faulty + PEOPLE, stop)), run)

    spread(chunk, len(codes), work, threads)


def spread(run: Callable[[int, int], None], n: int, work: int, threads: int | None) -> None:
    """Call a function on consecutive ranges of people, of whole tiles and at most ``CHUNK`` multiply-adds each."""
    n_threads = thread_count(threads)
    if n * work < 2 * SMALL:
        n_threads = 1
    people = CHUNK / work if n_threads == 1 else min(CHUNK / work, max(SMALL / work, n / (n_threads * SHARES)))
    step = max(1, round(people / PEOPLE)) * PEOPLE
    share(lambda start: run(start, min(start + step, n)), range(0, n, step), n_threads)


def writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Kernels are compiled for contiguous writeable arrays only; others are copied, a chunk at a time."""
    return np.require(array, requirements=["C", "A", "W"])


def whole_tiles(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows, with the last one repeated until the tile is full; only the end of a batch needs it."""
    missing = -len(rows) % PEOPLE
    return np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]) if missing else rows


def _complain(plan: Plan, codes: NDArray[np.float64], rows: range, run: Run) -> None:
    """The kernel met a code it has no use for, or a network that overflows, in one of these rows: say which."""
    for row in rows:
        _check_codes(plan, codes[row], row)
    for row in rows:
        if run(whole_tiles(writeable(codes[row : row + 1])), 1, row) >= 0:
            raise ModelError.of_row(
                f"the network must stay within float32, but it overflows for {ROW}; "
                f"check its weights and the scale of the codes.",
                row,
            )
    raise FairbitsError.of_row(f"the kernel refused the tile at {ROW}, but every row of it looks fine.", rows.start)


def _check_codes(plan: Plan, codes: NDArray[np.float64], row: int) -> None:
    for column, shift in zip(plan.numeric_columns, plan.numeric_shifts, strict=True):
        if not abs(codes[column] - shift) <= np.finfo(np.float32).max:
            raise TableError.of_row(
                f"codes must be finite as float32, but column {column + 1} of {ROW} holds {codes[column]}.", row
            )
    for column, low, size in zip(plan.lookup_columns, plan.lookup_lows, plan.lookup_sizes, strict=True):
        code = codes[column]
        if not (low <= code < low + size and code == np.floor(code)):
            raise TableError.of_row(
                f"codes of column {column + 1} must be whole numbers within {low}..{low + size - 1}, "
                f"but {ROW} holds {code}.",
                row,
            )
