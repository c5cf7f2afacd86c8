"""A small run to write and read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairbits import Attribute, Schema
from fairbits.store import RunWriter, TaskWriter
from fairbits.store.parts import Layout
from tests.conftest import random_people

MANIFEST = {
    "subject": "people",
    "source": "0123456789abcdef",
    "strategy": "random",
    "options": {"batch": 4096, "within": None},
    "seed": 0,
    "epsilon": 0.025,
    "partition": "constrained",
    "protected": ["age", "sex"],
    "budget": {"seconds": 60},
    "threads": 2,
    "shards": 1,
    "buckets": 1,
}


def figures(rng: np.random.Generator, n: int, *, start: int = 0) -> dict[str, Any]:
    low = rng.random(n)
    high = low + (1 - low) * rng.random(n)
    return {
        "k": rng.integers(1, 7, n),
        "q_1": rng.random(n),
        "low": low,
        "high": high,
        "flips": (low < 0.5) & (high >= 0.5),
        "low_twin": rng.integers(0, 6, n),
        "high_twin": rng.integers(0, 6, n),
        "favourable": rng.integers(0, 7, n),
        "twins": 6,
        "plausibility": 100 * rng.random(n),
        "seed_row": rng.integers(-1, 50, n),
        "changed": rng.integers(0, 6, n),
        "l1": rng.random(n),
        "evaluation": start + np.arange(n),
        "seconds": 0.5,
    }


@contextmanager
def writing(
    folder: Path, schema: Schema, *, force: bool = False, resume: bool = False, **how: Any
) -> Iterator[TaskWriter]:
    """A run of one task that is open for writing, and finished when the block ends well."""
    run = RunWriter.resume(folder, MANIFEST) if resume else RunWriter.create(folder, MANIFEST, schema, force=force)
    try:
        with TaskWriter(run.folder, Layout(schema), 0, before=run.records.get(0), **how) as task:
            yield task
            reached = task._reached
            end = {"evaluations": reached[0], "seconds": reached[1], "tally": {}, "findings": {}}
            run.records[0] = task.commit("share", **end)
        run.finish("finished", {"cases": task.record.rows})
    finally:
        run.close()


def write_run(folder: Path, schema: Schema, rng: np.random.Generator, *, parts: int = 3, rows: int = 100) -> np.ndarray:
    """A finished run of several parts; gives all codes."""
    people = random_people(rng, schema, parts * rows)
    with writing(folder, schema) as writer:
        for part in range(parts):
            piece = people[part * rows : (part + 1) * rows]
            writer.append(piece, figures(rng, rows, start=part * rows), "random")
            writer.flush()
    return people


def parts_of(folder: Path) -> list[Path]:
    """The parts of a run of one task, in order."""
    return sorted((folder / "cases").glob("part-*"))


class Clock:
    """Time that passes only when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def odd_schema() -> Schema:
    """Names that are taken, names that need quotes, labels that want to be markup, SQL or formulas."""
    return Schema(
        attributes=(
            Attribute(
                name="sex", kind="category", labels=("Female", "<b>Male</b>", "c", "d", "e", "f"), protected=True
            ),
            Attribute(name="k", kind="integer", low=-300, high=0),
            Attribute(name="attribute_k", kind="integer", low=0, high=3, labels=("a", "b", "c", "d")),
            Attribute(name="Job", kind="category", labels=("=1+1", "O'Neil", '"<script>"', "\u202eevil", "a,b\nc")),
            Attribute(name="job", kind="real", low=-1, high=1),
            Attribute(name='x"; DROP TABLE cases.y', kind="integer", low=0, high=100_000),
            Attribute(name="worst", kind="integer", low=0, high=3_000_000_000),
        )
    )
