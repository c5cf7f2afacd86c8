"""How an audit divides its time among the stages."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from fairbits.errors import OptionError

#: Seconds for everything, where nothing is said.
DEFAULT_SECONDS = 60.0
#: Below so many seconds in all, debugging looks at fewer cases.
AMPLE = 45.0
#: Below so many seconds repair leaves out what takes long (distilling, sets of neurons), and further training up to
#: the second figure.
QUICK, TRAINING = 90.0, 120.0
#: An audit may take this much of its budget, and so many seconds of it go into starting, the last step of a repair that
#: is ended, indirect bits and the report.
MAX_SHARE, AROUND = 1.3, 6.0
#: Budgets from so many seconds on are kept: a stage that does not fit is ended. Shorter ones hold no whole audit.
KEPT = 15.0


@dataclass(frozen=True, slots=True)
class Shares:
    """What each stage may take of the whole, in seconds."""

    seconds: float
    measure: float
    search: float
    attack: float
    debug_by: float
    repair_by: float
    certify: float
    samples: int
    retrain: bool
    quick: bool

    @classmethod
    def of(cls, seconds: float) -> Shares:
        """Split a budget among the stages: about a third for the search, the rest for what explains and repairs."""
        if not seconds > 0:
            raise OptionError(f"the budget is {seconds:g} s; it must be larger than 0, e.g. 60s.")
        ample = seconds >= AMPLE
        certify = min(max(0.2, 0.08 * seconds), 60.0)
        return cls(
            seconds,
            measure=0.2 * seconds,
            search=0.35 * seconds,
            attack=max(0.5, 0.04 * seconds),
            debug_by=0.75 * seconds if seconds >= KEPT else inf,
            repair_by=min(1.05 * seconds, MAX_SHARE * seconds - certify - AROUND) if seconds >= KEPT else inf,
            certify=certify,
            samples=1000 if ample else 400,
            retrain=seconds >= TRAINING,
            quick=seconds < QUICK,
        )

    def words(self, skip: frozenset[str]) -> str:
        """The plan in one line."""
        training = "with training" if self.retrain else "the quick ones" if self.quick else "without training"
        until = ["as long as it takes" if by == inf else f"until {by:.1f} s" for by in (self.debug_by, self.repair_by)]
        parts = {
            "measure": f"measure at most {self.measure:.1f} s",
            "search": f"search {self.search:.1f} s",
            "debug": f"debug {until[0]}",
            "repair": f"repair {until[1]} ({training}, 2 attacks of {self.attack:.1f} s)",
            "certify": f"certify {self.certify:.1f} s",
            "proxies": "indirect bits and groups",
            "report": "then the report",
        }
        return f"{self.seconds:g} s: " + ", ".join(words for stage, words in parts.items() if stage not in skip)
