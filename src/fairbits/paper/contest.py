"""The terms of a comparison of strategies, and what came of it: who finds more, how fast, how different."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairbits.domain import joined
from fairbits.errors import OptionError
from fairbits.paper.significance import Standing, Verdict, deviation, mean, runs_needed, standing
from fairbits.search import Budget, Settings
from fairbits.subject import Quality

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
#: Called before each run with (runs done, runs in all, what comes now).
ContestProgress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """The terms of a comparison of strategies, equal for all."""

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
        """Settings of one run: the seed moves with the repeat."""
        return Settings(
            budget=self.budget,
            strategy=strategy,
            seed=self.seed + repeat,
            epsilon=self.epsilon,
            partition=self.partition,
            threads=self.threads,
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
    contest: Contest
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
