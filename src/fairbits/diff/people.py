"""What each model decides about people as they are, and what that changes for groups and single persons."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.diff.records import GroupShift, PersonShift
from fairbits.domain import Table
from fairbits.engine import Evaluation
from fairbits.measure import Evaluator, bounded_means, groupings_of
from fairbits.subject import Subject, decided

#: People asked about at once.
_CHUNK = 65_536
#: Groups of fewer people are counted, but get no interval.
MIN_PEOPLE = 10

Floats = npt.NDArray[np.float64]


class OwnDecisions:
    """What one model decides about the people as they are."""

    def __init__(self, scores: Floats, classes: npt.NDArray[Any] | None, favoured: Any, right: Any):
        self.scores, self.classes, self.favoured, self.right = scores, classes, favoured, right

    @classmethod
    def of(cls, subject: Subject, table: Table) -> OwnDecisions:
        """Ask a subject's model about people."""
        schema = subject.schema
        scores, places = [], []
        for start in range(0, len(table), _CHUNK):
            inputs = subject.encoding.encode(table.codes[start : start + _CHUNK])
            scores.append(np.asarray(subject.model.scores(inputs), dtype=np.float64).reshape(-1))
            places.append(decided(subject.model, inputs, schema))
        flat = np.concatenate(scores)
        if any(place is None for place in places):
            return cls(flat, None, None, None)
        decisions = np.concatenate([place for place in places if place is not None])
        names = np.array(schema.classes, dtype=object)[decisions]
        right = None if table.labels is None else decisions == table.labels.astype(np.int64)
        return cls(flat, names, decisions == schema.favourable_index, right)


def group_shifts(
    subject: Subject,
    table: Table,
    found: list[Evaluation],
    own: list[OwnDecisions],
    rng: np.random.Generator,
    whose: npt.NDArray[np.int64] | None = None,
) -> tuple[GroupShift, ...]:
    """What changes for each group."""
    decides = own[0].favoured is not None and own[1].favoured is not None
    change = found[1].k.astype(float) - found[0].k
    span = float(max(found[0].m - 1, 1))
    shifts = []
    for grouping in groupings_of(subject.schema, table):
        for place, label in enumerate(grouping.labels):
            here = grouping.codes == place
            people = int(here.sum())
            if not people:
                continue
            before, after = (one.favoured[here] if decides else np.zeros(0, np.bool_) for one in own)
            columns = [change[here]] + ([after.astype(float) - before] if decides else [])
            highs = [span, 1.0][: len(columns)]
            lows = [-high for high in highs]
            members = None if whose is None else whose[here]
            means = bounded_means(np.column_stack(columns), rng, lows=lows, highs=highs, resamples=500, people=members)
            enough = (people if members is None else len(np.unique(members))) >= MIN_PEOPLE
            shifts.append(
                GroupShift(
                    attribute=grouping.name,
                    group=label,
                    people=people,
                    selection_before=float(before.mean()) if decides else None,
                    selection_after=float(after.mean()) if decides else None,
                    selection_change=means[1] if decides and enough else None,
                    lost=int((before & ~after).sum()) if decides else None,
                    gained=int((~before & after).sum()) if decides else None,
                    k_change=means[0],
                    rose=float((change[here] > 0).mean()),
                )
            )
    return tuple(shifts)


def person_shifts(
    subject: Subject, evaluator: Evaluator, table: Table, found: list[Evaluation], own: list[OwnDecisions], top: int
) -> tuple[PersonShift, ...]:
    """Those who got worse, most classes gained first, then the most added span."""
    rise = found[1].k.astype(int) - found[0].k
    wider = found[1].span.astype(float) - found[0].span
    order = np.lexsort((np.arange(len(table)), -wider, -rise))
    twins, schema = evaluator.twins, subject.schema
    people = []
    for row in order[:top]:
        if rise[row] <= 0 and not (rise[row] == 0 and found[1].flips[row] and not found[0].flips[row]):
            break
        person = schema.read(table.codes[row])
        decisions = [None if one.classes is None else str(one.classes[row]) for one in own]
        people.append(
            PersonShift(
                place=table.place(int(row)),
                own={name: person[name] for name in schema.protected},
                k_before=int(found[0].k[row]),
                k_after=int(found[1].k[row]),
                span_before=float(found[0].span[row]),
                span_after=float(found[1].span[row]),
                score_before=float(own[0].scores[row]),
                score_after=float(own[1].scores[row]),
                decision_before=decisions[0],
                decision_after=decisions[1],
                flips_before=bool(found[0].flips[row]),
                flips_after=bool(found[1].flips[row]),
                worst=twins.label(int(found[1].low_twin[row]), table.codes[row]),
                best=twins.label(int(found[1].high_twin[row]), table.codes[row]),
            )
        )
    return tuple(people)
