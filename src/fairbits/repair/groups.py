"""What groups of people get before and after: blinding and neurons leave proxies alone, and these figures show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Schema
from fairbits.repair.records import GroupRate, RepairGroup

#: A rate over fewer people than this says little, and is left out.
MIN_PEOPLE = 30

Flags = npt.NDArray[np.bool_]


def group_figures(schema: Schema, rows: Codes, favoured: Flags, deserved: Flags) -> tuple[RepairGroup, ...]:
    """For every protected attribute and every intersection of them.

    ``favoured`` says who is decided for, ``deserved`` who is labelled so.
    """
    return tuple(_figures(schema, columns, rows, favoured, deserved) for columns in _subsets(schema.protected_columns))


def _subsets(columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(1, len(columns) + 1):
        yield from combinations(columns, size)


def _figures(schema: Schema, columns: tuple[int, ...], rows: Codes, favoured: Flags, deserved: Flags) -> RepairGroup:
    attributes = [schema.attributes[i] for i in columns]
    values, member = np.unique(_as_twins(schema, columns, rows), axis=0, return_inverse=True)
    member = member.reshape(-1)
    groups, small = [], []
    for number, value in enumerate(values):
        here = member == number
        name = ", ".join(a.read_twin(code) for a, code in zip(attributes, value, strict=True))
        if here.sum() < MIN_PEOPLE:
            small.append(name)
        else:
            groups.append(_rates(name, favoured[here], deserved[here]))
    odds = [_gap(groups, lambda g: g.true_positive_rate), _gap(groups, lambda g: g.false_positive_rate)]
    known = [gap for gap in odds if gap is not None]
    return RepairGroup(
        attributes=tuple(a.name for a in attributes),
        groups=tuple(groups),
        too_small=tuple(small),
        selection=_gap(groups, lambda g: g.selection_rate),
        equal_opportunity=odds[0],
        average_odds=sum(known) / 2 if len(known) == 2 else None,
    )


def _as_twins(schema: Schema, columns: tuple[int, ...], rows: Codes) -> Codes:
    """The protected values of the rows; where twins stand for ranges of them, the range is the group."""
    found = []
    for i in columns:
        attribute = schema.attributes[i]
        place = attribute.twin_place(rows[:, i])
        found.append(np.where(place < 0, rows[:, i], attribute.twin_values()[np.maximum(place, 0)]))
    return np.column_stack(found)


def _rates(name: str, favoured: Flags, deserved: Flags) -> GroupRate:
    return GroupRate(
        name, len(favoured), float(favoured.mean()), _share(favoured[deserved]), _share(favoured[~deserved])
    )


def _share(flags: Flags) -> float | None:
    return float(flags.mean()) if len(flags) else None


def _gap(groups: list[GroupRate], rate: Callable[[GroupRate], float | None]) -> float | None:
    """The largest rate minus the smallest, where at least two groups have one."""
    rates = [value for value in map(rate, groups) if value is not None]
    return max(rates) - min(rates) if len(rates) > 1 else None
