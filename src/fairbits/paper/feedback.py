"""Does quantitative feedback make the search better? The paper's conjecture, at an equal number of model queries.

`dice` runs with its own feedback under both partitions, and with nothing but "do twins get different decisions". What
it found is then measured with one ruler, the constrained partition, whatever it was led by.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.data import load_subject
from fairbits.errors import OptionError
from fairbits.measure import Evaluator, default_epsilon
from fairbits.paper.cells import Cells
from fairbits.paper.digest import ablation_findings
from fairbits.paper.significance import mean
from fairbits.paper.spread import make_missing
from fairbits.paper.subjects import OURS, Roster
from fairbits.paper.tables import Cell, Results
from fairbits.scale import ExecutorOptions, Signals
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
    progress: Callable[[int, int, str], None] | None = None,
) -> Results:
    """Compare kinds of feedback on all subjects at equal queries; finished runs are read from the folder."""
    if queries < 1 or repeats < 1:
        raise OptionError(f"queries ({queries}) and repeats ({repeats}) must be 1 or more.")
    cells, rows = Cells(folder / "cells"), list[Sequence[Cell]]()
    total, done = len(subjects.names) * len(VARIANTS) * repeats, 0
    if executor_options is not None and executor_options.many:
        _spread(subjects, cells, queries, repeats, executor_options, progress)
    for name in subjects.names:
        subject = load_subject(name)
        for variant, feedback, partition in VARIANTS:
            runs = []
            for repeat in range(repeats):
                if progress is not None:
                    progress(done, total, f"{name}, {variant} feedback, run {repeat + 1} of {repeats}")
                shard = VariantShard(name, variant, feedback, partition, repeat, queries, threads)
                make = partial(_figures, subject, shard.settings())
                runs.append(cells.get(shard.label, shard.identity(subject), make))
                done += 1
            names = ("cases", "id_cases", "local_percent", "k_max", "k_mean", "q_inf_mean_id", "q_1_mean_id")
            rows.append([name, variant, *(mean([run[figure] for run in runs]) for figure in names)])
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

    def identity(self, subject: Subject) -> dict[str, Any]:
        """What its figures depend on."""
        return {
            "subject": subject.identity.id,
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


def _spread(
    subjects: Roster,
    cells: Cells,
    queries: int,
    repeats: int,
    executor_options: ExecutorOptions,
    progress: Callable[[int, int, str], None] | None,
) -> None:
    """Have the missing cells made, several at a time."""
    loaded = {name: load_subject(name) for name in subjects.names}
    wanted = [
        VariantShard(name, variant, feedback, partition, repeat, queries, executor_options.each)
        for name in subjects.names
        for variant, feedback, partition in VARIANTS
        for repeat in range(repeats)
    ]
    make_missing(executor_options, _perform, wanted, cells, loaded, progress)


def _perform(_: None, shard: VariantShard, signals: Signals) -> dict[str, Any]:  # noqa: ARG001 - not cut short
    return _figures(load_subject(shard.subject), shard.settings())


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
