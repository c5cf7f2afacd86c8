"""The coordinator: distributes shards, collects outcomes, and has lost shards done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from fairbits.scale.tasks import Executor, Fault, TaskOutcome

#: How often a shard is tried again.
RETRIES = 3
#: Seconds before a shard is tried again, by how often it has failed; one whose worker was killed need not wait.
PAUSES = (0.5, 2.0, 5.0)
#: Seconds between two looks at the clock.
TICK = 0.25

Shards = Iterable[tuple[int, Any]]


@dataclass(slots=True)
class Carried:
    """What became of all shards."""

    results: dict[int, Any] = field(default_factory=dict)
    lost: dict[int, Fault] = field(default_factory=dict)
    stopped: bool = False


def carry_out(
    executor: Executor,
    shards: Shards,
    *,
    pack: Callable[[Any], Any] = lambda shard: shard,
    on_done: Callable[[int, Any], None] | None = None,
    on_fault: Callable[[int, int, Fault], None] | None = None,
    on_tick: Callable[[], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Carried:
    """Have all shards done.

    A shard that fails is tried again, three times at most, and the others go on meanwhile. What is wrong with the
    request itself is raised at once; a full disk ends the run when trying again has not helped.
    """
    return _Carrying(executor, shards, pack, on_done, on_fault, on_tick, stop).do()


@dataclass(slots=True)
class _Try:
    number: int
    shard: Any
    failed: int = 0
    not_before: float = 0.0


class _Carrying:
    def __init__(
        self,
        executor: Executor,
        shards: Shards,
        pack: Callable[[Any], Any],
        on_done: Callable[[int, Any], None] | None,
        on_fault: Callable[[int, int, Fault], None] | None,
        on_tick: Callable[[], None] | None,
        stop: Callable[[], bool] | None,
    ):
        self.executor, self.pack = executor, pack
        self.source = iter(shards)
        self.on_done, self.on_fault, self.on_tick, self.stop = on_done, on_fault, on_tick, stop
        self.running: dict[int, _Try] = {}
        self.again: list[_Try] = []
        self.carried = Carried()
        self.ending = False

    def do(self) -> Carried:
        while True:
            self._look_for_stop()
            self._hand_out()
            if not self.running and not self.again:
                return self.carried
            for outcome in self.executor.collect(TICK) if self.running else self._wait():
                self._take(outcome)
            if self.on_tick is not None:
                self.on_tick()

    def _look_for_stop(self) -> None:
        if not self.carried.stopped and self.stop is not None and self.stop():
            self.carried.stopped = self.ending = True
            self.executor.stop()

    def _hand_out(self) -> None:
        if self.ending:
            self.again.clear()
            return
        while len(self.running) < self.executor.slots:
            task = self._next()
            if task is None:
                return
            self.running[task.number] = task
            self.executor.submit(task.number, self.pack(task.shard))

    def _next(self) -> _Try | None:
        now = time.monotonic()
        ready = next((task for task in self.again if task.not_before <= now), None)
        if ready is not None:
            self.again.remove(ready)
            return ready
        number, shard = next(self.source, (None, None))
        return None if number is None else _Try(number, shard)

    def _wait(self) -> list[TaskOutcome]:
        """Nothing runs, and what is to be tried again has to wait."""
        time.sleep(TICK)
        return []

    def _take(self, outcome: TaskOutcome) -> None:
        task = self.running.pop(outcome.number)
        if outcome.fault is None:
            self.carried.results[task.number] = outcome.result
            if self.on_done is not None:
                self.on_done(task.number, outcome.result)
        elif not self.carried.stopped:  # who was asked to stop may end in any way
            self._fail(task, outcome.fault)

    def _fail(self, task: _Try, fault: Fault) -> None:
        if fault.ours and fault.error is not None:
            raise fault.error
        task.failed += 1
        if self.on_fault is not None:
            self.on_fault(task.number, task.failed, fault)
        if task.failed <= RETRIES:
            pause = 0.0 if fault.kind in ("killed", "node") else PAUSES[task.failed - 1]
            task.not_before = time.monotonic() + pause
            self.again.append(task)
            return
        self.carried.lost[task.number] = fault
        self.ending = self.ending or fault.kind in Fault.EVERYWHERE
