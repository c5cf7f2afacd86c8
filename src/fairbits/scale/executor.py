"""Who does the work, and what workers are given: once what all shards share, then shards, which are pure data.

``carry_out`` does them in this process, or has an executor do them, in processes of this machine or on a Ray cluster:
it distributes them, collects outcomes and has lost ones done again. A subject goes to another process as it is where
it can be pickled, else as the place to load it from (`Portable`).
"""

from __future__ import annotations

import errno
import os
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Self, Unpack

import cloudpickle

from fairbits.data import load_subject
from fairbits.domain import GrantOptions
from fairbits.errors import ModelError, UsageError
from fairbits.options import ExecutorOptions as ExecutorOptions  # noqa: PLC0414 - exported from here, too
from fairbits.store import WriteError
from fairbits.subject import Subject, differences
from fairbits.text import joined

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Job:
    """What workers do with shards: prepare once with what all of them share, then perform one after the other.

    Whoever performs is told the shard, and asks the last argument whether to end early.
    """

    prepare: Callable[[Any], Any]
    perform: Callable[[Any, Any, Callable[[], bool]], Any]
    shared: Any


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a shard was not done."""

    kind: str
    words: str
    error: BaseException | None = None

    #: What trying again cannot mend, once it has been tried often enough: other shards would meet it too.
    EVERYWHERE: ClassVar[tuple[str, ...]] = ("disk", "head")


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What became of a shard."""

    number: int
    result: Any = None
    fault: Fault | None = None


class Executor(ABC):
    """Does shards, at most ``slots`` at a time. A context manager: workers are ready inside, and gone afterwards."""

    name: ClassVar[str]
    slots: int

    @abstractmethod
    def submit(self, number: int, shard: Any) -> None:
        """Have a shard done; there must be a free slot.

        Parameters
        ----------
        number
            Number of the shard.
        shard
            Pure data that tells a worker what to do.
        """

    @abstractmethod
    def collect(self, seconds: float) -> list[TaskOutcome]:
        """Outcomes of shards that have ended.

        Parameters
        ----------
        seconds
            How long to wait for the first result, at most.

        Returns
        -------
        list[TaskOutcome]
            Outcomes, in no particular order.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ask the shards that are being done to end early."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """End all workers."""


def fault_of(error: BaseException) -> Fault:
    """The kind of fault that an exception of a shard is."""
    words = " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(": ")
    if isinstance(error, MemoryError):
        return Fault("memory", "it ran out of memory", error)
    if isinstance(error, OSError | WriteError) and error.errno in _FULL:
        return Fault("disk", f"no space was left ({os.strerror(error.errno or 0)})", error)
    return Fault("connection" if isinstance(error, ConnectionError) else "error", words, error)


#: How often a shard is tried again.
RETRIES = 3
#: Seconds before a shard is tried again, by how often it has failed; one whose worker was killed need not wait.
PAUSES = (0.5, 2.0, 5.0)
#: Seconds between two looks at the clock.
TICK = 0.25

Shards = Iterable[tuple[int, Any]]


@dataclass(slots=True)
class Outcomes:
    """What became of all shards."""

    results: dict[int, Any] = field(default_factory=dict)
    lost: dict[int, Fault] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """What a coordinator hears while shards are done: who does them, what was done, what failed, and the time."""

    started: Callable[[str, int], None] = lambda *_: None
    done: Callable[[int, Any], None] = lambda *_: None
    fault: Callable[[int, int, Fault], None] = lambda *_: None
    tick: Callable[[], None] = lambda: None
    stop: Callable[[], bool] = lambda: False


def carry_out(
    executor_options: ExecutorOptions,
    job: Job,
    shards: Shards,
    listener: Listener | None = None,
    *,
    pack: Callable[[Any], Any] = lambda shard: shard,
) -> Outcomes:
    """Have all shards done.

    In this process they are done one after the other, and what goes wrong is raised as it is. Elsewhere, a shard that
    fails is tried again, three times at most, and the others go on meanwhile; what is wrong with the request itself is
    raised at once, and a full disk ends the run when trying again has not helped.
    """
    listener = listener or Listener()
    if not executor_options.elsewhere:
        return _in_this_process(job, shards, listener)
    with open_executor(executor_options, job) as executor:
        listener.started(executor.name, executor.slots)
        return _Carrying(executor, shards, pack, listener).do()


def _in_this_process(job: Job, shards: Shards, listener: Listener) -> Outcomes:
    carried, state = Outcomes(), job.prepare(job.shared)
    listener.started("in-process", 1)
    for number, shard in shards:
        if listener.stop():
            carried.stopped = True
            break
        carried.results[number] = job.perform(state, shard, listener.stop)
        listener.done(number, carried.results[number])
    return carried


@dataclass(slots=True)
class _Try:
    number: int
    shard: Any
    failed: int = 0
    not_before: float = 0.0


class _Carrying:
    def __init__(self, executor: Executor, shards: Shards, pack: Callable[[Any], Any], listener: Listener):
        self.executor, self.pack, self.listener = executor, pack, listener
        self.source = iter(shards)
        self.running: dict[int, _Try] = {}
        self.again: list[_Try] = []
        self.carried = Outcomes()
        self.ending = False

    def do(self) -> Outcomes:
        while True:
            if not self.carried.stopped and self.listener.stop():
                self.carried.stopped = self.ending = True
                self.executor.stop()
            if self.ending:
                self.again.clear()
            while not self.ending and len(self.running) < self.executor.slots and (task := self._next()) is not None:
                self.running[task.number] = task
                self.executor.submit(task.number, self.pack(task.shard))
            if self.running:
                for outcome in self.executor.collect(TICK):
                    self._take(outcome)
            elif self.again:  # what is to be tried again has to wait
                time.sleep(TICK)
            else:
                return self.carried
            self.listener.tick()

    def _next(self) -> _Try | None:
        ready = next((task for task in self.again if task.not_before <= time.monotonic()), None)
        if ready is not None:
            self.again.remove(ready)
            return ready
        return next((_Try(number, shard) for number, shard in self.source), None)

    def _take(self, outcome: TaskOutcome) -> None:
        task = self.running.pop(outcome.number)
        if outcome.fault is None:
            self.carried.results[task.number] = outcome.result
            self.listener.done(task.number, outcome.result)
        elif not self.carried.stopped:  # who was asked to stop may end in any way
            self._fail(task, outcome.fault)

    def _fail(self, task: _Try, fault: Fault) -> None:
        if isinstance(fault.error, UsageError):  # it lies in what was asked for: no other try could go better
            raise fault.error
        task.failed += 1
        self.listener.fault(task.number, task.failed, fault)
        if task.failed <= RETRIES:
            pause = 0.0 if fault.kind in ("killed", "node") else PAUSES[task.failed - 1]
            task.not_before = time.monotonic() + pause
            self.again.append(task)
            return
        self.carried.lost[task.number] = fault
        self.ending = self.ending or fault.kind in Fault.EVERYWHERE


@dataclass(frozen=True, slots=True)
class Portable:
    """What a worker needs to have the subject of its coordinator, and no other; make one with ``of``."""

    name: str
    identity: dict[str, Any]
    content: bytes | None
    source: str | None
    protected: tuple[str, ...]
    grants: GrantOptions = field(default_factory=GrantOptions)
    repeats: int = 1
    where: str | None = None

    @classmethod
    def of(cls, subject: Subject, **grants: Unpack[GrantOptions]) -> Portable:
        """Pack a subject for another process."""
        content: bytes | None = None
        try:
            content = cloudpickle.dumps(subject)  # takes classes and functions of a notebook along
        except Exception as error:  # noqa: BLE001 - every framework has its own way of saying that it cannot be pickled
            if subject.source is None:
                raise ModelError(
                    f"the model of {subject.name!r} cannot be sent to other processes ({error}); give it as a file "
                    f"in a subject.toml, which workers can open, or leave the workers out."
                ) from None
        return cls(
            name=subject.name,
            identity=subject.identity.document(),
            content=content,
            source=subject.source,
            protected=tuple(subject.schema.protected),
            grants=grants,
            repeats=subject.repeats,
            where=subject.where,
        )

    def open(self) -> Subject:
        """The subject, in whatever process this is."""
        if self.content is not None:
            subject: Subject = pickle.loads(self.content)  # noqa: S301 - packed by our own coordinator
            return subject
        subject = load_subject(str(self.source), **self.grants).with_protected(self.protected)
        subject = subject.within(self.where).with_repeats(self.repeats)
        apart = differences(self.identity, subject.identity)
        if apart:
            raise ModelError(
                f"subject {self.name!r} is not the same where the worker runs ({self.source!r}): "
                f"{joined(apart)}; give all machines the same model and table."
            )
        return subject


def open_executor(executor_options: ExecutorOptions, job: Job) -> Executor:
    """An executor for a job, to be used as a context manager."""
    threads = executor_options.each or 1
    if executor_options.ray is not None:
        from fairbits.scale.cluster import Ray

        return Ray(job, address=executor_options.ray, workers=executor_options.workers, threads=threads)
    from fairbits.scale.processes import Processes

    return Processes(job, workers=executor_options.workers or 1, threads=threads)
