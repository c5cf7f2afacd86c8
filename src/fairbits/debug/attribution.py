"""Which protected attributes the bits come from: each alone, every combination, and Shapley shares.

A case has no protected values of its own. So the bits of a subset S of the protected attributes are defined as
follows: hold the other attributes at one combination of their values, let those in S vary, and measure; then take the
mean over all combinations of the held ones under which a twin can exist. No attribute gives 0 bits, all of them the
bits of the case. The Shapley share of an attribute is its mean gain in bits over all orders in which attributes may
join; shares of a case add up to its bits. A share may be negative: an attribute may hide what another one shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.debug.records import Attribution, Floats, SubsetBits
from fairbits.domain import Codes, Truth
from fairbits.measure import Evaluator

Subset = tuple[int, ...]

#: All subsets of more attributes than this are too many to be read, let alone computed.
MAX_ATTRIBUTES = 8
#: Scores held in memory at a time.
SCORES = 4_000_000


def attribute_bits(evaluator: Evaluator, cases: Codes) -> Attribution:
    """Bits of every subset of the protected attributes, and the Shapley shares."""
    evaluator = evaluator.over_values
    names = evaluator.schema.protected
    step = max(1, SCORES // (evaluator.m * (len(evaluator.schema.classes) if evaluator.by_vector else 1)))
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
    sizes = [len(evaluator.schema.attributes[i].twin_values()) for i in evaluator.twins.columns]
    table = evaluator.class_scores(cases) if evaluator.by_vector else evaluator.scores(cases)[:, :, None]
    valid = evaluator.valid_twins(cases)
    q_inf: dict[Subset, Floats] = {}
    q_1: dict[Subset, Floats] = {}
    for count in range(len(sizes) + 1):
        for subset in combinations(range(len(sizes)), count):
            if not subset:
                q_inf[subset], q_1[subset] = np.zeros(len(cases)), np.zeros(len(cases))
                continue
            rows = beside(table, sizes, subset)
            rows = rows.reshape(-1, *rows.shape[2:])
            there = None if valid is None else beside(valid, sizes, subset).reshape(-1, rows.shape[1])
            q_inf[subset], q_1[subset] = _mean_bits(evaluator, rows, there, len(cases))
    return q_inf, q_1


def beside(table: npt.NDArray[Any], sizes: Sequence[int], subset: Sequence[int]) -> npt.NDArray[Any]:
    """(people, twins, …) as (people, held, varied, …): twins that differ in these attributes alone stand together."""
    held = [axis for axis in range(len(sizes)) if axis not in subset]
    order = [0, *(axis + 1 for axis in (*held, *subset)), *range(len(sizes) + 1, len(sizes) + table.ndim - 1)]
    varied = int(np.prod([sizes[axis] for axis in subset]))
    turned = table.reshape(len(table), *sizes, *table.shape[2:]).transpose(order)
    return np.ascontiguousarray(turned).reshape(len(table), -1, varied, *table.shape[2:])


def _mean_bits(
    evaluator: Evaluator, rows: npt.NDArray[np.float32], valid: Truth | None, cases: int
) -> tuple[Floats, Floats]:
    """Per case, over the combinations held under which anybody can exist."""
    by_vector = evaluator.by_vector
    found = (
        evaluator.figures_of_classes(rows, valid) if by_vector else evaluator.figures_of_scores(rows[:, :, 0], valid)
    )
    weights = np.ones(len(rows)) if valid is None else valid.any(axis=1).astype(np.float64)
    mass = weights.reshape(cases, -1)
    total = np.maximum(mass.sum(axis=1), 1.0)
    bits = (np.log2(found.k), found.q_1.astype(np.float64))
    whole, shannon = ((mass * one.reshape(cases, -1)).sum(axis=1) / total for one in bits)
    return whole, shannon


def shapley(bits: dict[Subset, Floats], players: int) -> Floats:
    """Shapley shares of each case.

    Parameters
    ----------
    bits
        Bits of each case by subset of players, (cases,) each.
    players
        Number of players.

    Returns
    -------
    Floats
        Shares, (cases, players); they add up to the bits of all players together.
    """
    shares = np.zeros((len(bits[()]), players))
    for player in range(players):
        others = [other for other in range(players) if other != player]
        for count in range(players):
            weight = factorial(count) * factorial(players - count - 1) / factorial(players)
            for subset in combinations(others, count):
                joined = tuple(sorted((*subset, player)))
                shares[:, player] += weight * (bits[joined] - bits[subset])
    return shares
