"""What the search found, from aggregates over its cases: as many as there are, in bounded memory."""

from __future__ import annotations

from typing import Any

from fairbits.domain import Twins
from fairbits.measure import Stake
from fairbits.report.record import Moment, Near, Searched
from fairbits.search import DISTANCES
from fairbits.store import Run

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
    from math import log2

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
