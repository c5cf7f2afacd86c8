"""Shards one after the other, in this process: no copies, no start, and whoever watches sees every batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from fairbits.scale.tasks import Executor, Job, Signals, TaskOutcome, fault_of


class InProcess(Executor):
    """Shards one after the other, in this process."""

    name = "in-process"
    slots = 1

    def __init__(self, job: Job, *, stop: Callable[[], bool], progress: Callable[[Any], None]):
        self._job = job
        self._signals = Signals(lambda: self._stopped or stop(), progress)
        self._stopped = False
        self._waiting: deque[tuple[int, Any]] = deque()
        self._state = job.prepare(job.shared)

    def submit(self, number: int, shard: Any) -> None:
        """Queue a shard; it is done by the next ``collect``."""
        self._waiting.append((number, shard))

    def collect(self, seconds: float) -> list[TaskOutcome]:  # noqa: ARG002 - a shard takes as long as it takes
        """Do the next shard in the queue."""
        if not self._waiting:
            return []
        number, shard = self._waiting.popleft()
        try:
            return [TaskOutcome(number, self._job.perform(self._state, shard, self._signals))]
        except Exception as error:  # noqa: BLE001 - judged by the coordinator, as that of any worker
            return [TaskOutcome(number, fault=fault_of(error))]

    def stop(self) -> None:
        """Ask the shard in progress to end, which it does before its next batch."""
        self._stopped = True

    def __exit__(self, *_: object) -> None:
        """Do nothing: no workers were started."""
