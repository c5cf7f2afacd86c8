"""The searches of an audit, new and going on, and the settings that they follow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbits.audit.subject import AuditedSubject
from fairbits.errors import OptionError

if TYPE_CHECKING:
    from fairbits.audit.run import AuditRun
    from fairbits.scale import ExecutorOptions
    from fairbits.search import Budget, Settings, Strategy, Tally
    from fairbits.store import Run

#: How long a search takes where nothing is said.
DEFAULT_BUDGET = "60s"
#: Seconds of a search that ends by itself.
UNLIMITED = 1e9


class SearchAudit(AuditedSubject):
    """The part of :class:`~fairbits.Audit` that searches."""

    def search(
        self,
        *,
        budget: Budget | str | None = None,
        strategy: str | Strategy | None = None,
        seed: int | None = None,
        epsilon: float | None = None,
        partition: str | None = None,
        within: int | None = None,
        min_plausibility: float | None = None,
        measure: str | None = None,
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
            A duration such as "30s", or a :class:`~fairbits.Budget` of seconds, evaluations, queries or cases; by
            default "60s", and the whole of an exhaustive search.
            Time counts from this call: preparing and summing up are part of it, compiling is not.
        strategy
            How to search: a name such as "climb" (the default), "dice", "adf" or "random", or an object
            of your own made from ``fairbits.search.Strategy``.
        seed
            Same seed, same cases, whatever the threads or workers; 0 by default. A budget of seconds ends the search
            elsewhere each time: ``Budget(ends=...)``, which run.json keeps, makes the same run again.
        epsilon
            Tolerance between scores that count as the same; None takes 0.025, or 2.5 % of a regression's range.
        partition
            How scores become classes: "constrained" (fewest classes, the default) or "grid" (fixed bins).
        within
            Ask only about people who differ from a real row in at most so many attributes; None sets no limit.
        min_plausibility
            Ask only about people who are at least as ordinary as this percentage of real rows; None sets no limit.
        measure
            What the search raises, cases are ranked by, and debugging and repairs lower: "q_inf" (default) or "q_1".
        threads
            Number of threads; None means all cores.
        out
            Folder or address (such as "s3://bucket/run") of the run; by default a new folder below ``runs``.
        resume
            Go on with the run in ``out``: whatever is not given is the run's own, and other settings are refused.
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
        from fairbits.engine import work_time
        from fairbits.scale import ExecutorOptions

        began = work_time()
        before = _earlier(out, resume=resume)
        if before is not None and repeats is None and self.subject.repeats == 1:
            repeats = before.manifest.get("repeats")
        settings = self.settings(
            budget=budget,
            strategy=strategy,
            seed=seed,
            epsilon=epsilon,
            partition=partition,
            within=within,
            min_plausibility=min_plausibility,
            measure=measure,
            threads=threads,
            batch=batch,
            run=before,
            **options,
        )
        return self.search_with(
            settings,
            out,
            executor_options=ExecutorOptions(workers=workers, ray=ray, threads=threads),
            shards=shards,
            resume=resume,
            force=force,
            repeats=repeats,
            progress=progress,
            stop=stop,
            began=began,
        )

    def settings(
        self,
        *,
        budget: Budget | str | None = None,
        strategy: str | Strategy | None = None,
        seed: int | None = None,
        epsilon: float | None = None,
        partition: str | None = None,
        within: int | None = None,
        min_plausibility: float | None = None,
        measure: str | None = None,
        threads: int | None = None,
        batch: int | None = None,
        run: Run | str | Path | None = None,
        **options: Any,
    ) -> Settings:
        """Everything that decides which cases a search finds, as one record for :meth:`search_with`.

        Parameters
        ----------
        budget, strategy, seed, epsilon, partition, within, min_plausibility, measure, threads, batch
            As for :meth:`search`; None takes the default, or what the run has that goes on.
        run
            A run that goes on, or its folder: what is not given is its own, and other settings are refused.
        **options
            Options of the strategy.

        Returns
        -------
        Settings
            The record.

        Raises
        ------
        OptionError
            If an option makes no sense, or differs from that of the run.
        """
        from fairbits.search import Budget, Settings, kept_settings, seconds_of

        asked: dict[str, Any] = {"seed": seed, "epsilon": epsilon, "partition": partition, "measure": measure}
        asked |= {"within": within, "min_plausibility": min_plausibility, "batch": batch}
        own = None if strategy is None or isinstance(strategy, str) else strategy
        plain = Settings(budget=Budget(seconds=UNLIMITED), options=options)
        named = plain if strategy is None else plain.with_strategy(strategy)
        asked |= {"strategy": None if strategy is None else named.strategy, "options": dict(named.options)}
        before = None if run is None else _opened(run)
        chosen = {name: value for name, value in asked.items() if value is not None}
        chosen = chosen if before is None else kept_settings(before.manifest, asked)
        limit = Budget(seconds=seconds_of(budget)) if isinstance(budget, str) else budget
        if limit is None:
            limit = _usual_budget(chosen.get("strategy"), before)
        return Settings(budget=limit, threads=threads, own=own, **chosen)

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
    ) -> AuditRun:
        """Search under settings that are one record already: see :meth:`settings`.

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

        Returns
        -------
        AuditRun
            The run, with its subject at hand.
        """
        from fairbits.audit.run import AuditRun
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
            **self._origin.grants,
        )
        return AuditRun.around(found, self.subject)

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


def _usual_budget(strategy: str | None, run: Run | None) -> Budget:
    """The budget where none is given: what the run was last given, all of an exact search, or a minute."""
    from fairbits.search import Budget, kept_budget, seconds_of

    if run is not None:
        return kept_budget(run.manifest)
    return Budget(seconds=UNLIMITED if strategy == "exhaustive" else seconds_of(DEFAULT_BUDGET))


def _opened(run: Run | str | Path) -> Run:
    from fairbits.store import Run

    return run if isinstance(run, Run) else Run.open(run)


def _earlier(out: str | Path | None, *, resume: bool) -> Run | None:
    """The run that goes on, if one does."""
    if not resume:
        return None
    if out is None:
        raise OptionError("--resume needs a run to go on with; give its folder as --out.")
    return _opened(out)
