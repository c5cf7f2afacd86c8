"""Parts of shards: which attempt counts, and what a reader is told about the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairbits import Schema
from fairbits.store import ShardWriter, shards
from fairbits.store.records import Layout
from tests.conftest import random_people

from .conftest import figures


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("cases", "shards"):
        (tmp_path / name).mkdir()
    return tmp_path


def attempt(place: Path, schema: Schema, rows: int, ended: str | None, *, number: int = 0) -> ShardWriter:
    rng = np.random.default_rng(3)
    writer = ShardWriter(place, Layout(schema), number, offset=1000)
    people = random_people(rng, schema, 20)[:rows]
    writer.append(
        people, {name: np.broadcast_to(value, 20)[:rows] for name, value in figures(rng, 20).items()}, "climb"
    )
    if ended is None:
        writer.flush()
    else:
        writer.commit({"ended": ended, "tally": {}, "findings": {}})
    writer.close()
    return writer


@pytest.mark.parametrize(
    ("tries", "shown"),
    [
        ([(7, None)], 7),
        ([(7, None), (12, None)], 12),
        ([(7, None), (20, "share")], 20),
        ([(20, "share"), (7, None)], 20),
        ([(12, None), (5, "time")], 12),  # the clock left the second attempt less
    ],
)
def test_the_attempt_that_came_furthest_is_shown(place: Path, people_schema: Schema, tries: list, shown: int) -> None:
    for rows, ended in tries:
        attempt(place, people_schema, rows, ended)
    found, damaged = shards.find_parts(place, Layout(people_schema))
    assert sum(part.rows for part in found) == shown
    assert not damaged


def test_of_equals_the_recorded_one(place: Path, people_schema: Schema) -> None:
    writers = [attempt(place, people_schema, 20, "share") for _ in range(4)]
    (part,), _ = shards.find_parts(place, Layout(people_schema))
    assert writers[-1].token in part.path.name


def test_only_what_counts_can_be_damaged(place: Path, people_schema: Schema) -> None:
    attempt(place, people_schema, 7, None)
    (dead,) = place.glob("cases/*")
    attempt(place, people_schema, 20, "share")
    attempt(place, people_schema, 9, "share", number=1)
    dead.write_bytes(b"half")
    (gone,) = place.glob("cases/shard-000001-*")
    gone.unlink()
    found, damaged = shards.find_parts(place, Layout(people_schema))
    assert [part.rows for part in found] == [20]
    assert damaged == {gone.name: "it is missing"}
