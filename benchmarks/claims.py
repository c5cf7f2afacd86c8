"""How often bits of words are claimed wrongly, and found, under laws that the rule was not made with.

Four generators, none of which the tests use: a probit model whose names have heavy tails (Student's t with 2 degrees of
freedom), a complementary log-log model whose names are skewed (centred log-normal) and each mean something else to each
person, a steep logistic model that knows one name in six, and one to which names of the first combination mean ten
times as much as others. Combinations have 4 to 12 realisations, the same number or not.

Run: python -m benchmarks.claims [runs] [first seed]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.special import expit, ndtr

from fairbits.measure.words import word_bits

Array = np.ndarray
Link = Callable[[Array], Array]


def heavy(rng: np.random.Generator, people: int, words: int, size: float) -> Array:
    """What names do to everybody alike; a few of them do very much."""
    return np.broadcast_to(size * rng.standard_t(2, words), (people, words))


def skewed(rng: np.random.Generator, people: int, words: int, size: float) -> Array:
    """What names do, all odd ones in the same direction, and to each person a little differently."""
    shared = np.exp(rng.normal(0, 1, words)) - np.exp(0.5)
    return size * (shared + rng.normal(0, 0.5, (people, words)))


def odd(rng: np.random.Generator, people: int, words: int, size: float) -> Array:
    """What a few names do to everybody; the others are not known."""
    known = (rng.random(words) < 1 / 6) * rng.choice([-1, 1], words) * rng.exponential(3, words)
    return np.broadcast_to(size * known, (people, words))


def normal(rng: np.random.Generator, people: int, words: int, size: float) -> Array:
    return np.broadcast_to(size * rng.normal(0, 1, words), (people, words))


def steep(values: Array) -> Array:
    return expit(3 * values)


def cloglog(values: Array) -> Array:
    return 1 - np.exp(-np.exp(np.clip(values, -30, 3)))


UNEVEN = "logit, uneven"
LAWS: dict[str, tuple[Link, Callable[..., Array]]] = {
    "probit, t": (ndtr, heavy),
    "cloglog, skewed": (cloglog, skewed),
    "logit, odd": (steep, odd),
    UNEVEN: (steep, normal),
}


def claims(law: str, groups: int, people: int, equal: bool, size: float, group: float, seed: int) -> tuple[bool, float]:
    """Whether a run claims bits, and how far those above the nulls lie from what was planted in the first group."""
    rng = np.random.default_rng(seed)
    link, names = LAWS[law]
    base = rng.uniform(-1.5, 1.0, people)
    counts = np.full(groups, 8) if equal else rng.integers(4, 13, groups)
    effects = [group * (place == 0) for place in range(groups)]
    sizes = [size * (0.1 if law == UNEVEN and place else 1) for place in range(groups)]
    drawn = zip(effects, counts, sizes, strict=True)
    scores = [link(base[:, None] + one + names(rng, people, int(count), each)) for one, count, each in drawn]
    neutral = link(base[:, None] + names(rng, people, 6, size))
    found = word_bits(scores, rng, neutral=neutral)
    planted = float((np.abs(link(base + group) - link(base)) > 0.025).mean())
    return found.claimed, abs((found.above.value if found.above else 0.0) - planted)


def main(runs: int = 200, first: int = 0) -> None:
    print("law, groups, people, realisations, size of names: claimed wrongly; planted: claimed, within 0.1 bit")
    for law, groups, people, equal, size in product(LAWS, (2, 4), (5, 50), (True, False), (0.03, 0.3)):
        wrong = np.mean([claims(law, groups, people, equal, size, 0.0, first + run)[0] for run in range(runs)])
        right = [claims(law, groups, people, equal, size, 0.8, first + run) for run in range(runs)]
        found, near = np.mean([one[0] for one in right]), np.mean([one[0] and one[1] < 0.1 for one in right])
        words = "8 each" if equal else "4 to 12"
        print(f"{law}, {groups}, {people}, {words}, {size}: {wrong:.1%}; {found:.0%}, {near:.0%}", flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
