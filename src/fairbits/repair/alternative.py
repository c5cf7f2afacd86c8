"""A candidate of a study of alternatives with its figures, and all of them together: plain records."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairbits._version import __version__
from fairbits.measure import Estimate
from fairbits.repair.records import RepairEvidence
from fairbits.subject import Quality

#: What candidates are compared by, and in words.
OBJECTIVES = ("accuracy", "bits", "impact_ratio", "indirect_bits")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One model that was tried, on held-out rows."""

    name: str
    family: str
    words: str
    coding: str
    accuracy: Estimate
    balanced_accuracy: Estimate | None
    bits: Estimate
    k_mean: float
    k_max: int
    flips: Estimate | None
    impact_ratio: Estimate | None
    impact_attribute: str | None
    selection_gap: float | None
    odds_gap: float | None
    indirect_bits: Estimate | None
    indirect_attribute: str | None
    indirect_placebo: float | None
    k_mean_cases: float
    id_rate_cases: float | None
    k_max_proved: int | None
    accuracy_plan: float
    k_mean_plan: float
    on_front: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Everything that was tried, the model as it is first."""

    subject: str
    identity: str
    seed: int
    epsilon: float
    partition: str
    regression: bool
    quality: str
    evidence: RepairEvidence
    candidates: tuple[Alternative, ...]
    left_out: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    folder: Path
    agreement: Quality | None = None

    def __getitem__(self, name: str) -> Alternative:
        return next(one for one in self.candidates if one.name == name)

    @property
    def front(self) -> tuple[Alternative, ...]:
        """Those that no other beats."""
        return tuple(one for one in self.candidates if one.on_front)

    def document(self) -> dict[str, Any]:
        """The content of alternatives.json."""
        return {
            "subject": self.subject,
            "identity": self.identity,
            "version": __version__,
            "seed": self.seed,
            "epsilon": self.epsilon,
            "partition": self.partition,
            "regression": self.regression,
            "quality": self.quality,
            "agreement": None if self.agreement is None else self.agreement.figures(),
            "objectives": list(OBJECTIVES),
            "evidence": asdict(self.evidence),
            "candidates": [asdict(one) for one in self.candidates],
            "left_out": [{"proposal": name, "reason": reason} for name, reason in self.left_out],
            "warnings": list(self.warnings),
        }
