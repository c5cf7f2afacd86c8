"""Names and labels as text: they come from files that anybody may have written."""

from __future__ import annotations

from fairbits.text import REPLACEMENT, harmless, shortened, unsigned_zero

__all__ = ["REPLACEMENT", "harmless", "joined", "quality", "shortened", "unsigned_zero"]


#: A plain number, with its sign: no spreadsheet takes it for a formula.
NUMBER = r"^[+-]?(\d[\d,]*\.?\d*|\.\d+)([eE][+-]?\d+)?\s?%?$"


def quality(*, regression: bool) -> str:
    """The measure of quality on labelled rows: accuracy, or variance explained for a regression."""
    return "variance explained" if regression else "accuracy"


def joined(names: tuple[str, ...] | list[str]) -> str:
    """Names as a person lists them.

    Examples
    --------
    >>> joined(["age", "race", "sex"])
    'age, race and sex'
    """
    return ", ".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"
