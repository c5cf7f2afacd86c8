"""People whom a suite lacks: a search proposes, a person decides (`fairbits gate freeze PLACE --add SUITE`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.gates.answers import Answers
from fairbits.gates.suite import Suite
from fairbits.subject import Subject
from fairbits.text import harmless

#: How many of the worst cases are looked at, and how many are listed.
LOOKED_AT, LISTED = 1000, 10


def propose_people(
    subject: Subject,
    suite: Suite,
    answers: Answers,
    folder: Path,
    *,
    seconds: float,
    threads: int | None = None,
) -> tuple[Mapping[str, Any], ...]:
    """Search for people who are worse off than anybody frozen; the verdict is not asked."""
    from fairbits.scale import search
    from fairbits.search import Budget, Settings

    settings = Settings(
        budget=Budget(seconds=seconds),
        seed=suite.seed,
        epsilon=suite.epsilon,
        partition=suite.partition,
        threads=threads,
    )
    run = search(subject, settings, folder, force=True)
    largest = int(answers.k.max())
    columns = list(subject.schema.person_columns)
    known = {row.tobytes() for row in np.ascontiguousarray(suite.table.codes[:, columns])}
    found = []
    for case in run.worst(LOOKED_AT):
        if case.k <= largest:
            break
        names = [subject.schema.names[i] for i in columns]
        codes = [subject.schema[name].code_of(case.attributes[name]) for name in names]
        if np.asarray(codes, dtype=np.float64).tobytes() in known:
            continue
        person = {harmless(name): harmless(value) for name, value in case.attributes.items()}
        found.append({"k": case.k, "flips": case.flips, "changed": case.changed, "attributes": person})
    return tuple(found[:LISTED])
