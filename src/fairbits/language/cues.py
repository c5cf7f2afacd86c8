"""Families of cues: the words by which a text says, or lets one guess, a protected value.

A family is a small file. CSV: a column for each attribute, then ``word``, then further forms of the word, if it has
any, and ``weight``; a row for each word. TOML: a section for the attribute with a list of words, or words with weights,
for each value. Words of the value ``neutral`` say nothing about the person. Ours are in ``cues/``; their sources are in
NOTICE. Weights say how likely a word is drawn where a family has more than are asked for.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.errors import SchemaError, choose_from
from fairbits.randomness import generator

#: The value of words that say nothing about the person.
NEUTRAL = "neutral"
#: Bytes of a file of cues, at most.
MAX_BYTES = 1_000_000
_HOME = Path(__file__).parent / "cues"
#: The families that come with fairbits.
BUILT_IN = tuple(sorted(path.stem for path in _HOME.glob("*.csv")))


@dataclass(frozen=True, slots=True)
class Cue:
    """A word that stands for protected values, with its further forms by name."""

    values: tuple[str, ...]
    forms: Mapping[str, str]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class CueFamily:
    """The cues of one file: which attributes they speak of, and in which words."""

    name: str
    attributes: tuple[str, ...]
    cues: tuple[Cue, ...]
    neutral: tuple[Cue, ...] = ()

    def values(self, attribute: str) -> tuple[str, ...]:
        """The values of an attribute that the family has words for, in its order."""
        place = self.attributes.index(attribute)
        return tuple(dict.fromkeys(cue.values[place] for cue in self.cues))

    def only(self, attributes: Sequence[str]) -> CueFamily:
        """The same words, for some of the attributes: whatever they say about the others is mixed."""
        places = [self.attributes.index(name) for name in attributes]
        cues = tuple(Cue(tuple(cue.values[i] for i in places), cue.forms, cue.weight) for cue in self.cues)
        return CueFamily(self.name, tuple(attributes), cues, self.neutral)

    def drawn(self, values: Mapping[str, str], count: int) -> list[Mapping[str, str]]:
        """The words for some values, at most so many; by their weights, and always the same ones."""
        wanted = tuple(values[name] for name in self.attributes)
        found = [cue for cue in self.cues if cue.values == wanted]
        if not found:
            said = ", ".join(f"{name} {value}" for name, value in zip(self.attributes, wanted, strict=True))
            raise SchemaError(f"the cues {self.name!r} have no word for {said}; add one, or leave that value out.")
        return _drawn(found, count, f"{self.name} {wanted}")

    def drawn_neutral(self, count: int) -> list[Mapping[str, str]]:
        """The neutral words, at most so many."""
        return _drawn(self.neutral, count, self.name)


def _drawn(cues: Sequence[Cue], count: int, name: str) -> list[Mapping[str, str]]:
    if len(cues) <= count:
        return [cue.forms for cue in cues]
    weights = np.array([cue.weight for cue in cues])
    rng = generator(0, f"cues {name}")
    chosen = rng.choice(len(cues), count, replace=False, p=weights / weights.sum())
    return [cues[i].forms for i in sorted(chosen)]


def combinations(families: Iterable[CueFamily]) -> dict[str, tuple[str, ...]]:
    """The values of all attributes that some families speak of; families that share one must agree."""
    found: dict[str, tuple[str, ...]] = {}
    for family in families:
        for name in family.attributes:
            mine = family.values(name)
            if set(found.setdefault(name, mine)) != set(mine):
                raise SchemaError(
                    f"the cues {family.name!r} have other values of {name!r} ({', '.join(mine)}) than those beside "
                    f"them ({', '.join(found[name])}); use files with the same values."
                )
    return found


def each_combination(values: Mapping[str, tuple[str, ...]]) -> list[dict[str, str]]:
    """Every combination of values, the last attribute changing fastest, as twins are ordered."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def read_cues(source: Any, folder: Path, slot: str) -> CueFamily:
    """The family that an audit file names for a slot: a built-in one, a file beside it, or its words themselves."""
    if isinstance(source, Mapping):
        return _of_document(source, slot)
    if not isinstance(source, str):
        raise SchemaError(f"the cues of {slot!r} are {str(source)[:40]!r}; name a family or a file, or list words.")
    suffix = Path(source).suffix.lower()
    if suffix not in (".csv", ".toml"):
        if source not in BUILT_IN:
            remedy = choose_from(source, BUILT_IN)
            raise SchemaError(f"the cues {source!r} are neither built in nor a .csv or .toml file; {remedy}")
        return _of_csv((_HOME / f"{source}.csv").read_text(encoding="utf-8"), source)
    path = folder / source
    if not path.is_file():
        raise SchemaError(f"the file of cues {str(path)!r} does not exist; check its path.")
    if path.stat().st_size > MAX_BYTES:
        raise SchemaError(f"the file of cues {str(path)!r} has more than {MAX_BYTES:,} bytes; keep fewer words.")
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SchemaError(f"the file of cues {str(path)!r} is no text in UTF-8; save it as that.") from None
    if suffix == ".csv":
        return _of_csv(content, source)
    import tomllib

    try:
        document = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the file of cues {str(path)!r} is not valid TOML: {error}.") from None
    return _of_document(document, source)


def _of_csv(content: str, name: str) -> CueFamily:
    rows = [row for row in csv.reader(io.StringIO(content)) if row]
    head = [cell.strip() for cell in rows[0]] if rows else []
    if "word" not in head or head[0] == "word":
        raise SchemaError(
            f"the cues {name!r} need a header with a column for each attribute, and then word, e.g. sex,word."
        )
    place = head.index("word")
    attributes = tuple(head[:place])
    cues = []
    for line, row in enumerate(rows[1:], 2):
        cells = dict(zip(head, (cell.strip() for cell in row), strict=False))
        empty = next((one for one in head if not cells.get(one) and one != "weight"), None)
        if empty is not None:
            raise SchemaError(
                f"the cues {name!r} have nothing under {empty!r} in line {line}; fill it, or drop the line."
            )
        forms = {one: cells[one] for one in head[place:] if one != "weight"}
        cues.append(Cue(tuple(cells[one] for one in attributes), forms, _weight(cells.get("weight") or 1, name)))
    return _family(name, attributes, cues)


def _of_document(document: Mapping[str, Any], name: str) -> CueFamily:
    if len(document) != 1 or not isinstance(next(iter(document.values())), Mapping):
        raise SchemaError(
            f'the cues {name!r} need one section, named after their attribute, e.g. [sex] with woman = ["Ann"].'
        )
    ((attribute, values),) = document.items()
    cues = []
    for value, stated in values.items():
        words = stated if isinstance(stated, Mapping) else dict.fromkeys(stated if isinstance(stated, list) else (), 1)
        if not str(value).strip() or not words or not all(isinstance(word, str) and word.strip() for word in words):
            raise SchemaError(
                f'the cues {name!r} have no words for {value!r}; write e.g. {value or "woman"} = ["Ann"].'
            )
        cues += [Cue((value,), {"word": word}, _weight(weight, name)) for word, weight in words.items()]
    return _family(name, (attribute,), cues)


def _weight(value: Any, name: str) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 < found < 1e12:
        raise SchemaError(f"the cues {name!r} have the weight {str(value)[:20]!r}; it must be a number above 0.")
    return found


def _family(name: str, attributes: tuple[str, ...], cues: Sequence[Cue]) -> CueFamily:
    plain = tuple(cue for cue in cues if NEUTRAL not in cue.values)
    family = CueFamily(name, attributes, plain, tuple(cue for cue in cues if NEUTRAL in cue.values))
    for attribute in attributes:
        if len(family.values(attribute)) < 2:
            raise SchemaError(f"the cues {name!r} have fewer than two values of {attribute!r}; twins need two.")
    return family
