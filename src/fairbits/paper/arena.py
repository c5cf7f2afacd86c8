"""The arena: strategies search one subject after the other through the same oracle, at equal seconds.

One strategy's figures are how many ID cases it finds, how fast, and how different they are from each other. `compare`
asks that of one subject, the paper's questions of many.
"""

from __future__ import annotations

import csv
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from fairbits import domain, measure, scale, search, store
from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.options import CompareOptions
from fairbits.paper.cells import Cells, Desk, ExperimentCell, Progress, figures_of
from fairbits.paper.significance import Standing, Verdict, against_one, deviation, mean, runs_needed, standing
from fairbits.subject import Quality, Subject
from fairbits.text import joined

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
#: Files of a comparison: means and deviations, everything, and the page.
TABLE, DOCUMENT, PAGE = "compare.csv", "compare.json", "compare.html"


def settings_of(contest: CompareOptions, strategy: str, repeat: int) -> search.Settings:
    """Settings of one run, equal for all strategies: the seed moves with the repeat."""
    return search.Settings(
        budget=contest.budget,
        strategy=strategy,
        seed=contest.seed + repeat,
        epsilon=contest.epsilon,
        partition=contest.partition,
        threads=contest.threads,
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """One strategy's runs."""

    strategy: str
    runs: list[dict[str, Any]]
    verdict: Verdict | None = None

    def values(self, figure: str) -> list[float | None]:
        """One figure of every run."""
        return [run[figure] for run in self.runs]

    def mean(self, figure: str) -> float | None:
        """Mean of a figure over the runs that have it."""
        return mean(self.values(figure))

    def deviation(self, figure: str) -> float | None:
        """Standard deviation of a figure."""
        return deviation(self.values(figure))


@dataclass(frozen=True, slots=True)
class StrategyComparison:
    """Strategies on one subject, on equal terms."""

    subject: str
    contest: CompareOptions
    entries: list[Entry]
    left_out: dict[str, str] = field(default_factory=dict)
    quality: Quality | None = None
    folder: Path | None = None
    command: str = ""

    @property
    def page(self) -> Path | None:
        """The page with plots; None where nothing was written."""
        return None if self.folder is None else self.folder / PAGE

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
        current = self.standing
        ids = {entry.strategy: entry.mean("id_cases") or 0.0 for entry in self.entries}
        if not ids[current.best]:
            return "No strategy found an ID case."
        top = f"{current.best} found {ids[current.best]:,.0f} ID cases"
        if len(self.entries) == 1:
            return f"{top}; there is nobody to compare it with."
        if not current.tested:
            return f"{top}, the most in one run each: another run may change the order."
        if current.winner is not None:
            return f"{top} on average, more than any other strategy (told apart from all of them)."
        needed = runs_needed(len(self.entries) - 1)
        few = f"; telling {len(self.entries)} strategies apart takes at least {needed} runs each"
        short = few if self.contest.repeats < needed else ""
        return f"{top} on average, the most, but is not told apart from {joined(list(current.tied))}{short}."

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        rows = [
            {
                "strategy": entry.strategy,
                **{name: {"mean": entry.mean(name), "deviation": entry.deviation(name)} for name in FIGURES},
                "against_dice": None if entry.verdict is None else asdict(entry.verdict),
                "runs": entry.runs,
            }
            for entry in self.entries
        ]
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
        """Write means and deviations, one line per strategy."""
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


#: Equal steps that the time of a run is cut into.
STEPS = 40


def pace(run: store.Run, seconds: float) -> list[int]:
    """ID cases found so far, at the end of each of some equal steps of time."""
    step = f"least(floor(seconds / {max(seconds, 1e-9)!r} * {STEPS}), {STEPS - 1})::INTEGER"
    table = run.query(f"SELECT {step} AS step, count(*) AS ids FROM cases WHERE flips GROUP BY 1")  # noqa: S608
    counts = np.zeros(STEPS, dtype=np.int64)
    counts[table["step"].to_numpy()] = table["ids"].to_numpy()
    return counts.cumsum().tolist()


#: ID cases looked at, and of these the ones compared pair by pair.
SAMPLE, PAIRED = 20_000, 1_000
#: Leaves of the map.
LEAVES = 200


class Diversity:
    """A map of one subject: the leaves of a decision tree fitted to the decisions about its real rows."""

    def __init__(self, evaluator: measure.Evaluator, problem: search.Problem):
        from sklearn.tree import DecisionTreeClassifier

        self._problem = problem
        attributes = [problem.schema.attributes[i] for i in problem.person]
        self._categories = np.array([attribute.kind == "category" for attribute in attributes])
        self._width = np.array([attribute.upper - attribute.low or 1.0 for attribute in attributes])
        own = evaluator.row_scores(problem.rows)
        cut = float(np.median(own)) if problem.schema.regression else evaluator.threshold
        tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0)
        self._tree = tree.fit(problem.rows[:, problem.person], own >= cut)

    def of(self, run: store.Run, id_cases: int) -> dict[str, Any]:
        """Figures of diversity over a sample of a run's ID cases, spread evenly over the time of the search."""
        leaves = int(self._tree.get_n_leaves())
        if id_cases == 0:
            return {"diversity": None, "leaves_covered": 0, "leaves": leaves, "changed": None, "l1": None}
        stride = max(1, id_cases // SAMPLE)
        table = run.cases(where=f"flips AND evaluation % {stride} = 0", labels=False)
        if table.num_rows == 0:  # a handful of cases may miss the beat
            table = run.cases(where="flips", top=SAMPLE, labels=False)
        people = np.column_stack([table[i].to_numpy() for i in range(len(self._problem.person))]).astype(np.float64)
        order = np.argsort(table["evaluation"].to_numpy(), kind="stable")
        return {
            "diversity": self.spread(people[order]),
            "leaves_covered": len(np.unique(self._tree.apply(people))),
            "leaves": leaves,
            "changed": float(table["changed"].to_numpy().mean()),
            "l1": float(table["l1"].to_numpy().mean()),
        }

    def spread(self, people: domain.Codes) -> float | None:
        """Mean distance of two people: per attribute the share of its range, for categories same or not."""
        some = people[np.linspace(0, len(people) - 1, min(PAIRED, len(people))).astype(np.int64)]
        if len(some) < 2:
            return None
        total = 0.0
        for values, named, width in zip(some.T, self._categories, self._width, strict=True):
            apart = np.abs(values[:, None] - values)
            total += float((apart > 0).sum() if named else apart.sum() / width)
        return total / (len(some) * (len(some) - 1) * some.shape[1])


#: Which figures a finished run keeps on disk; counted up when there are others.
KEPT = 2


class Arena:
    """One subject, ready to be searched by one strategy after the other."""

    def __init__(self, subject: Subject, settings: search.Settings):
        self.subject = subject
        self.evaluator = measure.evaluator_of(
            subject, epsilon=settings.epsilon, partition=settings.partition, threads=settings.threads
        )
        self.problem = search.Problem(self.evaluator, subject.table)
        self._warm: set[str] = set()

    @cached_property
    def diversity(self) -> Diversity:
        """The map that cases are laid on."""
        return Diversity(self.evaluator, self.problem)

    def entrants(self, wanted: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
        """The strategies to run, and what those that are left out would need."""
        names = list(search.STRATEGIES) if wanted is None else list(dict.fromkeys(wanted))
        if not names:
            raise OptionError("no strategy was named; give some, separated by commas, or 'all'.")
        for name in names:
            if name not in search.STRATEGIES:
                raise OptionError(f"strategy {name!r} is not known; {choose_from(name, search.STRATEGIES)}")
        needs = {name: search.lacking(kind, self.problem) for name, kind in search.STRATEGIES.items()}
        left_out = {name: missing for name in names if (missing := needs[name]) is not None}
        for name, missing in left_out.items() if wanted is not None else ():
            able = ", ".join(need for need in needs if needs[need] is None)
            raise CapabilityError(f"strategy {name!r} needs {missing}, which this model lacks; use some of: {able}.")
        return [name for name in names if name not in left_out], left_out

    def run(self, settings: search.Settings) -> dict[str, Any]:
        """Figures of one run."""
        with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
            if settings.strategy not in self._warm:  # imports and first compilations are no cost of a strategy
                few = search.Budget(evaluations=2_000, seconds=5.0)
                warm = search.Settings(budget=few, strategy=settings.strategy, threads=settings.threads)
                search.search_subject(self.subject, warm, Path(place) / "warm")
                self._warm.add(settings.strategy)
            run = search.search_subject(self.subject, settings, Path(place) / "run")
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


def arena_of(desk: Desk, subject: str | None, protected: str | None, settings: search.Settings) -> Arena:
    """Where strategies meet over a subject, all its protected attributes or one of them."""
    return desk.latest((subject, protected), lambda: Arena(desk.subject(subject, protected), settings))


def _run_of(desk: Desk, cell: ExperimentCell) -> dict[str, Any]:
    """One run of one strategy."""
    return arena_of(desk, cell.subject, cell.protected, cell.given).run(cell.given)


def strategy_runs(
    groups: Sequence[tuple[str | None, str | None, str]],
    contest: CompareOptions,
    strategies: Sequence[str],
    cells: Cells,
    desk: Desk,
    *,
    executor_options: scale.ExecutorOptions | None = None,
    shared: Subject | scale.Portable | None = None,
    progress: Progress | None = None,
) -> list[dict[str, list[dict[str, Any]]]]:
    """For each group (subject, protected attribute, prefix of its files) the runs of every strategy.

    Strategies take turns, so that a noisy minute of the machine hits everybody.
    """
    if executor_options is not None and executor_options.many:
        contest = replace(contest, threads=executor_options.each)
    wanted = []
    for subject, protected, prefix in groups:
        for repeat, strategy in itertools.product(range(contest.repeats), strategies):
            settings = settings_of(contest, strategy, repeat)
            title = " ".join(filter(None, (subject, protected, f"{strategy}, run {repeat + 1} of {contest.repeats}")))
            terms = {"kept": KEPT, **asdict(replace(settings, threads=None))}  # threads change nothing
            label = f"{prefix}{strategy}-{repeat}"
            wanted.append(ExperimentCell(label, title, _run_of, settings, terms, subject, protected))
    made = figures_of(wanted, cells, desk, executor_options=executor_options, shared=shared, progress=progress)
    size = contest.repeats * len(strategies)
    return [
        {name: made[start + place : start + size : len(strategies)] for place, name in enumerate(strategies)}
        for start in range(0, len(made), size)
    ]


def compare(
    subject: Subject,
    contest: CompareOptions,
    strategies: Sequence[str] | None = None,
    *,
    folder: str | Path | None = None,
    executor_options: scale.ExecutorOptions | None = None,
    progress: Progress | None = None,
    **grants: Unpack[domain.GrantOptions],
) -> StrategyComparison:
    """Run strategies against each other on equal terms."""
    desk = Desk(subject)
    names, left_out = arena_of(desk, None, None, settings_of(contest, search.REFERENCE, 0)).entrants(strategies)
    elsewhere = executor_options is not None and executor_options.elsewhere
    with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
        (runs,) = strategy_runs(
            [(None, None, "")],
            contest,
            names,
            Cells(Path(place) if folder is None else Path(folder) / "cells"),
            desk,
            executor_options=executor_options,
            shared=scale.Portable.of(subject, **grants) if elsewhere else subject,
            progress=progress,
        )
    ids = {name: [run["id_cases"] for run in runs] for name, runs in runs.items()}
    verdicts = against_one(ids, search.REFERENCE) if search.REFERENCE in ids else {}
    entries = [Entry(name, runs, verdicts.get(name)) for name, runs in runs.items()]
    result = StrategyComparison(subject.name, contest, entries, left_out, subject.checked(as_is=True).quality)
    if folder is not None:
        result.write_csv(Path(folder) / TABLE)
    return result
