"""Bits of words, and what they must exceed (METHOD.md 19).

A cue (a name, a pronoun) carries more than the group that it stands for. So every combination of protected values is
put into words in several ways, its realisations, and a twin's score is the mean over them. Three nulls say how many
bits come about where nothing protected differs:

- *asked again*: the same prompts, asked twice;
- *another realisation*: two disjoint halves of the realisations of one combination. Half their difference varies as the
  mean over all of them does, so these differences, one for each combination, stand in for a person's twins;
- *a neutral word*: words that say nothing about the person, averaged as the cues are.

Words are the same for all people, and so is how they are divided: what one odd name does to everybody is one accident.
Bits are claimed above the largest null only, by a bootstrap that draws people and divides realisations at once. They
are counted at a tolerance that null twins do not exceed (METHOD.md 12): where words alone make classes, many classes
say nothing, but scores that lie further apart than words move them do. Where that claims nothing, words are dealt to
the combinations by lot: bits are also claimed where twins hardly ever lie as far apart then.

Families are asked one by one: explicit words, pronouns and names disagree in size, and even in direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Doubles
from fairbits.errors import OptionError
from fairbits.functions import normal_quantile, student_quantile
from fairbits.language import Chat, TextModel, Wording
from fairbits.measure.bits import DEFAULT_EPSILON, sweeps
from fairbits.measure.intervals import Estimate
from fairbits.randomness import generator, sampled_rows
from fairbits.subject import Subject
from fairbits.text import number, percent

#: Draws of a bootstrap, and the level of its interval: a claim is wrong about once in 200 times.
DRAWS, LEVEL = 1000, 0.99
#: Realisations from which on bits can be claimed: of four groups in two words each, one in seven would be claimed
#: wrongly, in four words one in thirty. From the second figure on, what realisations share can be taken away.
ENOUGH, MANY = 4, 8
#: Null twins that lie apart by no more than the tolerance.
LEVEL_OF_SPANS = 0.995
#: What null twins usually stay below.
USUAL = 0.95
AGAIN, REALISATION, NEUTRAL = "asked again", "another realisation", "a neutral word"


@dataclass(frozen=True, slots=True)
class NullBits:
    """Bits where nothing protected differs.

    Parameters
    ----------
    null
        Which of the three.
    bits
        On average over people and draws; None where it could not be asked.
    high
        What 95 % of the draws stay below.
    reason
        Why it could not be asked.
    """

    null: str
    bits: float | None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WordBits:
    """Bits of one family of cues.

    Parameters
    ----------
    bits
        Mean over people, with an interval over them.
    nulls
        The three nulls.
    tolerance
        ε, or what the scores of null twins never differ by, where that is more.
    above
        Bits at this tolerance above the largest null, with an interval; None without a null by other realisations.
    claimed
        Whether that interval lies above 0, and there are enough realisations to say so.
    chance
        How often twins lie as far apart when words are dealt to the combinations by lot, where the claim rests on that;
        the interval then draws people alone.
    """

    bits: Estimate
    nulls: tuple[NullBits, ...]
    tolerance: float
    above: Estimate | None
    claimed: bool
    chance: float | None = None


def word_bits(
    scores: Sequence[Doubles],
    rng: np.random.Generator,
    *,
    again: tuple[Sequence[Doubles], Sequence[Doubles]] | None = None,
    neutral: Doubles | None = None,
    epsilon: float = DEFAULT_EPSILON,
    draws: int = DRAWS,
) -> WordBits:
    """Bits of people, and those above the largest null.

    Parameters
    ----------
    scores
        For each combination the scores of all people by its realisations, (people, realisations).
    rng
        What is drawn, by it.
    again
        The answers about some people as in ``scores``, first and second.
    neutral
        Scores of all people by neutral word, (people, words).
    epsilon
        Scores closer than this count as the same.
    draws
        Of the bootstrap.
    """
    count = min(one.shape[1] for one in scores)
    scores = [one[:, :count] for one in scores]
    twins = np.stack([one.mean(axis=1) for one in scores], axis=1)
    middle = twins.mean(axis=1)[None, :, None]
    chosen = rng.integers(0, len(twins), (draws, len(twins)))
    nulls: dict[str, Doubles] = {}  # scores of null twins, (draws, people, twins)
    reasons = {
        AGAIN: "the model was asked once",
        REALISATION: "a combination has one realisation only",
        NEUTRAL: "the family has fewer than two neutral words",
    }
    if again is not None:
        first, second = ([one[:, :count] for one in some] for some in again)
        nulls[AGAIN] = _again(first, second, rng, draws)
    if count > 1:
        # What the means over realisations may lie off by, from their division into halves by lot.
        halves = [half_signs(count, rng, draws) @ one.T for one in _own_parts(scores)]
        nulls[REALISATION] = middle + np.stack(halves, axis=2)
    if neutral is not None and neutral.shape[1] > 1:
        nulls[NEUTRAL] = middle + _neutral(neutral, twins.shape[1], count, rng, draws)
    means = {name: _resampled(_bits(one, epsilon), chosen) for name, one in nulls.items()}
    said = tuple(
        NullBits(name, float(means[name].mean()), float(np.quantile(means[name], 0.95)))
        if name in means
        else NullBits(name, None, reason=reason)
        for name, reason in reasons.items()
    )
    found = _bits(twins, epsilon)
    bits = Estimate(float(found.mean()), *_ends(found[chosen].mean(axis=1), 0.95))
    if REALISATION not in nulls:
        return WordBits(bits, said, epsilon, None, claimed=False)
    freedom = {AGAIN: 1e9, REALISATION: _freedom(scores), NEUTRAL: 0.0 if neutral is None else neutral.shape[1] - 1.0}
    tolerance = max(epsilon, *(_never(np.ptp(one, axis=2), freedom[name]) for name, one in nulls.items()))
    found = _bits(twins, tolerance)
    largest = max((_resampled(_bits(one, tolerance), chosen) for one in nulls.values()), key=lambda one: one.mean())
    above = Estimate(float(found.mean() - largest.mean()), *_ends(found[chosen].mean(axis=1) - largest, LEVEL))
    plain = WordBits(bits, said, tolerance, above, claimed=above.low > 0 and count >= ENOUGH)
    if plain.claimed or count < ENOUGH:
        return plain
    dealt, chance = _dealt(scores, rng, draws)
    return _by_lot(twins, {**nulls, REALISATION: dealt}, chance, chosen, epsilon, plain)


def _by_lot(
    twins: Doubles,
    nulls: Mapping[str, Doubles],
    chance: float,
    chosen: npt.NDArray[np.int64],
    epsilon: float,
    plain: WordBits,
) -> WordBits:
    """A claim that rests on words dealt to the combinations by lot; ``plain``, which claims nothing, without one.

    Where a model knows words and no groups, the words as they stand are one such deal among the others, whatever the
    law of what words do (Fisher's exact test, 1935): a few odd words do not hide a group here, as they do where their
    spread is taken for a normal law's. How far twins lie apart is compared for everybody together, and must be more
    than what the other nulls usually make. It must be as rare, too, by what the words of each combination scatter
    (``chance``): where those of one scatter more than those of others, a deal spreads its odd words over all.
    """
    spans = {name: np.ptp(one, axis=2) for name, one in nulls.items()}
    apart = float(np.ptp(twins, axis=1).mean()) - 1e-12
    as_far = {name: float((1 + (one.mean(axis=1) >= apart).sum()) / (1 + len(one))) for name, one in spans.items()}
    tolerance = max(epsilon, *(float(np.quantile(one, USUAL)) for one in spans.values()))
    found = _bits(twins, tolerance)
    null = max(float(_bits(one, tolerance).mean()) for one in nulls.values())
    above = Estimate(float(found.mean()) - null, *_ends(found[chosen].mean(axis=1) - null, LEVEL))
    chance = max(chance, as_far[REALISATION])
    if chance > (1 - LEVEL) / 2 or max(as_far.values()) > 1 - USUAL or above.low <= 0:
        return plain
    return replace(plain, tolerance=tolerance, above=above, claimed=True, chance=chance)


def _never(spans: Doubles, freedom: float) -> float:
    """What null twins practically never lie apart by: the usual 95 %, widened as Student did (1908) for few words."""
    wide = student_quantile(freedom, (1 + LEVEL_OF_SPANS) / 2)
    return float(np.quantile(spans, 0.95) * wide / normal_quantile(0.975))


def _bits(scores: Doubles, epsilon: float) -> Doubles:
    """log2 k of people, over the last axis of scores."""
    flat = np.ascontiguousarray(scores.reshape(-1, scores.shape[-1]))
    return np.log2(sweeps(flat, epsilon)[0].max(axis=1) + 1).reshape(scores.shape[:-1])


def _own_parts(scores: Sequence[Doubles]) -> list[Doubles]:
    """What realisations do beyond what the realisation of that number does in all combinations.

    "The woman" and "the man" share their article, which moves no twin away from another; unrelated names share nothing,
    and are scaled so that they vary as before.
    """
    if scores[0].shape[1] < MANY:
        return list(scores)
    whole = np.stack(scores)
    return list((whole - whole.mean(axis=0)) * np.sqrt(len(whole) / (len(whole) - 1)))


def _freedom(scores: Sequence[Doubles]) -> float:
    """Degrees of freedom of what realisations do by themselves; few where one combination's do most (Welch, 1947)."""
    scatter = np.array([one.mean(axis=0).var() for one in _own_parts(scores)]) + 1e-12
    apart = len(scores) - 1 if scores[0].shape[1] >= MANY else len(scores)
    return float((scores[0].shape[1] - 1) * scatter.mean() ** 2 / (scatter**2).mean() * apart)


def half_signs(count: int, rng: np.random.Generator, draws: int) -> Doubles:
    """Weights of values by which their sum is a difference of disjoint halves that varies as their mean does.

    With halves of a and b values, n in all, the difference of their means is scaled by √(ab)/n: its variance is then
    that of one value divided by n.
    """
    first = count // 2
    rest = count - first
    scale = np.sqrt(first * rest) / count
    weights = np.r_[np.full(first, scale / first), np.full(rest, -scale / rest)]
    return rng.permuted(np.tile(weights, (draws, 1)), axis=1) * rng.choice([-1.0, 1.0], (draws, 1))


def _dealt(scores: Sequence[Doubles], rng: np.random.Generator, draws: int) -> tuple[Doubles, float]:
    """Twins whose words were dealt to the combinations by lot, (draws, people, twins), and how often combinations are
    then as far apart as they are, by what their own words scatter."""
    words = np.concatenate(scores, axis=1).T
    order = rng.permuted(np.tile(np.arange(len(words)), (draws, 1)), axis=1)
    twins = np.stack([words[part].mean(axis=1) for part in np.split(order, len(scores), axis=1)], axis=2)
    dealt = words.mean(axis=1)[np.vstack([np.arange(len(words)), order])].reshape(draws + 1, len(scores), -1)
    means, weights = dealt.mean(axis=2), 1 / (dealt.var(axis=2) + 1e-12)
    middle = np.average(means, axis=1, weights=weights, keepdims=True)
    apart = (weights * (means - middle) ** 2).sum(axis=1)  # Welch (1951); of the words as they stand first
    return twins, float((apart >= apart[0] * (1 - 1e-9)).mean())


def _again(first: Sequence[Doubles], second: Sequence[Doubles], rng: np.random.Generator, draws: int) -> Doubles:
    """Twins that differ only by what the same prompts were answered the second time, (draws, people, twins)."""
    noise = []
    for one, other in zip(first, second, strict=True):
        signs = rng.choice([-1.0, 1.0], (draws, *one.shape))
        noise.append((signs * (one - other) / np.sqrt(2)).mean(axis=2))
    middle = np.mean([one.mean(axis=1) for one in first], axis=0)
    return middle[None, :, None] + np.stack(noise, axis=2)


def _neutral(neutral: Doubles, twins: int, count: int, rng: np.random.Generator, draws: int) -> Doubles:
    """Means over as many neutral words as a combination has realisations, drawn by lot, (draws, people, twins)."""
    words = neutral.shape[1]
    centred = (neutral - neutral.mean(axis=1, keepdims=True)) * np.sqrt(words / (words - 1))
    found = [centred[:, rng.integers(0, words, (draws, count))].mean(axis=2).T for _ in range(twins)]
    return np.stack(found, axis=2)


def _resampled(bits: Doubles, chosen: npt.NDArray[np.int64]) -> Doubles:
    """Mean bits of each draw over the people drawn; fewer people than were asked about stand for all."""
    if bits.shape[1] != chosen.shape[1]:
        chosen = chosen[:, : bits.shape[1]] % bits.shape[1]
    return np.asarray(np.take_along_axis(bits, chosen, axis=1).mean(axis=1))


def _ends(values: Doubles, level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


#: People that families are asked about, and those who are asked about twice.
PEOPLE, TWICE = 100, 10


@dataclass(frozen=True, slots=True)
class TextPair:
    """The same person in the words of two combinations.

    Parameters
    ----------
    values
        The protected values of the lower and the higher one.
    texts
        One realisation of each.
    scores
        The means over their realisations.
    """

    values: tuple[str, str]
    texts: tuple[str, str]
    scores: tuple[float, float]


@dataclass(frozen=True, slots=True)
class FamilyBits:
    """One family of cues.

    Parameters
    ----------
    family
        What the audit file calls it.
    cues
        The files that its words come from.
    attributes
        What they speak of.
    people, twins, realisations
        How many people were asked about, under how many combinations, in at least how many realisations each that
        share no word.
    found
        Bits, nulls, and what is claimed.
    means
        The mean score of each combination over people.
    pair
        The person whose twins lie furthest apart, in two texts.
    """

    family: str
    cues: tuple[str, ...]
    attributes: tuple[str, ...]
    people: int
    twins: int
    realisations: int
    found: WordBits
    means: dict[str, float]
    pair: TextPair

    def sentence(self, epsilon: float) -> str:
        """What is claimed, in a sentence; ``epsilon`` is the tolerance that was asked for."""
        bits, above = self.found.bits, self.found.above
        words = f"{self.family}: {number(bits.value, 2)} bits of {', '.join(self.attributes)} on average"
        if above is None:
            return f"{words}; nothing is claimed: with one realisation, the word and the group cannot be told apart."
        few = "" if self.realisations >= ENOUGH else f", with fewer than {ENOUGH} realisations"
        largest = max((null for null in self.found.nulls if null.bits is not None), key=lambda one: one.bits or 0)
        null = f"{number(largest.bits, 2)} by {largest.null} alone" if largest.bits else "none by the nulls"
        wide = self.found.tolerance
        apart = f", among scores further apart than {wide:.2g}" if wide > epsilon else ""
        ends = f"99 % interval {number(above.low, 2)} to {number(above.high, 2)}"
        verdict = "claimed" if self.found.claimed else f"nothing is claimed{few}"
        if self.found.chance is not None:
            verdict += f", since words dealt by lot set twins as far apart in {percent(self.found.chance)} of deals"
        return f"{words}, {null}; {number(above.value, 2)} above the nulls{apart} ({ends}): {verdict}."


@dataclass(frozen=True, slots=True)
class WordStudy:
    """All families of a decider about texts.

    Parameters
    ----------
    prompt
        One text in full, as it is asked.
    system
        What stands before it, for a language model.
    families
        In the order of the audit file.
    epsilon
        Scores closer than this count as the same.
    notes
        What a language model was asked for.
    """

    prompt: str
    system: str
    families: tuple[FamilyBits, ...]
    epsilon: float
    notes: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """What is claimed about each family."""
        return tuple(one.sentence(self.epsilon) for one in self.families)


def text_model(subject: Subject) -> TextModel | None:
    """The model of a subject about texts; None of any other."""
    model = getattr(subject.model, "original", subject.model)
    return model if isinstance(model, TextModel) else None


def study_words(
    subject: Subject, *, epsilon: float | None = None, seed: int = 0, progress: Callable[[str], None] | None = None
) -> WordStudy:
    """Bits above the nulls, family by family."""
    model = text_model(subject)
    if model is None:
        raise OptionError(f"{subject.name!r} decides about rows and not about texts; it has no families of cues.")
    people = _people(subject)
    rng = generator(seed, "words")
    found = []
    for wording in model.wordings.values():
        if progress is not None:
            progress(f"the words of {wording.family}")
        found.append(_family(model, wording, people, epsilon or DEFAULT_EPSILON, rng))
    decider = model.decider
    system = decider.chat.system if isinstance(decider, Chat) else ""
    notes = decider.notes() if isinstance(decider, Chat) else ()
    return WordStudy(model.text_of(people[0], 0), system, tuple(found), epsilon or DEFAULT_EPSILON, notes)


def _people(subject: Subject) -> Codes:
    """One row of some of the people, whatever their protected values."""
    codes, person = subject.table.codes, subject.table.person
    own = np.arange(len(codes)) if person is None else np.sort(np.unique(person, return_index=True)[1])
    _, first = np.unique(codes[own][:, subject.schema.free_columns], axis=0, return_index=True)
    first = own[np.sort(first)]
    return np.asarray(codes[first[sampled_rows(len(first), PEOPLE, np.random.default_rng(0))]])


def _family(model: TextModel, wording: Wording, people: Codes, epsilon: float, rng: np.random.Generator) -> FamilyBits:
    words = wording.words
    lists = [*words, *([wording.neutral] if len(wording.neutral) > 1 else [])]
    scores = model.realised(wording, people, lists)
    few = people[:TWICE]
    again = model.realised(wording, few, words, again=1)
    neutral = scores[len(words)] if len(lists) > len(words) else None
    scores = scores[: len(words)]
    own, own_first, own_again = (
        [_by_word(one, count) for one, count in zip(some, wording.unshared, strict=True)]
        for some in (scores, [one[: len(few)] for one in scores], again)
    )
    found = word_bits(own, rng, again=(own_first, own_again), neutral=neutral, epsilon=epsilon)
    twins = np.stack([one.mean(axis=1) for one in scores], axis=1)
    labels = [", ".join(one.values()) for one in wording.combinations]
    furthest = int(np.argmax(np.ptp(twins, axis=1)))
    low, high = int(np.argmin(twins[furthest])), int(np.argmax(twins[furthest]))
    high = (low + 1) % len(words) if high == low else high
    pair = TextPair(
        (labels[low], labels[high]),
        (model.text_of(people[furthest], low, 0, wording), model.text_of(people[furthest], high, 0, wording)),
        (float(twins[furthest, low]), float(twins[furthest, high])),
    )
    return FamilyBits(
        wording.family,
        tuple(one.name for one in wording.slots.values()),
        tuple(wording.values),
        len(people),
        len(words),
        min(wording.unshared),
        found,
        dict(zip(labels, twins.mean(axis=0).tolist(), strict=True)),
        pair,
    )


def _by_word(scores: Doubles, count: int) -> Doubles:
    """Means over realisations that share the word of the slot with the fewest, (people, count)."""
    return np.stack([scores[:, first::count].mean(axis=1) for first in range(count)], axis=1)


def planned_requests(subject: Subject) -> tuple[list[str], int]:
    """Three texts, and how many requests measuring everybody and all families takes beyond answers that are kept."""
    model = text_model(subject)
    if model is None:
        raise OptionError(f"{subject.name!r} decides about rows and not about texts; there are no prompts to show.")
    people = _people(subject)
    shown = [model.text_of(people[0], place, wording=each) for each in model.wordings.values() for place in (0, -1)]
    shown.append(model.text_of(people[-1], 0))
    texts, twice = [], []
    rows = np.unique(subject.table.codes[:, model.schema.free_columns], axis=0, return_index=True)[1]
    for place, wording in enumerate(model.wordings.values()):
        whole = subject.table.codes[np.sort(rows)] if place == 0 else people
        formats = wording.formats(model.decoder, whole)
        words = [one for group in wording.words for one in group]
        neutral = wording.neutral if len(wording.neutral) > 1 else []
        texts += [text % one for text in formats for one in words]
        texts += [text % one for text in wording.formats(model.decoder, people) for one in neutral]
        twice += [text % one for text in wording.formats(model.decoder, people[:TWICE]) for one in words]
    decider = model.decider
    if not isinstance(decider, Chat):
        return shown[:3], len(set(texts)) + len(twice)
    return shown[:3], decider.missing(texts) + decider.missing(twice, again=1)
