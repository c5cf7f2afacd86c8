"""The command line: the only place that prints. Nothing is imported here, so that Ctrl-C is answered from the start."""

from __future__ import annotations

import time
from typing import NoReturn

__all__ = ["main", "since"]

_began: list[float] = []


def since() -> float:
    """When the command began, by ``time.perf_counter``: a budget of time counts from there."""
    return _began[-1] if _began else time.perf_counter()


def main() -> NoReturn:
    """Run the command line. Exit codes: 0 fine, 1 verdict failed, 2 wrong use, 3 failure, 130 interrupted."""
    _began.append(time.perf_counter())
    import gc

    from fairbits.cli.signals import interruptible

    gc.set_threshold(50_000)  # a start makes many objects and drops few: looking for those takes a tenth of it
    with interruptible():
        from fairbits.cli.app import run

        run()
