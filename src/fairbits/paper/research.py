"""The paper's first two research questions, made anew: how far k grows, and who finds ID cases faster; and whether
quantitative feedback makes the search better.

`field` is the second one asked of every strategy that is here, our default beside every other; it shares its cells. Who
is ahead is judged as in every other comparison (see ``significance``): by the Mann-Whitney test on the runs of a cell,
corrected for the number of strategies. A cell with few runs tells nobody apart, so the default is also compared with
each rival over all cells at once, by the Wilcoxon signed-rank test on the ratio of their means.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairbits.data import load_subject
from fairbits.errors import OptionError
from fairbits.measure import Evaluator, default_epsilon
from fairbits.options import CompareOptions
from fairbits.paper.arena import arena_of, settings_of, strategy_runs
from fairbits.paper.cells import Cells, Desk, ExperimentCell, Progress, figures_of
from fairbits.paper.significance import LEVEL, deviation, holm, mean, runs_needed, standing
from fairbits.paper.subjects import OURS, Roster, number, row_of
from fairbits.paper.tables import Cell, Results, ablation_findings, rq1_findings, rq2_findings, shown
from fairbits.scale import ExecutorOptions
from fairbits.search import DEFAULT, REFERENCE, Budget, Settings, search_subject
from fairbits.search import STRATEGIES as KNOWN
from fairbits.text import joined

FIELD = ("subject", DEFAULT, "±", "best rival", "ID/s", "±", f"{DEFAULT} is", "k", "any k")
AHEAD, TIED, BEHIND, NOBODY, ONCE = "ahead", "tied", "behind", "none found", "one run"

#: So many cells it takes to compare two strategies over all of them: with fewer, no p can fall below 0.05.
PAIRED = 6

#: strategy → its runs, in the order of their seeds.
Runs = Mapping[str, Sequence[Mapping[str, Any]]]
Groups = Mapping[tuple[str, str | None], Runs]


class Pairwise(NamedTuple):
    """The default and the best of the others, and whether the test tells the default apart from everybody."""

    ours: list[float]
    rival: str
    theirs: list[float]
    verdict: str

    @property
    def ratio(self) -> float:
        """The rival's mean, in terms of the default's."""
        return (mean(self.theirs) or 0.0) / (mean(self.ours) or np.nan)


def pairwise(rates: Mapping[str, Sequence[float]]) -> Pairwise:
    """Compare the default with the rival that has the largest mean."""
    rivals = {name: list(values) for name, values in rates.items() if name != DEFAULT}
    best = max(rivals, key=lambda name: mean(rivals[name]) or 0.0)
    return Pairwise(list(rates[DEFAULT]), best, rivals[best], _verdict(rates))


def _verdict(rates: Mapping[str, Sequence[float]]) -> str:
    """Ahead of everybody, or behind somebody, as far as the test tells them apart; else tied."""
    if not any(value for values in rates.values() for value in values):
        return NOBODY
    standings = standing(rates)
    if not standings.tested:
        return ONCE
    level = standings.tied if standings.best == DEFAULT else DEFAULT in standings.tied
    return TIED if level else AHEAD if standings.best == DEFAULT else BEHIND


def field_row(name: str, runs: Runs) -> Sequence[Cell]:
    """One row: ID cases per second of the default and the best rival, and the largest k of the default and of all."""
    pair = pairwise(_rates(runs))
    k = {who: max(int(run["k_max"]) for run in mine) for who, mine in runs.items()}
    ours, theirs = ([mean(values), deviation(values)] for values in (pair.ours, pair.theirs))
    return [name, *ours, pair.rival, *theirs, pair.verdict, k[DEFAULT], max(k.values())]


def field_findings(groups: Groups) -> list[str]:
    """Sentences on where the default is ahead, how far the others are from it, and which reaches the largest k."""
    cells = {key: pairwise(_rates(runs)) for key, runs in groups.items()}
    says = [f"ID cases per second, cell by cell: {DEFAULT} is {_standing(cells)} of {len(cells)} cells."]
    repeats = min(len(mine) for group in groups.values() for mine in group.values())
    needed = runs_needed(max(len(group) for group in groups.values()) - 1)
    if repeats < needed:
        says.append(
            f"With {repeats} run{'s' * (repeats > 1)} a cell no test can tell so many strategies apart: that takes "
            f"{needed} at least."
        )
    says += _over_cells(groups)
    behind = [
        f"{subject} by {attribute} ({pair.rival} {pair.ratio:.2f} ×)"
        for (subject, attribute), pair in cells.items()
        if pair.verdict == BEHIND
    ]
    says += [f"Behind on {joined(behind)}."] if behind else []
    logs = defaultdict[str, list[float]](list)
    for who, rate, ours in _beside(groups):
        if rate and ours:
            logs[who].append(np.log(rate / ours))
    order = sorted(logs, key=lambda who: -np.mean(logs[who]))
    near = [f"{who} {shown(float(np.exp(np.mean(logs[who]))))}" for who in order]
    says += [f"ID cases per second beside {DEFAULT}, geometric mean over the cells: {', '.join(near)}."] if near else []
    k = [{who: max(run["k_max"] for run in mine) for who, mine in runs.items()} for runs in groups.values()]
    largest = sum(row[DEFAULT] == max(row.values()) for row in k)
    return [*says, f"The largest k that anybody found, {DEFAULT} found too in {largest} of {len(groups)} cells."]


def _rates(runs: Runs) -> dict[str, list[float]]:
    return {who: [float(run["id_per_second"]) for run in mine] for who, mine in runs.items()}


def _beside(groups: Groups) -> Iterator[tuple[str, float, float]]:
    """Of every cell and rival: who, its mean rate, and that of the default."""
    for runs in groups.values():
        rates = {who: mean(values) or 0.0 for who, values in _rates(runs).items()}
        yield from ((who, rate, rates[DEFAULT]) for who, rate in rates.items() if who != DEFAULT)


def _standing(pairs: Mapping[Any, Pairwise]) -> str:
    counts = {
        kind: sum(pair.verdict == kind for pair in pairs.values()) for kind in (AHEAD, TIED, BEHIND, NOBODY, ONCE)
    }
    return joined([f"{'not tested' if kind == ONCE else kind} in {n}" for kind, n in counts.items() if n])


def _over_cells(groups: Groups) -> list[str]:
    """The default against each rival, cell by cell as pairs, corrected for the number of rivals."""
    from scipy.stats import wilcoxon

    ratios = defaultdict[str, list[float]](list)
    for who, rate, ours in _beside(groups):
        if rate or ours:
            ratios[who].append((ours - rate) / (ours + rate))
    names = [who for who, values in ratios.items() if any(values)]
    if not names or max(len(values) for values in ratios.values()) < PAIRED:
        return []
    corrected = dict(zip(names, holm(float(wilcoxon(ratios[who]).pvalue) for who in names), strict=True))
    more = [who for who in names if corrected[who] < LEVEL and np.median(ratios[who]) > 0]
    fewer = [who for who in names if corrected[who] < LEVEL and np.median(ratios[who]) < 0]
    open_ = [who for who in names if who not in (*more, *fewer)]
    parts = (("finds more than", more), ("finds fewer than", fewer), ("is not told apart from", open_))
    said = "; it ".join(f"{words} {joined(who)}" for words, who in parts if who)
    return [f"Over all {len(groups)} cells (Wilcoxon signed-rank, Holm-corrected), {DEFAULT} {said}."]


#: The paper's time-outs in seconds, and its repeats.
FULL_SECONDS = {"rq1": 3600.0, "rq2": 900.0, "rq3": 3600.0, "field": 900.0}
FULL_REPEATS = 10
#: What runs unless told otherwise: the paper's strategies, and ours.
STRATEGIES = {
    question: tuple(dict.fromkeys((*rivals, REFERENCE, DEFAULT)))
    for question, rivals in (("rq1", ()), ("rq2", ("aequitas", "adf", "neuronfair")), ("field", tuple(KNOWN)))
}


class ExperimentPlan:
    """One experiment: which cells, and on which terms; short, or (``full``) as long as the paper's."""

    def __init__(
        self,
        question: str,
        subjects: Roster,
        folder: Path,
        *,
        budget: Budget,
        repeats: int = 1,
        full: bool = False,
        strategies: Sequence[str] | None = None,
        partition: str = "constrained",
        threads: int | None = None,
    ):
        limit, runs = (Budget(seconds=FULL_SECONDS[question]), FULL_REPEATS) if full else (budget, repeats)
        self.question, self.subjects, self.folder = question, subjects, folder
        self.contest = CompareOptions(budget=limit, repeats=runs, partition=partition, threads=threads)
        self.strategies = tuple(dict.fromkeys(strategies or STRATEGIES[question]))
        if question == "field" and (DEFAULT not in self.strategies or len(self.strategies) < 2):
            raise OptionError(
                f"the field is {DEFAULT!r} and its rivals, but the strategies are {', '.join(self.strategies)}; "
                f"name {DEFAULT!r} and at least one other, or leave them out."
            )

    def run(self, progress: Progress | None = None, *, executor_options: ExecutorOptions | None = None) -> Results:
        """Make the runs that are missing, then the table."""
        groups, desk = self._groups(), Desk()
        for subject, protected, _ in groups:  # refuses strategies that a model cannot serve, before the first hour
            arena_of(desk, subject, protected, settings_of(self.contest, DEFAULT, 0)).entrants(self.strategies)
        made = strategy_runs(
            groups,
            self.contest,
            self.strategies,
            Cells(self.folder / "cells"),
            desk,
            executor_options=executor_options,
            progress=progress,
        )
        grouped: Groups = {group[:2]: runs for group, runs in zip(groups, made, strict=True)}
        rows = [row for (subject, protected), runs in grouped.items() for row in self._rows(subject, protected, runs)]
        times = f"{self.contest.budget}, {self.contest.repeats} run{'s' if self.contest.repeats > 1 else ''} a cell"
        title, columns = TITLES[self.question]
        notes = [f"{times}; {self.contest.partition} partition.", OURS, *self.subjects.notes]
        says = {"rq1": rq1_findings, "rq2": rq2_findings}.get(self.question, lambda _: field_findings(grouped))(rows)
        result = Results(title, columns, rows, notes, says)
        result.write(self.folder, self.question)
        if self.question == "field":
            every = [
                [subject, protected, who, number, run["id_per_second"], run["k_max"]]
                for (subject, protected), runs in grouped.items()
                for who, mine in runs.items()
                for number, run in enumerate(mine)
            ]
            columns = ("subject", "protected", "strategy", "run", "ID/s", "k")
            Results(title, columns, every).write(self.folder, "field-all")
        return result

    def _rows(self, subject: str, protected: str | None, runs: Runs) -> list[Sequence[Cell]]:
        if protected is None:
            return [*(_rq1(subject, who, mine) for who, mine in runs.items()), _published_rq1(subject)]
        if self.question == "field":
            return [field_row(f"{subject}: {protected}", runs)]
        return [_rq2(subject, protected, who, mine) for who, mine in runs.items()]

    def _groups(self) -> list[tuple[str, str | None, str]]:
        """What the cells are about: a subject with all its protected attributes, or with each of them alone."""
        if self.question == "rq1":
            return [(name, None, f"rq1-{name}-") for name in self.subjects.names]
        return [
            (name, attribute, f"rq2-{name}-{attribute}-")
            for name in self.subjects.names
            for attribute in load_subject(name).schema.protected
        ]


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


#: The paper's conjecture, that quantitative feedback makes the search better, at an equal number of model queries:
#: `dice` with its own feedback under both partitions, and with nothing but "do twins get different decisions". What it
#: found is then measured with one ruler, the constrained partition, whatever it was led by. Of each variant: name,
#: feedback and partition.
VARIANTS = (
    ("constrained", "quantitative", "constrained"),
    ("grid", "quantitative", "grid"),
    ("binary", "binary", "constrained"),
)
ABLATION = ("subject", "feedback", "cases", "ID cases", "loc %", "max k", "mean k", "Q∞ of IDs", "Q1 of IDs")


def ablation(
    subjects: Roster,
    folder: Path,
    *,
    queries: int,
    repeats: int,
    threads: int | None = None,
    executor_options: ExecutorOptions | None = None,
    progress: Progress | None = None,
) -> Results:
    """Compare kinds of feedback on all subjects at equal queries; finished runs are read from the folder."""
    if queries < 1 or repeats < 1:
        raise OptionError(f"queries ({queries}) and repeats ({repeats}) must be 1 or more.")
    threads = executor_options.each if executor_options is not None and executor_options.many else threads
    wanted, rows = [], list[Sequence[Cell]]()
    for name, (variant, feedback, partition), repeat in itertools.product(subjects.names, VARIANTS, range(repeats)):
        settings = Settings(
            budget=Budget(queries=queries),
            strategy="dice",
            options={"feedback": feedback},
            seed=repeat,
            partition=partition,
            threads=threads,
        )
        title = f"{name}, {variant} feedback, run {repeat + 1}"
        terms = {"queries": queries, "seed": repeat, "variant": variant}
        wanted.append(
            ExperimentCell(f"ablation-{name}-{variant}-{repeat}", title, _by_one_ruler, settings, terms, name)
        )
    made = figures_of(wanted, Cells(folder / "cells"), Desk(), executor_options=executor_options, progress=progress)
    names = ("cases", "id_cases", "local_percent", "k_max", "k_mean", "q_inf_mean_id", "q_1_mean_id")
    for at in range(0, len(wanted), repeats):
        means = (mean([run[figure] for run in made[at : at + repeats]]) for figure in names)
        rows.append([wanted[at].subject, wanted[at].terms["variant"], *means])
    times = f"{queries:,} model queries a run, {repeats} run{'s' if repeats > 1 else ''} a cell"
    notes = [f"{times}; every case measured with the constrained partition.", OURS, *subjects.notes]
    result = Results("Ablation: what dice is led by", ABLATION, rows, notes, ablation_findings(rows))
    result.write(folder, "ablation")
    return result


def _by_one_ruler(desk: Desk, cell: ExperimentCell) -> dict[str, Any]:
    """One run of one variant."""
    subject = desk.subject(cell.subject)
    settings = cell.given
    epsilon = default_epsilon(subject.schema, subject.table)
    rows, threads = subject.table.codes, settings.threads
    ruler = Evaluator(subject.model, subject.schema, subject.encoding, epsilon=epsilon, threads=threads, rows=rows)
    with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
        run = search_subject(subject, settings, Path(place) / "run")
        summary = run.summary or {}
        figures = ruler.evaluate(np.concatenate([subject.table.codes[:1], *run.codes()]))
    ids, rate = figures.flips, summary["local_success_rate"]
    return {
        "cases": summary["cases"],
        "id_cases": summary["id_cases"],
        "local_percent": None if rate is None else 100 * rate,
        "k_max": int(figures.k.max()),
        "k_mean": float(figures.k.mean()),
        "q_inf_mean_id": float(figures.q_inf[ids].mean()) if ids.any() else None,
        "q_1_mean_id": float(figures.q_1[ids].mean()) if ids.any() else None,
        "queries": summary["queries"],
    }
