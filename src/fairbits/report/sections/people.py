"""The worst people, real ones and found ones, with the scores of all their twins.

Who is affected: which protected values cost a score or a decision, how often and by how much; and rules that tell whose
decision flips, in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.blocks import (
    Bar,
    Block,
    Code,
    Drawing,
    Fold,
    Heading,
    Paragraph,
    People,
    PersonCard,
    between,
    change,
    figure,
    label,
    share,
    table_by,
    table_of,
    whole_percent,
)
from fairbits.debug import Description
from fairbits.domain import Codes, Table
from fairbits.measure import Evaluator, Person, assign
from fairbits.report.record import Axes, Portrait, ReportData
from fairbits.store import Case, Run
from fairbits.text import number, percent

#: Found people with a portrait in the report.
FOUND = 6


def axes_of(evaluator: Evaluator) -> Axes:
    twins = evaluator.twins
    return Axes(
        names=tuple(evaluator.schema.attributes[i].name for i in twins.columns),
        values=twins.axes,
        # With three classes or more the most likely one is decided, whatever the score of one of them.
        threshold=evaluator.schema.rule.threshold,
    )


def real_people(evaluator: Evaluator, table: Table, rows: list[int]) -> list[Portrait]:
    if not rows:
        return []
    return _portraits(evaluator, table.codes[rows], [row_words(table, row) for row in rows], real=True)


def row_words(table: Table, row: int) -> str:
    return table.place(row) + (" of the table" if table.file is None else "")


def found_people(evaluator: Evaluator, run: Run) -> list[Portrait]:
    """Portraits of the worst cases that are no rows of the table."""
    table = run.cases(where="changed <> 0", top=FOUND, labels=False)
    if not table.num_rows:
        return []
    codes = np.concatenate([run.layout.codes_of(batch) for batch in table.to_batches()])
    return _portraits(
        evaluator, codes, [distance_words(changed) for changed in table["changed"].to_pylist()], real=False
    )


def portrait_of(evaluator: Evaluator, codes: Codes, place: str = "as given") -> Portrait:
    return _portraits(evaluator, np.atleast_2d(codes), [place], real=False)[0]


def distance_words(changed: int) -> str:
    """How far somebody is from real rows, in words."""
    if changed < 0:
        return "distance to real rows unknown"
    if changed == 0:
        return "like a row of the table"
    return f"{changed} attribute{'s' if changed > 1 else ''} away from a real row"


def _portraits(evaluator: Evaluator, codes: Codes, places: list[str], *, real: bool) -> list[Portrait]:
    schema = evaluator.schema
    twins = evaluator.twins
    figures = evaluator.evaluate(codes)
    table = evaluator.scores(codes)[:, twins.grid]
    valid = evaluator.valid_twins(codes)
    own, every = np.argsort(twins.grid)[twins.place_of(codes)], twins.count(codes)
    found = []
    for i, place in enumerate(places):
        there = np.ones(evaluator.m, np.bool_) if valid is None else valid[i][twins.grid]
        person = schema.read(codes[i])
        found.append(
            Portrait(
                rank=i + 1,
                real=real,
                place=place,
                k=int(figures.k[i]),
                q_inf=float(figures.q_inf[i]),
                q_1=float(figures.q_1[i]),
                low=float(figures.low[i]),
                high=float(figures.high[i]),
                worst=twins.label(int(figures.low_twin[i]), codes[i]),
                best=twins.label(int(figures.high_twin[i]), codes[i]),
                twins=int(there.sum()),
                favourable=int(figures.favourable[i]),
                flips=bool(figures.flips[i]),
                attributes={name: value for name, value in person.items() if name not in schema.protected},
                scores=tuple(np.where(there, table[i].astype(float), np.nan).tolist()),
                classes=_classes(table[i], there, int(figures.k[i]), evaluator),
                removed=int(every[i] - there.sum()),
                own={name: person[name] for name in schema.protected} if real else {},
                own_twin=int(own[i]) if real else -1,
            )
        )
    return found


def _classes(
    scores: npt.NDArray[np.float32], there: npt.NDArray[np.bool_], k: int, evaluator: Evaluator
) -> tuple[int, ...]:
    """The class of every twin that can exist; where whole vectors are compared, only if one score says it."""
    if evaluator.by_vector and k not in (1, there.sum()):
        return ()
    members = np.full(len(scores), -1)
    members[there] = assign(scores[None, there], evaluator.epsilon, evaluator.partition)[0]
    return tuple(members.tolist()) if members.max() + 1 == k else ()


def card_of(one: Portrait | Case | Person, rank: int, place: str, small: str = "", **more: Any) -> PersonCard:
    """Who somebody is, and which twins score lowest and highest."""
    return PersonCard(
        id=more.pop("id", f"person-{rank}"),
        rank=rank,
        k=f"k\u202f=\u202f{one.k}",
        bits=f"{number(one.q_inf, 2)} bits",
        own=more.pop("own", ""),
        place=place,
        tags=("decision flips",) if one.flips else (),
        ends=((number(one.low, 3), f"lowest, as {one.worst}"), (number(one.high, 3), f"highest, as {one.best}")),
        facts=tuple(one.attributes.items()),
        small=small,
        **more,
    )


def case_card(case: Case, rank: int) -> PersonCard:
    """A case of a search, and how it was found."""
    start = f" from row {case.seed_row + 1}" if case.seed_row >= 0 else ""
    figures = f"span {number(case.span, 3)}, plausibility {number(case.plausibility)}"
    small = f"{figures}; evaluation {number(case.evaluation)}, {case.origin}{start}"
    return card_of(case, rank, distance_words(case.changed), small)


def portrait_card(one: Portrait, data: ReportData, *, opened: bool = False) -> PersonCard:
    """Somebody with pictures of the scores of all their twins."""
    name = f"{'row' if one.real else 'case'}-{one.rank}"
    line = "" if data.axes.threshold is None else " Dashed: the decision threshold."
    bands = f" Shaded bands: every other ε-class.{line}"
    favourable = f"{number(one.favourable)} of {number(one.twins)} twins get a favourable decision."
    small = "" if data.about.regression else favourable
    if one.removed:
        why = "cannot exist under the rules" if data.measured.figures["rules"] else "are not in the table"
        small += f" {number(one.removed)} twins {why} and are left out."
    cells = "One cell per twin, coloured by score; the number is its ε-class, 1 the lowest."
    cells += "" if data.axes.threshold is None else " The line separates decisions."
    cells += " The ring marks the person's own values." if one.own else ""
    return card_of(
        one,
        one.rank,
        one.place,
        small.strip(),
        id=name,
        own=", ".join(one.own.values()),
        own_facts=tuple((f"{name} (protected)", value) for name, value in one.own.items()),
        pictures=(
            Drawing(f"{name}-map", cells),
            Drawing(f"{name}-line", f"The score of each twin.{bands}"),
            Drawing(f"{name}-steps", f"All {number(one.twins)} scores in order.{bands}"),
        ),
        open=opened,
    )


def people_blocks(data: ReportData) -> Iterator[Block]:
    """Rows of the table first; those that the search found are folded."""
    decides = not data.about.regression
    real, found = ([one for one in data.people if one.real is real] for real in (True, False))
    yield Paragraph(
        "Ranked by the number of classes, then by the distance between the lowest and the highest score. Each line "
        "says who they are, who of their twins scores lowest and who highest.",
        tone="lead",
    )
    if real:
        yield Heading("Rows of the table", data.measured.kind)
        yield People([portrait_card(one, data, opened=i == 0) for i, one in enumerate(real)], decides)
    if found:
        yield Fold(
            "Found by the search, not in the table",
            [People([portrait_card(one, data) for one in found], decides)],
            kind="lower bound",
        )
    cases = f"All {number(data.searched.figures['cases'])} cases: "
    yield Paragraph((cases, Code("fairbits cases RUN"), ", with the folder of this report as RUN."), tone="small")


def affected_blocks(data: ReportData) -> Iterator[Block]:
    """How much each protected value costs, how often, and the rows by the number of their classes."""
    stakes, cases = data.measured.stakes, data.searched.stakes
    if not any(stake.lowest or stake.highest for stake in (*stakes, *cases)):
        yield Paragraph("Nobody examined is treated differently.", tone="lead")
        return
    harms = data.measured.harms
    decides = any(harm.lost is not None for harm in harms)
    widest = max((abs(harm.gap) for harm in harms), default=0.0) or 1.0
    lost = (
        "; and the share of people who would get a favourable decision under another value, but lose it under this one"
    )
    yield Paragraph(
        f"How much: over {number(data.measured.harmed_people)} rows, the score under a protected value minus the mean "
        f"over all values of that attribute{lost if decides else ''}. The other protected attributes take all their "
        "values.",
        kind="exact" if data.measured.harmed_people == data.measured.rows_total else "statistical",
        tone="lead",
    )
    told = {(one.attribute, one.value): (one.gap, Bar(one.gap / widest, middle=True), one.lost) for one in harms}
    lines = [
        (f"{row.attribute}: {row.value}", *told.get((row.attribute, row.value), (None,) * 3), row.lowest, row.highest)
        for row in stakes
    ]
    heads = [label("protected value"), change("mean score gap", 3), label("")]
    own = share("decisions lost") if decides else None
    yield table_of([*heads, own, share("lowest twin"), share("highest twin")], lines)
    yield Paragraph(
        "Lowest and highest twin: among the rows with more than one class, how often this value is part of the twin "
        "with the lowest score, and of the one with the highest.",
        tone="small",
    )
    found = table_by(
        cases,
        [
            (label("protected value"), lambda one: f"{one.attribute}: {one.value}"),
            (share("lowest"), lambda one: one.lowest),
            (label(""), lambda one: Bar(one.lowest)),
            (share("highest"), lambda one: one.highest),
            (label(""), lambda one: Bar(one.highest)),
        ],
    )
    yield Fold("How often, among the cases of the search", [found])


def who_blocks(found: Description | None) -> Iterator[Block]:
    """The rules as a table, beside the base rate, and the command that restricts a search to the first of them."""
    if found is None:
        return
    yield Paragraph(found.words, kind="statistical" if found.base is not None else "")
    if not found.rules or found.base is None or found.together is None:
        return
    such = "flip" if found.target == "flips" else f"k above {found.above}"
    yield table_by(
        [*found.rules, *([found.together] if len(found.rules) > 1 else [])],
        [
            (label("people with"), lambda one: "any of these" if one is found.together else one.text),
            (figure("rows"), lambda one: one.people),
            (share("of all", 0), lambda one: one.share.value),
            (share(such, 0), lambda one: one.precision.value),
            (between("95 %", whole_percent), lambda one: (one.precision.low, one.precision.high)),
            (share("coverage", 0), lambda one: one.coverage.value),
            (between("95 %", whole_percent), lambda one: (one.coverage.low, one.coverage.high)),
        ],
        f"Learned on {number(found.learned)} rows, judged on {number(found.judged)} others, of whom "
        f"{percent(found.base.value, 0)} are people {found.what}; coverage is the share of these",
    )
    command = found.command("search", found.rules[0])
    if command is not None:
        yield Paragraph(
            (Code(command), " looks at the first of them alone; so do measure, certify and repair."), tone="small"
        )
