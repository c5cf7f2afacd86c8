"""What is left without direct use: bits about each protected attribute in the average over a person's twins.

The average is the same for all twins of a person, so whatever it tells comes through other attributes (METHOD.md 10.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbits.domain import Schema, Table
from fairbits.errors import TableError
from fairbits.measure import Evaluator, groupings_of
from fairbits.proxies import score_bits
from fairbits.randomness import generator

#: With fewer people nothing can be known; more than so many are not asked (fewer where each costs a call).
MIN_PEOPLE, MAX_PEOPLE, MAX_FOREIGN = 200, 2_000, 1_000


@dataclass(frozen=True, slots=True)
class IndirectBits:
    """Bits about one protected attribute; ``low`` is the 95 % lower bound, ``placebo`` what chance alone gives.

    ``high`` is as far above the estimate as ``low`` is below it before it is cut at 0; all the bits there are at most.
    """

    attribute: str
    bits: float
    low: float
    high: float
    placebo: float


def indirect_bits(evaluator: Evaluator, schema: Schema, people: Table) -> tuple[IndirectBits, ...]:
    """What the average over the twins tells about every protected attribute."""
    if len(people) < MIN_PEOPLE:
        return ()
    limit = MAX_PEOPLE if evaluator.native else MAX_FOREIGN
    if len(people) > limit:
        people = people.rows(np.linspace(0, len(people) - 1, limit).astype(np.int64))
    rows = people.codes
    evaluator = evaluator.over_values
    scores = evaluator.scores(rows).astype(np.float64)
    valid = evaluator.valid_twins(rows)
    if valid is not None:
        scores = np.where(valid | ~valid.any(axis=1, keepdims=True), scores, np.nan)
    average = np.nanmean(scores, axis=1)
    found = []
    try:
        groupings = groupings_of(schema, people)
    except TableError:  # an attribute that has no value in any of these rows
        return ()
    for groups in groupings:
        if groups.known.sum() < MIN_PEOPLE or (groups.counts > 0).sum() < 2:
            continue
        bits = score_bits(groups, average, generator(0, "repair", "indirect", groups.name))
        # Where the lower end is cut at 0, chance alone (the largest shuffle) says how far the figure may move.
        reach = max(bits.bits - bits.low, bits.placebo_high)
        high = min(bits.entropy, bits.bits + reach)
        found.append(IndirectBits(groups.name, bits.bits, bits.low, high, bits.placebo))
    return tuple(found)
