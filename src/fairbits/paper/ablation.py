"""Does quantitative feedback make the search better? The paper's conjecture, at an equal number of model queries.

`dice` runs with its own feedback under both partitions, and with nothing but "do twins get different decisions". What
it found is then measured with one ruler, the constrained partition, whatever it was led by.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.data import Subject, load_subject
from fairbits.errors import OptionError
from fairbits.measure import Evaluator, default_epsilon
from fairbits.paper.cells import Cells
from fairbits.paper.digest import ablation_findings
from fairbits.paper.significance import mean
from fairbits.paper.subjects import OURS, Roster
from fairbits.paper.tables import Cell, Results
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
    progress: Callable[[int, int, str], None] | None = None,
) -> Results:
    """All variants on all subjects; finished runs are read from the folder."""
    if queries < 1 or repeats < 1:
        raise OptionError(f"queries ({queries}) and repeats ({repeats}) must be 1 or more.")
    cells, rows = Cells(folder / "cells"), list[Sequence[Cell]]()
    total, done = len(subjects.names) * len(VARIANTS) * repeats, 0
    for name in subjects.names:
        subject = load_subject(name)
        for variant, feedback, partition in VARIANTS:
            runs = []
            for repeat in range(repeats):
                if progress is not None:
                    progress(done, total, f"{name}, {variant} feedback, run {repeat + 1} of {repeats}")
                settings = Settings(
                    Budget(queries=queries),
                    "dice",
                    {"feedback": feedback},
                    seed=repeat,
                    partition=partition,
                    threads=threads,
                )
                identity = {"subject": subject.fingerprint(), "queries": queries, "seed": repeat, "variant": variant}
                label = f"ablation-{name}-{variant}-{repeat}"
                runs.append(cells.get(label, identity, lambda s=subject, w=settings: _figures(s, w)))  # type: ignore[misc]
                done += 1
            names = ("cases", "id_cases", "local_percent", "k_max", "k_mean", "q_inf_mean_id", "q_1_mean_id")
            rows.append([name, variant, *(mean([run[figure] for run in runs]) for figure in names)])
    times = f"{queries:,} model queries a run, {repeats} run{'s' if repeats > 1 else ''} a cell"
    notes = [f"{times}; every case measured with the constrained partition.", OURS, *subjects.notes]
    result = Results("Ablation: what dice is led by", COLUMNS, rows, notes, ablation_findings(rows))
    result.write(folder, "ablation")
    return result


def _figures(subject: Subject, settings: Settings) -> dict[str, Any]:
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
