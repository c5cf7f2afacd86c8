"""Folders that are named after a subject, whatever it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbits import Budget
from fairbits.audit import audit_subject
from fairbits.options import AuditOptions
from fairbits.scale.run import search
from fairbits.search import Settings
from fairbits.store import Run
from fairbits.store.files import folder_name, new_folder
from fairbits.subject import Subject
from tests.search.planted import planted_subject

SETTINGS = Settings(budget=Budget(evaluations=50), strategy="random", threads=1)
WAYS: dict[str, Callable[[Subject], Run]] = {
    "search": lambda subject: search(subject, SETTINGS),
    "shards": lambda subject: search(subject, SETTINGS, shards=2),
    "audit": lambda subject: (
        audit_subject(subject, AuditOptions(seconds=1.0, threads=1, skip=frozenset({"search", "debug", "repair"}))).run
    ),
}


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("census", "census"),
        ("compas-noleak_2.1", "compas-noleak_2.1"),
        ("Größe", "Größe"),
        ("a/b", "a-b"),
        ("..\\..\\etc", "etc"),
        ("con:1", "con-1"),
        ("NUL.txt", "subject-NUL.txt"),
        ("a\nb\x00c", "a-b-c"),
        ("..", "subject"),
        ("", "subject"),
        ("x" * 300, "x" * 120),
        ("ж" * 300, "ж" * 60),
    ],
)
def test_a_name_becomes_one_folder(name: str, folder: str) -> None:
    assert folder_name(name) == folder


@given(st.text(max_size=400))
def test_any_name_becomes_one_folder(name: str) -> None:
    made = new_folder(name, "audit")
    assert made.parent == Path("runs")
    assert made.name[0] not in ".-"
    assert len(made.name.encode()) < 255
    assert not set(made.name) & set('<>:"/\\|?*\0\n')
    assert folder_name(folder_name(name)) == folder_name(name)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["../../a/b", "..", "con:1", "y" * 300], ids=["path", "up", "device", "long"])
def test_runs_stay_below_their_folder_and_know_the_name(
    way: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "one" / "two"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    run = WAYS[way](replace(planted_subject(), name=name))
    assert run.manifest["subject"] == name
    assert [path.name for path in inside.iterdir()] == ["runs"]
    assert [path.name for path in (inside / "runs").iterdir()] == [run.folder.name]
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
