"""A search by many hands: cut, carried out, put together. It ends with the cases that one pair of hands would find."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

from fairbits.data import Subject
from fairbits.domain.limits import GrantOptions
from fairbits.errors import FairbitsError, OptionError
from fairbits.scale import shard_search
from fairbits.scale.coordinating import RETRIES, Carried, carry_out
from fairbits.scale.hands import Hands, open_executor
from fairbits.scale.job import Executor, Fault, Job
from fairbits.scale.merging import Merged, add_tally
from fairbits.scale.planning import Plan, Shard
from fairbits.scale.portable import Portable
from fairbits.search import Settings, Tally, search_subject
from fairbits.search.problem import Problem
from fairbits.search.running import Watch, fitted, manifest_of, problem_of
from fairbits.search.strategy import Strategy
from fairbits.search.summary import summarise
from fairbits.store import Run, ShardedWriter
from fairbits.store import folder as places
from fairbits.store.places import is_local, new_folder, place_of

#: Seconds after which run.json is written again, at least.
WRITE_EVERY = 2.0
#: Seconds between two looks whether the run is still there.
LOOK_EVERY = 0.5


def search(
    subject: Subject,
    settings: Settings,
    folder: str | Path | None = None,
    *,
    hands: Hands | None = None,
    shards: int | None = None,
    resume: bool = False,
    force: bool = False,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    **grants: Unpack[GrantOptions],
) -> Run:
    """Search with these hands, and give back the run.

    A budget in evaluations gives the same cases whoever does it. A search of one shard that nobody is to share, or
    that only the clock ends, is done as it stands, with threads.
    """
    hands = hands or Hands(threads=settings.threads)
    place = None if folder is None else place_of(folder)
    problem, strategy = problem_of(subject, settings)
    fingerprint, m = subject.fingerprint(), problem.evaluator.m
    plan = Plan.of(settings.budget, strategy, fingerprint=fingerprint, seed=settings.seed, m=m, shards=shards)
    if resume and place is not None:
        before = Run.open(place)
        plan, sharded = _as_before(before, plan, hands, shards), before.sharded
    else:
        several = strategy.rounds is None and plan.count is not None and plan.count > 1
        elsewhere = place is not None and not is_local(place)
        sharded = several or elsewhere or hands.many or shards is not None
    settings, strategy = fitted(settings, problem, plan.shard(0).budget, place if resume else None)
    if not sharded:
        return search_subject(subject, settings, place, resume=resume, force=force, watch=watch, stop=stop)
    manifest = manifest_of(subject, settings, problem.evaluator.epsilon) | hands.manifest()
    manifest |= {"shards": plan.count, "threads": hands.each}
    place = place or new_folder(subject.name, settings.strategy)
    packed = Portable.of(subject, **grants) if hands.elsewhere else subject
    writer = (
        ShardedWriter.resume(place, manifest)
        if resume
        else ShardedWriter.create(place, manifest, subject.schema, force=force)
    )
    return _Searching(problem, strategy, plan, hands, writer, settings, packed, watch, stop).do()


def _as_before(run: Run, plan: Plan, hands: Hands, shards: int | None) -> Plan:
    """A run that goes on keeps its shards; one that has none cannot get any."""
    if not run.sharded:
        if hands.many or shards is not None:
            raise OptionError(
                f"the run in {str(run.folder)!r} was not cut into shards, so workers cannot share it; go on without "
                f"--workers, --ray and --shards, or start a new run with them."
            )
        return plan
    count = run.manifest["shards"]
    if shards is not None and shards != count:
        has = "as many shards as the clock allows" if count is None else f"{count} shards"
        raise OptionError(f"the run in {str(run.folder)!r} has {has}, not {shards}; leave --shards out.")
    return Plan(plan.fingerprint, plan.strategy, plan.seed, plan.budget, count, plan.rounds)


class _Searching:
    """One sharded search in progress."""

    def __init__(
        self,
        problem: Problem,
        strategy: Strategy,
        plan: Plan,
        hands: Hands,
        writer: ShardedWriter,
        settings: Settings,
        subject: Subject | Portable,
        watch: Watch | None,
        stop: Callable[[], bool] | None,
    ):
        self.problem, self.strategy, self.plan, self.hands = problem, strategy, plan, hands
        self.writer, self.settings, self.watch, self.stop = writer, settings, watch, stop
        # Workers need not be in the folder that this process is in.
        folder = writer.folder.resolve() if is_local(writer.folder) else writer.folder
        shared = shard_search.Shared(subject, replace(settings, threads=hands.each), str(folder))
        self.job = Job(shard_search.prepare, shard_search.perform, shared)
        self.complete = {number: one for number, one in writer.complete.items() if not self._to_be_redone(one)}
        self.stopped: dict[int, dict[str, Any]] = {}
        self.tally = Tally()
        for record in self.complete.values():
            add_tally(self.tally, Tally(**record["tally"]))
        self.used = float(writer.facts.get("seconds") or 0.0)
        self.begin = self.written = self.looked = time.monotonic()
        self.started = False

    def _to_be_redone(self, record: dict[str, Any]) -> bool:
        """A shard that the clock cut short is done again where the search has a last shard."""
        return self.plan.count is not None and record["ended"] == "time"

    def do(self) -> Run:
        """Carry it out, and leave the run in a state that says how it ended."""
        try:
            carried = self._carry_out()
            status = self._status(carried)
            self._finish(status, self._summary(status))
            if carried.lost:
                raise self._lost(carried)
        except BaseException as error:
            if not self.started and self.writer.new:
                self.writer.withdraw()  # workers could not be had: no run was begun
            elif self.writer.status == "running":
                self._finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", None)
            raise
        return Run.open(self.writer.folder)

    def _finish(self, status: str, summary: dict[str, Any] | None) -> None:
        """What is on disk is safe whether or not its summary can be written; a status that says "finished" must be."""
        self.writer.note(seconds=self.elapsed)
        try:
            self.writer.finish(status, summary)
        except OSError as error:
            if status == "finished":
                raise FairbitsError(
                    f"cannot write the summary of {str(self.writer.folder)!r}: {error.strerror or error}; all cases "
                    f"are safe; mend that and go on with --resume."
                ) from error

    @property
    def elapsed(self) -> float:
        """Seconds of the search so far; the start of workers is not counted, and pauses of a resumed run are not."""
        return self.used + time.monotonic() - self.begin

    def _carry_out(self) -> Carried:
        if self.plan.count is not None and len(self.complete) == self.plan.count:
            return Carried()
        with open_executor(self.hands, self.job, stop=self.stop, tell=self._tell) as executor:
            self._start(executor)
            return carry_out(
                executor,
                self._open_shards(),
                pack=lambda shard: shard_search.Task(shard, self.elapsed),
                on_done=self._done,
                on_fault=self._fault,
                on_tick=self._tick,
                stop=self.stop,
            )

    def _start(self, executor: Executor) -> None:
        self.begin, self.started = time.monotonic(), True
        self.writer.note(executor=executor.name, workers=executor.slots, threads=self.hands.each)
        self.writer.note(shards=self.plan.count, done=len(self.complete))
        self.writer.write("running")

    def _open_shards(self) -> Iterator[tuple[int, Shard]]:
        limit = self.settings.budget.seconds
        for shard in self.plan.shards():
            if limit is not None and self.elapsed >= limit:
                return
            if shard.number not in self.complete:
                yield shard.number, shard

    def _done(self, number: int, record: dict[str, Any]) -> None:
        if record["ended"] == "stopped":
            self.stopped[number] = record
        else:
            self.complete[number] = self.writer.complete[number] = record
        add_tally(self.tally, Tally(**record["tally"]))
        self.writer.note(done=len(self.complete), seconds=self.elapsed)

    def _fault(self, number: int, failed: int, fault: Fault) -> None:
        places.check_present(self.writer.folder)  # no further try could mend that
        self.writer.note({"shard": number, "attempt": failed, "kind": fault.kind, "what": fault.words})
        self._write()

    def _tell(self, tally: Tally) -> None:
        """Of the shard that is being done in this process."""
        self._look()
        if self.watch is not None:
            shown = Tally(**asdict(self.tally))
            add_tally(shown, tally)
            self.watch(self._with_goal(shown), self.elapsed)

    def _look(self) -> None:
        """Notice within seconds that the folder is gone: workers would try again and again."""
        if time.monotonic() - self.looked >= LOOK_EVERY:
            self.looked = time.monotonic()
            places.check_present(self.writer.folder)

    def _tick(self) -> None:
        self._look()
        if self.watch is not None:
            self.watch(self._with_goal(self.tally), self.elapsed)
        if time.monotonic() - self.written >= WRITE_EVERY:
            self._write()

    def _with_goal(self, tally: Tally) -> Tally:
        tally.goal = self.strategy.people
        return tally

    def _write(self) -> None:
        """Bring run.json up to date; a full disk is noticed by the shards, and must not end the coordinator."""
        self.written = time.monotonic()
        try:
            self.writer.write("running")
        except OSError as error:
            self.writer.note(unwritten=str(error))

    def _status(self, carried: Carried) -> str:
        self.writer.note(done=len(self.complete), seconds=self.elapsed)
        if carried.stopped:
            return "interrupted"
        if carried.lost:
            return "failed"
        cut = any(record["ended"] == "time" for record in self.complete.values())
        missing = self.plan.count is not None and len(self.complete) < self.plan.count
        return "interrupted" if (cut or missing) and self.strategy.rounds is not None else "finished"

    def _summary(self, status: str) -> dict[str, Any]:
        run = Run.open(self.writer.folder)
        records = self.complete | self.stopped
        merged = Merged.of(self.problem, self.elapsed, (records[number] for number in sorted(records)), run)
        exact = self.strategy.rounds is not None and status == "finished"
        return summarise(run, merged, self.settings, exact_within=self.strategy.exact_within if exact else None)

    def _lost(self, carried: Carried) -> FairbitsError:
        number, fault = next(iter(carried.lost.items()))
        many = f"{len(carried.lost)} shards were given up, the first of them number {number}"
        return FairbitsError(
            f"{f'shard {number} was given up' if len(carried.lost) == 1 else many}, after {RETRIES + 1} tries: "
            f"{fault.words}; what the others found is in {str(self.writer.folder)!r}; mend that and go on with "
            f"--resume."
        )
