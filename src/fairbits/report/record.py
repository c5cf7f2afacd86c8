"""What a report says: one typed record, computed once. HTML, Markdown and JSON are three faces of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairbits.certify import Statement
from fairbits.domain import quality
from fairbits.measure import Estimate, Harm, Measure, Noise, Stake
from fairbits.report.manifest import FileHash
from fairbits.report.sections.decided import Opening
from fairbits.subject import Quality


@dataclass(frozen=True, slots=True)
class About:
    """What was examined."""

    subject: str
    protected: tuple[str, ...]
    sizes: tuple[int, ...]  # values of each protected attribute
    m: int
    bits_limit: float
    epsilon: float
    partition: str
    rows: int
    domain: float  # how many different people the free attributes allow; infinite where one is real
    target: str | None
    favourable: str | None
    regression: bool
    model: str
    notes: tuple[str, ...]
    quality: Quality
    blind: bool = False  # no twin can score differently, by the way the model is made


@dataclass(frozen=True, slots=True)
class Remaking:
    """How to get the same figures again."""

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
        """What kind of figure it is."""
        return "exact" if self.exact else "lower bound"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the rows of the table experience. ``figures`` are those of ``fairbits measure``, under the same names."""

    rows: int
    rows_total: int
    figures: Mapping[str, Any]
    flip_rate: Estimate | None
    split_rate: Estimate
    k_mean: Estimate
    histogram: tuple[tuple[int, int], ...]
    stakes: tuple[Stake, ...]
    bound_bits: float
    bound_rate: float
    bound_confidence: float
    noise: Noise | None = None  # None where the model always answers the same
    harms: tuple[Harm, ...] = ()  # in the order of the stakes
    harmed_people: int = 0  # whom they rest on

    @property
    def complete(self) -> bool:
        """Whether all rows were examined, so that the figures are exact."""
        return self.rows == self.rows_total


@dataclass(frozen=True, slots=True)
class Moment:
    """The search so far, at one moment."""

    seconds: float
    cases: int
    id_cases: int
    k_max: int


@dataclass(frozen=True, slots=True)
class Searched:
    """What the search found. ``figures`` are those of its summary."""

    figures: Mapping[str, Any]
    histogram: tuple[tuple[int, int, int], ...]  # k, cases, of them with a flipped decision
    progress: tuple[Moment, ...]
    stakes: tuple[Stake, ...]


@dataclass(frozen=True, slots=True)
class Portrait:
    """One person: who they are, and the scores of all their twins."""

    rank: int
    real: bool  # a row of the table
    place: str
    k: int
    q_inf: float
    q_1: float
    low: float
    high: float
    worst: str
    best: str
    twins: int  # twins that can exist; rules may leave some out
    favourable: int  # of them with a favourable decision
    flips: bool
    attributes: Mapping[str, str]  # those that are not protected
    scores: tuple[float, ...]  # NaN for a twin that cannot exist
    classes: tuple[int, ...]  # the ε-class of every score, 0 at the lowest, -1 for none; empty where vectors count
    own: Mapping[str, str] = field(default_factory=dict)  # the protected values of a real row; a found person has none


@dataclass(frozen=True, slots=True)
class Axes:
    """The protected attributes and their values, in the order of the scores (the last one changes fastest)."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    threshold: float | None  # scores from here on are favourable; None where no score decides by itself


@dataclass(frozen=True, slots=True)
class ReportLayer:
    """One layer as debugging saw it; layer 0 is the protected input."""

    layer: int
    width: int
    delta: float
    rho: float | None
    votes: int
    suspect: bool


@dataclass(frozen=True, slots=True)
class Neuron:
    """One neuron of the suspect layer, and the value that lowers mean k most within the accuracy allowed.

    The value is chosen on one half of the cases; ``acd`` and ``k_mean`` are from the other. ``acd_choosing`` ranks.
    """

    layer: int
    neuron: int
    acd: float | None
    hold: float | None
    statistic: str | None
    accuracy: float | None
    k_mean: float | None
    acd_choosing: float | None = None
    label: str = ""  # of a split: whom it sends to the left
    acd_low: float | None = None
    acd_high: float | None = None
    #: Every value tried, the smallest first: value, mean k (or Q1) on the half that reports, whether accuracy is kept.
    curve: tuple[tuple[float, float, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """Bits of one protected attribute: alone, and its Shapley share."""

    attribute: str
    alone: float
    shapley: float
    share: float


@dataclass(frozen=True, slots=True)
class Together:
    """Bits when just these attributes vary."""

    attributes: tuple[str, ...]
    q_inf: float
    q_1: float


@dataclass(frozen=True, slots=True)
class Sized:
    """A set of neurons held together: how many, which, and the share of the bits that it explains."""

    size: int
    words: str
    explained: float
    low: float
    high: float
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Split:
    """The share of the data and of the single training in what is made of some attributes."""

    attributes: tuple[str, ...]
    shared: float
    low: float
    high: float
    own: float | None
    effect: float


@dataclass(frozen=True, slots=True)
class Debugged:
    """Where the bits come from. ``document`` is debug.json."""

    samples: int
    samples_worst: int
    k_mean: float
    accuracy: float | None
    suspect: int | None
    layers: tuple[ReportLayer, ...]
    neurons: tuple[Neuron, ...]
    shares: tuple[Share, ...]
    together: tuple[Together, ...]
    q_inf: float | None
    origin: str
    splits: tuple[Split, ...]
    labels: str
    notes: tuple[str, ...]
    document: Mapping[str, Any]
    units: str = "layers"  # or "trees": ``layers`` are trees then, and ``neurons`` their splits
    rule: str = "spread"
    measure: Measure = "q_inf"
    vote: str = ""
    sets: tuple[Sized, ...] = ()
    minimal: Sized | None = None

    @property
    def hidden(self) -> bool:
        """Whether there is anything between the inputs and the score: a hidden layer, or trees."""
        return self.units == "trees" or sum(layer.layer > 0 for layer in self.layers) > 1


@dataclass(frozen=True, slots=True)
class Mend:
    """One repair on held-out evidence."""

    name: str
    words: str
    accuracy: float
    k_mean: float
    id_rate: float | None
    within_budget: bool
    yardstick: bool
    on_front: bool  # none beats it on the evidence that it was chosen on
    chosen: bool
    k_max_proved: int | None = None  # the most classes that anybody can have; None where nothing is proved
    change_low: float | None = None  # 95 % interval of what accuracy gains on held-out rows (below 0: a loss)
    change_high: float | None = None
    raises: str = ""  # what there is more of on the plan's half: people who flip, or mean k of rows


@dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after the chosen repair."""

    name: str
    before: float | None
    after: float | None
    kind: str  # "share", "number" or "whole"


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Differences between groups of people before and after: largest rate minus smallest."""

    attributes: tuple[str, ...]
    selection: tuple[float | None, float | None]
    equal_opportunity: tuple[float | None, float | None]
    average_odds: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Repaired:
    """What repairs cost and buy. ``document`` is repair.json; ``chosen`` is "" where none keeps the budget."""

    chosen: str
    words: str
    max_accuracy_loss: float
    accuracy_before: float
    k_mean_before: float
    held_out_cases: int
    held_out_rows: int
    rows_unseen: bool
    repairs: tuple[Mend, ...]
    changes: tuple[Change, ...]
    groups: tuple[GroupChange, ...]
    files: tuple[str, ...]
    warnings: tuple[str, ...]
    document: Mapping[str, Any]
    proof: str = ""
    k_max_proved: int | None = None

    @property
    def regression(self) -> bool:
        """Whether the model predicts a number: there are no decisions, so no ID rates either."""
        return all(mend.id_rate is None for mend in self.repairs)

    @property
    def quality(self) -> str:
        """What ``accuracy`` is, in words."""
        return quality(regression=self.regression)


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything that a report says. A stage that was not run is None."""

    about: About
    bits: float
    sentence: str  # both: what leads, and what the model uses directly
    direct: str  # what it uses directly, alone
    examined: tuple[str, ...]
    not_examined: tuple[str, ...]
    near: tuple[Near, ...]
    measured: Measured
    searched: Searched
    axes: Axes
    people: tuple[Portrait, ...]
    debugged: Debugged | None
    repaired: Repaired | None
    remaking: Remaking
    warnings: tuple[str, ...]
    certified: tuple[Statement, ...] = ()
    proxies: Mapping[str, Any] | None = None  # the document of proxies.json
    opening: Opening = field(default_factory=Opening)
    gate: Mapping[str, Any] | None = None  # the document of gate.json, where it is about this very model
    gate_of_another: str = ""  # that it is about another one, in words
    files: tuple[FileHash, ...] = ()  # of the run; not the report itself
