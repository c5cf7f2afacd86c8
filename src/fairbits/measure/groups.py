"""Group figures: how a model's decisions fall on the groups of a table, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import MISSING, Attribute, Schema, Table, nearest
from fairbits.errors import OptionError, TableError, rows_named
from fairbits.measure.intervals import Estimate, bounded_means, wilson
from fairbits.models import HasClassScores
from fairbits.subject import Subject

#: A group of fewer people is named and counted, but no ratio is formed with it (METHOD.md 10).
MIN_PEOPLE = 30
#: New York's rule 5-301 lets a category of a smaller share than this be left out of the impact ratios.
MIN_SHARE = 0.02
#: The code of a person whose value is missing.
UNKNOWN = -1
#: More values than this and a number is cut into ranges of equal counts.
MAX_GROUPS = 12
#: Ranges that a number with many values is cut into.
RANGES = 4
#: People whom a model is asked about for group figures, and people at once.
MAX_ROWS, _CHUNK = 200_000, 65_536

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Who belongs to which group of one attribute, or of several at once.

    Parameters
    ----------
    name
        The attribute, or several joined by " × ".
    labels
        What the groups are called.
    codes
        For each person the position of the group, -1 where the value is missing.
    """

    name: str
    labels: tuple[str, ...]
    codes: Integers

    def __post_init__(self) -> None:
        codes = np.asarray(self.codes)
        if codes.ndim != 1 or len(codes) == 0:
            raise OptionError(f"the groups of {self.name!r} need one code per person, but got shape {codes.shape}.")
        if codes.min() < UNKNOWN or codes.max() >= len(self.labels):
            raise OptionError(
                f"the groups of {self.name!r} have codes {codes.min()} to {codes.max()} for {len(self.labels)} labels; "
                f"use 0 to {len(self.labels) - 1}, and -1 for a missing value."
            )

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whose value is there."""
        return np.asarray(self.codes >= 0)

    @property
    def counts(self) -> Integers:
        """How many people there are in each group."""
        return np.bincount(self.codes[self.known], minlength=len(self.labels)).astype(np.int64)

    def take(self, rows: npt.NDArray[Any]) -> Grouping:
        """The same groups for some of the people.

        Parameters
        ----------
        rows
            Positions or truth values.

        Returns
        -------
        Grouping
            A new grouping.
        """
        return Grouping(self.name, self.labels, self.codes[rows])

    def __len__(self) -> int:
        return len(self.codes)


def crossed(groupings: Sequence[Grouping]) -> Grouping:
    """The intersections of several attributes; whoever lacks one value is unknown.

    Parameters
    ----------
    groupings
        Two or more, about the same people.

    Returns
    -------
    Grouping
        Only combinations that somebody has.
    """
    name = " × ".join(one.name for one in groupings)
    sizes = [len(one.labels) for one in groupings]
    known = np.logical_and.reduce([one.known for one in groupings])
    flat = np.zeros(len(known), dtype=np.int64)
    for one, size in zip(groupings, sizes, strict=True):
        flat = flat * size + np.where(known, one.codes, 0)
    present, codes = np.unique(flat[known], return_inverse=True)
    places = np.unravel_index(present, sizes)
    labels = tuple(
        ", ".join(one.labels[p] for one, p in zip(groupings, row, strict=True)) for row in zip(*places, strict=True)
    )
    found = np.full(len(known), UNKNOWN, dtype=np.int64)
    found[known] = codes
    return Grouping(name, labels, found)


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """One group. Rates are None where nobody could count for them (no labels, no decision, nobody in the group).

    ``impact_ratio`` is the selection rate divided by the highest rate of a group of at least 30 people; ``calibration``
    the share of the favourable class minus the mean score (0: scores mean what they say).
    """

    group: str
    people: int
    share: float
    base_rate: Estimate | None
    selection_rate: Estimate | None
    impact_ratio: float | None
    mean_score: Estimate | None
    scoring_rate: Estimate | None
    scoring_ratio: float | None
    tpr: Estimate | None
    fpr: Estimate | None
    precision: Estimate | None
    calibration: Estimate | None
    small: bool
    under_two_percent: bool


@dataclass(frozen=True, slots=True)
class GroupTable:
    """All groups of one attribute or intersection.

    ``unknown`` counts the people whose value is missing; they are in no group. ``median`` is the median score of
    everybody, those of unknown group included: the scoring rate is the share above it.
    """

    attribute: str
    people: int
    unknown: int
    median: float | None
    groups: tuple[GroupFigures, ...]

    @property
    def lowest_ratio(self) -> GroupFigures | None:
        """The group with the lowest impact ratio, where two groups can be compared."""
        ratios = [one for one in self.groups if one.impact_ratio is not None]
        return min(ratios, key=lambda one: one.impact_ratio or 0.0) if len(ratios) > 1 else None

    @property
    def small(self) -> tuple[str, ...]:
        """The groups of fewer than 30 people, left out of ratios."""
        return tuple(one.group for one in self.groups if one.small)


def group_table(
    grouping: Grouping,
    rng: np.random.Generator,
    *,
    scores: npt.NDArray[np.floating] | None = None,
    selected: npt.NDArray[np.bool_] | None = None,
    labels: npt.NDArray[np.bool_] | None = None,
    probabilities: bool = True,
) -> GroupTable:
    """The figures of every group.

    Parameters
    ----------
    grouping
        Who belongs where.
    rng
        For the intervals of means.
    scores
        The score of each person, None where only decisions are known.
    selected
        Whether each person gets the favourable decision, None for a regression.
    labels
        Whether each person's true class is the favourable one, None where there are no labels.
    probabilities
        Whether scores are probabilities of the favourable class, so that calibration means something.

    Returns
    -------
    GroupTable
        In the order of the grouping's labels; groups nobody is in are left out.
    """
    n = len(grouping)
    median = None if scores is None else float(np.median(scores))
    above = None if scores is None or median is None else np.asarray(scores > median)
    found: list[dict[str, Any]] = []
    for code, label in enumerate(grouping.labels):
        here = grouping.codes == code
        people = int(here.sum())
        if people == 0:
            continue
        one: dict[str, Any] = {
            "group": label,
            "people": people,
            "share": people / n,
            "small": people < MIN_PEOPLE,
            "under_two_percent": people / n < MIN_SHARE,
            "base_rate": None if labels is None else _rate(labels[here]),
            "selection_rate": None if selected is None else _rate(selected[here]),
            "scoring_rate": None if above is None else _rate(above[here]),
            **_means(scores, labels, here, rng, probabilities=probabilities),
            **_errors(selected, labels, here),
        }
        found.append(one)
    _ratios(found, "selection_rate", "impact_ratio")
    _ratios(found, "scoring_rate", "scoring_ratio")
    unknown = int((~grouping.known).sum())
    return GroupTable(grouping.name, n, unknown, median, tuple(GroupFigures(**one) for one in found))


def _rate(hits: npt.NDArray[np.bool_]) -> Estimate | None:
    return None if len(hits) == 0 else wilson(int(np.count_nonzero(hits)), len(hits))


def _errors(
    selected: npt.NDArray[np.bool_] | None, labels: npt.NDArray[np.bool_] | None, here: npt.NDArray[np.bool_]
) -> dict[str, Estimate | None]:
    if selected is None or labels is None:
        return {"tpr": None, "fpr": None, "precision": None}
    chosen, truth = selected[here], labels[here]
    return {"tpr": _rate(chosen[truth]), "fpr": _rate(chosen[~truth]), "precision": _rate(truth[chosen])}


def _means(
    scores: npt.NDArray[np.floating] | None,
    labels: npt.NDArray[np.bool_] | None,
    here: npt.NDArray[np.bool_],
    rng: np.random.Generator,
    *,
    probabilities: bool,
) -> dict[str, Estimate | None]:
    if scores is None:
        return {"mean_score": None, "calibration": None}
    own = np.asarray(scores[here], dtype=np.float64)
    mean = _mean_of(own, rng, bounds=(0.0, 1.0) if probabilities else None)
    if labels is None or not probabilities:
        return {"mean_score": mean, "calibration": None}
    gap = labels[here].astype(np.float64) - own
    return {"mean_score": mean, "calibration": _mean_of(gap, rng, bounds=(-1.0, 1.0))}


def _mean_of(values: Floats, rng: np.random.Generator, *, bounds: tuple[float, float] | None) -> Estimate:
    """A mean with its interval: by the normal law for many people, by a bounded bootstrap for few."""
    if bounds is not None and len(values) < 200:
        low, high = bounds
        return bounded_means(np.clip(values, low, high)[:, None], rng, lows=low, highs=high, resamples=400)[0]
    mean = float(values.mean())
    half = 1.959964 * float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else float("inf")
    ends = (mean - half, mean + half) if bounds is None else np.clip((mean - half, mean + half), *bounds)
    return Estimate(mean, float(ends[0]), float(ends[1]))


def _ratios(found: list[dict[str, Any]], rate: str, ratio: str) -> None:
    """Each rate over the highest of a group that is large enough; the law compares within one table."""
    rates = [one[rate].value for one in found if one[rate] is not None and not one["small"]]
    highest = max(rates, default=0.0)
    for one in found:
        fits = one[rate] is not None and not one["small"] and highest > 0
        one[ratio] = one[rate].value / highest if fits else None


def groupings_of(schema: Schema, table: Table) -> tuple[Grouping, ...]:
    """The groups of every protected attribute, those that the model does not take included.

    Parameters
    ----------
    schema, table
        Whose attributes, and whose people.

    Returns
    -------
    tuple of Grouping
        Attributes that the model takes first. Numbers with many values are cut into four ranges of equal counts.
    """
    found = [grouping_of(schema.attributes[i], table.codes[:, i]) for i in schema.protected_columns]
    if table.observed is not None:
        found += [grouping_of(one, table.observed[:, i]) for i, one in enumerate(schema.observed)]
    return tuple(found)


def grouping_of(attribute: Attribute, codes: npt.NDArray[np.floating]) -> Grouping:
    """The groups of one attribute; a missing value belongs to none.

    Parameters
    ----------
    attribute
        The attribute.
    codes
        Its codes, (n,).

    Returns
    -------
    Grouping
        Groups, and the group of each person.

    Raises
    ------
    TableError
        If no row has a value.
    """
    values = np.asarray(codes, dtype=np.float64)
    known = np.isfinite(values)
    if attribute.labels and MISSING in attribute.labels:
        known &= values != attribute.code_of(MISSING)
    if not known.any():
        raise TableError(f"protected attribute {attribute.name!r} has no value in any row; leave it out.")
    place = np.full(len(values), UNKNOWN, dtype=np.int64)
    if attribute.ranges:
        marks = attribute.twin_values()
        place[known] = nearest(marks, values[known])
        return Grouping(attribute.name, tuple(name for name, _ in attribute.ranges), place)
    present, own = np.unique(values[known], return_inverse=True)
    if attribute.labels or len(present) <= MAX_GROUPS:
        place[known] = own
        return Grouping(attribute.name, tuple(attribute.read(code) for code in present), place)
    cuts = np.unique(np.quantile(values[known], np.linspace(0, 1, RANGES + 1)[1:-1], method="lower"))
    place[known] = np.searchsorted(cuts, values[known], side="left")
    ends = [present[0], *cuts, present[-1]]
    names = [f"{attribute.read(ends[0])} to {attribute.read(ends[1])}"]
    names += [f"over {attribute.read(low)} to {attribute.read(high)}" for low, high in pairwise(ends[1:])]
    return Grouping(attribute.name, tuple(names), place)


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The scores of everybody in a table as they are, the decisions and the labels, as far as they are known."""

    scores: Floats
    selected: npt.NDArray[np.bool_] | None
    labels: npt.NDArray[np.bool_] | None


def decided_rows(subject: Subject, *, rows: npt.NDArray[np.int64] | None = None) -> Decided:
    """Score people as they are, by the model or from the table.

    Parameters
    ----------
    subject
        The model and its table.
    rows
        Which people; everybody by default.

    Returns
    -------
    Decided
        Decisions by the subject's own rule.
    """
    schema, table = subject.schema, subject.table if rows is None else subject.table.rows(rows)
    own = schema.favourable_index
    labels = None if table.labels is None or schema.regression else np.asarray(table.labels == own)
    if table.scores is not None:
        chosen = schema.rule.favours(table.scores) if len(schema.classes) == 2 else None
        return Decided(table.scores, chosen, labels)
    scores = np.empty(len(table))
    decisions = np.empty(len(table), dtype=np.int64)
    whole = len(schema.classes) > 2 and isinstance(subject.model, HasClassScores)
    for start in range(0, len(table), _CHUNK):
        piece = slice(start, start + _CHUNK)
        with rows_named(start, place=table.place):
            inputs = subject.encoding.encode(table.codes[piece])
            if whole:
                every = np.asarray(subject.model.class_scores(inputs))  # type: ignore[attr-defined]
                scores[piece], decisions[piece] = every[:, own], schema.rule.most_likely(every)
            else:
                scores[piece] = np.asarray(subject.model.scores(inputs)).reshape(-1)
    if len(schema.classes) == 2:
        return Decided(scores, schema.rule.favours(scores), labels)
    return Decided(scores, np.asarray(decisions == own) if whole else None, labels)


def subject_groups(
    subject: Subject, rng: np.random.Generator, *, decided: Decided | None = None, rows: int = MAX_ROWS
) -> tuple[GroupTable, ...]:
    """A table for each protected attribute, each pair, and all of them together.

    Parameters
    ----------
    subject
        The model and its table.
    rng
        For intervals, and for a sample where there are more than ``rows`` people and the model must be asked.
    decided
        Scores of everybody, where they are known already.
    rows
        How many people a model is asked about at most.

    Returns
    -------
    tuple of GroupTable
        In the order of the schema.
    """
    table, chosen = subject.table, None
    if decided is None:
        if table.scores is None and len(table) > rows:
            chosen = np.sort(rng.choice(len(table), rows, replace=False))
            table = table.rows(chosen)
        decided = decided_rows(subject, rows=chosen)
    groupings = groupings_of(subject.schema, table)
    every = [*groupings, *(crossed(some) for some in intersections(groupings))]
    return tuple(
        group_table(
            one,
            rng,
            scores=decided.scores,
            selected=decided.selected,
            labels=decided.labels,
            probabilities=not subject.schema.regression,
        )
        for one in every
    )


def intersections(groupings: Sequence[Grouping]) -> list[tuple[Grouping, ...]]:
    """All pairs of attributes, and all attributes at once.

    Parameters
    ----------
    groupings
        Groups of each attribute.

    Returns
    -------
    list[tuple[Grouping, ...]]
        Combinations of two attributes, and of all where there are more.
    """
    pairs = list(combinations(groupings, 2))
    return pairs + ([tuple(groupings)] if len(groupings) > 2 else [])


def documents_of(tables: Sequence[GroupTable]) -> list[dict[str, Any]]:
    """Group tables as JSON; rates carry their intervals under ``_low`` and ``_high``.

    Parameters
    ----------
    tables
        Group figures.

    Returns
    -------
    list[dict[str, Any]]
        One document per table.
    """
    found = []
    for table in tables:
        groups = []
        for one in table.groups:
            entry: dict[str, Any] = {}
            for name in GroupFigures.__slots__:
                value = getattr(one, name)
                if isinstance(value, Estimate):
                    entry |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
                else:
                    entry[name] = value
            groups.append(entry)
        found.append(
            {
                "attribute": table.attribute,
                "people": table.people,
                "unknown": table.unknown,
                "median_score": table.median,
                "small_groups": list(table.small),
                "groups": groups,
            }
        )
    return found
