"""What child processes of tests do, in a module that they import quickly."""

from __future__ import annotations

import sys
import time
from typing import Any

from fairbits.errors import MissingDependencyError


def idle(given: Any, tell: Any) -> None:
    tell(heard=given)


def asleep(given: float, _tell: Any) -> None:
    time.sleep(given)


def busy(given: float, _tell: Any) -> None:
    until = time.process_time() + given
    while time.process_time() < until:
        pass


def imported(given: Any, tell: Any) -> None:
    """What a first call imports by itself."""
    from fairbits.models.guards import first_call

    before = set(sys.modules)
    first_call(given, tell)
    tell(imported=sorted({name.partition(".")[0] for name in set(sys.modules) - before}))


def lacking(given: str, _tell: Any) -> None:
    raise MissingDependencyError.of(given, given, "a table by name")
