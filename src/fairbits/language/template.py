"""How a person becomes texts: a template with slots, filled from the table and by the cues of one family.

``{amount}`` is a column of the table, or a slot that cues fill; ``{pronoun.object}`` is another form of the cue in the
slot ``pronoun``, and ``{Pronoun}`` the same with a capital letter. Instead of one template there may be a column of
texts: the words in it that are cues of the family become slots, a template for each row.

Texts are made in two steps, because a person has many twins, each in several words: the table's values are put in
once, and the words of the cues then go into what is left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Schema
from fairbits.errors import SchemaError, choose_from
from fairbits.language.cues import CueFamily, combinations, each_combination

#: Realisations of a combination, where the family has as many.
REALISATIONS = 8
#: Letters of a template, at most.
MAX_LETTERS = 100_000
Piece = Literal["text", "column", "slot"]
Template = tuple[tuple[Piece, str], ...]
#: The words of one realisation, by slot and form: what the second step puts in.
Words = Mapping[str, str]


def read_template(text: str, columns: Sequence[str], slots: Sequence[str]) -> Template:
    """The pieces of a template: what is text, a column of the table, or a slot of cues."""
    if len(text) > MAX_LETTERS:
        raise SchemaError(f"the template has {len(text):,} letters; at most {MAX_LETTERS:,} can be asked.")
    try:
        pieces = list(Formatter().parse(text))
    except ValueError as error:
        raise SchemaError(f"the template is wrong: {error}; write {{{{ and }}}} for braces that are no slot.") from None
    found: list[tuple[Piece, str]] = []
    for literal, field, more, conversion in pieces:
        found.append(("text", literal))
        if field is None:
            continue
        name = field.partition(".")[0]
        if more or conversion:
            raise SchemaError(f"the template has the slot {field!r} with a format; write {{{field}}} alone.")
        if field in columns:
            found.append(("column", field))
        elif name in slots or f"{name[:1].lower()}{name[1:]}" in slots:
            found.append(("slot", field))
        else:
            known = [*slots, *columns]
            raise SchemaError(f"the template has the unknown slot {field!r}; {choose_from(field, known)}")
    return tuple(found)


def _spelled(slots: Mapping[str, Mapping[str, str]]) -> Words:
    """The words of a realisation by the names that templates call them."""
    found = {}
    for slot, forms in slots.items():
        for form, word in forms.items():
            name = slot if form == "word" else f"{slot}.{form}"
            found[name] = word
            found[f"{name[:1].upper()}{name[1:]}"] = f"{word[:1].upper()}{word[1:]}"
    return found


@dataclass(frozen=True)
class Wording:
    """The words of one family, and the templates that they go into.

    There is one ``template`` for everybody, or a text for each label of the attribute ``column``, in which the first
    step is done already.
    """

    family: str
    slots: Mapping[str, CueFamily]
    template: Template = ()
    column: str | None = None
    texts: tuple[str, ...] = ()
    realisations: int = REALISATIONS

    def __post_init__(self) -> None:
        needed = [field for piece, field in self.template if piece == "slot"]
        unknown = next((field for field in needed if field not in self.words[0][0]), None)
        if unknown is not None:
            known = [name for name in self.words[0][0] if name[:1].islower()]
            raise SchemaError(f"the cues of {self.family!r} have no {unknown!r}; {choose_from(unknown, known)}")
        said = {f"{field[:1].lower()}{field[1:]}".partition(".")[0] for field in needed}
        silent = next((slot for slot in self.slots if self.template and slot not in {*needed, *said}), None)
        if silent is not None:
            raise SchemaError(
                f"the template of {self.family!r} has no slot {{{silent}}}, so its cues would never be said; write it "
                f"into the template, or leave {silent!r} out of the family."
            )

    @property
    def columns(self) -> list[str]:
        """The columns of the table that the template takes."""
        return [name for piece, name in self.template if piece == "column"]

    @cached_property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The protected values that the family has words for, by attribute."""
        return combinations(self.slots.values())

    @cached_property
    def combinations(self) -> list[dict[str, str]]:
        """Every combination of protected values, in the order of twins."""
        return each_combination(self.values)

    @cached_property
    def words(self) -> list[list[Words]]:
        """The realisations of each combination; a slot with fewer words begins again."""
        return [
            _together({slot: family.drawn(one, self.realisations) for slot, family in self.slots.items()})
            for one in self.combinations
        ]

    @cached_property
    def unshared(self) -> list[int]:
        """How many realisations of each combination share no word, where some slot has fewer words than another.

        A single word, such as a pronoun, counts as the group itself.
        """
        counts = [
            [len(one.drawn(values, self.realisations)) for one in self.slots.values()] for values in self.combinations
        ]
        return [min((count for count in some if count > 1), default=1) for some in counts]

    @cached_property
    def neutral(self) -> list[Words]:
        """The realisations that say nothing about the person; none where a slot has no neutral word."""
        return _together({slot: family.drawn_neutral(self.realisations) for slot, family in self.slots.items()})

    def formats(self, decoder: Decoder, codes: Codes) -> list[str]:
        """The first step for people: their own values are in, the words of cues are not."""
        if self.column is not None:
            return [self.texts[int(code)] for code in codes[:, decoder.names.index(self.column)]]
        columns = {column.name: column for column in decoder.columns}
        order = self.columns
        template = "".join(
            "%s" if piece == "column" else f"%%({text})s" if piece == "slot" else text.replace("%", "%%%%")
            for piece, text in self.template
        )
        values = {
            name: [str(one).replace("%", "%%") for one in decoder.values(columns[name], codes).tolist()]
            for name in set(order)
        }
        if not order:
            return [template % ()] * len(codes)
        return [template % row for row in zip(*(values[name] for name in order), strict=True)]

    def places(self, schema: Schema, codes: Codes) -> npt.NDArray[np.int64]:
        """Which combination each row of codes has."""
        found = np.zeros(len(codes), dtype=np.int64)
        for name, values in self.values.items():
            order = np.array([values.index(label) for label in schema[name].labels])
            found = found * len(values) + order[codes[:, schema.column(name)].astype(np.int64)]
        return found


def _together(slots: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Words]:
    count = max(map(len, slots.values())) if all(slots.values()) else 0
    return [_spelled({slot: found[i % len(found)] for slot, found in slots.items()}) for i in range(count)]


def templates_of_texts(texts: Sequence[str], family: CueFamily) -> tuple[list[str], list[tuple[str, ...] | None]]:
    """Texts whose cues became slots, and the values that their words stand for.

    None of a text that has no word of the family, or words that stand for different values.
    """
    spelled: dict[str, tuple[tuple[str, ...], str]] = {}
    for cue in family.cues:
        for form, word in cue.forms.items():
            spelled.setdefault(word.lower(), (cue.values, form))
    known = "|".join(re.escape(word) for word in sorted(spelled, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{known})(?!\w)", re.IGNORECASE)
    templates, values = [], []
    for text in texts:
        found: set[tuple[str, ...]] = set()

        def slot(match: re.Match[str], found: set[tuple[str, ...]] = found) -> str:
            value, form = spelled[match[0].lower()]
            found.add(value)
            name = "word" if form == "word" else f"word.{form}"
            return f"%({name.capitalize() if match[0][:1].isupper() else name})s"

        templates.append(pattern.sub(slot, text.replace("%", "%%")))
        values.append(found.pop() if len(found) == 1 else None)
    return templates, values


def marked(one: str, other: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Two texts in pieces, each with whether it differs from the other text, word by word."""
    from difflib import SequenceMatcher

    left, right = re.findall(r"\S+\s*|\s+", one), re.findall(r"\S+\s*|\s+", other)
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    for tag, *ends in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for side, words, (low, high) in zip(sides, (left, right), (ends[:2], ends[2:]), strict=True):
            if low < high:
                side.append(("".join(words[low:high]), tag != "equal"))
    return sides
