"""All pictures of a report, each with a title and a description in words."""

from __future__ import annotations

from collections.abc import Iterator

from fairbits.domain import joined, shortened
from fairbits.measure import Stake
from fairbits.numerals import number, percent, signed
from fairbits.report.debugged import Debugged
from fairbits.report.figures import anatomy, causes, charts, forest, portraits
from fairbits.report.figures.style import Picture
from fairbits.report.figures.svg import inline_svg
from fairbits.report.foremost import foremost, split_name
from fairbits.report.record import Portrait, ReportData, Searched
from fairbits.report.repaired import Repaired

Drawn = tuple[str, Picture | None, str, str]


def pictures_of(data: ReportData) -> dict[str, str]:
    """All pictures of a report as inline SVG; what cannot be drawn is not there."""
    drawn = [*_spread(data), *_people(data)]
    found = {
        name: inline_svg(made, f"pic-{name}", title, words) for name, made, title, words in drawn if made is not None
    }
    if data.debugged is not None and data.debugged.layers and data.debugged.hidden:
        found["network"] = _network(data.debugged)
    return found


def _spread(data: ReportData) -> Iterator[Drawn]:
    rows = [(k, people, None) for k, people in data.measured.histogram]
    words = _histogram_words([(k, people) for k, people, _ in rows], "rows")
    yield "severity-rows", charts.severity(rows, "rows"), "Rows of the table by number of classes k", words
    yield from _searched(data.searched)
    words = joined(
        [f"{s.attribute} {s.value} lowest {percent(s.lowest)}, highest {percent(s.highest)}" for s in _extremes(data)]
    )
    yield "stakes", charts.stakes(data.measured.stakes), "Who gets the lowest and the highest score", words
    if data.debugged is not None and data.debugged.shares:
        shares = data.debugged.shares
        words = joined([f"{shortened(s.attribute, 40)} {s.shapley:.2f} bits ({s.share:.0%})" for s in shares])
        yield "shapley", charts.shapley(shares), "Shapley shares of the protected attributes", words
    if data.debugged is not None:
        yield from _causes(data.debugged)
    if data.repaired is not None:
        title = f"{data.repaired.quality.capitalize()} and mean k of all repairs"
        yield "pareto", charts.pareto(data.repaired), title, _pareto_words(data.repaired)


def _causes(found: Debugged) -> Iterator[Drawn]:
    if found.splits:
        words = joined(
            [
                f"{shortened(' and '.join(one.attributes), 60)}: {one.shared:.0%} with the data ({one.low:.0%} to "
                f"{one.high:.0%})"
                for one in found.splits
            ]
        )
        yield "origin", causes.origin(found.splits), "What comes with the data and with the single training", words
    drawn = causes.drawn_neurons(found)
    words = joined([f"neuron {one.neuron} (ACD {signed(one.acd, 3)})" for one in drawn])
    yield "curves", causes.curves(found), "Mean k over the value that a neuron is held at", words
    if found.sets:
        words = joined([f"{one.size}: {one.explained:.0%}" for one in found.sets])
        yield (
            "sizes",
            causes.sizes(found.sets, found.minimal),
            "Bits explained by sets of neurons, by their size",
            words,
        )


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


def _network(debugged: Debugged) -> str:
    if debugged.units == "trees":
        names = [f"{split_name(one)}, ACD {signed(one.acd, 3)}" for one in foremost(debugged)]
        suspect = f" The suspect is tree {debugged.suspect}." if debugged.suspect else ""
        words = f"{len(debugged.layers)} trees.{suspect} " + (f"{joined(names)}." if names else "No split lowers k.")
        return inline_svg(forest.trees(debugged), "pic-network", "The trees of the ensemble", words)
    made, parts = anatomy.network(debugged)
    layers = [
        f"layer {layer.layer} with {layer.width} neurons and ρ {signed(layer.rho)}"
        for layer in debugged.layers
        if layer.rho is not None
    ]
    words = f"{joined(layers)}." + (f" The suspect is layer {debugged.suspect}." if debugged.suspect else "")
    return inline_svg(made, "pic-network", "The network as layers", words, parts=parts if debugged.neurons else {})


def _extremes(data: ReportData) -> list[Stake]:
    """Of each protected attribute, the value that is lowest most often."""
    best = {}
    for stake in sorted(data.measured.stakes, key=lambda stake: stake.lowest):
        best[stake.attribute] = stake
    return [best[name] for name in data.about.protected if name in best]


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


def _pareto_words(found: Repaired) -> str:
    chosen = next((mend for mend in found.repairs if mend.chosen), None)
    start = f"As it is: {found.quality} {percent(found.accuracy_before)}, mean k {number(found.k_mean_before, 2)}. "
    if chosen is None:
        return f"{start}None was chosen."
    name = shortened(chosen.name, 60)
    return f"{start}Chosen ({name}): {found.quality} {percent(chosen.accuracy)}, mean k {number(chosen.k_mean, 2)}."
