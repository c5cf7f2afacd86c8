"""What a search has counted so far, and the stretch that a resumed task repeats: plain records."""

from __future__ import annotations

from dataclasses import dataclass


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
    # The same of seeds whose round came to its end, so that each had its full share of moves.
    finished_seeds: int = 0
    finished_k_initial_sum: float = 0.0
    finished_k_final_sum: float = 0.0
    finished_seconds_to_k_final_sum: float = 0.0
    seconds_to_first_id: float | None = None
    seconds_to_1000_id: float | None = None
    goal: int | None = None  # how many evaluations there will be in all, where a strategy knows
    twins_removed: int = 0
    moves_removed: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """The stretch that a resumed task repeats: from where its state is known to where its cases end.

    Nothing found there is kept twice, and none of its time is counted twice: the clock shows what it showed then, in
    proportion to the evaluations, until the task is again where it was.
    """

    first: int = 0  # evaluations at the beginning of the repeated round
    last: int = 0  # evaluations that were done before the run ended
    begin: float = 0.0  # seconds at ``first``
    end: float = 0.0  # seconds at ``last``

    def seconds(self, evaluations: int) -> float:
        """Time that the clock showed when so many evaluations had been done, by proportion."""
        done = (evaluations - self.first) / max(1, self.last - self.first)
        return self.begin + done * (self.end - self.begin)
