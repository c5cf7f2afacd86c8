"""The published figures: Monjezi et al., ICSE 2023, Tables 1 to 4, as they were printed."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "figures"
#: The ten subjects, in the paper's order.
SUBJECTS = ("census", "compas", "german", "default", "heart", "bank", "diabetes", "students", "meps15", "meps16")

Row = dict[str, str]


@cache
def published(table: str) -> tuple[Row, ...]:
    """The rows of a table as it was printed."""
    with (FOLDER / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def row_of(table: str, subject: str, **more: str) -> Row | None:
    """The printed row about a subject; variants of a subject (german-600, meps15-synthetic) have its row."""
    name = subject.split("-", maxsplit=1)[0]
    wanted = {"dataset": name, **more}
    return next((row for row in published(table) if all(row[key] == value for key, value in wanted.items())), None)


def number(row: Row | None, column: str) -> float | None:
    """A figure as the paper prints it; None where it prints none."""
    text = "" if row is None else row.get(column, "")
    return float(text) if text else None
