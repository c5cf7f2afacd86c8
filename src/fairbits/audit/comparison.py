"""The model beside others: other strategies against it, another model in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fairbits.audit.subject import AuditedSubject
from fairbits.domain import GrantOptions
from fairbits.subject import Subject

if TYPE_CHECKING:
    from fairbits.diff import ModelDiff
    from fairbits.paper import StrategyComparison
    from fairbits.search import Budget


class ComparisonAudit(AuditedSubject):
    """The part of :class:`~fairbits.Audit` that compares."""

    def compare(
        self,
        strategies: Sequence[str] | None = None,
        *,
        budget: Budget | str = "15s",
        repeats: int = 10,
        seed: int = 0,
        epsilon: float | None = None,
        partition: str = "constrained",
        threads: int | None = None,
        workers: int | None = None,
        ray: str | None = None,
        out: str | Path | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> StrategyComparison:
        """Which strategy finds more, how fast and how different people: equal seconds, one oracle, all counted.

        Parameters
        ----------
        strategies
            Names, such as "climb"; None takes all that the model can serve.
        budget
            What each run may use: a duration, or a :class:`~fairbits.Budget`.
        repeats
            Runs of each strategy, each with another seed.
        seed
            Seed of the first run; the others count on from it.
        epsilon, partition
            As for :meth:`measure`.
        threads
            Threads of a run; None means all cores.
        workers, ray
            Worker processes, or a Ray cluster, that share the runs; None works in this process.
        out
            Folder of compare.html, compare.json, compare.csv and the finished runs, which are not run again; by default
            a new folder below ``runs``.
        progress
            Progress callback, called with runs done, runs in all, and what comes now.

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
        from fairbits.audit.contest import compare_strategies
        from fairbits.paper import Contest
        from fairbits.scale import ExecutorOptions
        from fairbits.search import Budget, seconds_of

        limit = Budget(seconds=seconds_of(budget)) if isinstance(budget, str) else budget
        return compare_strategies(
            self.subject,
            Contest(budget=limit, repeats=repeats, seed=seed, epsilon=epsilon, partition=partition, threads=threads),
            strategies,
            origin=self._origin,
            out=out,
            executor_options=ExecutorOptions(workers=workers, ray=ray, threads=threads),
            progress=progress,
        )

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
        html: str | Path | None = None,
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
        html
            A file to write the page to.
        **grants
            What a model file may do; by default what this audit was granted.

        Returns
        -------
        ModelDiff
            ``document()`` is what ``fairbits diff --json`` prints, ``command`` what makes it again.

        Raises
        ------
        OptionError
            Where schema or people differ, or the page cannot be written.
        """
        from fairbits.audit.command import SubjectOrigin
        from fairbits.audit.model_diff import check_page, diff_sides
        from fairbits.diff import with_model

        check_page(html)
        granted: GrantOptions = {**self._origin.grants, **grants}
        if isinstance(other, AuditedSubject):
            after, name = other.subject, other._origin.name
        elif isinstance(other, Subject):
            after, name = other, other.source
        else:
            after = with_model(self.subject, other, **granted)
            name = str(other) if isinstance(other, str | Path) else None
        return diff_sides(
            (self.subject, after),
            (self._origin.name, name),
            SubjectOrigin(protected=self._origin.protected, grants=granted),
            html=html,
            epsilon=epsilon,
            partition=partition,
            seed=seed,
            threads=threads,
            top=top,
            people=people,
        )
