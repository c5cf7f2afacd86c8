"""The only one who asks the model. Strategies propose people; the oracle scores, counts, records and ends the run.

That is what makes strategies comparable: none of them touches a model or a clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.domain.attribute import Codes
from fairbits.engine import Evaluation
from fairbits.search.budget import Budget, BudgetSpent, Stopped
from fairbits.search.nearest import NearestRow
from fairbits.search.problem import Indices, Problem
from fairbits.search.seen import Seen, keys_of

Clock = Callable[[], float]


class Sink(Protocol):
    """Where cases go."""

    def append(self, codes: Codes, figures: dict[str, npt.NDArray[Any]], origin: str) -> None:
        """Take some distinct cases."""


@dataclass(slots=True)
class Tally:
    """What a search has done so far: plain numbers, so that a run can stop here and go on later."""

    evaluations: int = 0
    queries: int = 0
    cases: int = 0
    id_cases: int = 0
    k_max: int = 0
    local_tries: int = 0
    local_ids: int = 0
    seeds: int = 0
    k_initial_sum: float = 0.0
    k_final_sum: float = 0.0
    seconds_to_k_final_sum: float = 0.0
    seconds_to_first_id: float | None = None
    seconds_to_1000_id: float | None = None


@dataclass(slots=True)
class _Seeds:
    """The seeds of the current round: where each started, how far it came, and when."""

    rows: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    k_initial: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    k_best: Indices = field(default_factory=lambda: np.empty(0, np.int64))
    begun: Codes = field(default_factory=lambda: np.empty(0))
    reached: Codes = field(default_factory=lambda: np.empty(0))


class Oracle:
    """Answers strategies within a budget, and hands every distinct case to the sink."""

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        sink: Sink,
        *,
        seen: Seen | None = None,
        nearest: NearestRow | None = None,
        tally: Tally | None = None,
        clock: Clock = time.perf_counter,
        used_seconds: float = 0.0,
        watch: Callable[[Tally, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ):
        self.problem = problem
        self.evaluator = problem.evaluator
        self.budget = budget
        self.tally = tally or Tally()
        self._sink = sink
        self._seen = _filter_for(budget) if seen is None else seen
        self._nearest = NearestRow(problem.schema, problem.rows) if nearest is None else nearest
        self._clock = clock
        self._start = clock() - used_seconds
        self._watch = watch
        self._stop = stop
        self._seeds = _Seeds()

    @property
    def seconds(self) -> float:
        """Since the search began, pauses of a resumed run left out."""
        return self._clock() - self._start

    def open_seeds(self, rows: Indices, *, origin: str = "seed") -> tuple[Indices, Evaluation]:
        """Start from real people: gives their seed numbers (for ``ask``) and their figures."""
        first = len(self._seeds.rows)
        numbers = np.arange(first, first + len(rows))
        now = self.seconds
        pad = np.zeros(len(rows), dtype=np.int64)
        for name, more in (("rows", rows), ("k_initial", pad), ("k_best", pad)):
            setattr(self._seeds, name, np.concatenate([getattr(self._seeds, name), more]))
        for name in ("begun", "reached"):
            setattr(self._seeds, name, np.concatenate([getattr(self._seeds, name), np.full(len(rows), now)]))
        figures = self.ask(self.problem.rows[rows], seeds=numbers, origin=origin)
        self._seeds.k_initial[numbers] = figures.k
        return numbers, figures

    def ask(self, people: Codes, *, seeds: Indices | None = None, origin: str) -> Evaluation:
        """Figures of these people. Ends the search (BudgetSpent) at the last person that the budget allows."""
        if self._stop is not None and self._stop():
            raise Stopped
        allowed = self._allowed(len(people))
        asked = people[:allowed]
        if allowed == 0:
            raise BudgetSpent
        figures = self.evaluator.evaluate(asked)
        mine = None if seeds is None else seeds[:allowed]
        self._count(figures, mine, origin)
        full = self._record(asked, figures, mine, origin)
        if self._watch is not None:
            self._watch(self.tally, self.seconds)
        if full or allowed < len(people):
            raise BudgetSpent
        return figures

    def scores(self, people: Codes) -> npt.NDArray[np.float32]:
        """All twin scores of people who have been asked about already."""
        return self.evaluator.scores(people)

    def gradients(self, people: Codes, twins: npt.NDArray[np.integer[Any]]) -> Codes:
        """Slope of the logit margin along the free attributes, at one twin of each person, (n, free)."""
        self.tally.queries += len(people)
        return self.evaluator.gradients(people, twins)[:, self.problem.free]

    def close_round(self) -> None:
        """Add this round's seeds to the tally; the next round has its own."""
        seeds, tally = self._seeds, self.tally
        tally.seeds += len(seeds.rows)
        tally.k_initial_sum += float(seeds.k_initial.sum())
        tally.k_final_sum += float(seeds.k_best.sum())
        tally.seconds_to_k_final_sum += float((seeds.reached - seeds.begun).sum())
        self._seeds = _Seeds()

    def _allowed(self, wanted: int) -> int:
        budget = self.budget
        if budget.seconds is not None and self.seconds >= budget.seconds:
            return 0
        if budget.evaluations is None:
            return wanted
        return min(wanted, budget.evaluations - self.tally.evaluations)

    def _count(self, figures: Evaluation, seeds: Indices | None, origin: str) -> None:
        tally, n = self.tally, len(figures.k)
        tally.evaluations += n
        tally.queries += n * figures.m
        tally.k_max = max(tally.k_max, int(figures.k.max()))
        if origin == "local":
            tally.local_tries += n
            tally.local_ids += int(figures.flips.sum())
        if seeds is not None:
            before = self._seeds.k_best[seeds]
            np.maximum.at(self._seeds.k_best, seeds, figures.k)
            risen = seeds[self._seeds.k_best[seeds] > before]
            self._seeds.reached[risen] = self.seconds

    def _record(self, people: Codes, figures: Evaluation, seeds: Indices | None, origin: str) -> bool:
        """Keep whom nobody has kept before; says whether the budget of cases is full."""
        new = np.flatnonzero(self._seen.add(keys_of(people, self.problem.free)))
        limit = self.budget.cases
        if limit is not None:
            new = new[: limit - self.tally.cases]
        if len(new):
            self._keep(people[new], figures, new, None if seeds is None else self._seeds.rows[seeds[new]], origin)
        else:
            self._sink.append(people[:0], {}, origin)  # nothing to keep, but the sink may be waiting to flush
        return limit is not None and self.tally.cases >= limit

    def _keep(self, people: Codes, figures: Evaluation, new: Indices, seed_rows: Indices | None, origin: str) -> None:
        near = self._nearest.find(people, threads=self.evaluator.threads)
        now, tally = self.seconds, self.tally
        numbers = tally.evaluations - len(figures.k) + new
        columns: dict[str, npt.NDArray[Any]] = {
            "k": figures.k[new],
            "q_inf": figures.q_inf[new],
            "q_1": figures.q_1[new],
            "low": figures.low[new],
            "high": figures.high[new],
            "span": figures.span[new],
            "flips": figures.flips[new],
            "low_twin": figures.low_twin[new],
            "high_twin": figures.high_twin[new],
            "favourable": figures.favourable[new],
            "seed_row": np.full(len(new), -1) if seed_rows is None else seed_rows,
            "changed": near.changed,
            "l1": near.l1,
            "evaluation": numbers,
            "seconds": np.full(len(new), now),
        }
        self._sink.append(people, columns, origin)
        tally.cases += len(new)
        found = int(columns["flips"].sum())
        if found and tally.seconds_to_first_id is None:
            tally.seconds_to_first_id = now
        if tally.seconds_to_1000_id is None and tally.id_cases + found >= 1000:
            tally.seconds_to_1000_id = now
        tally.id_cases += found


def _filter_for(budget: Budget) -> Seen:
    """A duplicate filter no larger than the budget can fill."""
    bounds = [bound for bound in (budget.evaluations, budget.cases) if bound is not None]
    return Seen(capacity_hint=min(bounds)) if bounds else Seen()
