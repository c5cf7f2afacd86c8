"""The paper's first two research questions, made anew: how far k grows, and who finds ID cases faster.

`field` is the second one asked of every strategy that is here; it shares its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairbits.data import load_subject
from fairbits.errors import OptionError
from fairbits.paper.arena import Arena
from fairbits.paper.cells import Cells
from fairbits.paper.contest import Contest
from fairbits.paper.digest import rq1_findings, rq2_findings
from fairbits.paper.field import COLUMNS as FIELD
from fairbits.paper.field import Groups, Runs, every_rate, field_findings, field_row
from fairbits.paper.published import number, row_of
from fairbits.paper.significance import mean
from fairbits.paper.spread import CellShard, cells_job, make_all
from fairbits.paper.subjects import OURS, Roster
from fairbits.paper.tables import Cell, Results
from fairbits.scale import ExecutorOptions
from fairbits.search import DEFAULT, Budget
from fairbits.search import STRATEGIES as KNOWN

#: The paper's time-outs in seconds, and its repeats.
FULL_SECONDS = {"rq1": 3600.0, "rq2": 900.0, "rq3": 3600.0, "field": 900.0}
FULL_REPEATS = 10
#: What runs unless told otherwise: the paper's strategies, and ours.
STRATEGIES = {
    question: tuple(dict.fromkeys((*rivals, "dice", DEFAULT)))
    for question, rivals in (("rq1", ()), ("rq2", ("aequitas", "adf", "neuronfair")), ("field", tuple(KNOWN)))
}

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """One experiment: which cells, and on which terms. Make one with ``of``."""

    question: str
    subjects: Roster
    contest: Contest
    strategies: tuple[str, ...]
    folder: Path

    @classmethod
    def of(
        cls,
        question: str,
        subjects: Roster,
        folder: Path,
        *,
        seconds: float = 5.0,
        repeats: int = 1,
        full: bool = False,
        strategies: Sequence[str] | None = None,
        partition: str = "constrained",
        threads: int | None = None,
    ) -> ExperimentPlan:
        """The plan of a research question: short, or (full) as long as the paper's."""
        contest = Contest(budget=Budget(seconds=seconds), repeats=repeats, partition=partition, threads=threads)
        if full:
            contest = replace(contest, budget=Budget(seconds=FULL_SECONDS[question]), repeats=FULL_REPEATS)
        chosen = tuple(dict.fromkeys(strategies or STRATEGIES[question]))
        if question == "field" and (DEFAULT not in chosen or len(chosen) < 2):
            raise OptionError(
                f"the field is {DEFAULT!r} and its rivals, but the strategies are {', '.join(chosen)}; "
                f"name {DEFAULT!r} and at least one other, or leave them out."
            )
        return cls(question, subjects, contest, chosen, folder)

    def run(self, progress: Progress | None = None, *, executor_options: ExecutorOptions | None = None) -> Results:
        """Make the runs that are missing, then the table."""
        groups = self._groups()
        if executor_options is not None and executor_options.many:
            self._spread(groups, executor_options, progress)
        found = self._runs(groups, progress)
        rows = [row for (subject, protected), runs in found.items() for row in self._rows(subject, protected, runs)]
        times = f"{self.contest.budget}, {self.contest.repeats} run{'s' if self.contest.repeats > 1 else ''} a cell"
        title, columns = TITLES[self.question]
        notes = [f"{times}; {self.contest.partition} partition.", OURS, *self.subjects.notes]
        result = Results(title, columns, rows, notes, self._findings(rows, found))
        result.write(self.folder, self.question)
        if self.question == "field":
            Results(title, ("subject", "protected", "strategy", "run", "ID/s", "k"), every_rate(found)).write(
                self.folder, "field-all"
            )
        return result

    def _runs(self, groups: list[tuple[str, str | None]], progress: Progress | None) -> Groups:
        """Every cell: in turns, so that a noisy minute of the machine hits everybody."""
        total, done = len(groups) * len(self.strategies) * self.contest.repeats, 0
        cells = Cells(self.folder / "cells")
        found: dict[tuple[str, str | None], Runs] = {}
        for subject, protected in groups:
            arena = self._arena(subject, protected)
            runs: dict[str, list[dict[str, Any]]] = {strategy: [] for strategy in self.strategies}
            for repeat in range(self.contest.repeats):
                for strategy in self.strategies:
                    if progress is not None:
                        what = " ".join(filter(None, (subject, protected, strategy)))
                        progress(done, total, f"{what}, run {repeat + 1} of {self.contest.repeats}")
                    runs[strategy].append(arena.run(strategy, repeat, cells, name=self._label(subject, protected)))
                    done += 1
            found[subject, protected] = runs
        return found

    def _rows(self, subject: str, protected: str | None, runs: Runs) -> list[Sequence[Cell]]:
        if protected is None:
            return [*(_rq1(subject, who, mine) for who, mine in runs.items()), _published_rq1(subject)]
        if self.question == "field":
            return [field_row(f"{subject}: {protected}", runs)]
        return [_rq2(subject, protected, who, mine) for who, mine in runs.items()]

    def _findings(self, rows: list[Sequence[Cell]], found: Groups) -> list[str]:
        if self.question == "field":
            return field_findings(found)
        return rq1_findings(rows) if self.question == "rq1" else rq2_findings(rows)

    def _arena(self, subject: str, protected: str | None) -> Arena:
        """Where the strategies meet; refuses those that the model cannot serve."""
        loaded = load_subject(subject)
        arena = Arena(loaded if protected is None else loaded.with_protected([protected]), self.contest)
        arena.entrants(self.strategies)
        return arena

    def _label(self, subject: str, protected: str | None) -> str:
        question = "rq1" if protected is None else "rq2"
        return "".join(f"{part}-" for part in (question, subject, protected) if part)

    def _spread(
        self, groups: list[tuple[str, str | None]], executor_options: ExecutorOptions, progress: Progress | None
    ) -> None:
        """Have the missing cells made, several at a time."""
        cells, arenas, shards = Cells(self.folder / "cells"), dict[tuple[str, str | None], Arena](), []
        for subject, protected in groups:
            arena = self._arena(subject, protected)
            arenas[subject, protected] = arena
            shards += [
                CellShard(subject, protected, strategy, repeat)
                for strategy in self.strategies
                for repeat in range(self.contest.repeats)
                if not arena.is_kept(strategy, repeat, cells, name=self._label(subject, protected))
            ]

        def keep(shard: CellShard, figures: dict[str, Any]) -> None:
            where = str(shard.subject), shard.protected
            arenas[where].keep(shard.strategy, shard.repeat, cells, figures, name=self._label(*where))

        make_all(executor_options, cells_job(self.contest, executor_options), shards, keep, progress)

    def _groups(self) -> list[tuple[str, str | None]]:
        """What the cells are about: a subject with all its protected attributes, or with each of them alone."""
        if self.question == "rq1":
            return [(name, None) for name in self.subjects.names]
        return [(name, one) for name in self.subjects.names for one in load_subject(name).schema.protected]


TITLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "rq1": (
        "RQ1: how much protected information, and how k grows",
        ("subject", "who", "m", "K_I", "cases", "K_F", "k max", "T s", "Q∞", "Q1", "#K1", "#K2", "#K3"),
    ),
    "rq2": (
        "RQ2: ID cases by one protected attribute, ours beside the paper's",
        ("subject", "strategy", "IDs", "paper", "loc %", "paper", "1st s", "paper", "1000th", "paper"),
    ),
    "field": (f"The field: ID cases per second of {DEFAULT} and of its best rival", FIELD),
}


def _rq1(subject: str, strategy: str, runs: Sequence[Mapping[str, Any]]) -> Sequence[Cell]:
    def figure(name: str) -> float | None:
        return mean([run[name] for run in runs])

    top = [mean([run["top"][place]["cases"] if place < len(run["top"]) else 0.0 for run in runs]) for place in range(3)]
    names = ("k_final", "k_max", "seconds_to_k_final", "q_inf_mean_id", "q_1_mean_id")
    start = [subject, strategy, runs[0]["m"], figure("k_initial"), figure("cases")]
    return [*start, *(figure(name) for name in names), *top]


def _published_rq1(subject: str) -> Sequence[Cell]:
    row = row_of("rq1", subject)
    m = number(row, "m")
    names = ("seconds_to_k_final", "q_inf", "q_1", "cases_at_k1", "cases_at_k2", "cases_at_k3")
    start = ["", "paper", None if m is None else int(m), number(row, "k_initial"), number(row, "cases")]
    return [*start, number(row, "k_final"), None, *(number(row, name) for name in names)]


def _rq2(subject: str, protected: str, strategy: str, runs: Sequence[Mapping[str, Any]]) -> Sequence[Cell]:
    row = row_of("rq2", subject, protected=protected)
    ids = number(row, f"{strategy}_ids_thousands")
    rate = mean([run["local_success_rate"] for run in runs])
    return [
        f"{subject}: {protected}",
        strategy,
        mean([run["id_cases"] for run in runs]),
        None if ids is None else 1000 * ids,
        None if rate is None else 100 * rate,
        number(row, f"{strategy}_local_success_percent"),
        mean([run["seconds_to_first_id"] for run in runs]),
        number(row, f"{strategy}_seconds_to_first"),
        mean([run["seconds_to_1000_id"] for run in runs]),
        number(row, f"{strategy}_seconds_to_1000"),
    ]
