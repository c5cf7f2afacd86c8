"""Groups that are known as probabilities only, such as those of BISG: rates, impact ratios and bits.

A person has the probabilities p of their groups, made from something Z (a name, an address), and they are calibrated:
p is the share of the group among people of that Z. Two answers are given, under different assumptions:

- The weighted rate Σ p·Y / Σ p (Y: decided favourably). It is the group's rate where the decision tells nothing about
  the group beyond Z; otherwise it is off by the mean covariance of both given Z, over the group's share (Chen, Kallus,
  Mao, Svacha and Udell 2019). Its interval is that of a ratio, by linearisation.
- Bounds that hold whatever links decision and group (Kallus, Mao and Zhou 2022): among people of one p, at least
  max(0, p + η − 1) and at most min(p, η) are of the group and decided favourably, with η their rate. People are put
  into bins of p; in each, which side of min and max to take is chosen on one half and counted on the other, so that an
  unlucky choice only widens the bounds; their ends hold the sampling error.

What thresholding would have said stands beside: everybody in their group of probability one half or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairbits.domain import Chances, Doubles, Integers, Truth
from fairbits.functions import normal_quantile
from fairbits.measure import MIN_PEOPLE, Decided, Estimate, rate_of, ratio_ends, worth_of
from fairbits.proxies.bits import ScoreBits, chance_bits

#: Bins of a probability, and people in each at least.
BINS, PEOPLE_PER_BIN = 20, 50


@dataclass(frozen=True, slots=True)
class ProbableGroup:
    """One group. Estimates have 95 % intervals under the assumption; bounds hold without it, at 95 % too.

    Attributes
    ----------
    group
        Its name.
    people, share
        How many people are expected in it, and their share.
    selection_rate, impact_ratio
        The weighted rate, and that over the highest of a group of at least 30 expected people.
    bounds, ratio_bounds
        Between which both lie whatever links decision and group.
    likely_people, likely_rate, likely_ratio
        What thresholding would have said.
    """

    group: str
    people: float
    share: float
    selection_rate: Estimate
    impact_ratio: Estimate | None
    bounds: tuple[float, float]
    ratio_bounds: tuple[float, float] | None
    likely_people: int
    likely_rate: Estimate | None
    likely_ratio: float | None


@dataclass(frozen=True, slots=True)
class ProbableTable:
    """All groups of an attribute that is known as probabilities only, and what the score tells about it."""

    attribute: str
    people: int
    unknown: int
    groups: tuple[ProbableGroup, ...]
    bits: ScoreBits


def probable_table(
    about: Chances,
    chances: Doubles,
    decided: Decided,
    rng: np.random.Generator,
    *,
    rows: Integers,
    people: Integers | None = None,
    weight: Doubles | None = None,
) -> ProbableTable | None:
    """The figures of one attribute; ``rows`` is one row of each person, for the bits. None where nothing is decided."""
    known = np.asarray(~np.isnan(chances).any(axis=1))
    if decided.selected is None or known.sum() < MIN_PEOPLE:
        return None
    once = rows[known[rows]]
    bits = chance_bits(chances[once], decided.scores[once], rng)
    shares, selected = chances[known], decided.selected[known]
    whose = None if people is None else people[known]
    every = np.ones(len(shares)) if weight is None else weight[known]
    likely = np.where(shares.max(axis=1) >= 0.5, shares.argmax(axis=1), -1)
    present = [place for place in range(shares.shape[1]) if (every * shares[:, place]).sum() > 0]
    own = [every * shares[:, place] for place in present]
    rates = [rate_of(selected, people=whose, weight=one) for one in own]
    worth = np.array([worth_of(selected, whose, one) for one in own])
    bounds = [_bounds(shares[:, place], selected, every, whose, rng) for place in present]
    expected = [float(shares[:, place].sum()) for place in present]
    large = np.array(expected) >= MIN_PEOPLE
    ratios = _ratios(rates, worth, large)
    apart = [likely == place for place in present]
    hard = [
        rate_of(selected[one], people=None if whose is None else whose[one], weight=every[one]) if one.any() else None
        for one in apart
    ]
    highest = max((r.value for r, one in zip(hard, apart, strict=True) if r and one.sum() >= MIN_PEOPLE), default=0.0)
    groups = tuple(
        ProbableGroup(
            about.labels[place],
            expected[i],
            float(own[i].sum() / every.sum()),
            rates[i],
            ratios[i],
            bounds[i],
            _ratio_bounds(bounds, i, large) if ratios[i] is not None else None,
            int(apart[i].sum()),
            hard[i],
            None if hard[i] is None or not highest else hard[i].value / highest,  # type: ignore[union-attr]
        )
        for i, place in enumerate(present)
    )
    return ProbableTable(about.attribute, int(known.sum()), int((~known).sum()), groups, bits)


def _ratios(rates: list[Estimate], worth: Doubles, large: Truth) -> list[Estimate | None]:
    """Each rate over the highest; groups share people, which only narrows what separate groups would give."""
    found: list[Estimate | None] = [None] * len(rates)
    values = np.array([one.value for one in rates])
    places = np.flatnonzero(large)
    if len(places) < 2 or values[places].max() == 0:
        return found
    value = values[places] / values[places].max()
    lows, highs = ratio_ends(values[places] * worth[places], worth[places])
    for place, one, low, high in zip(places, value, lows, highs, strict=True):
        found[place] = Estimate(float(one), float(min(low, one)), float(min(max(high, one), 1.0)))
    return found


def _ratio_bounds(bounds: list[tuple[float, float]], place: int, large: Truth) -> tuple[float, float]:
    low, high = bounds[place]
    others = [one for i, one in enumerate(bounds) if i != place and large[i]]
    most, least = max(one[1] for one in others), max(one[0] for one in others)
    return min(1.0, low / most) if most else 1.0, min(1.0, high / least) if least else 1.0


def _bounds(
    chance: Doubles, selected: Truth, weight: Doubles, people: Integers | None, rng: np.random.Generator
) -> tuple[float, float]:
    """Between which the rate of a group lies, whatever links decision and group, with 95 % confidence."""
    n = len(chance)
    own = np.arange(n) if people is None else np.unique(people, return_inverse=True)[1]
    first = rng.permutation(int(own.max()) + 1)[own] % 2 == 0
    cuts = np.unique(np.quantile(chance, np.linspace(0, 1, int(np.clip(n // PEOPLE_PER_BIN, 1, BINS)) + 1)[1:-1]))
    place = np.searchsorted(cuts, chance, side="right")
    most, least = np.empty(n), np.empty(n)
    for fit in (first, ~first):
        counted = (weight, weight * chance, weight * selected)
        total, shares, rates = (np.bincount(place[fit], one[fit], len(cuts) + 1) for one in counted)
        test = ~fit
        most[test] = np.where((shares < rates)[place], chance, selected)[test]
        least[test] = np.where((shares + rates > total)[place], chance + selected - 1, 0.0)[test]
    z = normal_quantile(0.975)
    ends = [_ratio(one, chance, weight, own, z * side) for one, side in ((least, -1), (most, 1))]
    return max(0.0, float(ends[0])), min(1.0, float(ends[1]))


def _ratio(over: Doubles, under: Doubles, weight: Doubles, people: Integers, z: float) -> float:
    """An end of the interval of a ratio of weighted sums, by the variance of its linear part among people."""
    total = float((weight * under).sum())
    value = float((weight * over).sum()) / total
    rest = np.bincount(people, weight * (over - value * under))
    return value + z * float(np.sqrt((rest**2).sum() * len(rest) / max(len(rest) - 1, 1))) / total
