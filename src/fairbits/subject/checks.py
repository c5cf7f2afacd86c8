"""Is the model the right way round? Held against the labels before anything is said about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema, Table
from fairbits.errors import ModelError
from fairbits.models import HasClassScores, Model, Network, speaks_of
from fairbits.randomness import sampled_rows
from fairbits.subject.quality import Quality, agreement

#: Rows that are scored, at most: a native network, and any other model, which may be slow or far away.
MAX_ROWS, MAX_FOREIGN_ROWS = 50_000, 10_000
#: Rows that go through the model at a time.
_CHUNK = 16_384
#: A foreign model's probability may leave [0, 1] by so much and still be rounding.
_ROUNDING = 1e-5

Ask = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def quality_of(model: Model, encoding: Encoding, schema: Schema, table: Table, *, test: Table | None = None) -> Quality:
    """Score the rows of a table as they are, once, and compare with their labels, or with those of a test table."""
    if test is not None and test.labels is not None and len(test):
        judged = quality_of(model, encoding, schema, replace(test, held_out=np.ones(len(test), np.bool_)))
        rows = quality_of(model, encoding, schema, table)
        return replace(judged, rows=rows.rows, favourable_rate=rows.favourable_rate, base_rate=rows.base_rate)
    max_rows = MAX_ROWS if isinstance(model, Network) else MAX_FOREIGN_ROWS
    chosen = sampled_rows(len(table), max_rows, np.random.default_rng(0))
    labels = None if table.labels is None else table.labels[chosen]
    decisions: npt.NDArray[np.int64] | None
    if len(schema.classes) > 2 and isinstance(model, HasClassScores):
        whole = _in_chunks(lambda rows: np.asarray(model.class_scores(rows)), encoding, table, chosen)
        scores, decisions = whole[:, schema.favourable_index], schema.rule.most_likely(whole)
    else:
        scores = _in_chunks(lambda rows: np.asarray(model.scores(rows)), encoding, table, chosen)
        decisions = schema.rule.decide(scores) if len(schema.classes) == 2 else None
    _check_scores(scores, table, chosen, probabilities=schema.probabilities)
    held_out = None if table.held_out is None else table.held_out[chosen]
    return _agreement(schema, scores, decisions, labels, held_out)


def quality_of_scores(schema: Schema, table: Table) -> Quality:
    """The same from the scores that the table holds of a model that is not at hand."""
    scores = np.asarray(table.scores, dtype=np.float32)
    decisions = schema.rule.decide(scores) if len(schema.classes) == 2 else None
    return _agreement(schema, scores, decisions, table.labels, table.held_out)


def _agreement(
    schema: Schema,
    scores: npt.NDArray[np.float32],
    decisions: npt.NDArray[np.int64] | None,
    labels: npt.NDArray[np.float64] | None,
    held_out: npt.NDArray[np.bool_] | None,
) -> Quality:
    return agreement(
        favourable=schema.favourable,
        threshold=schema.rule.threshold,
        probability=schema.score_range is None,
        favoured=None if decisions is None else decisions == schema.favourable_index,
        decisions=decisions,
        scores=scores,
        labels=labels,
        own=schema.favourable_index,
        held_out=held_out,
    )


def against_labels(quality: Quality, model: Model, schema: Schema, *, named: bool) -> str | None:
    """Why a model is refused that decides against the labels, with what cures it; None where it does not."""
    if quality.off is not None:
        return (
            f"the model {quality.off}; let it predict the column {schema.target!r} in the table's own unit (the exp of "
            f"a log, a wage by the hour or by the year), or name the column that it predicts, or keep it as it is with "
            f"--allow-inverted."
        )
    if not quality.reversed:
        return None
    found = (
        f"the model decides against the labels: its AUC for {schema.favourable!r} is {quality.auc:.3f} (95 % interval "
        f"{quality.auc_low:.3f} to {quality.auc_high:.3f}), so it is probably read the wrong way round"
    )
    keep = "or keep it as it is with --allow-inverted"
    single = speaks_of(model, schema)
    if named:
        own = ", ".join(schema.classes)
        return f"{found}; it names its classes itself ({own}): check that the table's labels mean the same, {keep}."
    if single is not None:
        other = next(name for name in schema.classes if name != single)
        return f'{found}; write score_of = "{other}" under [model] (in Python score_of={other!r}), {keep}.'
    if len(schema.classes) == 2:
        order = ", ".join(f'"{name}"' for name in reversed(schema.classes))
        return f"{found}; write classes = [{order}] under [table] (in Python in the schema), {keep}."
    return f"{found}; list the classes in the order of its outputs, classes = […] under [table], {keep}."


def _in_chunks(ask: Ask, encoding: Encoding, table: Table, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    pieces = [
        np.asarray(ask(encoding.encode(table.codes[chosen[start : start + _CHUNK]])), dtype=np.float32)
        for start in range(0, len(chosen), _CHUNK)
    ]
    return np.concatenate(pieces)


def _check_scores(
    scores: npt.NDArray[np.float32], table: Table, chosen: npt.NDArray[np.int64], *, probabilities: bool
) -> None:
    bad, what, remedy = ~np.isfinite(scores), "that are not finite", "check its inputs"
    if not bad.any() and probabilities:
        bad = (scores < -_ROUNDING) | (scores > 1 + _ROUNDING)
        what = "outside 0 to 1"
        remedy = (
            'say what it puts out: output = "value" under [model] and threshold = … under [table] for points, hazards '
            "or a margin, from which on a decision is favourable on their own scale (in Python output=, threshold=); "
            'or output = "logit" for log-odds'
        )
    if bad.any():
        first = int(np.argmax(bad))
        raise ModelError(
            f"the model gave {bad.sum():,} scores {what} (first: {scores[first]:g} for the person in "
            f"{table.place(int(chosen[first]))}); {remedy}."
        )
