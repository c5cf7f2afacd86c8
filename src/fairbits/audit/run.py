"""A run of an audit with the subject that it is about: what follows a search is asked of the run itself.

Cases go to files, too: CSV that no spreadsheet runs, Parquet, JSON; there whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, Unpack

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from fairbits import audit, scale, store
from fairbits import certify as certificates
from fairbits import debug as causes
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
    ) -> audit.RunComparison:
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

        chosen = ExecutorOptions(workers=workers, threads=threads)
        return audit.check(
            self, subject=self._given, executor_options=chosen, watch=progress, stop=stop, **self._grants
        )

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

        return audit.repair(self, read_options(RepairOptions, options), subject=self.subject, watch=progress)

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
        calls: dict[str, Any] = {"stop": stop, "watch": progress}
        calls = {name: call for name, call in calls.items() if call is not None}
        return certificates.certify_run(self.folder, self.subject, asked, **calls)

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
