"""A run of an audit with the subject that it is about: what follows a search is asked of the run itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from fairbits import certify as certificates
from fairbits import debug as causes
from fairbits import repair as repairs
from fairbits import report as reports
from fairbits import scale, store
from fairbits import search as searches
from fairbits.domain import GrantOptions
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

if TYPE_CHECKING:
    from fairbits.audit.searches import RunComparison


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

        Returns
        -------
        Self
            The run.

        Raises
        ------
        OptionError
            If there is no run, or it is damaged.
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

        Returns
        -------
        Self
            The run.
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

        Returns
        -------
        int
            Number of cases.

        Raises
        ------
        OptionError
            If the ending is of no known format, the file exists, or the condition makes no sense.
        """
        from fairbits.audit.export import check_target, export

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
        from fairbits.audit.searches import check

        chosen = ExecutorOptions(workers=workers, threads=threads)
        return check(self, subject=self._given, executor_options=chosen, watch=progress, stop=stop, **self._grants)

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
        from fairbits.audit.searches import repair

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

    Returns
    -------
    AuditRun
        The run.

    Raises
    ------
    OptionError
        If there is no run, or it is damaged.
    """
    return AuditRun.open(folder, subject=subject, **grants)
