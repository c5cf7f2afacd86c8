"""People and scores with a known amount of information about an attribute."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from fairbits.measure import Grouping


def two_groups(codes: np.ndarray, name: str = "sex") -> Grouping:
    return Grouping(name, ("f", "m"), np.asarray(codes, dtype=np.int64))


def binary_entropy(p: float) -> float:
    return float(-(p * np.log2(p) + (1 - p) * np.log2(1 - p)))


def noisy_copy(n: int, rng: np.random.Generator, *, flip: float = 0.2) -> tuple[np.ndarray, np.ndarray, float]:
    """An even attribute, a score of two values that is wrong with probability ``flip``, and I(A;S) = 1 − h(flip)."""
    a = rng.integers(0, 2, n)
    return a, np.where(rng.random(n) < flip, 1 - a, a).astype(float), 1 - binary_entropy(flip)


@functools.cache
def shift_bits(law: str, shift: float) -> float:
    """I(A;S) of an even attribute that shifts a normal or a Cauchy score, by numerical integration."""
    from scipy import integrate, stats

    density = {"normal": stats.norm.pdf, "cauchy": stats.cauchy.pdf}[law]

    def gain(u: float) -> float:
        x = np.tan(u)  # the whole line, tails included
        one, two = density(x), density(x - shift)
        mix = (one + two) / 2
        parts = [p * np.log2(p / mix) / 2 for p in (one, two) if p > 1e-300]
        return float(sum(parts) * (1 + x * x))

    return float(integrate.quad(gain, -np.pi / 2, np.pi / 2, limit=400)[0])


def channel_bits(channel: np.ndarray, base: np.ndarray) -> float:
    """I(A;S) of a discrete score: rows of ``channel`` are the law of S in each group, ``base`` their shares."""
    joint = base[:, None] * channel
    return float((joint * np.log2(channel / joint.sum(axis=0))).sum())


def gaussian(n: int, rng: np.random.Generator, *, shift: float = 1.0) -> tuple[np.ndarray, np.ndarray, float]:
    """An even attribute that shifts a normal score."""
    a = rng.integers(0, 2, n)
    return a, rng.normal(size=n) + shift * a, shift_bits("normal", shift)


def cauchy(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """An even attribute that shifts a score without a mean."""
    a = rng.integers(0, 2, n)
    return a, rng.standard_cauchy(n) + 2.0 * a, shift_bits("cauchy", 2.0)


def grades(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Four groups of unequal size, a score of five grades."""
    base = np.array([0.5, 0.25, 0.15, 0.1])
    channel = np.array([[4, 3, 2, 1, 1], [1, 3, 3, 2, 1], [1, 1, 2, 4, 3], [1, 1, 1, 2, 5]], dtype=float)
    channel /= channel.sum(axis=1, keepdims=True)
    a = rng.choice(4, n, p=base)
    s = (rng.random(n)[:, None] > np.cumsum(channel, axis=1)[a]).sum(axis=1)
    return a, np.minimum(s, 4).astype(float), channel_bits(channel, base)


def rare(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """A group of one in twenty whose members are mostly in the lowest tenth of the score."""
    base = np.array([0.95, 0.05])
    channel = np.array([[0.1, 0.9], [0.6, 0.4]])
    a = (rng.random(n) < 0.05).astype(int)
    low = rng.random(n) < channel[a, 0]
    # Within both parts the score is the same for both groups, so only the part tells anything.
    return a, np.where(low, 0.1 * rng.random(n), 0.1 + 0.9 * rng.random(n)), channel_bits(channel, base)


def two_attributes(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Two attributes that depend on each other, a score of six values; a column for each attribute."""
    base = np.array([0.4, 0.2, 0.1, 0.3])
    channel = np.array([[5, 3, 2, 1, 1, 1], [1, 4, 3, 2, 1, 1], [1, 1, 2, 3, 4, 1], [1, 1, 1, 2, 3, 6]], dtype=float)
    channel /= channel.sum(axis=1, keepdims=True)
    both = rng.choice(4, n, p=base)
    s = (rng.random(n)[:, None] > np.cumsum(channel, axis=1)[both]).sum(axis=1)
    return np.column_stack([both // 2, both % 2]), np.minimum(s, 5).astype(float), channel_bits(channel, base)


def ten_groups(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Ten groups, each a little more likely to be in a tenth of the score of its own."""
    base, channel = np.full(10, 0.1), np.full((10, 10), 0.07) + 0.3 * np.eye(10)
    a = rng.integers(0, 10, n)
    tenth = np.where(rng.random(n) < 0.3, a, rng.integers(0, 10, n))
    return a, (tenth + rng.random(n)) / 10, channel_bits(channel, base)


def spread(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """One group has the same mean as the other and twice its spread."""
    a = (rng.random(n) < 0.3).astype(int)
    return a, rng.normal(size=n) * (1.0 + a), spread_bits()


@functools.cache
def spread_bits() -> float:
    """I(A;S) of :func:`spread`, by numerical integration."""
    from scipy import integrate, stats

    def gain(x: float) -> float:
        one, two = 0.7 * stats.norm.pdf(x), 0.3 * stats.norm.pdf(x, scale=2)
        mix = one + two
        return float(sum(p * np.log2(p / (share * mix)) for p, share in ((one, 0.7), (two, 0.3)) if p > 1e-300))

    return float(integrate.quad(gain, -20, 20, limit=400, points=[-3, 0, 3])[0])


#: Scores with known bits, by name.
SCORES = {
    "noisy copy": noisy_copy,
    "normal": gaussian,
    "normal, small shift": functools.partial(gaussian, shift=0.3),
    "cauchy": cauchy,
    "five grades, four groups": grades,
    "rare": rare,
    "two attributes, chained": two_attributes,
    "ten groups": ten_groups,
    "spread": spread,
}


def trap(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The score is a function of justified attributes, so it adds nothing to them; a weak observer errs."""
    j = rng.normal(size=(n, 4))
    f = np.sin(2 * j[:, 0]) * j[:, 1] + np.abs(j[:, 2]) * j[:, 3]
    a = (rng.random(n) < 1 / (1 + np.exp(-2 * f))).astype(int)
    return j, 1 / (1 + np.exp(-f)), a


#: Justified attributes, which are categories, the score, the attribute, and the true I(A;S|J).
Planted = tuple[np.ndarray, tuple[bool, ...], np.ndarray, np.ndarray, float]


def _drawn(logit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(len(logit)) < 1 / (1 + np.exp(-logit))).astype(int)


def made_on(n: int, rng: np.random.Generator) -> Planted:
    """The trap that the rule was made on."""
    j, s, a = trap(n, rng)
    return j, (False,) * 4, s, a, 0.0


def made_on_noisy(n: int, rng: np.random.Generator) -> Planted:
    """The same with noise in the score."""
    j, s, a = trap(n, rng)
    return j, (False,) * 4, s + 0.5 * rng.normal(size=n), a, 0.0


def linear(n: int, rng: np.random.Generator) -> Planted:
    """A linear score with noise of its own; the attribute depends on the same attributes."""
    j = rng.normal(size=(n, 3))
    return j, (False,) * 3, j @ [1.0, 0.5, 0.2] + 0.5 * rng.normal(size=n), _drawn(j @ [1.5, -1.0, 0.5], rng), 0.0


def smooth(n: int, rng: np.random.Generator) -> Planted:
    """A noiseless score of two attributes."""
    j = rng.uniform(-2, 2, size=(n, 2))
    f = np.tanh(j[:, 0]) + 0.5 * j[:, 1] ** 2
    return j, (False,) * 2, f, _drawn(3 * f - 2, rng), 0.0


def interactions(n: int, rng: np.random.Generator) -> Planted:
    """Products and steps, ten attributes of which five matter."""
    j = rng.uniform(-1, 1, size=(n, 10))
    f = 2 * j[:, 0] * j[:, 1] + (j[:, 2] > 0) * j[:, 3] + np.abs(j[:, 4])
    return j, (False,) * 10, f + 0.3 * rng.normal(size=n), _drawn(3 * f, rng), 0.0


def heavy(n: int, rng: np.random.Generator) -> Planted:
    """Attributes and noise with heavy tails."""
    j = rng.standard_t(2, size=(n, 3))
    f = np.sign(j[:, 0]) * np.log1p(np.abs(j[:, 0])) + np.tanh(j[:, 1] * j[:, 2])
    return j, (False,) * 3, f + 0.5 * rng.standard_t(2, size=n), _drawn(2 * f, rng), 0.0


def labels(n: int, rng: np.random.Generator) -> Planted:
    """Three categories, one of forty labels, each cell with an effect of its own."""
    j = np.column_stack([rng.integers(0, size, n) for size in (4, 6, 40)]).astype(float)
    fixed = np.random.default_rng(7)
    cells, place = fixed.normal(size=(4, 6)), fixed.normal(size=40)
    f = cells[j[:, 0].astype(int), j[:, 1].astype(int)] + place[j[:, 2].astype(int)]
    return j, (True,) * 3, f + 0.3 * rng.normal(size=n), _drawn(1.5 * f, rng), 0.0


def decision(n: int, rng: np.random.Generator) -> Planted:
    """The score is a decision: two values."""
    j = rng.normal(size=(n, 3))
    f = j[:, 0] + j[:, 1] * j[:, 2]
    return j, (False,) * 3, (f + 0.5 * rng.normal(size=n) > 0).astype(float), _drawn(2 * f, rng), 0.0


def three_groups(n: int, rng: np.random.Generator) -> Planted:
    """Three groups; numbers and a category."""
    j = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 5, n)])
    f = np.where(j[:, 2] > 2, j[:, 0], -j[:, 0]) + 0.5 * j[:, 1]
    logits = np.column_stack([np.zeros(n), 1.5 * f, -f + j[:, 1]])
    a = np.argmax(logits + rng.gumbel(size=(n, 3)), axis=1)
    return j, (False, False, True), f + 0.4 * rng.normal(size=n), a, 0.0


def unrelated(n: int, rng: np.random.Generator) -> Planted:
    """Nothing has to do with anything."""
    j = rng.normal(size=(n, 3))
    return j, (False,) * 3, rng.normal(size=n), rng.integers(0, 2, n), 0.0


def proxy(n: int, rng: np.random.Generator) -> Planted:
    """A column that is no justified one copies the attribute with errors; the score adds it."""
    j, a = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    return j, (False,) * 2, 0.5 * j[:, 0] + np.where(rng.random(n) < 0.15, 1 - a, a), a, 1 - binary_entropy(0.15)


def shifted(n: int, rng: np.random.Generator) -> Planted:
    """The attribute shifts a score with normal noise; products of justified attributes beside it."""
    j, a = rng.uniform(-1, 1, size=(n, 4)), rng.integers(0, 2, n)
    f = j[:, 0] + j[:, 1] * j[:, 2]
    return j, (False,) * 4, f + a + rng.normal(size=n), a, shift_bits("normal", 1.0)


def stratified(n: int, rng: np.random.Generator) -> Planted:
    """Labels with different base rates; within each the score is a copy with errors."""
    j = rng.integers(0, 4, n)
    rates = np.array([0.2, 0.4, 0.6, 0.8])
    a = (rng.random(n) < rates[j]).astype(int)
    flip = np.array([[0.8, 0.2], [0.2, 0.8]])
    truth = float(np.mean([channel_bits(flip, np.array([1 - p, p])) for p in rates]))
    return j[:, None].astype(float), (True,), np.where(rng.random(n) < 0.2, 1 - a, a).astype(float), a, truth


def whole_numbers(n: int, rng: np.random.Generator) -> Planted:
    """Justified attributes of few whole numbers; every cell has an effect of its own."""
    j = np.column_stack([rng.integers(0, 4, n), rng.poisson(2.0, n).clip(max=7)]).astype(float)
    f = np.random.default_rng(11).normal(size=(4, 8))[j[:, 0].astype(int), j[:, 1].astype(int)]
    return j, (False,) * 2, f + 0.4 * rng.normal(size=n), _drawn(2 * f, rng), 0.0


def uneven_noise(n: int, rng: np.random.Generator) -> Planted:
    """The noise of the score is up to ten times as wide for some people as for others, and says who they are."""
    j = rng.normal(size=(n, 3))
    noise = np.exp(0.8 * j[:, 1]) * rng.normal(size=n)
    return j, (False,) * 3, j[:, 0] + noise, _drawn(1.5 * j[:, 1] + np.sin(2 * j[:, 0]), rng), 0.0


def ten_columns(n: int, rng: np.random.Generator) -> Planted:
    """All of ten correlated columns count a little, for the score and for the attribute."""
    j = rng.normal(size=(n, 10)) + 0.7 * rng.normal(size=(n, 1))
    score = 1 / (1 + np.exp(-(j @ np.linspace(0.8, -0.3, 10) + 0.5 * rng.normal(size=n))))
    return j, (False,) * 10, score, _drawn(j @ np.linspace(-0.2, 0.7, 10), rng), 0.0


def one_in_twenty(n: int, rng: np.random.Generator) -> Planted:
    """A rare group, mostly where two justified attributes are both high."""
    j = rng.normal(size=(n, 3))
    f = np.minimum(j[:, 0], j[:, 1]) + 0.5 * np.abs(j[:, 2])
    return j, (False,) * 3, f + 0.4 * rng.normal(size=n), _drawn(2 * f - 3.5, rng), 0.0


def leaves(n: int, rng: np.random.Generator) -> Planted:
    """The score is a tree of justified attributes: few values, steps, no noise."""
    j = rng.uniform(size=(n, 4))
    place = 4 * (j[:, 0] > 0.3) + 2 * (j[:, 1] > 0.6) + (j[:, 2] > np.where(j[:, 0] > 0.3, 0.2, 0.7))
    f = np.array([0.1, 0.8, 0.35, 0.6, 0.9, 0.2, 0.5, 0.7])[place.astype(int)]
    return j, (False,) * 4, f, _drawn(6 * f - 3 + 2 * j[:, 3], rng), 0.0


def differences(n: int, rng: np.random.Generator) -> Planted:
    """Two columns that are nearly the same; what counts is their difference."""
    base = rng.normal(size=n)
    j = np.column_stack([base, base + 0.3 * rng.normal(size=n), rng.normal(size=n)])
    f = 3 * (j[:, 1] - j[:, 0])
    return j, (False,) * 3, f + 0.5 * j[:, 2] + 0.5 * rng.normal(size=n), _drawn(2 * f, rng), 0.0


def rounded(n: int, rng: np.random.Generator) -> Planted:
    """A probability rounded to two digits; five groups of unequal size."""
    j = np.column_stack([rng.exponential(size=n), rng.normal(size=n), rng.integers(0, 3, n)])
    f = np.log1p(j[:, 0]) * np.array([1.0, -1.0, 2.0])[j[:, 2].astype(int)] + 0.6 * j[:, 1]
    logits = np.column_stack([np.full(n, 2.0), 1.0 + f, 0.5 - f, f * j[:, 1], np.full(n, -0.5)])
    a = np.argmax(logits + rng.gumbel(size=(n, 5)), axis=1)
    return j, (False, False, True), np.round(1 / (1 + np.exp(-f - 0.5 * rng.normal(size=n))), 2), a, 0.0


def waves(n: int, rng: np.random.Generator) -> Planted:
    """A score that goes up and down quickly: hard to learn."""
    j = rng.uniform(-2, 2, size=(n, 2))
    f = np.sin(5 * j[:, 0]) + np.cos(4 * j[:, 1])
    return j, (False,) * 2, f + 0.3 * rng.normal(size=n), _drawn(2 * f, rng), 0.0


def saturated(n: int, rng: np.random.Generator) -> Planted:
    """A score cut off at both ends, so that many people have the same."""
    j = rng.normal(size=(n, 2)) * [1.0, 2.0]
    f = np.clip(j[:, 0] + 0.5 * j[:, 1] + 0.5 * rng.normal(size=n), -1, 1)
    return j, (False,) * 2, f, _drawn(1.5 * j[:, 0] - 0.7 * j[:, 1], rng), 0.0


def own_slopes(n: int, rng: np.random.Generator) -> Planted:
    """Eight labels with a slope of their own, one of the labels rare."""
    label = rng.choice(8, n, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
    x = rng.gamma(2.0, size=n)
    f = np.linspace(-1, 1, 8)[(label * 3) % 8] * x
    return np.column_stack([label, x]), (True, False), f + 0.3 * rng.normal(size=n), _drawn(2 * f, rng), 0.0


def six_columns(n: int, rng: np.random.Generator) -> Planted:
    """A probability by a logistic rule of six columns and noise; the attribute follows other weights."""
    j = rng.normal(size=(n, 6))
    score = 1 / (1 + np.exp(-j.sum(axis=1) - 0.5 * rng.normal(size=n)))
    return j, (False,) * 6, score, _drawn(j @ [1.0, 1.0, -1.0, 0.5, 0.0, 0.0], rng), 0.0


def eras(n: int, rng: np.random.Generator) -> Planted:
    """Rules that change with the year; four groups that come and go."""
    year, x = rng.integers(0, 12, n), rng.uniform(-1, 1, n)
    f = np.where(year < 4, x, np.where(year < 9, -x, x**2)) + 0.2 * rng.standard_t(4, n)
    logits = np.column_stack([x, 0.3 * (year - 6), np.where(year < 9, -x, 1.0), np.zeros(n)])
    a = np.argmax(2 * logits + rng.gumbel(size=(n, 4)), axis=1)
    return np.column_stack([year, x]).astype(float), (False,) * 2, f, a, 0.0


def hidden_column(n: int, rng: np.random.Generator) -> Planted:
    """A column that is no justified one makes the score differ within cells; the attribute has to do with it."""
    cell = rng.integers(0, 6, n)
    a = (rng.random(n) < np.linspace(0.3, 0.7, 6)[cell]).astype(int)
    channel = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    step = (rng.random(n)[:, None] > np.cumsum(channel, axis=1)[a]).sum(axis=1).clip(max=2)
    truth = float(np.mean([channel_bits(channel, np.array([1 - p, p])) for p in np.linspace(0.3, 0.7, 6)]))
    return cell[:, None].astype(float), (False,), 4.0 * cell + step, a, truth


#: Justified attributes that explain all, and others, by name.
NOTHING_USABLE: dict[str, Callable[[int, np.random.Generator], Planted]] = {
    "the trap (rule made on it)": made_on,
    "the trap with noise (rule made on it)": made_on_noisy,
    "linear": linear,
    "smooth, noiseless": smooth,
    "interactions, 10 columns": interactions,
    "heavy tails": heavy,
    "labels, one of 40": labels,
    "a decision": decision,
    "three groups": three_groups,
    "unrelated": unrelated,
}
#: The same, made after the rule: they had no part in shaping it.
NOTHING_USABLE_LATER: dict[str, Callable[[int, np.random.Generator], Planted]] = {
    "whole numbers": whole_numbers,
    "uneven noise": uneven_noise,
    "ten columns that all count": ten_columns,
    "one in twenty": one_in_twenty,
    "leaves of a tree": leaves,
    "differences of columns": differences,
    "rounded, five groups": rounded,
    "quick waves": waves,
    "saturated": saturated,
    "own slopes": own_slopes,
    "six columns, logistic": six_columns,
    "eras": eras,
}
SOMETHING_USABLE: dict[str, Callable[[int, np.random.Generator], Planted]] = {
    "proxy": proxy,
    "shifted": shifted,
    "stratified": stratified,
    "hidden column": hidden_column,
}


def groups_of(codes: np.ndarray, name: str = "group") -> Grouping:
    """Any number of groups."""
    codes = np.asarray(codes, dtype=np.int64)
    return Grouping(name, tuple(f"g{i}" for i in range(int(codes.max()) + 1)), codes)
