"""Shards in processes of this machine.

Every worker is a pool of one process of its own: when a process dies, it is known which shard it was at, and nobody
else is disturbed. What all shards share goes to a process once, when it starts.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from typing import Any, Self

import cloudpickle

from fairbits.errors import FairbitsError
from fairbits.scale.executor import Executor, Fault, Job, TaskOutcome, fault_of

#: How often a worker may die while it starts, before that is taken for a fault of the installation.
STARTS = 3
KILLED = Fault("killed", "its worker process died (killed from outside, or by the system for its memory)")


class _Seat:
    """A place for one process, and what it is at."""

    def __init__(self) -> None:
        self.pool: ProcessPoolExecutor | None = None
        self.number = -1
        self.future: Future[Any] | None = None


class Processes(Executor):
    """A fixed number of spawned processes; one that dies is replaced."""

    name = "processes"

    def __init__(self, job: Job, *, workers: int, threads: int):
        self.slots = workers
        self._payload, self._threads = cloudpickle.dumps(job), threads
        self._context = multiprocessing.get_context("spawn")
        self._flag = self._context.RawValue("b", 0)  # without a lock, which a killed process could take with it
        self._seats = [_Seat() for _ in range(workers)]

    def __enter__(self) -> Self:
        """Start all processes at once, and wait until each has prepared itself."""
        try:
            for _ in range(STARTS):
                waiting = [seat for seat in self._seats if seat.pool is None]
                tries = [(seat, self._open(seat).submit(_ready)) for seat in waiting]
                died = [seat for seat, future in tries if not self._started(seat, future)]
                if not died:
                    return self
            raise FairbitsError(
                "worker processes die while they start; in a script of your own, keep the work under "
                "`if __name__ == '__main__':`, and see that memory suffices for all workers."
            )
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def submit(self, number: int, shard: Any) -> None:
        """Give a shard to a free process."""
        seat = next(seat for seat in self._seats if seat.future is None)
        seat.number = number
        try:
            seat.future = (seat.pool or self._open(seat)).submit(_perform, shard)
        except BrokenProcessPool:  # it died while it had nothing to do
            seat.future = self._open(seat).submit(_perform, shard)

    def collect(self, seconds: float) -> list[TaskOutcome]:
        """Outcomes of shards that have ended; a process that died is replaced with the next shard."""
        busy = {seat.future: seat for seat in self._seats if seat.future is not None}
        ended, _ = wait(busy, timeout=seconds, return_when=FIRST_COMPLETED)
        return [self._outcome(busy[future], future) for future in ended]

    def stop(self) -> None:
        """Workers look at the flag before every batch."""
        self._flag.value = 1

    def __exit__(self, *_: object) -> None:
        """End the processes, whatever they are at."""
        for seat in self._seats:
            self._close(seat)

    def _outcome(self, seat: _Seat, future: Future[Any]) -> TaskOutcome:
        number, seat.future = seat.number, None
        try:
            return TaskOutcome(number, future.result())
        except Exception as error:  # noqa: BLE001 - judged by the coordinator
            dead = isinstance(error, BrokenProcessPool)
            if dead or isinstance(error, MemoryError):
                self._close(seat)  # what it still holds would be in the way of the next shard
            return TaskOutcome(number, fault=KILLED if dead else fault_of(error))

    def _started(self, seat: _Seat, future: Future[Any]) -> bool:
        try:
            future.result()
        except BrokenProcessPool:
            self._close(seat)
            return False
        return True

    def _open(self, seat: _Seat) -> ProcessPoolExecutor:
        self._close(seat)
        given = (self._payload, self._flag, self._threads)
        seat.pool = ProcessPoolExecutor(1, mp_context=self._context, initializer=_begin, initargs=given)
        return seat.pool

    def _close(self, seat: _Seat) -> None:
        if seat.pool is not None:
            for process in list((getattr(seat.pool, "_processes", None) or {}).values()):
                process.kill()  # a shard in progress would be waited for otherwise
            seat.pool.shutdown(wait=True, cancel_futures=True)
            seat.pool = None


_own: dict[str, Any] = {}


def _begin(payload: bytes, flag: Any, threads: int) -> None:
    """The first thing that a worker does. It must not fail: a pool would hide why."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # they may reach all processes of a group; the coordinator decides
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="fairbits-parent", daemon=True).start()
    _own.update(payload=payload, flag=flag, threads=threads)


def _end_with_parent() -> None:
    """A coordinator that was killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)


def _ready() -> None:
    """Read the job and prepare for it."""
    if "state" not in _own:
        from threadpoolctl import threadpool_limits

        job: Job = pickle.loads(_own["payload"])  # noqa: S301 - from our own coordinator
        _own["limits"] = threadpool_limits(_own["threads"])
        _own.update(job=job, state=job.prepare(job.shared))


def _perform(shard: Any) -> Any:
    _ready()
    return _own["job"].perform(_own["state"], shard, lambda: bool(_own["flag"].value))
