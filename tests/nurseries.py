"""Nurseries of the sandbox, forked from one process that has imported all frameworks, for all workers of a run.

Each worker would start seven of its own, and each would import for seconds. That a nursery starts from nothing is
tested where ``fresh_nurseries`` is asked for, by those that read tables, and by commands in processes of their own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from fairbits import sandbox

#: Imported before the first nursery is asked for. Whoever needs none of these starts in no time anyway.
HEAVY = ("skops.io", "sklearn.ensemble", "sklearn.pipeline", "pandas", "joblib", "onnx", "onnxruntime", "lightgbm")
HEAVY += ("xgboost", "catboost", "tokenizers", "torch", "torch.export", "keras", "h5py", "tests.checker")
OURS = ("fairbits.models", "fairbits.models.guards", "fairbits.models.outputs", "fairbits.models.registry")
OURS += ("fairbits.repair.writers.checker",)


#: As users have it: one for every file.
NURSERY = sandbox._Nursery


class Pool:
    """Nurseries that go on for the next job."""

    def __init__(self) -> None:
        self.idle: dict[tuple[int, tuple[str, ...]], sandbox._Nursery] = {}

    def take(self, needs: tuple[str, ...]) -> Kept:
        key = (os.getpid(), needs)
        nursery = self.idle.pop(key, None)
        if nursery is None or nursery.process.poll() is not None:
            nursery = NURSERY(needs)
        return Kept(self, key, nursery)

    def close(self) -> None:
        for (process, _), nursery in self.idle.items():
            if process == os.getpid():
                nursery.close()


class Kept:
    """A nursery that goes back to its pool where its job came to an end."""

    def __init__(self, pool: Pool, key: tuple[int, tuple[str, ...]], nursery: sandbox._Nursery):
        self.pool, self.key, self.nursery, self.sound = pool, key, nursery, False

    def run(self, request: bytes, seconds: float, memory: int) -> sandbox.ChildOutcome:
        outcome = self.nursery.run(request, seconds, memory)
        self.sound = self.nursery.process.poll() is None
        return outcome

    def close(self) -> None:
        if self.sound and self.key not in self.pool.idle:
            self.pool.idle[self.key] = self.nursery
        else:
            self.nursery.close()


class Forked:
    """What the sandbox knows of a nursery: as much of a ``Popen`` as it uses."""

    def __init__(self, needs: Sequence[str], environment: Mapping[str, str]):
        (theirs, writing), (reading, ours) = os.pipe(), os.pipe()
        self._connection = connected()
        request = json.dumps([list(needs), dict(environment)]).encode()
        socket.send_fds(self._connection, [len(request).to_bytes(8, "big")], [theirs, ours])
        self._connection.sendall(request)
        os.close(theirs)
        os.close(ours)
        self.stdin, self.stdout = os.fdopen(writing, "wb"), os.fdopen(reading, "rb")
        self._said = self._connection.makefile()
        self.pid = int(self._said.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(self._said.readline() or -signal.SIGKILL)
            self._said.close()
            self._connection.close()
        return self.returncode


def started(command: Sequence[str], *, env: Mapping[str, str], **options: Any) -> Any:
    """Instead of ``subprocess.Popen`` in the sandbox: the packages that it needs follow the code."""
    needs = command[command.index("-c") + 2 :]
    return Forked(needs, env) if set(needs) & set(HEAVY) else subprocess.Popen(command, env=env, **options)


_stay: dict[int, socket.socket] = {}


def connected() -> socket.socket:
    """A connection to the process that forks, which is started by whoever comes first and ends with the last."""
    if os.getpid() not in _stay:
        _stay[os.getpid()] = _opened()
        _stay[os.getpid()].sendall(bytes(8))
    return _opened()


def leave() -> None:
    """This process asks for no more nurseries."""
    if os.getpid() in _stay:
        _stay.pop(os.getpid()).close()


def _opened() -> socket.socket:
    name = f"\0fairbits-tests-{os.environ.get('PYTEST_XDIST_TESTRUNUID') or os.getpid()}"
    while True:
        with socket.socket(socket.AF_UNIX) as listening, contextlib.suppress(OSError):  # somebody has the name already
            listening.bind(name)
            listening.listen(64)
            code = f"from tests.nurseries import serve; serve({listening.fileno()})"
            subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "KERAS_BACKEND": "torch"},
                pass_fds=[listening.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            ).returncode = 0  # it outlives this process where others need it: nobody waits for it
        found = socket.socket(socket.AF_UNIX)
        try:
            found.connect(name)
        except OSError:  # bound by somebody who does not listen yet
            found.close()
            time.sleep(0.01)
        else:
            return found


def serve(listening: int) -> None:
    """The process that forks: until everybody who asked has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for nurseries
    for package in (*HEAVY, *OURS):
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    gc.freeze()
    door, guests = socket.socket(fileno=listening), set[socket.socket]()
    while True:
        for ready in select.select([door, *guests], [], [])[0]:
            if ready is not door:
                guests.remove(ready)
                ready.close()
                if not guests:
                    return
                continue
            asking = door.accept()[0]
            size, pipes, _, _ = socket.recv_fds(asking, 8, 2)
            if not pipes:
                guests.add(asking)
                continue
            if not os.fork():
                for guest in (door, *guests):
                    guest.close()
                _foster(asking, int.from_bytes(size, "big"), pipes)
            for file in pipes:
                os.close(file)
            asking.close()


def _foster(asking: socket.socket, size: int, pipes: list[int]) -> NoReturn:
    """The parent of one nursery, which says how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    needs, environment = json.loads(asking.recv(size, socket.MSG_WAITALL))
    child = os.fork()
    if child:
        for file in pipes:
            os.close(file)
        status = os.waitpid(child, 0)[1]
        with contextlib.suppress(OSError):
            asking.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    os.setsid()
    asking.sendall(f"{os.getpid()}\n".encode())  # after it leads a session: it may be killed as one from now on
    asking.close()
    os.dup2(pipes[0], 0)
    os.dup2(pipes[1], 1)
    for file in pipes:
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *needs]
    sandbox.nursery()
    os._exit(0)
