"""All strategies on one subject, through the same oracle, at equal seconds: who finds more, how fast, how different."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Unpack

from fairbits.domain import GrantOptions, joined
from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.measure import Evaluator, default_epsilon
from fairbits.paper.cells import Cells
from fairbits.paper.diversity import Diversity
from fairbits.paper.pace import pace
from fairbits.paper.significance import Standing, Verdict, against_one, deviation, mean, runs_needed, standing
from fairbits.scale import ExecutorOptions
from fairbits.search import STRATEGIES, Budget, Problem, Settings, lacking, search_subject
from fairbits.subject import Quality, Subject

#: What every run is judged by, in the order of the tables.
FIGURES = (
    "id_cases",
    "id_per_second",
    "id_per_million_queries",
    "local_success_rate",
    "seconds_to_first_id",
    "seconds_to_1000_id",
    "k_max",
    "q_inf_mean_id",
    "q_1_mean_id",
    "diversity",
    "leaves_covered",
    "changed",
    "l1",
)
BASELINE = "dice"
#: Which figures a finished run keeps on disk; counted up when there are others.
KEPT = 2
#: Called before each run with (runs done, runs in all, what comes now).
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Contest:
    """The terms of a comparison of strategies, equal for all.

    Parameters
    ----------
    budget
        What each run may use.
    repeats
        Runs of each strategy; each has its own seed.
    seed
        Seed of the first run; the others count on from it.
    epsilon
        Tolerance: scores at most this far apart may share a class. None takes the subject's default.
    partition
        How scores become classes.
    threads
        Threads of a run; None: all cores.
    """

    budget: Budget
    repeats: int = 10
    seed: int = 0
    epsilon: float | None = None
    partition: str = "constrained"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise OptionError(f"repeats is {self.repeats}; at least one run is needed.")

    def settings(self, strategy: str, repeat: int) -> Settings:
        """Settings of one run: the seed moves with the repeat.

        Parameters
        ----------
        strategy
            Name of the strategy.
        repeat
            Number of the run, counted from 0.

        Returns
        -------
        Settings
            The settings.
        """
        return Settings(
            self.budget,
            strategy,
            seed=self.seed + repeat,
            epsilon=self.epsilon,
            partition=self.partition,
            threads=self.threads,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One strategy's runs.

    Attributes
    ----------
    strategy
        Its name.
    runs
        The figures of each run, by name.
    verdict
        The test of its number of ID cases against the baseline, corrected for all strategies; None for the baseline
        itself.
    """

    strategy: str
    runs: list[dict[str, Any]]
    verdict: Verdict | None = None

    def values(self, figure: str) -> list[float | None]:
        """One figure of every run.

        Parameters
        ----------
        figure
            Name of the figure.

        Returns
        -------
        list[float | None]
            Values; None where a run does not have it.
        """
        return [run[figure] for run in self.runs]

    def mean(self, figure: str) -> float | None:
        """Mean of a figure over the runs that have it.

        Parameters
        ----------
        figure
            Name of the figure.

        Returns
        -------
        float | None
            The mean; None where no run has it.
        """
        return mean(self.values(figure))

    def deviation(self, figure: str) -> float | None:
        """Standard deviation of a figure.

        Parameters
        ----------
        figure
            Name of the figure.

        Returns
        -------
        float | None
            The deviation; None for a single run.
        """
        return deviation(self.values(figure))


@dataclass(frozen=True, slots=True)
class StrategyComparison:
    """Strategies on one subject, on equal terms.

    Attributes
    ----------
    subject
        The subject's name.
    contest
        The terms.
    entries
        Each strategy's runs, in the order asked for.
    left_out
        Strategies that the model could not serve, with the reason.
    quality
        How the model agrees with the labels, and its decision rule; None where that is not known.
    """

    subject: str
    contest: Contest
    entries: list[Entry]
    left_out: dict[str, str] = field(default_factory=dict)
    quality: Quality | None = None

    @property
    def idle(self) -> list[str]:
        """Strategies that evaluated no person in some run, because the budget ended before their first step."""
        return [entry.strategy for entry in self.entries if any(run["evaluations"] == 0 for run in entry.runs)]

    @property
    def standing(self) -> Standing:
        """Who found the most ID cases, and who is not told apart from that one."""
        return standing({entry.strategy: [run["id_cases"] for run in entry.runs] for entry in self.entries})

    @property
    def sentence(self) -> str:
        """Who found the most, as far as the test can tell."""
        found = self.standing
        ids = {entry.strategy: entry.mean("id_cases") or 0.0 for entry in self.entries}
        if not ids[found.best]:
            return "No strategy found an ID case."
        top = f"{found.best} found {ids[found.best]:,.0f} ID cases"
        if len(self.entries) == 1:
            return f"{top}; there is nobody to compare it with."
        if not found.tested:
            return f"{top}, the most in one run each: another run may change the order."
        if found.winner is not None:
            return f"{top} on average, more than any other strategy (told apart from all of them)."
        needed = runs_needed(len(self.entries) - 1)
        few = f"; telling {len(self.entries)} strategies apart takes at least {needed} runs each"
        short = few if self.contest.repeats < needed else ""
        return f"{top} on average, the most, but is not told apart from {joined(list(found.tied))}{short}."

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        rows = []
        for entry in self.entries:
            figures = {name: {"mean": entry.mean(name), "deviation": entry.deviation(name)} for name in FIGURES}
            verdict = None if entry.verdict is None else asdict(entry.verdict)
            rows.append({"strategy": entry.strategy, **figures, "against_dice": verdict, "runs": entry.runs})
        return {
            "subject": self.subject,
            "quality": None if self.quality is None else self.quality.figures(),
            "terms": str(self.contest.budget),
            "contest": asdict(self.contest),
            "left_out": self.left_out,
            "idle": self.idle,
            "sentence": self.sentence,
            "standing": {**asdict(self.standing), "winner": self.standing.winner},
            "strategies": rows,
        }

    def write_csv(self, path: Path) -> None:
        """Write means and deviations, one line per strategy.

        Parameters
        ----------
        path
            The file.
        """
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            spread = [f"{name}_{kind}" for name in FIGURES for kind in ("mean", "deviation")]
            writer.writerow(
                ["strategy", "repeats", *spread, "p_against_dice", "p_holm_against_dice", "a12_against_dice"]
            )
            for entry in self.entries:
                cells = [value for name in FIGURES for value in (entry.mean(name), entry.deviation(name))]
                verdict = entry.verdict
                test = [None] * 3 if verdict is None else [verdict.p, verdict.p_holm, verdict.a12]
                writer.writerow([entry.strategy, len(entry.runs), *("" if c is None else c for c in (*cells, *test))])


def compare(
    subject: Subject,
    contest: Contest,
    strategies: Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    executor_options: ExecutorOptions | None = None,
    progress: Progress | None = None,
    **grants: Unpack[GrantOptions],
) -> StrategyComparison:
    """Run strategies against each other on equal terms.

    Parameters
    ----------
    subject
        The model, its table and its schema.
    contest
        Budget, repeats and other terms, equal for all.
    strategies
        Names; None means all that the model can serve.
    folder
        Where finished runs are kept, so that they are not run again; None keeps none.
    executor_options
        Which executor does the work, with how many workers and threads.
    progress
        Called with the number done, the number in all, and what is being done.
    **grants
        What files from outside may do, as for :func:`~fairbits.load_subject`.

    Returns
    -------
    StrategyComparison
        Entries in the order that was asked for.

    Raises
    ------
    OptionError
        If there is no such strategy.
    CapabilityError
        If a named strategy needs what the model lacks.
    """
    arena = Arena(subject, contest)
    names, left_out = arena.entrants(strategies)
    cells = None if folder is None else Cells(Path(folder) / "cells")
    if executor_options is not None and executor_options.many:
        with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
            kept = cells or Cells(Path(place))
            _spread(arena, names, kept, executor_options, progress, **grants)
            return _compared(arena, names, left_out, kept, folder, None)
    return _compared(arena, names, left_out, cells, folder, progress)


def _compared(
    arena: Arena,
    names: list[str],
    left_out: dict[str, str],
    cells: Cells | None,
    folder: str | Path | None,
    progress: Progress | None,
) -> StrategyComparison:
    """One run after the other, as far as they are not kept."""
    contest = arena.contest
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    total, done = len(names) * contest.repeats, 0
    for repeat in range(contest.repeats):  # in turns, so that a noisy minute of the machine hits everybody
        for name in names:
            if progress is not None:
                progress(done, total, f"{name}, run {repeat + 1} of {contest.repeats}")
            found[name].append(arena.run(name, repeat, cells))
            done += 1
    ids = {name: [run["id_cases"] for run in runs] for name, runs in found.items()}
    verdicts = against_one(ids, BASELINE) if BASELINE in ids else {}
    entries = [Entry(name, runs, verdicts.get(name)) for name, runs in found.items()]
    quality = arena.subject.checked(as_is=True).quality
    result = StrategyComparison(arena.subject.name, contest, entries, left_out, quality)
    if folder is not None:
        result.write_csv(Path(folder) / "compare.csv")
    return result


def _spread(
    arena: Arena,
    names: list[str],
    cells: Cells,
    executor_options: ExecutorOptions,
    progress: Progress | None,
    **grants: Unpack[GrantOptions],
) -> None:
    """Have the missing runs made by many workers, and keep them."""
    from fairbits.paper.spread import CellShard, cells_job, make_all

    shards = [
        CellShard(None, None, name, repeat)
        for repeat in range(arena.contest.repeats)
        for name in names
        if not arena.is_kept(name, repeat, cells)
    ]
    make_all(
        executor_options,
        cells_job(arena.contest, executor_options, arena.subject, **grants),
        shards,
        lambda shard, figures: arena.keep(shard.strategy, shard.repeat, cells, figures),
        progress,
    )


class Arena:
    """One subject, ready to be searched by one strategy after the other."""

    def __init__(self, subject: Subject, contest: Contest):
        epsilon = contest.epsilon
        self.subject, self.contest = subject, contest
        self.evaluator = Evaluator(
            subject.model,
            subject.schema,
            subject.encoding,
            epsilon=default_epsilon(subject.schema, subject.table) if epsilon is None else epsilon,
            partition=contest.partition,
            threads=contest.threads,
            rows=subject.table.codes,
        )
        self.problem = Problem(self.evaluator, subject.table)
        self.diversity = Diversity(self.evaluator, self.problem)
        self._warm: set[str] = set()

    def entrants(self, wanted: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
        """The strategies to run, and what those that are left out would need.

        Parameters
        ----------
        wanted
            Names, which are never left out silently; None means all that the model can serve.

        Returns
        -------
        tuple[list[str], dict[str, str]]
            Names, and reasons by name.

        Raises
        ------
        OptionError
            If there is no such strategy.
        CapabilityError
            If a named strategy needs what the model lacks.
        """
        left_out: dict[str, str] = {}
        names = list(STRATEGIES) if wanted is None else list(dict.fromkeys(wanted))
        for name in list(names):
            if name not in STRATEGIES:
                raise OptionError(f"strategy {name!r} is not known; {choose_from(name, STRATEGIES)}")
            missing = lacking(STRATEGIES[name], self.problem)
            if missing is not None:
                left_out[name] = missing
                names.remove(name)
        if wanted is not None and left_out:
            name, missing = next(iter(left_out.items()))
            able = ", ".join(n for n, kind in STRATEGIES.items() if lacking(kind, self.problem) is None)
            raise CapabilityError(f"strategy {name!r} needs {missing}, which this model lacks; use some of: {able}.")
        if not names:
            raise OptionError("no strategy was named; give some, separated by commas, or 'all'.")
        return names, left_out

    def run(self, strategy: str, repeat: int, cells: Cells | None = None, *, name: str = "") -> dict[str, Any]:
        """Figures of one run, from disk if it has been made before.

        Parameters
        ----------
        strategy
            Name of the strategy.
        repeat
            Number of the run, counted from 0.
        cells
            Finished runs; None keeps none.
        name
            Beginning of the cell's name.

        Returns
        -------
        dict[str, Any]
            The figures.
        """
        settings = self.contest.settings(strategy, repeat)
        if cells is None:
            return self._figures(settings)
        return cells.get(f"{name}{strategy}-{repeat}", self._identity(settings), lambda: self._figures(settings))

    def is_kept(self, strategy: str, repeat: int, cells: Cells, *, name: str = "") -> bool:
        """Whether a run has been made before.

        Parameters
        ----------
        strategy
            Name of the strategy.
        repeat
            Number of the run, counted from 0.
        cells
            Finished runs.
        name
            Beginning of the cell's name.

        Returns
        -------
        bool
            True where it need not be made.
        """
        identity = self._identity(self.contest.settings(strategy, repeat))
        return cells.ready(f"{name}{strategy}-{repeat}", identity) is not None

    def keep(self, strategy: str, repeat: int, cells: Cells, figures: dict[str, Any], *, name: str = "") -> None:
        """Keep a run that a worker made.

        Parameters
        ----------
        strategy
            Name of the strategy.
        repeat
            Number of the run, counted from 0.
        cells
            Finished runs.
        figures
            Figures of the run.
        name
            Beginning of the cell's name.
        """
        identity = self._identity(self.contest.settings(strategy, repeat))
        cells.get(f"{name}{strategy}-{repeat}", identity, lambda: figures)

    def _identity(self, settings: Settings) -> dict[str, Any]:
        identity = {"subject": self.subject.identity.id, "kept": KEPT, **asdict(settings)}
        identity.pop("threads")
        return identity

    def _figures(self, settings: Settings) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
            if settings.strategy not in self._warm:  # imports and first compilations are no cost of a strategy
                warm = Settings(Budget(evaluations=2_000, seconds=5.0), settings.strategy, threads=settings.threads)
                search_subject(self.subject, warm, Path(place) / "warm")
                self._warm.add(settings.strategy)
            run = search_subject(self.subject, settings, Path(place) / "run")
            summary = run.summary or {}
            ids, seconds, queries = summary["id_cases"], summary["seconds"], summary["queries"]
            horizon = settings.budget.seconds or seconds
            return {
                **summary,
                "k_max": summary["k_max"] or 0,
                "id_per_second": ids / seconds if seconds else 0.0,
                "id_per_million_queries": 1e6 * ids / queries if queries else 0.0,
                "pace": pace(run, horizon),
                "pace_seconds": horizon,
                **self.diversity.of(run, ids),
            }
