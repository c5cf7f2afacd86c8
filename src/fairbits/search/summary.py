"""The figures of a finished search: the paper's columns, and what can be said about real people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from fairbits.measure import Evaluator
from fairbits.search.problem import Problem
from fairbits.search.tally import Tally
from fairbits.store import Run

if TYPE_CHECKING:
    from fairbits.search.settings import Settings

#: Beyond this many twin scores the table is not measured once more for the sake of one figure.
MAX_SCORES = 200_000_000
#: The largest k by how far a person may be from a real row: the figure, and the people in words.
DISTANCES = {
    "k_max_on_data": "real rows",
    "k_max_within_1": "1 attribute away",
    "k_max_within_2": "2 attributes away",
    "k_max_within_3": "3 attributes away",
    "k_max": "anywhere",
}

#: Figures of a tally that are maxima, and those that the cases themselves tell better than sums could.
_LARGEST, _ASKED = ("k_max",), ("seconds_to_first_id", "seconds_to_1000_id", "goal")
_FIRST_IDS = "SELECT seconds FROM cases WHERE flips ORDER BY seconds LIMIT 1 OFFSET {}"


@dataclass(slots=True)
class Totals:
    """What all tasks of a search have done together."""

    problem: Problem
    seconds: float
    tally: Tally = field(default_factory=Tally)
    findings: dict[str, Any] = field(default_factory=dict)

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator that asked the model."""
        return self.problem.evaluator

    @classmethod
    def of(cls, problem: Problem, seconds: float, tasks: Iterable[tuple[Tally, dict[str, Any]]], run: Run) -> Totals:
        """Totals of all tasks, in their order: the result does not depend on which task ended first."""
        totals = cls(problem, seconds)
        for tally, findings in tasks:
            add_tally(totals.tally, tally)
            totals.findings |= findings
        for name, place in (("seconds_to_first_id", 0), ("seconds_to_1000_id", 999)):
            rows = run.query(_FIRST_IDS.format(place))["seconds"].to_pylist()
            setattr(totals.tally, name, rows[0] if rows else None)
        return totals


def add_tally(total: Tally, more: Tally) -> None:
    """Add counts to a total; some are maxima instead of sums."""
    for one in fields(Tally):
        was, now = getattr(total, one.name), getattr(more, one.name)
        if one.name not in _ASKED:
            setattr(total, one.name, max(was, now) if one.name in _LARGEST else was + now)


def summarise(run: Run, oracle: Totals, settings: Settings, *, exact_within: int | None = None) -> dict[str, Any]:
    """The content of summary.json: every headline figure under its fixed name."""
    tally, evaluator = oracle.tally, oracle.evaluator
    figures = run.figures()
    exact = _near_figures(figures, oracle, exact_within, varies=bool(run.manifest.get("noise")))
    # A seed that was just opened has not come far: it says nothing about how far seeds come.
    counted = {
        name: getattr(tally, f"finished_{name}" if tally.finished_seeds else name)
        for name in ("seeds", "k_initial_sum", "k_final_sum", "seconds_to_k_final_sum")
    }
    return {
        "subject": run.manifest["subject"],
        "strategy": settings.strategy,
        "partition": evaluator.partition,
        "objective": settings.measure,
        "epsilon": evaluator.epsilon,
        "seed": settings.seed,
        "threads": evaluator.threads,
        "within": settings.within,
        "min_plausibility": settings.min_plausibility,
        "rules": [rule.text for rule in oracle.problem.schema.rules],
        "twins_removed": tally.twins_removed,
        "moves_removed": tally.moves_removed,
        "m": evaluator.m,
        "bits_limit": evaluator.bits_limit,
        "identity": run.manifest["identity"]["id"],
        "repeats": run.manifest.get("repeats", 1),
        "noise": run.manifest.get("noise"),
        "null_q_inf_max": (run.manifest.get("noise") or {}).get("null_q_inf_max", 0.0),
        "seconds": oracle.seconds,
        "evaluations": tally.evaluations,
        "queries": tally.queries,
        "seeds": tally.seeds,
        "seeds_finished": tally.finished_seeds,
        "k_initial": _mean(counted["k_initial_sum"], counted["seeds"]),
        "k_final": _mean(counted["k_final_sum"], counted["seeds"]),
        "seconds_to_k_final": _mean(counted["seconds_to_k_final_sum"], counted["seeds"]),
        "local_success_rate": _mean(tally.local_ids, tally.local_tries),
        "seconds_to_first_id": tally.seconds_to_first_id,
        "seconds_to_1000_id": tally.seconds_to_1000_id,
        **(run.manifest.get("quality") or {}),
        **figures,
        "exact": exact,
        "findings": oracle.findings,
    }


def _near_figures(figures: dict[str, Any], oracle: Totals, exact_within: int | None, *, varies: bool) -> list[str]:
    """Fold in what all real rows experience, and say which of the figures near them are exact."""
    rows = oracle.problem.rows[oracle.problem.plausible_rows]
    exact = []
    if oracle.evaluator.blind:  # nobody's twins can differ, whoever was asked about
        exact = list(DISTANCES)
        figures.update(dict.fromkeys(exact, 1))
    elif exact_within is not None:
        exact = ["k_max_on_data", "k_max_within_1"][: exact_within + 1]
    elif len(rows) * oracle.evaluator.m <= MAX_SCORES and oracle.evaluator.native:
        on_data = int(oracle.evaluator.evaluate(rows).k.max(initial=0))
        for name in list(DISTANCES)[:-1]:
            figures[name] = max(figures[name] or 0, on_data)
        exact = ["k_max_on_data"]
    if oracle.problem.schema.protected_values_are_representatives and not oracle.evaluator.blind:
        return []  # values that twins do not take may show more
    if not varies:  # chance alone reaches the limit of a model whose answers vary
        limit = round(2**oracle.evaluator.bits_limit)
        exact += [name for name in DISTANCES if name not in exact and figures[name] == limit]
    return exact


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None
