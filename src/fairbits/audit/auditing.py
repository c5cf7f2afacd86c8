"""The main job: measure, search, debug, repair, report. Each stage can be left out, and is not done twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairbits.audit.run import AuditRun
from fairbits.data import Subject
from fairbits.errors import OptionError, UsageError, choose_from
from fairbits.measure import evaluator_of
from fairbits.models import HasActivations
from fairbits.report import ReportData, compute_report, measuring, write_report
from fairbits.scale import Hands
from fairbits.scale.searching import search
from fairbits.search import DEFAULT, Budget, Settings, Tally
from fairbits.store import Run
from fairbits.store.places import new_folder

STAGES = ("measure", "search", "debug", "repair", "report")
SKIPPABLE = ("search", "debug", "repair")
#: Seconds for everything, where nothing is said.
DEFAULT_SECONDS = 60.0
#: Below so many seconds in all, debugging looks at fewer cases, and repair does not train.
AMPLE = 45.0

#: Is told about every stage: its name, what happens ("start", "say", "done", "kept", "skipped", "failed"), and words.
Tell = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True)
class Shares:
    """What each stage may take of the whole. Debugging and repair have fixed costs beside these."""

    search: float
    attack: float
    samples: int
    retrain: bool

    @classmethod
    def of(cls, seconds: float) -> Shares:
        """Split a budget: about a third for the search, the rest for what explains and mends."""
        if not seconds > 0:
            raise OptionError(f"the budget is {seconds:g} s; it must be larger than 0, e.g. 60s.")
        ample = seconds >= AMPLE
        return cls(0.35 * seconds, max(0.5, 0.04 * seconds), 1000 if ample else 400, ample)


@dataclass(frozen=True, slots=True)
class Wishes:
    """How an audit is to be done."""

    seconds: float | None = None
    seed: int = 0
    epsilon: float | None = None
    partition: str = "constrained"
    threads: int | None = None
    skip: frozenset[str] = frozenset()
    workers: int | None = None
    ray: str | None = None

    @property
    def hands(self) -> Hands:
        """Who does the work."""
        return Hands(self.workers, self.ray, self.threads)

    def __post_init__(self) -> None:
        strange = next((name for name in self.skip if name not in SKIPPABLE), None)
        if strange is not None:
            raise OptionError(f"stage {strange!r} cannot be skipped; {choose_from(strange, SKIPPABLE)}")


@dataclass(frozen=True, slots=True)
class Audited:
    """The run, its report, and how long each stage took (None: skipped, kept from before, or not possible)."""

    run: AuditRun
    data: ReportData
    page: Path
    seconds: dict[str, float | None] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    stopped: bool = False


def audit_subject(
    subject: Subject,
    wishes: Wishes,
    folder: Path | None = None,
    *,
    resume: bool = False,
    tell: Tell | None = None,
    stop: Callable[[], bool] | None = None,
) -> Audited:
    """Do everything and write the report. ``resume`` goes on in a folder; ``stop`` ends the search early."""
    return _Auditing(subject, wishes, folder, resume, tell or _silent, stop or (lambda: False)).do()


class _Auditing:
    """One audit in progress."""

    def __init__(
        self,
        subject: Subject,
        wishes: Wishes,
        folder: Path | None,
        resume: bool,
        tell: Tell,
        stop: Callable[[], bool],
    ):
        self.subject, self.wishes, self.resume, self.stop = subject, wishes, resume, stop
        self.folder = folder or new_folder(subject.name, "audit")
        self.shares = Shares.of(DEFAULT_SECONDS if wishes.seconds is None else wishes.seconds)
        self.tell = tell
        self.seconds: dict[str, float | None] = {}
        self.faults: dict[str, str] = {}

    def do(self) -> Audited:
        document = self._timed("measure", self._measure)
        run = self._search()
        measuring.keep(run.folder, document)
        self._after_search(run, "debug", "debug.json", self._debug)
        self._after_search(run, "repair", "repair.json", self._repair)
        data, page = self._timed("report", lambda: self._report(run))
        return Audited(
            AuditRun.open(run.folder, subject=self.subject), data, page, self.seconds, self.faults, self.stop()
        )

    def _timed(self, stage: str, work: Callable[[], Any]) -> Any:
        self.tell(stage, "start", "")
        begin = time.perf_counter()
        found = work()
        self.seconds[stage] = time.perf_counter() - begin
        self.tell(stage, "done", "")
        return found

    def _measure(self) -> dict[str, Any]:
        wishes, subject = self.wishes, self.subject
        evaluator = evaluator_of(subject, epsilon=wishes.epsilon, partition=wishes.partition, threads=wishes.threads)
        kept = measuring.kept(self.folder, subject, evaluator) if self.resume else None
        if kept is not None:
            return kept

        def progress(done: int, total: int) -> None:
            self.tell("measure", "say", f"{done:,} of {total:,} rows")

        return measuring.measure_rows(evaluator, subject, wishes.seed, progress=progress)

    def _search(self) -> Run:
        run = Run.open(self.folder) if self.resume else None
        if run is not None and ("search" in self.wishes.skip or self._enough(run)):
            self._leave("search", "skipped" if "search" in self.wishes.skip else "kept")
            return run
        settings = self._settings(run)

        def watch(tally: Tally, seconds: float) -> None:
            self.tell("search", "say", f"{tally.cases:,} cases, largest k {tally.k_max}, {seconds:.0f} s")

        return self._timed(
            "search",
            lambda: search(
                self.subject,
                settings,
                self.folder,
                hands=self._hands(run),
                resume=run is not None,
                watch=watch,
                stop=self.stop,
            ),
        )

    def _hands(self, run: Run | None) -> Hands:
        """As wished; a search that was begun without shards goes on without."""
        return self.wishes.hands if run is None or run.sharded else Hands(threads=self.wishes.threads)

    def _enough(self, run: Run) -> bool:
        """Whether the search has ended, and no longer budget was asked for."""
        used = (run.summary or {}).get("seconds") or 0.0
        return run.status == "finished" and (self.wishes.seconds is None or used >= self.shares.search)

    def _settings(self, run: Run | None) -> Settings:
        """As wished; a run that goes on keeps its own. Without a search the real rows are the cases: exact."""
        wishes = self.wishes
        settings = Settings(
            Budget(seconds=self.shares.search),
            seed=wishes.seed,
            epsilon=wishes.epsilon,
            partition=wishes.partition,
            threads=wishes.threads,
            strategy=DEFAULT,
        )
        if run is not None:
            names = ("strategy", "options", "seed", "epsilon", "partition", "within")
            return replace(settings, **{name: run.manifest[name] for name in names})
        if "search" in wishes.skip:
            return replace(settings, budget=Budget(seconds=1e9), strategy="exhaustive", options={"distance": 0})
        return settings

    def _after_search(self, run: Run, stage: str, file: str, work: Callable[[Run], Any]) -> None:
        """A stage that needs the cases. What it cannot do is said, and the audit goes on."""
        if stage in self.wishes.skip or self.stop():
            return self._leave(stage, "skipped")
        if is_current(run, file):
            return self._leave(stage, "kept")
        if run.summary is not None and (run.summary.get("k_max") or 1) <= 1:
            return self._leave(stage, "skipped")  # nobody's twins differ: nothing to explain, and nothing to mend
        try:
            self._timed(stage, lambda: work(run))
        except UsageError as error:
            self.faults[stage] = str(error)
            self.seconds[stage] = None
            self.tell(stage, "failed", str(error))
        return None

    def _leave(self, stage: str, how: str) -> None:
        self.seconds[stage] = None
        self.tell(stage, how, "")

    def _debug(self, run: Run) -> None:
        from fairbits.debug import debug_run
        from fairbits.scale.debugging import try_out_by

        debug_run(
            run,
            subject=self.subject,
            samples=self.shares.samples,
            inside=isinstance(self.subject.model, HasActivations),
            seed=self.wishes.seed,
            threads=self.wishes.threads,
            stage=lambda words: self.tell("debug", "say", words),
            try_out=try_out_by(self.wishes.hands),
        )

    def _repair(self, run: Run) -> None:
        from fairbits.audit.repairing import repair

        repair(
            run,
            subject=self.subject,
            attack_budget=Budget(seconds=self.shares.attack),
            retrain=self.shares.retrain,
            seed=self.wishes.seed,
            threads=self.wishes.threads,
            hands=self.wishes.hands,
            watch=lambda words: self.tell("repair", "say", words),
        )

    def _report(self, run: Run) -> tuple[ReportData, Path]:
        data = compute_report(run, subject=self.subject, threads=self.wishes.threads)
        notes = tuple(f"The {stage} stage could not be done: {fault}" for stage, fault in self.faults.items())
        data = replace(data, warnings=(*data.warnings, *notes))
        return data, write_report(data, run.folder)


def is_current(run: Run, name: str) -> bool:
    """Whether a stage's file is there, and newer than the last end of the search."""
    path, record = run.folder / name, run.folder / "run.json"
    return path.is_file() and path.stat().st_mtime >= record.stat().st_mtime


def _silent(_stage: str, _event: str, _words: str) -> None:
    """Nobody listens."""
