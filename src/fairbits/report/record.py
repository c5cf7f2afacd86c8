"""What a report says: one typed record, computed once. HTML, Markdown and JSON are three faces of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairbits.certify import Statement
from fairbits.measure import Estimate, Harm, Noise, Stake
from fairbits.report.debugged import Debugged
from fairbits.report.manifest import FileHash
from fairbits.report.repaired import Repaired
from fairbits.report.sections.decided import Opening
from fairbits.subject import Quality


@dataclass(frozen=True, slots=True)
class About:
    """The subject that was examined, and how.

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
