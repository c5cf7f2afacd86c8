"""The main job: measure, search, debug, repair, certify, report. Each stage can be left out, and is not done twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from fairbits.audit.clock import StageClock, StageProgress
from fairbits.audit.content import is_current
from fairbits.audit.options import AuditOptions
from fairbits.audit.pace import check_time, in_steps, rows_in_time
from fairbits.audit.result import AuditResult
from fairbits.audit.run import AuditRun
from fairbits.audit.shares import DEFAULT_SECONDS, KEPT, Shares
from fairbits.audit.study import keep_study, write_study
from fairbits.engine import work_time
from fairbits.measure import Evaluator, evaluator_of, shared_evaluators
from fairbits.models import HasActivations, HasTrees
from fairbits.report import (
    ReportData,
    compute_report,
    keep_measurement,
    kept_measurement,
    measure_rows,
    write_report,
)
from fairbits.scale import search
from fairbits.search import DEFAULT, Budget, Settings, Tally, kept_settings
from fairbits.store import Run, new_folder, read_once
from fairbits.subject import Subject, check_identity


def audit_subject(
    subject: Subject,
    options: AuditOptions,
    folder: Path | None = None,
    *,
    resume: bool = False,
    progress: StageProgress | None = None,
    stop: Callable[[], bool] | None = None,
) -> AuditResult:
    """Do all stages of an audit and write the report."""
    with shared_evaluators(), read_once():
        return Pipeline(subject, options, folder, resume=resume, progress=progress, stop=stop).do()


class Pipeline:
    """One audit in progress."""

    def __init__(
        self,
        subject: Subject,
        options: AuditOptions,
        folder: Path | None = None,
        *,
        resume: bool = False,
        progress: StageProgress | None = None,
        stop: Callable[[], bool] | None = None,
    ):
        self.folder = folder or new_folder(subject.name, "audit")
        #: The run that goes on, if one does.
        self.before = Run.open(self.folder) if resume else None
        self.options = options.settled(None if self.before is None else self.before.manifest)
        repeats = options.repeats or (self.options.repeats if subject.repeats == 1 else None)
        self.subject = subject if repeats is None else subject.with_repeats(repeats)
        if self.before is not None:
            check_identity(self.before.manifest, self.subject.identity, what=f"the run in {str(self.folder)!r}")
        if self._evaluator.blind:
            # No twin can score otherwise, by structure: 0 bits exactly, for everybody. A search, a cause and a repair
            # would spend the budget on finding nothing; what the score tells indirectly is what there is to find.
            self.options = replace(self.options, skip=self.options.skip | {"search", "debug", "repair"})
        self.shares = Shares.of(DEFAULT_SECONDS if options.seconds is None else options.seconds)
        self.clock = StageClock(self.shares, self.folder, progress)
        self.stop = stop or _never
        self.measured = 0.0

    @cached_property
    def _evaluator(self) -> Evaluator:
        options = self.options
        return evaluator_of(self.subject, epsilon=options.epsilon, partition=options.partition, threads=options.threads)

    def do(self) -> AuditResult:
        """Do all stages, one after the other."""
        clock = self.clock
        clock.progress("plan", "plan", self.shares.words(self.options.skip))
        before = clock.now
        document = clock.timed("measure", self._measure)
        self.measured = clock.now - before
        run = self._search()
        keep_measurement(run.folder, document)
        self._after_search(run, "debug", "debug.json", self._debug)
        self._after_search(run, "repair", "repair.json", self._repair)
        self._certify(run)
        self._proxies(run)
        data, page = clock.timed("report", lambda: self._report(run))
        return AuditResult(AuditRun.around(run, self.subject), data, page, clock.seconds, clock.faults, self.stop())

    def _measure(self) -> dict[str, Any]:
        options, subject = self.options, self.subject
        evaluator = self._evaluator
        kept = None if self.before is None else kept_measurement(self.folder, subject, evaluator)
        if kept is not None:
            return kept

        def progress(done: int, total: int) -> None:
            self.clock.progress("measure", "say", f"{done:,} of {total:,} rows")

        rows = rows_in_time(evaluator, subject, self.shares.measure, self.clock)
        return measure_rows(evaluator, subject, options.seed, progress=progress, max_rows=rows)

    def _search(self) -> Run:
        run = self.before
        if run is not None and ("search" in self.options.skip or self._enough(run)):
            self.clock.omit("search", "skipped" if "search" in self.options.skip else "kept")
            return run
        settings = self._settings(run)

        def watch(tally: Tally, seconds: float) -> None:
            self.clock.progress("search", "say", f"{tally.cases:,} cases, largest k {tally.k_max}, {seconds:.0f} s")

        return self.clock.timed(
            "search",
            lambda: search(
                self.subject,
                settings,
                self.folder,
                executor_options=self.options.executor_options,
                resume=run is not None,
                force=self.options.force,
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
            budget=Budget(seconds=self.shares.search),
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
            return self.clock.omit(stage, "skipped")
        if is_current(run, file):
            return self.clock.omit(stage, "kept")
        if run.summary is not None and (run.summary.get("k_max") or 1) <= 1:
            return self.clock.omit(stage, "skipped")  # nobody's twins differ: nothing to explain, and nothing to mend
        return self.clock.tried(stage, lambda: work(run), check=lambda: check_time(stage, self.clock, self.measured))

    def _proxies(self, run: Run) -> None:
        """What reaches the score without the columns; what cannot be known is said, and the audit goes on."""
        from fairbits.proxies import study_subject

        options = self.options
        if "proxies" in options.skip or self.stop():
            return self.clock.omit("proxies", "skipped")
        if self.before is not None and keep_study(run.folder, self.subject, options):
            return self.clock.omit("proxies", "kept")

        def work() -> None:
            found = study_subject(
                self.subject,
                by=options.by,
                seed=options.seed,
                columns=not self.shares.quick or not self.subject.schema.protected,
                data_source=options.data_source,
                distributed=options.distributed,
                evaluator=self._evaluator,  # with the audit's own tolerance
                progress=self.clock.until("proxies", inf),
            )
            write_study(found, run.folder, self.subject)

        return self.clock.tried("proxies", work)

    def _debug(self, run: Run) -> None:
        from fairbits.debug import debug_run
        from fairbits.scale import train_out_by, try_out_by

        say = self.clock.until("debug", self.shares.debug_by)
        try_out = try_out_by(self.options.executor_options) or in_steps(say)
        debug_run(
            run,
            subject=self.subject,
            samples=self.shares.samples,
            inside=isinstance(self.subject.model, HasActivations | HasTrees),
            seed=self.options.seed,
            threads=self.options.threads,
            # Half of what is left until repair must begin: trainings that do not fit are left out, and said to be.
            patience=max(0.0, 0.5 * (min(self.shares.debug_by, self.shares.seconds) - self.clock.now)),
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
            watch=self.clock.until("repair", self.shares.repair_by),
        )

    def _certify(self, run: Run) -> None:
        """What can be said about everybody, before and after the repair; it needs no cases."""
        from fairbits.certify import CertifyOptions, certify_run, read_statements

        clock = self.clock
        if "certify" in self.options.skip or self.stop():
            return clock.omit("certify", "skipped")
        anew = any(clock.seconds.get(stage) is not None for stage in ("search", "repair"))
        if self.before is not None and not anew and read_statements(run.folder):
            return clock.omit("certify", "kept")
        options, shares = self.options, self.shares
        chosen = CertifyOptions(
            seconds=shares.certify,
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
                watch=lambda words: clock.progress("certify", "say", words),
            )

        return clock.tried("certify", work)

    def _report(self, run: Run) -> tuple[ReportData, Path]:
        data = compute_report(run, subject=self.subject, threads=self.options.threads)
        notes = tuple(f"The {stage} stage could not be done: {fault}" for stage, fault in self.clock.faults.items())
        data = replace(data, warnings=(*data.warnings, *notes))
        return data, write_report(data, run.folder)


def _never() -> bool:
    """Default of ``stop``: only the budget ends it."""
    return False
