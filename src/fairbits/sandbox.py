"""A child process in which a stranger's file may loop, allocate, exit or crash without taking fairbits along.

It contains accidents and hostile *data*: a child that is ended by a signal, by a time limit or by a memory limit
becomes one sentence. It is no prison for hostile *code*, which could do as the user may: code runs only where it is
trusted.

A nursery process imports what the job needs, forks a child for every job, and ends when it is no longer needed. The
process that asks imports the same packages meanwhile, and only then lets the child begin: so its clock and its memory
are watched from the first instant.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from fairbits import errors
from fairbits.errors import FairbitsError

#: Tells the job's progress to the parent: facts that count even if the child does not end well.
Notify = Callable[..., None]
#: Jobs are named, not sent: the child imports them from fairbits itself.
Job = Callable[[Any, Notify], None]

#: Seconds for starting Python and importing what the job needs, on a busy machine.
_START = 120.0
#: How often the parent looks at the child's memory.
_TICK = 0.02
#: So many times its seconds a job may take by the clock where others hold the processors: time in which it could have
#: run, had there been one for it, is not counted against it.
_PATIENCE = 5
#: Address space beyond the memory limit that threads and libraries reserve without using it.
_RESERVE = 2 << 30
_MEGABYTE = 1 << 20
#: What a library says when it gets no memory.
_NO_MEMORY = re.compile(r"memory|bad_?alloc|allocat", re.IGNORECASE)
#: Bytes of a page of memory, and ticks of a second, in which the system counts; not every system tells.
_PAGE, _TICKS = (os.sysconf(name) if hasattr(os, "sysconf") else 1 for name in ("SC_PAGE_SIZE", "SC_CLK_TCK"))
_GO = b"g"
_inside = False


@dataclass(frozen=True, slots=True)
class ChildOutcome:
    """How a child ended. ``fault`` is empty where all went well, else what happened, to follow "it"."""

    fault: str = ""
    error: FairbitsError | None = None
    known: dict[str, Any] = field(default_factory=dict)


def inside() -> bool:
    """Whether this process is such a child, where nothing needs to be tried out first."""
    return _inside


def out_of_memory(text: str) -> bool:
    """Whether a message of a library says that memory ran out."""
    return _NO_MEMORY.search(text) is not None


def try_out(job: str, given: Any, *, seconds: float, memory: int, needs: tuple[str, ...] = ()) -> ChildOutcome:
    """Run a job in a child process and say how it ended."""
    request = pickle.dumps((job, given, memory, seconds, os.getcwd(), list(sys.path)))
    with contextlib.closing(_Nursery(needs)) as nursery:
        return nursery.run(request, seconds, memory)


class _Nursery:
    """The parent's side: a process that has imported what is needed, and forks a child for every job."""

    def __init__(self, needs: tuple[str, ...]):
        self.needs = needs
        paths = [str(Path(__file__).resolve().parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        # -P: a file called numpy.py in the current folder is not imported.
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
            [sys.executable, "-P", "-c", "from fairbits.sandbox import nursery; nursery()", *needs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self._received: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def run(self, request: bytes, seconds: float, memory: int) -> ChildOutcome:
        """Do one job in the child process, within its time and memory."""
        self._send(len(request).to_bytes(8, "big") + request)
        for package in self.needs:  # while the child does the same
            with contextlib.suppress(ImportError):
                importlib.import_module(package)
        known: dict[str, Any] = {}
        child, began, fault = None, time.monotonic(), ""
        for facts in self._lines():
            known |= facts
            if "pid" in facts and child is None:
                child = _Child(int(facts["pid"]), seconds, memory)
                self._send(_GO)
            if "ended" in facts:
                break
            if not fault:
                if child is not None:
                    fault = child.beyond(known)
                elif time.monotonic() - began > _START:
                    fault = f"does not begin within {_START:g} s"
                if fault:
                    _kill(child.pid if child else self.process.pid)
        else:
            known.setdefault("ended", self.process.wait())
        if child:
            _kill(child.pid)  # whatever it left behind
        return ChildOutcome(fault, known=known) if fault else _ending(int(known["ended"]), known, memory)

    def close(self) -> None:
        """End it, and whatever it started."""
        _kill(self.process.pid)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _send(self, content: bytes) -> None:
        assert self.process.stdin is not None  # noqa: S101 - opened above
        with contextlib.suppress(BrokenPipeError):  # a process that has died is met when it is listened to
            self.process.stdin.write(content)
            self.process.stdin.flush()

    def _listen(self) -> None:
        """In a thread, because not every system can wait for a pipe and a clock at once."""
        assert self.process.stdout is not None  # noqa: S101 - opened above
        with contextlib.suppress(ValueError, OSError):  # closed while it waits
            for line in self.process.stdout:
                self._received.put(line)
        self._received.put(b"")

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Facts that the child sends, line by line, and an empty dictionary at every look at the clock."""
        while True:
            try:
                line = self._received.get(timeout=_TICK)
            except queue.Empty:
                yield {}
                continue
            if not line:
                return
            facts = json.loads(line)
            yield facts if isinstance(facts, dict) else {}


class _Child:
    """A child at work, as the parent sees it: from the instant in which it is let go."""

    def __init__(self, pid: int, seconds: float, memory: int):
        self.pid, self.seconds, self.memory = pid, seconds, memory
        self.until, self.max_bytes = time.monotonic() + seconds, _resident(pid) + memory
        self.waited, self.worked = _waited(pid), _worked(pid)

    def beyond(self, known: dict[str, Any]) -> str:
        """What it has too much of, which becomes known; nothing where all is well."""
        if _resident(self.pid) > self.max_bytes:
            known["memory"] = True
            return _too_much(self.memory)
        late = time.monotonic() - self.until
        if late > 0 and not self._may_wait(late):
            known["time"] = True
            return f"does not end within {self.seconds:g} s"
        return ""

    def _may_wait(self, late: float) -> bool:
        """Whether it is late only because others hold the processors: it had less of them than its seconds."""
        waited = min(_waited(self.pid) - self.waited, (_PATIENCE - 1) * self.seconds)
        return late < waited and _worked(self.pid) - self.worked < self.seconds


def nursery() -> None:
    """The other side: import what is needed, then a child for every request until there are no more."""
    global _inside  # noqa: PLW0603 - a fact about this process
    _inside = True
    reply = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for package in sys.argv[1:]:
        with contextlib.suppress(ImportError):  # the job says what is missing
            importlib.import_module(package)

    def notify(**facts: Any) -> None:
        os.write(reply, (json.dumps(facts) + "\n").encode())

    while size := _read(8):
        request = pickle.loads(_read(int.from_bytes(size, "big")))  # noqa: S301 - written by our own parent
        child = os.fork() if hasattr(os, "fork") else 0
        if not child:
            _child(request, notify)
        _, status = os.waitpid(child, 0)
        notify(ended=os.waitstatus_to_exitcode(status))


def _read(size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = os.read(0, size - len(found))
        if not piece:
            return b""
        found += piece
    return found


def _child(request: Any, notify: Notify) -> NoReturn:
    job, given, memory, seconds, folder, paths = request
    me = os.getpid()

    if hasattr(os, "setsid"):
        with contextlib.suppress(OSError):  # it is the leader of a session already
            os.setsid()
    os.chdir(folder)
    sys.path[:] = list(dict.fromkeys([*sys.path, *paths]))
    module, _, name = job.partition(":")
    work: Job = getattr(importlib.import_module(module), name)
    notify(pid=me)
    if _read(1) != _GO:
        os._exit(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _limit(memory, seconds)
    try:
        work(given, notify)
        facts: dict[str, Any] = {"done": True}
    except FairbitsError as error:
        kind = next(one for one in type(error).__mro__ if one.__module__ == errors.__name__)  # others stay here
        facts = {"error": [kind.__name__, str(error.args[0])]}  # as written: its reader is the parent's
    except SystemExit as error:
        facts = {"exit": str(error.code)[:40]}
    except MemoryError:
        facts = {"memory": True}
    except RecursionError:
        facts = {"unexpected": "it is nested too deeply"}
    except BaseException as error:  # noqa: BLE001 - whatever a stranger's file brings about
        facts = {"unexpected": f"{type(error).__name__}: {error}"[:200]}
    if os.getpid() == me:  # and no copy of the child that goes on with its work
        notify(**facts)
    os._exit(0)


def _limit(memory: int, seconds: float) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # no such limits on this system: the parent still looks
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        longest = int((seconds + 1) * (os.cpu_count() or 1)) + 60  # ends it even where the parent was killed
        resource.setrlimit(resource.RLIMIT_CPU, (longest, longest))
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit = pages * resource.getpagesize() + memory + _RESERVE
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _ending(code: int, known: dict[str, Any], memory: int) -> ChildOutcome:
    name, text = known.get("error", ("", known.get("unexpected", "")))
    if "memory" in known or out_of_memory(text):
        return ChildOutcome(_too_much(memory), known=known | {"memory": True})
    if "error" in known:
        return ChildOutcome(error=getattr(errors, name)(text), known=known)
    fault = f"fails ({text})" if text else ""
    if "exit" in known:
        fault = f"asks Python to exit ({known['exit']})"
    elif not known.keys() & {"done", "unexpected"}:
        names = {-int(number): f"by signal {number.name}" for number in signal.Signals}
        fault = f"ends its process {names.get(code, f'by signal {-code}' if code < 0 else f'with exit code {code}')}"
    return ChildOutcome(fault, known=known)


def _too_much(memory: int) -> str:
    return f"takes more than {memory // _MEGABYTE:,} MB of memory"


def _counted(process: int, file: str, first: int, last: int) -> int:
    """Some of the numbers that the system keeps of a process, added up."""
    try:
        fields = Path(f"/proc/{process}/{file}").read_bytes().rpartition(b")")[2].split()
        return sum(int(one) for one in fields[first:last])
    except (OSError, ValueError):  # it has just ended, or this system tells it in another way
        return 0


def _resident(process: int) -> int:
    """Bytes of memory that a process takes."""
    return _counted(process, "statm", 1, 2) * _PAGE


def _waited(process: int) -> float:
    """Seconds in which a process could have run, had a processor been free for it."""
    return _counted(process, "schedstat", 1, 2) / 1e9


def _worked(process: int) -> float:
    """Seconds of processors that a process, its threads and its ended children have had."""
    return _counted(process, "stat", 11, 15) / _TICKS


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGTERM)
