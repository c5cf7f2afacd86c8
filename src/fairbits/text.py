"""Text from outside, made safe to show: names, labels, cells, file names and what other libraries complain about.

Whoever writes a table, a model or a subject.toml chooses these words. On a terminal they could move the cursor, write
to the clipboard, turn the reading direction or hide: none of the characters that do so gets through.
"""

from __future__ import annotations

import json
import re
from typing import Any

REPLACEMENT = "\ufffd"

#: Everything that is no visible character and no space: controls (C0, C1), marks of reading direction, line
#: separators, invisible fillers and tags, halves of surrogate pairs, and code points that no character has.
_UNSEEN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
) + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
#: Joiners have a meaning within some scripts and emoji; anywhere else they only hide.
_JOINED = "[^\x00-\u02ff\u2000-\u206f\\s]"
_JOINERS = f"(?<!{_JOINED})[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})"
_TRICKY = re.compile(f"[{_UNSEEN}]|{_JOINERS}")
#: The same but for the two that text of several lines is laid out with.
_TRICKY_IN_LINES = re.compile(f"(?![\n\t])[{_UNSEEN}]|{_JOINERS}")


def harmless(text: str) -> str:
    r"""Text of one line in which nothing plays tricks on a terminal or a page.

    Examples
    --------
    >>> harmless("Ma\x1b[31mle\n")
    'Ma�[31mle�'
    """
    return text if text.isascii() and text.isprintable() else _TRICKY.sub(REPLACEMENT, text)


def harmless_lines(text: str) -> str:
    """Text of several lines in which nothing plays tricks on a terminal or a page: line ends and tabs stay."""
    return text if text.isascii() and text.isprintable() else _TRICKY_IN_LINES.sub(REPLACEMENT, text)


def one_line(text: str) -> str:
    r"""A sentence: line breaks and tabs become spaces, whatever else is tricky is replaced.

    Examples
    --------
    >>> one_line("cannot read it:\n  no such file")
    'cannot read it: no such file'
    """
    if "\n" in text or "\r" in text or "\t" in text:
        text = re.sub(r"[^\S\x1c-\x1f\x85\xa0]*[\n\r\t]\s*", " ", text).strip()
    return harmless(text)


def shortened(text: str, max_letters: int) -> str:
    """Harmless text of at most so many characters.

    Examples
    --------
    >>> shortened("Amer-Indian-Eskimo", 10)
    'Amer-Indi…'
    """
    safe = harmless(text)
    return safe if len(safe) <= max_letters else safe[: max_letters - 1].rstrip() + "…"


def json_text(document: Any, *, indent: int | None = 2, ascii_only: bool = False) -> str:
    r"""A document as JSON that holds every text exactly and shows nothing tricky: such characters are escaped.

    Examples
    --------
    >>> print(json_text({"job": "\u202eevil"}, indent=None))
    {"job": "\u202eevil"}
    """
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    return text if ascii_only else _TRICKY_IN_LINES.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
