"""The fuzzer's stand-in for ``fairbits.sandbox.try_out``: a job is done in this process, whose parent looks after it.

The product forks a child for every file, and that fork, of a process with a framework in it, is most of what an input
costs. Here the whole worker is such a child: its parent notices whether it dies or goes beyond the limits during a job,
which the product would have contained, or anywhere else, which is a finding. What the job does, its limits and what
its end means are the product's own code.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

from fairbits import sandbox
from fairbits.errors import FairbitsError
from fairbits.sandbox import ChildOutcome

#: Bytes of the note that says where a worker is.
_ROOM = 1024


class Note:
    """What a worker is at, in a file that outlives it."""

    def __init__(self, path: Path):
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.state: dict[str, Any] = {}

    def write(self, **facts: Any) -> None:
        """Add facts."""
        self.state |= facts
        os.pwrite(self._file, json.dumps(self.state).encode().ljust(_ROOM), 0)

    def read(self) -> dict[str, Any]:
        """All of them, also those of another process."""
        content = os.pread(self._file, _ROOM, 0)
        return dict(json.loads(content)) if content.strip() else {}


class Trial:
    """Jobs of the sandbox, done here; the note says when one begins and ends."""

    def __init__(self, note: Note):
        self._note = note

    def try_out(
        self, job: str, given: Any, *, seconds: float, memory: int, needs: tuple[str, ...] = ()
    ) -> ChildOutcome:
        """As ``fairbits.sandbox.try_out``."""
        for package in needs:
            with contextlib.suppress(ImportError):
                importlib.import_module(package)
        module, _, name = job.partition(":")
        work = getattr(importlib.import_module(module), name)
        before = _resident()
        self._note.write(trial=cpu() + seconds, memory=before + memory)
        _limit_space(memory)
        sandbox._inside = True
        try:
            known = _outcome(work, given)
        finally:
            sandbox._inside = False
            _limit_space(None)
            self._note.write(trial=0, memory=0)
        if peak() > before + memory:
            known["memory"] = True
        return sandbox._ending(0, known, memory)


def _outcome(work: sandbox.Job, given: Any) -> dict[str, Any]:
    """As the product's child tells it."""
    told: dict[str, Any] = {}
    try:
        work(given, lambda **facts: told.update(facts))
    except FairbitsError as error:
        return told | {"error": [type(error).__name__, str(error)]}
    except SystemExit as error:
        return told | {"exit": str(error.code)[:40]}
    except MemoryError:
        return told | {"memory": True}
    except RecursionError:
        return told | {"unexpected": "it is nested too deeply"}
    except BaseException as error:  # noqa: BLE001 - whatever a stranger's file brings about
        return told | {"unexpected": f"{type(error).__name__}: {error}"[:200]}
    return told | {"done": True}


def _limit_space(memory: int | None) -> None:
    if memory is None:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + memory + sandbox._RESERVE
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def cpu() -> float:
    """Seconds of CPU that this process and its children have taken."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def cpu_of(process: int) -> float:
    """Seconds of CPU that another process has taken."""
    return sandbox._worked(process)


def waited() -> float:
    """Seconds in which this process could have run, had the machine been free."""
    return sandbox._waited(os.getpid())


def resident_of(process: int) -> int:
    """Resident memory of another process in bytes."""
    return sandbox._resident(process)


def _resident() -> int:
    return resident_of(os.getpid())


def reset_peak() -> None:
    """Let the system count the largest resident memory of this process anew."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peak() -> int:
    """The largest resident memory of this process since then, in bytes."""
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0
