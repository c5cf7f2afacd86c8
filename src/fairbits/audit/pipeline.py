"""The main job: measure, search, debug, repair, certify, report. Each stage can be left out, and is not done twice.

Its time is divided among the stages (`Shares`), a clock ends those that take too long (`StageClock`), and what a stage
read is compared by content with what is there now, never by the time of files.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fairbits import certify as certificates
from fairbits import debug, domain, engine, language, models, proxies, report, scale, store
from fairbits.audit.plan import timed
from fairbits.audit.run import AuditRun, repair
from fairbits.audit.scores_only import PROXIES, write_study
from fairbits.blocks import Paragraph
from fairbits.errors import OptionError, UsageError
from fairbits.measure import Evaluator, Measure, evaluator_of, shared_evaluators, study_words, text_model
from fairbits.options import AuditOptions, CertifyOptions, RepairOptions
from fairbits.search import DEFAULT, Budget, Settings, Tally, kept_settings
from fairbits.subject import Subject, check_identity

#: Seconds for everything, where nothing is said.
DEFAULT_SECONDS = 60.0
#: Below so many seconds in all, debugging looks at fewer cases.
AMPLE = 45.0
#: Below so many seconds repair leaves out what takes long (distilling, sets of neurons), and further training up to
#: the second figure.
QUICK, TRAINING = 90.0, 120.0
#: An audit may take this much of its budget, and so many seconds of it go into starting, the last step of a repair that
#: is ended, indirect bits and the report.
MAX_SHARE, AROUND = 1.3, 6.0
#: Budgets from so many seconds on are kept: a stage that does not fit is ended. Shorter ones hold no whole audit.
KEPT = 15.0


@dataclass(frozen=True, slots=True)
class Shares:
    """What each stage may take of the whole, in seconds."""

    seconds: float
    measure: float
    search: float
    attack: float
    debug_by: float
    repair_by: float
    certify: float
    samples: int
    retrain: bool
    quick: bool

    @classmethod
    def of(cls, seconds: float) -> Shares:
        """Split a budget among the stages: about a third for the search, the rest for what explains and repairs."""
        if not seconds > 0:
            raise OptionError(f"the budget is {seconds:g} s; it must be larger than 0, e.g. 60s.")
        certify = min(max(0.2, 0.08 * seconds), 60.0)
        return cls(
            seconds,
            measure=0.2 * seconds,
            search=0.35 * seconds,
            attack=max(0.5, 0.04 * seconds),
            debug_by=0.75 * seconds if seconds >= KEPT else inf,
            repair_by=min(1.05 * seconds, MAX_SHARE * seconds - certify - AROUND) if seconds >= KEPT else inf,
            certify=certify,
            samples=1000 if seconds >= AMPLE else 400,
            retrain=seconds >= TRAINING,
            quick=seconds < QUICK,
        )

    def words(self, skip: frozenset[str]) -> str:
        """The plan in one line."""
        training = "with training" if self.retrain else "the quick ones" if self.quick else "without training"
        until = ["as long as it takes" if by == inf else f"until {by:.1f} s" for by in (self.debug_by, self.repair_by)]
        parts = {
            "measure": f"measure at most {self.measure:.1f} s",
            "search": f"search {self.search:.1f} s",
            "debug": f"debug {until[0]}",
            "repair": f"repair {until[1]} ({training}, 2 attacks of {self.attack:.1f} s)",
            "certify": f"certify {self.certify:.1f} s",
            "proxies": "indirect bits and groups",
            "report": "then the report",
        }
        return f"{self.seconds:g} s: " + ", ".join(words for stage, words in parts.items() if stage not in skip)


#: Progress callback, called about every stage: its name, what happens ("start", "say", "done", "kept", "skipped",
#: "failed"), and words; and first of all about the plan ("plan", "plan", words).
StageProgress = Callable[[str, str, str], None]

Found = TypeVar("Found")


class LateError(UsageError):
    """A stage has used up its time."""


class StageClock:
    """Times the stages of one audit, reports their progress, and ends those that take too long."""

    def __init__(
        self, shares: Shares, folder: Path, progress: StageProgress | None = None, *, grants: Sequence[str] = ()
    ):
        self.shares, self.folder, self.grants = shares, folder, grants
        self.progress = progress or (lambda *_: None)
        self.seconds: dict[str, float | None] = {}
        self.faults: dict[str, str] = {}
        self._begin = engine.work_time()

    @property
    def now(self) -> float:
        """Seconds since the audit began; compiling, which is done once per machine, does not count."""
        return engine.work_time() - self._begin

    def timed(self, stage: str, work: Callable[[], Found]) -> Found:
        """Do a stage, and keep how long it took."""
        self.progress(stage, "start", "")
        begin = time.perf_counter()
        found = work()
        self.seconds[stage] = time.perf_counter() - begin
        self.progress(stage, "done", "")
        return found

    def tried(self, stage: str, work: Callable[[], object], *, check: Callable[[], None] | None = None) -> None:
        """Do a stage; where it cannot be done, keep the sentence that says why, and let the audit go on."""
        try:
            if check is not None:
                check()
            self.timed(stage, work)
        except UsageError as error:
            self.faults[stage] = str(error)
            self.seconds[stage] = None
            self.progress(stage, "failed", str(error))

    def omit(self, stage: str, event: str, why: str = "") -> None:
        """Leave a stage out."""
        self.seconds[stage] = None
        self.progress(stage, event, why)

    def command(self, stage: str) -> str:
        """What does a stage that was left out."""
        return shlex.join(["fairbits", stage, str(self.folder), *self.grants])

    def until(self, stage: str, limit: float) -> Callable[[str], None]:
        """A progress callback for a stage, which ends the stage where its time is over."""

        def say(words: str) -> None:
            if self.now > limit:
                raise LateError(
                    f"it did not fit into the budget of {self.shares.seconds:g} s (it had until {limit:.1f} s and was "
                    f"still at {words!r} after {self.now:.1f} s); do it with: {self.command(stage)}"
                )
            self.progress(stage, "say", words)

        return say


#: Values that neurons are held at between two looks at the clock.
STEP = 64
#: After this share of the whole, no fresh search attacks what is repaired: that is half of a repair's time.
ATTACK_BY = 0.6
#: Repair asks a slow model about as often as measuring the table so many times does, and takes so many seconds at the
#: least: not begun where less time is left.
REPAIR_MEASURES, REPAIR_LEAST = 10, 3.0


def rows_in_time(evaluator: Evaluator, subject: Subject, seconds: float, clock: StageClock) -> int | None:
    """How many rows a slow model can be asked about in the time of measuring."""
    # Kept answers of a language model are quick, new ones are not: who is measured must not depend on it. A network
    # gives millions of scores a second: a stopwatch on a busy machine is no reason to leave anybody out.
    if _asks_language_model(subject) or isinstance(subject.model, models.Network):
        return None
    codes = subject.table.codes
    evaluator.evaluate(codes[:1])  # compiles, connects
    rows = int(seconds / timed(evaluator, codes[:8])[1])
    if rows < len(codes):
        # A small batch says too little about a large one: ask about more, unless that alone would take too long.
        _, each = timed(evaluator, codes[: max(8, min(rows // 4, 512))])
        rows = max(1, int((seconds - clock.now) / each))
    return None if rows >= len(codes) else rows


def check_time(stage: str, clock: StageClock, measured: float) -> None:
    """Refuse to begin a stage that could not be ended in time."""
    limit = clock.shares.debug_by if stage == "debug" else clock.shares.repair_by
    clock.until(stage, limit)("not begun")
    left = limit - clock.now
    if stage == "repair" and limit < inf and left < max(REPAIR_LEAST, REPAIR_MEASURES * measured):
        raise LateError(
            f"{left:.1f} s of {clock.shares.seconds:g} s were left, too few to end it in time; do it with: "
            f"{clock.command(stage)}"
        )


def in_steps(progress: Callable[[str], None]) -> debug.TryOut:
    """Holds neurons at values in this process, some at a time, so that a stage that takes too long can be ended."""

    def try_out(
        evaluator: Evaluator,
        subject: Subject,
        cases: domain.Codes,
        dos: list[models.Do],
        *,
        judged: bool,
        measure: Measure = "q_inf",
    ) -> debug.Tried:
        found = []
        for start in range(0, max(len(dos), 1), STEP):
            progress(f"holding neurons: {start:,} of {len(dos):,} values tried")
            found.append(
                debug.try_here(evaluator, subject, cases, dos[start : start + STEP], judged=judged, measure=measure)
            )
        return debug.Tried(
            *(np.concatenate([getattr(one, part.name) for one in found]) for part in fields(debug.Tried))
        )

    return try_out


def is_current(run: store.Run, name: str) -> bool:
    """Whether a stage's file is there and was made from the cases that are there now, by their content."""
    path = run.folder / name
    return path.is_file() and store.read_json(path).get("content") == run.content()


def keep_study(folder: Path, subject: Subject, options: AuditOptions) -> bool:
    """Keep a study that is there, where it is about this subject and these periods; papers to file may be added."""
    kept = report.proxies_of(folder, subject) or {}
    if (kept.get("made_with") or {}).get("id") != subject.identity.id or options.by not in (None, kept.get("by")):
        return False
    stated = {"data_source": options.data_source, "distributed": options.distributed}
    wanted = {**(kept.get("filing") or {}), **{name: value for name, value in stated.items() if value}}
    if wanted != kept.get("filing"):  # what is filed beside the tables changes none of them
        store.write_json(folder / PROXIES, {**kept, "filing": wanted})
    return True


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The run, its report, and how long each stage took (None: skipped, kept from before, or not possible).

    Parameters
    ----------
    run
        The run on disk, with its model.
    data
        The record that all faces of the report show.
    page
        The HTML page.
    seconds
        By stage; None where it was skipped, kept from before, or not possible.
    faults
        By stage that failed: the sentence that says why.
    stopped
        Whether a person ended the audit early.
    """

    run: AuditRun
    data: report.ReportData
    page: Path
    seconds: dict[str, float | None] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    stopped: bool = False

    def __repr__(self) -> str:
        done = ", ".join(name for name, seconds in self.seconds.items() if seconds is not None)
        return f"<AuditResult {str(self.page)!r}: {done or 'nothing done anew'}>"

    def _repr_html_(self) -> str:
        look = report.audit_look(self.data, asked=(), faults=self.faults, seconds=self.seconds, waited="stages")
        return report.render_fragment([*look, Paragraph(f"The page: {self.page}", tone="small")])


#: Options that a run keeps: one that goes on has its own, and refuses others.
KEPT_OPTIONS = ("seed", "epsilon", "partition", "measure", "within", "min_plausibility")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledOptions(AuditOptions):
    """Options of an audit in progress: what stages need is there."""

    seed: int = 0
    partition: str = "constrained"
    measure: str = "q_inf"


def settled(options: AuditOptions, manifest: Mapping[str, Any] | None) -> SettledOptions:
    """Values of the run where one goes on (others are refused), those asked for otherwise, and defaults."""
    asked = {name: getattr(options, name) for name in KEPT_OPTIONS}
    if manifest is not None:
        kept_settings(manifest, asked)
        asked = {name: manifest.get(name) if value is None else value for name, value in asked.items()}
    given = {one.name: getattr(options, one.name) for one in fields(options) if one.name not in KEPT_OPTIONS}
    return SettledOptions(**given, **{name: value for name, value in asked.items() if value is not None})


def audit_subject(
    subject: Subject,
    options: AuditOptions,
    folder: Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    progress: StageProgress | None = None,
    stop: Callable[[], bool] | None = None,
) -> AuditResult:
    """Do all stages of an audit and write the report."""
    with shared_evaluators():
        return Pipeline(subject, options, folder, resume=resume, force=force, progress=progress, stop=stop).do()


class Pipeline:
    """One audit in progress."""

    def __init__(
        self,
        subject: Subject,
        options: AuditOptions,
        folder: Path | None = None,
        *,
        resume: bool = False,
        force: bool = False,
        progress: StageProgress | None = None,
        stop: Callable[[], bool] | None = None,
    ):
        self.folder = folder or store.new_folder(subject.name, "audit")
        #: The run that goes on, if one does.
        self.before = store.Run.open(self.folder) if resume else None
        self.options = settled(options, None if self.before is None else self.before.manifest)
        self.force, self.subject = force, subject
        if self.before is not None:
            if subject.repeats == 1:
                self.subject = subject.with_repeats(self.before.manifest.get("repeats", 1))
            check_identity(self.before.manifest, self.subject.identity, what=f"the run in {str(self.folder)!r}")
        # Nobody but the people of a table of twins can be scored, and a language model is paid for each question. Where
        # no twin can score otherwise, by structure, it is 0 bits exactly, for everybody: a search, a cause and a repair
        # would spend the budget on finding nothing; what the score tells indirectly is what there is to find.
        #: Stages that are left out, with the reason.
        self.left_out = dict.fromkeys(options.skip, "--skip")
        few = isinstance(subject.model, models.TwinScores) or _asks_language_model(subject)
        if few or self._evaluator.blind:
            why = "only twins that have been scored are compared" if few else "no twin can score differently"
            self.left_out |= dict.fromkeys(("search", "debug", "repair", *(["certify"] if few else [])), why)
        self.options = replace(self.options, skip=frozenset(self.left_out))
        self.shares = Shares.of(DEFAULT_SECONDS if options.seconds is None else options.seconds)
        self.clock = StageClock(self.shares, self.folder, progress, grants=subject.options.typed_grants())
        self.stop = stop or (lambda: False)
        self.measured = 0.0

    @cached_property
    def _evaluator(self) -> Evaluator:
        options = self.options
        return evaluator_of(self.subject, epsilon=options.epsilon, partition=options.partition, threads=options.threads)

    def do(self) -> AuditResult:
        """Do all stages, one after the other."""
        clock, subject = self.clock, self.subject
        clock.progress("plan", "plan", self.shares.words(self.options.skip))
        before = clock.now
        document = clock.timed("measure", self._measure)
        if not isinstance(subject.model, models.Network):  # never slow, however busy the machine
            self.measured = clock.now - before
        run = self._search()
        store.write_json(run.folder / report.MEASURED, document)
        if text_model(subject) is not None:
            clock.tried("words", lambda: self._words(run))
        # Where nobody's twins differ there is nothing to explain, and nothing to mend.
        if run.summary is not None and (run.summary.get("k_max") or 1) <= 1:
            self.left_out = dict.fromkeys(("debug", "repair"), "all twins score the same") | self.left_out
        for stage, work in (("debug", self._debug), ("repair", self._repair)):
            kept, check = partial(is_current, run, f"{stage}.json"), partial(check_time, stage, clock, self.measured)
            self._do(stage, run, work, kept=kept, check=check)
        self._do("certify", run, self._certify, kept=lambda: self._certified(run))
        keep = partial(keep_study, run.folder, subject, self.options)
        self._do("proxies", run, self._proxies, kept=lambda: self.before is not None and keep())
        data, page = clock.timed("report", lambda: self._report(run))
        return AuditResult(AuditRun.around(run, subject), data, page, clock.seconds, clock.faults, self.stop())

    def _measure(self) -> dict[str, Any]:
        subject, evaluator, clock = self.subject, self._evaluator, self.clock
        kept = None if self.before is None else report.kept_measurement(self.folder, subject, evaluator)
        if kept is not None:
            return kept

        def progress(done: int, total: int) -> None:
            clock.progress("measure", "say", f"{done:,} of {total:,} rows")

        rows = rows_in_time(evaluator, subject, self.shares.measure, clock)
        return report.measure_rows(evaluator, subject, self.options.seed, progress=progress, max_rows=rows)

    def _search(self) -> store.Run:
        run, skip = self.before, "search" in self.options.skip
        if run is not None and (skip or self._enough(run)):
            self.clock.omit("search", "skipped" if skip else "kept", self.left_out.get("search", ""))
            return run
        settings = self._settings(run)

        def watch(tally: Tally, seconds: float) -> None:
            self.clock.progress("search", "say", f"{tally.cases:,} cases, largest k {tally.k_max}, {seconds:.0f} s")

        return self.clock.timed(
            "search",
            lambda: scale.search(
                self.subject,
                settings,
                self.folder,
                executor_options=self.options.executor,
                resume=run is not None,
                force=self.force,
                watch=watch,
                stop=self.stop,
                began=engine.work_time() if self.shares.seconds >= KEPT else None,
            ),
        )

    def _enough(self, run: store.Run) -> bool:
        """Whether the search has ended, and no longer budget was asked for."""
        # Preparing and summing up are taken from what was given.
        used = max((run.summary or {}).get("seconds") or 0.0, run.manifest["budget"].get("seconds") or 0.0)
        return run.status == "finished" and (self.options.seconds is None or used >= self.shares.search)

    def _settings(self, run: store.Run | None) -> Settings:
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

    def _do(
        self,
        stage: str,
        run: store.Run,
        work: Callable[[store.Run], None],
        *,
        kept: Callable[[], bool],
        check: Callable[[], None] | None = None,
    ) -> None:
        """A stage after the search. What it cannot do is said, and the audit goes on."""
        if stage in self.left_out or self.stop():
            self.clock.omit(stage, "skipped", self.left_out.get(stage, "stopped"))
        elif kept():
            self.clock.omit(stage, "kept")
        else:
            self.clock.tried(stage, lambda: work(run), check=check)

    def _proxies(self, run: store.Run) -> None:
        """What reaches the score without the columns."""

        options = self.options
        found = proxies.study_subject(
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

    def _words(self, run: store.Run) -> None:
        """The families of cues, with their nulls."""
        say = self.clock.until("words", inf)
        study = study_words(self.subject, epsilon=self.options.epsilon, seed=self.options.seed, progress=say)
        document = {"study": store.plain(study), "made_with": self.subject.identity.document()}
        store.write_json(run.folder / "words.json", document)

    def _debug(self, run: store.Run) -> None:

        say = self.clock.until("debug", self.shares.debug_by)
        debug.debug_run(
            run,
            subject=self.subject,
            samples=self.shares.samples,
            inside=isinstance(self.subject.model, models.HasActivations | models.HasTrees),
            seed=self.options.seed,
            threads=self.options.threads,
            # Half of what is left until repair must begin: trainings that do not fit are left out, and said to be.
            patience=max(0.0, 0.5 * (min(self.shares.debug_by, self.shares.seconds) - self.clock.now)),
            stage=say,
            try_out=scale.try_out_by(self.options.executor) or in_steps(say),
            train_out=scale.train_out_by(self.options.executor),
        )

    def _repair(self, run: store.Run) -> None:
        options, shares = self.options, self.shares
        late = shares.repair_by < inf and self.clock.now > ATTACK_BY * shares.seconds
        asked = RepairOptions(
            attack_budget=None if late else Budget(seconds=shares.attack),
            retrain=shares.retrain,
            quick=shares.quick,
            seed=options.seed,
            threads=options.threads,
            workers=options.workers,
            ray=options.ray,
        )
        repair(run, asked, subject=self.subject, watch=self.clock.until("repair", shares.repair_by))

    def _certify(self, run: store.Run) -> None:
        """What can be said about everybody, before and after the repair; it needs no cases."""

        chosen = CertifyOptions(
            seconds=self.shares.certify,
            seed=self.options.seed,
            epsilon=self.options.epsilon,
            threads=self.options.threads,
            proofs=self.shares.seconds >= KEPT,
        )
        watch = partial(self.clock.progress, "certify", "say")
        certificates.certify_run(run.folder, self.subject, chosen, stop=self.stop, watch=watch)

    def _certified(self, run: store.Run) -> bool:
        """Whether there are statements about the model and the repair as they are now."""

        anew = any(self.clock.seconds.get(stage) is not None for stage in ("search", "repair"))
        return self.before is not None and not anew and bool(certificates.read_statements(run.folder))

    def _report(self, run: store.Run) -> tuple[report.ReportData, Path]:
        if self.clock.faults:
            store.note_checks(run.folder, not_run=self.clock.faults)
        data = report.compute_report(run, subject=self.subject, threads=self.options.threads)
        return data, report.write_report(data, run.folder)


def _asks_language_model(subject: Subject) -> bool:
    model = text_model(subject)
    return model is not None and isinstance(model.decider, language.Chat)
