"""How a person becomes texts: a template with slots, filled from the table and by the cues of one family.

A family of cues, the words by which a text says, or lets one guess, a protected value, is a small file. CSV: a column
for each attribute, then ``word``, then further forms of the word, if it has any, and ``weight`` (how likely it is drawn
where a family has more words than are asked for); a row for each word. TOML: a section for the attribute with a list of
words, or words with weights, for each value. Words of the value ``neutral`` say nothing about the person. Ours are in
``cues/``; their sources are in NOTICE.

``{amount}`` is a column of the table, or a slot that cues fill; ``{pronoun.object}`` is another form of the cue in the
slot ``pronoun``, and ``{Pronoun}`` the same with a capital letter. Instead of one template there may be a column of
texts: the words in it that are cues of the family become slots, a template for each row.

Texts are made in two steps, because a person has many twins, each in several words: the table's values are put in
once, and the words of the cues then go into what is left.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from string import Formatter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Schema, text_of
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
        return tuple(dict.fromkeys(cue.values[self.attributes.index(attribute)] for cue in self.cues))

    def only(self, attributes: Sequence[str]) -> CueFamily:
        """The same words, each once, for some of the attributes: whatever they say about the others is mixed."""
        places = [self.attributes.index(name) for name in attributes]
        cues: dict[tuple[Any, ...], Cue] = {}
        for cue in self.cues:
            values = tuple(cue.values[i] for i in places)
            key = (values, cue.forms["word"])
            cues[key] = Cue(values, cue.forms, cue.weight + (cues[key].weight if key in cues else 0))
        return CueFamily(self.name, tuple(attributes), tuple(cues.values()), self.neutral)

    def drawn(self, values: Mapping[str, str], count: int) -> list[Mapping[str, str]]:
        """The words for some values, at most so many; by their weights, and always the same ones."""
        wanted = tuple(values[name] for name in self.attributes)
        found = [cue for cue in self.cues if cue.values == wanted]
        if not found:
            said = ", ".join(f"{name} {value}" for name, value in zip(self.attributes, wanted, strict=True))
            raise SchemaError(f"the cues {self.name!r} have no word for {said}; add one, or leave that value out.")
        return _drawn(found, count, f"{self.name} {wanted}")


def _drawn(cues: Sequence[Cue], count: int, name: str) -> list[Mapping[str, str]]:
    if len(cues) <= count:
        return [cue.forms for cue in cues]
    weights = np.array([cue.weight for cue in cues])
    chosen = generator(0, f"cues {name}").choice(len(cues), count, replace=False, p=weights / weights.sum())
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


def read_cues(source: Any, folder: Path, slot: str) -> CueFamily:
    """The family that an audit file names for a slot: a built-in one, a file beside it, or its words themselves."""
    if isinstance(source, Mapping):
        return _of_document(source, slot)
    if not isinstance(source, str):
        raise SchemaError(f"the cues of {slot!r} are {str(source)[:40]!r}; name a family or a file, or list words.")
    path = _HOME / f"{source}.csv" if source in BUILT_IN else folder / source
    kind = path.suffix.lower()
    if kind not in (".csv", ".toml"):
        remedy = choose_from(source, BUILT_IN)
        raise SchemaError(f"the cues {source!r} are neither built in nor a .csv or .toml file; {remedy}")
    if not path.is_file():
        raise SchemaError(f"the file of cues {str(path)!r} does not exist; check its path.")
    if path.stat().st_size > MAX_BYTES:
        raise SchemaError(f"the file of cues {str(path)!r} has more than {MAX_BYTES:,} bytes; keep fewer words.")
    try:
        content = path.read_text(encoding="utf-8-sig")
        return _of_csv(content, source) if kind == ".csv" else _of_document(tomllib.loads(content), source)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        what = "TOML" if kind == ".toml" else "text in UTF-8"
        raise SchemaError(f"the file of cues {str(path)!r} is not valid {what}: {error}.") from None


def _of_csv(content: str, name: str) -> CueFamily:
    rows = [row for row in csv.reader(io.StringIO(content)) if row]
    head = [cell.strip() for cell in rows[0]] if rows else []
    if "word" not in head or head[0] == "word" or len(set(head)) < len(head):
        raise SchemaError(
            f"the cues {name!r} need a header with a column for each attribute and then word, each once, e.g. sex,word."
        )
    place, cues = head.index("word"), []
    for line, row in enumerate(rows[1:], 2):
        if len(row) > len(head):
            raise SchemaError(
                f"the cues {name!r} have {len(row)} cells in line {line}, and {len(head)} in the header; put quotes "
                f"around words with a comma."
            )
        cells = dict(zip(head, (cell.strip() for cell in row), strict=False))
        empty = next((one for one in head if not cells.get(one) and one != "weight"), None)
        if empty is not None:
            raise SchemaError(
                f"the cues {name!r} have nothing under {empty!r} in line {line}; fill it, or drop the line."
            )
        forms = {one: cells[one] for one in head[place:] if one != "weight"}
        cues.append(Cue(tuple(cells[one] for one in head[:place]), forms, _weight(cells.get("weight") or 1, name)))
    return _family(name, tuple(head[:place]), cues)


def _of_document(document: Mapping[str, Any], name: str) -> CueFamily:
    if len(document) != 1 or not isinstance(next(iter(document.values())), Mapping):
        raise SchemaError(
            f'the cues {name!r} need one section, named after their attribute, e.g. [sex] with woman = ["Ann"].'
        )
    ((attribute, values),) = document.items()
    cues = []
    for value, stated in values.items():
        listed = [(word, 1) for word in stated] if isinstance(stated, list) else []
        words = list(stated.items()) if isinstance(stated, Mapping) else listed
        if not str(value).strip() or not words or not all(isinstance(word, str) and word.strip() for word, _ in words):
            raise SchemaError(
                f'the cues {name!r} have no words for {value!r}; write e.g. {value or "woman"} = ["Ann"].'
            )
        cues += [Cue((value,), {"word": word}, _weight(weight, name)) for word, weight in words]
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
    (values, word), times = Counter((cue.values, cue.forms["word"]) for cue in cues).most_common(1)[0]
    if times > 1:
        raise SchemaError(
            f"the cues {name!r} have the word {word!r} {times} times for {', '.join(values)}; leave it there once."
        )
    return family


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
            raise SchemaError(f"the template has the unknown slot {field!r}; {choose_from(field, [*slots, *columns])}")
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
        silent = next((slot for slot in self.slots if self.column is None and slot not in {*needed, *said}), None)
        if silent is not None:
            raise SchemaError(
                f"the template of {self.family!r} has no slot {{{silent}}}, so its cues would never be said; write it "
                f"into the template, or leave {silent!r} out of the family."
            )

    @property
    def columns(self) -> list[str]:
        return [name for piece, name in self.template if piece == "column"]

    @cached_property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The protected values that the family has words for, by attribute."""
        return combinations(self.slots.values())

    @cached_property
    def combinations(self) -> list[dict[str, str]]:
        """Every combination of protected values, in the order of twins: the last attribute changes fastest."""
        return [dict(zip(self.values, chosen, strict=True)) for chosen in product(*self.values.values())]

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
        drawn = ([one.drawn(each, self.realisations) for one in self.slots.values()] for each in self.combinations)
        return [min((len(words) for words in some if len(words) > 1), default=1) for some in drawn]

    @cached_property
    def neutral(self) -> list[Words]:
        """The realisations that say nothing about the person; none where a slot has no neutral word."""
        return _together({name: _drawn(one.neutral, self.realisations, one.name) for name, one in self.slots.items()})

    def formats(self, decoder: Decoder, codes: Codes) -> list[str]:
        """The first step for people: their own values are in, the words of cues are not."""
        if self.column is not None:
            return [self.texts[int(code)] for code in codes[:, decoder.names.index(self.column)]]
        columns, order = {column.name: column for column in decoder.columns}, self.columns
        template = "".join(
            "%s" if piece == "column" else f"%%({text})s" if piece == "slot" else text.replace("%", "%%%%")
            for piece, text in self.template
        )
        if not order:
            return [template % ()] * len(codes)
        values = {
            name: [text_of(one).replace("%", "%%") for one in _days(decoder.values(columns[name], codes)).tolist()]
            for name in set(order)
        }
        return [template % row for row in zip(*(values[name] for name in order), strict=True)]

    def places(self, schema: Schema, codes: Codes) -> npt.NDArray[np.int64]:
        """Which combination each row of codes has."""
        found = np.zeros(len(codes), dtype=np.int64)
        for name, values in self.values.items():
            order = np.array([values.index(label) for label in schema[name].labels])
            found = found * len(values) + order[codes[:, schema.column(name)].astype(np.int64)]
        return found


def _days(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Dates as a person writes them; other values as they are."""
    return np.datetime_as_string(values, unit="auto") if values.dtype.kind == "M" else values


def _together(slots: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Words]:
    count = max(map(len, slots.values())) if all(slots.values()) else 0
    return [_spelled({slot: found[i % len(found)] for slot, found in slots.items()}) for i in range(count)]


def templates_of_texts(texts: Sequence[str], family: CueFamily) -> tuple[list[str], list[tuple[str, ...] | None]]:
    """Texts whose cues became slots, and the values that their words stand for.

    None of a text that has no word of the family, or words that stand for different values, as one of them alone may,
    or for several forms: nothing tells whether "her" is "him" or "his".
    """
    spelled: dict[str, tuple[set[str], set[tuple[str, ...]]]] = {}
    for cue in family.cues:
        for form, word in cue.forms.items():
            forms, stands = spelled.setdefault(_composed(word).lower(), (set(), set()))
            forms.add(form)
            stands.add(cue.values)
    known = "|".join(re.escape(word) for word in sorted(spelled, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{known})(?!\w)", re.IGNORECASE)
    templates, values = [], []
    for text in texts:
        found: set[tuple[str, ...]] = set()

        def slot(match: re.Match[str], found: set[tuple[str, ...]] = found) -> str:
            forms, stands = spelled[match[0].lower()]
            found |= stands if len(forms) == 1 else {(), *stands}
            form = min(forms)
            name = "word" if form == "word" else f"word.{form}"
            return f"%({name.capitalize() if match[0][:1].isupper() else name})s"

        templates.append(pattern.sub(slot, _composed(text).replace("%", "%%")))
        values.append(found.pop() if len(found) == 1 else None)
    return templates, values


#: Letters and their accents in one piece, as most files have them.
_composed = partial(unicodedata.normalize, "NFC")


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
