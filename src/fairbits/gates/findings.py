"""Findings: a person who breaks a check, by a fingerprint that stays the same while the model changes.

A fingerprint is made of the check, the values of the person that are not protected, and the schema; neither k nor a
score is in it, so a waiver or a code-scanning alert follows the person from model to model.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Schema
from fairbits.gates.answers import Answers
from fairbits.gates.suite import CASE, SCHEMA_PARTS, Suite
from fairbits.text import harmless

#: Findings of one check that are described; how many there are in all is always said.
MAX_FINDINGS = 1000


@dataclass(frozen=True, slots=True)
class Finding:
    """One person of the suite who breaks a check."""

    check: str
    fingerprint: str
    k: int
    k_before: int | None
    flips: bool
    origin: str
    row: int | None
    people: int
    attributes: dict[str, str]
    waived: bool = False

    @property
    def k_words(self) -> str:
        """The classes now, and before where a baseline knows: "k = 4, 2 before"."""
        return f"k = {self.k}" + ("" if self.k_before is None else f", {self.k_before} before")

    @property
    def attribute_words(self) -> str:
        """The person, attribute by attribute."""
        return ", ".join(f"{name} {value}" for name, value in self.attributes.items())

    def document(self) -> dict[str, Any]:
        """As it stands in gate.json."""
        return {name: getattr(self, name) for name in self.__slots__}


def fingerprint_of(check: str, suite: Suite, attributes: dict[str, str] | None = None) -> str:
    """The fingerprint of a person under a check, or of the check itself."""
    schema = [str(suite.schema.get(name, "")) for name in SCHEMA_PARTS]
    text = json.dumps(["fairbits finding 1", check, schema, attributes], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def findings_of(
    check: str, who: npt.NDArray[np.bool_], suite: Suite, schema: Schema, answers: Answers, before: Answers | None
) -> tuple[list[Finding], int]:
    """The people who break a check, worst first, and how many different ones there are."""
    rows = np.flatnonzero(who)
    if len(rows) == 0:
        return [], 0
    free = list(schema.person_columns)
    _, first, counts = np.unique(suite.table.codes[rows][:, free], axis=0, return_index=True, return_counts=True)
    rose = np.zeros(len(suite), dtype=np.int64) if before is None else answers.k - before.k
    picked = rows[first]
    order = np.lexsort((picked, -answers.k[picked], -rose[picked]))
    numbers = suite.table.numbers
    found = []
    for place in order[:MAX_FINDINGS]:
        row = int(picked[place])
        person = schema.read(suite.table.codes[row])
        attributes = {harmless(schema.names[i]): harmless(person[schema.names[i]]) for i in free}
        number = row + 1 if numbers is None else int(numbers[row])
        found.append(
            Finding(
                check,
                fingerprint_of(check, suite, {schema.names[i]: person[schema.names[i]] for i in free}),
                int(answers.k[row]),
                None if before is None else int(before.k[row]),
                bool(answers.flips[row]),
                "case" if suite.origin[row] == CASE else "row",
                number if number > 0 else None,
                int(counts[place]),
                attributes,
            )
        )
    return found, len(first)
