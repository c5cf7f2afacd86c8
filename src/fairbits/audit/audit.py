"""A model and a table in, figures out: what the command line does, for Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.audit.comparison import ComparisonAudit
from fairbits.audit.search import SearchAudit
from fairbits.audit.table import TableAudit
from fairbits.errors import OptionError

if TYPE_CHECKING:
    from fairbits.audit.clock import StageProgress
    from fairbits.audit.options import AuditOptions
    from fairbits.audit.result import AuditResult
    from fairbits.audit.scores_only import ScoresAudit
    from fairbits.debug import DebugResult
    from fairbits.repair import RepairResult
    from fairbits.store import Run


class Audit(TableAudit, SearchAudit, ComparisonAudit):
    """One model, one table, one schema.

    ``model`` is a loaded model, a file, an address, a reference to code, or an object of scikit-learn, PyTorch, Keras
    or anything else that predicts; ``table`` a file, an Arrow, pandas or polars table, or a :class:`~fairbits.Table`
    of codes. ``options`` are those of :class:`~fairbits.models.ModelOptions`, such as ``score_of="approved"`` (the
    class that a single output speaks of), ``trust_code=True`` for a reference, ``trust_pickle=True`` for a pickle,
    ``credential="NAME"`` for an endpoint, or ``max_rows``. Where there are labels, a model that decides against them is
    refused, unless ``as_is``.

    Parameters
    ----------
    model
        What decides: see above.
    table
        The people: see above.
    schema
        Attributes, classes and rules; :meth:`from_table` infers them.
    encoding
        How codes become inputs of the model; the plain one that fits by default.
    name
        What reports call the subject.
    as_is
        Examine a model that decides against the labels as it is, and say so in a note.
    **options
        Of :class:`~fairbits.models.ModelOptions`.
    """

    def debug(self, run: Run, **options: Any) -> DebugResult:
        """Find out which layers, neurons and attributes the bits of a run's cases come from.

        Parameters
        ----------
        run
            A run of this subject.
        **options
            Those of :meth:`AuditRun.debug`.

        Returns
        -------
        DebugResult
            What was found; also written to the run's folder.
        """
        return self.open(run.folder).debug(**options)

    def repair(
        self,
        run: Run | None = None,
        *,
        evaluations: int = 20_000,
        out: str | Path | None = None,
        force: bool = False,
        **options: Any,
    ) -> RepairResult:
        """Repair the model by what a run found, or a short search of its own.

        Parameters
        ----------
        run
            A run of this subject, into whose folder all is written; None makes one.
        evaluations, out, force
            Of that search: people that it asks about, its folder (by default a new one below ``runs``), and whether an
            earlier run there is replaced.
        **options
            Those of :meth:`AuditRun.repair`.

        Returns
        -------
        RepairResult
            All candidates with their figures, and the chosen one.

        Raises
        ------
        OptionError
            If a search is described although there is a run.
        """
        from fairbits.search import Budget

        if run is None:
            shared = {name: options[name] for name in ("seed", "threads") if name in options}
            run = self.search(budget=Budget(evaluations=evaluations), out=out, force=force, **shared)
        elif out is not None or force:
            raise OptionError("a repair writes into the folder of its run; leave --out and --force out.")
        return self.open(run.folder).repair(**options)

    def report(self, run: Run, **options: Any) -> Path:
        """Write the report of a run.

        Parameters
        ----------
        run
            A run of this subject.
        **options
            Those of :meth:`AuditRun.report`.

        Returns
        -------
        Path
            Path of report.html.
        """
        return self.open(run.folder).report(**options)

    def audit(
        self,
        *,
        budget: float | str | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        skip: Iterable[str] = (),
        seed: int | None = None,
        epsilon: float | None = None,
        partition: str | None = None,
        threads: int | None = None,
        workers: int | None = None,
        ray: str | None = None,
        repeats: int | None = None,
        within: int | None = None,
        min_plausibility: float | None = None,
        by: str | None = None,
        measure: str | None = None,
        data_source: str | None = None,
        distributed: str | None = None,
        force: bool = False,
        progress: StageProgress | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> AuditResult | ScoresAudit:
        """Measure, search, debug, repair, certify and report in one go.

        Parameters
        ----------
        budget
            About how long in all, as "60s" (the default) or in seconds.
        out
            Folder of the run; by default a new folder below ``runs``.
        resume
            Go on with the run in ``out``: whatever is not given is the run's own, and other settings are refused.
            Stages that read the cases that are there now are not done again.
        skip
            Stages to leave out: search, debug, repair, certify.
        seed
            Same seed, same draws; 0 by default. How far a search comes in its seconds is up to the machine.
        epsilon
            Tolerance between scores that count as the same; None takes 0.025, or 2.5 % of a regression's range.
        partition
            How scores become classes: "constrained" (fewest classes, the default) or "grid" (fixed bins).
        threads
            Number of threads; None means all cores.
        workers
            Number of worker processes; None works in this process.
        ray
            A Ray cluster to work on: "local", or its address.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        within
            Ask only about people who differ from a real row in at most so many attributes; None sets no limit.
        min_plausibility
            Ask only about people who are at least as ordinary as this percentage of real rows; None sets no limit.
        by
            A column of periods, such as a month; None tells no periods apart.
        measure
            What the search raises, cases are ranked by, and debugging and repairs lower: "q_inf" (default) or "q_1".
        data_source, distributed
            For the tables to file: where the data come from, and since when the tool is in use.
        force
            Replace a run that is in the folder ``out``; nothing else is ever removed.
        progress
            Progress callback, called with the stage, what happens ("start", "say", "done", "kept", "skipped",
            "failed"), and words about it.
        stop
            Gives whether to end early; the audit can go on later.

        Returns
        -------
        AuditResult or ScoresAudit
            The run, the report's data and page, and what each stage took; the latter, groups and indirect bits, for a
            subject with scores only.

        Raises
        ------
        OptionError
            If an option makes no sense.
        """
        from fairbits.audit.options import AuditOptions
        from fairbits.search import seconds_of

        options = AuditOptions(
            seconds=seconds_of(budget) if isinstance(budget, str) else budget,
            seed=seed,
            epsilon=epsilon,
            partition=partition,
            threads=threads,
            skip=frozenset(skip),
            workers=workers,
            ray=ray,
            repeats=repeats,
            within=within,
            min_plausibility=min_plausibility,
            by=by,
            measure=measure,
            data_source=data_source,
            distributed=distributed,
            force=force,
        )
        return self.audit_with(options, out, resume=resume, progress=progress, stop=stop)

    def audit_with(
        self,
        options: AuditOptions,
        out: str | Path | None = None,
        *,
        resume: bool = False,
        progress: StageProgress | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> AuditResult | ScoresAudit:
        """Audit under options that are one record already.

        Parameters
        ----------
        options
            How the audit is to be done.
        out, resume, progress, stop
            As for :meth:`audit`.

        Returns
        -------
        AuditResult or ScoresAudit
            As of :meth:`audit`.
        """
        from fairbits.audit.pipeline import audit_subject
        from fairbits.audit.scores_only import audit_scores
        from fairbits.store import place_of

        if resume and out is None:
            raise OptionError("--resume needs a run to go on with; give its folder as --out.")
        place = None if out is None else place_of(out)
        if self.subject.scores_only:
            return audit_scores(self.subject, options, place, resume=resume, progress=progress)
        return audit_subject(self.subject, options, place, resume=resume, progress=progress, stop=stop)
