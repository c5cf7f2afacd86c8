"""A table of an experiment: plain cells, and the two ways in which it is written down."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairbits.store import unwritable

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Results:
    """A table of an experiment, with what must be known to read it."""

    title: str
    columns: tuple[str, ...]
    rows: list[Sequence[Cell]]
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        """Title, table, what must be known, and what it says."""
        parts = [f"### {self.title}", self.table(), "\n".join(self.notes), "\n".join(f"- {f}" for f in self.findings)]
        return "\n\n".join(filter(None, parts)) + "\n"

    def table(self) -> str:
        """A Markdown table, words to the left and numbers to the right."""
        words = [any(isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]
        lines = [
            "| " + " | ".join(self.columns) + " |",
            "| " + " | ".join("---" if word else "--:" for word in words) + " |",
            *("| " + " | ".join(shown(cell) for cell in row) + " |" for row in self.rows),
        ]
        return "\n".join(lines)

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write the table as Markdown and, unrounded, as CSV."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from None
        text, data = folder / f"{name}.md", folder / f"{name}.csv"
        text.write_text(self.markdown(), encoding="utf-8")
        with data.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(["" if cell is None else cell for cell in row] for row in self.rows)
        return [text, data]


def shown(cell: Cell) -> str:
    """A cell as text, rounded.

    Examples
    --------
    >>> [shown(cell) for cell in (None, "dice", 1234, 0.0312, 7.456, 812.4, 1234567.0)]
    ['–', 'dice', '1,234', '0.031', '7.46', '812', '1.2M']
    """
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    size = abs(cell)
    if size >= 1e6:
        return f"{cell / 1e6:.1f}M"
    if isinstance(cell, int) or 100 <= size < 1e4:
        return f"{cell:,.0f}"
    if size >= 1e4:
        return f"{cell / 1e3:.0f}k"
    places = 3 if 0 < size < 0.1 else 2 if size < 10 else 1
    return f"{cell:.0f}" if float(cell).is_integer() else f"{cell:.{places}f}"
