"""TOML from outside: bounded time, whatever it holds."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from fairbits import load_subject
from fairbits.errors import SchemaError
from fairbits.subject import export_subject, read_document

from ..report.conftest import build_subject, ordinary_schema


@pytest.mark.parametrize(
    "text",
    [
        "x." + "a." * 500_000 + "b = 1",
        "[x" + " . 'a'" * 200_000 + "]",
        'x = {"a"' + '."b"' * 200_000 + " = 1}",
        "a" * 1_000_000,
        '"' * 1_000_000,
        "a\n" * 300_000,
    ],
    ids=lambda text: text[:12],
)
def test_keys_without_end_are_refused_at_once(text: str, tmp_path: Path) -> None:
    """tomllib needs time with the square of a key's parts: 200 kB of dots took minutes."""
    file = tmp_path / "subject.toml"
    file.write_text(text, encoding="utf-8")
    began = time.process_time()
    with pytest.raises(SchemaError, match=r"parts or more|\(at "):
        read_document(file)
    assert time.process_time() - began < 5


def test_dots_in_texts_are_no_keys_and_a_file_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    words, file = "Ä. B. C. " * 15 + "1.5, 2.5." + "." * 500, tmp_path / "subject.toml"
    file.write_text(f'note = "{words}"\na.b.c = 1.5', encoding="utf-8-sig")
    assert read_document(file) == {"note": words, "a": {"b": {"c": 1.5}}}


def test_what_an_owner_says_of_a_model_is_kept_and_moves_no_figure(tmp_path: Path) -> None:
    plain = build_subject(ordinary_schema(), "said")
    about = {"purpose": "credit", "owner": "risk", "version": "7"}
    export_subject(replace(plain, about=about), tmp_path / "said")
    found = load_subject(str(tmp_path / "said" / "subject.toml"))
    assert found.about == about
    file = tmp_path / "said" / "subject.toml"
    said = file.read_text(encoding="utf-8")
    file.write_text(said.replace('version = "7"', 'version = "8"'), encoding="utf-8")
    assert load_subject(str(file)).identity.id == found.identity.id
    for wrong, words in (
        ("version = 7", r"\[about\] has version = 7; it must be text"),
        ('risk = "x"', "unknown key 'risk'"),
    ):
        file.write_text(said.replace('version = "7"', wrong), encoding="utf-8")
        with pytest.raises(SchemaError, match=words):
            load_subject(str(file))


def test_a_name_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "subject.toml").write_text('name = ["loans"]')
    with pytest.raises(SchemaError, match="it must be a text"):
        load_subject(tmp_path / "subject.toml")
