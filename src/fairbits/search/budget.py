"""How long a search may go on: seconds, evaluations, distinct cases, or several at once (the first to end wins)."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from fairbits.errors import OptionError

_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)")


class BudgetSpent(Exception):
    """The budget has ended; whoever runs the search catches this."""


class Stopped(BudgetSpent):
    """Somebody asked the search to end before its budget did."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search; None means no limit of that kind."""

    seconds: float | None = None
    evaluations: int | None = None
    cases: int | None = None
    queries: int | None = None  # scores and gradients asked of the model, together

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if all(limit is None for limit in given.values()):
            raise OptionError("a search needs a budget, or it never ends; give seconds, evaluations, cases or queries.")
        for name, limit in given.items():
            if limit is not None and not 0 < limit < float("inf"):
                raise OptionError(f"the budget of {name} is {limit}; it must be larger than 0.")

    def __str__(self) -> str:
        parts = []
        if self.seconds is not None:
            parts.append(f"{self.seconds:g} s")
        parts += [
            f"{getattr(self, name):,} {name}" for name in ("evaluations", "cases", "queries") if getattr(self, name)
        ]
        return ", ".join(parts)


def seconds_of(text: str) -> float:
    """A duration as people write it.

    >>> seconds_of("90s"), seconds_of("1.5m"), seconds_of("2h")
    (90.0, 90.0, 7200.0)
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise OptionError(f"the budget {text!r} is not a duration; write it like 60s, 15m or 1h.")
    return float(match[1]) * _UNITS[match[2]]
