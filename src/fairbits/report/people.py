"""The worst people, real ones and found ones, with the scores of all their twins."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.domain.attribute import Codes
from fairbits.measure import Evaluator
from fairbits.measure.evaluate import THRESHOLD
from fairbits.measure.partition import assign, check_partition
from fairbits.report.record import Axes, Portrait
from fairbits.store import Run

#: Found people with a portrait in the report.
FOUND = 6


def axes_of(evaluator: Evaluator) -> Axes:
    """The protected attributes and their values."""
    attributes = [evaluator.schema.attributes[i] for i in evaluator.twins.columns]
    return Axes(
        names=tuple(attribute.name for attribute in attributes),
        values=tuple(tuple(attribute.read(code) for code in attribute.values()) for attribute in attributes),
        threshold=None if evaluator.schema.regression else THRESHOLD,
    )


def real_people(evaluator: Evaluator, rows: Codes, numbers: list[int]) -> list[Portrait]:
    """Portraits of rows of the table, the worst first as they come."""
    if not numbers:
        return []
    places = [f"row {number + 1:,} of the table" for number in numbers]
    return _portraits(evaluator, rows[numbers], places, real=True)


def found_people(evaluator: Evaluator, run: Run) -> list[Portrait]:
    """Portraits of the worst cases that are no rows of the table."""
    table = run.cases(where="changed <> 0", top=FOUND, labels=False)
    if not table.num_rows:
        return []
    codes = np.concatenate([run.layout.codes_of(batch) for batch in table.to_batches()])
    places = [_place(row) for row in table.select(["changed", "seed_row"]).to_pylist()]
    return _portraits(evaluator, codes, places, real=False)


def portrait_of(evaluator: Evaluator, codes: Codes, place: str = "as given") -> Portrait:
    """The portrait of one person, a row of codes."""
    return _portraits(evaluator, np.atleast_2d(codes), [place], real=False)[0]


def _place(row: dict[str, Any]) -> str:
    changed = row["changed"]
    if changed < 0:
        return "distance to real rows unknown"
    return f"{changed} attribute{'s' if changed > 1 else ''} away from a real row"


def _portraits(evaluator: Evaluator, codes: Codes, places: list[str], *, real: bool) -> list[Portrait]:
    table = evaluator.scores(codes)
    classes = assign(table, evaluator.epsilon, check_partition(evaluator.partition))
    figures = evaluator.evaluate(codes)
    schema, labels = evaluator.schema, evaluator.twins.labels
    found = []
    for i, place in enumerate(places):
        person = schema.read(codes[i])
        found.append(
            Portrait(
                rank=i + 1,
                real=real,
                place=place,
                k=int(figures.k[i]),
                q_inf=float(figures.q_inf[i]),
                q_1=float(figures.q_1[i]),
                low=float(table[i].min()),
                high=float(table[i].max()),
                worst=labels[int(table[i].argmin())],
                best=labels[int(table[i].argmax())],
                favourable=int(figures.favourable[i]),
                flips=bool(figures.flips[i]),
                attributes={name: value for name, value in person.items() if name not in schema.protected},
                scores=tuple(table[i].astype(float).tolist()),
                classes=tuple(classes[i].tolist()),
            )
        )
    return found
