"""People put into words: what was asked, what changed between twins, and bits beside the nulls that they must exceed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap

from fairbits.blocks import (
    Block,
    Code,
    Columns,
    Fold,
    Heading,
    Paragraph,
    Strong,
    TableBlock,
    between,
    figure,
    label,
    paragraphs,
    table_by,
)
from fairbits.language import marked
from fairbits.measure import FamilyBits, WordStudy
from fairbits.shape import reading
from fairbits.store import read_json, record_from_json
from fairbits.subject import Subject
from fairbits.text import number

NAME = "words.json"
#: Letters that stand in one paragraph of a prompt: pages cut what is longer.
LONG = 1000


def words_of(folder: Path, subject: Subject) -> WordStudy | None:
    """The study of words in a run's folder, if it is about this subject."""
    path = folder / NAME
    document = read_json(path) if path.is_file() else {}
    if (document.get("made_with") or {}).get("id") != subject.identity.id:
        return None
    with reading(path, "delete it, and audit again"):
        return record_from_json(WordStudy, document["study"])


def wording_blocks(study: WordStudy) -> Iterator[Block]:
    """Claims, bits and nulls by family, words side by side, and one prompt in full."""
    yield from (Paragraph(f"{one[:1].upper()}{one[1:]}", kind="statistical") for one in study.sentences())
    sizes = [f"{one.family}: {one.people} people × {one.twins} × {one.realisations} words" for one in study.families]
    yield table_by(
        study.families,
        [
            (label("family"), lambda one: one.family),
            (figure("bits", 2), lambda one: one.found.bits.value),
            *(
                (figure(null.null, 2), lambda one, i=i: one.found.nulls[i].bits)
                for i, null in enumerate(study.families[0].found.nulls)
            ),
            (figure("tolerance", 3), lambda one: one.found.tolerance),
            (figure("above", 2), lambda one: one.found.above and one.found.above.value),
            (
                between("99 % interval", lambda end: number(end, 2)),
                lambda one: one.found.above and (one.found.above.low, one.found.above.high),
            ),
            (label(""), lambda one: Strong("claimed") if one.found.claimed else "not claimed"),
        ],
        f"Mean bits and their three nulls at ε = {study.epsilon:g}; bits above the largest null, at a tolerance that "
        f"words alone hardly reach ({'; '.join(sizes)})",
    )
    for family in study.families:
        yield from _pair(family)
    means = [(family.family, values, score) for family in study.families for values, score in family.means.items()]
    yield Fold(
        "Mean scores by family", [TableBlock([label("family"), label("values"), figure("mean score", 3)], means)]
    )
    yield Heading(f"What was asked: one text in full{', after what the system says' if study.system else ''}")
    asked = [line for text in (study.system, study.prompt) for line in _lines(text)]
    yield from (
        Paragraph(Code(part)) for line in asked if line.strip() for part in wrap(line, LONG, drop_whitespace=False)
    )
    yield from paragraphs((f"Note: {note}" for note in study.notes), "note")
    lacking = {null.reason for one in study.families for null in one.found.nulls if null.reason}
    yield from paragraphs((f"Where a null has no figure: {reason}." for reason in sorted(lacking)), "small")


def _pair(family: FamilyBits) -> Iterator[Block]:
    """The same person in the words of two combinations; what changed stands out."""
    pair = family.pair
    yield Heading(f"{family.family}: the twins furthest apart")
    mean = "the mean of all realisations" if family.realisations > 1 else "one realisation"
    both = zip_longest(*map(_lines, pair.texts), fillvalue="")
    sides = zip(*(marked(*lines) for lines in both if any(map(str.strip, lines))), strict=True)
    parts: list[list[Block]] = []
    for values, score, side in zip(pair.values, pair.scores, sides, strict=True):
        said = Strong(f"as {values}: {number(score, 3)}, {mean}")
        texts = (tuple(Strong(piece) if changed else piece for piece, changed in line) for line in side)
        parts.append([Paragraph(said), *map(Paragraph, texts)])
    yield Columns(parts)


def _lines(text: str) -> list[str]:
    """The lines of a text, of which a page makes paragraphs; tabs become spaces."""
    return text.expandtabs(4).splitlines()
