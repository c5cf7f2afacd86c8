"""The whole field: our default beside every other strategy, on every subject and single protected attribute.

Who is ahead is judged as in every other comparison (see ``significance``): by the Mann-Whitney test on the runs of a
cell, corrected for the number of strategies. A cell with few runs tells nobody apart, so the default is also compared
with each rival over all cells at once, by the Wilcoxon signed-rank test on the ratio of their means.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairbits.domain import joined
from fairbits.paper.significance import LEVEL, deviation, holm, mean, runs_needed, standing
from fairbits.paper.tables import Cell, shown
from fairbits.search import DEFAULT

COLUMNS = ("subject", DEFAULT, "±", "best rival", "ID/s", "±", f"{DEFAULT} is", "k", "any k")
AHEAD, TIED, BEHIND, NOBODY, ONCE = "ahead", "tied", "behind", "none found", "one run"

#: So many cells it takes to compare two strategies over all of them: with fewer, no p can fall below 0.05.
PAIRED = 6

#: strategy → its runs, in the order of their seeds.
Runs = Mapping[str, Sequence[Mapping[str, Any]]]
Groups = Mapping[tuple[str, str | None], Runs]


class Duel(NamedTuple):
    """The default and the best of the others, and whether the test tells the default apart from everybody."""

    ours: list[float]
    rival: str
    theirs: list[float]
    verdict: str

    @property
    def ratio(self) -> float:
        """The rival's mean, in terms of the default's."""
        return (mean(self.theirs) or 0.0) / (mean(self.ours) or np.nan)


def duel(rates: Mapping[str, Sequence[float]]) -> Duel:
    """Compare the default with the rival that has the largest mean."""
    rivals = {name: list(values) for name, values in rates.items() if name != DEFAULT}
    best = max(rivals, key=lambda name: mean(rivals[name]) or 0.0)
    return Duel(list(rates[DEFAULT]), best, rivals[best], _verdict(rates))


def _verdict(rates: Mapping[str, Sequence[float]]) -> str:
    """Ahead of everybody, or behind somebody, as far as the test tells them apart; else tied."""
    if not any(value for values in rates.values() for value in values):
        return NOBODY
    found = standing(rates)
    if not found.tested:
        return ONCE
    if found.best == DEFAULT:
        return TIED if found.tied else AHEAD
    return TIED if DEFAULT in found.tied else BEHIND


def field_row(name: str, runs: Runs) -> Sequence[Cell]:
    """One row: ID cases per second of the default and the best rival, and the largest k of the default and of all."""
    found = duel(_rates(runs))
    k = {who: max(int(run["k_max"]) for run in mine) for who, mine in runs.items()}
    ours = [mean(found.ours), deviation(found.ours)]
    theirs = [mean(found.theirs), deviation(found.theirs)]
    return [name, *ours, found.rival, *theirs, found.verdict, k[DEFAULT], max(k.values())]


def every_rate(groups: Groups) -> list[Sequence[Cell]]:
    """Every run as a row: subject, attribute, strategy, run, ID cases per second and largest k."""
    return [
        [subject, protected, who, number, run["id_per_second"], run["k_max"]]
        for (subject, protected), runs in groups.items()
        for who, mine in runs.items()
        for number, run in enumerate(mine)
    ]


def field_findings(groups: Groups) -> list[str]:
    """Sentences on where the default is ahead, how far the others are from it, and which reaches the largest k."""
    cells = {key: duel(_rates(runs)) for key, runs in groups.items()}
    subjects = {subject: duel(_rates(runs)) for subject, runs in _by_subject(groups).items()}
    says = [
        f"ID cases per second, cell by cell: {DEFAULT} is {_standing(cells)} of {len(cells)} cells.",
        f"By subject, the mean over its attributes: {DEFAULT} is {_standing(subjects)} of {len(subjects)} subjects.",
    ]
    repeats = min(len(mine) for group in groups.values() for mine in group.values())
    needed = runs_needed(max(len(group) for group in groups.values()) - 1)
    if repeats < needed:
        says.append(
            f"With {repeats} runs a cell no test can tell so many strategies apart: that takes {needed} at least."
        )
    says += _over_cells(groups)
    for verdict in (TIED, BEHIND):
        named = [f"{name} ({d.rival} {d.ratio:.2f} ×)" for name, d in subjects.items() if d.verdict == verdict]
        says += [f"{verdict.capitalize()} on {joined(named)}."] if named else []
    logs = defaultdict[str, list[float]](list)
    for runs in groups.values():
        rates = {who: mean(values) or 0.0 for who, values in _rates(runs).items()}
        for who, rate in rates.items():
            if who != DEFAULT and rate and rates[DEFAULT]:
                logs[who].append(np.log(rate / rates[DEFAULT]))
    order = sorted(logs, key=lambda who: -np.mean(logs[who]))
    near = [f"{who} {shown(float(np.exp(np.mean(logs[who]))))}" for who in order]
    says += [f"ID cases per second beside {DEFAULT}, geometric mean over the cells: {', '.join(near)}."] if near else []
    largest = sum(_largest_k(runs) for runs in groups.values())
    return [*says, f"The largest k that anybody found, {DEFAULT} found too in {largest} of {len(groups)} cells."]


def _rates(runs: Runs) -> dict[str, list[float]]:
    return {who: [float(run["id_per_second"]) for run in mine] for who, mine in runs.items()}


def _by_subject(groups: Groups) -> dict[str, dict[str, list[dict[str, float]]]]:
    """Per subject: the same run of all its attributes, as one run with their mean rate."""
    found = defaultdict[str, list[Runs]](list)
    for (subject, _), runs in groups.items():
        found[subject].append(runs)
    return {
        subject: {
            who: [
                {"id_per_second": float(np.mean([run["id_per_second"] for run in together]))}
                for together in zip(*(runs[who] for runs in mine), strict=True)
            ]
            for who in mine[0]
            if all(who in runs for runs in mine)
        }
        for subject, mine in found.items()
    }


def _standing(duels: Mapping[Any, Duel]) -> str:
    counts = {kind: sum(d.verdict == kind for d in duels.values()) for kind in (AHEAD, TIED, BEHIND, NOBODY, ONCE)}
    words = {ONCE: "not tested"}
    return joined([f"{words.get(kind, kind)} in {count}" for kind, count in counts.items() if count])


def _over_cells(groups: Groups) -> list[str]:
    """The default against each rival, cell by cell as pairs, corrected for the number of rivals."""
    from scipy.stats import wilcoxon

    ratios = defaultdict[str, list[float]](list)
    for runs in groups.values():
        rates = {who: mean(values) or 0.0 for who, values in _rates(runs).items()}
        for who, rate in rates.items():
            if who != DEFAULT and (rate or rates[DEFAULT]):
                ratios[who].append((rates[DEFAULT] - rate) / (rates[DEFAULT] + rate))
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


def _largest_k(runs: Runs) -> bool:
    k = {who: max(run["k_max"] for run in mine) for who, mine in runs.items()}
    return k[DEFAULT] == max(k.values())
