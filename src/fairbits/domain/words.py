"""Names and labels as text: they come from files that anybody may have written."""

from __future__ import annotations

from fairbits.text import REPLACEMENT, harmless, shortened

__all__ = ["REPLACEMENT", "harmless", "joined", "quality", "shortened"]


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
