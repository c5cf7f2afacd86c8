"""What `fairbits certify` shows: a statement in a few lines each, strongest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless

if TYPE_CHECKING:
    from fairbits.certify import Certificate
    from fairbits.subject import Subject

_STYLES = {"exact": "green", "proved": "green", "statistical": "cyan"}


def show(subject: Subject, found: Certificate) -> None:
    """Print the statements, what could not be proved, and what the words mean."""
    console = Console(highlight=False)
    console.print(Text(f"{harmless(subject.name)}: what can be said about everybody", style="bold"))
    for against in found.contradictions:
        console.print(Text(f"error  {harmless(against.words())}: withdrawn, an error of ours", style="red"))
    for line in subject.lines():
        console.print(Text(harmless(line), style="dim"))
    for one in found.statements:
        whose = "" if one.model == "model" else f"{one.model} model, "
        console.print()
        head = Text(one.kind, style=_STYLES[one.kind]) if one.is_certain() else Text("open", style="yellow")
        if one.withdrawn:
            head = Text("withdrawn", style="red")
        console.print(head.append(f"  {whose}{harmless(one.population)}  ({one.seconds:.1f} s)", style="default"))
        console.print(Padding(Text(one.sentence(), style="bold"), (0, 0, 0, 2)))
        console.print(Padding(Text(harmless(one.reason), style="dim"), (0, 0, 0, 2)))
    for rate in found.rates:
        console.print()
        console.print(Text("modelled", style="cyan").append(f"  rates by {harmless(rate.attribute)}", style="default"))
        console.print(Padding(Text(harmless(rate.sentence()), style="bold"), (0, 0, 0, 2)))
    if not found.statements:
        console.print("Nothing could be said in this time.")
    for note in found.notes:
        console.print()
        console.print(Text(f"note  {harmless(note)}", style="yellow"))
    if found.stopped:
        console.print()
        console.print(Text("Ended early: what was certain by then is above.", style="yellow"))
