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
    """What was examined.

    Attributes
    ----------
    subject
        The subject's name.
    protected, sizes
        The protected attributes, and how many values each has.
    m, bits_limit
        Twins of a person, and the most bits that they can show.
    epsilon, partition
        Tolerance, and how scores become classes.
    rows
        Rows of the table.
    domain
        How many different people the free attributes allow; infinite where one is real.
    target, favourable
        The column that is predicted and the class whose probability is the score; None where there is none.
    regression
        Whether the model predicts a number.
    model
        What the model is, in words.
    notes
        What was guessed or fell back, as sentences.
    quality
        How the model agrees with the labels.
    blind
        Whether no twin can score differently, by the way the model is made.
    """

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


@dataclass(frozen=True, slots=True)
class Remaking:
    """How to get the same figures again.

    Attributes
    ----------
    commands
        The commands, one after the other.
    seed
        Seed of the search.
    identity
        The subject's identity, in short.
    versions
        Versions of fairbits and of what it computes with.
    created, status, budget
        When the run was begun, how it ended, and what it could use.
    """

    commands: tuple[str, ...]
    seed: int
    identity: str
    versions: Mapping[str, str]
    created: str
    status: str
    budget: str


@dataclass(frozen=True, slots=True)
class Near:
    """The largest k among people this close to the table.

    Attributes
    ----------
    people
        Who they are, in words.
    k, bits
        The largest k and Q∞ known among them; None where there is none.
    exact
        Whether there cannot be a larger one among them; otherwise the figures are lower bounds.
    """

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
    """What the rows of the table experience.

    Attributes
    ----------
    rows, rows_total
        Rows examined, and rows of the table.
    figures
        Those of ``fairbits measure --json``, under the same names.
    flip_rate, split_rate
        Share of rows whose twins do not all get the same decision (None for a regression), and share with more than one
        class.
    k_mean
        Mean number of classes.
    histogram
        Pairs of k and the number of rows with it.
    stakes
        By protected value, how often it gets the lowest and the highest score.
    bound_bits, bound_rate, bound_confidence
        At most ``bound_rate`` of the population use more than ``bound_bits``, with this confidence.
    noise
        How far answers vary; None where the model always answers the same.
    harms, harmed_people
        What each protected value does to scores and decisions, in the order of the stakes, and how many people that
        rests on.
    """

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
    noise: Noise | None = None
    harms: tuple[Harm, ...] = ()
    harmed_people: int = 0

    @property
    def complete(self) -> bool:
        """Whether all rows were examined, so that the figures are exact."""
        return self.rows == self.rows_total


@dataclass(frozen=True, slots=True)
class Moment:
    """The search so far, at one moment.

    Attributes
    ----------
    seconds
        Time of the search.
    cases, id_cases
        Cases, and those with different decisions, by then.
    k_max
        Largest number of classes by then.
    """

    seconds: float
    cases: int
    id_cases: int
    k_max: int


@dataclass(frozen=True, slots=True)
class Searched:
    """What the search found.

    Attributes
    ----------
    figures
        Those of its summary, under the same names.
    histogram
        Triples of k, the number of cases with it, and those of them with different decisions.
    progress
        The search at equal steps of time.
    stakes
        By protected value, how often it gets the lowest and the highest score among the cases.
    """

    figures: Mapping[str, Any]
    histogram: tuple[tuple[int, int, int], ...]
    progress: tuple[Moment, ...]
    stakes: tuple[Stake, ...]


@dataclass(frozen=True, slots=True)
class Portrait:
    """One person: who they are, and the scores of all their twins.

    Attributes
    ----------
    rank
        Place among the people shown, from 1.
    real
        Whether it is a row of the table; otherwise somebody whom the search found.
    place
        Where to find them: row and line of the table, or the number of the case.
    k, q_inf, q_1
        Number of classes, and bits.
    low, high
        Lowest and highest score of the twins.
    worst, best
        The twins that get them, in words.
    twins
        Number of twins that can exist; rules may leave some out.
    favourable
        How many of them are decided favourably.
    flips
        Whether the twins do not all get the same decision.
    attributes
        Names and values of the attributes that are not protected.
    scores
        Score of every twin; NaN for one that cannot exist.
    classes
        The class of every score, 0 at the lowest, -1 for none; empty where vectors of scores are compared.
    own
        Protected values of a real row; a person whom the search found has none.
    """

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
    own: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Axes:
    """The protected attributes and their values, in the order of the scores (the last one changes fastest).

    Attributes
    ----------
    names
        The attributes.
    values
        The values of each.
    threshold
        Scores from here on are favourable; None where no score decides by itself.
    """

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    threshold: float | None


@dataclass(frozen=True, slots=True)
class ReportLayer:
    """One layer as debugging saw it; layer 0 is the protected input.

    Attributes
    ----------
    layer, width
        Its number, and how many neurons it has.
    delta
        How far apart twins are in this layer, on the mean over the cases.
    rho
        How much more that is than before the layer; None where the rule gives none.
    votes
        In how many cases this layer has the largest ρ.
    suspect
        Whether it is the layer that most cases point at.
    """

    layer: int
    width: int
    delta: float
    rho: float | None
    votes: int
    suspect: bool


@dataclass(frozen=True, slots=True)
class Neuron:
    """One neuron of the suspect layer, and the value that lowers mean k most within the accuracy allowed.

    The value is chosen on one half of the cases; ``acd`` and ``k_mean`` are from the other.

    Attributes
    ----------
    layer, neuron
        Where it is: layers from 1, neurons from 0.
    acd, acd_low, acd_high
        Mean k with the neuron on (at its mean) less mean k with it off (at its minimum), as a share of mean k with
        nothing held, and its 95 % interval; None where one of the two does not keep the accuracy.
    hold, statistic
        The value, and what it is: "mean", "min" and so on.
    accuracy, k_mean
        Accuracy and mean k with the neuron held.
    acd_choosing
        The same from the half of the cases that chooses; neurons are ranked by it.
    label
        Of a split: whom it sends to the left.
    curve
        Every value tried, the smallest first: value, mean k (or Q1) on the half that reports, whether accuracy is kept.
    """

    layer: int
    neuron: int
    acd: float | None
    hold: float | None
    statistic: str | None
    accuracy: float | None
    k_mean: float | None
    acd_choosing: float | None = None
    label: str = ""
    acd_low: float | None = None
    acd_high: float | None = None
    #: Every value tried, the smallest first: value, mean k (or Q1) on the half that reports, whether accuracy is kept.
    curve: tuple[tuple[float, float, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """Bits of one protected attribute.

    Attributes
    ----------
    attribute
        Its name.
    alone
        Mean Q∞ when it alone varies, in bits.
    shapley
        Its Shapley share, in bits.
    share
        The same as a share of all, 0 to 1.
    """

    attribute: str
    alone: float
    shapley: float
    share: float


@dataclass(frozen=True, slots=True)
class Together:
    """Bits when just these attributes vary.

    Attributes
    ----------
    attributes
        The attributes.
    q_inf, q_1
        Mean Q∞ and Q1 over the cases, in bits.
    """

    attributes: tuple[str, ...]
    q_inf: float
    q_1: float


@dataclass(frozen=True, slots=True)
class Sized:
    """A set of neurons held together.

    Attributes
    ----------
    size, words
        How many neurons, and which.
    explained, low, high
        Share of the bits that it explains, with its 95 % interval.
    accuracy
        Accuracy with the set held; None without labels.
    """

    size: int
    words: str
    explained: float
    low: float
    high: float
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Split:
    """The share of the data and of the single training in the bits of some attributes.

    Attributes
    ----------
    attributes
        The attributes that vary.
    shared, low, high
        The share that any training on these rows has, with its 95 % interval.
    own
        How far the model under test agrees with the others; None where that is not known.
    effect
        How far a training separates twins, in units of the score.
    """

    attributes: tuple[str, ...]
    shared: float
    low: float
    high: float
    own: float | None
    effect: float


@dataclass(frozen=True, slots=True)
class Debugged:
    """Where the bits come from.

    Attributes
    ----------
    samples, samples_worst
        Cases looked at, and the worst ones among them.
    k_mean, accuracy
        Mean k of the cases, and accuracy of the model; None without labels.
    suspect
        Number of the layer that most cases point at; None where there is no hidden layer.
    layers, neurons
        The layers, and the neurons that matter most.
    shares, together
        Bits of each protected attribute, and of sets of them.
    q_inf
        Mean Q∞ of all together; None where attributes were not looked at.
    origin
        Data or training, in words.
    splits
        The same in figures, for all attributes and for each.
    labels
        What the labels themselves carry, in words.
    notes
        What a reader must know, as sentences.
    document
        The content of debug.json.
    units
        "layers", or "trees": ``layers`` are trees then, and ``neurons`` their splits.
    rule
        How layers are compared: "spread" or "paper".
    measure
        What is lowered: "q_inf" (k) or "q_1".
    vote
        How the suspect layer was chosen, in words.
    sets, minimal
        Sets of neurons, one more each time, and the smallest one that explains most of the bits.
    """

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
    """One repair on held-out evidence.

    Attributes
    ----------
    name, words
        What it is called, and what was done.
    accuracy, k_mean, id_rate
        Accuracy, mean k, and the share whose twins get different decisions (None for a regression).
    within_budget
        Whether it keeps to the accuracy that may be lost.
    yardstick
        Whether it is there for comparison only.
    on_front
        Whether none beats it on the evidence that it was chosen on.
    chosen
        Whether it is the one that was written.
    k_max_proved
        The most classes that anybody can have, proved; None where nothing is.
    change_low, change_high
        95 % interval of what accuracy gains on held-out rows (below 0: a loss).
    raises
        What there is more of on the plan's half: people who flip, or mean k of rows.
    """

    name: str
    words: str
    accuracy: float
    k_mean: float
    id_rate: float | None
    within_budget: bool
    yardstick: bool
    on_front: bool
    chosen: bool
    k_max_proved: int | None = None
    change_low: float | None = None
    change_high: float | None = None
    raises: str = ""  # what there is more of on the plan's half: people who flip, or mean k of rows


@dataclass(frozen=True, slots=True)
class Change:
    """One figure before and after the chosen repair.

    Attributes
    ----------
    name
        The figure, in words.
    before, after
        Its values; None where there is none.
    kind
        How it is shown: "share", "number" or "whole".
    """

    name: str
    before: float | None
    after: float | None
    kind: str  # "share", "number" or "whole"


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Differences between groups of people before and after: largest rate minus smallest.

    Attributes
    ----------
    attributes
        The attributes by which people are grouped.
    selection, equal_opportunity, average_odds
        Differences in selection rates, in true positive rates, and in average odds; before and after.
    """

    attributes: tuple[str, ...]
    selection: tuple[float | None, float | None]
    equal_opportunity: tuple[float | None, float | None]
    average_odds: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Repaired:
    """What repairs cost and buy.

    Attributes
    ----------
    chosen, words
        The repair that was written, and what was done; "" where none keeps the budget.
    max_accuracy_loss
        The accuracy that may be lost.
    accuracy_before, k_mean_before
        Figures of the model as it is, on held-out evidence.
    held_out_cases, held_out_rows, rows_unseen
        How many cases and rows judge, and whether the model was not trained on those rows.
    repairs
        All repairs.
    changes, groups
        What the chosen one changes, in figures and for groups of people.
    files
        The files that were written.
    warnings
        What a reader must know, as sentences.
    document
        The content of repair.json.
    proof, k_max_proved
        What is proved of the chosen one, and the most classes that anybody can have; "" and None where nothing is.
    """

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
    """Everything that a report says. A stage that was not run is None.

    Attributes
    ----------
    about
        What was examined, and on which terms.
    bits
        Largest Q∞ that is known, in bits.
    sentence
        The first sentence of the page: what leads, and what the model uses directly.
    direct
        What the model uses directly, alone.
    examined, not_examined
        What the figures are about, and what they are not about, as sentences.
    near
        The largest k among people at most so far from the table.
    measured
        The rows of the table.
    searched
        What the search found.
    axes
        The protected attributes and their values, in the order of a portrait's scores.
    people
        The people shown.
    debugged, repaired
        Where the bits come from, and what repairs cost and buy; None where that was not run.
    remaking
        How to get the same figures again.
    warnings
        What a reader must know, as sentences.
    certified
        Statements about everybody.
    proxies
        The document of proxies.json; None where that was not run.
    opening
        What a reviewer looks for first: affected people, files and hashes.
    gate, gate_of_another
        The document of gate.json where it is about this very model, and a sentence where it is about another one.
    files
        Hashes of the files of the run, the report itself left out.
    """

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
    debugged: Debugged | None
    repaired: Repaired | None
    remaking: Remaking
    warnings: tuple[str, ...]
    certified: tuple[Statement, ...] = ()
    proxies: Mapping[str, Any] | None = None
    opening: Opening = field(default_factory=Opening)
    gate: Mapping[str, Any] | None = None
    gate_of_another: str = ""
    files: tuple[FileHash, ...] = ()
