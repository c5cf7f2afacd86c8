"""A model and a table in, figures out: what the command line does, for Python. Its methods are the commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np

from fairbits import audit as audits
from fairbits import certify as certificates
from fairbits import debug as causes
from fairbits import diff as differences
from fairbits import engine, paper, report, scale, store
from fairbits import measure as measures
from fairbits import proxies as proxy
from fairbits import repair as repairs
from fairbits import search as searches
from fairbits import subject as subjects
from fairbits.data import load_subject
from fairbits.domain import (
    Attribute,
    Encoding,
    GrantOptions,
    RawTable,
    Schema,
    Table,
    as_arrow,
    check_domain,
    granted_in,
    one_hot_groups,
    read_arrow,
    table_from_arrow,
    with_held,
)
from fairbits.errors import OptionError, choose_from
from fairbits.models import ModelOptions, output_order, read_model
from fairbits.options import (
    AuditOptions,
    CertifyOptions,
    CompareOptions,
    DiffOptions,
    LoadingOptions,
    MeasureOptions,
    PlanOptions,
    ProxiesOptions,
    SearchOptions,
    argument_of,
    arguments_of,
    flag_words,
    names_typed,
    read_options,
    seconds_of,
    takes,
)
from fairbits.randomness import generator
from fairbits.subject import Subject

#: How long a search takes where nothing is said.
DEFAULT_SECONDS = 60.0
#: Seconds of a search that ends by itself.
UNLIMITED = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectOrigin:
    """Where the subject of an audit came from."""

    name: str | None = None
    protected: tuple[str, ...] | None = None
    grants: GrantOptions = field(default_factory=GrantOptions)


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

    Attributes
    ----------
    subject
        The model, its table and its schema.
    """

    #: Where the subject came from, for the command that does something again; from Python objects there is none.
    _origin = SubjectOrigin()

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
        output_order(schema, None, chosen)  # what score_of cannot mean is said before anything is read
        people, raw = _table_of(table, schema, chosen.max_rows)
        schema = schema if raw is None else with_held(schema, people.codes, raw)
        loaded = read_model(model, schema, chosen)
        self.subject = subjects.make_subject(
            name, loaded, schema, people, encoding=encoding, options=chosen, original=model, raw=raw
        ).checked(as_is=as_is)

    @classmethod
    def of(
        cls,
        subject: Subject | str | Path,
        *,
        protected: Iterable[str] | None = None,
        where: str | None = None,
        repeats: int | None = None,
        as_is: bool = False,
        **grants: Unpack[GrantOptions],
    ) -> Self:
        """An audit of a built-in subject or a ``subject.toml``.

        Parameters
        ----------
        subject
            The name of a built-in subject, a file, or a loaded subject.
        protected
            Protected attributes, instead of the subject's own.
        where
            A rule about attributes that are not protected: everything is about the people for whom it holds.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        as_is
            Accept a model that decides against the labels of its table.
        **grants
            What files from outside may do, as for :func:`~fairbits.load_subject`.

        Raises
        ------
        ModelError
            If the model decides against the labels and ``as_is`` is not given.
        """
        loaded = subject if isinstance(subject, Subject) else load_subject(subject, **grants)
        names = None if protected is None else _names(protected)
        loaded = loaded if names is None else loaded.with_protected(names)
        name = loaded.source if isinstance(subject, Subject) else str(subject)
        origin = SubjectOrigin(name=name, protected=names, grants=grants)
        loaded = loaded if repeats is None else loaded.with_repeats(repeats)
        checked = loaded.checked(as_is=as_is)
        return cls._made(checked if where is None else checked.within(where), origin)

    @classmethod
    def of_run(
        cls,
        folder: str | Path,
        subject: Subject | str | Path | None = None,
        *,
        protected: Iterable[str] | None = None,
        where: str | None = None,
        repeats: int | None = None,
        as_is: bool = False,
        **grants: Unpack[GrantOptions],
    ) -> Self:
        """An audit of what an earlier run is about, to go on with it: ``search`` or ``audit`` with ``resume=True``.

        Parameters
        ----------
        folder
            Folder or address of the run, or folder of the audit of a table of scores.
        subject
            The subject; None takes the one that the run names.
        protected, where, repeats
            Those of the run; others are refused.
        as_is
            Accept a model that decides against the labels of its table; a run that did is enough.
        **grants
            What files from outside may do, as for :func:`~fairbits.load_subject`.

        Raises
        ------
        OptionError
            If there is no run, it was made otherwise, or does not say where its model is.
        """
        of_scores = audits.is_scores_audit(folder)
        kept = audits.read_scores_record(Path(folder)) if of_scores else store.Run.open(folder).manifest
        names = None if protected is None else _names(protected)
        source = kept.get("source") if subject is None else subject
        if source is None:
            raise OptionError(
                f"the run in {str(folder)!r} does not say where its model is, because it was started from Python; "
                f"hand over its model and table, as subject=."
            )
        loaded = source if isinstance(source, Subject) else load_subject(source, **grants)
        asked = {
            "subject": loaded.name,
            "where": where,
            "protected": None if names is None else list(names),
            "repeats": repeats,
        }
        said = {one: asked[one] for one in asked if asked[one] is not None and one in ("subject", "where", *kept)}
        store.check_same({one: kept.get(one) for one in said}, said)
        audit = cls.of(
            loaded,
            protected=names or kept.get("protected"),
            where=kept.get("where"),
            repeats=repeats or kept.get("repeats"),
            as_is=as_is or bool(kept.get("as_is")),
        )
        return cls._made(audit.subject, SubjectOrigin(name=loaded.source, protected=names, grants=grants))

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
        person: str | None = None,
        weight: str | None = None,
        test: Any = None,
        plausible: Iterable[str] = (),
        probabilities: Mapping[str, Any] | None = None,
        name: str = "subject",
        as_is: bool = False,
        **options: Any,
    ) -> Self:
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
        person
            The column that says whose a row is, where people have several: intervals and tests then draw people.
        weight
            The column of survey weights: rates and means are then weighted.
        test
            A table of people whom the model has never seen, such as ``table``: accuracy and AUC are then about them.
        plausible
            Rules for plausible twins, as under ``plausible`` in an audit file: ``["abs(age - own age) <= 10"]``.
        probabilities
            Attributes of which the table has probabilities only, by name: the columns, as in
            ``{"race": ["p_black", "p_white"]}``; ``proxies`` gives their group rates.
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
        """

        soft = {
            one: {"protected": "probabilities", "columns": [*columns]} for one, columns in (probabilities or {}).items()
        }
        subject = subjects.subject_of_table(
            model,
            table,
            target=target,
            protected=protected,
            favourable=favourable,
            ignored=ignored,
            max_twins=max_twins,
            threshold=threshold,
            name=name,
            person=person,
            test=test,
            weight=weight,
            plausible=plausible,
            probabilities=soft,
            options=ModelOptions.of(options),
            as_is=as_is,
        )
        return cls._made(subject.checked(as_is=as_is), SubjectOrigin())

    @classmethod
    def from_twins(
        cls,
        table: Any,
        *,
        person: str,
        protected: str | Iterable[str],
        score: str,
        threshold: float | None = None,
        name: str | None = None,
    ) -> Self:
        """An audit of twins that somebody else made, of people in images, speech, text or anything else.

        Several rows of one person and one combination of protected values are repetitions: their mean is the score,
        and bits that they make by themselves are null bits (``Measurement.noise``). People who lack a combination are
        measured over those that they have.

        Parameters
        ----------
        table
            A file, or an Arrow, pandas or polars table, with a row for each score.
        person
            The column that says whose twin it is.
        protected
            The columns in which twins of a person differ.
        score
            The column of scores.
        threshold
            The score from which on a decision is favourable; 0.5 for probabilities, and none for other scores.
        name
            What to call the subject.

        Returns
        -------
        Audit
            For ``measure()``, ``groups()`` and ``audit()``.

        Raises
        ------
        TableError
            If a column is missing or incomplete, or nobody has a twin.
        """

        subject = subjects.subject_of_twins(
            table, person=person, protected=protected, score=score, threshold=threshold, name=name
        )
        return cls._made(subject.checked(), SubjectOrigin())

    @classmethod
    def from_texts(
        cls,
        decider: Any,
        table: Any,
        *,
        families: Mapping[str, Mapping[str, Any]],
        template: str | None = None,
        column: str | None = None,
        realisations: int = 8,
        protected: Sequence[str] | None = None,
        words: Mapping[str, Sequence[str]] | None = None,
        favourable: str | None = None,
        threshold: float | None = None,
        target: str | None = None,
        split: str | None = None,
        person: str | None = None,
        weight: str | None = None,
        chat: Mapping[str, Any] | None = None,
        answers: str | Path | None = None,
        name: str = "text",
        **options: Any,
    ) -> Self:
        """An audit of what decides about texts: people are put into words, and twins differ in cues.

        Parameters
        ----------
        decider
            A function of texts, an object with ``predict_proba`` (a scikit-learn pipeline over text), a file of one, a
            reference, or the address of a language model that ends in /v1.
        table
            A file, or an Arrow, pandas or polars table, with the columns of the template, or the column of texts.
        families
            By name of the family: the cues of each slot, a built-in family, a file, or words by value.
        template
            A text with slots, such as ``"{person} asks for a loan of {amount}."``.
        column
            A column of texts in which words stand for an attribute, instead of a template.
        realisations
            Words for each combination, at most.
        protected
            The attributes to look at, where cues speak of more.
        words
            By slot of the template: words between which a search chooses; people of the table have the first.
        favourable
            The class whose probability is the score; by default the last.
        threshold
            The score from which on a decision is favourable; 0.5 by default.
        target, split
            The columns of what was so, and of who was not trained on, as far as known; repairs need the first.
        person, weight
            The columns of whose each row is, and of how many people it stands for in rates and means.
        chat
            How a language model is asked: ``options``, ``model``, ``system``, ``answers``, ``temperature``, ``price``.
        answers
            The file that a language model's answers are kept in.
        name
            What to call the subject.
        **options
            Those of :class:`~fairbits.models.ModelOptions`.

        Returns
        -------
        Audit
            For ``words()``, ``measure()``, ``search()`` and ``audit()``.

        Raises
        ------
        SchemaError
            If the template has an unknown slot, or cues lack a value.
        """

        said: dict[str, Any] = {
            "families": families,
            "realisations": realisations,
            "template": template,
            "column": column,
            "protected": None if protected is None else list(protected),
            "words": None if words is None else {slot: list(choices) for slot, choices in words.items()},
        }
        subject = subjects.subject_of_texts(
            decider,
            table,
            {key: value for key, value in said.items() if value is not None},
            folder=Path(),
            chat=chat,
            favourable=favourable,
            threshold=threshold,
            target=target,
            split=split,
            person=person,
            weight=weight,
            name=name,
            answers=None if answers is None else Path(answers),
            options=ModelOptions.of(options),
        )
        return cls._made(subject.checked(), SubjectOrigin())

    def __repr__(self) -> str:
        return f"<Audit of {self.subject.short()}>"

    @takes(PlanOptions)
    def plan(self, **options: Any) -> audits.AuditPlan:
        """How many people an interval needs, what a gate would notice, how long it takes, how much is asked.

        Parameters
        ----------
        **options
            Those of :class:`~fairbits.options.PlanOptions`.
        """

        return audits.plan_audit(read_options(PlanOptions, options), self.subject)

    @takes(MeasureOptions)
    def measure(
        self, *, repeats: int | None = None, progress: measures.Progress | None = None, **options: Any
    ) -> measures.Measurement:
        """Measure the bits of everybody in the table.

        Some rows are asked twice first: where the answers vary, ``Measurement.noise`` says by how much, and how many
        bits that makes by itself.

        Parameters
        ----------
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        progress
            Called with how many people are done, and how many there are.
        **options
            Those of :class:`~fairbits.options.MeasureOptions`.

        Returns
        -------
        Measurement
            Figures of everybody, with ``summary()``, ``worst()``, ``to_frame()``.
        """

        asked = read_options(MeasureOptions, options)
        subject = self.subject if repeats is None else self.subject.with_repeats(repeats)
        evaluator = measures.evaluator_of(
            subject,
            epsilon=asked.epsilon,
            partition=asked.partition,
            threads=asked.threads,
            people=len(subject.table),
        )
        noise = measures.noise_of(subject, evaluator)
        rng = np.random.default_rng(asked.seed)
        return measures.measure_table(evaluator, subject.table, rng, noise=noise, progress=progress)

    def words(self, *, epsilon: float | None = None, seed: int = 0) -> measures.WordStudy:
        """Bits of each family of cues above its nulls, of a decider about texts.

        Parameters
        ----------
        epsilon
            Scores closer than this count as the same; 0.025 by default.
        seed
            Of the bootstrap.

        Returns
        -------
        WordStudy
            ``sentences()`` says what is claimed.
        """

        return measures.study_words(self.subject, epsilon=epsilon, seed=seed)

    def groups(self, *, seed: int = 0) -> tuple[measures.GroupTable, ...]:
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

        return measures.subject_groups(self.subject, generator(seed, "groups"))

    def describe(self, *, k: int | None = None, epsilon: float | None = None, seed: int = 0) -> causes.Description:
        """Whose decision flips, or whose k is above a value, in at most three rules of at most three conditions.

        Rules are about attributes that are not protected, learned on one half of the rows and judged on the other.
        ``Audit.of(..., where=rule.text)`` looks at the people of a rule alone.

        Parameters
        ----------
        k
            Tell people whose k is above this; None tells whose decision flips, or for a regression whose k is above the
            upper quartile.
        epsilon
            Scores closer than this count as the same; 0.025 by default.
        seed
            Same seed, same halves.

        Returns
        -------
        Description
            ``rules`` with their text and figures; ``words`` says it in a sentence.
        """

        rng = generator(seed, "debug", "who")
        return causes.describe_people(measures.evaluator_of(self.subject, epsilon=epsilon), self.subject, rng, above=k)

    @takes(ProxiesOptions)
    def proxies(
        self, *, out: str | Path | None = None, progress: Callable[[str], None] | None = None, **options: Any
    ) -> proxy.ProxyStudy:
        """What reaches the score without the protected columns: indirect bits, through what, for whom, over time.

        Parameters
        ----------
        out
            A folder to write proxies.json to.
        progress
            Progress callback, called with what is being done.
        **options
            Those of :class:`~fairbits.options.ProxiesOptions`.

        Returns
        -------
        ProxyStudy
            ``document()`` is the content of proxies.json.

        Raises
        ------
        SchemaError
            Where nothing is protected, or a justified attribute is protected or not there.
        """
        found = proxy.study_subject(
            self.subject, **arguments_of(read_options(ProxiesOptions, options)), progress=progress
        )
        if out is not None:
            Path(out).mkdir(parents=True, exist_ok=True)
            from fairbits.audit.scores_only import write_study  # what measure alone does not load

            write_study(found, Path(out), self.subject)
        return found

    @takes(CertifyOptions)
    def certify(
        self,
        *,
        progress: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
        **options: Any,
    ) -> certificates.Certificate:
        """What can be said about everybody: exact, proved over sets of people, or statistical.

        Parameters
        ----------
        progress
            Progress callback, called with what is being done.
        stop
            Gives whether to end early; what is certain by then is said.
        **options
            Those of :class:`~fairbits.options.CertifyOptions`.

        Returns
        -------
        Certificate
            ``statements`` from the strongest to the weakest, and ``notes`` on what could not be proved.
        """

        return certificates.certify_subject(
            self.subject,
            read_options(CertifyOptions, options),
            stop=stop or (lambda: False),
            watch=progress or (lambda _: None),
        )

    @takes(SearchOptions)
    def search(
        self,
        *,
        out: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        repeats: int | None = None,
        progress: Callable[[searches.Tally, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
        began: float | None = None,
        **options: Any,
    ) -> audits.AuditRun:
        """Search for the people whose twins are treated most differently; every case is kept on disk.

        What is found can be debugged, repaired and reported from there: ``run.debug()``, ``run.repair()``. ``budget``
        is a duration such as "30s" or a :class:`~fairbits.Budget`; time counts from this call, compiling does not.
        ``strategy`` is a name, or an object of your own made from ``fairbits.search.Strategy``. Arguments beyond those
        below are options of the strategy, such as ``seeds=100``.

        Parameters
        ----------
        out
            Folder or address (such as "s3://bucket/run") of the run; by default a new folder below ``runs``.
        resume
            Go on with the run in ``out``: whatever is not given is the run's own, and other settings are refused.
        force
            Replace an earlier run in ``out``.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        progress
            Progress callback, called with the counts so far and the seconds of the search.
        stop
            Gives whether to end early; the run can go on later.
        began
            When the budget of seconds began to count, on the clock of ``fairbits.engine.work_time``; None: now.
        **options
            Those of :class:`~fairbits.options.SearchOptions`, and of the strategy.

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

        began = engine.work_time() if began is None else began
        asked = _search_options(options)
        if resume and out is None:
            raise OptionError("--resume needs a run to go on with; give its folder as --out.")
        before = store.Run.open(out) if resume and out is not None else None
        if before is not None and repeats is None and self.subject.repeats == 1:
            repeats = before.manifest.get("repeats")
        found = scale.search(
            self.subject.with_repeats(repeats),
            _settings(asked, before),
            out,
            executor_options=asked.executor,
            shards=asked.shards,
            resume=resume,
            force=force,
            watch=progress,
            stop=stop,
            began=began,
            **self._origin.grants,
        )
        return audits.AuditRun.around(found, self.subject)

    def open(self, folder: str | Path) -> audits.AuditRun:
        """Open an earlier run of this subject.

        Parameters
        ----------
        folder
            Folder or address of the run.
        """

        return audits.AuditRun.open(folder, subject=self.subject)

    def debug(self, run: store.Run, **options: Any) -> causes.DebugResult:
        """Find out which layers, neurons and attributes the bits of a run's cases come from.

        Parameters
        ----------
        run
            A run of this subject.
        **options
            Those of :meth:`AuditRun.debug`.
        """
        return self.open(run.folder).debug(**options)

    def repair(
        self,
        run: store.Run | None = None,
        *,
        evaluations: int = 20_000,
        out: str | Path | None = None,
        force: bool = False,
        **options: Any,
    ) -> repairs.RepairResult:
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
        """

        if run is None:
            shared = {name: options[name] for name in ("seed", "threads") if name in options}
            run = self.search(budget=searches.Budget(evaluations=evaluations), out=out, force=force, **shared)
        elif out is not None or force:
            raise OptionError("a repair writes into the folder of its run; leave --out and --force out.")
        return self.open(run.folder).repair(**options)

    def report(self, run: store.Run, **options: Any) -> Path:
        """Write the report of a run.

        Parameters
        ----------
        run
            A run of this subject.
        **options
            Those of :meth:`AuditRun.report`.
        """
        return self.open(run.folder).report(**options)

    @takes(AuditOptions)
    def audit(
        self,
        *,
        out: str | Path | None = None,
        resume: bool = False,
        force: bool = False,
        repeats: int | None = None,
        progress: audits.StageProgress | None = None,
        stop: Callable[[], bool] | None = None,
        **options: Any,
    ) -> audits.AuditResult | audits.ScoresAudit:
        """Measure, search, debug, repair, certify and report in one go.

        Parameters
        ----------
        out
            Folder of the run; by default a new folder below ``runs``.
        resume
            Go on with the run in ``out``: whatever is not given is the run's own, and other settings are refused.
            Stages that read the cases that are there now are not done again.
        force
            Replace a run that is in the folder ``out``; nothing else is ever removed.
        repeats
            Take the mean of so many answers of the model as a score; None asks once.
        progress
            Progress callback, called with the stage, what happens ("start", "say", "done", "kept", "skipped",
            "failed"), and words about it.
        stop
            Gives whether to end early; the audit can go on later.
        **options
            Those of :class:`~fairbits.options.AuditOptions`.

        Returns
        -------
        AuditResult or ScoresAudit
            The run, the report's data and page, and what each stage took; the latter, groups and indirect bits, for a
            subject with scores only.
        """

        asked = read_options(AuditOptions, options)
        if resume and out is None:
            raise OptionError("--resume needs a run to go on with; give its folder as --out.")
        place = None if out is None else store.place_of(out)
        subject = self.subject.with_repeats(repeats)
        if subject.scores_only:
            return audits.audit_scores(subject, asked, place, resume=resume, progress=progress)
        return audits.audit_subject(subject, asked, place, resume=resume, force=force, progress=progress, stop=stop)

    @takes(CompareOptions)
    def compare(
        self,
        strategies: Sequence[str] | None = None,
        *,
        out: str | Path | None = None,
        progress: Callable[[int, int, str], None] | None = None,
        **options: Any,
    ) -> paper.StrategyComparison:
        """Which strategy finds more, how fast and how different people: equal seconds, one oracle, all counted.

        Parameters
        ----------
        strategies
            Names, such as "climb"; None takes all that the model can serve.
        out
            Folder of compare.html, compare.json, compare.csv and the finished runs, which are not run again; by default
            a new folder below ``runs``.
        progress
            Progress callback, called with runs done, runs in all, and what comes now.
        **options
            Those of :class:`~fairbits.options.CompareOptions`; a budget may also be a :class:`~fairbits.Budget`.

        Returns
        -------
        StrategyComparison
            Entries in the order asked for; ``page`` is the page, ``command`` what makes it again.

        Raises
        ------
        OptionError
            If there is no such strategy.
        CapabilityError
            If a named strategy needs what the model lacks.
        """
        asked = read_options(CompareOptions, options)
        timed = not isinstance(asked.budget, searches.Budget)
        limits = searches.Budget(seconds=seconds_of(asked.budget)) if timed else asked.budget
        place = store.new_folder(self.subject.name, "compare") if out is None else Path(out)
        found = paper.compare(
            self.subject,
            replace(asked, budget=limits),
            strategies,
            folder=place,
            executor_options=asked.executor,
            progress=progress,
            **self._origin.grants,
        )
        named = () if strategies is None else ("--strategies", names_typed(strategies))
        # A budget that is not one of time has no command.
        command = command_of("paper compare", (self._origin.name if timed else None, *named), asked, self._origin)
        document = found.as_dict()
        store.write_json(place / paper.DOCUMENT, document)
        report.write_contest(document, place / paper.PAGE, command=command)
        return replace(found, folder=place, command=command)

    @takes(DiffOptions)
    def diff(self, other: Any, *, html: str | Path | None = None, **options: Any) -> differences.ModelDiff:
        """What changes for these people when another model takes the place of this one.

        What a model file may do (``trust_pickle=True``) can be said, too; by default it is what this audit was granted.

        Parameters
        ----------
        other
            Another :class:`Audit` or subject about the same people, or a model: a file, an address, a reference, or an
            object that predicts.
        html
            A file to write the page to.
        **options
            Those of :class:`~fairbits.options.DiffOptions`.

        Returns
        -------
        ModelDiff
            ``document()`` is what ``fairbits diff --json`` prints, ``command`` what makes it again.
        """
        check_page(html)
        grants = granted_in(options)
        asked = read_options(DiffOptions, {name: value for name, value in options.items() if name not in grants})
        granted: GrantOptions = {**self._origin.grants, **grants}
        if isinstance(other, Audit):
            after, name = other.subject, other._origin.name
        elif isinstance(other, Subject):
            after, name = other, other.source
        else:
            after = differences.with_model(self.subject, other, **granted)
            name = str(other) if isinstance(other, str | Path) else None
        origin = SubjectOrigin(protected=self._origin.protected, grants=granted)
        return diff_sides((self.subject, after), (self._origin.name, name), origin, asked, html=html)

    @classmethod
    def _made(cls, subject: Subject, origin: SubjectOrigin) -> Self:
        audit = cls.__new__(cls)
        audit.subject, audit._origin = subject, origin
        return audit


def command_of(command: str, places: Sequence[str | None], options: Any, origin: SubjectOrigin) -> str:
    """The command line that does something again, as one would type it; nothing where a place has no name.

    Examples
    --------
    >>> loans = SubjectOrigin(name="my loan.toml", grants={"trust": True})
    >>> command_of("paper compare", ("my loan.toml", "--strategies", "climb"), CompareOptions(seed=3), loans)
    "fairbits paper compare 'my loan.toml' --strategies climb --seed 3 --trust"
    """
    if any(place is None for place in places):
        return ""
    protected = ["--protected", names_typed(origin.protected)] if origin.protected else []
    words = [*command.split(), *map(str, places), *flag_words(options), *protected]
    return shlex.join(["fairbits", *words, *flag_words(LoadingOptions(**origin.grants))])


def diff_models(
    a: str | Path,
    b: str | Path,
    options: DiffOptions | None = None,
    *,
    subject: str | Path | None = None,
    protected: Iterable[str] | None = None,
    html: str | Path | None = None,
    **grants: Unpack[GrantOptions],
) -> differences.ModelDiff:
    """What changes for the same people from one model to another: runs, subjects or models."""
    check_page(html)
    sides = differences.sides_of(a, b, subject=subject, **grants)
    names = None if protected is None else _names(protected)
    before, after = (one if names is None else one.with_protected(names) for one in sides)
    places = (str(a), str(b), *(() if subject is None else ("--subject", str(subject))))
    origin = SubjectOrigin(protected=names, grants=grants)
    return diff_sides((before, after), places, origin, options or DiffOptions(), html=html)


def diff_sides(
    sides: tuple[Subject, Subject],
    places: Sequence[str | None],
    origin: SubjectOrigin,
    options: DiffOptions,
    *,
    html: str | Path | None = None,
) -> differences.ModelDiff:
    """Compare two subjects, and write the page where one is wanted."""
    found = differences.diff_subjects(
        *sides,
        command=command_of("diff", places, options, origin),
        epsilon=options.epsilon,
        partition=options.partition,
        seed=options.seed,
        threads=options.threads,
        top=options.top,
        people=options.people,
    )
    if html is not None:
        differences.write_diff(found, Path(html))
    return found


def check_page(html: str | Path | None) -> None:
    """Refuse a page that could not be written, before anything is computed."""
    if html is not None and not Path(html).parent.is_dir():
        raise OptionError(f"the folder {str(Path(html).parent)!r} does not exist; make it, or choose another --html.")


def draft_subject(
    table: str | Path,
    *,
    target: str,
    protected: Iterable[str],
    model: str | None = None,
    favourable: str | None = None,
    threshold: float | None = None,
    ignored: Sequence[str] = (),
    groups: Sequence[Attribute] | None = None,
    max_twins: int = 1000,
    delimiter: str = ",",
    out: str | Path = "subject.toml",
    force: bool = False,
    as_is: bool = False,
    options: ModelOptions | None = None,
    data: Any = None,
    **grants: Unpack[GrantOptions],
) -> subjects.Draft:
    """Infer what people are made of from a table, and write a commented subject.toml; what ``fairbits init`` does."""
    check_draft(out, force=force)
    found = read_arrow(table, delimiter=delimiter, max_rows=grants.get("max_rows")) if data is None else data
    check_ignored(ignored, found)
    if groups is None:
        groups = list(one_hot_groups(found, leave_out=(target, *ignored)))
    asked: dict[str, Any] = {
        "target": target,
        "protected": list(protected),
        "favourable": favourable,
        "groups": list(groups),
        "ignored": tuple(ignored),
        "max_twins": max_twins,
        "threshold": threshold,
    }
    schema = subjects.draft_schema(found, **asked)
    others = subjects.other_schemas(found, schema, **asked)
    draft = subjects.Draft(schema, Path(table), model, delimiter, options or ModelOptions(), others=others, data=found)
    return subjects.write_draft(draft, Path(out), force=force, as_is=as_is, **grants)


def check_draft(out: str | Path, *, force: bool) -> None:
    """Refuse a file that is there already."""
    if Path(out).exists() and not force:
        raise OptionError(f"{str(out)!r} exists; choose another --out or add --force.")


def check_ignored(ignored: Sequence[str], data: Any) -> None:
    """Refuse to leave out what is not there."""
    for name in ignored:
        if name not in data.column_names:
            remedy = choose_from(name, data.column_names)
            raise OptionError(f"--ignore names {name!r}, which is not in the table; {remedy}")


def _names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of attributes; one name alone is no sequence of letters."""
    return (names,) if isinstance(names, str) else tuple(names)


def _table_of(table: Any, schema: Schema, max_rows: int | None) -> tuple[Table, RawTable | None]:
    if isinstance(table, Table):
        check_domain(table.codes, schema, table.place)
        return table.rows(np.arange(len(table))), None  # a copy: whoever handed it over may go on changing theirs
    file = table if isinstance(table, str | Path) else None
    data = as_arrow(table) if file is None else read_arrow(file, max_rows=max_rows)
    raw = RawTable(table, data)
    return replace(table_from_arrow(data, schema, file=file), index=raw.index), raw


def _search_options(given: Mapping[str, Any]) -> SearchOptions:
    """Options of a search; names that it does not know are those of the strategy."""
    known = {argument_of(one) for one in fields(SearchOptions)}
    more = {name: value for name, value in given.items() if name not in known}
    own = {name: value for name, value in given.items() if name in known}
    return read_options(SearchOptions, {**own, "options": {**own.get("options", {}), **more}})


def _settings(options: SearchOptions, before: store.Run | None) -> searches.Settings:
    """What a search under these options follows; what is None takes the default, or what the run has that goes on."""

    asked: dict[str, Any] = {name: getattr(options, name) for name in searches.SETTINGS}
    own = None if options.strategy is None or isinstance(options.strategy, str) else options.strategy
    if own is not None:
        named = searches.Settings(budget=searches.Budget(seconds=UNLIMITED), options=options.options).with_strategy(own)
        asked |= {"strategy": named.strategy, "options": dict(named.options)}
    chosen = {name: value for name, value in asked.items() if value is not None}
    chosen = chosen if before is None else searches.kept_settings(before.manifest, asked)
    usual = UNLIMITED if chosen.get("strategy") == "exhaustive" else DEFAULT_SECONDS
    kept = searches.Budget(seconds=usual) if before is None else searches.Budget(**before.manifest["budget"])
    return searches.Settings(budget=_budget_of(options) or kept, threads=options.threads, own=own, **chosen)


def _budget_of(options: SearchOptions) -> searches.Budget | None:
    """The limits that were given; None where there are none."""

    seconds = options.budget
    if isinstance(seconds, searches.Budget):
        return seconds
    limits = {name: getattr(options, name) for name in ("evaluations", "cases", "queries", "ends")}
    if seconds is not None:
        limits["seconds"] = seconds_of(seconds) if isinstance(seconds, str) else float(seconds)
    given = {name: value for name, value in limits.items() if value is not None}
    return searches.Budget(**given) if given else None
