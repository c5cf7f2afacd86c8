"""What the rows of the table experience, and what the search found, as the report reads them from a run.

The rows are measured once, kept in measure.json, and read again while nothing has changed; the cases of a search are
aggregated, as many as there are, in bounded memory.
"""

from __future__ import annotations

from dataclasses import asdict
from math import log2
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Limit, Twins
from fairbits.measure import (
    Estimate,
    Evaluator,
    Harm,
    Measurement,
    Noise,
    Progress,
    Stake,
    Tail,
    harmed_people,
    harms_of,
    measure_table,
    noise_of,
)
from fairbits.randomness import generator, sampled_rows
from fairbits.report.record import Measured, Moment, Near, Searched
from fairbits.search import DISTANCES
from fairbits.store import Run, read_json, record_from_json, write_json
from fairbits.subject import Subject, check_identity

NAME = "measure.json"
#: Figures by attribute: the share whose decision flips when only that one differs, and the ends of its interval.
FLIPS_BY = tuple(f"flip_rate_{which}{end}" for which in ("by", "plausible_by") for end in ("", "_low", "_high"))
#: Real people with a portrait in the report.
PEOPLE = 6
#: Beyond so many twin scores a sample of the rows is measured: compiled kernels, and any other model.
MAX_SCORES, MAX_FOREIGN_SCORES = 400_000_000, 20_000_000

#: Points of the curve over time.
MOMENTS = 120
_HISTOGRAM = "SELECT k, count(*) AS cases, count(*) FILTER (flips) AS ids FROM cases GROUP BY k ORDER BY k"
#: What every summary.json has.
NEEDED = ("strategy", "seed", "epsilon", "partition", "seconds", "evaluations", "cases", "id_cases", "k_max", "exact")
#: What the values of summary.json are, where the page shows them.
FIELDS: dict[str, Any] = {
    **dict.fromkeys(("subject", "strategy", "partition", "objective", "decision"), str),
    **dict.fromkeys(("cases", "id_cases", "k_max", "evaluations", "queries", "seeds", "seed", "m"), int | None),
    "seeds_finished": int | None,
    **dict.fromkeys(("k_max_on_data", "k_max_within_1", "k_max_within_2", "k_max_within_3", "within"), int | None),
    **dict.fromkeys(("epsilon", "bits_limit", "seconds", "k_initial", "k_final", "local_success_rate"), float | None),
    **dict.fromkeys(("seconds_to_k_final", "seconds_to_first_id", "seconds_to_1000_id"), float | None),
    **dict.fromkeys(("q_inf_mean_id", "q_1_mean_id", "null_q_inf_max", "min_plausibility"), float | None),
    **dict.fromkeys(("threshold", "favourable_rate", "base_rate", "accuracy", "balanced_accuracy"), float | None),
    **dict.fromkeys(("auc", "auc_low", "auc_high", "r2", "rank_correlation", "quality_rows"), float | None),
    **dict.fromkeys(("top", "exact", "notes", "rules"), list[Any]),
    "ends": list[int] | None,
}


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
    harms = [asdict(harm) for harm in harms_of(evaluator, people)]
    return {
        "subject": subject.name,
        "identity": subject.identity.document(),
        "seed": seed,
        "rows_total": len(subject.table),
        **_document_of(found),
        "worst_rows": [int(chosen[person.position]) for person in found.worst(PEOPLE)],
        "harms": {"people": len(people), "values": harms},
    }


def _document_of(found: Measurement) -> dict[str, Any]:
    return {
        "figures": found.summary(),
        "noise": None if found.noise is None else found.noise.document(),
        "bound": found.bound(),
        "histogram": [{"k": k, "people": people} for k, people in found.histogram().items()],
        "stakes": [asdict(stake) for stake in found.stakes()],
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
    if "harms" not in document or "limits" not in figures or "tail" not in figures:
        return None  # measured by an earlier version, which did not know them
    wanted = [evaluator.epsilon, evaluator.partition, [rule.text for rule in subject.schema.plausible]]
    if "identity" not in document or [figures.get(name) for name in ("epsilon", "partition", "plausible")] != wanted:
        return None
    check_identity(document, subject.identity, what=f"the measurement in {str(path)!r}")
    return document


def keep_measurement(folder: Path, document: dict[str, Any]) -> None:
    """Write measure.json."""
    write_json(folder / NAME, document)


def measured_now(found: Measurement) -> Measured:
    """The record of a measurement that is at hand, of all rows that were asked for."""
    return measured_of({**_document_of(found), "rows_total": len(found), "harms": {"people": 0, "values": []}})


def measured_of(document: dict[str, Any]) -> Measured:
    """The record of a measurement."""
    figures, bound = document["figures"], document["bound"]
    return Measured(
        rows=figures["rows"],
        rows_total=document["rows_total"],
        figures=figures,
        flip_rate=_estimate(figures, "flip_rate") if figures["flip_rate"] is not None else None,
        flip_rate_plausible=(
            _estimate(figures, "flip_rate_plausible") if figures.get("flip_rate_plausible") is not None else None
        ),
        split_rate=_estimate(figures, "split_rate"),
        histogram=tuple((entry["k"], entry["people"]) for entry in document["histogram"]),
        stakes=tuple(Stake(**stake) for stake in document["stakes"]),
        bound={name: bound[name] for name in ("bits", "rate", "confidence")},
        noise=Noise.read(document.get("noise")),
        harms=tuple(Harm(**harm) for harm in document["harms"]["values"]),
        harmed_people=document["harms"]["people"],
        limits=tuple(Limit.read(one) for one in figures.get("limits", ())),
        tail=record_from_json(Tail, figures["tail"]) if figures.get("tail") else None,
    )


def _estimate(figures: dict[str, Any], name: str) -> Estimate:
    return Estimate(figures[name], figures[f"{name}_low"], figures[f"{name}_high"])


def searched_of(run: Run, summary: dict[str, Any]) -> Searched:
    """The record of a run's cases."""
    groups = run.query(_HISTOGRAM).to_pylist()
    return Searched(
        figures=summary,
        histogram=tuple((group["k"], group["cases"], group["ids"]) for group in groups),
        progress=_progress(run),
        stakes=_stakes(run),
    )


def summary_of_run(run: Run) -> dict[str, Any]:
    """The summary that the search wrote; for a run that has not ended, what follows from its cases."""
    if run.summary is not None:
        return dict(run.summary)
    counted = [record.tally or (record.state or {}).get("tally", {}) for record in run.tasks.values()]
    names = ("subject", "strategy", "partition", "epsilon", "seed", "within")
    return {
        **{name: run.manifest.get(name) for name in names},
        "m": run.twins.most,
        "seconds": max((record.seconds for record in run.tasks.values()), default=None),
        "evaluations": sum(record.evaluations for record in run.tasks.values()),
        "queries": sum(tally.get("queries", 0) for tally in counted),
        "seeds": sum(tally.get("seeds", 0) for tally in counted),
        "ends": [record.evaluations for record in run.tasks.values()],
        **run.figures(),
        "exact": [],
    }


def near_of(
    summary: dict[str, Any], *, rows_k_max: int, rows_exact: bool, blind: bool = False, limit: int | None = None
) -> tuple[Near, ...]:
    """The largest k by distance from real rows."""
    found = []
    for key, people in DISTANCES.items():
        k = max(summary.get(key) or 0, rows_k_max)
        exact = blind or key in summary.get("exact", []) or (key == "k_max_on_data" and rows_exact) or k == limit
        found.append(Near(people, k or None, log2(k) if k else None, exact))
    return tuple(found)


def _progress(run: Run) -> tuple[Moment, ...]:
    """The largest k and the number of cases over time."""
    last = run.query("SELECT max(seconds)::DOUBLE AS seconds FROM cases")["seconds"][0].as_py()
    if not last:
        return ()
    bucket = f"least(floor(seconds / {last!r} * {MOMENTS}), {MOMENTS - 1})::INTEGER"
    groups = run.query(
        f"SELECT {bucket} AS bucket, count(*) AS found, count(*) FILTER (flips) AS ids, max(k) AS k_max "  # noqa: S608
        "FROM cases GROUP BY 1 ORDER BY 1"
    ).to_pylist()
    cases = ids = k_max = 0
    moments = [Moment(0.0, 0, 0, 0)]
    for group in groups:
        cases, ids, k_max = cases + group["found"], ids + group["ids"], max(k_max, group["k_max"])
        moments.append(Moment((group["bucket"] + 1) * last / MOMENTS, cases, ids, k_max))
    return tuple(moments)


def _stakes(run: Run) -> tuple[Stake, ...]:
    """Per protected value, among the cases with more than one class: how often lowest, how often highest."""
    shares = {name: _twin_shares(run, name) for name in ("low_twin", "high_twin")}
    return stakes_of(run.twins, shares["low_twin"], shares["high_twin"])


def stakes_of(twins: Twins, lowest: dict[int, float], highest: dict[int, float]) -> tuple[Stake, ...]:
    """Shares per twin, added up per protected value."""
    found = []
    for position, column in enumerate(twins.columns):
        attribute = twins.schema.attributes[column]
        for code in attribute.twin_values():
            here = (twins.patterns[:, position] == code).nonzero()[0].tolist()
            low, high = (sum(shares.get(twin, 0.0) for twin in here) for shares in (lowest, highest))
            found.append(Stake(attribute.name, attribute.read_twin(code), low, high))
    return tuple(found)


def _twin_shares(run: Run, name: str) -> dict[int, float]:
    groups = run.query(f"SELECT {name} AS twin, count(*) AS found FROM cases WHERE k > 1 GROUP BY 1").to_pylist()  # noqa: S608
    total = sum(group["found"] for group in groups) or 1
    return {group["twin"]: group["found"] / total for group in groups}
