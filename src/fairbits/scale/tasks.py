"""What workers are given: once what all shards share, then shards, which are pure data. And what may go wrong."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Self

from fairbits.errors import UsageError
from fairbits.store import WriteError

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Signals:
    """How a shard that is being done learns of an early end, and reports progress."""

    stop: Callable[[], bool]
    progress: Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What workers do with shards.

    Both functions belong to a module, because they go to other processes by their names.
    """

    prepare: Callable[[Any], Any]
    perform: Callable[[Any, Any, Signals], Any]
    shared: Any


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a shard was not done."""

    kind: str
    words: str
    error: BaseException | None = None

    #: What trying again cannot mend, once it has been tried often enough: other shards would meet it too.
    EVERYWHERE: ClassVar[tuple[str, ...]] = ("disk", "head")

    @property
    def ours(self) -> bool:
        """Whether it lies in what was asked for, so that no other try could go better."""
        return isinstance(self.error, UsageError)


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
    if isinstance(error, ConnectionError):
        return Fault("connection", words, error)
    return Fault("error", words, error)
