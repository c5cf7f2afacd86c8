"""How to get every figure again, what kinds of figures there are, and their limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairbits.blocks import Block, Bullets, Code, Commands, Facts, Heading, Link, Paragraph, Tag
from fairbits.domain import joined
from fairbits.report import words
from fairbits.report.section import Section

if TYPE_CHECKING:
    from fairbits.report.record import ReportData

#: What the word beside a figure means.
KINDS = {
    "exact": "Everybody that the figure speaks of was asked, or it has reached its limit.",
    "proved": "It holds for everybody, asked or not: by the way the model is made, or by bounds over sets of people.",
    "statistical": "An estimate from a sample: it would move with other people drawn in the same way.",
    "lower bound": "What a search found: there may be more.",
}


def _blocks(data: ReportData) -> Iterator[Block]:
    again, about = data.remaking, data.about
    yield Paragraph(
        "The same seed gives the same cases, whatever the number of threads. The search below is limited by people "
        "asked and not by seconds, so that a faster machine finds the same.",
        tone="lead",
    )
    yield Commands(again.commands)
    favourable = f": {about.favourable}" if about.favourable else ""
    yield Facts(
        [
            ("identity", Code(again.identity)),
            ("model", about.model),
            *(
                [("target, favourable value" if favourable else "target", about.target + favourable)]
                if about.target
                else []
            ),
            ("protected inputs", joined(list(about.protected)) or "none"),
            ("tolerance ε", f"{about.epsilon:g}"),
            ("partition", about.partition),
            ("seed", str(again.seed)),
            ("budget of the search", again.budget),
            ("run", f"{again.created}, {again.status}"),
            *again.versions.items(),
        ]
    )
    yield Heading("Kinds of figures")
    kinds = {name: meaning for name, meaning in KINDS.items() if not (about.blind and name == "lower bound")}
    yield Bullets([(Tag(name), f" {meaning}") for name, meaning in kinds.items()])
    yield Heading("Limitations")
    yield Bullets(words.limits(about))
    yield Heading("The method")
    yield Paragraph(
        (
            f"{words.CITATION} ",
            Link(f"doi:{words.DOI}", f"https://doi.org/{words.DOI}"),
            ". Please cite that paper when you use the measure; fairbits is an independent implementation of it.",
        )
    )


SECTION = Section("again", "Reproduce; limitations", _blocks)
