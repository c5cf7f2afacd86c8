"""All pictures of a report, each with a title and a description in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairbits.debug import DebugResult
from fairbits.repair import RepairResult
from fairbits.report.figures import charts, portraits
from fairbits.report.figures.svg import Picture, inline_svg
from fairbits.report.record import ReportData
from fairbits.report.sections.details import foremost, has_inside, split_name, suspects_of
from fairbits.text import joined, number, percent, shortened, signed

Drawn = tuple[str, Picture | None, str, str]


def pictures_of(data: ReportData) -> dict[str, str]:
    """All pictures of a report as inline SVG; what cannot be drawn is not there."""
    drawn = (one for one in (*_spread(data), *_people(data)) if one[1] is not None)
    found = {name: inline_svg(made, f"pic-{name}", title, words) for name, made, title, words in drawn if made}
    if data.debugged is not None and data.debugged.layers and has_inside(data.debugged):
        found["network"] = _network(data.debugged)
    return found


def _spread(data: ReportData) -> Iterator[Drawn]:
    searched, found, repaired = data.searched, data.debugged, data.repaired
    rows: list[tuple[int, int, int | None]] = [(k, people, None) for k, people in data.measured.histogram]
    for counts, what, title in (
        (rows, "rows", "Rows of the table"),
        (searched.histogram, "cases", "Cases of the search"),
    ):
        if counts:
            made = charts.severity(counts, what)
            words = _histogram_words(counts, what)
            yield f"severity-{what}", made, f"{title} by number of classes k", words
    if found is not None:
        words = joined([f"neuron {one.neuron} (ACD {signed(one.acd, 3)})" for one in charts.drawn_neurons(found)])
        yield "curves", charts.curves(found), "Mean k over the value that a neuron is held at", words
    if repaired is not None and repaired.repairs:
        title = f"{repaired.quality.capitalize()} and mean k of all repairs"
        yield "pareto", charts.pareto(repaired), title, _pareto_words(repaired)
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
        what = "row" if person.real else "case"
        line = portraits.line(person, data.axes)
        name, title = f"{what}-{person.rank}", f"Scores of the twins of {what} number {person.rank}"
        worst = f"{person.low:.3f} ({shortened(person.worst, 100)})"
        best = shortened(person.best, 100)
        words = f"{person.twins:,} scores in {person.k} classes, from {worst} to {person.high:.3f} ({best})."
        yield f"{name}-map", portraits.heat_map(person, data.axes), title, words
        yield f"{name}-line", line, title, words
        if line is None:
            yield f"{name}-steps", portraits.staircase(person, data.axes), f"{title}, in order", words


def _network(debugged: DebugResult) -> str:
    if debugged.units == "trees":
        names = [f"{split_name(one)}, ACD {signed(one.acd, 3)}" for one in foremost(debugged)]
        suspect = f" The suspect is tree {debugged.suspect}." if debugged.suspect else ""
        words = f"{len(debugged.layers)} trees.{suspect} " + (f"{joined(names)}." if names else "No split lowers k.")
        return inline_svg(charts.trees(debugged), "pic-network", "The trees of the ensemble", words)
    made, parts = charts.network(debugged)
    layers = [
        f"layer {layer.layer} with {layer.width} neurons and ρ {signed(layer.rho)}"
        for layer in debugged.layers
        if layer.rho is not None
    ]
    words = f"{joined(layers)}." + (f" The suspect is layer {debugged.suspect}." if debugged.suspect else "")
    return inline_svg(made, "pic-network", "The network as layers", words, parts=parts if suspects_of(debugged) else {})


def _histogram_words(counts: Sequence[tuple[int, int, int | None]], what: str) -> str:
    total = sum(count for _, count, _ in counts)
    mean = sum(k * count for k, count, _ in counts) / total
    k, people, _ = max(counts, key=lambda one: one[1])
    span = f"k from {counts[0][0]} to {counts[-1][0]}, mean {mean:.1f}"
    return f"{total:,} {what} with {span}; most often k = {k} ({people:,})."


def _pareto_words(found: RepairResult) -> str:
    named = [("As it is", found.before_held_out)]
    named += [] if found.chosen is None else [(f"Chosen ({shortened(found.chosen.name, 60)})", found.chosen.held_out)]
    said = [f"{name}: {found.quality} {percent(one.accuracy)}, mean k {number(one.k_mean, 2)}." for name, one in named]
    return " ".join(said if found.chosen is not None else [*said, "None was chosen."])
