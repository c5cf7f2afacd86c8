"""How long a search may go on: seconds, evaluations, distinct cases, or several at once (the first to end wins)."""

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
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if all(limit is None for limit in given.values()):
            raise OptionError("a search needs a budget, or it never ends; give seconds, evaluations, cases or queries.")
        for name in COUNTED:
            limit = given[name]
            if limit is not None and not 0 < limit < float("inf"):
                raise OptionError(f"the budget of {name} is {limit}; it must be larger than 0.")

    def __str__(self) -> str:
        parts = []
        if self.seconds is not None:
            parts.append(f"{self.seconds:g} s")
        parts += [
            f"{getattr(self, name):,} {name}" for name in ("evaluations", "cases", "queries") if getattr(self, name)
        ]
        if self.ends is not None:
            parts.append(f"tasks ended at {', '.join(f'{end:,}' for end in self.ends)}")
        return ", ".join(parts)
