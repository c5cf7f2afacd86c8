"""How everybody in a table is decided about, as they are: scores, decisions, labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairbits.errors import rows_named
from fairbits.models import HasClassScores
from fairbits.subject import Subject

#: People whom a model is asked about at once.
_CHUNK = 65_536

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Decided:
    """The scores of everybody in a table as they are, the decisions and the labels, as far as they are known."""

    scores: Floats
    selected: npt.NDArray[np.bool_] | None
    labels: npt.NDArray[np.bool_] | None

    def take(self, rows: npt.NDArray[np.int64]) -> Decided:
        """The same for some of the people."""
        selected, labels = (None if one is None else one[rows] for one in (self.selected, self.labels))
        return Decided(self.scores[rows], selected, labels)


def decided_rows(subject: Subject, *, rows: npt.NDArray[np.int64] | None = None) -> Decided:
    """Score people as they are, by the model or from the table."""
    schema, table = subject.schema, subject.table if rows is None else subject.table.rows(rows)
    own = schema.favourable_index
    labels = None if table.labels is None or schema.regression else np.asarray(table.labels == own)
    if table.scores is not None:
        chosen = schema.rule.favours(table.scores) if len(schema.classes) == 2 else None
        return Decided(table.scores, chosen, labels)
    scores = np.empty(len(table))
    decisions = np.empty(len(table), dtype=np.int64)
    whole = len(schema.classes) > 2 and isinstance(subject.model, HasClassScores)
    for start in range(0, len(table), _CHUNK):
        piece = slice(start, start + _CHUNK)
        with rows_named(start, place=table.place):
            inputs = subject.encoding.encode(table.codes[piece])
            if whole:
                every = np.asarray(subject.model.class_scores(inputs))  # type: ignore[attr-defined]
                scores[piece], decisions[piece] = every[:, own], schema.rule.most_likely(every)
            else:
                scores[piece] = np.asarray(subject.model.scores(inputs)).reshape(-1)
    if len(schema.classes) == 2:
        return Decided(scores, schema.rule.favours(scores), labels)
    return Decided(scores, np.asarray(decisions == own) if whole else None, labels)
