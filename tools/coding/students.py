"""Student performance: the raw files as codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits.data.coding.raw import Raw, finish, need_columns, positions, read_text, whole
from fairbits.data.coding.shipped import FROM_ONE, NAMES, STUDENTS, TEXTS
from fairbits.domain import Integers, Table


def read(mathematics: Path, portuguese: Path) -> Raw:
    """The tables of both courses, one below the other; some pupils are in both."""
    parts = [read_text(path, delimiter=";") for path in (mathematics, portuguese)]
    for part in parts:
        need_columns(part, (*NAMES, "G3"), "students")
    return {column: np.concatenate([part[column] for part in parts]) for column in (*NAMES, "G3")}


def code(raw: Raw) -> Table:
    """The paper's coding; a final grade of 10 of 20 passes."""
    return finish([_column(raw, column) for column in NAMES], whole(raw, "G3") >= 10, STUDENTS)


def _column(raw: Raw, column: str) -> Integers:
    if column in TEXTS:
        known = [text if isinstance(text, str) else text[0] for text in TEXTS[column]]
        return positions(raw, column, known) + (column in FROM_ONE)
    return whole(raw, column) + (column == "failures")
