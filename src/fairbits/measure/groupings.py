"""Who belongs to which group: by one protected attribute, or by several at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Attribute, Schema, Table
from fairbits.errors import OptionError, TableError

#: The code of a person whose value is missing.
UNKNOWN = -1
#: More values than this and a number is cut into ranges of equal counts.
MAX_GROUPS = 12
#: Ranges that a number with many values is cut into.
RANGES = 4

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Who belongs to which group of one attribute, or of several at once."""

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

    def members(self) -> list[Integers]:
        """The people of each group, as positions in ascending order."""
        small = len(self.labels) <= np.iinfo(np.int16).max  # such numbers are sorted in one go over the rows
        order = np.argsort(self.codes.astype(np.int16) if small else self.codes, kind="stable")  # missing values first
        ends = np.cumsum(self.counts) + np.count_nonzero(~self.known)
        return [order[end - count : end] for end, count in zip(ends, self.counts, strict=True)]

    def take(self, rows: npt.NDArray[Any]) -> Grouping:
        """The same groups for some of the people."""
        return Grouping(self.name, self.labels, self.codes[rows])

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
    return Grouping(name, labels, found)


def groupings_of(schema: Schema, table: Table) -> tuple[Grouping, ...]:
    """The groups of every protected attribute, those that the model does not take included."""
    found = [grouping_of(schema.attributes[i], table.codes[:, i]) for i in schema.protected_columns]
    if table.observed is not None:
        found += [grouping_of(one, table.observed[:, i]) for i, one in enumerate(schema.observed)]
    return tuple(found)


def grouping_of(attribute: Attribute, codes: npt.NDArray[np.floating]) -> Grouping:
    """The groups of one attribute, a number by its ranges; whoever lacks a value is unknown."""
    values = np.asarray(codes, dtype=np.float64)
    known = np.isfinite(values)
    if attribute.gap is not None:
        known &= values != attribute.gap
    if not known.any():
        raise TableError(f"protected attribute {attribute.name!r} has no value in any row; leave it out.")
    place = np.full(len(values), UNKNOWN, dtype=np.int64)
    if attribute.ranges:
        place[known] = np.searchsorted(attribute.cuts, values[known], side="right")
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


def intersections(groupings: Sequence[Grouping]) -> list[tuple[Grouping, ...]]:
    """All pairs of attributes, and all attributes at once."""
    pairs = list(combinations(groupings, 2))
    return pairs + ([tuple(groupings)] if len(groupings) > 2 else [])
