"""What a gate can check: every figure that a policy may bound, in one table.

A figure has a direction (``max``: more is worse, ``min``: less is worse), a range of thresholds that make sense, and
what it needs of the subject. *Exact* figures are about the frozen people themselves; the others are estimates with an
interval about people like them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

Direction = Literal["max", "min"]
Need = Literal["decision", "labels", "groups"]


@dataclass(frozen=True, slots=True)
class CheckKind:
    """One figure that can be checked."""

    name: str
    words: str
    direction: Direction = "max"
    low: float = 0.0
    high: float = inf
    exact: bool = False
    needs: tuple[Need, ...] = ()
    only_change: bool = False
    percent: bool = False

    @property
    def key(self) -> str:
        """What the policy calls the allowed change against a baseline."""
        return "max_rise" if self.direction == "max" else "max_drop"

    @property
    def change(self) -> str:
        """The name of the check of that change."""
        return f"{self.name}_rise" if self.direction == "max" else f"{self.name}_drop"

    def reader(self) -> Callable[[float], str]:
        """How a value is written."""
        if self.percent:
            return lambda value: f"{100 * value:.2f} %"
        return (lambda value: f"{value:,.0f}") if self.exact and self.name != "bits_max" else (lambda v: f"{v:.3f}")


KINDS: dict[str, CheckKind] = {
    kind.name: kind
    for kind in (
        CheckKind(
            "flip_rate",
            "share of people whose twins get different decisions",
            high=1.0,
            needs=("decision",),
            percent=True,
        ),
        CheckKind("flips", "frozen people whose twins get different decisions", exact=True, needs=("decision",)),
        CheckKind("k_mean", "mean number of classes k", low=1.0),
        CheckKind("k_max", "largest number of classes k of a frozen person", low=1.0, exact=True),
        CheckKind("k_person", "largest rise of one person's k", exact=True, only_change=True),
        CheckKind("bits_mean", "mean bits log2 k"),
        CheckKind("bits_max", "most bits log2 k of a frozen person", exact=True),
        CheckKind("indirect_bits", "bits of the score about a protected attribute", needs=("groups",)),
        CheckKind(
            "impact_ratio",
            "lowest selection rate of a group over the highest",
            direction="min",
            high=1.0,
            needs=("decision", "groups"),
        ),
        CheckKind(
            "accuracy",
            "share of people decided as labelled",
            direction="min",
            high=1.0,
            needs=("decision", "labels"),
            percent=True,
        ),
    )
}
#: Every check that a gate can list: figures, and their changes against a baseline.
CHECKS: tuple[str, ...] = tuple(
    name for kind in KINDS.values() for name in ((kind.change,) if kind.only_change else (kind.name, kind.change))
)
