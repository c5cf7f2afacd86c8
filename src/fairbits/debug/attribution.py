"""Which protected attributes the bits come from: each alone, every combination, and Shapley shares.

A case has no protected values of its own. So the bits of a subset S of the protected attributes are defined as
follows: hold the other attributes at one combination of their values, let those in S vary, and measure; then take the
mean over all combinations of the held ones. No attribute gives 0 bits, all of them the bits of the case. The Shapley
share of an attribute is its mean gain in bits over all orders in which attributes may join; shares of a case add up
to its bits. A share may be negative: an attribute may hide what another one shows.
"""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np
import numpy.typing as npt

from fairbits.debug.results import Attribution, Floats, SubsetBits
from fairbits.domain.attribute import Codes
from fairbits.engine import classes
from fairbits.measure import Evaluator

Subset = tuple[int, ...]

#: All subsets of more attributes than this are too many to be read, let alone computed.
MOST_ATTRIBUTES = 8
#: Scores held in memory at a time.
SCORES = 4_000_000


def attribute_bits(evaluator: Evaluator, cases: Codes) -> Attribution:
    """Bits of every subset of the protected attributes, and the Shapley shares."""
    names = evaluator.schema.protected
    step = max(1, SCORES // evaluator.m)
    pieces = [_subset_bits(evaluator, cases[start : start + step]) for start in range(0, len(cases), step)]
    q_inf, q_1 = (
        {subset: np.concatenate([piece[which][subset] for piece in pieces]) for subset in pieces[0][which]}
        for which in (0, 1)
    )
    shares = {"q_inf": shapley(q_inf, len(names)), "q_1": shapley(q_1, len(names))}
    return Attribution(
        attributes=names,
        subsets=tuple(
            SubsetBits(tuple(names[i] for i in subset), float(q_inf[subset].mean()), float(q_1[subset].mean()))
            for subset in q_inf
        ),
        q_inf=dict(zip(names, shares["q_inf"].mean(axis=0).tolist(), strict=True)),
        q_1=dict(zip(names, shares["q_1"].mean(axis=0).tolist(), strict=True)),
        case_q_inf=shares["q_inf"],
        case_q_1=shares["q_1"],
    )


def _subset_bits(evaluator: Evaluator, cases: Codes) -> tuple[dict[Subset, Floats], dict[Subset, Floats]]:
    """Q∞ and Q1 of each case for each subset, small subsets first."""
    attributes = [evaluator.schema.attributes[i] for i in evaluator.twins.columns]
    sizes = [len(attribute.twin_values()) for attribute in attributes]
    table = evaluator.scores(cases).reshape(len(cases), *sizes)
    q_inf: dict[Subset, Floats] = {}
    q_1: dict[Subset, Floats] = {}
    for count in range(len(sizes) + 1):
        for subset in combinations(range(len(sizes)), count):
            q_inf[subset], q_1[subset] = _bits(evaluator, table, subset)
    return q_inf, q_1


def _bits(evaluator: Evaluator, table: npt.NDArray[np.float32], subset: Subset) -> tuple[Floats, Floats]:
    if not subset:
        return np.zeros(len(table)), np.zeros(len(table))
    held = [axis for axis in range(table.ndim - 1) if axis not in subset]
    order = [0, *(axis + 1 for axis in held), *(axis + 1 for axis in subset)]
    varied = int(np.prod([table.shape[axis + 1] for axis in subset]))
    rows = np.ascontiguousarray(table.transpose(order)).reshape(-1, varied)
    k, q_1 = classes(
        rows,
        epsilon=evaluator.epsilon,
        partition=evaluator.partition,
        bounded=not evaluator.schema.regression,
        threads=evaluator.threads,
    )
    return np.log2(k).reshape(len(table), -1).mean(axis=1), q_1.reshape(len(table), -1).mean(axis=1, dtype=np.float64)


def shapley(bits: dict[Subset, Floats], players: int) -> Floats:
    """Shares of each case, (cases, players); they add up to the bits of all players together."""
    shares = np.zeros((len(bits[()]), players))
    for player in range(players):
        others = [other for other in range(players) if other != player]
        for count in range(players):
            weight = factorial(count) * factorial(players - count - 1) / factorial(players)
            for subset in combinations(others, count):
                joined = tuple(sorted((*subset, player)))
                shares[:, player] += weight * (bits[joined] - bits[subset])
    return shares
