"""The main job: measure, search, debug, repair, certify, report. Each stage can be left out, and is not done twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.audit.options import AuditOptions
from fairbits.audit.result import AuditResult
from fairbits.audit.run import AuditRun
from fairbits.audit.shares import DEFAULT_SECONDS, KEPT, Shares
from fairbits.debug import Tried, TryOut, try_here
from fairbits.domain import Codes
from fairbits.engine import compiled_ahead, work_time
from fairbits.errors import UsageError
from fairbits.measure import Evaluator, Measure, evaluator_of
from fairbits.models import Do, HasActivations, HasTrees, Network
from fairbits.report import (
    ReportData,
    compute_report,
    keep_measurement,
    kept_measurement,
    measure_rows,
    proxies_of,
    write_report,
)
from fairbits.scale import search
from fairbits.search import DEFAULT, Budget, Settings, Tally, kept_settings
from fairbits.store import Run, new_folder, read_json
from fairbits.subject import Subject, check_identity

#: Repair is not begun after this share of the whole: it could not be ended in time.
REPAIR_BEGIN = 0.6
#: Repair asks a slow model about as often as measuring the table so many times does: not begun where less time is left.
REPAIR_MEASURES = 10
#: Audits of at least so many seconds have kernels that are not on disk yet compiled by a second process meanwhile.
COMPILED_AHEAD = 10.0
#: Values that neurons are held at between two looks at the clock.
STEP = 64

#: Progress callback, called about every stage: its name, what happens ("start", "say", "done", "kept", "skipped",
#: "failed"), and words; and first of all about the plan ("plan", "plan", words).
StageProgress = Callable[[str, str, str], None]


class _LateError(UsageError):
    """A stage has used up its time."""


def audit_subject(
    subject: Subject,
    options: AuditOptions,
    folder: Path | None = None,
    *,
    resume: bool = False,
    progress: StageProgress | None = None,
    stop: Callable[[], bool] | None = None,
) -> AuditResult:
    """Do all stages of an audit and write the report.

    Parameters
    ----------
    subject
        The model, its table and its schema.
    options
        How the audit is done.
    folder
        Folder of the run; None makes a new one below ``runs``.
    resume
        Go on in the folder.
    progress
        Progress callback, called with the stage, what happens, and words about it.
    stop
        Asked now and then; true ends the search early.

    Returns
    -------
    AuditResult
        The run, the report's data and page, and what each stage took.
    """
    auditing = _Auditing(subject, options, folder, resume, progress or _silent, stop or (lambda: False))
    long = auditing.shares.seconds >= COMPILED_AHEAD and isinstance(subject.model, Network)
    with compiled_ahead(len(subject.schema.free_columns)) if long else nullcontext():
        return auditing.do()


class _Auditing:
    """One audit in progress."""

    def __init__(
        self,
        subject: Subject,
        options: AuditOptions,
        folder: Path | None,
        resume: bool,
        progress: StageProgress,
        stop: Callable[[], bool],
    ):
        self.subject, self.options, self.resume, self.stop = subject, options, resume, stop
        if self._evaluator.blind:
            # No twin can score otherwise, by structure: 0 bits exactly, for everybody. A search, a cause and a repair
            # would spend the budget on finding nothing; what the score tells indirectly is what there is to find.
            self.options = replace(options, skip=options.skip | {"search", "debug", "repair"})
        self.folder = folder or new_folder(subject.name, "audit")
        self.shares = Shares.of(DEFAULT_SECONDS if options.seconds is None else options.seconds)
        self.progress = progress
        self.begin, self.measured = work_time(), 0.0
        self.seconds: dict[str, float | None] = {}
        self.faults: dict[str, str] = {}

    @cached_property
    def _evaluator(self) -> Evaluator:
        options = self.options
        return evaluator_of(self.subject, epsilon=options.epsilon, partition=options.partition, threads=options.threads)

    def do(self) -> AuditResult:
        self.progress("plan", "plan", self.shares.words(self.options.skip))
        if self.resume:
            record = Run.open(self.folder).manifest
            if self.subject.repeats == 1:
                self.subject = self.subject.with_repeats(record.get("repeats", 1))
                del self._evaluator  # it asked the model once for a score
            check_identity(record, self.subject.identity, what=f"the run in {str(self.folder)!r}")
        before = self._now
        document = self._timed("measure", self._measure)
        self.measured = self._now - before
        run = self._search()
        keep_measurement(run.folder, document)
        self._after_search(run, "debug", "debug.json", self._debug)
        self._after_search(run, "repair", "repair.json", self._repair)
        self._certified(run)
        self._proxies(run)
        data, page = self._timed("report", lambda: self._report(run))
        return AuditResult(
            AuditRun.open(run.folder, subject=self.subject), data, page, self.seconds, self.faults, self.stop()
        )

    def _timed(self, stage: str, work: Callable[[], Any]) -> Any:
        self.progress(stage, "start", "")
        begin = time.perf_counter()
        found = work()
        self.seconds[stage] = time.perf_counter() - begin
        self.progress(stage, "done", "")
        return found

    def _measure(self) -> dict[str, Any]:
        options, subject = self.options, self.subject
        evaluator = self._evaluator
        kept = kept_measurement(self.folder, subject, evaluator) if self.resume else None
        if kept is not None:
            return kept

        def progress(done: int, total: int) -> None:
            self.progress("measure", "say", f"{done:,} of {total:,} rows")

        rows = self._rows_in_time(evaluator)
        return measure_rows(evaluator, subject, options.seed, progress=progress, max_rows=rows)

    def _rows_in_time(self, evaluator: Evaluator) -> int | None:
        """How many rows a slow model can be asked about in the time of measuring; None: all of them."""
        table = self.subject.table
        if isinstance(self.subject.model, Network):
            return None  # millions of scores a second: a stopwatch on a busy machine is no reason to leave anybody out
        evaluator.evaluate(table.codes[:1])  # compiles, connects
        few = table.codes[:8]
        begin = time.perf_counter()
        evaluator.evaluate(few)
        each = (time.perf_counter() - begin) / max(1, len(few))
        rows = int(self.shares.measure / max(each, 1e-9))
        if rows >= len(table):
            return None
        # A small batch says too little about a large one: ask about more, unless that alone would take too long.
        more = table.codes[: max(8, min(rows // 4, 512))]
        begin = time.perf_counter()
        evaluator.evaluate(more)
        each = (time.perf_counter() - begin) / len(more)
        rows = int((self.shares.measure - self._now) / max(each, 1e-9))
        return None if rows >= len(table) else max(1, rows)

    @property
    def _now(self) -> float:
        """Seconds since the audit began; compiling, which is done once per machine, does not count."""
        return work_time() - self.begin

    def _until(self, stage: str, limit: float) -> Callable[[str], None]:
        """What a stage says while it works; ends it where its time is over."""

        def say(words: str) -> None:
            if self._now > limit:
                raise _LateError(
                    f"it did not fit into the budget of {self.shares.seconds:g} s (it had until {limit:.1f} s and was "
                    f"{words!r} at {self._now:.1f} s); do it with: fairbits {stage} {self.folder}"
                )
            self.progress(stage, "say", words)

        return say

    def _search(self) -> Run:
        run = Run.open(self.folder) if self.resume else None
        if run is not None and ("search" in self.options.skip or self._enough(run)):
            self._leave("search", "skipped" if "search" in self.options.skip else "kept")
            return run
        settings = self._settings(run)

        def watch(tally: Tally, seconds: float) -> None:
            self.progress("search", "say", f"{tally.cases:,} cases, largest k {tally.k_max}, {seconds:.0f} s")

        return self._timed(
            "search",
            lambda: search(
                self.subject,
                settings,
                self.folder,
                executor_options=self.options.executor_options,
                resume=run is not None,
                watch=watch,
                stop=self.stop,
                began=work_time() if self.shares.seconds >= KEPT else None,
            ),
        )

    def _enough(self, run: Run) -> bool:
        """Whether the search has ended, and no longer budget was asked for."""
        used = (run.summary or {}).get("seconds") or 0.0
        given = run.manifest["budget"].get("seconds") or 0.0  # preparing and summing up are taken from it
        return run.status == "finished" and (self.options.seconds is None or max(used, given) >= self.shares.search)

    def _settings(self, run: Run | None) -> Settings:
        """As the options say; a run that goes on keeps its own. Without a search the real rows are the cases: exact."""
        options = self.options
        settings = Settings(
            Budget(seconds=self.shares.search),
            seed=options.seed,
            epsilon=options.epsilon,
            partition=options.partition,
            within=options.within,
            min_plausibility=options.min_plausibility,
            measure=options.measure,
            threads=options.threads,
            strategy=DEFAULT,
        )
        if run is not None:
            return replace(settings, **kept_settings(run.manifest, {}))
        if "search" in options.skip:
            return replace(settings, budget=Budget(seconds=1e9), strategy="exhaustive", options={"distance": 0})
        return settings

    def _after_search(self, run: Run, stage: str, file: str, work: Callable[[Run], Any]) -> None:
        """A stage that needs the cases. What it cannot do is said, and the audit goes on."""
        if stage in self.options.skip or self.stop():
            return self._leave(stage, "skipped")
        if is_current(run, file):
            return self._leave(stage, "kept")
        if run.summary is not None and (run.summary.get("k_max") or 1) <= 1:
            return self._leave(stage, "skipped")  # nobody's twins differ: nothing to explain, and nothing to mend
        return self._tried(stage, lambda: work(run), before=lambda: self._check_time(stage))

    def _check_time(self, stage: str) -> None:
        """Refuse to begin a stage that could not be ended in time."""
        limit = self.shares.debug_by if stage == "debug" else self.shares.repair_by
        self._until(stage, limit)("not begun")
        left = limit - self._now
        late = self._now > REPAIR_BEGIN * self.shares.seconds or left < REPAIR_MEASURES * self.measured
        if stage == "repair" and limit < inf and late:
            raise _LateError(
                f"it was not begun, because {left:.1f} s of {self.shares.seconds:g} s were left; do it with: "
                f"fairbits repair {self.folder}"
            )

    def _tried(self, stage: str, work: Callable[[], Any], *, before: Callable[[], None] = lambda: None) -> None:
        """Do a stage; where it cannot be done, keep the sentence that says why, and let the audit go on."""
        try:
            before()
            self._timed(stage, work)
        except UsageError as error:
            self.faults[stage] = str(error)
            self.seconds[stage] = None
            self.progress(stage, "failed", str(error))

    def _leave(self, stage: str, how: str) -> None:
        self.seconds[stage] = None
        self.progress(stage, how, "")

    def _proxies(self, run: Run) -> None:
        """What reaches the score without the columns; what cannot be known is said, and the audit goes on."""
        from fairbits.proxies import study_subject
        from fairbits.store import write_json

        if "proxies" in self.options.skip or self.stop():
            return self._leave("proxies", "skipped")
        kept = proxies_of(run.folder, self.subject)
        made_with = self.subject.identity.document()
        same = kept is not None and (kept.get("made_with") or {}).get("id") == made_with["id"]
        if self.resume and kept is not None and same and self.options.by in (None, kept.get("by")):
            stated = {"data_source": self.options.data_source, "distributed": self.options.distributed}
            wanted = {**(kept.get("filing") or {}), **{name: value for name, value in stated.items() if value}}
            if wanted != kept.get("filing"):  # what is filed beside the tables changes none of them
                write_json(run.folder / "proxies.json", {**kept, "filing": wanted})
            return self._leave("proxies", "kept")

        def work() -> None:
            found = study_subject(
                self.subject,
                by=self.options.by,
                seed=self.options.seed,
                columns=not self.shares.quick or not self.subject.schema.protected,
                data_source=self.options.data_source,
                distributed=self.options.distributed,
                progress=self._until("proxies", inf),
            )
            write_json(run.folder / "proxies.json", {**found.document(), "made_with": made_with})

        return self._tried("proxies", work)

    def _debug(self, run: Run) -> None:
        from fairbits.debug import debug_run
        from fairbits.scale import train_out_by, try_out_by

        say = self._until("debug", self.shares.debug_by)
        try_out = try_out_by(self.options.executor_options) or _in_steps(say)
        debug_run(
            run,
            subject=self.subject,
            samples=self.shares.samples,
            inside=isinstance(self.subject.model, HasActivations | HasTrees),
            seed=self.options.seed,
            threads=self.options.threads,
            # Half of what is left until repair must begin: trainings that do not fit are left out, and said to be.
            patience=max(0.0, 0.5 * (min(self.shares.debug_by, self.shares.seconds) - self._now)),
            stage=say,
            try_out=try_out,
            train_out=train_out_by(self.options.executor_options),
        )

    def _repair(self, run: Run) -> None:
        from fairbits.audit.attack import repair

        repair(
            run,
            subject=self.subject,
            attack_budget=Budget(seconds=self.shares.attack),
            retrain=self.shares.retrain,
            quick=self.shares.quick,
            seed=self.options.seed,
            threads=self.options.threads,
            executor_options=self.options.executor_options,
            watch=self._until("repair", self.shares.repair_by),
        )

    def _certified(self, run: Run) -> None:
        """What can be said about everybody, before and after the repair; it needs no cases."""
        from fairbits.certify import CertifyOptions, certify_run

        if "certify" in self.options.skip or self.stop():
            return self._leave("certify", "skipped")
        if self.resume and self.seconds.get("search") is None and self.seconds.get("repair") is None:
            from fairbits.certify import read_statements

            if read_statements(run.folder):
                return self._leave("certify", "kept")
        options, shares = self.options, self.shares
        chosen = CertifyOptions(
            shares.certify,
            seed=options.seed,
            epsilon=options.epsilon,
            threads=options.threads,
            proofs=shares.seconds >= KEPT,
        )

        def work() -> None:
            certify_run(
                run.folder,
                self.subject,
                chosen,
                stop=self.stop,
                watch=lambda words: self.progress("certify", "say", words),
            )

        return self._tried("certify", work)

    def _report(self, run: Run) -> tuple[ReportData, Path]:
        data = compute_report(run, subject=self.subject, threads=self.options.threads)
        notes = tuple(f"The {stage} stage could not be done: {fault}" for stage, fault in self.faults.items())
        data = replace(data, warnings=(*data.warnings, *notes))
        return data, write_report(data, run.folder)


def is_current(run: Run, name: str) -> bool:
    """Whether a stage's file is there and was made from the cases that are there now, by their content.

    Parameters
    ----------
    run
        The run.
    name
        File name, such as debug.json.

    Returns
    -------
    bool
        True where the stage need not be done again.
    """
    path = run.folder / name
    return path.is_file() and read_json(path).get("content") == run.content()


def _in_steps(say: Callable[[str], None]) -> TryOut:
    """Holds neurons at values in this process, some at a time, so that a stage that takes too long can be ended."""

    def try_out(
        evaluator: Evaluator,
        subject: Subject,
        cases: Codes,
        dos: list[Do],
        *,
        judged: bool,
        measure: Measure = "q_inf",
    ) -> Tried:
        found = []
        for start in range(0, max(len(dos), 1), STEP):
            say(f"holding neurons: {start:,} of {len(dos):,} values tried")
            found.append(try_here(evaluator, subject, cases, dos[start : start + STEP], judged=judged, measure=measure))
        return Tried(*(np.concatenate([getattr(one, part.name) for one in found]) for part in fields(Tried)))

    return try_out


def _silent(_stage: str, _event: str, _words: str) -> None:
    """Default callback: ignore progress."""
