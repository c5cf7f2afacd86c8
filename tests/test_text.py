"""Text from outside: what gets through to a terminal, and what does not."""

from __future__ import annotations

import json
import pickle
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbits.errors import ModelError
from fairbits.text import REPLACEMENT, harmless, harmless_lines, json_text, one_line, shortened

TRICKS = {
    "escape": "\x1b[31m",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "title": "\x1b]0;owned\x1b\\",
    "C1": "\x9b31m\x85",
    "bell": "\a\b\f\v\r\0\x7f",
    "direction": "\u202e\u2066\u2069\u200f\u061c",
    "zero width": "\u200b\u2060\ufeff\xad\u180e\u115f\u3164",
    "joiners between letters": "a\u200db\u200cc",
    "separators": "\u2028\u2029",
    "surrogates": "\ud800 \udfff",
    "no characters": "\ufffe\uffff\ufdd0\U0001fffe",
    "tags": "\U000e0041\U000e01ef",
    "annotations": "\ufff9\ufffa\ufffb",
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_nothing_tricky_gets_through(trick: str) -> None:
    for made in (harmless(f"a{trick}b"), harmless_lines(f"a{trick}b"), one_line(f"a {trick} b"), shortened(trick, 50)):
        assert not set(made) & set(trick) - set(" []\\;0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ=")
        made.encode("utf-8")
    assert REPLACEMENT in harmless(trick)
    error = str(ModelError(f"the layer a{trick}b is odd."))
    assert error == one_line(error)
    assert json.loads(json_text({trick: trick})) == {trick: trick}
    assert json_text(trick) == harmless_lines(json_text(trick))


@pytest.mark.parametrize("fine", ["Zürich", "می‌شود", "👩🏽‍🚒 ❤️", "日本語", "naïve – ε ≤ Q∞", "עברית", "O'Neil <b>", ""])
def test_what_people_write_stays(fine: str) -> None:
    assert harmless(fine) == harmless_lines(fine) == one_line(fine) == fine
    assert fine in json_text([fine])


def test_lines_stay_lines_and_sentences_one_line() -> None:
    assert harmless_lines("a\n\tb") == "a\n\tb"
    assert harmless("a\n\tb") == f"a{REPLACEMENT * 2}b"
    assert one_line("a:\r\n   b\tc\n") == "a: b c"
    assert str(ModelError("a\nfairbits: all is well")) == "a fairbits: all is well"
    again = pickle.loads(pickle.dumps(ModelError("a\x1bb")))  # noqa: S301 - our own
    assert str(again) == f"a{REPLACEMENT}b"


@given(st.text(st.characters(codec=None)))
def test_any_text(text: str) -> None:
    safe = harmless(text)
    assert len(safe) == len(text)
    assert harmless(safe) == safe
    allowed_joiners = {"\u200c", "\u200d"}
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in safe)
    assert not any(
        unicodedata.bidirectional(c) in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI", "FSI", "PDF", "PDI") for c in safe
    )
    assert all(c in allowed_joiners or not 0x200B <= ord(c) <= 0x200F for c in safe)
    safe.encode("utf-8")
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):  # halves of a character have no place in JSON
        assert json.loads(json_text(text)) == text
