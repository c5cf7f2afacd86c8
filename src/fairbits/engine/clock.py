"""A clock that stands still while kernels are compiled: a budget is for work, compiling is done once per machine."""

from __future__ import annotations

import time

from numba.core import event

from fairbits.engine.kernels.compiler import KernelCache

_COMPILING = event.TimingListener()
event.register("numba:compile", _COMPILING)


def work_time() -> float:
    """Seconds on the clock of this process, without those spent compiling, or waiting for a kernel, so far."""
    compiling = _COMPILING.duration if _COMPILING.done else 0.0
    return time.perf_counter() - compiling - KernelCache.seconds_waited
