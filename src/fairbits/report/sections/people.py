"""The worst people, real ones and found ones, with the scores of all their twins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Table
from fairbits.measure import Evaluator, assign, check_partition
from fairbits.report.record import Axes, Portrait
from fairbits.store import Run

#: Found people with a portrait in the report.
FOUND = 6


def axes_of(evaluator: Evaluator) -> Axes:
    """The protected attributes and their values.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.

    Returns
    -------
    Axes
        The record.
    """
    attributes = [evaluator.schema.attributes[i] for i in evaluator.twins.columns]
    return Axes(
        names=tuple(attribute.name for attribute in attributes),
        values=tuple(tuple(attribute.read_twin(code) for code in attribute.twin_values()) for attribute in attributes),
        # With three classes or more the most likely one is decided, whatever the score of one of them.
        threshold=evaluator.schema.rule.threshold,
    )


def real_people(evaluator: Evaluator, table: Table, rows: list[int]) -> list[Portrait]:
    """Portraits of rows of the table.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    table
        The people.
    rows
        Positions of rows, counted from 0, the worst first.

    Returns
    -------
    list[Portrait]
        Portraits in the same order.
    """
    if not rows:
        return []
    return _portraits(evaluator, table.codes[rows], [row_words(table, row) for row in rows], real=True)


def row_words(table: Table, row: int) -> str:
    """The name of a row.

    Parameters
    ----------
    table
        The people.
    row
        Position of the row, counted from 0.

    Returns
    -------
    str
        Such as "row 3 of the table".
    """
    return table.place(row) + (" of the table" if table.file is None else "")


def found_people(evaluator: Evaluator, run: Run) -> list[Portrait]:
    """Portraits of the worst cases that are no rows of the table.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    run
        The run.

    Returns
    -------
    list[Portrait]
        Portraits, the worst first.
    """
    table = run.cases(where="changed <> 0", top=FOUND, labels=False)
    if not table.num_rows:
        return []
    codes = np.concatenate([run.layout.codes_of(batch) for batch in table.to_batches()])
    places = [distance_words(changed) for changed in table["changed"].to_pylist()]
    return _portraits(evaluator, codes, places, real=False)


def portrait_of(evaluator: Evaluator, codes: Codes, place: str = "as given") -> Portrait:
    """The portrait of one person.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    codes
        The person, (attributes,).
    place
        Where the person is in the data, in words.

    Returns
    -------
    Portrait
        The portrait.
    """
    return _portraits(evaluator, np.atleast_2d(codes), [place], real=False)[0]


def distance_words(changed: int) -> str:
    """How far somebody is from real rows, in words.

    Parameters
    ----------
    changed
        Number of changed attributes; negative where it is not known.

    Returns
    -------
    str
        Such as "2 attributes away from a real row".
    """
    if changed < 0:
        return "distance to real rows unknown"
    if changed == 0:
        return "like a row of the table"
    return f"{changed} attribute{'s' if changed > 1 else ''} away from a real row"


def _portraits(evaluator: Evaluator, codes: Codes, places: list[str], *, real: bool) -> list[Portrait]:
    table = evaluator.scores(codes)
    valid = evaluator.valid_twins(codes)
    figures = evaluator.evaluate(codes)
    schema, labels = evaluator.schema, evaluator.twins.labels
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
                worst=labels[int(figures.low_twin[i])],
                best=labels[int(figures.high_twin[i])],
                twins=int(there.sum()),
                favourable=int(figures.favourable[i]),
                flips=bool(figures.flips[i]),
                attributes={name: value for name, value in person.items() if name not in schema.protected},
                scores=tuple(np.where(there, table[i].astype(float), np.nan).tolist()),
                classes=_classes(table[i], there, int(figures.k[i]), evaluator),
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
