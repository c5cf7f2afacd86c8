"""TOML from outside: bounded time, whatever it holds."""

from __future__ import annotations

import time

import pytest

from fairbits.subject import parse_toml


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
def test_keys_without_end_are_refused_at_once(text: str) -> None:
    """tomllib needs time with the square of a key's parts: 200 kB of dots took minutes."""
    began = time.process_time()
    with pytest.raises(ValueError, match=r"parts or more|\(at "):
        parse_toml(text.encode())
    assert time.process_time() - began < 5


def test_dots_in_texts_are_no_keys() -> None:
    words = "A. B. C. " * 15 + "1.5, 2.5." + "." * 500
    assert parse_toml(f'note = "{words}"\na.b.c = 1.5'.encode()) == {"note": words, "a": {"b": {"c": 1.5}}}
