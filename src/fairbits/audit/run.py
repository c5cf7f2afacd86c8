"""A run of an audit with the subject that it is about: what follows a search is asked of the run itself.

Other searches that this needs: a fresh one that attacks a repair, and the run made again to be compared.

Cases go to files, too: CSV that no spreadsheet runs, Parquet, JSON; there whole or not at all.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, Unpack, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from fairbits import certify as certificates
from fairbits import debug as causes
from fairbits import models, scale, store
from fairbits import repair as repairs
from fairbits import report as reports
from fairbits import search as searches
from fairbits.domain import GrantOptions
from fairbits.errors import FairbitsError, OptionError, choose_from
from fairbits.options import (
    CertifyOptions,
    DebugOptions,
    ExecutorOptions,
    RepairOptions,
    read_options,
    seconds_of,
    takes,
)
from fairbits.store import Run, subject_of
from fairbits.subject import Subject
from fairbits.text import NUMBER


class AuditRun(Run):
    """A :class:`~fairbits.store.Run` whose model is at hand: ``debug()``, ``repair()`` and ``report()``.

    Whatever takes a run takes this one too. The subject is loaded when it is first needed; one that has changed since
    the search is refused. Open one with :func:`fairbits.open_run`, or get it from :meth:`fairbits.Audit.search`.

    Parameters
    ----------
    folder
        Where the run lies.
    record
        The content of run.json.
    """

    _given: Subject | None = None
    _grants: GrantOptions = GrantOptions()

    @classmethod
    def open(cls, folder: str | Path, *, subject: Subject | None = None, **grants: Unpack[GrantOptions]) -> Self:
        """Open the run in a folder.

        Parameters
        ----------
        folder
            Folder or address of the run.
        subject
            The subject; needed only for a run that does not say where its model is.
        **grants
            What files from outside may do, as for :func:`~fairbits.load_subject`.
        """
        run = super().open(folder)
        run._given, run._grants = subject, grants
        return run

    @cached_property
    def subject(self) -> Subject:
        """The model, table and schema that the run is about, checked to be the same."""
        return subject_of(self, self._given, **self._grants)

    @classmethod
    def around(cls, run: Run, subject: Subject) -> Self:
        """A run that is open already, with its subject: nothing is read again.

        Parameters
        ----------
        run
            The run.
        subject
            The subject.
        """
        opened = cls.__new__(cls)
        opened.__dict__.update(run.__dict__)
        opened._given = subject
        return opened

    def export(
        self,
        path: str | Path,
        *,
        where: str | None = None,
        top: int | None = None,
        time_limit: float | str | None = None,
        force: bool = False,
    ) -> int:
        """Write cases to a file, the worst first: CSV that no spreadsheet runs, Parquet or JSON, by its ending.

        Parameters
        ----------
        path
            The file: there whole or not at all.
        where
            An SQL condition about attributes and figures; None takes all cases.
        top
            How many at most; None takes all.
        time_limit
            How long the condition may take, as "60s" or in seconds; 15 seconds by default.
        force
            Replace the file if there is one.

        Raises
        ------
        OptionError
            If the ending is of no known format, the file exists, or the condition makes no sense.
        """
        place = Path(path)
        check_target(place, force=force)
        self.verify()
        seconds = seconds_of(time_limit) if isinstance(time_limit, str) else time_limit
        with store.time_limit(store.SECONDS if seconds is None else seconds):
            return export(self.batches(where=where, top=top), place)

    def check(
        self,
        *,
        threads: int | None = None,
        workers: int | None = None,
        progress: Callable[[searches.Tally, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> RunComparison:
        """Make the run again in a temporary folder, and compare what both found.

        Parameters
        ----------
        threads
            Number of threads; None means all cores.
        workers
            Number of worker processes; None works in this process.
        progress
            Progress callback, called with the counts so far and the seconds of the search.
        stop
            Gives whether to end early.

        Returns
        -------
        RunComparison
            Whether both found the same, and what differs.
        """
        settings, tasks = settings_again(self)
        if settings.budget.ends is not None and not any(settings.budget.ends):
            raise OptionError(
                f"the run in {str(self.folder)!r} ended before anybody was asked; there is nothing to compare."
            )
        with tempfile.TemporaryDirectory(prefix="fairbits-check-") as place:
            again = scale.search(
                self.subject,
                settings,
                Path(place) / "again",
                executor_options=ExecutorOptions(workers=workers, threads=threads),
                shards=tasks,
                watch=progress,
                stop=stop,
                **self._grants,
            )
            return compare(self, again)

    @takes(DebugOptions)
    def debug(self, *, progress: Callable[[str], None] | None = None, **options: Any) -> causes.DebugResult:
        """Find out which layers, neurons and attributes the bits come from; results are written beside the cases.

        Parameters
        ----------
        progress
            Progress callback, called with what is being done.
        **options
            Those of :class:`~fairbits.options.DebugOptions`.

        Returns
        -------
        DebugResult
            Layers, neurons, attribution and origin.

        Raises
        ------
        CapabilityError
            If ``inside`` is asked of a model that does not show its layers.
        """

        asked = read_options(DebugOptions, options)
        apart = asked.training_workers
        return causes.debug_run(
            self,
            subject=self.subject,
            samples=asked.samples,
            all_layers=asked.all_layers,
            inside=asked.inside,
            retrain=asked.retrain,
            rule=asked.rule,
            trainings=asked.trainings,
            seed=asked.seed,
            threads=asked.threads,
            stage=progress,
            try_out=scale.try_out_by(asked.executor),
            train_out=scale.train_out_by(asked.executor if apart is None else ExecutorOptions(workers=apart)),
        )

    @takes(RepairOptions)
    def repair(self, *, progress: Callable[[str], None] | None = None, **options: Any) -> repairs.RepairResult:
        """Repair the model by what the search found; figures and the repaired model are written beside the cases.

        Of all candidates that keep the accuracy budget the one with the lowest proved k is taken; where nothing is
        proved, the lowest mean k. They are chosen on rows that none of them has seen. ``max_accuracy_loss`` holds with
        90 % confidence by the rows that are chosen on, and twice of it for balanced accuracy. ``proposals`` are names
        such as "reweigh" ("mitigators" for all of them, "settings" for other settings of the same kind of model), or
        objects of your own with a ``name`` and a ``propose(planner)`` that gives :class:`fairbits.repair.Proposal`
        objects. ``attack_budget`` may be a :class:`~fairbits.Budget`, or None.

        Parameters
        ----------
        progress
            Progress callback, called with what is being done.
        **options
            Those of :class:`~fairbits.options.RepairOptions`.

        Returns
        -------
        RepairResult
            All repairs with their figures, the chosen one, and the files.

        Raises
        ------
        OptionError
            If there is no such repair, or none is within the accuracy budget.
        """

        return repair(self, read_options(RepairOptions, options), subject=self.subject, watch=progress)

    @takes(CertifyOptions)
    def certify(
        self,
        *,
        progress: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
        **options: Any,
    ) -> certificates.Certificate:
        """Statements about everybody, of the model and of the repaired one; written to certify.json.

        Parameters
        ----------
        progress
            Progress callback, called with what is being done.
        stop
            Gives whether to end early; what is certain by then is said.
        **options
            Those of :class:`~fairbits.options.CertifyOptions`; the tolerance is by default that of the search.

        Returns
        -------
        Certificate
            Statements from the strongest to the weakest, and notes on what could not be proved.
        """

        asked = read_options(CertifyOptions, options)
        asked = replace(asked, epsilon=asked.epsilon or self.manifest["epsilon"])
        return certificates.certify_run(
            self.folder, self.subject, asked, stop=stop or (lambda: False), watch=progress or (lambda _: None)
        )

    def report(
        self,
        *,
        out: str | Path | None = None,
        forms: Iterable[str] = (),
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Path:
        """Write report.html, report.md and summary.json.

        Parameters
        ----------
        out
            Folder to write to; by default the run's own.
        forms
            Forms to write beside them: "bom" (CycloneDX), "statement" (in-toto), "profile" (a bias profile), "word".
        threads
            Number of threads; None means all cores.
        progress
            Progress callback, called with rows measured so far and in all.

        Returns
        -------
        Path
            Path of report.html.
        """

        data = reports.compute_report(self, subject=self.subject, threads=threads, progress=progress)
        return reports.write_report(data, self.folder if out is None else Path(out), forms=forms, run=self.folder)


def open_run(folder: str | Path, *, subject: Subject | None = None, **grants: Unpack[GrantOptions]) -> AuditRun:
    """Open the run in a folder, with its subject: ``debug()``, ``repair()``, ``report()``, ``cases()``, ``worst()``.

    Parameters
    ----------
    folder
        Folder or address of the run.
    subject
        The subject; needed only for a run of a model that lives in Python only.
    **grants
        What files from outside may do, as for :func:`~fairbits.load_subject`.
    """
    return AuditRun.open(folder, subject=subject, **grants)


#: Added to the run's own seed, so that the attack starts from other people.
OTHER_SEED = 1_000_003
_FIGURES = """
    SELECT count(*) AS cases, count(*) FILTER (flips) AS id_cases, coalesce(avg(k), 1) AS k_mean,
           coalesce(max(k), 1) AS k_max, coalesce(avg(q_inf), 0) AS q_inf_mean FROM cases
"""


_COUNTS = """
    SELECT count(*) AS cases, count(*) FILTER (flips) AS id_cases, coalesce(max(k), 0) AS k_max,
           coalesce(sum(k), 0)::BIGINT AS k_sum, coalesce(max(evaluation), 0) AS last_evaluation FROM cases
"""


def repair(
    run: Run, options: RepairOptions, *, subject: Subject, watch: Callable[[str], None] | None = None
) -> repairs.RepairResult:
    """Repair the model of a run; with an ``attack_budget``, a fresh search attacks it before and after.

    The attack after the repair asks about as many people as the one before it.
    """
    budget = _attack_budget(options.attack_budget)
    how = options.executor
    return repairs.repair_run(
        run,
        subject=subject,
        attack=None if budget is None else attacker(run, subject, budget, seed=options.seed, executor_options=how),
        max_accuracy_loss=options.max_accuracy_loss,
        guarantee=options.guarantee,
        choose=options.choose,
        retrain=options.retrain,
        quick=options.quick,
        proposals=options.proposals,
        trials=options.trials,
        write_all=options.write_all,
        seed=options.seed,
        threads=options.threads,
        watch=watch,
    )


def _attack_budget(budget: Any) -> searches.Budget | None:
    """Seconds with a unit, people without one, nothing for 0."""
    if not isinstance(budget, str):
        return cast(searches.Budget | None, budget)
    plain = budget.strip()
    if plain.isascii() and plain.isdigit():
        return searches.Budget(evaluations=int(plain)) if int(plain) else None
    return searches.Budget(seconds=seconds_of(plain))


def attacker(
    run: Run,
    subject: Subject,
    budget: searches.Budget,
    *,
    seed: int = 0,
    executor_options: scale.ExecutorOptions,
) -> repairs.Attack:
    """A search like the run's, from another seed, against any model."""
    manifest = run.manifest
    strategy = manifest["strategy"] if manifest["strategy"] in searches.STRATEGIES else searches.DEFAULT
    settings = searches.Settings(
        budget=budget,
        strategy=strategy,
        options=manifest["options"] if strategy == manifest["strategy"] else {},
        seed=manifest["seed"] + OTHER_SEED + seed,
        epsilon=manifest["epsilon"],
        partition=manifest["partition"],
        within=manifest.get("within"),
        min_plausibility=manifest.get("min_plausibility"),
        measure=manifest.get("measure", "q_inf"),
        threads=executor_options.threads,
    )

    def attack(network: models.Model, *, evaluations: int | None = None) -> repairs.Attacked:
        # Whoever was asked about in the first attack, so many are asked about in the second, however long it takes.
        terms = settings if not evaluations else replace(settings, budget=searches.Budget(evaluations=evaluations))
        if searches.STRATEGIES[terms.strategy].needs_gradients and not isinstance(network, models.HasGradients):
            terms = replace(terms, strategy=searches.DEFAULT, options={})  # scores only: a search that needs no more
        with tempfile.TemporaryDirectory() as folder:
            # Counted, it is one task as the timed one is: the command on the page then finds the same people.
            alone = terms.budget.evaluations is not None and not executor_options.elsewhere
            about = replace(subject, model=network)
            place = Path(folder) / "attack"
            found = scale.search(about, terms, place, executor_options=executor_options, shards=1 if alone else None)
            figures = found.query(_FIGURES).to_pylist()[0]
            asked = int((found.summary or {}).get("evaluations", 0))
        rate = None if subject.schema.regression else figures["id_cases"] / max(figures["cases"], 1)
        return repairs.Attacked(seed=settings.seed, evaluations=asked, id_rate=rate, **figures)

    return attack


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Whether a run came out the same again."""

    equal: bool
    before: str
    after: str
    differences: tuple[str, ...] = ()


def settings_again(run: Run) -> tuple[searches.Settings, int | None]:
    """Settings that make a run again: no clock, but where it ended each task."""
    limits = searches.Budget(**run.manifest["budget"])
    ends = [record.evaluations for record in run.tasks.values()]
    if run.summary is not None:
        ends = run.summary.get("ends") or run.manifest["budget"].get("ends")
    counted = any(getattr(limits, name) is not None for name in ("evaluations", "cases", "queries"))
    endless = not counted and ends is None
    budget = replace(limits, ends=None if ends is None else tuple(ends), seconds=1e9 if endless else None)
    shards = run.manifest["shards"] if counted or budget == searches.Budget(seconds=1e9) else None
    return searches.Settings(budget=budget, **searches.kept_settings(run.manifest, {})), shards


def compare(run: Run, again: Run) -> RunComparison:
    """Compare two runs by their content."""
    before, after = run.content(anew=True), again.content(anew=True)
    written = (run.summary or {}).get("content")
    differences = []
    if written is not None and written.split(":")[0] == before.split(":")[0] and written != before:
        differences.append(f"the cases in {str(run.folder)!r} are not those that its search wrote down ({written})")
    if before != after:
        one, other = (found.query(_COUNTS).to_pylist()[0] for found in (run, again))
        different = [f"{name} {one[name]:,}, now {other[name]:,}" for name in one if one[name] != other[name]]
        differences += different or ["the figures of some cases, though not how many there are"]
        differences += [
            f"{name} {run.versions[name]}, now {again.versions[name]}"
            for name in run.versions
            if run.versions[name] != again.versions.get(name)
        ]
    return RunComparison(not differences, before, after, tuple(differences))


#: Text that starts so is run as a formula by spreadsheets.
_FORMULA = r"^[=+\-@\t\r\n]"


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a file to write before anything is computed."""
    if path.suffix.lower() not in _WRITERS:
        raise OptionError(f"--out is {str(path)!r}, whose ending says no format; {choose_from(path.suffix, _WRITERS)}")
    if path.is_dir():
        raise OptionError(f"--out is {str(path)!r}, which is a folder; give a file.")
    if path.exists() and not force:
        raise OptionError(f"{str(path)!r} exists; choose another --out or add --force.")
    if not path.parent.is_dir():
        raise OptionError(f"the folder {str(path.parent)!r} does not exist; make it, or choose another --out.")


def export(reader: pa.RecordBatchReader, path: Path) -> int:
    """Write a table batch after batch; the file is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            rows = _WRITERS[path.suffix.lower()](reader, file)
        os.replace(temporary, path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise FairbitsError(
            f"cannot write {str(path)!r}: {reason}; nothing was changed: free space, or choose another --out."
        ) from None
    finally:
        with suppress(OSError):  # where nothing could be made, nothing can be removed either
            temporary.unlink(missing_ok=True)
    return rows


def _write_csv(reader: pa.RecordBatchReader, file: IO[bytes]) -> int:
    def guarded(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([_column(column) for column in batch.columns], names=names)

    names = [_guarded(pa.array([name]))[0].as_py() for name in reader.schema.names]
    schema = guarded(pa.RecordBatch.from_pylist([], reader.schema)).schema
    with csv.CSVWriter(file, schema) as writer:
        return _written(map(guarded, reader), writer)


def _write_parquet(reader: pa.RecordBatchReader, file: IO[bytes]) -> int:
    with parquet.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        return _written(reader, writer)


def _written(batches: Iterable[pa.RecordBatch], writer: Any) -> int:
    """Write batch after batch; gives the number of rows."""
    rows = 0
    for batch in batches:
        writer.write_batch(batch)
        rows += batch.num_rows
    return rows


def _write_json(reader: pa.RecordBatchReader, file: IO[bytes]) -> int:
    rows = 0
    for record in chain.from_iterable(batch.to_pylist() for batch in reader):
        file.write(b"[\n" if rows == 0 else b",\n")
        file.write(json.dumps(record, ensure_ascii=False).encode())
        rows += 1
    file.write(b"\n]\n" if rows else b"[]\n")
    return rows


_WRITERS: dict[str, Callable[[pa.RecordBatchReader, IO[bytes]], int]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".json": _write_json,
}


def _column(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):  # guard each label once, not each cell
        return pc.take(_guarded(column.dictionary), column.indices)
    return _guarded(column) if pa.types.is_string(column.type) else column


def _guarded(texts: pa.Array) -> pa.Array:
    """Text that a spreadsheet shows and does not run; numbers never come here."""
    number = pc.match_substring_regex(texts, NUMBER)  # "-710" is a label that no spreadsheet runs
    risky = pc.and_not(pc.match_substring_regex(texts, _FORMULA), number)
    return pc.if_else(risky, pc.binary_join_element_wise("'", texts, ""), texts)
