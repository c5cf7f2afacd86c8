"""What one task of a search leaves on disk beside its cases: a record that says which parts count, and how far it is.

``cases/part-000012-1f3a9c20-0003.parquet`` is part 3 of one attempt at task 12; ``tasks/000012-1f3a9c20.json`` is
written after every part, and names all that count. An attempt that goes on from an earlier one names its parts too.
Attempts at a task ask about the same people in the same order, so a reader takes the record that came furthest: a task
that is tried twice, even at the same time, is never seen twice, and nothing that was written is lost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from fairbits.errors import OptionError
from fairbits.shape import reading
from fairbits.store.files import read_json, write_json
from fairbits.store.parts import spread
from fairbits.store.records import record_from_json, record_to_json

TASKS = "tasks"
RECORD = re.compile(r"(\d{6,})-([0-9a-f]{8})\.json")


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """How far a task is."""

    number: int
    token: str
    parts: tuple[str, ...] = ()
    rows: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    state: dict[str, Any] | None = None
    ended: str | None = None
    tally: dict[str, Any] = field(default_factory=dict)
    findings: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file that the record is kept in."""
        return f"{self.number:06d}-{self.token}.json"

    def write(self, folder: Path) -> None:
        """Write the record, whole or not at all."""
        write_json(folder / TASKS / self.name, record_to_json(self))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the record in a file."""
        document = read_json(path)
        if set(document) != {one.name for one in fields(cls)}:
            raise OptionError(f"{str(path)!r} is damaged (it is no record of a task); restore it from a copy.")
        with reading(path, "restore it from a copy"):
            record = record_from_json(cls, document)
            if min(record.number, record.rows, record.evaluations) < 0 or len(set(record.parts)) < len(record.parts):
                raise ValueError("its counts or its parts cannot be")
        return record


def read_records(folder: Path, number: int | None = None) -> dict[int, TaskRecord]:
    """The furthest record of every task, or of one."""
    ranked = sorted(all_records(folder, number), key=lambda one: (one.number, *_rank(one)))
    return {record.number: record for record in ranked}  # the last of each stays


def all_records(folder: Path, number: int | None = None) -> list[TaskRecord]:
    """Every record there is, of all attempts."""
    place = folder / TASKS
    if not place.is_dir():
        return []
    found = [(match, path) for path in place.iterdir() if (match := RECORD.fullmatch(path.name))]
    paths = sorted(path for match, path in found if number is None or int(match[1]) == number)
    return spread(TaskRecord.read, paths)


def redo(folder: Path, numbers: Mapping[int, TaskRecord]) -> None:
    """Have tasks whose parts are damaged done again: how far they got stays on record, so that no time is lost."""
    for number, record in numbers.items():
        for other in all_records(folder, number):
            (folder / TASKS / other.name).unlink(missing_ok=True)
        TaskRecord(number, record.token, evaluations=record.evaluations, seconds=record.seconds).write(folder)


def _rank(record: TaskRecord) -> tuple[int, int, bool, str]:
    return record.evaluations, record.rows, record.ended is not None, record.token
