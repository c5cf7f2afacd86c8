"""The guard beside mitigators from the literature, and our repairs beside rivals': judged on the same rows, two tables.

A cell is a subject and a proposer, so that a table that was ended goes on where it was.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from fairbits.errors import FairbitsError
from fairbits.paper.cells import Cells, Desk, ExperimentCell, Progress, content_of, figures_of
from fairbits.paper.subjects import OURS, Roster
from fairbits.paper.tables import Cell, Results
from fairbits.repair import (
    F1_KEPT,
    MAX_ACCURACY_LOSS,
    PROPOSERS,
    STANDARD,
    Care,
    Estimates,
    FairnessFinetune,
    NeuFair,
    Planner,
    Proposal,
    Proposer,
    estimates_of,
    proposers_of,
    study,
)
from fairbits.repair import Figures as RepairFigures
from fairbits.search import Budget, Settings, search_subject

#: Asked in this order; the guard's line first.
FAMILIES = ("guard", *(name for name in PROPOSERS if name not in ("guard", "neufair", "care", "finetune")))
US = "ours"
#: What a cell hangs on, beside the subject: another version of these makes other cells.
DEPENDS_ON = ("repair", "search", "proxies", "measure", "engine", "subject", "models", "domain")
AS_IS = "as it is"
#: Accuracies on the plan's half that lie this close count as equal.
EQUAL = 0.005
#: What the guard's line is: the plain average over twins, with nothing to choose.
LINE = "average"
COLUMNS = ("subject", "candidate", "acc", "bal", "k", "flips", "bits", "indir", "gap", "odds")
PUBLISHED = (
    "Published, each on its own networks and by its own measure: NeuFair lowers equalised odds by up to 69 % in an "
    "hour, CARE improves fairness by 61.91 % on average, ProF by around 90 % (their abstracts; figures of single "
    "tables could not be confirmed)."
)

Figures = Mapping[str, Any]


def mitigation_table(
    roster: Roster,
    folder: Path,
    *,
    trials: int = 20,
    quick: bool = False,
    evaluations: int = 20_000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """The table of mitigators: of each, the best at the accuracy of the guard, chosen on the plan's half."""
    if quick:
        trials, evaluations = min(trials, 4), min(evaluations, 2_000)
    families = [name for name in FAMILIES if not (quick and name == "weights")]
    how = Terms(trials=trials, evaluations=evaluations, quick=quick, seed=seed, threads=threads)
    asked, notes = _made(roster, folder, how, families, progress)
    best = {name: _chosen(made) for name, made in asked.items()}
    rows = [_row(name, figures) for name, chosen in best.items() for figures in chosen.values()]
    every = [
        _row(name, candidate)
        for name, made in asked.items()
        for cell in made.values()
        for candidate in cell["candidates"]
    ]
    title = f"Mitigators beside the guard: the best of each within {100 * EQUAL:g} points of the average's accuracy"
    says = (
        "Chosen on the plan's half, shown on held-out rows. acc, bal: accuracy and balanced accuracy in %; k, flips "
        "(%): over found cases; bits: mean Q∞ of rows; indir: bits through other attributes; "
        "gap, odds: differences in selection rates and in average odds between the groups of one attribute."
    )
    result = Results(title, COLUMNS, rows, [says, OURS, *roster.notes, *notes], findings(best))
    result.write(folder, "mitigation")
    Results("Every candidate", COLUMNS, every).write(folder, "mitigation-all")
    return result


def _made(
    roster: Roster, folder: Path, how: Terms, families: Sequence[str], progress: Progress | None
) -> tuple[dict[str, dict[str, Figures]], list[str]]:
    """What every family has for every subject, and who was left out where: a missing package is missing for all."""
    wanted = [replace(how, family=family).cell(name) for name in roster.names for family in families]
    figures = iter(figures_of(wanted, Cells(folder / "cells"), Desk(), progress=progress))
    made: dict[str, dict[str, Figures]] = {name: {who: next(figures) for who in families} for name in roster.names}
    reasons: dict[str, list[str]] = {}
    for name, who in itertools.product(roster.names, families):
        if why := made[name][who]["left_out"]:
            reasons.setdefault(f"{who} was left out: {why}", []).append(name)
    return made, [f"{', '.join(names)}: {why}" for why, names in reasons.items()]


def repairs_table(
    roster: Roster,
    folder: Path,
    *,
    seconds: float = 5.0,
    evaluations: int = 20_000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Our repairs and rivals', at equal seconds: of each the best by their metric, and the best by ours."""
    how = Terms(evaluations=evaluations, seed=seed, threads=threads, seconds=seconds)
    asked, notes = _made(roster, folder, how, list(CONTEST), progress)
    rows = list[Sequence[Cell]]()
    falls = dict[str, list[float]]()
    beaten: dict[str, dict[str, str | None]] = {"odds": {}, "k": {}}
    for name, made in asked.items():
        start = made[US]["candidates"].pop(0)
        entries = [("", "", start)]
        for family, cell in made.items():
            best = {by: _best(cell["candidates"], start, by) for by in beaten} if cell["candidates"] else {}
            entries += [(family, by, figures) for by, figures in best.items()]
            if best and start["equalised_odds"]:
                after = best["odds"]["equalised_odds"]
                falls.setdefault(family, []).append(100 * (1 - after / start["equalised_odds"]))
        for family, by, figures in entries:
            better: dict[str, str | None] = {which: _beaten_by(figures, family, entries, which) for which in beaten}
            if start["equalised_odds"] is None:  # too few people: nothing is known about odds
                better["odds"] = None
            if family == US:
                beaten[by][name] = better[by]
            odds, ends = (
                figures["equalised_odds"],
                (round(figures["f1"], 3), round(100 * figures["accuracy"]["value"], 1)),
            )
            cells = [None if odds is None else round(odds, 3), *ends, round(figures["k_mean_cases"], 2)]
            rows.append([name, family or AS_IS, figures["name"], by, *cells, *better.values()])
    title = f"Repairs of networks, {seconds:g} s each: equalised odds and F1 as NeuFair has them, mean k and accuracy"
    read = (
        f"Chosen on the plan's half: by odds, with {100 * F1_KEPT:g} % of F1 kept (theirs), or by k, with at most "
        f"{100 * MAX_ACCURACY_LOSS:g} points of accuracy lost (ours); shown on held-out rows and cases. odds: "
        "equalised-odds difference (– with fewer than two groups of 30 people); beaten: by whom, in odds and F1, or in "
        "k and accuracy."
    )
    columns = ("subject", "repair", "candidate", "by", "odds", "F1", "acc", "k", "beaten (odds, F1)", "beaten (k, acc)")
    says = [_standing(beaten["odds"], "odds and F1 (their metric)"), _standing(beaten["k"], "mean k and accuracy")]
    says += [
        f"{who}: odds fall by {median(all_):.0f} % (median), {min(all_):.0f} to {max(all_):.0f} %, chosen by odds."
        for who, all_ in falls.items()
    ]
    result = Results(title, columns, rows, [read, PUBLISHED, OURS, *roster.notes, *notes], says)
    result.write(folder, "repairs")
    return result


def _best(candidates: Sequence[Figures], start: Figures, by: str) -> Figures:
    """The lowest odds where F1 is kept, or the lowest mean k where accuracy is; where it never is, the smallest loss.

    All on the plan's half.
    """
    if by == "odds":
        return _lowest(candidates, "equalised_odds_plan", "f1_plan", F1_KEPT * start["f1_plan"])
    return _lowest(candidates, "k_mean_plan", "accuracy_plan", start["accuracy_plan"] - MAX_ACCURACY_LOSS)


def _lowest(candidates: Sequence[Figures], figure: str, kept: str, floor: float) -> Figures:
    """The candidate with the lowest figure of those that keep another; where none does, the one that keeps most."""
    level = [candidate for candidate in candidates if candidate[kept] >= floor]
    if not level:
        return max(candidates, key=lambda candidate: candidate[kept])
    return min(level, key=lambda candidate: (candidate[figure], -candidate[kept]))


def _beaten_by(figures: Figures, family: str, entries: Sequence[tuple[str, str, Figures]], by: str) -> str:
    """Another repair (or the network as it is) that is as good in both held-out figures and better in one; or ""."""

    def point(figures: Figures) -> tuple[float, float]:
        if by == "odds":
            return (-float(figures["equalised_odds"] or 0.0), float(figures["f1"]))
        return -float(figures["k_mean_cases"]), float(figures["accuracy"]["value"])

    mine = point(figures)
    others = [(other, point(other)) for whose, _, other in entries if whose != family]
    return next((o["name"] for o, p in others if p != mine and p[0] >= mine[0] and p[1] >= mine[1]), "")


def _standing(beaten: Mapping[str, str | None], what: str) -> str:
    lost = [f"{subject} by {who}" for subject, who in beaten.items() if who]
    unknown = [subject for subject, who in beaten.items() if who is None]
    said = f"Ours is undominated in {what} on {list(beaten.values()).count('')} of {len(beaten)} subjects"
    rest = (("beaten on", lost), ("not known on", unknown))
    return "; ".join([said, *(f"{words} {', '.join(named)}" for words, named in rest if named)]) + "."


@dataclass(frozen=True, slots=True)
class Ours:
    """Our repairs, quick ones first, as far as the seconds reach; what comes after them does not count."""

    seconds: float
    name: str = US

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Everything that every repair tries."""
        end, seen = monotonic() + self.seconds, set[str]()
        for quick in (True, False):
            for family in STANDARD:
                for proposal in family.propose(replace(planner, quick=quick)):
                    if monotonic() >= end:
                        return
                    if proposal.name not in seen:
                        yield proposal
                    seen.add(proposal.name)


#: The contest of repairs: ours, and networks' repairs by other systems, which their seconds end and nothing else.
CONTEST: Mapping[str, Callable[..., Proposer]] = {
    US: Ours,
    "neufair": partial(NeuFair, evaluations=10**9),
    "care": partial(Care, evaluations=10**9),
    "finetune": FairnessFinetune,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms one proposer is judged; ``seconds`` in the contest of repairs only."""

    family: str = US
    trials: int = 0
    evaluations: int
    quick: bool = False
    seed: int
    threads: int | None
    seconds: float | None = None

    def cell(self, subject: str) -> ExperimentCell:
        """What the proposer has for one subject."""
        label = f"{'mitigation' if self.seconds is None else 'repairs'}-{subject}-{self.family}"
        terms = {**asdict(replace(self, threads=None)), "code": content_of(*DEPENDS_ON)}
        return ExperimentCell(label, f"{subject} {self.family}", _judged, self, terms, subject)


def _judged(desk: Desk, cell: ExperimentCell) -> dict[str, Any]:
    """Search, as for every other proposer, then propose and judge."""
    subject, terms = desk.subject(cell.subject), cell.given
    settings = Settings(budget=Budget(evaluations=terms.evaluations), seed=terms.seed, threads=terms.threads)
    with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
        run = search_subject(subject, settings, Path(place) / "run")
        try:
            result = study(
                run,
                subject,
                proposers_of([terms.family], trials=terms.trials)
                if terms.seconds is None
                else [CONTEST[terms.family](seconds=terms.seconds)],
                wanted=frozenset({terms.family}),
                quick=terms.quick,
                rows_for_cases=True,
                seed=terms.seed,
                threads=terms.threads,
            )
        except FairbitsError as error:
            return {"candidates": [], "left_out": str(error)}
    kept = [
        _figures(candidate.name, candidate.estimates, candidate.plan, candidate.held_out)
        for candidate in result.candidates
    ]
    if terms.family in ("guard", US):  # the model as it is comes once
        plan, held_out = result.before
        kept.insert(0, _figures(AS_IS, estimates_of(held_out, result.setting), plan.figures, held_out.figures))
    return {"candidates": kept, "left_out": ""}


def _figures(name: str, estimates: Estimates | None, plan: RepairFigures, held_out: RepairFigures) -> dict[str, Any]:
    assert estimates is not None  # noqa: S101 - every candidate that was judged has them
    return {
        "name": name,
        **asdict(estimates),
        "k_mean_cases": held_out.k_mean,
        "id_rate_cases": held_out.id_rate,
        "selection_gap": held_out.selection_gap,
        "odds_gap": held_out.odds_gap,
        "equalised_odds": held_out.equalised_odds,
        "f1": held_out.f1,
        "equalised_odds_plan": plan.equalised_odds or 0.0,
        "f1_plan": plan.f1,
        "accuracy_plan": plan.accuracy,
        "k_mean_plan": plan.k_mean,
    }


def _chosen(made: Mapping[str, Figures]) -> dict[str, Figures]:
    """The model as it is, the guard's line, and of each family the fewest k at the line's accuracy on the plan's half.

    Where none reaches that accuracy, the most accurate one stands for the family.
    """
    guards = {candidate["name"]: candidate for candidate in made["guard"]["candidates"]}
    line = guards[LINE]
    best: dict[str, Figures] = {AS_IS: guards[AS_IS], "guard": line}
    for family, cell in made.items():
        if family != "guard" and cell["candidates"]:
            best[family] = _lowest(cell["candidates"], "k_mean_plan", "accuracy_plan", line["accuracy_plan"] - EQUAL)
    return best


def findings(best: Mapping[str, Mapping[str, Figures]]) -> list[str]:
    """The guard's line against each mitigator's best, over the subjects, in sentences made from the figures."""
    lines = []
    for family in dict.fromkeys(
        family for chosen in best.values() for family in chosen if family not in (AS_IS, "guard")
    ):
        pairs = [(chosen["guard"], chosen[family]) for chosen in best.values() if family in chosen]
        level = [
            (guard, candidate)
            for guard, candidate in pairs
            if candidate["accuracy_plan"] >= guard["accuracy_plan"] - EQUAL
        ]
        if not level:
            lines.append(f"{family}: no candidate is as accurate as the guard on any of {len(pairs)} subjects.")
            continue
        more = sum(rival["bits"]["value"] > guard["bits"]["value"] + 1e-9 for guard, rival in level)
        gaps = [(g["selection_gap"], o["selection_gap"]) for g, o in level]
        closer = sum(None not in pair and pair[1] < pair[0] for pair in gaps)
        bits = median(rival["bits"]["value"] for _, rival in level)
        own = median(guard["bits"]["value"] for guard, _ in level)
        lost = median(100 * (rival["accuracy"]["value"] - guard["accuracy"]["value"]) for guard, rival in level)
        lines.append(
            f"{family}: as accurate as the guard on {len(level)} of {len(pairs)} subjects; there more direct bits on "
            f"{more} (median {bits:.2f}, the guard {own:g}), a smaller selection gap on {closer}, held-out accuracy "
            f"{lost:+.1f} points (median)."
        )
    return lines


def _row(subject: str, figures: Figures) -> Sequence[Cell]:
    def rounded(name: str, digits: int, factor: int = 1) -> float | None:
        value = figures[name]["value"] if isinstance(figures[name], Mapping) else figures[name]
        return None if value is None else round(factor * float(value), digits)

    shares = rounded("accuracy", 1, 100), rounded("balanced_accuracy", 1, 100)
    cases = rounded("k_mean_cases", 2), rounded("id_rate_cases", 1, 100)
    gaps = rounded("selection_gap", 2), rounded("odds_gap", 2)
    return [subject, figures["name"], *shares, *cases, rounded("bits", 2), rounded("indirect_bits", 3), *gaps]
