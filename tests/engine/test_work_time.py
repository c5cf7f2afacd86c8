"""The clock of budgets."""

from __future__ import annotations

import time

import numba

from fairbits.engine import work_time


def test_compiling_is_no_work() -> None:
    @numba.njit
    def steps(n: int) -> float:
        total = 0.0
        for i in range(n):
            total += i % 7
        return total

    wall, work = time.perf_counter(), work_time()
    steps(10)
    wall, work = time.perf_counter() - wall, work_time() - work
    assert wall > 0.02  # LLVM takes its time
    assert work < wall / 2


def test_other_time_passes() -> None:
    work = work_time()
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end:
        pass
    assert work_time() - work >= 0.02
