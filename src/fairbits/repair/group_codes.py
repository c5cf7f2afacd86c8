"""Which groups of people a mitigator is told about: protected values as one column of group numbers.

Mitigators from the literature know one protected attribute, often with two values. Several attributes are crossed;
groups of fewer than 30 training rows are joined as "others". Where most people would end there, every attribute is
cut in two (the most frequent value and the rest; numbers at their median) before they are crossed. The words say which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema, Twins
from fairbits.errors import CapabilityError

#: Rows that a group needs to be told apart, and the share of rows that may end among the others.
MIN_ROWS, MAX_OTHERS = 30, 0.2
OTHERS = "others"

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """The groups by number: ``by_twin`` has the group of each protected combination, in the order of the twins."""

    labels: tuple[str, ...]
    by_twin: Integers
    twins: Twins
    words: str

    def of(self, codes: Codes) -> Integers:
        """The group of each person."""
        return np.asarray(self.by_twin[self.twins.index_of(codes)])


def coding_of(schema: Schema, rows: Codes) -> Coding:
    """The groups of the training rows, as fine as their numbers allow."""
    twins = Twins(schema)
    own = twins.index_of(rows)
    names = " × ".join(schema.attributes[i].name for i in twins.columns)
    fine = _joined(np.arange(twins.m), list(twins.labels), own)
    if fine is not None:
        by_twin, labels, joined = fine
        words = f"groups of {names}: {len(labels)}" + (f" ({joined} small joined as others)" if joined else "")
        return Coding(labels, by_twin, twins, words)
    halves, half_labels = _halved(schema, twins, rows)
    coarse = _joined(halves, half_labels, own, most_others=1.0)
    if coarse is None:
        raise CapabilityError(
            f"the {len(rows):,} training rows fall into one group of {names} of at least {MIN_ROWS} people, so there "
            f"is nothing that a mitigator could make alike; average and guard need no groups."
        )
    by_twin, labels, _ = coarse
    return Coding(labels, by_twin, twins, f"groups of {names}, each attribute cut in two: {len(labels)}")


def _joined(
    group_of: Integers, labels: list[str], own: Integers, *, most_others: float = MAX_OTHERS
) -> tuple[Integers, tuple[str, ...], int] | None:
    """Groups large enough keep their number, the rest share one; None where too many people would."""
    counts = np.bincount(group_of[own], minlength=len(labels))
    large = np.flatnonzero(counts >= MIN_ROWS)
    rest = int(counts.sum() - counts[large].sum())
    if len(large) < 1 or rest > most_others * len(own) or len(large) + (rest > 0) < 2:
        return None
    number = np.full(len(labels), len(large), dtype=np.int64)
    number[large] = np.arange(len(large))
    if not rest:  # combinations that nobody has go with the largest group
        number[number == len(large)] = int(np.argmax(counts[large]))
    joined = int(((counts > 0) & (counts < MIN_ROWS)).sum())
    return number[group_of], (*(labels[i] for i in large), *([OTHERS] if rest else [])), joined


def _halved(schema: Schema, twins: Twins, rows: Codes) -> tuple[Integers, list[str]]:
    """The group of every twin when each attribute is cut in two, and what the groups are called."""
    number, labels = np.zeros(twins.m, dtype=np.int64), [""]
    for place, column in enumerate(twins.columns):
        attribute, values = schema.attributes[column], twins.values[:, place]
        own = rows[:, column][np.isfinite(rows[:, column])]
        if attribute.kind == "category":
            present, counts = np.unique(own, return_counts=True)
            usual = present[np.argmax(counts)]
            high, words = values != usual, (attribute.read(usual), f"not {attribute.read(usual)}")
        else:
            middle = float(np.median(own))
            high, words = values > middle, (f"{attribute.name} ≤ {middle:g}", f"{attribute.name} > {middle:g}")
        number = 2 * number + high
        labels = [", ".join(filter(None, (before, word))) for before in labels for word in words]
    return number, labels
