"""Threads that share work: everything is done once, errors come out, nobody waits for nobody."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import fairbits
from fairbits.engine.threads import _granted, share
from fairbits.errors import OptionError


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_every_start_is_taken_once(threads: int | None) -> None:
    taken: list[int] = []
    share(taken.append, range(0, 1000, 10), threads)
    assert sorted(taken) == list(range(0, 1000, 10))


def test_the_earliest_failure_is_the_one_that_is_raised() -> None:
    both = threading.Barrier(2)

    def fail(start: int) -> None:
        both.wait(10)
        raise OptionError(f"start {start}")

    with pytest.raises(OptionError, match="start 0"):
        share(fail, range(2), 2)


def test_work_within_work_does_not_wait_for_itself() -> None:
    done: list[int] = []
    share(lambda outer: share(lambda inner: done.append(outer + inner), range(10), 2), range(0, 100, 10), 2)
    assert sorted(done) == list(range(100))


def test_no_threads_are_refused() -> None:
    with pytest.raises(OptionError, match="threads must be 1 or more, but got 0"):
        share(print, range(3), 0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are bound to cores on Linux")
def test_threads_are_as_many_as_the_process_may_use() -> None:
    """Whoever binds a process to one core (`taskset`, a batch system) means it."""
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    code += "from fairbits.engine import thread_count; print(thread_count(None))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, math.inf),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ({}, math.inf),
    ],
)
def test_a_container_grants_a_part_of_the_machine(files: dict[str, str], granted: float, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert _granted(tmp_path) == granted


def test_nobody_counts_the_cores_of_the_machine() -> None:
    """Cores are asked for in one place; the emergency limit of a child process may be too long."""
    asking = {
        path.name for path in Path(fairbits.__file__).parent.rglob("*.py") if "cpu_count(" in path.read_text("utf-8")
    }
    assert asking == {"threads.py", "sandbox.py"}
