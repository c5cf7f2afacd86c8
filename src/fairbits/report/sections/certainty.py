"""How certain the figures are: what was examined, what is exact, proved or statistical, and what they cannot say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Bullets, Paragraph, Small, TableBlock, Tag, label, paragraphs

if TYPE_CHECKING:
    from fairbits.certify import Certificate, Statement
    from fairbits.report.record import ReportData

#: What the word beside a figure means.
KINDS = {
    "exact": "everybody that the figure speaks of was asked, or it has reached its limit.",
    "proved": "it holds for everybody, asked or not: by the way the model is made, or by bounds over sets of people.",
    "statistical": "an estimate from a sample: it would move with other people drawn in the same way.",
    "lower bound": "what a search found: there may be more.",
}
_SEARCH = (
    "A search finds what it finds: its largest k is a lower bound, unless it has reached its limit. Only figures "
    "called exact rest on everybody they speak of."
)
LIMITS = (
    "Twins are the same person with other protected values. Some of them may be people who could not exist; the "
    "further a person is from a real row, the likelier that is.",
    _SEARCH,
    "Bits count the direct use of protected attributes. A decision that uses none of them may still use attributes "
    "that stand in for them (proxies).",
    "Scores closer than ε count as the same. A smaller ε gives more classes, a larger one fewer; compare figures only "
    "at the same ε and partition.",
    "Intervals say how much a figure would move with other rows drawn like these. They do not cover a table that "
    "misses some people altogether.",
    "Equal scores for all twins do not make a decision right, lawful or just; they say that these attributes did not "
    "move it.",
)


def certainty_blocks(data: ReportData) -> Iterator[Block]:
    """What was examined, the statements, and what each kind of figure means."""
    yield Bullets(data.examined)
    # Nobody can have more classes than twins.
    certain = [one for one in data.certified if one.is_certain() and (one.property != "k" or one.bound < data.about.m)]
    if certain:
        yield statements_table(certain)
    else:
        yield Paragraph("Nothing is proved beyond the people examined.", tone="lead")
    kinds = {name: meaning for name, meaning in KINDS.items() if not (data.about.blind and name == "lower bound")}
    yield Bullets([(Tag(name), f" {meaning}") for name, meaning in kinds.items()])


def limitation_blocks(data: ReportData) -> Iterator[Block]:
    """What the figures say nothing about; those of a model that is blind to protected attributes are exact."""
    lines = [line for line in LIMITS if not (data.about.blind and line is _SEARCH)]
    yield Bullets([*data.not_examined, *lines])


def statements_table(statements: Iterable[Statement]) -> Block:
    """Statements, each with the people it is about."""
    rows = []
    for one in statements:
        kind = "withdrawn" if one.withdrawn else one.kind if one.is_certain() else "open"
        whose = one.population if one.model == "model" else f"{one.population} ({one.model} model)"
        rows.append((whose, Tag(kind), (one.sentence(), Small(one.reason))))
    return TableBlock([label("about"), label("kind"), label("statement")], rows, stacked=True)


def certificate_blocks(found: Certificate) -> Iterator[Block]:
    """A certificate by itself: errors of ours, statements, and what could not be proved and why."""
    yield from paragraphs(
        (f"Error: {one.words()}: withdrawn, an error of ours." for one in found.contradictions), "warning"
    )
    if found.statements:
        yield statements_table(found.statements)
    elif not found.rates:
        yield Paragraph("Nothing could be said in this time.")
    for rate in found.rates:
        yield Paragraph(rate.sentence(), kind="statistical")
    yield from paragraphs((f"Note: {note}" for note in found.notes), "note")
    if found.stopped:
        yield Paragraph("Ended early: what was certain by then is above.", tone="warning")
