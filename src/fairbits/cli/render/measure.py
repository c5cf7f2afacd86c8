"""What `fairbits measure` shows on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.commands.measure import noise_notes
from fairbits.cli.console import Console
from fairbits.cli.render.bars import histogram
from fairbits.cli.render.groups import groups_text
from fairbits.cli.render.people import harmless, people_text
from fairbits.domain import MIN_ROWS, shortened
from fairbits.measure import people_headline
from fairbits.text import one_line

if TYPE_CHECKING:
    from fairbits.measure import Estimate, GroupTable, Measurement, Person
    from fairbits.proxies import ProxyStudy
    from fairbits.subject import Subject


def show(subject: Subject, found: Measurement, top: int, groups: Sequence[GroupTable] = ()) -> None:
    """Print the whole measurement, within 80 columns where the labels allow it."""
    console = Console(highlight=False)
    for block in (_headline(subject, found), _figures(found), _flips(found), histogram(found.histogram(), "people")):
        console.print(block)
        console.print()
    if top and found.evaluation.k.max() > 1:
        console.print(Text("Whose score is lowest and highest, where twins differ", style="bold"))
        console.print(_stakes(found))
        console.print()
        console.print(_people(found, found.worst(top)))
        console.print()
    if groups:
        console.print(Text("Groups as they are", style="bold"))
        console.print(groups_text(groups))
    console.print(_bound(found))
    for note in noise_notes(found):
        console.print(Text(f"Note: {note}", style="yellow"))
    # What twins leave out is a note of the subject.
    limits = [one.text for one in found.limits if one.limit == "support"]
    for note in (*limits, *subject.notes):
        console.print(Text(f"Note: {one_line(note)}", style="dim"))


def show_without_twins(subject: Subject, found: ProxyStudy, *, page: Path | None = None) -> None:
    """Print groups and indirect bits of a model that takes no protected attribute, or is not at hand."""
    from fairbits.cli.render.proxies import show_bits

    console = Console(highlight=False)
    document = found.document()
    text = Text(harmless(subject.name), style="bold")
    text.append(f" · {document['rows']:,} people\n", style="not bold")
    for line in subject.lines():
        text.append(f"{line}\n", style="not bold dim")
    console.print(text)
    show_bits(console, document)
    console.print(groups_text(found.groups))
    for note in (*document["notes"], *subject.notes):
        console.print(Text(f"Note: {one_line(note)}", style="dim"))
    if page is not None:
        console.print(Text("report  ").append(str(page), style="bold"), soft_wrap=True)


def _headline(subject: Subject, found: Measurement) -> Text:
    twins = found.evaluator.twins
    sizes = " × ".join(
        f"{harmless(found.schema.attributes[i].name)} {len(found.schema.attributes[i].twin_values())}"
        for i in twins.columns
    )
    text = Text()
    text.append(harmless(subject.name), style="bold")
    fewest = twins.m if found.evaluation.twins is None else int(found.evaluation.twins.min())
    most = twins.m if found.evaluation.twins is None else int(found.evaluation.twins.max())
    each = f"{most}" if fewest == most else f"{fewest} to {most}"
    text.append(f" · {len(found):,} people · {each} twins each ({sizes})\n")
    text.append(f"ε = {found.evaluator.epsilon:g}, {found.evaluator.partition} partition", style="dim")
    if found.schema.scores == "vector":
        text.append(", all classes compared", style="dim")
    for line in subject.lines():
        text.append(f"\n{line}", style="dim")
    if found.schema.rules:
        rules = len(found.schema.rules)
        text.append(f"\n{rules} rule{'s' if rules > 1 else ''} removed {found.twins_removed:,} twins", style="dim")
    text.append("\n\n")
    most, limit = found.evaluation.q_inf.max(), found.evaluator.bits_limit
    if found.evaluator.blind:
        text.append(f"This model uses exactly 0 of {limit:.2f} bits", style="bold")
        text.append(f" of {_joined(found.schema.protected)}: no twin can score differently.")
        return text
    flips, epsilon = found.flip_rate, found.evaluator.epsilon
    people = people_headline(
        found.schema.protected,
        len(found),
        found.split_rate,
        flips,
        epsilon=epsilon,
        supported=found.flip_rate_supported,
        bounded=found.kind == "lower bound",
    )
    text.append(f"{harmless(people)}\n", style="bold")
    text.append(f"Decisions about them use up to {most:.2f} of {limit:.2f} bits", style="bold")
    text.append(f" of {harmless(_joined(found.schema.protected))}.")
    if found.noise is not None:
        flipped = found.noise.null_flip_rate
        alone = f", and {flipped:.0%} flip when asked again as they are" if flipped else ""
        words = f" Answers vary: one twin alone shows up to {found.noise.null_q_inf_max:.2f}{alone}."
        text.append(words, style="yellow")
    return text


def _figures(found: Measurement) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("per person")
    for heading in ("mean", "95 % interval", "largest"):
        table.add_column(heading, justify="right")
    largest = found.evaluation
    rows: list[tuple[str, Estimate, str]] = [
        ("classes k", found.k_mean, f"{largest.k.max()}"),
        ("bits Q∞ = log2 k", found.q_inf_mean, f"{largest.q_inf.max():.2f}"),
        ("bits Q1 (Shannon)", found.q_1_mean, f"{largest.q_1.max():.2f}"),
    ]
    for name, mean, most in rows:
        table.add_row(name, f"{mean.value:.2f}", f"{mean.low:.2f} – {mean.high:.2f}", most)
    noise = found.noise
    if noise is not None:
        table.add_row("null bits: one twin only", f"{noise.null_q_inf_mean:.2f}", "", f"{noise.null_q_inf_max:.2f}")
    return table


def _flips(found: Measurement) -> Text:
    text = Text()
    rows: list[tuple[str, Estimate | None]] = [
        ("with more than one class", found.split_rate),
        ("whose decision flips", found.flip_rate),
    ]
    rows += [(f"… in combinations of ≥ {MIN_ROWS} rows", found.flip_rate_supported)]
    rows += [(f"… if only {harmless(shortened(name, 12))} differs", rate) for name, rate in found.flip_rate_by.items()]
    for name, rate in rows:
        if rate is not None:
            text.append(f"people {name:<31}{rate.value:>8.2%}")
            text.append(f"   95 % interval {rate.low:.2%} – {rate.high:.2%}\n", style="dim")
    text.rstrip()
    return text


def _stakes(found: Measurement) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("protected value")
    table.add_column("lowest", justify="right")
    table.add_column("highest", justify="right")
    for stake in found.stakes():
        table.add_row(Text(harmless(f"{stake.attribute} {stake.value}")), f"{stake.lowest:.1%}", f"{stake.highest:.1%}")
    return table


def _people(found: Measurement, people: list[Person]) -> Text:
    title = f"The {len(people)} worst off" if len(people) > 1 else "The worst off"
    return people_text(title, [(person, _place(found, person), "") for person in people])


def _place(found: Measurement, person: Person) -> str:
    return found.table.place(person.position) + (f", {person.rows} rows alike" if person.rows > 1 else "")


def _bound(found: Measurement) -> Text:
    if found.evaluator.blind:
        return Text("That holds for everybody, examined or not: the model gives the protected attributes no weight.")
    bound = found.bound()
    return Text(
        f"None of the {len(found):,} people examined exceeds {bound['bits']:.2f} bits; with {bound['confidence']:.0%} "
        f"confidence, at most {bound['rate']:.4%} of people drawn like them do."
    )


def _joined(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
