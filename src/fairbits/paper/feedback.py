"""Does quantitative feedback make the search better? The paper's conjecture, at an equal number of model queries.

`dice` runs with its own feedback under both partitions, and with nothing but "do twins get different decisions". What
it found is then measured with one ruler, the constrained partition, whatever it was led by.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.errors import OptionError
from fairbits.measure import Evaluator, default_epsilon
from fairbits.paper.cells import Cells, Desk, Progress, figures_of
from fairbits.paper.significance import mean
from fairbits.paper.subjects import OURS, Roster
from fairbits.paper.tables import Cell, Results, ablation_findings
from fairbits.scale import ExecutorOptions
from fairbits.search import Budget, Settings, search_subject
from fairbits.subject import Subject

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
    shards = [
        VariantShard(name, variant, feedback, partition, repeat, queries, threads)
        for name in subjects.names
        for variant, feedback, partition in VARIANTS
        for repeat in range(repeats)
    ]
    cells, desk = Cells(folder / "cells"), Desk()
    made = figures_of(shards, cells, desk, executor_options=executor_options, progress=progress)
    names = ("cases", "id_cases", "local_percent", "k_max", "k_mean", "q_inf_mean_id", "q_1_mean_id")
    rows: list[Sequence[Cell]] = [
        [
            shards[at].subject,
            shards[at].variant,
            *(mean([run[one] for run in made[at : at + repeats]]) for one in names),
        ]
        for at in range(0, len(shards), repeats)
    ]
    times = f"{queries:,} model queries a run, {repeats} run{'s' if repeats > 1 else ''} a cell"
    notes = [f"{times}; every case measured with the constrained partition.", OURS, *subjects.notes]
    result = Results("Ablation: what dice is led by", COLUMNS, rows, notes, ablation_findings(rows))
    result.write(folder, "ablation")
    return result


@dataclass(frozen=True, slots=True)
class VariantShard:
    """One run of one variant: plain data."""

    subject: str
    variant: str
    feedback: str
    partition: str
    repeat: int
    queries: int
    threads: int | None

    def __str__(self) -> str:
        return f"{self.subject}, {self.variant} feedback, run {self.repeat + 1}"

    @property
    def label(self) -> str:
        """The name of its cell."""
        return f"ablation-{self.subject}-{self.variant}-{self.repeat}"

    def figures(self, desk: Desk) -> dict[str, Any]:
        """Make it."""
        return _figures(desk.subject(self.subject), self.settings())

    def identity(self, desk: Desk) -> dict[str, Any]:
        """What its figures depend on."""
        return {
            "subject": desk.subject(self.subject).identity.id,
            "queries": self.queries,
            "seed": self.repeat,
            "variant": self.variant,
        }

    def settings(self) -> Settings:
        """The settings of the search of this cell."""
        return Settings(
            budget=Budget(queries=self.queries),
            strategy="dice",
            options={"feedback": self.feedback},
            seed=self.repeat,
            partition=self.partition,
            threads=self.threads,
        )


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
