"""People on a terminal: how badly off, under which protected values, and who they are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from rich.text import Text

from fairbits.domain import harmless

__all__ = ["Shown", "harmless", "people_text", "quality_lines"]

_WIDTH = 80


class Shown(Protocol):
    """Whoever can be shown: a person of the table, or a case of a search."""

    @property
    def k(self) -> int:
        """Number of classes."""

    @property
    def q_inf(self) -> float:
        """Bits Q∞."""

    @property
    def low(self) -> float:
        """The lowest score."""

    @property
    def high(self) -> float:
        """The highest score."""

    @property
    def worst(self) -> str:
        """Protected values of the twin with the lowest score."""

    @property
    def best(self) -> str:
        """Protected values of the twin with the highest score."""

    @property
    def flips(self) -> bool:
        """Whether twins get different decisions."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes in words."""


def quality_lines(figures: Mapping[str, Any] | None) -> tuple[str, ...]:
    """How the model agrees with the labels; nothing for a run of an earlier release."""
    if not figures or "decision" not in figures:
        return ()
    from fairbits.subject import Quality

    return tuple(harmless(line) for line in Quality.of_figures(dict(figures)).lines())


def people_text(title: str, people: Iterable[tuple[Shown, str, str]]) -> Text:
    """A ranked list of people."""
    text = Text(f"{title}\n", style="bold")
    for rank, (person, place, last) in enumerate(people, 1):
        text.append(f"\n{rank:>2}. ", style="bold")
        text.append(f"k = {person.k}", style="bold red")
        text.append(f"  {person.q_inf:.2f} bits  ({place})")
        text.append("  decision flips\n" if person.flips else "\n", style="yellow")
        text.append(f"    {person.low:.3f}  {harmless(person.worst)}\n    {person.high:.3f}  {harmless(person.best)}\n")
        words = ", ".join(f"{name} {value}" for name, value in person.attributes.items())
        text.append(_indented(harmless(words)) + "\n", style="dim")
        if last:
            text.append(_indented(last) + "\n", style="dim")
    text.rstrip()
    return text


def _indented(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
