"""Children that try out one file after another: the fuzzer's stand-in for ``fairbits.sandbox.try_out``.

The product forks a child for every file. That fork, of a process with a framework in it, is most of what an input
costs. Here a child serves many, under the same limits of memory and of time (CPU time, so that a busy machine is no
finding), and a child that dies or goes beyond them is replaced. What the job does and what its end means is the
product's own code.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pickle
import select
import subprocess
import sys
import time
from typing import Any

from fairbits import sandbox
from fairbits.errors import FairbitsError
from fairbits.sandbox import ChildOutcome

#: Jobs of one child: few enough that a leak of a library does not add up.
JOBS = 200
#: Exit code of a child that has served its jobs.
_SERVED = 113
#: Seconds by the wall for every second of CPU time: a job that sleeps is ended too.
_PATIENCE = 6
_START = 300.0


class Crew:
    """The parent's side: one nursery for each set of packages."""

    def __init__(self) -> None:
        self._nurseries: dict[tuple[str, ...], _Nursery] = {}
        #: Seconds of CPU and largest resident memory of children since ``reset``, and how many had to be replaced.
        self.seconds, self.resident, self.contained = 0.0, 0, 0

    def reset(self) -> None:
        """Begin to count for another input."""
        self.seconds, self.resident, self.contained = 0.0, 0, 0

    def try_out(
        self, job: str, given: Any, *, seconds: float, memory: int, needs: tuple[str, ...] = ()
    ) -> ChildOutcome:
        """As ``fairbits.sandbox.try_out``."""
        nursery = self._nurseries.get(needs)
        if nursery is None or nursery.process.poll() is not None:
            nursery = self._nurseries[needs] = _Nursery(needs)
        known: dict[str, Any] = {}
        fault = nursery.run(pickle.dumps((job, given, memory, os.getcwd())), seconds, memory, known)
        self.seconds += known.get("cpu", 0.0)
        self.resident = max(self.resident, known.get("peak", 0))
        self.contained += bool(fault) or "cpu" not in known
        return (
            ChildOutcome(fault, known=known) if fault else sandbox._ending(int(known["ended"]), known, memory)  # noqa: SLF001 - the product's own words
        )

    def close(self) -> None:
        """End all of them."""
        for nursery in self._nurseries.values():
            nursery.close()
        self._nurseries.clear()


class _Nursery:
    def __init__(self, needs: tuple[str, ...]):
        code = "from tests.fuzz.warm import nursery; nursery()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *needs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._held = b""

    def run(self, request: bytes, seconds: float, memory: int, known: dict[str, Any]) -> str:
        """One job: gives the fault by which it was ended, if it was."""
        assert self.process.stdin is not None
        self.process.stdin.write(len(request).to_bytes(8, "big") + request)
        self.process.stdin.flush()
        began, child, most, fault, before = time.monotonic(), 0, 0, "", 0.0
        while "ended" not in known:
            line = self._line(0.05)
            if line is not None:
                known |= json.loads(line)
            if "pid" in known and not child:
                child, began = int(known["pid"]), time.monotonic()
                most, before = sandbox._resident(child) + memory, _cpu(child)  # noqa: SLF001 - as the product counts it
                self.process.stdin.write(b"g")
                self.process.stdin.flush()
            if known.get("forked"):
                fault = "doubles its process (fork)"
            elif child and sandbox._resident(child) > most:  # noqa: SLF001 - as the product counts it
                known["memory"], fault = True, sandbox._too_much(memory)  # noqa: SLF001 - the product's own words
            elif child and (_cpu(child) - before > seconds or time.monotonic() - began > _PATIENCE * seconds):
                known["time"], fault = True, f"does not end within {seconds:g} s"
            elif time.monotonic() - began > _START:
                raise TimeoutError("a nursery does not start")
            if fault:
                sandbox._kill(child)  # noqa: SLF001 - as the product ends it
                self.close()  # with it whatever it may still have said
                break
        return fault

    def _line(self, seconds: float) -> bytes | None:
        assert self.process.stdout is not None
        pipe = self.process.stdout.fileno()
        if b"\n" not in self._held:
            if not select.select([pipe], [], [], seconds)[0]:
                return None
            piece = os.read(pipe, 1 << 16)
            if not piece:
                return json.dumps({"ended": self.process.wait()}).encode()
            self._held += piece
        line, mark, rest = self._held.partition(b"\n")
        if not mark:
            return None
        self._held = rest
        return line

    def close(self) -> None:
        sandbox._kill(self.process.pid)  # noqa: SLF001 - as the product ends it
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def nursery() -> None:
    """The other side: a process with everything imported, whose children serve."""
    sandbox._inside = True  # noqa: SLF001 - as in the product's nursery
    reply, requests = os.dup(1), os.dup(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 0)
    for package in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    gc.collect()
    gc.freeze()
    while True:
        child = os.fork()
        if not child:
            os.setsid()
            _serve(requests, reply)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return
        if code != _SERVED:
            os.write(reply, (json.dumps({"ended": code}) + "\n").encode())


def _serve(requests: int, reply: int) -> None:
    import resource

    me = os.getpid()

    def tell(**facts: Any) -> None:
        if os.getpid() != me:
            facts = {"forked": True}
        os.write(reply, (json.dumps(facts) + "\n").encode())
        if os.getpid() != me:
            os._exit(1)

    for _ in range(JOBS):
        size = _read(requests, 8)
        if not size:
            os._exit(0)
        job, given, memory, folder = pickle.loads(_read(requests, int.from_bytes(size, "big")))
        os.chdir(folder)
        module, _, name = job.partition(":")
        work = getattr(importlib.import_module(module), name)
        tell(pid=me)
        if _read(requests, 1) != b"g":
            os._exit(0)
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + memory + sandbox._RESERVE  # noqa: SLF001 - the product's own limit
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        reset_peak()
        began = time.process_time()
        facts = _outcome(work, given, tell)
        if os.getpid() != me:
            tell()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        tell(**facts, cpu=time.process_time() - began, peak=peak())
        tell(ended=0)
    os._exit(_SERVED)


def _outcome(work: sandbox.Job, given: Any, tell: sandbox.Tell) -> dict[str, Any]:
    """As the product's child tells it."""
    try:
        work(given, tell)
    except FairbitsError as error:
        return {"error": [type(error).__name__, str(error)]}
    except SystemExit as error:
        return {"exit": str(error.code)[:40]}
    except MemoryError:
        return {"memory": True}
    except RecursionError:
        return {"unexpected": "it is nested too deeply"}
    except BaseException as error:  # noqa: BLE001 - whatever a stranger's file brings about
        return {"unexpected": f"{type(error).__name__}: {error}"[:200]}
    return {"done": True}


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


def _cpu(process: int) -> float:
    with contextlib.suppress(OSError, IndexError, ValueError), open(f"/proc/{process}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _read(pipe: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = os.read(pipe, size - len(found))
        if not piece:
            return b""
        found += piece
    return found
