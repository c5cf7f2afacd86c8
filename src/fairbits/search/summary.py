"""The figures of a finished search: the paper's columns, and what can be said about real people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fairbits.measure import Evaluator
from fairbits.search.oracle import Tally
from fairbits.search.problem import Problem
from fairbits.store import Run

if TYPE_CHECKING:
    from fairbits.search.running import Settings

#: Beyond this many twin scores the table is not measured once more for the sake of one figure.
MOST_SCORES = 200_000_000


class Searched(Protocol):
    """What an oracle knows in the end; many of them together know the same."""

    tally: Tally
    findings: dict[str, Any]
    problem: Problem

    @property
    def evaluator(self) -> Evaluator:
        """Who measured."""

    @property
    def seconds(self) -> float:
        """How long it took."""


def summarise(run: Run, oracle: Searched, settings: Settings, *, exact_within: int | None = None) -> dict[str, Any]:
    """Every headline figure under its fixed name; ``exact`` lists those that are no lower bounds."""
    tally, evaluator = oracle.tally, oracle.evaluator
    figures = run.figures()
    exact = _near_figures(figures, oracle, exact_within)
    return {
        "subject": run.manifest["subject"],
        "strategy": settings.strategy,
        "partition": evaluator.partition,
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
        "seconds": oracle.seconds,
        "evaluations": tally.evaluations,
        "queries": tally.queries,
        "seeds": tally.seeds,
        "k_initial": _mean(tally.k_initial_sum, tally.seeds),
        "k_final": _mean(tally.k_final_sum, tally.seeds),
        "seconds_to_k_final": _mean(tally.seconds_to_k_final_sum, tally.seeds),
        "local_success_rate": _mean(tally.local_ids, tally.local_tries),
        "seconds_to_first_id": tally.seconds_to_first_id,
        "seconds_to_1000_id": tally.seconds_to_1000_id,
        **(run.manifest.get("quality") or {}),
        **figures,
        "exact": exact,
        "findings": oracle.findings,
    }


def _near_figures(figures: dict[str, Any], oracle: Searched, exact_within: int | None) -> list[str]:
    """Fold in what all real rows experience, and say which of the figures near them are exact."""
    rows = oracle.problem.rows[oracle.problem.plausible_rows]
    exact = []
    if oracle.evaluator.blind:  # nobody's twins can differ, whoever was asked about
        exact = ["k_max_on_data", "k_max_within_1", "k_max_within_2", "k_max_within_3", "k_max"]
        figures.update(dict.fromkeys(exact, 1))
    elif exact_within is not None:
        exact = ["k_max_on_data", "k_max_within_1"][: exact_within + 1]
    elif len(rows) * oracle.evaluator.m <= MOST_SCORES and oracle.evaluator.native:
        on_data = int(oracle.evaluator.evaluate(rows).k.max(initial=0))
        for name in ("k_max_on_data", "k_max_within_1", "k_max_within_2", "k_max_within_3"):
            figures[name] = max(figures[name] or 0, on_data)
        exact = ["k_max_on_data"]
    return exact


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None
