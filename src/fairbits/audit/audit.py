"""A model and a table in, figures out: what the command line does, for Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fairbits.data import load_subject
from fairbits.domain import Encoding, GrantOptions, Schema, Table, as_arrow, check_domain, read_arrow, table_from_arrow
from fairbits.engine import work_time
from fairbits.measure import Measurement, Progress, evaluator_of, measure_table, noise_of
from fairbits.models import ModelOptions, read_model
from fairbits.subject import Subject, make_subject

if TYPE_CHECKING:
    from fairbits.audit.result import AuditResult
    from fairbits.audit.run import AuditRun
    from fairbits.audit.scores_only import ScoresAudit
    from fairbits.certify import Certificate
    from fairbits.debug import DebugResult
    from fairbits.diff import ModelDiff
    from fairbits.measure import GroupTable
    from fairbits.proxies import ProxyStudy
    from fairbits.repair import Alternatives, Proposer, RepairResult
    from fairbits.scale import ExecutorOptions
    from fairbits.search import Budget, Settings, Strategy, Tally
    from fairbits.store import Run


class Audit:
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

    def __init__(
        self,
        model: Any,
        table: Any,
        schema: Schema,
        *,
        encoding: Encoding | None = None,
        name: str = "subject",
        as_is: bool = False,
        **options: Any,
    ):
        chosen = ModelOptions.of(options)
        loaded = read_model(model, schema, chosen)
        people = _table(table, schema, chosen.max_rows)
        subject = make_subject(name, loaded, schema, people, encoding=encoding, options=chosen, original=model)
        self.subject = subject.checked(as_is=as_is)

    @classmethod
    def of(cls, subject: Subject | str | Path, *, as_is: bool = False, **grants: Unpack[GrantOptions]) -> Audit:
        """An audit of a built-in subject or a ``subject.toml``.

        Parameters
        ----------
        subject
            The name of a built-in subject, a file, or a loaded subject.
        as_is
            Accept a model that decides against the labels of its table.
        **grants
            What files from outside may do, as for :func:`~fairbits.load_subject`.

        Raises
        ------
        ModelError
            If the model decides against the labels and ``as_is`` is not given.
        """
        audit = cls.__new__(cls)
        loaded = subject if isinstance(subject, Subject) else load_subject(subject, **grants)
        audit.subject = loaded.checked(as_is=as_is)
        return audit

    @classmethod
    def from_table(
        cls,
        model: Any,
        table: Any,
        *,
        target: str,
        protected: str | Iterable[str],
        favourable: object = None,
        ignored: Iterable[str] = (),
        max_twins: int = 1000,
        threshold: float | None = None,
        name: str = "subject",
        as_is: bool = False,
        **options: Any,
    ) -> Audit:
        """An audit of a model and a table as they are: what people are made of is read off the table.

        Where nobody says which output speaks of which of two classes, the reading that agrees with the labels is taken,
        and a note says so.

        Parameters
        ----------
        model
            Anything that :class:`Audit` takes.
        table
            A file, or an Arrow, pandas or polars table, with the target and the protected attributes.
        target
            The column that the model predicts.
        protected
            The protected attributes.
        favourable
            The value of the target whose probability is the score; by default the last class.
        ignored
            Columns to leave out. Dates, identifiers and what the model never sees are left out anyway, with a note.
        max_twins
            Combinations of protected values at most: protected numbers of many values get ranges.
        threshold
            The probability from which on a decision between two classes is favourable; 0.5 by default.
        name
            What to call the subject.
        as_is
            Accept a model that decides against the labels of its table.
        **options
            Those of :class:`~fairbits.models.ModelOptions`.

        Returns
        -------
        Audit
            ``audit.subject.notes`` says what was left out and what was guessed.

        Raises
        ------
        FairbitsError
            If the table or the model cannot be read, or do not fit each other.
        """
        from fairbits.subject import subject_of_table

        chosen = ModelOptions.of(options)
        asked: dict[str, Any] = {"target": target, "protected": protected, "favourable": favourable, "ignored": ignored}
        asked |= {"max_twins": max_twins, "threshold": threshold, "name": name}
        subject = subject_of_table(model, table, **asked, options=chosen, as_is=as_is)
        audit = cls.__new__(cls)
        audit.subject = subject.checked(as_is=as_is)
        return audit

    def __repr__(self) -> str:
        return f"<Audit of {self.subject.short()}>"

    def measure(
        self,
        *,
        epsilon: float | None = None,
        partition: str = "constrained",
        threads: int | None = None,
        seed: int = 0,
        repeats: int | None = None,
        progress: Progress | None = None,
    ) -> Measurement:
        """Measure the bits of everybody in the table.

        Some rows are asked twice first: where the answers vary, ``Measurement.noise`` says by how much, and how many
        bits that makes by itself.

        Parameters
        ----------
        epsilon
            Tolerance between scores that count as the same; None takes 0.025, or 2.5 % of a regression's range.
        partition
            How scores become classes: "constrained" (fewest classes) or "grid" (fixed bins).
        threads
            Number of threads; None means all cores.
        seed
            Of the bootstrap intervals; figures do not depend on it.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        progress
            Called with how many people are done, and how many there are.

        Returns
        -------
        Measurement
            Figures of everybody, with ``summary()``, ``worst()``, ``to_frame()``.

        Raises
        ------
        FairbitsError
            If the model fails, or gives scores that are not finite.
        """
        subject = self._answering(repeats)
        evaluator = evaluator_of(subject, epsilon=epsilon, partition=partition, threads=threads)
        noise = noise_of(subject, evaluator)
        return measure_table(evaluator, subject.table, np.random.default_rng(seed), noise=noise, progress=progress)

    def search(
        self,
        *,
        budget: Budget | str = "60s",
        strategy: str | Strategy | None = None,
        seed: int = 0,
        epsilon: float | None = None,
        partition: str = "constrained",
        within: int | None = None,
        min_plausibility: float | None = None,
        measure: str = "q_inf",
        threads: int | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        workers: int | None = None,
        ray: str | None = None,
        shards: int | None = None,
        batch: int | None = None,
        repeats: int | None = None,
        progress: Callable[[Tally, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
        **options: Any,
    ) -> AuditRun:
        """Search for the people whose twins are treated most differently; every case is kept on disk.

        What is found can be debugged, repaired and reported from there: ``run.debug()``, ``run.repair()``.

        Parameters
        ----------
        budget
            A duration such as "30s", or a :class:`~fairbits.Budget` of seconds, evaluations, queries or cases.
            Time counts from this call: preparing and summing up are part of it, compiling is not.
        strategy
            How to search: a name such as "climb" (the default), "dice", "adf" or "random", or an object
            of your own made from ``fairbits.search.Strategy``.
        seed
            Same seed, same cases, whatever the threads or workers.
        epsilon
            Tolerance between scores that count as the same; None takes 0.025, or 2.5 % of a regression's range.
        partition
            How scores become classes: "constrained" (fewest classes) or "grid" (fixed bins).
        within
            Ask only about people who differ from a real row in at most so many attributes; None sets no limit.
        min_plausibility
            Ask only about people who are at least as ordinary as this percentage of real rows; None sets no limit.
        measure
            What the search raises, cases are ranked by, and debugging and repairs lower: "q_inf" or "q_1".
        threads
            Number of threads; None means all cores.
        out
            Folder or address (such as "s3://bucket/run") of the run; by default a new folder below ``runs``.
        resume
            Go on with the run in ``out``.
        force
            Replace an earlier run in ``out``.
        workers
            Number of worker processes; None works in this process.
        ray
            A Ray cluster to work on: "local", or its address.
        shards
            Number of tasks that the search is cut into; None follows the budget.
        batch
            Ask the model about so many people at a time; None follows its speed.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        progress
            Progress callback, called with the counts so far and the seconds of the search.
        stop
            Gives whether to end early; the run can go on later.
        **options
            Options of the strategy, such as ``seeds=100``.

        Returns
        -------
        AuditRun
            The run, with its subject at hand.

        Raises
        ------
        OptionError
            If an option makes no sense, or ``out`` is not empty.
        CapabilityError
            If the strategy needs what the model does not offer, such as gradients.
        """
        from fairbits.scale import ExecutorOptions
        from fairbits.search import DEFAULT, Budget, Settings, seconds_of

        began = work_time()
        limit = Budget(seconds=seconds_of(budget)) if isinstance(budget, str) else budget
        settings = Settings(
            limit,
            DEFAULT,
            options,
            seed,
            epsilon,
            partition,
            within,
            min_plausibility,
            threads,
            measure=measure,
            batch=batch,
        ).with_strategy(strategy or DEFAULT)
        return self.search_with(
            settings,
            out,
            executor_options=ExecutorOptions(workers, ray, threads),
            shards=shards,
            resume=resume,
            force=force,
            repeats=repeats,
            progress=progress,
            stop=stop,
            began=began,
        )

    def search_with(
        self,
        settings: Settings,
        out: str | Path | None = None,
        *,
        executor_options: ExecutorOptions | None = None,
        shards: int | None = None,
        resume: bool = False,
        force: bool = False,
        repeats: int | None = None,
        progress: Callable[[Tally, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
        began: float | None = None,
        **grants: Unpack[GrantOptions],
    ) -> AuditRun:
        """Search under settings that are one record already, such as those of an earlier run.

        Parameters
        ----------
        settings
            Budget, strategy, seed and all else that decides which cases are found.
        out
            Folder or address of the run; by default a new folder below ``runs``.
        executor_options
            Workers and threads; None works in this process.
        shards, resume, force, repeats, progress, stop
            As for :meth:`search`.
        began
            When the budget of seconds began to count, on the clock of ``fairbits.engine.work_time``; None: now.
        **grants
            What workers may do when they open the subject, such as ``trust_pickle``.

        Returns
        -------
        AuditRun
            The run, with its subject at hand.
        """
        from fairbits.scale import search

        found = search(
            self._answering(repeats),
            settings,
            out,
            executor_options=executor_options,
            shards=shards,
            resume=resume,
            force=force,
            watch=progress,
            stop=stop,
            began=began,
            **grants,
        )
        return self.open(found.folder)

    def _answering(self, repeats: int | None) -> Subject:
        return self.subject if repeats is None else self.subject.with_repeats(repeats)

    def groups(self, *, seed: int = 0) -> tuple[GroupTable, ...]:
        """Counts, base rates, selection rates, impact ratios and errors by protected attribute and intersection.

        Parameters
        ----------
        seed
            Only moves intervals of means, and the sample of a table of more than 200,000 rows.

        Returns
        -------
        tuple of GroupTable
            Also for protected attributes that the model does not take.
        """
        from fairbits.measure import subject_groups
        from fairbits.randomness import generator

        return subject_groups(self.subject, generator(seed, "groups"))

    def proxies(
        self,
        *,
        justified: Iterable[str] | None = None,
        by: str | None = None,
        seed: int = 0,
        out: str | Path | None = None,
        data_source: str | None = None,
        distributed: str | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> ProxyStudy:
        """What reaches the score without the protected columns: indirect bits, through what, for whom, over time.

        Parameters
        ----------
        justified
            Attributes that may decide; by default those that the subject names.
        by
            A column of periods, such as a month.
        seed
            Same seed, same figures.
        out
            A folder to write proxies.json to.
        data_source, distributed
            For tables to file: where the data come from, and since when the tool is in use.
        progress
            Progress callback, called with what is being done.

        Returns
        -------
        ProxyStudy
            ``document()`` is the content of proxies.json.

        Raises
        ------
        SchemaError
            Where nothing is protected, or a justified attribute is protected or not there.
        """
        from fairbits.proxies import study_subject
        from fairbits.store import write_json

        chosen = (justified,) if isinstance(justified, str) else None if justified is None else tuple(justified)
        found = study_subject(
            self.subject,
            justified=chosen,
            by=by,
            seed=seed,
            data_source=data_source,
            distributed=distributed,
            progress=progress,
        )
        if out is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
            made_with = self.subject.identity.document()
            write_json(Path(out) / "proxies.json", {**found.document(), "made_with": made_with})
        return found

    def diff(
        self,
        other: Any,
        *,
        epsilon: float | None = None,
        partition: str = "constrained",
        seed: int = 0,
        threads: int | None = None,
        top: int = 10,
        people: int | None = None,
        **grants: Unpack[GrantOptions],
    ) -> ModelDiff:
        """What changes for these people when another model takes the place of this one.

        Parameters
        ----------
        other
            Another :class:`Audit` or subject about the same people, or a model: a file, an address, a reference, or an
            object that predicts.
        epsilon, partition, threads
            As for :meth:`measure`.
        seed
            Same seed, same intervals.
        top
            How many of those who got worse are listed.
        people
            How many are compared at most; None takes all, or as many as can be asked in half a minute.
        **grants
            What a model file may do.

        Returns
        -------
        ModelDiff
            ``document()`` is what ``fairbits diff --json`` prints.

        Raises
        ------
        OptionError
            Where schema or people differ.
        """
        from fairbits.diff import diff_subjects, with_model

        if isinstance(other, Audit | Subject):
            after = other.subject if isinstance(other, Audit) else other
        else:
            after = with_model(self.subject, other, **grants)
        options: dict[str, Any] = {"epsilon": epsilon, "partition": partition, "threads": threads}
        return diff_subjects(self.subject, after, **options, seed=seed, top=top, people=people)

    def open(self, folder: str | Path) -> AuditRun:
        """Open an earlier run of this subject.

        Parameters
        ----------
        folder
            Folder or address of the run.

        Returns
        -------
        AuditRun
            The run, for ``debug()``, ``repair()``, ``report()``.

        Raises
        ------
        OptionError
            If there is no run, or it is about another model.
        """
        from fairbits.audit.run import AuditRun

        return AuditRun.open(folder, subject=self.subject)

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

    def alternatives(
        self,
        *,
        run: Run | None = None,
        proposals: Sequence[str | Proposer] | None = None,
        trials: int = 20,
        quick: bool = False,
        evaluations: int = 20_000,
        out: str | Path | None = None,
        force: bool = False,
        seed: int = 0,
        threads: int | None = None,
        command: str = "",
        watch: Callable[[str], None] | None = None,
    ) -> Alternatives:
        """Every less discriminatory alternative that is known here, judged on the same held-out rows, with its log.

        Parameters
        ----------
        run
            A search of this subject, whose cases repairs are planned by; None makes one of ``evaluations`` people.
        proposals
            What is tried: names such as "reweigh" ("mitigators" for all), or objects of your own with a ``name`` and a
            ``propose(planner)``; None tries everything. The guard is always among them.
        trials
            Settings that the search over hyper-parameters tries; 0 leaves it out.
        quick
            Leave out surgery on weights and distilling, which take longest.
        evaluations
            People that the search asks about, where there is no run.
        out
            Folder of that search; by default a new folder below ``runs``.
        force
            Replace an earlier run in ``out``.
        seed
            Same seed, same candidates.
        threads
            Number of threads; None means all cores.
        command
            The command that makes it again, for the page.
        watch
            Progress callback, called with what is being done.

        Returns
        -------
        Alternatives
            ``front`` are the candidates that no other beats; ``folder`` has the log, the page and their models.

        Raises
        ------
        OptionError
            If a proposal is not known, or ``out`` is not empty.
        """
        from fairbits.audit.alternatives import alternatives_to

        return alternatives_to(
            self.subject,
            run=run,
            proposals=proposals,
            trials=trials,
            quick=quick,
            evaluations=evaluations,
            out=out,
            force=force,
            seed=seed,
            threads=threads,
            command=command,
            watch=watch,
        )

    def repair(self, run: Run, **options: Any) -> RepairResult:
        """Repair the model by what a run found.

        Parameters
        ----------
        run
            A run of this subject.
        **options
            Those of :meth:`AuditRun.repair`.

        Returns
        -------
        RepairResult
            All repairs with their figures, and the chosen one.
        """
        return self.open(run.folder).repair(**options)

    def certify(
        self,
        *,
        budget: float | str = "30s",
        changes: int = 1,
        k: int | None = None,
        seed: int = 0,
        epsilon: float | None = None,
        threads: int | None = None,
        rates: bool = False,
        progress: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Certificate:
        """What can be said about everybody: exact, proved over sets of people, or statistical.

        Parameters
        ----------
        budget
            About how long in all, as "30s" or in seconds.
        changes
            How far from real rows the statement about near people goes.
        k
            Prove at most so many classes; None asks for the largest k, where it can be found.
        seed
            Of the sample.
        epsilon, threads
            As for :meth:`measure`.
        rates
            Also bound how often each group is decided for.
        progress
            Progress callback, called with what is being done.
        stop
            Gives whether to end early; what is certain by then is said.

        Returns
        -------
        Certificate
            ``statements`` from the strongest to the weakest, and ``notes`` on what could not be proved.
        """
        from fairbits.certify import CertifyOptions, certify_subject
        from fairbits.search import seconds_of

        seconds = seconds_of(budget) if isinstance(budget, str) else budget
        options = CertifyOptions(seconds, changes, k, seed, epsilon, threads, rates=rates)
        quiet: dict[str, Any] = {"stop": stop, "watch": progress}
        return certify_subject(
            self.subject, options, **{name: each for name, each in quiet.items() if each is not None}
        )

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
        seed: int = 0,
        epsilon: float | None = None,
        partition: str = "constrained",
        threads: int | None = None,
        workers: int | None = None,
        ray: str | None = None,
        repeats: int | None = None,
        within: int | None = None,
        min_plausibility: float | None = None,
        by: str | None = None,
        measure: str = "q_inf",
        data_source: str | None = None,
        distributed: str | None = None,
    ) -> AuditResult | ScoresAudit:
        """Measure, search, debug, repair, certify and report in one go.

        Parameters
        ----------
        budget
            About how long in all, as "60s" (the default) or in seconds.
        out
            Folder of the run; by default a new folder below ``runs``.
        resume
            Go on with the run in ``out`` under its own settings; stages that read the cases that are there now are not
            done again.
        skip
            Stages to leave out: search, debug, repair, certify.
        seed
            Same seed, same result.
        epsilon
            Tolerance between scores that count as the same; None takes 0.025, or 2.5 % of a regression's range.
        partition
            How scores become classes: "constrained" (fewest classes) or "grid" (fixed bins).
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
            What the search raises, cases are ranked by, and debugging and repairs lower: "q_inf" or "q_1".
        data_source, distributed
            For the tables to file: where the data come from, and since when the tool is in use.

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
        from fairbits.audit.pipeline import audit_subject
        from fairbits.search import seconds_of

        if self.subject.scores_only:
            from fairbits.audit.scores_only import audit_scores

            place = None if out is None else Path(out)
            return audit_scores(
                self.subject,
                place,
                by=by,
                seed=None if resume and seed == 0 else seed,
                resume=resume,
                data_source=data_source,
                distributed=distributed,
            )
        seconds = seconds_of(budget) if isinstance(budget, str) else budget
        options = AuditOptions(
            seconds,
            seed,
            epsilon,
            partition,
            threads,
            frozenset(skip),
            workers,
            ray,
            within,
            min_plausibility,
            by,
            measure=measure,
            data_source=data_source,
            distributed=distributed,
        )
        subject = self._answering(repeats)
        return audit_subject(subject, options, None if out is None else Path(out), resume=resume)


def _table(table: Any, schema: Schema, max_rows: int) -> Table:
    if isinstance(table, Table):
        check_domain(table.codes, schema, table.place)
        return table.rows(np.arange(len(table)))  # a copy: whoever handed it over may go on changing theirs
    file = table if isinstance(table, str | Path) else None
    data = as_arrow(table) if file is None else read_arrow(file, max_rows=max_rows)
    return table_from_arrow(data, schema, file=file)
