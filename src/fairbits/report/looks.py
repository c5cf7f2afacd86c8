"""One look at a result, as a terminal shows it: the first blocks of the page, people before bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fairbits.blocks import (
    Block,
    Facts,
    Fold,
    Heading,
    Paragraph,
    People,
    PersonCard,
    Strong,
    TableBlock,
    label,
    paragraphs,
    share,
)
from fairbits.debug import DebugResult
from fairbits.measure import GroupTable, Measurement, documents_of
from fairbits.report.compute import about_of, measured_now, near_of, people_sentence, sentence
from fairbits.report.record import ReportData
from fairbits.report.sections.details import search_blocks
from fairbits.report.sections.people import card_of, case_card
from fairbits.report.sections.repairs import cost_words
from fairbits.report.sections.summary import flip_blocks, flip_rows
from fairbits.report.sections.treatment import (
    BLIND,
    bits_table,
    bound_blocks,
    impact_blocks,
    lowest_ratios,
    study_blocks,
    tail_blocks,
)
from fairbits.store import Case, Run
from fairbits.subject import Quality, Subject
from fairbits.text import joined, number, percent, shortened


def measure_look(subject: Subject, found: Measurement, groups: Sequence[GroupTable], *, top: int) -> Iterator[Block]:
    """A measurement: who would get a different decision, the bits, the people treated most differently, groups."""
    about = about_of(subject, found.evaluator)
    measured = measured_now(found)
    bits = float(found.evaluation.q_inf.max())
    if about.blind:
        yield Paragraph((Strong(f"{subject.name}: "), Strong(sentence(about, bits, found.noise))))
        yield Paragraph(f"That holds for everybody, examined or not: {BLIND}.")
    else:
        yield Paragraph(Strong(f"{subject.name}: {people_sentence(measured, about.people)}"))
        used = f"{number(bits, 2)} of {number(about.bits_limit, 2)} bits of {joined(list(about.protected))}"
        yield Paragraph(f"Decisions about them use up to {used}.")
    sizes = " × ".join(f"{name} {size}" for name, size in zip(about.protected, about.sizes, strict=True))
    terms = f"ε = {about.epsilon:g}, {about.partition} partition"
    who = "people" if about.people is None else f"rows of {number(about.people)} people"
    yield Paragraph(f"{number(len(found))} {who}, {about.m:,} twins each ({sizes}); {terms}.", tone="small")
    yield from paragraphs(subject.lines(), "small")
    if found.schema.rules:
        rules = f"{len(found.schema.rules)} rule{'s' * (len(found.schema.rules) > 1)}"
        yield Paragraph(f"{rules} removed {number(found.twins_removed)} twins.", tone="small")
    noise = () if found.noise is None else found.noise.notes(about.epsilon)
    yield from paragraphs((f"Note: {note}" for note in noise), "warning")
    if not about.blind:
        yield from flip_blocks(measured)
        worst = people_of(found, top) if bits else []
        yield People(worst[:1])
        yield bits_table(measured)
        yield from tail_blocks(measured.tail, measured.kind)
        if worst[1:]:
            yield Fold("More people treated differently", [People(worst[1:])])
    if groups:
        yield Heading("Impact: what groups get", "statistical")
        yield from impact_blocks({"groups": documents_of(groups)})
    if not about.blind:
        stakes = [(f"{one.attribute}: {one.value}", one.lowest, one.highest) for one in measured.stakes]
        yield Fold(
            "Whose score is lowest and highest, where twins differ",
            [TableBlock([label("protected value"), share("lowest twin"), share("highest twin")], stakes)],
        )
        yield from bound_blocks(measured)
    # What twins leave out is a note of the subject.
    limits = [one.text for one in found.limits if one.limit == "support"]
    yield from paragraphs((f"Note: {note}" for note in (*limits, *subject.notes)), "note")


def people_of(found: Measurement, top: int) -> list[PersonCard]:
    worst = found.worst(top) if top else []
    return [
        card_of(one, rank, found.table.place(one.position) + (f", {one.rows} rows alike" if one.rows > 1 else ""))
        for rank, one in enumerate(worst, 1)
    ]


def titled(title: str, lines: Iterable[str], blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks of a stage by themselves: what they are about, and how the model agrees with the labels."""
    yield Paragraph(Strong(title))
    yield from paragraphs(lines, "small")
    yield from blocks


def cases_look(run: Run, found: Sequence[Case], where: str | None) -> Iterator[Block]:
    title = f"Treated most differently{' that fit' if where else ''}, of {len(run):,} cases"
    if not found:
        title = f"Of the {len(run):,} cases, none fits {where!r}." if where else "The run has no cases."
    yield from titled(
        title,
        quality_lines(run.manifest.get("quality")),
        [People([case_card(case, rank) for rank, case in enumerate(found, 1)], not run.schema.regression)],
    )


def study_look(subject: Subject, document: Mapping[str, Any]) -> Iterator[Block]:
    kind = "scores only" if subject.scores_only else "its scores"
    yield Paragraph(Strong(f"{subject.name}: {number(document['rows'])} people, {kind}"))
    yield from study_blocks(document, subject.lines())
    yield from paragraphs((f"Note: {note}" for note in subject.notes), "note")


def search_look(run: Run, *, top: int, lines: tuple[str, ...], notes: Sequence[str] = ()) -> Iterator[Block]:
    """A search: what it found, the largest k by distance to real rows, the people treated most differently."""
    figures = run.summary or {}
    bits = max((case.q_inf for case in run.worst(1)), default=0.0)
    names = joined([shortened(name, 60) for name in run.schema.protected])
    used = f"found decisions that use {number(bits, 2)} of {number(figures['bits_limit'], 2)} bits of {names}"
    yield Paragraph(Strong(f"{figures['subject']}: {used if figures['cases'] else 'no case was found'}."))
    if run.status == "interrupted":
        yield Paragraph(f"Ended early; go on with: fairbits search --resume {run.folder}", tone="warning")
    yield from paragraphs(run.warnings(), "warning")
    yield from search_blocks(
        run, near_of(figures, rows_k_max=0, rows_exact=False), top=top, lines=(*quality_lines(figures), *lines)
    )
    yield from paragraphs((f"Note: {note}" for note in notes), "note")


def quality_lines(figures: Mapping[str, Any] | None) -> tuple[str, ...]:
    """How the model agrees with the labels, as a run remembers it."""
    return () if not figures or "decision" not in figures else Quality.of_figures(dict(figures)).lines()


def audit_look(
    data: ReportData,
    *,
    asked: Sequence[str],
    faults: Mapping[str, str],
    seconds: Mapping[str, float | None],
    waited: str,
) -> Iterator[Block]:
    """An audit in the order of its page: people, accuracy, bits, cause, repair, what is certain, what was not run."""
    yield from paragraphs(
        (f"Error: {one.words()}: withdrawn, an error of ours." for one in data.contradictions[:2]), "warning"
    )
    leads = data.sentence.removesuffix(data.direct).strip() if data.about.blind else ""
    yield Paragraph(Strong(f"{data.about.subject}: {leads or data.opening.people or data.direct}"))
    yield from paragraphs(asked, "small")
    yield Facts(list(_pairs(data)))
    noise = data.measured.noise
    yield from paragraphs(() if noise is None else noise.notes(data.about.epsilon)[:1], "warning")
    yield from paragraphs((f"{stage.capitalize()} not run: {fault}" for stage, fault in faults.items()), "warning")
    times = " · ".join(f"{stage} {number(took, 1)} s" for stage, took in seconds.items() if took is not None)
    yield Paragraph(f"{waited}: {times}", tone="small")


def _pairs(data: ReportData) -> Iterator[tuple[str, str]]:
    about, quality = data.about, data.about.quality.lines()
    rows = [] if about.blind else flip_rows(data.measured)
    if len(rows) > 1:
        yield "people", ", ".join(f"{percent(row[1])} if {row[0]} differed" for row in rows[: len(about.protected)])
    person = next((one for one in data.people if one.k > 1), None)
    if person is not None:
        own = f" ({shortened(', '.join(person.own.values()), 40)})" if person.own else ""
        ends = f"{number(person.low, 3)} as {shortened(person.worst, 40)}, {number(person.high, 3)} as "
        yield "worst", f"{person.place}{own}: {ends}{shortened(person.best, 40)}"
    ratios = [
        f"{number(group['impact_ratio'], 2)} for {shortened(group['group'], 30)} ({shortened(name, 20)})"
        for name, group in lowest_ratios(data.proxies)
    ]
    if ratios:
        yield "groups", f"lowest impact ratio {', '.join(ratios)}"
    yield "accuracy", quality[1]
    mean = f"Mean on real rows {number(data.measured.figures['q_inf_mean'], 2)}"
    largest = [f"{one.k} {'on ' * (i == 0)}{one.people}" for i, one in enumerate(data.near) if one.k is not None]
    both = ", ".join(dict.fromkeys((largest[0], largest[-1])))
    yield "bits", data.direct if about.blind else f"{data.direct} {mean}; largest k {both}."
    if data.debugged is not None:
        yield "cause", "; ".join(_causes(data.debugged))
    if data.repaired is not None:
        yield "repair", cost_words(data.repaired).removeprefix("Recommended: ")
    yield "certain", _certain(data)
    yield "decision", quality[0]


def _causes(found: DebugResult) -> Iterator[str]:
    if found.attribution is not None:
        bits = found.attribution.q_inf
        total = sum(bits.values()) or 1.0
        ranked = sorted(bits, key=lambda name: -bits[name])[:5]
        yield ", ".join(f"{shortened(name, 20)} {percent(bits[name] / total, 0)}" for name in ranked)
    if found.suspect is not None:
        yield f"{found.units.removesuffix('s')} {found.suspect}"
    if found.origin.shares:
        shared = found.origin.shares[0].shared
        value, low, high = (percent(one, 0) for one in (shared.value, shared.low, shared.high))
        ends = f" ({low} to {high})" if low != high else ""
        short = f", by {found.origin.trainings} short trainings; longer ones share less" if found.origin.epochs else ""
        rest = ", the rest with training" if low != percent(1.0, 0) else ""
        yield f"{value}{ends} comes with the data{rest}{short}"
    else:
        yield "data or training: not run"


def _certain(data: ReportData) -> str:
    """The strongest statement about more people than those of the table, before and after the repair."""
    if data.about.blind:
        return "k = 1 for everybody (proved, by structure)" if data.about.protected else "nobody has a twin"
    seen = max(near.k or 1 for near in data.near)
    known = [
        one
        for one in data.certified
        if one.model == "model" and one.is_certain() and one.share < 1
        if one.whom is not None and one.whom.kind != "rows"
        # Nobody can have more classes than twins, and a bound that somebody is known to exceed guarantees nothing.
        if one.property != "k" or seen <= one.bound < data.about.m
    ]
    best = min(known, key=lambda one: (one.kind == "statistical", one.share), default=None)
    said = [] if best is None else [f"{best.population}: {best.sentence().removesuffix('.')}"]
    chosen = None if data.repaired is None else data.repaired.chosen
    if chosen is not None and chosen.proof is not None:
        said.append(f"repaired: k ≤ {chosen.proof.bound} for everybody (proved)")
    return "; ".join(said) or "nothing beyond the people examined"
