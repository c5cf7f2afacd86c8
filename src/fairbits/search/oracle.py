"""The only one who asks the model. Strategies propose people; the oracle scores, counts, records and ends the run.

That is what makes strategies comparable: none of them touches a model or a clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, with_stand_ins
from fairbits.engine import Evaluation, Keys, Seen, TwinForecast, keys_of
from fairbits.search.budget import Budget, BudgetSpent, Replay, Stopped, Tally
from fairbits.search.problem import Indices, Problem
from fairbits.store import TaskWriter

#: Distinct people that a second of search may bring, about; and where hints about the duplicate filter end.
MAX_PER_SECOND, LARGEST_HINT = 400_000, 50_000_000

Clock = Callable[[], float]


#: Figures that are kept of a case as they are.
_KEPT = ("k", "q_inf", "q_1", "low", "high", "span", "flips", "low_twin", "high_twin", "favourable")
#: k of a seed that has not been asked about.
_UNASKED = -1


#: How many people's figures are remembered: two megabytes, which stay near the processor.
REMEMBERED = 1 << 16


class Memory:
    """Figures of people who were asked about lately, by their keys: chains often come back to where they were.

    Keys tell people apart as ``Seen`` does. Nothing but who was asked about decides who is remembered: a round that is
    repeated asks the model in the same portions.
    """

    def __init__(self) -> None:
        self._keys = np.zeros(REMEMBERED, np.uint64)
        self._figures: Evaluation | None = None

    def recall(self, people: Codes, keys: Keys, ask: Callable[[Codes], Evaluation]) -> Evaluation:
        """Figures of people, of whom only those are asked about who are not remembered."""
        place = (keys % np.uint64(REMEMBERED)).astype(np.int64)
        fresh = np.flatnonzero((self._keys[place] != keys) | (keys == 0))
        if len(fresh) == 0 and self._figures is not None:
            return self._figures.rows(place)
        found = ask(people[fresh])
        if self._figures is None:
            self._figures = found.rows(np.zeros(REMEMBERED, np.int64))
        known = self._figures.rows(place)
        known.put(fresh, found)
        self._keys[place[fresh]] = keys[fresh]
        self._figures.put(place[fresh], found)
        return known


#: A seed of the current round: where it started, how far it came, and when.
_SEED = np.dtype([("row", "i8"), ("k_initial", "i8"), ("k_best", "i8"), ("begun", "f8"), ("reached", "f8")])


class Oracle:
    """Answers strategies within a budget, and hands every distinct case to the sink.

    Parameters
    ----------
    problem
        What is searched.
    budget
        When the search ends.
    sink
        Takes the cases that are kept.
    seen
        Keys of people who were asked about before; empty by default.
    tally
        Counts to go on from; zeros by default.
    clock
        Gives the time in seconds.
    used_seconds
        Seconds that earlier attempts used.
    replay
        The stretch that a resumed task repeats; None for a new one.
    batch
        People to ask the model about at a time; None: as many as a strategy asks about.
    watch
        Called with the counts and the seconds so far, now and then.
    stop
        Gives whether to end early.
    """

    def __init__(
        self,
        problem: Problem,
        budget: Budget,
        sink: TaskWriter,
        *,
        seen: Seen | None = None,
        tally: Tally | None = None,
        clock: Clock = time.perf_counter,
        used_seconds: float = 0.0,
        replay: Replay | None = None,
        batch: int | None = None,
        watch: Callable[[Tally, float], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ):
        self.problem = problem
        self.evaluator = problem.evaluator
        self.budget = budget
        self.tally = tally or Tally()
        self.findings: dict[str, Any] = {}  # what a strategy has to say besides cases; ends up in the summary
        self._sink = sink
        # No larger than the budget can fill: touching memory that is never used costs seconds.
        bounds = [bound for bound in (budget.evaluations, budget.cases, budget.queries) if bound is not None]
        if budget.seconds is not None:
            bounds.append(int(min(LARGEST_HINT, MAX_PER_SECOND * (1.0 + budget.seconds))))
        self._seen = Seen(capacity_hint=min(bounds)) if seen is None else seen
        self._clock = clock
        self._used = used_seconds
        self._start = clock() - used_seconds
        self._replay = replay if replay is not None and replay.last > self.tally.evaluations else None
        self._resume_at = max(used_seconds, 0.0 if replay is None else replay.end)
        if self._replay is None and replay is not None:
            self._start = clock() - self._resume_at
        self._batch = batch
        self.replayed = 0.0  # seconds spent on repeating what an earlier attempt had done
        self._watch = watch
        self._stop = stop
        self._seeds, self._memory = np.empty(0, _SEED), Memory()

    @property
    def seconds(self) -> float:
        """Since the search began; pauses of a resumed run, and what it repeats, are left out."""
        if self.replaying and self._replay is not None:
            return self._replay.seconds(self.tally.evaluations)
        return self._clock() - self._start

    @property
    def replaying(self) -> bool:
        """Whether the search is still where it was before it was resumed."""
        if self._replay is None:
            return False
        if self.tally.evaluations < self._replay.last:
            return True
        now = self._clock()
        self.replayed = now - self._start - self._used
        self._replay, self._start = None, now - self._resume_at
        return False

    def open_seeds(self, rows: Indices, *, origin: str = "seed") -> tuple[Indices, Evaluation]:
        """Start from real people, by their rows in the table: numbers of the seeds (for ``ask``), and their figures."""
        numbers = len(self._seeds) + np.arange(len(rows))
        opened = np.empty(len(rows), _SEED)
        opened["row"], opened["k_initial"], opened["k_best"] = rows, _UNASKED, _UNASKED
        opened["begun"] = opened["reached"] = self.seconds
        self._seeds = np.concatenate([self._seeds, opened])
        return numbers, self.ask(self.problem.rows[rows], seeds=numbers, origin=origin)

    def ask(self, people: Codes, *, seeds: Indices | None = None, origin: str) -> Evaluation:
        """Figures of people; each is counted, and each new case is kept.

        A slow model is asked about ``batch`` people at a time, so that a clock can end the search between them.
        ``seeds`` are numbers of the seeds that people come from, (n,), ``origin`` is what they are called in the cases.
        ``BudgetSpent`` is raised after the last person that the budget allows.
        """
        step = self._batch or len(people)
        if len(people) <= step:
            return self._ask(people, seeds, origin)
        pieces = [slice(start, start + step) for start in range(0, len(people), step)]
        return Evaluation.concatenate(
            [self._ask(people[some], None if seeds is None else seeds[some], origin) for some in pieces]
        )

    def _ask(self, people: Codes, seeds: Indices | None, origin: str) -> Evaluation:
        if self._stop is not None and self._stop():
            raise Stopped
        allowed = self._allowed(len(people))
        if allowed == 0:
            raise BudgetSpent
        asked = people[:allowed]
        keys = keys_of(asked, self.problem.person)
        figures = self._memory.recall(asked, keys, self._figures)
        # Who of them is a new case: not kept before, and able to exist.
        new = np.flatnonzero(self._seen.add(keys))
        if self.problem.schema.rules or self.problem.min_plausibility is not None:
            new = new[self.problem.allowed(asked[new])]
        last = self._last_case(new, len(asked))
        full = last < len(asked)
        if full:
            # Whoever comes after the last case that the budget allows was not asked about: no figure may know them.
            asked, keys, new = asked[: last + 1], keys[: last + 1], new[new <= last]
            figures = figures.rows(np.arange(last + 1))
        mine = None if seeds is None else seeds[: len(asked)]
        self._count(asked, figures, mine, origin)
        self._keep(asked, figures, mine, origin, keys, new)
        if self._watch is not None:
            self._watch(self.tally, self.seconds)
        if allowed < len(people) or full:
            raise BudgetSpent
        return figures

    def scores(self, people: Codes) -> npt.NDArray[np.float32]:
        """Scores of all twins of people who have been asked about already, and so are not counted again, (n, m).

        A twin that cannot exist has the score of the first that can: it never stands out.
        """
        return with_stand_ins(self.evaluator.scores(people), self.evaluator.valid_twins(people))

    def gradients(self, people: Codes, twins: npt.NDArray[np.integer[Any]]) -> Codes:
        """Slope of the logit margin along the free attributes, at one twin of each person, (n, free)."""
        self._spend(len(people))
        return self.evaluator.gradients(people, twins)[:, self.problem.free]

    def forecast(self, people: Codes, twins: npt.NDArray[np.integer[Any]]) -> TwinForecast:
        """First-order forecast of what changes of the free attributes do, at one twin of each person: slopes along the
        free attributes, and gradients at the first layer's sums.
        """
        self._spend(len(people))
        found = self.evaluator.forecast(people, twins)
        return found._replace(slopes=np.take(found.slopes, self.problem.free, axis=1))

    def again(self, people: Codes) -> Evaluation:
        """Figures of people who have been asked about already: not counted, kept or limited a second time."""
        return self.evaluator.evaluate(people)

    def scores_at(self, people: Codes, twins: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
        """Score of one twin of each person, (n,): one query each, and no case is kept."""
        step = len(people) if self._batch is None else self._batch * self.evaluator.m
        found = []
        for start in range(0, max(len(people), 1), max(step, 1)):
            some = slice(start, start + step)
            self._query(len(people[some]))
            found.append(self.evaluator.scores_at(people[some], twins[some]))
        return np.concatenate(found)

    def layers(self, people: Codes, twins: npt.NDArray[np.integer[Any]]) -> tuple[npt.NDArray[np.float32], ...]:
        """Outputs of every layer for one twin of each person: an array per layer, (n, neurons)."""
        self._query(len(people))
        return self.evaluator.layers(people, twins)

    def layer_gradients(
        self, people: Codes, twins: npt.NDArray[np.integer[Any]], layer: int, slopes: npt.NDArray[np.float32]
    ) -> Codes:
        """Change of Σ slopes · outputs of a layer (counted from 0) along the free attributes, at one twin of each
        person, (n, free).
        """
        self._query(len(people))
        return self.evaluator.layer_gradients(people, twins, layer, slopes)[:, self.problem.free]

    def _query(self, count: int) -> None:
        """Count questions that are no evaluations, and ask none that the budget does not allow."""
        if self._out_of_time:
            raise BudgetSpent
        self._spend(count)

    def _spend(self, queries: int) -> None:
        limit = self.budget.queries
        if limit is not None and self.tally.queries + queries > limit and not self.replaying:
            raise BudgetSpent
        self.tally.queries += queries

    def close_round(self, *, finished: bool) -> None:
        """Add this round's seeds to the tally, as finished where the round came to its end; the next has its own.

        Seeds that were drawn, but not asked about before the budget ended, do not count.
        """
        seeds, tally = self._seeds, self.tally
        asked = seeds[seeds["k_initial"] != _UNASKED]
        sums = {
            "seeds": len(asked),
            "k_initial_sum": float(asked["k_initial"].sum()),
            "k_final_sum": float(asked["k_best"].sum()),
            "seconds_to_k_final_sum": float((asked["reached"] - asked["begun"]).sum()),
        }
        for name in (*sums, *(f"finished_{name}" for name in sums if finished)):
            setattr(tally, name, getattr(tally, name) + sums[name.removeprefix("finished_")])
        self._seeds, self._memory = np.empty(0, _SEED), Memory()

    @property
    def _out_of_time(self) -> bool:
        """Whether the clock has ended the search; it does not while the search repeats what it had done."""
        return self.budget.seconds is not None and not self.replaying and self.seconds >= self.budget.seconds

    def _allowed(self, wanted: int) -> int:
        budget = self.budget
        if self._out_of_time or (budget.cases is not None and self.tally.cases >= budget.cases and not self.replaying):
            return 0
        if budget.queries is not None:
            wanted = min(wanted, max(0, budget.queries - self.tally.queries) // self.evaluator.m)
        left = wanted if budget.evaluations is None else budget.evaluations - self.tally.evaluations
        return max(0, min(wanted, left))

    def _figures(self, people: Codes) -> Evaluation:
        """Figures, in which nobody who cannot exist looks like a find. Proposals come through Problem.limit, so this
        is for strategies that forget to.
        """
        figures = self.evaluator.evaluate(people)
        if not self.problem.schema.rules or (there := self.evaluator.validity.people(people)).all():
            return figures
        nothing: dict[str, Any] = {"k": 1, "q_1": 0, "high": figures.low, "high_twin": figures.low_twin}
        nothing |= {"favourable": 0} | ({} if figures.decisions is None else {"decisions": 1})
        known = {name: getattr(figures, name) for name in nothing}
        flat = {name: np.where(there, known[name], value) for name, value in nothing.items()}
        return replace(figures, **{name: values.astype(known[name].dtype) for name, values in flat.items()})

    def _count(self, people: Codes, figures: Evaluation, seeds: Indices | None, origin: str) -> None:
        tally, n = self.tally, len(figures.k)
        tally.evaluations += n
        tally.queries += n * figures.m
        if figures.twins is not None:
            twins = self.evaluator.twins
            tally.twins_removed += n * twins.m + int(twins.own(people).sum()) - int(figures.twins.sum())
        tally.moves_removed += self.problem.moves_removed
        self.problem.moves_removed = 0
        tally.k_max = max(tally.k_max, int(figures.k.max()))
        if origin == "local":
            tally.local_tries += n
            tally.local_ids += int(figures.flips.sum())
        if seeds is not None:
            first, best = self._seeds["k_initial"], self._seeds["k_best"]
            fresh = first[seeds] == _UNASKED
            first[seeds[fresh]] = figures.k[fresh]
            before = best[seeds]
            np.maximum.at(best, seeds, figures.k)
            self._seeds["reached"][seeds[best[seeds] > before]] = self.seconds

    def _last_case(self, new: Indices, count: int) -> int:
        """Place in a batch of so many of the last person that a budget of cases allows; its end where it allows all.

        A resumed search had come as far as ``replay.last``: it comes there again, whatever is allowed now.
        """
        room = count + 1 if self.budget.cases is None else max(0, self.budget.cases - self.tally.cases)
        if len(new) < room:
            return count
        replayed = 0 if self._replay is None else self._replay.last - self.tally.evaluations
        return max(int(new[room - 1]) if room else 0, replayed - 1)

    def _keep(
        self, people: Codes, figures: Evaluation, seeds: Indices | None, origin: str, keys: Keys, new: Indices
    ) -> None:
        """Keep the new cases among people."""
        if len(new) == 0:
            self._sink.append(people[:0], {}, origin)  # nothing to keep, but the sink may be waiting to flush
            return
        tally = self.tally
        columns: dict[str, Any] = {
            **{name: getattr(figures, name)[new] for name in _KEPT},
            "twins": figures.m if figures.twins is None else figures.twins[new],
            "seed_row": -1 if seeds is None else self._seeds["row"][seeds[new]],
            "evaluation": tally.evaluations - len(figures.k) + new,
            "seconds": self.seconds,
        }
        self._sink.append(people[new], columns, origin, keys=keys[new])
        tally.cases += len(new)
        tally.id_cases += int(columns["flips"].sum())
