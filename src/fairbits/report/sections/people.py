"""The worst people, real ones and found ones, with the scores of all their twins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Table
from fairbits.measure import Evaluator, assign, check_partition
from fairbits.report.markup import table as md_table
from fairbits.report.markup import text, value_text
from fairbits.report.record import Axes, Portrait, ReportData
from fairbits.report.section import Section, twins_differ
from fairbits.store import Run

#: Found people with a portrait in the report.
FOUND = 6


def axes_of(evaluator: Evaluator) -> Axes:
    """The protected attributes and their values."""
    twins = evaluator.twins
    attributes = [evaluator.schema.attributes[i] for i in twins.columns]
    values = [tuple(attribute.read_twin(code) for code in attribute.twin_values()) for attribute in attributes]
    if len(values) == 1:  # a person's own value has a place along a single axis; a table of several has none for it
        values = [twins.all_labels]
    return Axes(
        names=tuple(attribute.name for attribute in attributes),
        values=tuple(values),
        # With three classes or more the most likely one is decided, whatever the score of one of them.
        threshold=evaluator.schema.rule.threshold,
    )


def real_people(evaluator: Evaluator, table: Table, rows: list[int]) -> list[Portrait]:
    """Portraits of rows of the table."""
    if not rows:
        return []
    return _portraits(evaluator, table.codes[rows], [row_words(table, row) for row in rows], real=True)


def row_words(table: Table, row: int) -> str:
    """The name of a row."""
    return table.place(row) + (" of the table" if table.file is None else "")


def found_people(evaluator: Evaluator, run: Run) -> list[Portrait]:
    """Portraits of the worst cases that are no rows of the table."""
    table = run.cases(where="changed <> 0", top=FOUND, labels=False)
    if not table.num_rows:
        return []
    codes = np.concatenate([run.layout.codes_of(batch) for batch in table.to_batches()])
    places = [distance_words(changed) for changed in table["changed"].to_pylist()]
    return _portraits(evaluator, codes, places, real=False)


def portrait_of(evaluator: Evaluator, codes: Codes, place: str = "as given") -> Portrait:
    """The portrait of one person."""
    return _portraits(evaluator, np.atleast_2d(codes), [place], real=False)[0]


def distance_words(changed: int) -> str:
    """How far somebody is from real rows, in words."""
    if changed < 0:
        return "distance to real rows unknown"
    if changed == 0:
        return "like a row of the table"
    return f"{changed} attribute{'s' if changed > 1 else ''} away from a real row"


def _portraits(evaluator: Evaluator, codes: Codes, places: list[str], *, real: bool) -> list[Portrait]:
    table = evaluator.scores(codes)
    valid = evaluator.valid_twins(codes)
    figures = evaluator.evaluate(codes)
    schema, twins = evaluator.schema, evaluator.twins
    found = []
    for i, place in enumerate(places):
        there = np.ones(evaluator.m, np.bool_) if valid is None else valid[i]
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
                own={name: person[name] for name in schema.protected} if real else {},
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
    members[there] = assign(scores[None, there], evaluator.epsilon, check_partition(evaluator.partition))[0]
    return tuple(members.tolist()) if members.max() + 1 == k else ()


def _markdown(data: ReportData) -> Iterator[str]:
    if not data.people:
        return
    yield "## The worst people"
    for real, title in ((True, "Rows of the table"), (False, "Found by the search, not in the table")):
        people = [one for one in data.people if one.real is real]
        if people:
            yield from ("", f"### {title}", "")
            decides = not data.about.regression
            heads = [
                "",
                "own values",
                "k",
                "bits",
                "lowest",
                "as",
                "highest",
                "as",
                *(["flips"] if decides else []),
                "who",
            ]
            yield from md_table(heads, (_row(one, decides=decides) for one in people))


def _row(one: Portrait, *, decides: bool) -> list[str]:
    who = "; ".join(f"{text(name, 40)} {value_text(value, 60)}" for name, value in one.attributes.items())
    sides = [f"{one.low:.3f}", value_text(one.worst), f"{one.high:.3f}", value_text(one.best)]
    flips = ["yes" if one.flips else "no"] if decides else []
    own = value_text(", ".join(one.own.values())) if one.own else "–"
    return [str(one.rank), own, str(one.k), f"{one.q_inf:.2f}", *sides, *flips, f"{one.place}: {who}"]


def person_id(person: Portrait) -> str:
    """The name of a person on the page."""
    return f"{'row' if person.real else 'case'}-{person.rank}"


def _view(person: Portrait) -> dict[str, Any]:
    view = {name: getattr(person, name) for name in Portrait.__slots__ if name not in ("scores", "classes")}
    own = ", ".join(person.own.values())
    return {**view, "id": person_id(person), "open": False, "own_words": own}


def _values(data: ReportData) -> dict[str, Any]:
    real = [_view(one) for one in data.people if one.real]
    found = [_view(one) for one in data.people if not one.real]
    for people in (real, found):
        if people and people is (real or found):
            people[0]["open"] = True
    return {"people_real": real, "people_found": found}


TEMPLATE = """
<section id="people" aria-labelledby="people-title">
<h2 id="people-title">The worst people</h2>
<p class="lead">Ranked by the number of classes, then by the distance between the lowest and the highest score. Each line says who they are, who of their twins scores lowest and who highest. <span class="hint">Choose a line to see the person and all twins.</span></p>
{% if people_real %}<h3>Rows of the table {{ p.kind(rows_kind) }}</h3>
<ol class="people">
{% for one in people_real %}{{ p.person(one) }}{% endfor %}
</ol>{% endif %}
{% if people_found %}<h3>Found by the search, not in the table {{ p.kind("exact" if about.blind else "lower bound") }}</h3>
<ol class="people">
{% for one in people_found %}{{ p.person(one) }}{% endfor %}
</ol>{% endif %}
<p class="small">All {{ number(searched.figures.cases) }} cases: <code>fairbits cases RUN</code>, with the folder of this report as RUN.</p>
</section>
"""

SECTION = Section(
    "people",
    "The worst people",
    TEMPLATE,
    _markdown,
    shown=lambda data: twins_differ(data) and bool(data.people),
    values=_values,
)
