"""Who has the tasks of a search done: what any runner offers, and the one that does them in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fairbits.search.attempt import Order, WorkerSetup, perform
from fairbits.search.settings import Settings
from fairbits.search.tally import Tally
from fairbits.store import TaskRecord


@dataclass(frozen=True, slots=True)
class Events:
    """Callbacks by which a runner reports what happens while tasks are being done."""

    started: Callable[[str, int], None]
    done: Callable[[int, TaskRecord, float], None]
    fault: Callable[[int, int, str, str], None]
    progress: Callable[[Tally], None]
    tick: Callable[[], None]
    elapsed: Callable[[], float]
    stop: Callable[[], bool] | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How the tasks ended."""

    stopped: bool = False
    lost: Mapping[int, str] = field(default_factory=dict)
    attempts: int = 1


class Runner(Protocol):
    """Has the tasks of a search done: in this process, by workers, or on a cluster."""

    @property
    def many(self) -> bool:
        """Whether several workers share a search that only the clock ends."""

    @property
    def threads(self) -> int | None:
        """Threads of each worker; None: all cores."""

    def manifest(self) -> dict[str, Any]:
        """What run.json says about it."""

    def carry_out(self, bench: WorkerSetup, settings: Settings, orders: Iterator[Order], events: Events) -> Ending:
        """Do all tasks of a search."""


@dataclass(frozen=True, slots=True)
class Here:
    """Tasks one after the other, in this process and its threads. What goes wrong is raised as it is."""

    threads: int | None = None
    many: bool = False

    def manifest(self) -> dict[str, Any]:
        """What run.json says about it: there are no workers."""
        return {"workers": None, "ray": None}

    def carry_out(self, bench: WorkerSetup, settings: Settings, orders: Iterator[Order], events: Events) -> Ending:  # noqa: ARG002
        """Do all tasks of a search, one after the other."""
        events.started("in-process", 1)
        for order in orders:
            record, replayed = perform(bench, order, stop=events.stop, progress=events.progress)
            events.done(order.task.number, record, replayed)
            if record.ended == "stopped":
                return Ending(stopped=True)
        return Ending()
