"""Ctrl-C, SIGTERM and a closed terminal: one end for all three, from the first moment to the last.

While packages are being imported, a signal ends the process at once: an exception inside an import comes out as
something else, or as a traceback. Afterwards it raises KeyboardInterrupt, so that files are tidied up. A search asks to
be told instead (`gentle_stop`), ends the batch that it is at, and can go on later.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED, FAILED = 130, 4
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")

_came = False


@contextmanager
def interruptible() -> Iterator[None]:
    """Answer signals as the command line does. The process that a person started is left so until its very end."""
    before = _set(_interrupt)
    if _ours():  # registered first, done last: Python takes our answers back at its very end, when all is said
        atexit.register(_set, signal.SIG_IGN)
    unraisable = sys.unraisablehook
    sys.unraisablehook = _quiet(unraisable)
    try:
        yield
    finally:
        if _ours():
            _set(_leave)
        else:
            sys.unraisablehook = unraisable
            _restore(before)


@contextmanager
def gentle_stop() -> Iterator[Callable[[], bool]]:
    """The first signal asks the work to end after the batch that it is at; a second one ends the program."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True
        _restore(before)

    before = _set(ask)
    try:
        yield lambda: asked
    finally:
        _restore(before)


def _set(handler: Any) -> dict[int, Any]:
    """Have all of these signals answered so, but for those that somebody (nohup) had ignored; gives what was before."""
    before: dict[int, Any] = {}
    if threading.current_thread() is not threading.main_thread():
        return before
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
            before[number] = signal.signal(number, handler)
    return before


def _restore(before: dict[int, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _came  # noqa: PLW0603 - signals belong to the whole process
    importing = _importing(frame)
    if importing and number == signal.SIGINT and _starved():
        _say(b"fairbits: there is not enough memory (no thread can be started); close other programs, or raise limits.")
        os._exit(FAILED)
    if _came or importing:
        _leave(number, frame)
    _came = _ours()
    raise KeyboardInterrupt


def _leave(*_: object) -> NoReturn:
    """End here and now, with one line; a cursor that a progress line had hidden is shown again."""
    try:
        _say(b"fairbits: interrupted.")
    finally:
        os._exit(INTERRUPTED)


def _say(line: bytes) -> None:
    os.write(2, (b"\x1b[?25h\n" if os.isatty(2) else b"") + line + b"\n")


def _starved() -> bool:
    """Whether no thread can be started: OpenBLAS interrupts its own process then, as if somebody had pressed Ctrl-C."""
    probe = threading.Thread(target=int)
    try:
        probe.start()
    except RuntimeError:
        return True
    probe.join()
    return False


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _ours() -> bool:
    """Whether this process is the command, and not a test or a notebook that calls it."""
    from fairbits.cli import main

    return getattr(sys.modules.get("__main__"), "main", None) is main


def _quiet(before: Callable[[Any], object]) -> Callable[[Any], object]:
    """An interrupt that struck where none can be raised (in a callback) is not shown; it ends the process."""

    def hook(unraisable: Any) -> object:
        if unraisable.exc_type is KeyboardInterrupt and _ours():
            _leave()
        return before(unraisable)

    return hook
