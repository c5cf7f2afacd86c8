"""The command line: the only place that prints. Little is imported here, so that Ctrl-C is answered from the start."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import NoReturn

__all__ = ["main", "since", "waited"]

_began: list[float] = []


def since() -> float:
    """When the command began, by ``time.perf_counter``: a budget of time counts from there."""
    return _began[-1] if _began else time.perf_counter()


def waited() -> str:
    """How long the command has taken so far, as whoever typed it sees it."""
    return f"{time.perf_counter() - since():.1f} s in all"


def main() -> NoReturn:
    """Exit codes: 0 fine, 1 verdict failed, 2 wrong use, 3 inconclusive, 4 failure, 130 interrupted."""
    if sys.modules["__main__"].__dict__.get("main") is main and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)  # until what answers all signals is imported
    _began.append(time.perf_counter())
    import gc

    from fairbits.cli.signals import interruptible

    gc.set_threshold(50_000)  # a start makes many objects and drops few: looking for those takes a tenth of it
    with interruptible():
        from fairbits.cli.app import run

        run()


def _leave(*_: object) -> NoReturn:
    os.write(2, b"fairbits: interrupted.\n")
    os._exit(130)
