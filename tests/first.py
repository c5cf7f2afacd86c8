"""On a new checkout one worker compiles what the tests import, while the others wait.

They begin at the same time and import the same, so that each would compile all of it: 12 s of CPU each. Another
worker starts the process that imports the frameworks for all of them, see nurseries.py.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from filelock import BaseFileLock, FileLock

from . import nurseries

#: Of the tests that are collected last: where it is compiled, so is everything.
LAST = "test_words.*-pytest-*.pyc"


def first_of_all() -> BaseFileLock | None:
    """Wait where another worker compiles; who is to do so gets the lock that the others wait for."""
    if any((Path(__file__).parent / "__pycache__").glob(LAST)):
        return None
    lock = FileLock(Path(tempfile.gettempdir()) / f"fairbits-tests-{os.environ['PYTEST_XDIST_TESTRUNUID']}.lock")
    if os.environ["PYTEST_XDIST_WORKER"] == "gw0":
        lock.acquire()
        return lock
    if os.environ["PYTEST_XDIST_WORKER"] == "gw1" and sys.platform == "linux":
        nurseries.connected().close()
    until = time.monotonic() + 10
    while not Path(lock.lock_file).exists() and time.monotonic() < until:  # the first is not there yet
        time.sleep(0.01)
    lock.acquire()
    give_back(lock)
    return None


def give_back(lock: BaseFileLock) -> None:
    """Everything is compiled; who was waiting goes on, and nothing is left behind."""
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
