"""Whether what a stage read is still what is there, by content and not by the time of files."""

from __future__ import annotations

from fairbits.store import Run, read_json


def is_current(run: Run, name: str) -> bool:
    """Whether a stage's file is there and was made from the cases that are there now, by their content."""
    path = run.folder / name
    return path.is_file() and read_json(path).get("content") == run.content()
