"""A search from its first task to its summary: on disk, reproducible, and able to go on after any end.

There is one path. A search is cut into tasks (``shards``), which this process does one after the other, unless
``fairbits.scale`` has them done by workers; every task writes its cases and its record (``store.writer``), and here
the records become one summary. What it means to go on is decided in ``shards``, too.

Round r of seed s always proposes the same people: that is what lets a task be repeated, resumed and done anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fairbits.engine import work_time
from fairbits.errors import FairbitsError, OptionError, TableError
from fairbits.models import TwinScores
from fairbits.options import ExecutorOptions
from fairbits.search.budget import Tally
from fairbits.search.oracle import Clock
from fairbits.search.problem import Problem
from fairbits.search.settings import Settings, fitted, manifest_of, problem_of
from fairbits.search.shards import (
    SearchShard,
    ShardPlan,
    WorkerSetup,
    batch_for,
    is_open,
    kept_plan,
    notes_on,
    perform,
    prepare,
)
from fairbits.search.strategy import Strategy
from fairbits.store import (
    Layout,
    Run,
    RunWriter,
    TaskRecord,
    check_present,
    check_same,
    find_doubles,
    is_local,
    keep_doubles,
    new_folder,
    place_of,
)
from fairbits.subject import Subject, check_identity

#: Beyond this many twin scores the table is not measured once more for the sake of one figure.
MAX_SCORES = 200_000_000
#: The largest k by how far a person may be from a real row: the figure, and the people in words.
DISTANCES = {
    "k_max_on_data": "real rows",
    "k_max_within_1": "1 attribute away",
    "k_max_within_2": "2 attributes away",
    "k_max_within_3": "3 attributes away",
    "k_max": "anywhere",
}

#: Figures of a tally that are maxima, and those that are about the whole search.
_LARGEST, _WHOLE = ("k_max",), ("goal", "left")
_FIRST_IDS = "SELECT seconds FROM cases WHERE flips ORDER BY seconds LIMIT 1 OFFSET {}"


def add_tally(total: Tally, more: Tally) -> None:
    """Add counts to a total; some are maxima instead of sums."""
    for one in fields(Tally):
        was, now = getattr(total, one.name), getattr(more, one.name)
        if one.name not in _WHOLE:
            setattr(total, one.name, max(was, now) if one.name in _LARGEST else was + now)


def summarise(
    run: Run,
    problem: Problem,
    settings: Settings,
    tally: Tally,
    *,
    seconds: float,
    findings: Mapping[str, Any],
    exact_within: int | None = None,
) -> dict[str, Any]:
    """The content of summary.json: every headline figure under its fixed name."""
    evaluator, figures = problem.evaluator, run.figures()
    exact = _near_figures(figures, problem, exact_within, varies=bool(run.manifest.get("noise")))
    first, thousandth = (run.query(_FIRST_IDS.format(place))["seconds"].to_pylist() or [None] for place in (0, 999))
    # A seed that was just opened has not come far: it says nothing about how far seeds come.
    counted = {
        name: getattr(tally, f"finished_{name}" if tally.finished_seeds else name)
        for name in ("seeds", "k_initial_sum", "k_final_sum", "seconds_to_k_final_sum")
    }
    return {
        "subject": run.manifest["subject"],
        "strategy": settings.strategy,
        "partition": evaluator.partition,
        "objective": settings.measure,
        "epsilon": evaluator.epsilon,
        "seed": settings.seed,
        "threads": evaluator.threads,
        "within": settings.within,
        "min_plausibility": settings.min_plausibility,
        "rules": [rule.text for rule in problem.schema.rules],
        "twins_removed": tally.twins_removed,
        "moves_removed": tally.moves_removed,
        "m": evaluator.m_in_table,
        "bits_limit": evaluator.limit_in_table,
        "identity": run.manifest["identity"]["id"],
        "repeats": run.manifest.get("repeats", 1),
        "noise": run.manifest.get("noise"),
        "null_q_inf_max": (run.manifest.get("noise") or {}).get("null_q_inf_max", 0.0),
        "seconds": seconds,
        "evaluations": tally.evaluations,
        "queries": tally.queries,
        "seeds": tally.seeds,
        "seeds_finished": tally.finished_seeds,
        "k_initial": _mean(counted["k_initial_sum"], counted["seeds"]),
        "k_final": _mean(counted["k_final_sum"], counted["seeds"]),
        "seconds_to_k_final": _mean(counted["seconds_to_k_final_sum"], counted["seeds"]),
        "local_success_rate": _mean(tally.local_ids, tally.local_tries),
        "seconds_to_first_id": first[0],
        "seconds_to_1000_id": thousandth[0],
        **(run.manifest.get("quality") or {}),
        **figures,
        "exact": exact,
        "findings": dict(findings),
    }


def _near_figures(figures: dict[str, Any], problem: Problem, exact_within: int | None, *, varies: bool) -> list[str]:
    """Fold in what all real rows experience, and say which of the figures near them are exact."""
    rows = problem.rows[problem.plausible_rows]
    exact = []
    if problem.evaluator.blind:  # nobody's twins can differ, whoever was asked about
        figures |= dict.fromkeys(DISTANCES, 1)
        return list(DISTANCES)
    if exact_within is not None:
        exact = ["k_max_on_data", "k_max_within_1"][: exact_within + 1]
    elif len(rows) * problem.evaluator.m <= MAX_SCORES and problem.evaluator.native:
        on_data = int(problem.evaluator.evaluate(rows).k.max(initial=0))
        for name in list(DISTANCES)[:-1]:
            figures[name] = max(figures[name] or 0, on_data)
        exact = ["k_max_on_data"]
    if any(one.representatives for one in problem.schema.attributes if one.protected):
        return []  # values that twins do not take may show more
    # Chance alone reaches the limit of a model whose answers vary.
    limit = None if varies else round(2**problem.evaluator.bits_limit)
    return exact + [name for name in DISTANCES if name not in exact and limit is not None and figures[name] == limit]


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


Watch = Callable[[Tally, float], None]

#: Seconds after which run.json is written again, at least.
WRITE_EVERY = 2.0
#: Seconds between two looks whether the run is still there.
LOOK_EVERY = 0.5
#: What part of a budget of time may go into preparing and summing up: a search that gets nothing would be of no use.
MAX_OVERHEAD = 0.7
#: What is kept for summing up: a part of the budget, and seconds at most.
SUMMING_UP, SUMMING_UP_SECONDS = 0.1, 1.0


def search_subject(
    subject: Subject,
    settings: Settings,
    folder: str | Path | None = None,
    *,
    tasks: int | None = None,
    executor_options: ExecutorOptions | None = None,
    by_workers: ByWorkers | None = None,
    resume: bool = False,
    force: bool = False,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    clock: Clock = work_time,
    began: float | None = None,
) -> Run:
    """Search, keep everything on disk, and give back the run; ``by_workers`` has the tasks done in other processes."""
    if subject.table.drawn:
        raise TableError(
            "the subject has no table, and only certify can do without; name one with path = … under [table]."
        )
    if isinstance(subject.model, TwinScores) and (settings.options or {}).get("distance") != 0:
        raise OptionError(
            f"{subject.name!r} is a table of twins, which has scores of its own people only; `fairbits measure` and "
            f"`fairbits audit` ask about all of them."
        )
    place = None if folder is None else place_of(folder)
    executor_options = executor_options or ExecutorOptions()
    problem, strategy = problem_of(subject, settings)
    plan = ShardPlan.of(
        settings.budget, strategy, seed=settings.seed, m=problem.evaluator.m, tasks=tasks, shared=by_workers is not None
    )
    before = Run.open(place) if resume and place is not None else None
    if before is not None:
        plan = kept_plan(before, plan, tasks)
        settings = replace(settings, batch=before.manifest.get("batch"))
    settings, strategy = fitted(settings, problem, plan.task(0).budget, before)
    manifest = manifest_of(subject, settings, problem.evaluator) | {
        "workers": executor_options.workers,
        "ray": executor_options.ray,
        "shards": plan.count,
        "buckets": plan.buckets if before is None else before.buckets,
    }
    place = place or new_folder(subject.name, settings.strategy)
    if before is not None:
        check_same(before.manifest, manifest)  # first what somebody typed, then what it stands for
        check_identity(before.manifest, subject.identity, what=f"the run in {str(place)!r}")
        writer = RunWriter.resume(place, manifest)
    else:
        writer = RunWriter.create(place, manifest, subject.schema, force=force, people=subject.table.codes)
    return SearchInProgress(problem, strategy, plan, by_workers, writer, settings, watch, stop, clock, began).do()


#: Has the open tasks of a search done, and says how that ended.
ByWorkers = Callable[[WorkerSetup, Settings, Iterator[SearchShard], "SearchInProgress"], "Ending"]


def _shortened(plan: ShardPlan, seconds: float) -> ShardPlan:
    """The plan without the time that went elsewhere; a part of it is left in any case."""
    limit = plan.budget.seconds
    if limit is None:
        return plan
    return replace(plan, budget=replace(plan.budget, seconds=max(limit - seconds, (1 - MAX_OVERHEAD) * limit)))


@dataclass(frozen=True, slots=True)
class Ending:
    """How the tasks ended: whether somebody stopped them, and why some were given up."""

    stopped: bool = False
    lost: Mapping[int, str] = field(default_factory=dict)


class SearchInProgress:
    """One search: whoever does its tasks says here what was started, done and lost."""

    def __init__(
        self,
        problem: Problem,
        strategy: Strategy,
        plan: ShardPlan,
        by_workers: ByWorkers | None,
        writer: RunWriter,
        settings: Settings,
        watch: Watch | None,
        stop: Callable[[], bool] | None,
        clock: Clock,
        began: float | None,
    ):
        self.problem, self.strategy, self.by_workers = problem, strategy, by_workers
        self.plan = _shortened(plan, float(writer.record["scale"].get("overhead") or 0.0))
        self.began = began if writer.new else None
        self.writer, self.settings, self.buckets = writer, settings, writer.record["buckets"]
        self.watch, self.stop, self.clock = watch, stop or (lambda: False), clock
        self.tally = Tally()
        for record in self.writer.records.values():
            if not self._is_open(record.number):
                add_tally(self.tally, tally_of(record))
        self.used = float(writer.record["scale"].get("seconds") or 0.0)
        self.begin = self.written = clock()
        self.looked = time.monotonic()
        self.slots = 1
        self.started = False
        self.notes: list[str] = []

    def _is_open(self, number: int) -> bool:
        if self.plan.budget.ends is not None and number >= len(self.plan.budget.ends):
            return False
        return is_open(self.plan.task(number), self.writer.records.get(number), self.problem.evaluator.m)

    def do(self) -> Run:
        """Carry it out, and leave the run in a state that says how it ended."""
        try:
            known = map(self.plan.task, self.writer.records) if self.plan.count is None else self.plan.tasks()
            if not self.writer.new and not any(self._is_open(task.number) for task in known):
                self.notes = notes_on(self.settings.budget, self.tally, self.used)
            ending = self._carry_out()
            status = self._status(ending)
            self._finish(status, self._summary(status))
            if ending.lost:
                raise self._lost(ending)
        except BaseException as error:
            if not self.started and self.writer.new:
                self.writer.withdraw()  # workers could not be had: no run was begun
            elif self.writer.record["status"] == "running":
                self._finish("interrupted" if isinstance(error, KeyboardInterrupt) else "failed", None)
            raise
        return Run.open(self.writer.folder)

    @property
    def elapsed(self) -> float:
        """Seconds of the search so far; pauses, the start of workers and what is repeated are not counted."""
        return self.used + self.clock() - self.begin if self.started else self.used

    def _carry_out(self) -> Ending:
        if self.plan.count is not None and not any(self._is_open(task.number) for task in self.plan.tasks()):
            self.started = True
            self.begin = self.clock()
            return Ending()
        prepare(self.problem, self.strategy, learn=self.by_workers is None)
        batch = self.settings.batch
        if batch is None and self.writer.new:
            batch = batch_for(self.problem, self.settings.budget.seconds)
            self.writer.record["batch"] = batch
            self.settings = replace(self.settings, batch=batch)
        # Workers need not be in the folder that this process is in.
        folder = self.writer.folder.resolve() if is_local(self.writer.folder) else self.writer.folder
        layout = Layout(self.problem.schema)
        setup = WorkerSetup(self.problem, self.strategy, layout, folder, self.buckets, batch, self.clock)
        if self.by_workers is not None:
            return self.by_workers(setup, self.settings, self._open_shards(), self)
        self.start("in-process", 1)
        for task in self._open_shards():
            record, replayed = perform(setup, task, stop=self.stop, progress=self._progress)
            self.done(task.number, record, replayed)
            if record.ended == "stopped":
                return Ending(stopped=True)
        return Ending()

    def _open_shards(self) -> Iterator[SearchShard]:
        limit = self.plan.budget.seconds
        for task in self.plan.tasks():
            if limit is not None and self.elapsed >= limit:
                return
            if self._is_open(task.number):
                yield replace(task, elapsed=self.elapsed)

    def start(self, name: str, slots: int) -> None:
        """Note that workers are ready, and how many: the clock begins."""
        self.begin, self.started, self.slots = self.clock(), True, slots
        limit = self.plan.budget.seconds
        if self.began is not None and limit is not None:
            after = min(SUMMING_UP * limit, SUMMING_UP_SECONDS)
            self.plan = _shortened(self.plan, self.begin - self.began + after)
            self.writer.note(overhead=limit - (self.plan.budget.seconds or 0.0))
        self.writer.note(executor=name, workers=slots, threads=self.settings.threads)
        self.writer.note(shards=self.plan.count, done=self._ended)
        self.writer.write("running")

    @property
    def _ended(self) -> int:
        return sum(record.ended is not None for record in self.writer.records.values())

    def done(self, number: int, record: TaskRecord, replayed: float) -> None:
        """Add a task that has ended; ``replayed`` are the seconds in which it repeated an earlier attempt."""
        self.writer.records[number] = record
        self.begin += replayed / self.slots
        add_tally(self.tally, tally_of(record))
        self.writer.note(done=self._ended, seconds=self.elapsed)

    def fault(self, number: int, attempt: int, kind: str, words: str) -> None:
        """Put on record why an attempt at a task failed."""
        check_present(self.writer.folder)  # no further try could mend that
        self.writer.note({"shard": number, "attempt": attempt, "kind": kind, "what": words})
        self._write()

    def _progress(self, tally: Tally) -> None:
        """Of the task that is being done in this process."""
        shown = replace(self.tally)
        add_tally(shown, tally)
        self.tick(shown)

    def tick(self, shown: Tally | None = None) -> None:
        """Say how far it is, now and then; notice within seconds that the folder is gone, or workers would go on."""
        if time.monotonic() - self.looked >= LOOK_EVERY:
            self.looked = time.monotonic()
            check_present(self.writer.folder)
        if self.watch is not None:
            seconds, budget, tally = self.elapsed, self.settings.budget, shown or self.tally
            tally.goal, asked = self.strategy.people, tally.evaluations
            guesses = [budget.seconds - seconds] if budget.seconds is not None and budget.seconds < 1e8 else []
            limits = ((budget.evaluations, asked), (budget.cases, tally.cases), (tally.goal, asked))
            guesses += [(limit - done) * seconds / done for limit, done in limits if limit is not None and done]
            tally.left = max(0.0, min(guesses)) if guesses else None
            self.watch(tally, seconds)
        if self.clock() - self.written >= WRITE_EVERY:
            self._write()

    def _write(self) -> None:
        """Bring run.json up to date; a full disk is noticed by the tasks, and must not end the coordinator."""
        self.written = self.clock()
        self.writer.note(seconds=self.elapsed)
        with suppress(OSError):
            self.writer.write("running")

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
        return max((record.seconds for record in self.writer.records.values()), default=self.used)

    def _status(self, ending: Ending) -> str:
        self.writer.note(done=self._ended)
        if ending.stopped:
            return "interrupted"
        if ending.lost:
            return "failed"
        whole = [record.ended == "rounds" for record in self.writer.records.values()]
        finished = self.strategy.rounds is None or (all(whole) and len(whole) == self.plan.count)
        return "finished" if finished else "interrupted"

    def _summary(self, status: str) -> dict[str, Any]:
        run = Run.open(self.writer.folder)
        if self.buckets > 1:  # readers are spared the search for doubles; where that fails, they find them themselves
            found = find_doubles(run.parts_found, run.layout, buckets=self.buckets)
            with suppress(OSError):
                keep_doubles(run.folder, run.parts_found, found)
        known = self.writer.records
        records = [known[number] for number in sorted(known)]
        tally, findings = Tally(), dict[str, Any]()
        for record in records:  # in their order: the result does not depend on which task ended first
            add_tally(tally, tally_of(record))
            findings |= record.findings
        exact = self.strategy.rounds is not None and status == "finished"
        summary = summarise(
            run,
            self.problem,
            self.settings,
            tally,
            seconds=self._seconds,
            findings=findings,
            exact_within=self.strategy.exact_within if exact else None,
        )
        whole = self.plan.count is None or len(records) == self.plan.count or self.plan.budget.ends is not None
        natural = whole and all(one.ended in ("rounds", "share") for one in records)
        ends = [known[n].evaluations if n in known else 0 for n in range(max(known, default=-1) + 1)]
        return summary | {
            "content": run.content(anew=True),
            "shards": len(records) if self.plan.count is None else self.plan.count,
            "ends": None if natural else ends,
            "batch": self.settings.batch,
            "notes": self.notes,
        }

    def _lost(self, ending: Ending) -> FairbitsError:
        number, words = next(iter(ending.lost.items()))
        many = f"{len(ending.lost)} shards were given up, the first of them number {number}"
        return FairbitsError(
            f"{f'shard {number} was given up' if len(ending.lost) == 1 else many}, {words}; "
            f"what the others found is in {str(self.writer.folder)!r}; mend that and go on with --resume."
        )


def tally_of(record: TaskRecord) -> Tally:
    """Counts of a task: in all, or up to its last whole round where it has not ended."""
    return Tally(**(record.tally or (record.state or {}).get("tally", {})))
