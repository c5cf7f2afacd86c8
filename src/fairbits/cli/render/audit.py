"""What `fairbits audit` shows in the end: one look of at most 25 lines, the last the page's path."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from fairbits.cli import waited
from fairbits.cli.console import Console
from fairbits.cli.render.groups import ratio_words
from fairbits.cli.render.people import harmless

if TYPE_CHECKING:
    from fairbits.audit import AuditResult, ScoresAudit
    from fairbits.certify import Statement
    from fairbits.report import ReportData
    from fairbits.subject import Subject

_WIDTH = 80
#: Columns of what a line is about, and lines before the path of the page.
_LABEL, _LINES = 12, 23


def show(found: AuditResult) -> None:
    """The findings in one look, in the order of the page: people, accuracy, bits, cause, repair, guarantee, page."""
    console = Console(highlight=False)
    for line in look(found):
        console.print(line, soft_wrap=True)
    if found.stopped:
        console.print(
            Text(f"ended early; go on with: fairbits audit --resume {found.run.folder}", "yellow"), soft_wrap=True
        )
    console.print(Text(f"{'report':<{_LABEL}}").append(str(found.page), style="bold"), soft_wrap=True)


def look(found: AuditResult) -> list[Text]:
    """At most 23 lines of 80 columns; the path of the page, and how to go on, are two more."""
    return _folded(_rows(found))[:_LINES]


def _folded(rows: Iterable[tuple[str, str, str, int]]) -> list[Text]:
    """Rows as lines of 80 columns, each label once."""
    lines: list[Text] = []
    for label, words, style, most in rows:
        width = _WIDTH if style == "bold" else _WIDTH - _LABEL  # the headline begins where the labels do
        pieces = textwrap.wrap(harmless(words), width) or [""]
        if len(pieces) > most:
            pieces = [*pieces[: most - 1], f"{pieces[most - 1][: width - 2]} …"]
        for place, piece in enumerate(pieces):
            name = "" if width == _WIDTH else f"{label if place == 0 else '':<{_LABEL}}"
            lines.append(Text(name, style="dim").append(piece, style=f"not dim {style}".strip()))
    return lines


def show_scores(subject: Subject, found: ScoresAudit) -> None:
    """Print the audit of a table of scores in one look: what the score tells, how good it is, groups, the page."""
    from fairbits.report import lead

    console = Console(highlight=False)
    document = found.document
    head = lead(document, blind=True).strip()
    rows = [("", f"{subject.name}: {head}" if head else subject.name, "bold", 2)]
    quality = () if subject.quality is None else subject.quality.lines()
    rows += [(name, line, "", 2) for name, line in zip(("decision", "accuracy"), quality, strict=False)][::-1]
    rows += [*_indirect(document), ("model", "not at hand: the table holds its scores", "", 1)]
    rows += [("note", note, "yellow", 2) for note in document["notes"][:2]]
    for line in _folded(rows)[:_LINES]:
        console.print(line)
    console.print(Text(f"{'report':<{_LABEL}}").append(str(found.page), style="bold"), soft_wrap=True)


def _rows(found: AuditResult) -> Iterator[tuple[str, str, str, int]]:
    """What it is, the words, their style, and how many lines they may take."""
    data = found.data
    for one in data.contradictions[:2]:
        yield "error", f"{one.words()}: withdrawn, an error of ours", "red", 3
    leads = data.sentence.removesuffix(data.direct).strip() if data.about.blind else ""
    yield "", f"{data.about.subject}: {leads or data.opening.people or data.direct}", "bold", 2
    yield from _people(data)
    quality = data.about.quality.lines()
    yield "accuracy", quality[1], "", 2
    yield "decision", quality[0], "", 2
    yield "bits", _bits(data), "", 3
    if data.about.blind and data.proxies is not None:
        yield from _indirect(data.proxies)
    failed = {stage: f"not possible: {fault}" for stage, fault in found.faults.items()}
    most = 2 if len(failed) < 3 else 1
    for stage, label, rows in (("debug", "cause", _cause), ("repair", "repair", _repair)):
        yield from rows(data)
        if stage in failed:
            yield label, failed.pop(stage), "yellow", most
    yield from _guarantee(data)
    noise = data.measured.noise
    for note in () if noise is None else noise.notes(data.about.epsilon)[:1]:
        yield "note", note, "yellow", 2
    for stage, words in failed.items():
        yield stage, words, "yellow", most
    times = " · ".join(f"{stage} {took:.1f} s" for stage, took in found.seconds.items() if took is not None)
    yield "took", f"{waited()}: {times}", "dim", 2


def _people(data: ReportData) -> Iterator[tuple[str, str, str, int]]:
    """How many, and who is treated worst."""
    measured = data.measured
    rate = measured.flip_rate or measured.split_rate
    if data.about.blind:
        return
    what = "decided otherwise as somebody else" if measured.flip_rate else "with more than one class"
    many = f"{round(rate.value * measured.rows):,} of {measured.rows:,} {what} ({data.opening.kind})"
    yield "people", f"{many}; 95 % interval {rate.low:.1%} to {rate.high:.1%}", "", 2
    person = next((one for one in data.people if one.k > 1), None)
    if person is not None:
        own = f" ({', '.join(person.own.values())[:40]})" if person.own else ""
        ends = f"{person.low:.3f} as {person.worst[:40]}, {person.high:.3f} as {person.best[:40]}"
        yield "worst", f"{person.place}{own}: {ends}", "", 2


def _bits(data: ReportData) -> str:
    words = {one.people: one.people.replace(" attributes", "").replace(" attribute", "") for one in data.near}
    near = {words[one.people]: f"{one.k}{'' if one.exact else '+'}" for one in data.near if one.k is not None}
    more = " (+: a lower bound)" if any(value.endswith("+") for value in near.values()) else ""
    ks = ", ".join(f"{people} {value}" for people, value in near.items())
    return data.direct if data.about.blind else f"{data.direct} Largest k: {ks}{more}."


def _indirect(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, int]]:
    """No twins differ: what the score tells beyond the headline, and the groups that fare worst."""
    from fairbits.proxies import guessed, sentence_of

    single = [one for one in document["attributes"] if " × " not in one["attribute"]]
    known = [one for one in single if one["bits"] is not None]
    first = max(known, key=lambda one: one["bits_low"], default=None)  # the headline tells its bits
    if first is not None:
        yield "odds", guessed(first), "", 4
    for entry in [one for one in single if one is not first][:3]:
        yield "indirect", f"{sentence_of(entry)[:1].upper()}{sentence_of(entry)[1:]}", "", 2
    for table in document["groups"]:
        ratios = [one for one in table["groups"] if one["impact_ratio"] is not None]
        if " × " not in table["attribute"] and len(ratios) > 1:
            least = min(ratios, key=lambda one: one["impact_ratio"])
            ratio = ratio_words(*(least.get(f"impact_ratio{end}") for end in ("", "_low", "_high")))
            words = f"lowest impact ratio by {table['attribute']}: {least['group'][:40]} {ratio}"
            yield "groups", f"{words}, selected {least['selection_rate']:.1%}", "", 2


def _cause(data: ReportData) -> Iterator[tuple[str, str, str, int]]:
    debugged = data.debugged
    if debugged is None:
        return
    shares = sorted(debugged.shares, key=lambda share: -share.shapley)[:5]
    parts = [", ".join(f"{share.attribute[:20]} {share.share:.0%}" for share in shares)] if shares else []
    unit = "tree" if debugged.units == "trees" else "layer"
    parts += [f"{unit} {debugged.suspect}"] if debugged.suspect is not None else []
    whole = debugged.splits[0] if debugged.splits else None
    if whole is not None:
        parts.append(
            f"{whole.shared:.0%} comes with the data ({whole.low:.0%} to {whole.high:.0%}), the rest with training"
        )
    else:
        parts.append("data or training: not known")
    yield "cause", "; ".join(parts), "", 2


def _repair(data: ReportData) -> Iterator[tuple[str, str, str, int]]:
    repaired = data.repaired
    if repaired is None:
        return
    chosen = next((mend for mend in repaired.repairs if mend.chosen), None)
    if chosen is None:
        yield "repair", f"none chosen: {repaired.words}", "yellow", 2
        return
    yield (
        "repair",
        f"{chosen.name}: mean k {repaired.k_mean_before:.2f} → {chosen.k_mean:.2f}, {repaired.quality} "
        f"{repaired.accuracy_before:.1%} → {chosen.accuracy:.1%} (held out, statistical)",
        "",
        2,
    )


def _guarantee(data: ReportData) -> Iterator[tuple[str, str, str, int]]:
    """The strongest statement about more people than those of the table, before and after the repair."""
    if data.about.blind:
        if data.about.protected:
            yield "guarantee", "k = 1 for everybody (proved, by structure)", "", 1
        return
    repaired = data.repaired
    known = [
        one
        for one in data.certified
        if one.model == "model" and one.is_certain() and not _about_rows(one) and one.share < 1
        # Nobody can have more classes than twins, and a bound that somebody is known to exceed guarantees nothing.
        if one.property != "k" or max(near.k or 1 for near in data.near) <= one.bound < data.about.m
    ]
    if known:
        best = min(known, key=lambda one: (one.kind == "statistical", one.share))
        yield "guarantee", f"{best.population}: {best.sentence()}", "", 2
    if repaired is not None and repaired.k_max_proved is not None:
        yield ("" if known else "guarantee"), f"repaired: k ≤ {repaired.k_max_proved} for everybody (proved)", "", 1
    elif not known:
        yield "guarantee", "none beyond the rows examined", "dim", 1


def _about_rows(one: Statement) -> bool:
    return one.whom is None or one.whom.kind == "rows"
