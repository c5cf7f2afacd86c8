"""One look at a result, as a terminal shows it: the first blocks of the page, people before bits.

In a notebook a result is shown as the page shows it, as a figure, and as a frame of the library that the user's table
was of. Results stand in layers below this one and must not know it. They are :class:`fairbits.blocks.Shown`, which asks
for this module by name when a notebook asks it; what a result looks like is a line of ``_VIEWS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np

from fairbits.blocks import (
    Block,
    Facts,
    Fold,
    Heading,
    Paragraph,
    People,
    PersonCard,
    Strong,
    label,
    paragraphs,
    share,
    table_by,
)
from fairbits.certify import Certificate
from fairbits.debug import DebugResult
from fairbits.errors import OptionError
from fairbits.measure import GroupTable, Measurement, documents_of
from fairbits.repair import RepairResult
from fairbits.report.compute import about_of, measured_now, near_of, people_sentence, sentence
from fairbits.report.html import render_fragment
from fairbits.report.record import ReportData
from fairbits.report.sections.details import debug_blocks, search_blocks
from fairbits.report.sections.people import card_of, case_card
from fairbits.report.sections.repairs import cost_words, points, repair_blocks
from fairbits.report.sections.summary import certificate_blocks, flip_blocks, flip_rows
from fairbits.report.sections.treatment import (
    BLIND,
    bits_table,
    bound_blocks,
    impact_blocks,
    lowest_ratios,
    study_blocks,
    tail_blocks,
)
from fairbits.store import Case, Run, record_from_json
from fairbits.subject import Quality, Subject
from fairbits.text import from_to, joined, number, percent, shortened


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
    terms = f"ε = {about.epsilon:g}, {about.partition} partition"
    who = "people" if about.people is None else f"rows of {number(about.people)} people"
    twins = f"{'at most ' * about.open}{about.m:,} twins each ({about.factors})"
    yield Paragraph(f"{number(len(found))} {who}, {twins}; {terms}.", tone="small")
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
        stakes = table_by(
            measured.stakes,
            [
                (label("protected value"), lambda one: f"{one.attribute}: {one.value}"),
                (share("lowest twin"), lambda one: one.lowest),
                (share("highest twin"), lambda one: one.highest),
            ],
        )
        yield Fold("Whose score is lowest and highest, where twins differ", [stakes])
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
    return () if not figures or "decision" not in figures else record_from_json(Quality, figures).lines()


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
    origin = found.origin
    if origin.shares:
        shared = origin.shares[0].shared
        ends = f" ({from_to(shared.low, shared.high, 0)})" if shared.low < shared.high else ""
        short = f" (from {origin.trainings} short trainings; longer ones agree less)" if origin.epochs else ""
        rest = ", the rest with this training" if shared.low < 0.995 else ""
        yield f"{percent(shared.value, 0)}{ends} comes with the data{rest}{short}"
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


#: People that a result shows.
PEOPLE = 3
#: Libraries of frames, in the order in which they are taken where the user's table was of neither.
LIBRARIES = ("pandas", "polars")
#: What a result looks like: its blocks, its figure by the name in ``fairbits.plot``, and its rows by column.
_View: TypeAlias = tuple[Callable[[Any], Iterator[Block]], str, Callable[[Any], Mapping[str, Any]]]


def html_of(result: Any) -> str:
    """A result as a part of a page, with its style."""
    return render_fragment(_view(result)[0](result))


def figure_of(result: Any) -> Any:
    """A result as a matplotlib figure, made without pyplot."""
    from fairbits.report import plots

    return getattr(plots, _view(result)[1])(result)


def frame_of(result: Any) -> Any:
    """A result as a data frame: of the library that the user's own table came from, else of pandas, else of polars."""
    columns = dict(_view(result)[2](result))
    # A table stands in a measurement, and in the subject that a run was started with.
    own = getattr(result, "table", None) or getattr(getattr(result, "_given", None), "table", None)
    library = getattr(own, "library", None) or next((name for name in LIBRARIES if find_spec(name) is not None), None)
    if library is None:
        raise OptionError(
            "a frame needs pandas or polars, and neither is here; install one, such as: pip install pandas"
        )
    if library in ("polars", "pyarrow"):
        import narwhals.stable.v2 as nw

        return nw.from_dict(columns, backend=import_module(library)).to_native()
    pd = import_module("modin.pandas" if library == "modin" else "pandas")
    index = pd.Index(columns.pop("row"), name="row") if "row" in columns else None
    return pd.DataFrame(columns, index=index)


def _view(result: Any) -> _View:
    return next(_VIEWS[kind] for kind in type(result).__mro__ if kind in _VIEWS)


def _measurement(found: Measurement) -> Iterator[Block]:
    measured = measured_now(found)
    evaluator = found.evaluator
    twins = f"{number(len(found))} people, {number(evaluator.m_in_table)} twins each; ε = {evaluator.epsilon:g}."
    yield Paragraph(Strong(people_sentence(measured)), kind=measured.kind)
    yield Paragraph(twins, tone="small")
    yield from flip_blocks(measured)
    yield bits_table(measured)
    yield People(people_of(found, PEOPLE), not found.schema.regression)
    yield from paragraphs((one.text for one in found.limits), "note")


def _run(run: Run) -> Iterator[Block]:
    if run.summary is None:
        yield Paragraph(Strong(f"{run.manifest['subject']}: {number(len(run))} cases so far; {run.status}."))
    else:
        yield from search_look(run, top=PEOPLE, lines=())
    yield Paragraph(f"In {run.folder}.", tone="small")


def _figures(found: Measurement) -> dict[str, Any]:
    columns = {name: getattr(found.evaluation, name) for name in ("k", "q_inf", "q_1", "low", "high", "flips")}
    return {"row": found.table.names(), **{name: np.asarray(values) for name, values in columns.items()}}


def _cases(run: Run) -> dict[str, Any]:
    table = run.cases()
    return {name: table[name].to_numpy() for name in table.column_names}


def _repairs(found: RepairResult) -> dict[str, Any]:
    """As held-out evidence has it, the model as it is first."""
    figures = [found.before_held_out, *(one.held_out for one in found.repairs)]
    return {
        "repair": ["as it is", *(one.name for one in found.repairs)],
        **_columns(figures, "accuracy", "k_mean", "k_mean_rows", "id_rate", "id_rate_rows"),
        "accuracy_change_95": [None, *(points(one) or None for one in found.repairs)],
        "k_max_proved": [None, *(None if one.proof is None else one.proof.bound for one in found.repairs)],
        "within_budget": [True, *(one.within_budget for one in found.repairs)],
        "chosen": [False, *(one is found.chosen for one in found.repairs)],
    }


def _statements(found: Certificate) -> dict[str, Any]:
    names = ("kind", "property", "model", "population", "people", "certified", "falsified", "open", "bound")
    return {
        **_columns(found.statements, *names, "confidence"),
        "statement": [one.sentence() for one in found.statements],
    }


def _columns(rows: Iterable[Any], *names: str) -> dict[str, list[Any]]:
    return {name: [getattr(one, name) for one in rows] for name in names}


_NEURONS = ("layer", "neuron", "acd", "acd_low", "acd_high", "label")
_VIEWS: dict[type[Any], _View] = {
    Measurement: (_measurement, "severity", _figures),
    Run: (_run, "severity", _cases),
    DebugResult: (debug_blocks, "shapley", lambda found: _columns(found.neurons, *_NEURONS)),
    RepairResult: (repair_blocks, "pareto", _repairs),
    Certificate: (certificate_blocks, "statements", _statements),
}
