"""A search from its first task to its summary: on disk, reproducible, and able to go on after any end.

There is one path. A search is cut into tasks (``tasks``), a runner has them done (this process, one after the other,
unless ``fairbits.scale`` brings another), every task writes its cases and its record (``store.writer``), and here the
records become one summary. What it means to go on is decided in ``resume``.

Round r of seed s always proposes the same people: that is what lets a task be repeated, resumed and done anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fairbits.engine import Seen, keys_of, thread_count, work_time
from fairbits.errors import FairbitsError, OptionError
from fairbits.measure import Evaluator, check_measure, evaluator_of, noise_of
from fairbits.randomness import generator
from fairbits.search.budget import Budget, BudgetSpent, Stopped
from fairbits.search.oracle import Clock, Oracle, Tally
from fairbits.search.problem import Problem
from fairbits.search.registry import DEFAULT, STRATEGIES, check_able, check_own, make_strategy
from fairbits.search.resume import begin_again, is_open, kept_plan, notes_on
from fairbits.search.strategy import Strategy, people_in
from fairbits.search.summary import Totals, add_tally, summarise
from fairbits.search.tasks import Task, TaskPlan
from fairbits.store import (
    Layout,
    Run,
    RunWriter,
    TaskRecord,
    TaskWriter,
    check_present,
    check_same,
    find_doubles,
    is_local,
    keep_doubles,
    new_folder,
    place_of,
    read_records,
)
from fairbits.subject import Subject, check_identity

Watch = Callable[[Tally, float], None]

#: Seconds after which run.json is written again, at least.
WRITE_EVERY = 2.0
#: Seconds between two looks whether the run is still there.
LOOK_EVERY = 0.5
#: What part of a budget of time may go into preparing and summing up: a search that gets nothing would be of no use.
MAX_OVERHEAD = 0.7
#: What is kept for summing up: a part of the budget, and seconds at most.
SUMMING_UP, SUMMING_UP_SECONDS = 0.1, 1.0
#: A clock may be missed by this share of the budget, or by so many seconds; and what part of that a batch may take.
LATE, LATE_SECONDS, BATCHES = 0.05, 1.0, 8
#: People in the largest batch that strategies ask about, about: a model that is quick enough for it needs no cutting.
LARGEST_ASK = 4096
#: The same for our own kernels, whose speed a few people say little about.
NATIVE_ASK = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides which cases a search finds, and how long it may take.

    Parameters
    ----------
    budget : Budget
        When the search ends.
    strategy, options : str, mapping
        How it searches, and the strategy's own options.
    own : Strategy, optional
        A strategy of the caller's, in place of one that is known by its name: see :meth:`with_strategy`.
    seed : int
        Same seed, same search.
    epsilon, partition : float, str
        What counts as a different score.
    within, min_plausibility : int, float, optional
        How far from real rows, and how unusual, people may be.
    threads : int, optional
        Threads of this process, or of each worker; all cores by default.
    batch : int, optional
        People whom the model is asked about at a time. A search by the clock chooses it by the speed of the model.
    measure : str
        What ``climb`` and ``dice`` raise, and cases are ranked by: ``q_inf`` (k) or ``q_1``.
    """

    budget: Budget
    strategy: str = DEFAULT
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    epsilon: float | None = None
    partition: str = "constrained"
    within: int | None = None
    min_plausibility: float | None = None
    threads: int | None = None
    batch: int | None = None
    measure: str = "q_inf"
    own: Strategy | None = None

    def with_strategy(self, strategy: str | Strategy) -> Settings:
        """The same settings with another strategy.

        Parameters
        ----------
        strategy
            A name, or an object: its fields, where it is a dataclass, are its options.

        Returns
        -------
        Settings
            With the strategy's name and options as run.json will keep them.

        Raises
        ------
        OptionError
            If the object is no strategy, has the name of a built-in one, or options are given beside it.
        """
        if isinstance(strategy, str):
            return replace(self, strategy=strategy, own=None)
        check_own(strategy)
        if self.options:
            raise OptionError(f"strategy {strategy.name!r} is an object, which has its own options; leave them out.")
        options: dict[str, Any] = asdict(strategy) if is_dataclass(strategy) else {}
        return replace(self, strategy=strategy.name, options=options, own=strategy)

    def __post_init__(self) -> None:
        check_measure(self.measure)
        if self.seed < 0:
            raise OptionError(f"the seed is {self.seed}; it must be 0 or larger.")
        if self.batch is not None and self.batch < 1:
            raise OptionError(f"batch is {self.batch}; the model is asked about at least one person at a time.")


@dataclass(frozen=True, slots=True)
class Order:
    """A task that is handed out, and how many seconds of the run had passed by then."""

    task: Task
    elapsed: float


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker needs for all of its tasks: everything that is compiled, indexed and clustered once."""

    problem: Problem
    strategy: Strategy
    layout: Layout
    folder: Path
    buckets: int
    batch: int | None
    clock: Clock = work_time


@dataclass(frozen=True, slots=True)
class Events:
    """What a runner reports while tasks are being done, and whom it asks whether to stop."""

    started: Callable[[str, int], None]  # the name of the executor, and how many tasks it does at a time
    done: Callable[[int, TaskRecord, float], None]  # the number of a task, its record, and seconds spent repeating
    fault: Callable[[int, int, str, str], None]  # the number of a task, which attempt failed, the kind, and a sentence
    progress: Callable[[Tally], None]  # how far the task in this process is
    tick: Callable[[], None]  # now and then
    elapsed: Callable[[], float]  # seconds of the run so far
    stop: Callable[[], bool] | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How the tasks ended: whether a person stopped them, and which were given up, with the reason."""

    stopped: bool = False
    lost: Mapping[int, str] = field(default_factory=dict)
    attempts: int = 1


class Runner(Protocol):
    """Has tasks done."""

    @property
    def many(self) -> bool:
        """Whether several workers share a search that only the clock ends."""

    @property
    def threads(self) -> int | None:
        """Threads of each worker; None: all cores."""

    def manifest(self) -> dict[str, Any]:
        """What run.json says about it."""

    def carry_out(self, bench: WorkerSetup, settings: Settings, orders: Iterator[Order], events: Events) -> Ending:
        """Do all tasks of a search.

        Parameters
        ----------
        bench
            What was prepared for the tasks.
        settings
            Settings of the search.
        orders
            Tasks; drawn from whenever a worker is free.
        events
            Callbacks for progress, faults and the end.

        Returns
        -------
        Ending
            How it ended.
        """


@dataclass(frozen=True, slots=True)
class Here:
    """Tasks one after the other, in this process and its threads. What goes wrong is raised as it is."""

    threads: int | None = None
    many: bool = False

    def manifest(self) -> dict[str, Any]:
        """No workers."""
        return {"workers": None, "ray": None}

    def carry_out(self, bench: WorkerSetup, settings: Settings, orders: Iterator[Order], events: Events) -> Ending:  # noqa: ARG002
        """Do all tasks of a search, one after the other.

        Parameters
        ----------
        bench
            What was prepared for the tasks.
        settings
            Settings of the search.
        orders
            Tasks to do.
        events
            Callbacks for progress and the end.

        Returns
        -------
        Ending
            How it ended.
        """
        events.started("in-process", 1)
        for order in orders:
            record, replayed = perform(bench, order, stop=events.stop, progress=events.progress)
            events.done(order.task.number, record, replayed)
            if record.ended == "stopped":
                return Ending(stopped=True)
        return Ending()


def search_subject(
    subject: Subject,
    settings: Settings,
    folder: str | Path | None = None,
    *,
    tasks: int | None = None,
    runner: Runner | None = None,
    resume: bool = False,
    force: bool = False,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Clock = work_time,
    began: float | None = None,
) -> Run:
    """Search, keep everything on disk, and give back the run.

    Parameters
    ----------
    subject : Subject
        The model, its table and its schema.
    settings : Settings
        What to search for, how, and how long.
    folder : str or Path, optional
        Where the run goes; below ``runs`` by default.
    tasks : int, optional
        Into how many tasks the search is cut; by its budget by default.
    runner : Runner, optional
        Who does the tasks; this process by default.
    resume : bool
        Go on with the run in the folder (see ``fairbits.search.resume``).
    force : bool
        Replace a run in the folder.
    watch : callable, optional
        Called with the tally and the seconds, now and then.
    stop : callable, optional
        Asked before every batch whether to end early.
    clock : callable
        Gives seconds.
    began : float, optional
        What the clock showed when a budget of time began: preparing since then, and summing up, is taken from it, so
        that a command ends when it was to. By default the budget is for asking people alone.

    Returns
    -------
    Run
        The run as it is on disk now.

    Raises
    ------
    OptionError
        Where settings make no sense, or are not those of the run that is to go on.
    """
    place = None if folder is None else place_of(folder)
    runner = runner or Here(settings.threads)
    problem, strategy = problem_of(subject, settings)
    plan = TaskPlan.of(
        settings.budget, strategy, seed=settings.seed, m=problem.evaluator.m, tasks=tasks, shared=runner.many
    )
    before = Run.open(place) if resume and place is not None else None
    buckets = plan.buckets
    if before is not None:
        plan, buckets = kept_plan(before, plan, tasks), before.buckets
        settings = replace(settings, batch=before.manifest.get("batch"))
    settings, strategy = fitted(settings, problem, plan.task(0).budget, before)
    manifest = manifest_of(subject, settings, problem.evaluator) | runner.manifest()
    manifest |= {"shards": plan.count, "buckets": buckets, "threads": runner.threads}
    place = place or new_folder(subject.name, settings.strategy)
    if before is not None:
        check_same(before.manifest, manifest)  # first what somebody typed, then what it stands for
        check_identity(before.manifest, subject.identity, what=f"the run in {str(place)!r}")
        writer = RunWriter.resume(place, manifest)
    else:
        writer = RunWriter.create(place, manifest, subject.schema, force=force, people=subject.table.codes)
    return _Search(problem, strategy, plan, runner, writer, settings, buckets, watch, stop, clock, began).do()


def problem_of(subject: Subject, settings: Settings) -> tuple[Problem, Strategy]:
    """The problem and the strategy that settings ask for.

    Parameters
    ----------
    subject
        The model, its table and its schema.
    settings
        Settings of the search.

    Returns
    -------
    tuple[Problem, Strategy]
        The problem, and the strategy.

    Raises
    ------
    OptionError
        If settings make no sense for this subject.
    CapabilityError
        If the model lacks what the strategy needs.
    """
    evaluator = evaluator_of(subject, epsilon=settings.epsilon, partition=settings.partition, threads=settings.threads)
    problem = Problem(evaluator, subject.table, within=settings.within, min_plausibility=settings.min_plausibility)
    problem.measure = check_measure(settings.measure)
    return problem, _strategy(settings, problem)


def _strategy(settings: Settings, problem: Problem) -> Strategy:
    """The caller's own strategy, or the one of that name."""
    if settings.own is None:
        return make_strategy(settings.strategy, settings.options, problem)
    check_able(type(settings.own), problem)
    return settings.own


def fitted(
    settings: Settings, problem: Problem, budget: Budget, before: Run | None = None
) -> tuple[Settings, Strategy]:
    """Settings with the options that the strategy fits to a budget, and the strategy that they make.

    Parameters
    ----------
    settings
        As asked for; options that are given stay as they are.
    problem
        What is searched.
    budget
        Of one task: the whole search, or a part of it.
    before
        The run that goes on, if one does: it keeps the options that it began with.
    """
    kind, given = STRATEGIES.get(settings.strategy), settings.options
    if kind is None:  # an enumeration has nothing to fit, nor has an object with options of its own
        return settings, _strategy(settings, problem)
    if before is not None:
        kept = before.manifest["options"] if before.manifest["strategy"] == settings.strategy else {}
        given = {**{name: kept[name] for name in kept if name in kind.fits}, **given}
    m, native = problem.evaluator.m, problem.evaluator.native
    options = kind.fitted(given, people=people_in(budget, m=m, native=native), m=m)
    return replace(settings, options=options), make_strategy(settings.strategy, options, problem)


def manifest_of(subject: Subject, settings: Settings, evaluator: Evaluator) -> dict[str, Any]:
    """Settings and facts that run.json keeps about a search.

    Parameters
    ----------
    subject
        The model, its table and its schema.
    settings
        Settings of the search.
    evaluator
        The model, and how people are evaluated.

    Returns
    -------
    dict[str, Any]
        By name.
    """
    noise = noise_of(subject, evaluator)
    return {
        "subject": subject.name,
        "source": subject.source,
        "identity": subject.identity.document(),
        "repeats": subject.repeats,
        "noise": None if noise is None else noise.document(),
        "protected": list(subject.schema.protected),
        "strategy": settings.strategy,
        "options": dict(settings.options),
        **({} if settings.own is None else {"own_strategy": True}),
        "seed": settings.seed,
        "epsilon": evaluator.epsilon,
        "partition": settings.partition,
        "measure": settings.measure,
        "within": settings.within,
        "min_plausibility": settings.min_plausibility,
        "batch": settings.batch,
        "threads": settings.threads,
        "budget": asdict(settings.budget),
        "quality": None if subject.quality is None else subject.quality.figures(),
        "as_is": subject.as_is,
    }


def prepare(problem: Problem, strategy: Strategy) -> None:
    """Do everything that is done once, before the clock starts: compile, index, cluster.

    Parameters
    ----------
    problem
        What is searched: the valid domain, real people, and moves.
    strategy
        How it is searched.
    """
    someone = problem.rows[:1]
    problem.realism(someone)
    problem.evaluator.evaluate(someone)
    if problem.evaluator.has_gradients:
        problem.evaluator.gradients(someone, np.zeros(1, dtype=np.int64))
        problem.evaluator.foresight(someone, np.zeros(1, dtype=np.int64))
    if strategy.rounds is None:
        _ = problem.partitions
    strategy.prepare(problem)


def batch_for(problem: Problem, seconds: float | None) -> int | None:
    """Number of people to ask a slow model about at a time, so that a clock can end the search in time.

    It is chosen once, before the clock starts, and written down: a model's output can depend in its last bit on how
    many rows it gets, so a run that is made again must ask in the same portions.

    Parameters
    ----------
    problem
        What is searched: the valid domain, real people, and moves.
    seconds
        Budget of the search; None where no clock ends it.

    Returns
    -------
    int | None
        The number; None where all may be asked at once.
    """
    if seconds is None:
        return None
    allowed = max(LATE * seconds, LATE_SECONDS) / BATCHES
    problem.evaluator.evaluate(problem.rows[:1])  # compiles, connects
    people, each, tries = 1, float("inf"), 0
    while people <= min(256, len(problem.rows)):
        begin = time.perf_counter()
        problem.evaluator.evaluate(problem.rows[:people])
        took = time.perf_counter() - begin
        each = min(each, took / people)
        if took <= min(allowed / 4, 0.1):
            people *= 4
        elif tries:
            break
        else:
            tries += 1  # a machine that is busy with something else may be slow once
    fitting = int(allowed / max(each, 1e-9))
    enough = NATIVE_ASK if problem.evaluator.native else LARGEST_ASK
    return None if fitting >= enough else 1 << max(0, fitting.bit_length() - 1)


def perform(
    bench: WorkerSetup,
    order: Order,
    *,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[Tally], None] | None = None,
) -> tuple[TaskRecord, float]:
    """Do one task, or go on with what an earlier attempt at it left.

    Parameters
    ----------
    bench
        What was prepared for the tasks.
    order
        The task and its place in the run.
    stop
        Asked between batches; true ends the task early.
    progress
        Called with the counts so far.

    Returns
    -------
    tuple[TaskRecord, float]
        The record of the task, and the seconds spent on repeating.
    """
    problem, task = bench.problem, order.task
    record = read_records(bench.folder, task.number).get(task.number)
    done, tally, replay, budget = begin_again(task, record)
    with TaskWriter(
        bench.folder,
        bench.layout,
        task.number,
        offset=task.offset,
        buckets=bench.buckets,
        before=record,
        complete=problem.realism,
        in_step=thread_count(problem.evaluator.threads) == 1,
    ) as writer:
        oracle = Oracle(
            problem,
            budget,
            writer,
            seen=_seen_before(problem, writer),
            tally=tally,
            clock=bench.clock,
            used_seconds=order.elapsed,
            replay=replay,
            batch=bench.batch,
            watch=None if progress is None else lambda counted, _: progress(counted),
            stop=stop,
        )
        oracle.findings |= (record.state or {}).get("findings", {}) if record is not None else {}
        oracle.tally.goal = bench.strategy.people
        ended = _rounds(bench.strategy, oracle, task, writer, done)
        oracle.close_round()
        seconds = oracle.seconds
        found = writer.commit(
            ended,
            evaluations=oracle.tally.evaluations,
            seconds=seconds,
            tally=asdict(oracle.tally),
            findings=oracle.findings,
        )
    return found, oracle.replayed


def _seen_before(problem: Problem, writer: TaskWriter) -> Seen | None:
    """Whom an earlier attempt has kept; None where there was none."""
    if writer.before is None or not writer.before.rows:
        return None
    seen = Seen(capacity_hint=max(writer.before.rows * 2, 1_000_000))
    for codes in writer.stored_codes():
        seen.add(keys_of(codes, problem.person))
    return seen


def _rounds(strategy: Strategy, oracle: Oracle, task: Task, writer: TaskWriter, done: int) -> str:
    """Round after round; says what ended it: the strategy, its share of the budget, the clock, or a person."""
    try:
        for count, number in enumerate(task.rounds(done), done + 1):
            strategy.round(oracle, generator(task.seed, strategy.name, number), number)
            oracle.close_round()
            writer.checkpoint(
                {
                    "rounds": count,
                    "evaluations": oracle.tally.evaluations,
                    "seconds": oracle.seconds,
                    "tally": asdict(oracle.tally),
                    "findings": dict(oracle.findings),
                }
            )
    except Stopped:
        return "stopped"
    except BudgetSpent:
        seconds = task.budget.seconds
        return "time" if seconds is not None and oracle.seconds >= seconds else "share"
    return "rounds"


def _shortened(plan: TaskPlan, seconds: float) -> TaskPlan:
    """The plan without the time that went elsewhere; a part of it is left in any case."""
    limit = plan.budget.seconds
    if limit is None:
        return plan
    return replace(plan, budget=replace(plan.budget, seconds=max(limit - seconds, (1 - MAX_OVERHEAD) * limit)))


class _Search:
    """One search in progress."""

    def __init__(
        self,
        problem: Problem,
        strategy: Strategy,
        plan: TaskPlan,
        runner: Runner,
        writer: RunWriter,
        settings: Settings,
        buckets: int,
        watch: Watch | None,
        stop: Callable[[], bool] | None,
        clock: Clock,
        began: float | None,
    ):
        self.problem, self.strategy, self.runner = problem, strategy, runner
        self.plan = _shortened(plan, float(writer.facts.get("overhead") or 0.0))
        self.began = began if writer.new else None
        self.writer, self.settings, self.buckets = writer, settings, buckets
        self.watch, self.stop, self.clock = watch, stop, clock
        self.records = dict(writer.records)
        self.tally = Tally()
        for record in self.records.values():
            if not self._is_open(record.number):
                add_tally(self.tally, tally_of(record))
        self.used = float(writer.facts.get("seconds") or 0.0)
        self.begin = self.written = clock()
        self.looked = time.monotonic()
        self.slots = 1
        self.started = False
        self.notes: list[str] = []

    def _is_open(self, number: int) -> bool:
        if self.plan.budget.ends is not None and number >= len(self.plan.budget.ends):
            return False
        return is_open(self.plan.task(number), self.records.get(number), self.problem.evaluator.m)

    def do(self) -> Run:
        """Carry it out, and leave the run in a state that says how it ended."""
        try:
            self.notes = self._notes()
            ending = self._carry_out()
            status = self._status(ending)
            self._finish(status, self._summary(status))
            if ending.lost:
                raise self._lost(ending)
        except BaseException as error:
            if not self.started and self.writer.new:
                self.writer.withdraw()  # workers could not be had: no run was begun
            elif self.writer.status == "running":
                self._finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", None)
            raise
        return Run.open(self.writer.folder)

    @property
    def elapsed(self) -> float:
        """Seconds of the search so far; pauses, the start of workers and what is repeated are not counted."""
        return self.used + self.clock() - self.begin if self.started else self.used

    def _notes(self) -> list[str]:
        if self.writer.new or any(self._is_open(task.number) for task in self._known_tasks()):
            return []
        return notes_on(self.settings.budget, self.tally, self.used)

    def _known_tasks(self) -> Iterator[Task]:
        count = self.plan.count
        return self.plan.tasks() if count is not None else (self.plan.task(number) for number in self.records)

    def _carry_out(self) -> Ending:
        if self.plan.count is not None and not any(self._is_open(task.number) for task in self.plan.tasks()):
            self.started = True
            self.begin = self.clock()
            return Ending()
        prepare(self.problem, self.strategy)
        batch = self.settings.batch
        if batch is None and self.writer.new:
            batch = batch_for(self.problem, self.settings.budget.seconds)
            self.writer.amend(batch=batch)
            self.settings = replace(self.settings, batch=batch)
        # Workers need not be in the folder that this process is in.
        folder = self.writer.folder.resolve() if is_local(self.writer.folder) else self.writer.folder
        layout = Layout(self.problem.schema)
        bench = WorkerSetup(self.problem, self.strategy, layout, folder, self.buckets, batch, self.clock)
        events = Events(
            self._start, self._done, self._fault, self._progress, self._tick, lambda: self.elapsed, self.stop
        )
        return self.runner.carry_out(bench, self.settings, self._orders(), events)

    def _orders(self) -> Iterator[Order]:
        limit = self.plan.budget.seconds
        for task in self.plan.tasks():
            if limit is not None and self.elapsed >= limit:
                return
            if self._is_open(task.number):
                yield Order(task, self.elapsed)

    def _start(self, name: str, slots: int) -> None:
        self.begin, self.started, self.slots = self.clock(), True, slots
        limit = self.plan.budget.seconds
        if self.began is not None and limit is not None:
            after = min(SUMMING_UP * limit, SUMMING_UP_SECONDS)
            self.plan = _shortened(self.plan, self.begin - self.began + after)
            self.writer.note(overhead=limit - (self.plan.budget.seconds or 0.0))
        self.writer.note(executor=name, workers=slots, threads=self.runner.threads)
        self.writer.note(shards=self.plan.count, done=self._ended)
        self.writer.write("running")

    @property
    def _ended(self) -> int:
        return sum(record.ended is not None for record in self.records.values())

    def _done(self, number: int, record: TaskRecord, replayed: float) -> None:
        self.records[number] = self.writer.records[number] = record
        self.begin += replayed / self.slots
        add_tally(self.tally, tally_of(record))
        self.writer.note(done=self._ended, seconds=self.elapsed)

    def _look(self) -> None:
        """Notice within seconds that the folder is gone: workers would try again and again."""
        if time.monotonic() - self.looked >= LOOK_EVERY:
            self.looked = time.monotonic()
            check_present(self.writer.folder)

    def _fault(self, number: int, attempt: int, kind: str, words: str) -> None:
        check_present(self.writer.folder)  # no further try could mend that
        self.writer.note({"shard": number, "attempt": attempt, "kind": kind, "what": words})
        self._write()

    def _progress(self, tally: Tally) -> None:
        """Of the task that is being done in this process."""
        self._look()
        if self.watch is not None:
            shown = replace(self.tally)
            add_tally(shown, tally)
            self.watch(self._with_goal(shown), self.elapsed)
        if self.clock() - self.written >= WRITE_EVERY:
            self._write()

    def _tick(self) -> None:
        self._look()
        if self.watch is not None:
            self.watch(self._with_goal(self.tally), self.elapsed)
        if self.clock() - self.written >= WRITE_EVERY:
            self._write()

    def _with_goal(self, tally: Tally) -> Tally:
        tally.goal = self.strategy.people
        return tally

    def _write(self) -> None:
        """Bring run.json up to date; a full disk is noticed by the tasks, and must not end the coordinator."""
        self.written = self.clock()
        self.writer.note(seconds=self.elapsed)
        try:
            self.writer.write("running")
        except OSError as error:
            self.writer.note(unwritten=str(error))

    def _finish(self, status: str, summary: dict[str, Any] | None) -> None:
        """What is on disk is safe whether or not its summary can be written; a status that says "finished" must be."""
        self.writer.note(seconds=self._seconds)
        try:
            self.writer.finish(status, summary)
        except OSError as error:
            if status == "finished":
                raise FairbitsError(
                    f"cannot write the summary of {str(self.writer.folder)!r}: {error.strerror or error}; all cases "
                    f"are safe; mend that and go on with --resume."
                ) from error

    @property
    def _seconds(self) -> float:
        """When the last task ended, by the clock of the run."""
        return max((record.seconds for record in self.records.values()), default=self.used)

    def _status(self, ending: Ending) -> str:
        self.writer.note(done=self._ended)
        if ending.stopped:
            return "interrupted"
        if ending.lost:
            return "failed"
        whole = [record.ended == "rounds" for record in self.records.values()]
        finished = self.strategy.rounds is None or (all(whole) and len(whole) == self.plan.count)
        return "finished" if finished else "interrupted"

    def _summary(self, status: str) -> dict[str, Any]:
        run = Run.open(self.writer.folder)
        self._keep_doubles(run)
        records = [self.records[number] for number in sorted(self.records)]
        totals = Totals.of(self.problem, self._seconds, [(tally_of(one), one.findings) for one in records], run)
        exact = self.strategy.rounds is not None and status == "finished"
        summary = summarise(run, totals, self.settings, exact_within=self.strategy.exact_within if exact else None)
        natural = all(one.ended in ("rounds", "share") for one in records)
        every = self.plan.count is None or len(records) == self.plan.count or self.plan.budget.ends is not None
        numbers = range(max(self.records, default=-1) + 1)
        ends = [self.records[n].evaluations if n in self.records else 0 for n in numbers]
        return summary | {
            "content": run.content(anew=True),
            "shards": len(records) if self.plan.count is None else self.plan.count,
            "ends": None if natural and every else ends,
            "batch": self.settings.batch,
            "notes": self.notes,
        }

    def _keep_doubles(self, run: Run) -> None:
        """Spare readers the search for doubles. Where that cannot be written, they find them by themselves."""
        if self.buckets > 1:
            found = find_doubles(run.parts_found, run.layout, buckets=self.buckets)
            try:
                keep_doubles(run.folder, run.parts_found, found)
            except OSError as error:
                self.writer.note(unwritten=str(error))

    def _lost(self, ending: Ending) -> FairbitsError:
        number, words = next(iter(ending.lost.items()))
        many = f"{len(ending.lost)} shards were given up, the first of them number {number}"
        return FairbitsError(
            f"{f'shard {number} was given up' if len(ending.lost) == 1 else many}, after {ending.attempts} tries: "
            f"{words}; what the others found is in {str(self.writer.folder)!r}; mend that and go on with --resume."
        )


def tally_of(record: TaskRecord) -> Tally:
    """Counts of a task: in all, or up to its last whole round where it has not ended.

    Parameters
    ----------
    record
        How far the task is.

    Returns
    -------
    Tally
        The counts.
    """
    return Tally(**(record.tally or (record.state or {}).get("tally", {})))
