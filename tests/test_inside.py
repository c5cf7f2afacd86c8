"""docs/inside.md names functions in the order in which an audit calls them: one small audit is run and compared."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import fairbits
from fairbits.subject import export_subject

PAGE = Path(__file__).resolve().parents[1] / "docs" / "inside.md"
NAME = re.compile(r"`(fairbits(?:\.\w+)+)`")


def resolved(name: str) -> Any:
    """The object of a dotted name: as much of it as is a module, then attributes."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def code_of(name: str) -> CodeType:
    found = resolved(name)
    return getattr(found, "__func__", found).__code__


def steps() -> list[list[str]]:
    """The names of every table of the page, in order."""
    tables = re.findall(r"^\| step \| function \|\n(.*?)\n\n", PAGE.read_text(encoding="utf-8") + "\n\n", re.M | re.S)
    return [
        [name for row in table.splitlines()[1:] for name in NAME.findall(row.rsplit("|", 2)[1])] for table in tables
    ]


@pytest.fixture(scope="module")
def first_calls(tmp_path_factory: pytest.TempPathFactory) -> dict[CodeType, int]:
    """When each function was first called, in the audit that the page describes."""
    folder = tmp_path_factory.mktemp("inside")
    export_subject(fairbits.load_subject("heart"), folder / "heart")
    calls: dict[CodeType, int] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls.setdefault(frame.f_code, len(calls))

    before = sys.gettrace()
    threading.settrace(note)
    sys.settrace(note)
    try:
        audit = fairbits.Audit.of(folder / "heart" / "subject.toml")
        run = audit.search(budget=fairbits.Budget(evaluations=300), out=folder / "run", threads=1)
        run.report(threads=1)
    finally:
        sys.settrace(before)
        threading.settrace(None)  # type: ignore[arg-type]
    return calls


def test_every_named_function_exists() -> None:
    names = NAME.findall(PAGE.read_text(encoding="utf-8"))
    assert len(names) > 40
    for name in names:
        assert callable(resolved(name)), name


def test_the_tables_follow_the_calls(first_calls: dict[CodeType, int]) -> None:
    tables = steps()
    assert len(tables) == 4
    for table in tables:
        missing = [name for name in table if code_of(name) not in first_calls]
        assert not missing
        when = [first_calls[code_of(name)] for name in table]
        assert [table[i] for i in sorted(range(len(when)), key=when.__getitem__)] == table


def test_the_sentences_name_what_is_called(first_calls: dict[CodeType, int]) -> None:
    for name in ("fairbits.measure.evaluator.Evaluator.evaluate", "fairbits.engine.evaluation.evaluate"):
        assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
        assert code_of(name) in first_calls
