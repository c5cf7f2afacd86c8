"""Over time: indirect bits and group rates per period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fairbits.errors import OptionError
from fairbits.measure import Decided, Estimate, Grouping, GroupTable, documents_of, group_table, wilson
from fairbits.proxies.bits import ScoreBits, score_bits

#: Periods that a table can be told apart by, at most.
MAX_PERIODS = 200
#: People in a period, at least, for bits to be said.
MIN_PEOPLE = 200


@dataclass(frozen=True, slots=True)
class PeriodBits:
    """What the score tells about one attribute in one period; None where there are too few people or one group."""

    attribute: str
    score: ScoreBits | None


@dataclass(frozen=True, slots=True)
class Period:
    """One period: its people, the share decided favourably, bits and group rates."""

    period: str
    people: int
    selection_rate: Estimate | None
    bits: tuple[PeriodBits, ...]
    groups: tuple[GroupTable, ...]

    def document(self) -> dict[str, Any]:
        """As JSON."""
        rate = self.selection_rate
        return {
            "period": self.period,
            "people": self.people,
            "selection_rate": None if rate is None else rate.value,
            "selection_rate_low": None if rate is None else rate.low,
            "selection_rate_high": None if rate is None else rate.high,
            "bits": [
                {"attribute": one.attribute, **({} if one.score is None else asdict(one.score))} for one in self.bits
            ],
            "groups": documents_of(self.groups),
        }


def periods_of(
    over: Grouping, groupings: Sequence[Grouping], decided: Decided, rng: np.random.Generator
) -> tuple[Period, ...]:
    """Every period by itself, in order.

    Parameters
    ----------
    over
        Who belongs to which period.
    groupings
        The protected attributes.
    decided
        Scores, decisions and labels of everybody.
    rng
        For halves, shuffles and intervals.

    Returns
    -------
    tuple of Period
        Rows without a period are in none.

    Raises
    ------
    OptionError
        For more than 200 periods.
    """
    if len(over.labels) > MAX_PERIODS:
        raise OptionError(
            f"{over.name!r} has {len(over.labels):,} different values, more than {MAX_PERIODS} periods; use a coarser "
            f"column, such as a month."
        )
    found = []
    for code, label in enumerate(over.labels):
        rows = np.flatnonzero(over.codes == code)
        if len(rows) == 0:
            continue
        selected = None if decided.selected is None else decided.selected[rows]
        labels = None if decided.labels is None else decided.labels[rows]
        scores = decided.scores[rows]
        bits, tables = [], []
        for one in groupings:
            own = one.take(rows)
            enough = own.known.sum() >= MIN_PEOPLE and (own.counts > 0).sum() > 1
            bits.append(PeriodBits(one.name, score_bits(own, scores, rng) if enough else None))
            fits = bool((scores >= 0).all() and (scores <= 1).all())
            tables.append(group_table(own, rng, scores=scores, selected=selected, labels=labels, probabilities=fits))
        rate = None if selected is None else wilson(int(selected.sum()), len(rows))
        found.append(Period(label, len(rows), rate, tuple(bits), tuple(tables)))
    return tuple(found)
