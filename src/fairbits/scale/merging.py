"""What all shards of a search have done together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fairbits.measure import Evaluator
from fairbits.search import Tally
from fairbits.search.problem import Problem
from fairbits.store import Run

#: Figures that are maxima, and those that the cases themselves tell better than sums could.
_LARGEST, _ASKED = ("k_max",), ("seconds_to_first_id", "seconds_to_1000_id", "goal")
_FIRST_IDS = "SELECT seconds FROM cases WHERE flips ORDER BY seconds LIMIT 1 OFFSET {}"


@dataclass(slots=True)
class Merged:
    """Stands where an oracle would, when figures are drawn up."""

    problem: Problem
    seconds: float
    tally: Tally = field(default_factory=Tally)
    findings: dict[str, Any] = field(default_factory=dict)

    @property
    def evaluator(self) -> Evaluator:
        """Who would measure."""
        return self.problem.evaluator

    @classmethod
    def of(cls, problem: Problem, seconds: float, records: Iterable[Mapping[str, Any]], run: Run) -> Merged:
        """Put shards together, in their order: what they say does not depend on who was first."""
        merged = cls(problem, seconds)
        for record in records:
            add_tally(merged.tally, Tally(**record["tally"]))
            merged.findings |= record["findings"]
        for name, place in (("seconds_to_first_id", 0), ("seconds_to_1000_id", 999)):
            rows = run.query(_FIRST_IDS.format(place))["seconds"].to_pylist()
            setattr(merged.tally, name, rows[0] if rows else None)
        return merged


def add_tally(total: Tally, more: Tally) -> None:
    """Sums, but for what is a maximum."""
    for one in fields(Tally):
        was, now = getattr(total, one.name), getattr(more, one.name)
        if one.name not in _ASKED:
            setattr(total, one.name, max(was, now) if one.name in _LARGEST else was + now)
