"""What the rows of the table experience: measured once, kept in measure.json, read again while nothing has changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Limit
from fairbits.measure import (
    Estimate,
    Evaluator,
    Harm,
    Measurement,
    Noise,
    Progress,
    Stake,
    harmed_people,
    harms_of,
    measure_table,
    noise_of,
)
from fairbits.randomness import generator, sampled_rows
from fairbits.report.record import Measured
from fairbits.store import read_json, write_json
from fairbits.subject import Subject, check_identity

NAME = "measure.json"
#: Figures by attribute: the share whose decision flips when only that one differs, and the ends of its interval.
FLIPS_BY = ("flip_rate_by", "flip_rate_by_low", "flip_rate_by_high")
#: Real people with a portrait in the report.
PEOPLE = 6
#: Beyond so many twin scores a sample of the rows is measured: compiled kernels, and any other model.
MAX_SCORES, MAX_FOREIGN_SCORES = 400_000_000, 20_000_000


def measure_rows(
    evaluator: Evaluator,
    subject: Subject,
    seed: int,
    *,
    progress: Progress | None = None,
    max_rows: int | None = None,
) -> dict[str, Any]:
    """Measure all rows, or as many as can be done in a minute."""
    table = subject.table
    limit = max(1, (MAX_SCORES if evaluator.native else MAX_FOREIGN_SCORES) // evaluator.m)
    limit = limit if max_rows is None else max(1, min(limit, max_rows))
    rng = np.random.default_rng(seed)
    chosen = sampled_rows(len(table), limit, rng)
    if len(chosen) < len(table):
        table = table.rows(chosen)
    found = measure_table(evaluator, table, rng, noise=noise_of(subject, evaluator), progress=progress)
    hurried = max_rows is not None and not evaluator.native  # then a quarter of them is asked about once more
    people = harmed_people(evaluator, table.codes, generator(seed, "report", "harm"), share=0.25 if hurried else 1.0)
    document = document_of(found, subject, seed, chosen)
    harms = [asdict(harm) for harm in harms_of(evaluator, people)]
    return {**document, "harms": {"people": len(people), "values": harms}}


def document_of(
    found: Measurement, subject: Subject, seed: int, chosen: np.ndarray[Any, np.dtype[np.int64]] | None = None
) -> dict[str, Any]:
    """A measurement as JSON; ``chosen`` are the rows of the subject's table that were measured."""
    rows = [person.position for person in found.worst(PEOPLE)]
    return {
        "subject": subject.name,
        "identity": subject.identity.document(),
        "seed": seed,
        "rows_total": len(subject.table),
        "figures": found.summary(),
        "noise": None if found.noise is None else found.noise.document(),
        "bound": found.bound(),
        "histogram": [{"k": k, "people": people} for k, people in found.histogram().items()],
        "stakes": [asdict(stake) for stake in found.stakes()],
        "worst_rows": [int(row if chosen is None else chosen[row]) for row in rows],
    }


def kept_measurement(folder: Path, subject: Subject, evaluator: Evaluator) -> dict[str, Any] | None:
    """The measurement in a run's folder, if there is one under these settings."""
    path = folder / NAME
    if not path.is_file():
        return None
    document = read_json(path)
    figures = document.get("figures", {})
    if "confidence" not in document.get("bound", {}):
        return None  # its bound did not hold: measured by an earlier version
    if "harms" not in document or "limits" not in figures:
        return None  # measured by an earlier version, which did not know them
    wanted = (evaluator.epsilon, evaluator.partition)
    if "identity" not in document or (figures.get("epsilon"), figures.get("partition")) != wanted:
        return None
    check_identity(document, subject.identity, what=f"the measurement in {str(path)!r}")
    return document


def keep_measurement(folder: Path, document: dict[str, Any]) -> None:
    """Write measure.json."""
    write_json(folder / NAME, document)


def measured_of(document: dict[str, Any]) -> Measured:
    """The record of a measurement."""
    figures, bound = document["figures"], document["bound"]
    return Measured(
        rows=figures["rows"],
        rows_total=document["rows_total"],
        figures=figures,
        flip_rate=_estimate(figures, "flip_rate") if figures["flip_rate"] is not None else None,
        flip_rate_supported=(
            _estimate(figures, "flip_rate_supported") if figures.get("flip_rate_supported") is not None else None
        ),
        split_rate=_estimate(figures, "split_rate"),
        k_mean=_estimate(figures, "k_mean"),
        histogram=tuple((entry["k"], entry["people"]) for entry in document["histogram"]),
        stakes=tuple(Stake(**stake) for stake in document["stakes"]),
        bound_bits=bound["bits"],
        bound_rate=bound["rate"],
        bound_confidence=bound["confidence"],
        noise=Noise.read(document.get("noise")),
        harms=tuple(Harm(**harm) for harm in document["harms"]["values"]),
        harmed_people=document["harms"]["people"],
        limits=tuple(Limit.read(one) for one in figures.get("limits", ())),
    )


def _estimate(figures: dict[str, Any], name: str) -> Estimate:
    return Estimate(figures[name], figures[f"{name}_low"], figures[f"{name}_high"])
