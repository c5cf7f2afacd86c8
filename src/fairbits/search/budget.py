"""What a search may use (seconds, evaluations, distinct cases: the first to end wins), and what it has used."""

from __future__ import annotations

from dataclasses import dataclass, fields

from fairbits.errors import OptionError
from fairbits.options import seconds_of as seconds_of  # noqa: PLC0414 - exported from here, too

#: Limits that are one number.
COUNTED = ("seconds", "evaluations", "cases", "queries")


class BudgetSpent(Exception):
    """The budget has ended; whoever runs the search catches this."""


class Stopped(BudgetSpent):
    """Somebody asked the search to end before its budget did."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search; None means no limit of that kind.

    Parameters
    ----------
    seconds : float, optional
        Time of the search itself; reading the model and compiling do not count.
    evaluations : int, optional
        People asked about.
    cases : int, optional
        Distinct people kept.
    queries : int, optional
        Scores and gradients asked of the model, together.
    ends : sequence of int, optional
        Evaluations at which each task ends. This is where a clock, or a person, ended an earlier run: with it the same
        run can be made again. Tasks beyond the last of them are not begun.

    Raises
    ------
    OptionError
        Where there is no limit at all, or one that is not larger than 0.
    """

    seconds: float | None = None
    evaluations: int | None = None
    cases: int | None = None
    queries: int | None = None
    ends: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.ends is not None:
            object.__setattr__(self, "ends", tuple(self.ends))
            strange = next((end for end in self.ends if end < 0), None if self.ends else 0)
            if strange is not None:
                raise OptionError(f"the ends of the tasks are {list(self.ends)}; give a number, 0 or larger, for each.")
        if all(getattr(self, one.name) is None for one in fields(self)):
            raise OptionError("a search needs a budget, or it never ends; give seconds, evaluations, cases or queries.")
        for name in COUNTED:
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < float("inf"):
                raise OptionError(f"the budget of {name} is {limit}; it must be larger than 0.")

    def __str__(self) -> str:
        counts = [f"{getattr(self, name):,} {name}" for name in COUNTED[1:] if getattr(self, name)]
        ends = "" if self.ends is None else f"tasks ended at {', '.join(f'{end:,}' for end in self.ends)}"
        return ", ".join(filter(None, ["" if self.seconds is None else f"{self.seconds:g} s", *counts, ends]))


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
    goal: int | None = None  # how many evaluations there will be in all, where a strategy knows
    left: float | None = None  # seconds until the first limit of the budget is reached at this speed
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
