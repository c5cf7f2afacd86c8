"""Batches of people, cut into chunks for the kernels and spread over threads. Shared by all that call kernels.

People are handed to a kernel in chunks of about a millisecond of work, so that threads end together.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.simd import PEOPLE
from fairbits.errors import FairbitsError, OptionError, TableError

if TYPE_CHECKING:
    from fairbits.engine.plan import Plan

CHUNK = 5e7
"""Multiply-adds in a chunk: about a millisecond of one core, long beside a call from Python."""


def checked_codes(plan: Plan, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Codes with all the columns that the plan reads."""
    codes = np.asarray(codes, dtype=np.float64)
    needed = int(max(plan.numeric_columns.max(initial=-1), plan.lookup_columns.max(initial=-1))) + 1
    if codes.ndim != 2 or codes.shape[1] < needed:
        raise TableError(f"codes must have shape (n, d) with d >= {needed}, but got {codes.shape}.")
    return codes


def writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Kernels are compiled for contiguous writeable arrays only; others are copied, a chunk at a time."""
    return np.require(array, requirements=["C", "A", "W"])


def whole_tiles(codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Repeat the last person until the tile is full; only the end of a batch needs it."""
    missing = -len(codes) % PEOPLE
    return np.concatenate([codes, np.repeat(codes[-1:], missing, axis=0)]) if missing else codes


def spread(run: Callable[[int, int], None], n: int, work: int, threads: int | None) -> None:
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


def complain(plan: Plan, codes: NDArray[np.float64], first: int) -> None:
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
