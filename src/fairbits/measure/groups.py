"""Group figures: who belongs to which group, and how a model's decisions fall on the groups, with intervals.

The same figures make the tables that New York City's Local Law 144 asks for (6 RCNY § 5-301): people of unknown
category are counted apart, and a category of less than 2 % of the data, which the auditor may leave out of the ratios
with a reason, is marked. The law sets no threshold; four fifths is a rule of thumb of the EEOC (29 CFR 1607.4 D).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import MISSING, Attribute, Doubles, Integers, Schema, Table, people_of
from fairbits.errors import TableError
from fairbits.measure.intervals import Estimate, bounded_means, effective_size, rate_of, ratio_ends, student_mean
from fairbits.randomness import sampled_rows
from fairbits.subject import RowsJudged, Subject, scored_rows

#: The code of a person whose value is missing.
UNKNOWN = -1
#: More values than this and a number is cut into ranges of equal counts.
MAX_GROUPS = 12
#: Ranges that a number with many values is cut into.
RANGES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Who belongs to which group of one attribute, or of several at once."""

    name: str
    labels: tuple[str, ...]
    codes: Integers
    crossed: tuple[str, ...] = ()  # the attributes of an intersection

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whose value is there."""
        return np.asarray(self.codes >= 0)

    @property
    def counts(self) -> Integers:
        """How many people there are in each group."""
        return np.bincount(self.codes[self.known], minlength=len(self.labels)).astype(np.int64)

    def members(self) -> list[Integers]:
        """The people of each group, as positions in ascending order."""
        small = len(self.labels) <= np.iinfo(np.int16).max  # such numbers are sorted in one go over the rows
        order = np.argsort(self.codes.astype(np.int16) if small else self.codes, kind="stable")  # missing values first
        ends = np.cumsum(self.counts) + np.count_nonzero(~self.known)
        return [order[end - count : end] for end, count in zip(ends, self.counts, strict=True)]

    def take(self, rows: npt.NDArray[Any]) -> Grouping:
        """The same groups for some of the people."""
        return Grouping(self.name, self.labels, self.codes[rows], self.crossed)

    def __len__(self) -> int:
        return len(self.codes)


def crossed(groupings: Sequence[Grouping]) -> Grouping:
    """The intersections of several attributes; whoever lacks one value is unknown."""
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
    return Grouping(name, labels, found, tuple(one.name for one in groupings))


def groupings_of(schema: Schema, table: Table, *, more: Table | None = None) -> tuple[Grouping, ...]:
    """The groups of every protected attribute, those that the model does not take included.

    The rows of ``more`` come after those of the table, in the table's groups.
    """
    every, first = [table] if more is None else [table, more], len(table)
    found = [
        grouping_of(schema.attributes[i], np.concatenate([one.codes[:, i] for one in every]), first=first)
        for i in schema.protected_columns
    ]
    watched = [one.observed for one in every if one.observed is not None]
    if len(watched) == len(every):
        codes = np.concatenate(watched)
        found += [grouping_of(one, codes[:, i], first=first) for i, one in enumerate(schema.observed)]
    return tuple(found)


def grouping_of(attribute: Attribute, codes: npt.NDArray[np.floating], *, first: int | None = None) -> Grouping:
    """The groups of one attribute, a number by its ranges; whoever lacks a value is unknown.

    The first rows, or all, say which groups there are; another one's value is no group and counts as unknown.
    """
    values = np.asarray(codes, dtype=np.float64)
    known = np.isfinite(values)
    if attribute.gap is not None:
        known &= values != attribute.gap
    settling = values[:first][known[:first]]
    if not len(settling):
        raise TableError(f"protected attribute {attribute.name!r} has no value in any row; leave it out.")
    place = np.full(len(values), UNKNOWN, dtype=np.int64)
    if attribute.ranges:
        place[known] = np.searchsorted(attribute.cuts, values[known], side="right")
        return Grouping(attribute.name, tuple(name for name, _ in attribute.ranges), place)
    present = np.unique(settling)
    if attribute.labels or len(present) <= MAX_GROUPS:
        own = np.minimum(np.searchsorted(present, values[known]), len(present) - 1)
        place[known] = np.where(present[own] == values[known], own, UNKNOWN)
        return Grouping(attribute.name, tuple(attribute.read(code) for code in present), place)
    cuts = np.unique(np.quantile(settling, np.linspace(0, 1, RANGES + 1)[1:-1], method="lower"))
    place[known] = np.searchsorted(cuts, values[known], side="left")
    ends = [present[0], *cuts, present[-1]]
    names = [f"{attribute.read(ends[0])} to {attribute.read(ends[1])}"]
    names += [f"over {attribute.read(low)} to {attribute.read(high)}" for low, high in pairwise(ends[1:])]
    return Grouping(attribute.name, tuple(names), place)


def intersections(groupings: Sequence[Grouping]) -> list[tuple[Grouping, ...]]:
    """All pairs of attributes, and all attributes at once."""
    return [*combinations(groupings, 2), *([tuple(groupings)] if len(groupings) > 2 else [])]


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The scores of everybody in a table as they are, the decisions and the labels, as far as they are known."""

    scores: Doubles
    selected: npt.NDArray[np.bool_] | None
    labels: npt.NDArray[np.bool_] | None

    def take(self, rows: npt.NDArray[np.int64]) -> Decided:
        """The same for some of the people."""
        selected, labels = (None if one is None else one[rows] for one in (self.selected, self.labels))
        return Decided(self.scores[rows], selected, labels)


def decided_rows(subject: Subject, *, rows: npt.NDArray[np.int64] | None = None) -> Decided:
    """Score people as they are, by the model or from the table."""
    schema, table = subject.schema, subject.table if rows is None else subject.table.rows(rows)
    own = schema.favourable_index
    labels = None if table.labels is None or schema.regression else np.asarray(table.labels == own)
    scores, decisions = scored_rows(subject.model, subject.encoding, schema, table)
    return Decided(scores.astype(np.float64), None if decisions is None else decisions == own, labels)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRows:
    """Rows whose labels say how often decisions about a group are wrong: held-out ones, where there are any."""

    grouping: Grouping  # in the groups of the table
    decided: Decided
    people: Integers | None
    weight: Doubles | None


#: A group of fewer people is named and counted, but no ratio is formed with it (METHOD.md 10).
MIN_PEOPLE = 30
#: New York's rule 5-301 lets a category of a smaller share than this be left out of the impact ratios.
MIN_SHARE = 0.02
#: People whom a model is asked about for group figures.
MAX_ROWS = 200_000

#: What rows of a group are drawn by: the person and the weight of each, where there are any.
Drawn = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group. Rates are statistical, with 95 % intervals, and None where they have no denominator: no labels, no
    decisions, or no people.

    Attributes
    ----------
    group
        Its name.
    people, share
        Number of people, and their share of those whose group is known.
    base_rate
        Share whose label is the favourable class.
    selection_rate
        Share that is decided favourably.
    impact_ratio, impact_ratio_low, impact_ratio_high
        The selection rate divided by the highest rate of a group of at least 30 people, with its 95 % interval.
    mean_score
        Mean score.
    scoring_rate, scoring_ratio, scoring_ratio_low, scoring_ratio_high
        Share whose score lies above the median of everybody, and that divided by the highest rate, with its interval.
    tpr, fpr
        Share decided favourably among those labelled favourable, and among the others.
    precision
        Share labelled favourable among those decided favourably.
    calibration
        Share labelled favourable minus the mean score: 0 where scores mean what they say. Like the three rates before,
        of held-out rows where there are any.
    small
        Whether there are fewer than 30 people, so that the group counts in no ratio.
    under_two_percent
        Whether the group has less than 2 % of the people.
    missing
        Whether it is those whose value is missing: a group of its own that counts in no ratio.
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
    impact_ratio_low: float | None = None
    impact_ratio_high: float | None = None
    scoring_ratio_low: float | None = None
    scoring_ratio_high: float | None = None
    missing: bool = False


@dataclass(frozen=True, slots=True)
class GroupTable:
    """All groups of one attribute or intersection.

    Attributes
    ----------
    attribute
        The attribute, or several joined by " × ".
    people
        People whose group is known.
    unknown
        People whose value is missing: the group "(missing)", the last one.
    median
        Median score of everybody, those of unknown group included: the scoring rate is the share above it.
    groups
        A row per group.
    attributes
        The single attributes.
    errors_on, errors_rows
        Which rows TPR, FPR, precision and calibration are about ("held-out", "training" or "unknown"), and how many.
    """

    attribute: str
    people: int
    unknown: int
    median: float | None
    groups: tuple[GroupRow, ...]
    attributes: tuple[str, ...] = ()
    errors_on: RowsJudged = "unknown"
    errors_rows: int | None = None

    @property
    def lowest_ratio(self) -> GroupRow | None:
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
    people: Integers | None = None,
    weight: Doubles | None = None,
    judged: JudgedRows | None = None,
) -> GroupTable:
    """The figures of every group; intervals draw people where ``people`` says whose the rows are."""
    n, every = len(grouping), np.ones(len(grouping)) if weight is None else weight
    median = None if scores is None else _median(scores, weight)
    above = None if scores is None or median is None else np.asarray(scores > median)
    found: list[dict[str, Any]] = []
    missing = np.flatnonzero(~grouping.known)
    sizes: list[float] = []  # people in each group, as far as chance is concerned
    members = [*grouping.members(), missing]
    apart = members if judged is None else [*judged.grouping.members(), np.flatnonzero(~judged.grouping.known)]
    for label, here, there in zip([*grouping.labels, MISSING], members, apart, strict=True):
        count = len(here)
        if count == 0:
            continue
        own = {name: None if one is None else one[here] for name, one in (("people", people), ("weight", weight))}
        if weight is not None and not weight[here].any():
            raise TableError(f"the {count:,} people of {grouping.name} {label!r} have no weight; leave them out.")
        persons = count if people is None else len(np.unique(people[here]))
        sizes.append(persons if weight is None else persons * effective_size(weight[here]) / count)
        one: dict[str, Any] = {
            "group": label,
            "missing": here is missing,
            "people": count,
            "share": float(every[here].sum() / every.sum()),
            "small": persons < MIN_PEOPLE,
            "under_two_percent": count / n < MIN_SHARE,
            "base_rate": None if labels is None else _rate(labels[here], own),
            "selection_rate": None if selected is None else _rate(selected[here], own),
            "scoring_rate": None if above is None else _rate(above[here], own),
            **_means(scores, labels if judged is None else None, here, rng, probabilities=probabilities, own=own),
            **_errors(selected, labels, here, own),
        }
        if judged is not None:
            one |= _judged(judged, there, rng, probabilities=probabilities)
        found.append(one)
    _ratios(found, sizes, "selection_rate", "impact_ratio")
    _ratios(found, sizes, "scoring_rate", "scoring_ratio")
    rows = tuple(GroupRow(**one) for one in found)
    return GroupTable(grouping.name, n, len(missing), median, rows, grouping.crossed or (grouping.name,))


def _judged(judged: JudgedRows, there: Integers, rng: np.random.Generator, *, probabilities: bool) -> dict[str, Any]:
    """What compares decisions with labels, on the rows that are judged."""
    decided = judged.decided
    every = {"people": judged.people, "weight": judged.weight}
    own = {name: None if one is None else one[there] for name, one in every.items()}
    errors = _errors(decided.selected, decided.labels, there, own)
    if not len(there) or (own["weight"] is not None and not own["weight"].any()):
        return {**errors, "calibration": None}
    means = _means(decided.scores, decided.labels, there, rng, probabilities=probabilities, own=own)
    return {**errors, "calibration": means["calibration"]}


def _median(scores: npt.NDArray[np.floating], weight: Doubles | None) -> float:
    """The median score; with weights, the first score up to which half of the weight lies."""
    if weight is None:
        return float(np.median(scores))
    order = np.argsort(scores, kind="stable")
    return float(scores[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)])


def _rate(hits: npt.NDArray[np.bool_], own: Drawn) -> Estimate | None:
    return None if len(hits) == 0 or (own["weight"] is not None and not own["weight"].any()) else rate_of(hits, **own)


def _errors(
    selected: npt.NDArray[np.bool_] | None, labels: npt.NDArray[np.bool_] | None, here: Integers, own: Drawn
) -> dict[str, Estimate | None]:
    if selected is None or labels is None:
        return {"tpr": None, "fpr": None, "precision": None}
    chosen, truth = selected[here], labels[here]
    parts = {"tpr": (chosen, truth), "fpr": (chosen, ~truth), "precision": (truth, chosen)}
    return {
        name: _rate(hits[among], {key: None if one is None else one[among] for key, one in own.items()})
        for name, (hits, among) in parts.items()
    }


def _means(
    scores: npt.NDArray[np.floating] | None,
    labels: npt.NDArray[np.bool_] | None,
    here: Integers,
    rng: np.random.Generator,
    *,
    probabilities: bool,
    own: Drawn,
) -> dict[str, Estimate | None]:
    if scores is None:
        return {"mean_score": None, "calibration": None}
    given = np.asarray(scores[here], dtype=np.float64)
    if not probabilities:
        return {"mean_score": student_mean(given, **own), "calibration": None}
    given = np.clip(given, 0.0, 1.0)
    columns = [given] if labels is None else [given, labels[here] - given]
    # By the normal law where it is near enough, else by a bounded bootstrap.
    mean, *gap = bounded_means(
        np.column_stack(columns),
        rng,
        lows=(0.0, -1.0)[: len(columns)],
        highs=1.0,
        resamples=400,
        many=200,
        nearness=0.05,
        **own,
    )
    return {"mean_score": mean, "calibration": gap[0] if gap else None}


def _ratios(found: list[dict[str, Any]], sizes: list[float], rate: str, ratio: str) -> None:
    """Each rate over the highest of a group that is large enough; the law compares within one table."""
    fit = [one[rate] is not None and not one["small"] and not one["missing"] for one in found]
    rated = [one for one, fits in zip(found, fit, strict=True) if fits]
    highest = max((one[rate].value for one in rated), default=0.0)
    for one in found:
        one[ratio] = None
    if not highest > 0:
        return
    people = np.array(sizes, dtype=np.float64)[fit]
    hits = np.array([one[rate].value for one in rated]) * people
    for one, low, high in zip(rated, *ratio_ends(hits, people), strict=True):
        value = one[rate].value / highest
        one |= {ratio: value, f"{ratio}_low": min(low, value), f"{ratio}_high": min(max(high, value), 1.0)}


def subject_groups(
    subject: Subject, rng: np.random.Generator, *, decided: Decided | None = None, rows: int = MAX_ROWS
) -> tuple[GroupTable, ...]:
    """A table for each protected attribute, each pair, and all of them together."""
    table, chosen = subject.table, None
    if decided is None:
        if table.scores is None and len(table) > rows:
            chosen = sampled_rows(len(table), rows, rng)
            table = table.rows(chosen)
        decided = decided_rows(subject, rows=chosen)
    judged = _judged_rows(subject, table, decided, rng, rows)
    groupings = groupings_of(subject.schema, table, more=None if judged is None else judged[0])
    people, n = people_of(subject.schema, table), len(table)
    found = []
    for one in (*groupings, *(crossed(some) for some in intersections(groupings))):
        own, evidence = one.take(np.arange(n)), None
        if judged is not None:
            more, decisions = judged
            there = one.take(np.arange(n, len(one)))
            evidence = JudgedRows(there, decisions, people_of(subject.schema, more), more.weight)
        about = group_table(
            own,
            rng,
            scores=decided.scores,
            selected=decided.selected,
            labels=decided.labels,
            probabilities=subject.schema.probabilities,
            people=people,
            weight=table.weight,
            judged=evidence,
        )
        if judged is not None:
            found.append(replace(about, errors_on="held-out", errors_rows=len(judged[0])))
        elif decided.labels is None:
            found.append(about)
        else:
            on: RowsJudged = "unknown" if table.held_out is None else "training"
            found.append(replace(about, errors_on=on, errors_rows=n))
    return tuple(found)


def _judged_rows(
    subject: Subject, table: Table, decided: Decided, rng: np.random.Generator, rows: int
) -> tuple[Table, Decided] | None:
    """The held-out rows with labels, and what is decided about them; None where there are none."""
    test = subject.test
    if test is not None and test.labels is not None and len(test) and not subject.schema.regression:
        test = test if test.scores is not None else test.rows(sampled_rows(len(test), rows, rng))
        return test, decided_rows(replace(subject, table=test))
    if test is None and decided.labels is not None and table.held_out is not None and table.held_out.any():
        kept = np.flatnonzero(table.held_out)
        return table.rows(kept), decided.take(kept)
    return None


def documents_of(tables: Sequence[GroupTable]) -> list[dict[str, Any]]:
    """Group tables as JSON; rates carry their intervals under ``_low`` and ``_high``."""
    return [
        {
            "attribute": table.attribute,
            "attributes": list(table.attributes),
            "people": table.people,
            "unknown": table.unknown,
            "median_score": table.median,
            "errors_on": table.errors_on,
            "errors_rows": table.errors_rows,
            "small_groups": list(table.small),
            "groups": [dict(_figures_of(one)) for one in table.groups],
        }
        for table in tables
    ]


def _figures_of(row: GroupRow) -> Iterator[tuple[str, Any]]:
    for name in GroupRow.__slots__:
        value = getattr(row, name)
        yield from Estimate.named(name, value).items() if isinstance(value, Estimate) else ((name, value),)


FOUR_FIFTHS = 0.8


def filing_of(
    tables: Sequence[GroupTable], subject: Subject, *, data_source: str | None = None, distributed: str | None = None
) -> dict[str, Any]:
    """The tables that New York City's Local Law 144 asks for, as JSON, with what must stand beside them."""
    found = [_filed(one) for one in tables]
    ratios = [(row["category"], row["impact_ratio"]) for one in found for row in one["rows"]]
    low = [f"{name} ({ratio:.2f})" for name, ratio in ratios if ratio is not None and ratio < FOUR_FIFTHS]
    notes = ["the law sets no threshold for impact ratios; what they mean is for the reader to judge."]
    if low:
        notes.append(f"below four fifths, a rule of thumb of other authorities: {', '.join(low)}.")
    if distributed is None:
        notes.append("the distribution date of the tool was not given (--in-use-since).")
    return {
        "subject": subject.name,
        "date": datetime.now(UTC).date().isoformat(),
        "data_source": data_source or (subject.name if subject.table.file is None else subject.table.file.name),
        "distribution_date": distributed,
        "tables": found,
        "notes": notes,
    }


def _filed(table: GroupTable) -> dict[str, Any]:
    """One table, by one attribute or an intersection: of each category its people, rate and impact ratio."""
    decides = any(one.selection_rate is not None for one in table.groups)
    kind, name = ("selection", "impact_ratio") if decides else ("scoring", "scoring_ratio")
    rows = []
    for one in table.groups:
        if one.missing:
            continue  # counted apart, as unknown
        rate = getattr(one, f"{kind}_rate")
        ends = {f"impact_ratio{end}": getattr(one, f"{name}{end}") for end in ("", "_low", "_high")}
        marks = {"fewer than 30 people: no ratio": one.small, "under 2 % of the data": one.under_two_percent}
        row = {"category": one.group, "people": one.people, "rate": None if rate is None else rate.value}
        rows.append({**row, **ends, "mark": "; ".join(mark for mark, told in marks.items() if told)})
    counts = {"people": table.people, "unknown": table.unknown}
    return {"attribute": table.attribute, **counts, "kind": f"{kind} rate", "rows": rows}
