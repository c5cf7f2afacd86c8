"""The whole field: our default beside every other strategy, on every subject and single protected attribute.

Who is ahead is judged against the spread of the runs: two strategies are tied where their means differ by no more than
the standard deviation of that difference. With one run a cell there is no spread, and nobody is called tied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fairbits.domain.words import joined
from fairbits.paper.significance import deviation, mean
from fairbits.paper.tables import Cell, shown
from fairbits.search.registry import DEFAULT

COLUMNS = ("subject", DEFAULT, "±", "best rival", "ID/s", "±", f"{DEFAULT} is", "k", "any k")
AHEAD, TIED, BEHIND, NOBODY = "ahead", "tied", "behind", "none found"

#: strategy → its runs, in the order of their seeds.
Runs = Mapping[str, Sequence[Mapping[str, Any]]]
Groups = Mapping[tuple[str, str | None], Runs]


class Duel(NamedTuple):
    """The default and the best of the others."""

    ours: list[float]
    rival: str
    theirs: list[float]

    @property
    def verdict(self) -> str:
        """Whether the default is ahead, tied or behind."""
        one, other = mean(self.ours) or 0.0, mean(self.theirs) or 0.0
        if one == other == 0.0:
            return NOBODY
        spread = np.hypot(deviation(self.ours) or 0.0, deviation(self.theirs) or 0.0)
        return TIED if abs(one - other) <= spread else AHEAD if one > other else BEHIND

    @property
    def ratio(self) -> float:
        """The rival's mean, in terms of the default's."""
        return (mean(self.theirs) or 0.0) / (mean(self.ours) or np.nan)


def duel(rates: Mapping[str, Sequence[float]]) -> Duel:
    """The default against the rival with the largest mean."""
    rivals = {name: list(values) for name, values in rates.items() if name != DEFAULT}
    best = max(rivals, key=lambda name: mean(rivals[name]) or 0.0)
    return Duel(list(rates[DEFAULT]), best, rivals[best])


def field_row(name: str, runs: Runs) -> Sequence[Cell]:
    """One subject and attribute: ID cases per second of the two, and the largest k of the default and of anybody."""
    found = duel(_rates(runs))
    k = {who: max(int(run["k_max"]) for run in mine) for who, mine in runs.items()}
    ours = [mean(found.ours), deviation(found.ours)]
    theirs = [mean(found.theirs), deviation(found.theirs)]
    return [name, *ours, found.rival, *theirs, found.verdict, k[DEFAULT], max(k.values())]


def every_rate(groups: Groups) -> list[Sequence[Cell]]:
    """Subject, attribute, strategy, run, ID cases per second and largest k: everything, for whoever wants to check."""
    return [
        [subject, protected, who, number, run["id_per_second"], run["k_max"]]
        for (subject, protected), runs in groups.items()
        for who, mine in runs.items()
        for number, run in enumerate(mine)
    ]


def field_findings(groups: Groups) -> list[str]:
    """Where the default is ahead, in cells and in subjects, how far the others are from it, and who reaches most k."""
    cells = {key: duel(_rates(runs)) for key, runs in groups.items()}
    subjects = {subject: duel(_rates(runs)) for subject, runs in _by_subject(groups).items()}
    says = [
        f"ID cases per second, cell by cell: {DEFAULT} is {_standing(cells)} of {len(cells)} cells.",
        f"By subject, the mean over its attributes: {DEFAULT} is {_standing(subjects)} of {len(subjects)} subjects.",
    ]
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
    counts = {kind: sum(d.verdict == kind for d in duels.values()) for kind in (AHEAD, TIED, BEHIND, NOBODY)}
    return joined([f"{kind} in {count}" for kind, count in counts.items() if count])


def _largest_k(runs: Runs) -> bool:
    k = {who: max(run["k_max"] for run in mine) for who, mine in runs.items()}
    return k[DEFAULT] == max(k.values())
