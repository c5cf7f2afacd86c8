"""Does quantitative feedback make the search better? The paper's conjecture, at an equal number of model queries.

`dice` runs with its own feedback under both partitions, and with nothing but "do twins get different decisions". What
it found is then measured with one ruler, the constrained partition, whatever it was led by.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.errors import OptionError
from fairbits.measure import Evaluator, default_epsilon
from fairbits.paper.cells import Cells, Desk, ExperimentCell, Progress, figures_of
from fairbits.paper.significance import mean
from fairbits.paper.subjects import OURS, Roster
from fairbits.paper.tables import Cell, Results, ablation_findings
from fairbits.scale import ExecutorOptions
from fairbits.search import Budget, Settings, search_subject

#: Name of the variant, its feedback and its partition.
VARIANTS = (
    ("constrained", "quantitative", "constrained"),
    ("grid", "quantitative", "grid"),
    ("binary", "binary", "constrained"),
)
COLUMNS = ("subject", "feedback", "cases", "ID cases", "loc %", "max k", "mean k", "Q∞ of IDs", "Q1 of IDs")


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
    if executor_options is not None and executor_options.many:
        threads = executor_options.each
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
        wanted.append(ExperimentCell(f"ablation-{name}-{variant}-{repeat}", title, _figures, settings, terms, name))
    made = figures_of(wanted, Cells(folder / "cells"), Desk(), executor_options=executor_options, progress=progress)
    names = ("cases", "id_cases", "local_percent", "k_max", "k_mean", "q_inf_mean_id", "q_1_mean_id")
    for at in range(0, len(wanted), repeats):
        means = (mean([run[figure] for run in made[at : at + repeats]]) for figure in names)
        rows.append([wanted[at].subject, wanted[at].terms["variant"], *means])
    times = f"{queries:,} model queries a run, {repeats} run{'s' if repeats > 1 else ''} a cell"
    notes = [f"{times}; every case measured with the constrained partition.", OURS, *subjects.notes]
    result = Results("Ablation: what dice is led by", COLUMNS, rows, notes, ablation_findings(rows))
    result.write(folder, "ablation")
    return result


def _figures(desk: Desk, cell: ExperimentCell) -> dict[str, Any]:
    """One run of one variant."""
    subject, settings = desk.subject(cell.subject), cell.given
    epsilon = default_epsilon(subject.schema, subject.table)
    rows, threads = subject.table.codes, settings.threads
    ruler = Evaluator(subject.model, subject.schema, subject.encoding, epsilon=epsilon, threads=threads, rows=rows)
    with tempfile.TemporaryDirectory(prefix="fairbits-") as place:
        run = search_subject(subject, settings, Path(place) / "run")
        summary = run.summary or {}
        found = ruler.evaluate(np.concatenate([subject.table.codes[:1], *run.codes()]))
    ids, rate = found.flips, summary["local_success_rate"]
    return {
        "cases": summary["cases"],
        "id_cases": summary["id_cases"],
        "local_percent": None if rate is None else 100 * rate,
        "k_max": int(found.k.max()),
        "k_mean": float(found.k.mean()),
        "q_inf_mean_id": float(found.q_inf[ids].mean()) if ids.any() else None,
        "q_1_mean_id": float(found.q_1[ids].mean()) if ids.any() else None,
        "queries": summary["queries"],
    }
