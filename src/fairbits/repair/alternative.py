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
    """One model that was tried, on held-out rows.

    Attributes
    ----------
    name
        What it is called in files and options.
    family
        The proposer that made it.
    words
        What was done, in a line.
    coding
        Which groups of people it was given, where it was given any.
    accuracy, balanced_accuracy
        Share of rows decided as labelled (the share of explained variance for a regression), and the mean of that over
        classes; statistical.
    bits
        Mean Q∞ over the rows, in bits.
    k_mean, k_max
        Mean and largest number of classes among the rows.
    flips
        Share of rows whose twins do not all get the same decision; None for a regression.
    impact_ratio, impact_attribute
        The lowest selection rate over the highest among the groups of one attribute, and the attribute whose ratio is
        lowest.
    selection_gap, odds_gap
        Largest differences between groups of one attribute in selection rates, and in average odds.
    indirect_bits, indirect_attribute
        What the average over twins says about the attribute of which it says most, in bits, and that attribute.
    indirect_placebo
        The same of a random attribute: what the estimate shows by chance.
    k_mean_cases, id_rate_cases
        Mean k, and the share whose twins get different decisions, among cases of the search.
    k_max_proved
        The most classes that anybody can have, proved; None where nothing is.
    accuracy_plan, k_mean_plan
        Accuracy and mean k on the plan's half, on which candidates are made.
    on_front
        Whether no other candidate is at least as good in accuracy, bits, impact ratio and indirect bits, and better in
        one.
    files
        Files that it was written to.
    """

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
    """Everything that was tried, the model as it is first.

    Attributes
    ----------
    subject, identity
        The subject's name, and its identity in short.
    seed, epsilon, partition
        The terms.
    regression
        Whether the model predicts a number.
    quality
        What ``accuracy`` is, in words.
    evidence
        How many cases and rows candidates were planned and judged on.
    candidates
        The models, with their figures.
    left_out
        Kinds of candidates that could not be tried, each with the reason.
    warnings
        What a reader must know, as sentences.
    folder
        Where the files are.
    agreement
        How the model as it is agrees with the labels of the table, and its decision rule; None without labels.
    """

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
