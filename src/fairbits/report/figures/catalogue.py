"""All pictures of a report, each with a title and a description in words."""

from __future__ import annotations

from collections.abc import Iterator

from fairbits.debug import DebugResult
from fairbits.repair import RepairResult
from fairbits.report.figures import charts, network, portraits
from fairbits.report.figures.svg import Picture, inline_svg
from fairbits.report.record import Portrait, ReportData, Searched
from fairbits.report.sections.inside import foremost, has_inside, split_name, suspects_of
from fairbits.text import joined, number, percent, shortened, signed

Drawn = tuple[str, Picture | None, str, str]


def pictures_of(data: ReportData) -> dict[str, str]:
    """All pictures of a report as inline SVG; what cannot be drawn is not there."""
    drawn = [*_spread(data), *_people(data)]
    found = {
        name: inline_svg(made, f"pic-{name}", title, words) for name, made, title, words in drawn if made is not None
    }
    if data.debugged is not None and data.debugged.layers and has_inside(data.debugged):
        found["network"] = _network(data.debugged)
    return found


def _spread(data: ReportData) -> Iterator[Drawn]:
    rows = [(k, people, None) for k, people in data.measured.histogram]
    words = _histogram_words([(k, people) for k, people, _ in rows], "rows")
    yield "severity-rows", charts.severity(rows, "rows"), "Rows of the table by number of classes k", words
    yield from _searched(data.searched)
    if data.debugged is not None:
        yield from _causes(data.debugged)
    if data.repaired is not None and data.repaired.repairs:
        title = f"{data.repaired.quality.capitalize()} and mean k of all repairs"
        yield "pareto", charts.pareto(data.repaired), title, _pareto_words(data.repaired)


def _causes(found: DebugResult) -> Iterator[Drawn]:
    drawn = charts.drawn_neurons(found)
    words = joined([f"neuron {one.neuron} (ACD {signed(one.acd, 3)})" for one in drawn])
    yield "curves", charts.curves(found), "Mean k over the value that a neuron is held at", words


def _searched(searched: Searched) -> Iterator[Drawn]:
    if searched.histogram:
        words = _histogram_words([(k, cases) for k, cases, _ in searched.histogram], "cases")
        made = charts.severity(searched.histogram, "cases")
        yield "severity-cases", made, "Cases of the search by number of classes k", words
    if len(searched.progress) > 2:
        last = searched.progress[-1]
        first = next(moment for moment in searched.progress if moment.k_max == last.k_max)
        words = (
            f"The largest k, {last.k_max}, was reached after {first.seconds:.1f} seconds; after {last.seconds:.1f} "
            f"seconds {last.cases:,} distinct cases were kept."
        )
        yield "progress", charts.progress(searched.progress), "The search over time", words


def _people(data: ReportData) -> Iterator[Drawn]:
    for person in data.people:
        name = f"{'row' if person.real else 'case'}-{person.rank}"
        words = _person_words(person)
        title = f"Scores of the twins of {'row' if person.real else 'case'} number {person.rank}"
        yield f"{name}-map", portraits.heat_map(person, data.axes), title, words
        line = portraits.line(person, data.axes)
        yield f"{name}-line", line, title, words
        if line is None:
            yield f"{name}-steps", portraits.staircase(person, data.axes), f"{title}, in order", words


def _network(debugged: DebugResult) -> str:
    if debugged.units == "trees":
        names = [f"{split_name(one)}, ACD {signed(one.acd, 3)}" for one in foremost(debugged)]
        suspect = f" The suspect is tree {debugged.suspect}." if debugged.suspect else ""
        words = f"{len(debugged.layers)} trees.{suspect} " + (f"{joined(names)}." if names else "No split lowers k.")
        return inline_svg(network.trees(debugged), "pic-network", "The trees of the ensemble", words)
    made, parts = network.network(debugged)
    layers = [
        f"layer {layer.layer} with {layer.width} neurons and ρ {signed(layer.rho)}"
        for layer in debugged.layers
        if layer.rho is not None
    ]
    words = f"{joined(layers)}." + (f" The suspect is layer {debugged.suspect}." if debugged.suspect else "")
    return inline_svg(made, "pic-network", "The network as layers", words, parts=parts if suspects_of(debugged) else {})


def _histogram_words(counts: list[tuple[int, int]], what: str) -> str:
    total = sum(count for _, count in counts)
    mean = sum(k * count for k, count in counts) / total
    k, people = max(counts, key=lambda pair: pair[1])
    span = f"k from {counts[0][0]} to {counts[-1][0]}, mean {mean:.1f}"
    return f"{total:,} {what} with {span}; most often k = {k} ({people:,})."


def _person_words(person: Portrait) -> str:
    worst, best = shortened(person.worst, 100), shortened(person.best, 100)
    return (
        f"{person.twins:,} scores in {person.k} classes, from {person.low:.3f} ({worst}) to {person.high:.3f} ({best})."
    )


def _pareto_words(found: RepairResult) -> str:
    before, chosen = found.before_held_out, found.chosen
    start = f"As it is: {found.quality} {percent(before.accuracy)}, mean k {number(before.k_mean, 2)}. "
    if chosen is None:
        return f"{start}None was chosen."
    after = chosen.held_out
    figures = f"{found.quality} {percent(after.accuracy)}, mean k {number(after.k_mean, 2)}"
    return f"{start}Chosen ({shortened(chosen.name, 60)}): {figures}."
