"""Rules about protected attributes inside an exported guard: which twins can exist, told from a person's inputs.

A rule such as ``age < 18 -> status != "married"`` leaves some people fewer twins; the average is then over those that
are left, their weights made to add up to 1 again. Every format evaluates the same small program (``Rule.program``)
with operations of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import NUMPY, Codes, Encoding, Inputs, Lookup, Numeric, Rule, Schema, Twins, Unseen, evaluated
from fairbits.errors import CapabilityError

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TwinRules:
    """Rules that look at protected attributes, and how what they look at is read back from the inputs."""

    programs: tuple[list[Any], ...]
    seen: Mapping[int, tuple[Numeric | Lookup, bool]]
    twins: Mapping[int, Doubles]

    @classmethod
    def of(cls, schema: Schema, encoding: Encoding, twins: Twins) -> TwinRules | None:
        """The rules of a schema that are about twins; None where there are none, or the model never gets what
        they ask.
        """
        rules = twin_rules(schema)
        looked_at = sorted({c for rule in rules for c in rule.columns} - set(schema.protected_columns))
        seen: dict[int, tuple[Numeric | Lookup, bool]] = {}
        for column in looked_at:
            part = encoding.parts[column]
            if isinstance(part, Unseen):
                return None
            seen[column] = (part, schema.attributes[column].discrete)
        if not rules:
            return None
        values = {int(c): twins.values[:, place].astype(np.float64) for place, c in enumerate(twins.columns)}
        return cls(tuple(rule.program for rule in rules), seen, values)

    def check_gaps(self) -> None:
        """Refuse attributes that may be missing, which a graph of plain layers cannot read back."""
        if any(isinstance(part, Numeric) and part.gap is not None for part, _ in self.seen.values()):
            raise CapabilityError(
                "a rule about twins looks at an attribute that may be missing, which a graph of plain layers cannot "
                "read back; the Python file can."
            )

    def valid(self, rows: Inputs) -> npt.NDArray[np.bool_]:
        """Which twins of encoded rows can exist, (n, m)."""
        columns: dict[int, Any] = {c: values[None] for c, values in self.twins.items()}
        columns |= {c: decoded(part, rows, whole=whole)[:, None] for c, (part, whole) in self.seen.items()}
        found = self.evaluate(columns)
        return np.asarray(np.broadcast_to(found, (len(rows), len(next(iter(self.twins.values()))))))

    def evaluate(
        self, columns: Mapping[int, Any], operations: Mapping[str, Callable[..., Any]] = NUMPY, number: Any = np.float64
    ) -> Any:
        """Where all rules hold, by any library's operations."""
        return reduce(operations["and"], [evaluated(p, columns.__getitem__, operations, number) for p in self.programs])


def twin_rules(schema: Schema) -> tuple[Rule, ...]:
    """The rules that look at a protected attribute."""
    protected = set(schema.protected_columns)
    return tuple(rule for rule in schema.rules if protected.intersection(rule.columns))


def decoded(part: Numeric | Lookup, rows: Inputs, *, whole: bool) -> Codes:
    """One attribute's codes, read back from encoded rows."""
    if isinstance(part, Numeric):
        inputs = rows[:, part.column].astype(np.float64)
        codes = inputs / (part.scale or 1.0) + part.shift
        if part.gap is not None:
            codes = np.where(np.isnan(inputs), part.gap, codes)
    else:
        apart = np.abs(rows[:, part.columns].astype(np.float64)[:, None, :] - part.table[None]).sum(axis=2)
        codes = (np.argmin(apart, axis=1) + part.low).astype(np.float64)
    return np.rint(codes) if whole else codes
