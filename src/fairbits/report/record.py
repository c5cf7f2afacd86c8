"""What a report says: one typed record, computed once, which HTML, Markdown, JSON and the terminal draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from fairbits.certify import Contradiction, Statement
from fairbits.debug import DebugResult
from fairbits.domain import Limit
from fairbits.measure import Estimate, Harm, Noise, Stake, Tail, WordStudy
from fairbits.repair import RepairResult
from fairbits.report.manifest import FileHash
from fairbits.subject import Quality
from fairbits.text import shortened


@dataclass(frozen=True, slots=True)
class About:
    subject: str
    protected: tuple[str, ...]
    sizes: tuple[int, ...]
    m: int
    bits_limit: float
    epsilon: float
    partition: str
    rows: int
    domain: float
    target: str | None
    favourable: str | None
    regression: bool
    model: str
    notes: tuple[str, ...]
    quality: Quality
    blind: bool = False
    people: int | None = None  # whose the rows are, where the table says so

    @property
    def open(self) -> bool:
        """Whether some people have protected values beside those that all twins take, which are twins of theirs."""
        return self.m > prod(self.sizes)

    @property
    def factors(self) -> str:
        """What the twins are made of, e.g. "age 9 × sex 2"."""
        sizes = " × ".join(f"{shortened(n, 40)} {s}" for n, s in zip(self.protected, self.sizes, strict=True))
        return sizes + " and one's own values where they are others" * self.open


@dataclass(frozen=True, slots=True)
class Reproduction:
    commands: tuple[str, ...]
    seed: int
    identity: str
    versions: Mapping[str, str]
    created: str
    status: str
    budget: str


@dataclass(frozen=True, slots=True)
class Near:
    """The largest k among people this close to the table."""

    people: str
    k: int | None
    bits: float | None
    exact: bool

    @property
    def kind(self) -> str:
        return "exact" if self.exact else "lower bound"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the rows of the table experience."""

    rows: int
    rows_total: int
    figures: Mapping[str, Any]
    flip_rate: Estimate | None
    split_rate: Estimate
    histogram: tuple[tuple[int, int], ...]
    stakes: tuple[Stake, ...]
    bound: Mapping[str, float]
    noise: Noise | None = None
    flip_rate_plausible: Estimate | None = None
    limits: tuple[Limit, ...] = ()
    harms: tuple[Harm, ...] = ()
    harmed_people: int = 0
    tail: Tail | None = None

    @property
    def complete(self) -> bool:
        """Whether all rows were examined, so that the figures are exact."""
        return self.rows == self.rows_total

    @property
    def bounded(self) -> bool:
        """Whether twins take some values only, so that the figures are lower bounds where all values count."""
        return self.figures.get("kind") == "lower bound"

    @property
    def kind(self) -> str:
        return "statistical" if not self.complete or self.noise else "lower bound" if self.bounded else "exact"


@dataclass(frozen=True, slots=True)
class Moment:
    seconds: float
    cases: int
    id_cases: int
    k_max: int


@dataclass(frozen=True, slots=True)
class Searched:
    figures: Mapping[str, Any]
    histogram: tuple[tuple[int, int, int], ...]
    progress: tuple[Moment, ...]
    stakes: tuple[Stake, ...]


@dataclass(frozen=True, slots=True)
class Portrait:
    """One person: who they are, and the scores of all their twins."""

    rank: int
    real: bool
    place: str
    k: int
    q_inf: float
    q_1: float
    low: float
    high: float
    worst: str
    best: str
    twins: int
    favourable: int
    flips: bool
    attributes: Mapping[str, str]
    scores: tuple[float, ...]
    classes: tuple[int, ...]
    removed: int = 0  # twins that rules leave out
    own: Mapping[str, str] = field(default_factory=dict)
    own_twin: int = -1  # which of the scores is that of the person as they are; -1 where nobody is


@dataclass(frozen=True, slots=True)
class Axes:
    """The protected attributes and their values, in the order of the scores (the last one changes fastest)."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    threshold: float | None


@dataclass(frozen=True, slots=True)
class DecisionSource:
    what: str
    name: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """What a reviewer looks for first."""

    people: str = ""
    kind: str = "exact"
    sources: tuple[DecisionSource, ...] = ()
    made_by: str = "unknown"
    about: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything that a report says. A stage that was not run is None."""

    about: About
    bits: float
    sentence: str
    direct: str
    examined: tuple[str, ...]
    not_examined: tuple[str, ...]
    near: tuple[Near, ...]
    measured: Measured
    searched: Searched
    axes: Axes
    people: tuple[Portrait, ...]
    debugged: DebugResult | None
    repaired: RepairResult | None
    reproduction: Reproduction
    warnings: tuple[str, ...]
    certified: tuple[Statement, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    proxies: Mapping[str, Any] | None = None
    opening: Opening = field(default_factory=Opening)
    gate: Mapping[str, Any] | None = None
    gate_of_another: str = ""
    files: tuple[FileHash, ...] = ()
    folder: Path | None = None  # where these files lie
    words: WordStudy | None = None
