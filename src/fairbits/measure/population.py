"""What the people in a table experience: figures with intervals, the worst off, and who gains and loses.

Nested sets of twins of a person (METHOD.md 15): all; those that the rules allow; those that are supported, because at
least ten rows of the table have that combination of protected values; those of them that are plausible, by the schema's
rules about that. Where rules leave people different twins, rows count for people to whom the rules leave the same ones.
A value of a person's own counts as the range that it is in. Beside these, the twins that differ in one attribute only,
the others at the person's own values.

A service may answer the same question otherwise; then part of the bits is noise. Null bits are the bits of one twin
asked as often as a person has twins: nothing protected differs there, so whatever shows is the model's unsteadiness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, floor, log10
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.blocks import Shown
from fairbits.domain import (
    MIN_ROWS,
    Codes,
    FigureKind,
    Integers,
    Limit,
    Schema,
    Table,
    Truth,
    Twins,
    Validity,
    people_of,
    twin_limits,
)
from fairbits.engine import Evaluation
from fairbits.errors import TableError, rows_named
from fairbits.measure.evaluator import Evaluator, Progress
from fairbits.measure.intervals import Estimate, bounded_means, effective_size, rate_bound, rate_of
from fairbits.measure.tail import Tail, tail_of
from fairbits.models import HasClassScores, TwinScores, fresh_scores
from fairbits.randomness import sampled_rows
from fairbits.subject import Subject
from fairbits.text import percent, shortened, unsigned_zero

#: Answers that null bits are measured from, about; and the people among whom they are divided.
NULL_ANSWERS, MIN_ASKED, MAX_ASKED = 2_000, 4, 50


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a model's answers vary when it is asked again."""

    rows: int
    varied: float
    quantile: float
    largest: float
    people: int
    m: int
    null_q_inf_mean: float
    null_q_inf_max: float
    null_flip_rate: float | None
    repeats: int = 1

    def notes(self, epsilon: float) -> tuple[str, ...]:
        """Notes that a reader needs to read the figures."""
        mean = f", each the mean of {self.repeats} answers" if self.repeats > 1 else ""
        flipped = self.null_flip_rate
        flips = "" if flipped is None else f", and {percent(flipped, 0)} of their decisions flip"
        found = [
            f"the model's answers vary: of {self.rows:,} rows asked twice{mean}, {percent(self.varied, 0)} came out "
            f"otherwise, 95 % of all by at most {self.quantile:.3g}, the largest by {self.largest:.3g}.",
            f"null bits, of one and the same twin asked {self.m} times: {self.null_q_inf_mean:.2f} on average and "
            f"{self.null_q_inf_max:.2f} at most among {self.people} people{flips}; only bits beyond these can come "
            f"from protected attributes.",
        ]
        if epsilon < self.quantile:
            found.append(
                f"ε = {epsilon:g} lies below the noise, so repeated answers alone make classes; give --epsilon "
                f"{_upwards(self.quantile):g} or more, or average more answers per twin: with --repeats, or more rows "
                f"in a table of twins."
            )
        return tuple(found)


def _upwards(value: float) -> float:
    """Two digits, never less than the value."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return float(f"{ceil(value / step) * step:.2g}")


def noise_of(subject: Subject, evaluator: Evaluator) -> Noise | None:
    """How much a subject's answers vary, from rows that were asked twice.

    A native network is not asked: it gives the same answer every time.
    """
    if evaluator.native:
        return None
    if isinstance(subject.model, TwinScores):
        return _repetition_noise(subject.model, evaluator)
    probe = subject.identity.probe
    if not probe.varies:
        return None
    table = subject.table.codes
    people = min(len(table), MAX_ASKED, max(MIN_ASKED, NULL_ANSWERS // evaluator.m))
    chosen = np.unique(np.rint(np.linspace(0, len(table) - 1, people)).astype(np.int64))
    figures = null_figures(evaluator, table[chosen])
    bits = figures.q_inf
    return Noise(
        rows=len(probe.scores),
        varied=probe.varied,
        quantile=probe.quantile,
        largest=probe.largest,
        people=len(chosen),
        m=evaluator.m_in_table,
        null_q_inf_mean=float(bits.mean()),
        null_q_inf_max=float(bits.max()),
        null_flip_rate=None if evaluator.schema.regression else float(figures.flips.mean()),
        repeats=subject.repeats,
    )


#: Divisions of repetitions into halves that null bits are averaged over.
DIVISIONS = 20


def _repetition_noise(model: TwinScores, evaluator: Evaluator) -> Noise | None:
    """What the repetitions in a table of twins vary by; None where nobody's twins are all repeated.

    As in :mod:`fairbits.measure.words`, a difference of disjoint halves stands for each twin's mean.
    """
    repeated = np.bincount(model.pairs[:, 0], weights=model.counts < 2) == 0
    kept = np.flatnonzero(repeated[model.pairs[:, 0]])
    if not len(kept):
        return None
    rng = np.random.default_rng(0)
    people, person = np.unique(model.pairs[kept, 0], return_inverse=True)
    middle = np.bincount(person, weights=model.means[kept]) / np.bincount(person)
    twin = evaluator.twins.index_of(model.pairs[kept].astype(np.float64))
    there = np.zeros((len(people), evaluator.m), np.bool_)
    there[person, twin] = True
    order = np.argsort(model.pair, kind="stable")
    starts = np.concatenate([[0], np.cumsum(model.counts)[:-1]])
    first, rest = model.counts // 2, model.counts - model.counts // 2
    figures, apart = [], []
    for _ in range(DIVISIONS):
        mixed = order[np.lexsort((rng.random(len(order)), model.pair[order]))]
        early = np.arange(len(order)) - np.repeat(starts, model.counts) < np.repeat(first, model.counts)
        owner, values = model.pair[mixed], model.answers[mixed]
        one = np.bincount(owner, weights=values * early, minlength=len(first)) / np.maximum(first, 1)
        other = np.bincount(owner, weights=values * ~early, minlength=len(first)) / rest
        away = (one - other)[kept]
        scores = np.repeat(middle[:, None], evaluator.m, axis=1)
        away = away * (np.sqrt(first * rest) / model.counts)[kept]
        scores[person, twin] += away
        scores = np.clip(scores, 0, 1) if evaluator.schema.probabilities else scores
        figures.append(evaluator.figures_of_scores(scores.astype(np.float32), there))
        apart.append(np.sqrt(2) * np.abs(away))  # two means of as many answers differ by so much
    bits, away = np.stack([one.q_inf for one in figures]), np.stack(apart)
    if not away.any():
        return None
    return Noise(
        rows=len(kept),
        varied=float((away.max(axis=0) > 0).mean()),
        quantile=float(np.quantile(away, 0.95)),
        largest=float(away.max()),
        people=len(people),
        m=evaluator.m,
        null_q_inf_mean=float(bits.mean()),
        null_q_inf_max=float(bits.max()),
        null_flip_rate=None if evaluator.schema.regression else float(np.mean([one.flips for one in figures])),
        repeats=int(np.median(model.counts[kept])),
    )


def null_figures(evaluator: Evaluator, people: Codes) -> Evaluation:
    """Figures of people whose own row is asked m times in place of their m twins: the bits that noise alone makes."""
    inputs = evaluator.encoding.encode(people)
    schema, model, m = evaluator.schema, evaluator.model, evaluator.m_in_table
    if len(schema.classes) > 2 and isinstance(model, HasClassScores):
        table = np.stack([np.asarray(model.class_scores(inputs), np.float32) for _ in range(m)], axis=1)
        if evaluator.by_vector:
            return evaluator.figures_of_classes(table)
        scores = np.ascontiguousarray(table[:, :, schema.favourable_index])
    else:
        table = None
        scores = np.stack([fresh_scores(model, inputs) for _ in range(m)], axis=1).astype(np.float32)
    return evaluator.figures_of_scores(np.clip(scores, 0, 1) if schema.probabilities else scores, table=table)


class Support:
    """Which twins of people at least so many rows of a table have."""

    def __init__(self, evaluator: Evaluator, rows: Codes, *, least: int = MIN_ROWS):
        self._twins = evaluator.twins
        # By the rules alone: that a row breaks one does not move its neighbours into another stratum.
        self._rules = Validity(evaluator.schema, Twins(evaluator.schema, own=False))
        found, counts = np.unique(self.keys(rows, np.full((1, len(self._twins.columns)), np.nan)), return_counts=True)
        #: The keys of supported twins; whether they can exist is not looked at.
        self.known: Integers = found[counts >= least]
        #: How many of the combinations that everybody has at least so many rows have, whatever their stratum.
        self.count = int((np.bincount(self._twins.index_of(rows), minlength=self._twins.m) >= least).sum())

    def keys(self, codes: Codes, patterns: Codes) -> Integers:
        """A number for the protected values of people as each of some twins, by the ranges, (n, patterns), and for the
        twins that the rules leave the person: equal where both are, else practically never.
        """
        keys = np.zeros((len(codes), len(patterns)), np.int64)
        for place, column in enumerate(self._twins.columns):
            attribute = self._twins.schema.attributes[column]
            for key, pattern in zip(keys.T, patterns, strict=True):  # which are views, one twin at a time
                own = codes[:, column] if np.isnan(pattern[place]) else pattern[[place]]
                key[:] = key * (attribute.twin_count + 1) + attribute.twin_place(own) + 1
        if self._rules.about_twins:
            lots = np.random.default_rng(0).integers(1, 2**62, self._twins.m, dtype=np.int64)
            keys ^= np.where(self._rules.twins(codes), lots, 0).sum(axis=1)[:, None]  # which may wrap round
        return keys


def people_headline(
    protected: Sequence[str],
    rows: int,
    split_rate: Estimate,
    flip_rate: Estimate | None,
    *,
    epsilon: float,
    complete: bool = True,
    plausible: Estimate | None = None,
    bounded: bool = False,
    persons: int | None = None,
) -> str:
    """How many people would be decided or scored otherwise, all else equal; ``bounded``: not every value was asked.
    ``persons`` are fewer than rows where people have several.

    Where fewer flip among plausible twins, their share stands beside it.
    """
    if not protected:
        return ""
    names = [shortened(name, 60) for name in protected]
    other = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    who = "people" if persons is None or not complete else f"rows of {persons:,} people"
    people = f"these {rows:,} {who}" if complete else f"{rows:,} people drawn from the table"
    what = "a different decision" if flip_rate is not None else f"a score that differs by more than {epsilon:g}"
    share = (flip_rate or split_rate).value
    many = "None" if share == 0 else "All" if share == 1 else _share_words(share, rows)
    many = f"At least {many}" if bounded and 0 < share < 1 else many
    among = " at the values asked" if bounded and share == 0 else ""
    beside = ""
    if flip_rate is not None and plausible is not None and plausible.value < flip_rate.value:
        beside = f" ({_share_words(plausible.value, rows)} among plausible twins)"
    return f"{many} of {people} would get {what} if only their {other} differed{among}{beside}."


def _share_words(share: float, rows: int) -> str:
    words = unsigned_zero(f"{100 * share:.1f} %")
    return f"{round(share * rows):,}" if words == "0.0 %" else words


def quality_limits(accuracy_on: str | None) -> tuple[Limit, ...]:
    """What limits the comparison with labels."""
    return () if accuracy_on in (None, "held-out") else (Limit("training", ("accuracy", "balanced_accuracy", "auc")),)


CONFIDENCE = 0.95
#: Shares of people whose twins do not all get the same decision: among all twins, and among fewer.
_FLIP_RATES = ("flip_rate", "flip_rate_supported", "flip_rate_plausible")


@dataclass(frozen=True, slots=True)
class Person:
    """One person of the table, with names and labels.

    Parameters
    ----------
    row
        What the owner's table calls the row: its index, or the position from 0 where it has none, as in ``to_frame()``.
    position
        Position in the table measured, from 0; ``table.place(position)`` is what messages call it.
    rows
        How many rows of the table are this person, whatever their protected values.
    k, q_inf, q_1
        Classes of twins, and bits of protected information by both measures.
    low, high
        Lowest and highest score of a twin.
    worst, best
        The protected values of these two twins, in words.
    flips
        Whether twins get different decisions.
    attributes
        What is known about the person, in words, by attribute.
    """

    row: Any
    position: int
    rows: int
    k: int
    q_inf: float
    q_1: float
    low: float
    high: float
    worst: str
    best: str
    flips: bool
    attributes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Stake:
    """How often a protected value gets the lowest and the highest score, among people with more than one class."""

    attribute: str
    value: str
    lowest: float
    highest: float


@dataclass(frozen=True, eq=False)
class Measurement(Shown):
    """The bits of everybody in a table.

    Parameters
    ----------
    evaluation
        Figures of each person: k, bits, extreme scores, flips.
    table, evaluator
        The people, and what asked the model about them.
    k_mean, q_inf_mean, q_1_mean
        Means over people, with 95 % intervals.
    split_rate
        Share of people with more than one class of twins.
    flip_rate
        Share of people whose twins do not all get the same decision; None for a regression.
    flip_rate_supported
        The same among twins whose protected values at least ten rows of the table have.
    flip_rate_by
        The same where only one attribute varies, the others at the person's own values, by attribute.
    flip_rate_plausible, flip_rate_plausible_by
        Both among the supported twins that the schema's rules about plausible twins allow.
    supported
        How many combinations of protected values at least ten rows have.
    noise
        What asking again came to; None where the model always answers the same.
    people
        The number of the person of each row, where people have several; None where each row is somebody else. Figures
        are those of rows; their intervals draw people.
    tail
        The largest gaps between twins' scores.
    """

    evaluation: Evaluation
    table: Table
    evaluator: Evaluator
    k_mean: Estimate
    q_inf_mean: Estimate
    q_1_mean: Estimate
    split_rate: Estimate
    flip_rate: Estimate | None = None
    flip_rate_supported: Estimate | None = None
    flip_rate_plausible: Estimate | None = None
    flip_rate_by: Mapping[str, Estimate] = field(default_factory=dict)
    flip_rate_plausible_by: Mapping[str, Estimate] = field(default_factory=dict)
    supported: int = 0
    noise: Noise | None = None
    people: npt.NDArray[np.int64] | None = None
    tail: Tail | None = None

    @property
    def persons(self) -> int:
        """How many people the rows are."""
        return len(self) if self.people is None else len(np.unique(self.people))

    @property
    def schema(self) -> Schema:
        """What the people are made of."""
        return self.evaluator.schema

    def __len__(self) -> int:
        return len(self.evaluation.k)

    def __repr__(self) -> str:
        flips = "" if self.flip_rate is None else f", decisions flip for {percent(self.flip_rate.value)}"
        people = self.persons
        whom = f"{people:,} people" if people == len(self) else f"{len(self):,} rows of {people:,} people"
        return f"<Measurement of {whom} × {self.evaluator.m_in_table} twins: mean k {self.k_mean.value:.2f}{flips}>"

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """What was not asked: facts that stand beside the figures that they limit."""
        found = [*twin_limits(self.schema)]
        if self.supported < self.evaluator.twins.m:
            names = ("flip_rate", "split_rate", "k_mean", "q_inf_mean", "q_1_mean")
            found.append(Limit("support", names, count=self.supported, of=self.evaluator.twins.m))
        return tuple(found)

    @property
    def kind(self) -> FigureKind:
        """What figures about these rows are: exact, or estimates of what varies, or lower bounds of values left out."""
        if self.noise is not None:
            return "statistical"
        return "lower bound" if any(one.kind == "lower bound" for one in self.limits) else "exact"

    @property
    def twins_removed(self) -> int:
        """How many twins cannot exist under the rules."""
        left, twins = self.evaluation.twins, self.evaluator.twins
        return 0 if left is None else len(self) * twins.m + int(twins.own(self.table.codes).sum()) - int(left.sum())

    def histogram(self) -> dict[int, int]:
        """How many people at each k."""
        counts = np.bincount(self.evaluation.k)
        return {int(k): int(counts[k]) for k in np.flatnonzero(counts)}

    @property
    def _worth(self) -> int:
        """How many people of equal weight the rows are worth."""
        if self.table.weight is None:
            return self.persons
        whose = np.arange(len(self)) if self.people is None else self.people
        return max(1, int(effective_size(np.bincount(whose, self.table.weight).astype(np.float64))))

    def bound(self) -> dict[str, float]:
        """Nobody examined exceeds these bits; how rare such people are at most among people drawn like these."""
        return {
            "bits": float(self.evaluation.q_inf.max()),
            "rate": rate_bound(self._worth, confidence=CONFIDENCE),
            "confidence": CONFIDENCE,
        }

    def summary(self) -> dict[str, Any]:
        """The headline figures under their fixed names."""
        figures: dict[str, Any] = {
            "rows": len(self),
            "people": self.persons,
            "effective_rows": None if self.table.weight is None else effective_size(self.table.weight),
            "m": self.evaluator.m_in_table,
            "bits_limit": self.evaluator.limit_in_table,
            "epsilon": self.evaluator.epsilon,
            "partition": self.evaluator.partition,
            "protected": list(self.schema.protected),
            "rules": [rule.text for rule in self.schema.rules],
            "plausible": [rule.text for rule in self.schema.plausible],
            "twins_removed": self.twins_removed,
            "blind": self.evaluator.blind,
            "kind": self.kind,
            "limits": [one.document() for one in self.limits],
            "supported_twins": self.supported,
            "k_max": int(self.evaluation.k.max()),
            "q_inf_max": float(self.evaluation.q_inf.max()),
            "q_1_max": float(self.evaluation.q_1.max()),
            # A model that always answers the same shows no bits where nothing protected differs.
            "null_q_inf_mean": 0.0 if self.noise is None else self.noise.null_q_inf_mean,
            "null_q_inf_max": 0.0 if self.noise is None else self.noise.null_q_inf_max,
            "tail": None if self.tail is None else self.tail.document(),
        }
        for name in ("k_mean", "q_inf_mean", "q_1_mean", "split_rate", *_FLIP_RATES):
            figures |= Estimate.named(name, getattr(self, name))
        for name in ("flip_rate_by", "flip_rate_plausible_by"):
            for end, suffix in {"value": "", "low": "_low", "high": "_high"}.items():
                figures[name + suffix] = {one: getattr(rate, end) for one, rate in getattr(self, name).items()}
        return figures

    def worst(self, top: int = 10) -> list[Person]:
        """The people with the largest k, then the widest span; rows that are alike but for protected values count once.

        Parameters
        ----------
        top
            How many people.
        """
        order = np.lexsort((-self.evaluation.span, -self.evaluation.k))  # which keeps the order of equals
        codes, free = self.table.codes, self.schema.free_columns
        chosen: dict[bytes, int] = {}
        for row in order:
            if len(chosen) == top:
                break
            chosen.setdefault(codes[row, free].tobytes(), int(row))
        return [self._person(row) for row in chosen.values()]

    def _person(self, row: int) -> Person:
        figures, twins, codes = self.evaluation, self.evaluator.twins, self.table.codes[row]
        alike = np.ones(len(self), np.bool_)  # but for protected values
        for column in self.schema.free_columns:  # one column at a time: all of them are as large as the table
            alike &= self.table.codes[:, column] == codes[column]
        name = self.table.names()[row]
        return Person(
            row=name.item() if isinstance(name, np.generic) else name,
            position=row,
            rows=int(alike.sum()),
            k=int(figures.k[row]),
            q_inf=float(figures.q_inf[row]),
            q_1=float(figures.q_1[row]),
            low=float(figures.low[row]),
            high=float(figures.high[row]),
            worst=twins.label(int(figures.low_twin[row]), codes),
            best=twins.label(int(figures.high_twin[row]), codes),
            flips=bool(figures.flips[row]),
            attributes=self.schema.read(codes),
        )

    def stakes(self) -> list[Stake]:
        """Per protected value: how often it is the one with the lowest, and with the highest score."""
        split = np.flatnonzero(self.evaluation.k > 1)
        twins = self.evaluator.twins
        ends = [one[split] for one in (self.evaluation.low_twin, self.evaluation.high_twin)]
        every = np.ones(len(split)) if self.table.weight is None else self.table.weight[split]
        found = []
        for place, column in enumerate(twins.columns):
            attribute, own = self.schema.attributes[column], self.table.codes[split, column]
            values = [twins.patterns[end, place] for end in ends]  # one column at a time: whole twins are large
            # A person's own value counts for the one that stands for it, that of the same range.
            places = [attribute.twin_place(np.where(np.isnan(one), own, one)) for one in values]
            for value, code in enumerate(attribute.twin_values()):
                lowest, highest = (float(every[one == value].sum() / (every.sum() or 1.0)) for one in places)
                found.append(Stake(attribute.name, attribute.read_twin(code), lowest, highest))
        return found


def _narrow_flips(
    evaluator: Evaluator, support: Support, likely: Validity, codes: Codes, decided: npt.NDArray[np.int64]
) -> Truth:
    """Who flips among supported and among plausible twins, by each attribute, and by each among plausible twins."""
    there, twins = evaluator.valid_twins(codes), evaluator.twins
    supported = np.isin(support.keys(codes, twins.patterns), support.known)
    plausible = supported & likely.twins(codes)
    everyone = np.ones(supported.shape, np.bool_)
    # By attribute, which twins have the person's own value in it; then, which have it in all others.
    own = [np.isnan(one) | (one == codes[:, [i]]) for one, i in zip(twins.patterns.T, twins.columns, strict=True)]
    each = [np.logical_and.reduce([everyone, *own[:place], *own[place + 1 :]]) for place in range(len(own))]
    flips = []
    for mask in (supported, plausible, *each, *(plausible & one for one in each)):
        some = mask if there is None else mask & there
        most = np.where(some, decided, -1).max(axis=1)
        flips.append(most > np.where(some, decided, np.iinfo(np.int64).max).min(axis=1))
    return np.array(flips)


def measure_table(
    evaluator: Evaluator,
    table: Table,
    rng: np.random.Generator,
    *,
    noise: Noise | None = None,
    progress: Progress | None = None,
) -> Measurement:
    """Evaluate everybody in a table."""
    if table.drawn:
        raise TableError(
            "the subject has no table, and only certify can do without; name one with path = … under [table]."
        )
    if len(table) == 0:
        raise TableError("the table has no rows to measure; at least one person is needed.")
    rows = table.codes if evaluator.validity.rows is None else evaluator.validity.rows
    # Whether somebody made these twins and meant them all: a table of twins, or everybody under every combination.
    whole = table.person is not None and len(table) == evaluator.m * len(np.unique(table.person))
    meant = whole or isinstance(evaluator.model, TwinScores)
    support = Support(evaluator, rows, least=1 if meant else MIN_ROWS)
    schema, twins = evaluator.schema, evaluator.twins
    likely = Validity(schema, twins, evaluator.validity.rows, rules=schema.plausible)
    names = schema.protected
    narrow = np.zeros((2 + 2 * len(names), len(table)), np.bool_)
    figures = []
    with rows_named(place=table.place):
        for piece, found, decided in evaluator.answers(table.codes, progress=progress):
            figures.append(found)
            if decided is not None:
                narrow[:, piece] = _narrow_flips(evaluator, support, likely, table.codes[piece], decided)
    evaluation = Evaluation.concatenate(figures)
    figures.clear()  # of millions of people, they are large
    limit = evaluator.limit_in_table
    people = people_of(schema, table)
    drawn: dict[str, Any] = {"people": people, "weight": table.weight}
    k_mean, q_inf_mean, q_1_mean = bounded_means(
        np.column_stack([evaluation.k, evaluation.q_inf, evaluation.q_1]),
        rng,
        lows=(1, 0, 0),
        highs=(2**limit, limit, limit),
        **drawn,
    )
    split = rate_of(evaluation.k > 1, **drawn)
    rates = [] if schema.regression else [rate_of(one, **drawn) for one in (evaluation.flips, *narrow)]
    highest = 1.0 if schema.probabilities else None
    return Measurement(
        evaluation,
        table,
        evaluator,
        k_mean,
        q_inf_mean,
        q_1_mean,
        split,
        flip_rate_by=dict(zip(names, rates[3:], strict=False)),
        flip_rate_plausible_by=dict(zip(names, rates[3 + len(names) :], strict=False)),
        supported=support.count,
        noise=noise,
        people=people,
        tail=tail_of(evaluation.span, rng, highest=highest, **drawn),
        **dict(zip(_FLIP_RATES, rates, strict=False)),
    )


#: Twin scores that are looked at most: compiled kernels, and any other model.
MAX_SCORES, MAX_FOREIGN_SCORES = 40_000_000, 400_000
#: Twin scores held at once.
_BLOCK = 1_000_000


@dataclass(frozen=True, slots=True)
class Harm:
    """How large a harm is: the mean gap of the score that one protected value makes, everything else about a person
    kept, and the share of favourable decisions that it loses.
    """

    attribute: str
    value: str
    gap: float
    lost: float | None


def harms_of(evaluator: Evaluator, codes: Codes) -> tuple[Harm, ...]:
    """The harm of every protected value.

    For each attribute the other protected attributes take all their combinations, so the figures say what this one
    attribute does. Twins that cannot exist are left out.
    """
    evaluator = evaluator.over_values
    schema = evaluator.schema
    attributes = [schema.attributes[i] for i in evaluator.twins.columns]
    if not attributes or not len(codes):
        return ()
    sizes = [len(attribute.twin_values()) for attribute in attributes]
    sums = [np.zeros((4, size)) for size in sizes]  # gaps, their number, decisions lost, their number
    decides = True
    people = max(1, _BLOCK // evaluator.m)
    for start in range(0, len(codes), people):
        batch = codes[start : start + people]
        scores = evaluator.scores(batch)
        decided = evaluator.decided(batch, scores)
        favoured = None if decided is None else decided == (schema.favourable_index if evaluator.by_vector else 1)
        decides = decides and favoured is not None
        _add(sums, sizes, scores, favoured, evaluator.valid_twins(batch))
    found: list[Harm] = []
    for attribute, total in zip(attributes, sums, strict=True):
        gaps, losses = total[0] / np.maximum(total[1], 1), total[2] / np.maximum(total[3], 1)
        found += [
            Harm(attribute.name, attribute.read_twin(code), float(gap), float(lost) if decides else None)
            for code, gap, lost in zip(attribute.twin_values(), gaps, losses, strict=True)
        ]
    return tuple(found)


def harmed_people(evaluator: Evaluator, codes: Codes, rng: np.random.Generator, *, share: float = 1.0) -> Codes:
    """All people, or as many drawn at random as can be asked about once more."""
    limit = (MAX_SCORES if evaluator.native else MAX_FOREIGN_SCORES) // evaluator.m
    return codes[sampled_rows(len(codes), max(1, min(limit, round(share * len(codes)))), rng)]


def _add(
    sums: list[npt.NDArray[np.float64]],
    sizes: list[int],
    scores: npt.NDArray[np.float32],
    favoured: npt.NDArray[np.bool_] | None,
    valid: npt.NDArray[np.bool_] | None,
) -> None:
    """Add a batch: scores are laid out attribute by attribute, the last one changing fastest."""
    shape = (len(scores), *sizes)
    table = scores.reshape(shape).astype(np.float64)
    there = np.ones(shape, np.bool_) if valid is None else valid.reshape(shape)
    chosen = None if favoured is None else favoured.reshape(shape) & there
    for axis, total in enumerate(sums, 1):
        others = tuple(i for i in range(len(shape)) if i != axis)
        count = np.maximum(there.sum(axis=axis, keepdims=True), 1)
        mean = np.where(there, table, 0.0).sum(axis=axis, keepdims=True) / count
        total[0] += np.where(there, table - mean, 0.0).sum(axis=others)
        total[1] += there.sum(axis=others)
        if chosen is not None:
            total[2] += (there & ~chosen & chosen.any(axis=axis, keepdims=True)).sum(axis=others)
            total[3] += there.sum(axis=others)
