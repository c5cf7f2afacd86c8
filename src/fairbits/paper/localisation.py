"""The paper's third research question, made anew: which layer and neurons carry it, and what holding one of them does.

Each cell is a search, a debugging of its cases and a repair. The two single neurons are the paper's mitigation, judged
as the paper does: on the cases that were looked at and on the rows of the table. Our set of neurons is chosen within
two points of accuracy and judged on cases and rows that nothing has seen.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from fairbits import data, debug, repair, scale, search, store
from fairbits.errors import CapabilityError, UsageError
from fairbits.paper.cells import Cells, Desk, ExperimentCell, Progress, figures_of
from fairbits.paper.subjects import OURS, Roster, Row, number, row_of
from fairbits.paper.tables import Cell, Results, rq3_findings
from fairbits.subject import Subject

#: Cases looked at, as in the paper; and the accuracy that our set of neurons may cost.
SAMPLES, MAX_LOSS = 1000, 0.02
TOP = 3
#: Positive neurons (activating them lowers k) are held on, negative ones (it raises k) switched off.
PRINTED = {"off": "neg", "on": "pos"}
LOCALISATION = ("subject", "who", "layer", "votes %", "ρ", "δ", "switch off: ACD", "hold on: ACD")
MITIGATION = ("subject", "who", "acc %", "k", "off acc", "off k", "on acc", "on k", "s", "set", "set k %", "points")
TITLES = ("the layer and the neurons", "what holding neurons does")
NOTES = (
    "Layer: 1 is the first hidden layer; votes: the share of cases in which it widens the twins' distance most; ρ, δ: "
    "means over the cases. By the paper's rule (*) ρ is the influence that it prints, the mean of each case's largest "
    "ρ; the default rule measures distances in units of their spread over people, so that no unit matters. Switch off: "
    "negative neurons, whose activation raises k. Hold on: positive ones, whose activation lowers it. ACD: by how much "
    "of its value mean k differs between the neuron at its mean and at its minimum.",
    "off, on: the negative and the positive neuron with the largest ACD in the suspect layer of the paper's rule, at "
    "its minimum and at its mean; accuracy on the rows "
    "of the table, mean k on the cases looked at. s: seconds for layers and neurons. set: neurons held together within "
    "two points of accuracy, with the change of mean k and of accuracy (points) on held-out cases and rows.",
)


def rq3(
    subjects: Roster,
    folder: Path,
    *,
    budget: search.Budget,
    strategies: Sequence[str] | None = None,
    partition: str = "constrained",
    threads: int | None = None,
    executor_options: scale.ExecutorOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Results, Results]:
    """The tables of localisation and mitigation; finished cells are read from the folder."""
    strategies = strategies or [search.REFERENCE]
    threads = executor_options.each if executor_options is not None and executor_options.many else threads
    each = search.Settings(budget=budget, partition=partition, threads=threads)
    wanted = []
    for name, strategy in itertools.product(subjects.names, strategies):
        settings = replace(each, strategy=strategy)
        terms = {**asdict(replace(settings, threads=None)), "samples": SAMPLES, "loss": MAX_LOSS}
        title, place = f"{name} {strategy}: search, debug, repair", subjects.places.get(name, name)
        wanted.append(ExperimentCell(f"rq3-{name}-{strategy}", title, _figures, settings, terms, place))
    made = iter(
        figures_of(wanted, Cells(folder / "cells"), Desk(), executor_options=executor_options, progress=progress)
    )
    where = list[Sequence[Cell]]()
    what = list[Sequence[Cell]]()
    missing = list[str]()
    for name in subjects.names:
        for strategy in strategies:
            figures = next(made)
            theirs = figures.get("by_paper", {})
            missing += [f"{name}, {strategy}: {why}" for why in (figures.get("why"), theirs.get("why")) if why]
            where += [[name, f"{strategy}*", *_located(theirs)], [name, strategy, *_located(figures)]]
            what.append([name, strategy, *_mitigated({**figures, **theirs})])
        where.append([name, "paper", *_printed_location(row_of("rq3_localization", name))])
        what.append([name, "paper", *_printed_mitigation(row_of("rq3_mitigation", name))])
    times = [f"{budget} of search a cell, {SAMPLES:,} of its cases; {partition} partition."]
    rest = [*([] if subjects.places else [OURS]), *subjects.notes, *missing]
    layers, neurons = (f"RQ3: {title}, ours beside the paper's" for title in TITLES)
    findings = rq3_findings(where, what)
    tables = (
        Results(layers, LOCALISATION, where, [*times, NOTES[0], *rest], findings[0]),
        Results(neurons, MITIGATION, what, [*times, NOTES[1], *rest], findings[1]),
    )
    for table, name in zip(tables, ("rq3-localisation", "rq3-mitigation"), strict=True):
        table.write(folder, name)
    return tables


def _figures(desk: Desk, cell: ExperimentCell) -> dict[str, Any]:
    """One cell. A search that found nobody, or nothing to repair, leaves figures out and says why."""
    subject, settings = desk.subject(cell.subject), cell.given
    with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
        run = search.search_subject(subject, settings, Path(place) / "run")
        if len(run) == 0:
            return {"cases": 0, "why": "the search found no cases."}
        _compiled()
        by_paper, spent = _by_paper(run, subject, settings.threads)
        ours = debug.debug_run(run, subject=subject, samples=SAMPLES, trainings=0, sets=False, threads=settings.threads)
        return {
            "cases": len(run),
            **_studied(ours),
            "by_paper": by_paper,
            "seconds": spent,
            **_repaired(run, subject, settings.threads),
        }


def _by_paper(run: store.Run, subject: Subject, threads: int | None) -> tuple[dict[str, Any], float | None]:
    """What the paper's rule finds, and the seconds for layers and neurons; where it needs more layers, that."""
    stamps: dict[str, float] = {}
    try:
        debugged = debug.debug_run(
            run,
            subject=subject,
            samples=SAMPLES,
            rule="code",
            trainings=0,
            sets=False,
            threads=threads,
            stage=lambda stage: stamps.update({stage: time.perf_counter()}),
        )
    except CapabilityError as error:
        return {"why": str(error)}, None
    return _studied(debugged), stamps["attributing bits"] - stamps["measuring layers"]


@cache
def _compiled() -> None:
    """Everything that is timed has run once: first compilations are no cost of a cell."""
    with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
        subject = data.load_subject("heart")
        run = search.search_subject(
            subject, search.Settings(budget=search.Budget(evaluations=500)), Path(place) / "run"
        )
        debug.debug_run(run, subject=subject, samples=20, trainings=0, sets=False)


def _studied(result: debug.DebugResult) -> dict[str, Any]:
    layer = next((layer for layer in result.layers if layer.layer == result.suspect), None)
    return {
        "accuracy": result.accuracy,
        "k_mean": result.k_mean if result.rule == "code" else result.k_reported,
        "layer": result.suspect,
        "votes": None if layer is None else layer.votes / len(result.cases),
        "rho": None if layer is None else layer.rho,
        "rule": result.rule,
        "delta": None if layer is None else layer.delta,
        "influence": None if result.vote is None or result.vote.influence is None else result.vote.influence.value,
        "off": [_neuron(effect, result.rule) for effect in result.top(-1, count=TOP)],
        "on": [_neuron(effect, result.rule) for effect in result.top(+1, count=TOP)],
    }


def _neuron(effect: debug.NeuronEffect, rule: debug.Rule) -> dict[str, Any]:
    figures, held = {"neuron": effect.neuron, "acd": effect.acd}, effect.remedy
    if held is None:
        return figures
    # The paper judges on the cases that ranked the neurons.
    k_mean = held.k_mean if rule == "code" else held.k_reported
    return figures | {"value": held.value, "accuracy": held.accuracy, "k_mean": k_mean}


def _repaired(run: store.Run, subject: Subject, threads: int | None) -> dict[str, Any]:
    """The best set of neurons within the accuracy budget, by the half of the evidence that it was planned on.

    The budget is the paper's: accuracy as it was found, without the margin that `fairbits repair` asks for.
    """
    try:
        repaired: repair.RepairResult = repair.repair_run(
            run, subject=subject, max_accuracy_loss=MAX_LOSS, retrain=False, threads=threads
        )
    except UsageError as error:  # nobody to repair for, nothing within the budget, or no labels to judge by
        return {"set": None, "why": str(error)}
    least = repaired.before_plan.accuracy - MAX_LOSS
    held = (
        candidate
        for candidate in repaired.repairs
        if candidate.neurons and candidate.shrink == 0 and candidate.plan.accuracy >= least
    )
    best = min(held, key=lambda candidate: candidate.plan.k_mean, default=None)
    if best is None:
        return {"set": None, "why": "no set of neurons keeps within the accuracy budget."}
    before, after = repaired.before_held_out, best.held_out
    change = {"k": after.k_mean / before.k_mean - 1, "accuracy": after.accuracy - before.accuracy}
    return {"set": {"neurons": len(best.neurons), **change}}


def _located(figures: dict[str, Any]) -> list[Cell]:
    # What the paper prints as a layer's influence is the mean of each case's largest ρ, not the mean ρ of the layer.
    influence = figures.get("influence") if figures.get("rule") == "code" else figures.get("rho")
    start = [figures.get("layer"), _percent(figures.get("votes")), influence, figures.get("delta")]
    return [*start, *(_named([(n["neuron"], abs(n["acd"])) for n in figures.get(side, [])]) for side in PRINTED)]


def _printed_location(row: Row | None) -> list[Cell]:
    layer = number(row, "layer")
    start = [None if layer is None else int(layer), None, number(row, "layer_influence"), None]
    sides = []
    for sign in PRINTED.values():
        pairs = [(number(row, f"{sign}{place}"), number(row, f"{sign}{place}_acd")) for place in range(1, TOP + 1)]
        sides.append(_named([(int(neuron), acd) for neuron, acd in pairs if neuron is not None and acd is not None]))
    return [*start, *sides]


def _named(neurons: Sequence[tuple[int, float]]) -> str:
    """Neurons with the size of their ACD.

    >>> _named([(14, 0.3336), (9, 0.05)])
    '14 .33, 9 .05'
    """
    return ", ".join(f"{neuron} {acd:.2f}".replace(" 0.", " .") for neuron, acd in neurons) or "none"


def _mitigated(figures: dict[str, Any]) -> list[Cell]:
    cells: list[Cell] = [_percent(figures.get("accuracy")), figures.get("k_mean")]
    for side in PRINTED:
        first: dict[str, Any] = next(iter(figures.get(side, [])), {})
        cells += [_percent(first.get("accuracy")), first.get("k_mean")]
    held = figures.get("set")
    change = [None] * 3 if held is None else [held["neurons"], _percent(held["k"]), _percent(held["accuracy"])]
    return [*cells, figures.get("seconds"), *change]


def _printed_mitigation(row: Row | None) -> list[Cell]:
    cells: list[Cell] = []
    for ending in ("", "_deactivated", "_activated"):
        cells += [_percent(number(row, f"accuracy{ending}")), number(row, f"k{ending}")]
    return [*cells, number(row, "seconds"), None, None, None]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
