"""What a decider about texts makes of each family of cues, with the three nulls beside it (METHOD.md 19).

Families are asked one by one: explicit words, pronouns and names disagree in size, and even in direction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairbits.domain import Codes
from fairbits.errors import OptionError
from fairbits.language import Chat, TextModel, Wording
from fairbits.measure.bits import DEFAULT_EPSILON
from fairbits.measure.nulls import ENOUGH, WordBits, word_bits
from fairbits.randomness import generator, sampled_rows
from fairbits.text import number, percent

if TYPE_CHECKING:
    from fairbits.subject import Subject

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
    model: Any = subject.model
    model = getattr(model, "original", model)
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
    """Some of the people, whatever their protected values."""
    codes = subject.table.codes
    _, first = np.unique(codes[:, subject.schema.free_columns], axis=0, return_index=True)
    first = np.sort(first)
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


def _by_word(scores: np.ndarray[Any, np.dtype[np.float64]], count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Means over realisations that share the word of the slot with the fewest, (people, count)."""
    return np.stack([scores[:, first::count].mean(axis=1) for first in range(count)], axis=1)


def planned_requests(subject: Subject) -> tuple[list[str], int]:
    """Three texts, and how many requests measuring everybody and all families takes beyond answers that are kept."""
    model = text_model(subject)
    if model is None:
        raise OptionError(f"{subject.name!r} decides about rows and not about texts; there are no prompts to show.")
    people = _people(subject)
    shown = [model.text_of(people[0], place, wording=each) for each in model.wordings.values() for place in (0, -1)]
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
