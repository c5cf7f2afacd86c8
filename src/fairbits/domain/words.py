"""Names and labels as text: they come from files that anybody may have written."""

from __future__ import annotations

import re

#: Characters that move a cursor, turn the reading direction, or may not stand in XML at all.
_TRICKY = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u061c\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
REPLACEMENT = "\ufffd"


def harmless(text: str) -> str:
    """Text in which nothing can play tricks on a terminal or a page."""
    return _TRICKY.sub(REPLACEMENT, text)


def shortened(text: str, most: int) -> str:
    """Harmless text of at most so many characters.

    >>> shortened("Amer-Indian-Eskimo", 10)
    'Amer-Indi…'
    """
    safe = harmless(text)
    return safe if len(safe) <= most else safe[: most - 1].rstrip() + "…"


def unsigned_zero(text: str) -> str:
    """A formatted number without the sign that rounding left on a zero.

    >>> unsigned_zero("-0.0"), unsigned_zero("-0.0 %"), unsigned_zero("-0.1"), unsigned_zero("+0.0")
    ('0.0', '0.0 %', '-0.1', '+0.0')
    """
    return text[1:] if text.startswith("-") and not any(digit in text for digit in "123456789") else text


#: A plain number, with its sign: no spreadsheet takes it for a formula.
NUMBER = r"^[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s?%?$"


def quality(*, regression: bool) -> str:
    """What a model, or a repair of it, is measured by on labelled rows. A regression decides nothing."""
    return "variance explained" if regression else "accuracy"


def joined(names: tuple[str, ...] | list[str]) -> str:
    """Names as a person lists them.

    >>> joined(["age", "race", "sex"])
    'age, race and sex'
    """
    return ", ".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"
