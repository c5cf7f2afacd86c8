"""A run together with the subject that it is about, and what can be read off both."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from fairbits.domain import GrantOptions
from fairbits.store import Run, subject_of
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.audit.remake import RunComparison
    from fairbits.search import Tally


class SubjectRun(Run):
    """A :class:`~fairbits.store.Run` whose model is at hand.

    Whatever takes a run takes this one too. The subject is loaded when it is first needed; one that has changed since
    the search is refused.

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
        from fairbits.search import seconds_of
        from fairbits.store import SECONDS
        from fairbits.store import time_limit as limited_to

        place = Path(path)
        check_target(place, force=force)
        self.verify()
        seconds = seconds_of(time_limit) if isinstance(time_limit, str) else time_limit
        with limited_to(SECONDS if seconds is None else seconds):
            return export(self.batches(where=where, top=top), place)

    def check(
        self,
        *,
        threads: int | None = None,
        workers: int | None = None,
        progress: Callable[[Tally, float], None] | None = None,
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
        from fairbits.audit.remake import check
        from fairbits.scale import ExecutorOptions

        chosen = ExecutorOptions(workers=workers, threads=threads)
        return check(self, subject=self._given, executor_options=chosen, watch=progress, stop=stop, **self._grants)
