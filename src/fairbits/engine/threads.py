"""Work shared among threads, in chunks of about a millisecond, so that threads end together.

The threads are made once per process, since making them costs as much as a small batch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.kernels.lanes import PEOPLE
from fairbits.errors import OptionError

#: Multiply-adds in a chunk: about a millisecond of one core, long beside a call from Python.
CHUNK = 5e7

#: Not worth handing to another thread; and how many chunks a thread gets of a small batch, to end with the others.
SMALL, SHARES = 4e6, 5


@cache
def _granted(root: Path) -> float:
    """Cores that the control group of this process grants (version 2, then 1); infinite where none says so."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = " ".join((root / name).read_text(encoding="ascii") for name in files).split()
        except (OSError, ValueError):  # no Linux, no such version, or another layout
            continue
        if quota not in ("max", "-1"):
            return float(quota) / float(period)
    return math.inf


def thread_count(threads: int | None) -> int:
    """The number of threads that is meant; None: one for every core that this process is bound to, and no more than its
    container is given."""
    if threads is None:
        bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        granted = _granted(Path("/sys/fs/cgroup"))
        return bound if granted == math.inf else max(1, min(bound, math.ceil(granted)))
    if threads < 1:
        raise OptionError(f"threads must be 1 or more, but got {threads}.")
    return threads


def share(run: Callable[[int], None], starts: range, threads: int | None) -> None:
    """Call a function once with every start, on several threads.

    The calling thread works too, so one thread starts no pool. When several calls fail, the error is that of the
    earliest start, whatever the threads.
    """
    n_threads = min(thread_count(threads), len(starts))
    if n_threads < 2:
        for start in starts:
            run(start)
        return
    waiting = iter(starts)  # the interpreter's lock sees to it that every start is taken once
    failures: dict[int, BaseException] = {}

    def work() -> None:
        for start in waiting:
            try:
                run(start)
            except BaseException as error:  # noqa: BLE001 - raised below, in the thread that asked
                failures[start] = error
            if failures:
                return

    helpers = [_thread_pool(os.getpid(), n_threads - 1).submit(work) for _ in range(n_threads - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # one that never got to start has nothing left to do
            helper.result()
    if failures:
        raise failures[min(failures)]


@cache
def _thread_pool(process: int, helpers: int) -> ThreadPoolExecutor:  # noqa: ARG001 - threads do not survive a fork
    return ThreadPoolExecutor(helpers, thread_name_prefix="fairbits")


def spread(run: Callable[[int, int], None], n: int, work: int, threads: int | None, *, tile: int = PEOPLE) -> None:
    """Call a function on consecutive ranges of people, of whole tiles and at most ``CHUNK`` multiply-adds each."""
    n_threads = thread_count(threads)
    if n * work < 2 * SMALL:
        n_threads = 1
    people = CHUNK / work if n_threads == 1 else min(CHUNK / work, max(SMALL / work, n / (n_threads * SHARES)))
    step = max(1, round(people / tile)) * tile
    share(lambda start: run(start, min(start + step, n)), range(0, n, step), n_threads)


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_core() -> AbstractContextManager[Any]:
    """Within, matrix products take one thread each: ours run beside each other, and no sum may depend on theirs."""
    context: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return context


def aligned(count: int, kind: type[Any]) -> NDArray[Any]:
    """Zeros that begin with a line of the cache, so that no vector lies across two."""
    each = np.dtype(kind).itemsize
    raw = np.zeros(count + 64 // each, kind)
    skipped = -raw.ctypes.data % 64 // each
    return raw[skipped : skipped + count]


def writeable(array: NDArray[Any]) -> NDArray[Any]:
    """Kernels are compiled for contiguous writeable arrays only; others are copied, a chunk at a time."""
    return np.require(array, requirements=["C", "A", "W"])
