"""Names and labels as text: they come from files that anybody may have written."""

from __future__ import annotations

from fairbits.text import REPLACEMENT, harmless, shortened

__all__ = ["REPLACEMENT", "harmless", "joined", "quality", "shortened"]


def unsigned_zero(text: str) -> str:
    """A formatted number without the sign that rounding left on a zero.

    Parameters
    ----------
    text
        A formatted number, with or without a unit.

    Returns
    -------
    str
        The text, without a minus where every digit is zero.

    Examples
    --------
    >>> unsigned_zero("-0.0"), unsigned_zero("-0.0 %"), unsigned_zero("-0.1"), unsigned_zero("+0.0")
    ('0.0', '0.0 %', '-0.1', '+0.0')
    """
    return text[1:] if text.startswith("-") and not any(digit in text for digit in "123456789") else text


#: A plain number, with its sign: no spreadsheet takes it for a formula.
NUMBER = r"^[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s?%?$"


def quality(*, regression: bool) -> str:
    """The measure of quality on labelled rows: accuracy, or variance explained for a regression.

    Parameters
    ----------
    regression
        Whether the model predicts a number.

    Returns
    -------
    str
        "accuracy" or "variance explained".
    """
    return "variance explained" if regression else "accuracy"


def joined(names: tuple[str, ...] | list[str]) -> str:
    """Names as a person lists them.

    Parameters
    ----------
    names
        Names in the order to list them.

    Returns
    -------
    str
        The names with commas, and "and" before the last.

    Examples
    --------
    >>> joined(["age", "race", "sex"])
    'age, race and sex'
    """
    return ", ".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"
