"""Twins that somebody else made: a table with a person's id, protected values and a score in every row.

Whatever made the twins (edited photographs, other voices, other words), the table is all that is asked: the model of
such a subject looks scores up. Several rows of one person and one combination are repetitions: their mean is the score,
and what they vary by is known as noise. A combination that a person lacks is no twin of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import (
    Category,
    Encoding,
    Schema,
    Table,
    arrow_of,
    numbers,
    text_of,
    whole_column,
)
from fairbits.errors import SchemaError, TableError
from fairbits.models import DEFAULTS, ModelOptions, TwinScores
from fairbits.subject.subject import Subject, make_subject
from fairbits.subject.texts import CLASSES


def subject_of_twins(
    table: Any,
    *,
    person: str,
    protected: str | Iterable[str],
    score: str,
    threshold: float | None = None,
    name: str | None = None,
    source: str | None = None,
    options: ModelOptions = DEFAULTS,
) -> Subject:
    """The subject of a table of twins; without a threshold, scores beyond 0 and 1 decide nothing."""
    file = Path(table) if isinstance(table, str | Path) else None
    data = arrow_of(table, max_rows=options.max_rows)
    names = (protected,) if isinstance(protected, str) else tuple(protected)
    if not names:
        raise SchemaError("no protected column is named; say in which columns twins differ, e.g. protected = ['sex'].")
    if score in (person, *names):
        raise SchemaError(f"the column of scores, {score!r}, is also named as person or protected; name another.")
    columns = [
        whole_column(data, one, what) for what, one in (("person", person), *(("protected", one) for one in names))
    ]
    values = numbers(whole_column(data, score, "score"), score)
    texts = (np.array([text_of(value) for value in column.to_pylist()]) for column in columns)
    coded = [np.unique(one, return_inverse=True) for one in texts]
    rows = np.column_stack([codes for _, codes in coded]).astype(np.int64)
    pairs, first, pair = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    people = len(coded[0][0])
    if not people:
        raise TableError("the table of twins has no rows; it needs one for each score.")
    if len(pairs) == people:
        raise TableError(
            f"every person in {person!r} has one combination of {', '.join(names)}, so nobody has a twin; check "
            f"--person, or measure scores alone with score = {score!r} under [table]."
        )
    attributes = [
        Category(name=one, labels=tuple(labels.tolist()), protected=place > 0)
        for place, (one, (labels, _)) in enumerate(zip((person, *names), coded, strict=True))
    ]
    single = next((one.name for one in attributes if len(one.labels) < 2), None)
    if single is not None:
        what = "people" if single == person else "values"
        raise TableError(f"column {single!r} has the same value in every row; a table of twins needs two {what}.")
    schema = _schema(tuple(attributes), values, threshold)
    model = TwinScores(pairs, pair.ravel(), values, sizes=tuple(len(labels) for labels, _ in coded))
    return make_subject(
        name or (file.stem if file is not None else "twins"),
        model,
        schema,
        Table(pairs.astype(np.float64), numbers=first + 1, file=file, person=pairs[:, 0].copy()),
        encoding=Encoding.identity(schema, columns=schema.names, dtype=np.float64),
        options=options,
        notes=_notes(model, people, len(values), schema),
        source=source,
        original=file,
    )


def _schema(attributes: tuple[Category, ...], scores: npt.NDArray[np.float64], threshold: float | None) -> Schema:
    """What is decided: from a threshold on, half of a probability where nothing is said; else nothing."""
    probable = bool(((scores >= 0) & (scores <= 1)).all())
    low, high = np.quantile(scores, [0.01, 0.99])
    spread = None if probable else float(high - low) or 1.0
    if high > low and np.spacing(np.float32(np.abs(scores).max())) > 1e-3 * (high - low):
        raise TableError(
            f"the scores lie within {high - low:.3g} of one another at about {low:.3g}, closer than single precision "
            f"tells apart; subtract {low:.3g} from all of them."
        )
    if threshold is None and not probable:
        return Schema(attributes, score_range=spread)
    if threshold is not None and probable and not 0 < threshold < 1:
        raise SchemaError(
            f"the threshold is {threshold:g}, but all scores lie between 0 and 1; give one on their scale, e.g. 0.5."
        )
    return Schema(attributes, classes=CLASSES, threshold=threshold, score_range=spread)


def _notes(model: TwinScores, people: int, rows: int, schema: Schema) -> tuple[str, ...]:
    found = [f"the model is not at hand: the scores are those of a table of twins, of {people:,} people."]
    if schema.regression:
        low, high = model.answers.min(), model.answers.max()
        found.append(
            f"scores from {low:.6g} to {high:.6g} are no probabilities, so nothing is decided; a threshold says from "
            f"which score on a decision is favourable."
        )
    if len(model.means) == rows:
        found.append("nothing is repeated, so no null bits are known: nothing says what the scores vary by themselves.")
    wanted = people * model.combinations
    if len(model.means) < wanted:
        lacking = people - int((np.bincount(model.pairs[:, 0]) == model.combinations).sum())
        whose = "one person lacks" if lacking == 1 else f"{lacking:,} people lack"
        found.append(
            f"of {wanted:,} twins, the table lacks {wanted - len(model.means):,} ({whose} some): people are measured "
            f"over those that are there."
        )
    return tuple(found)
