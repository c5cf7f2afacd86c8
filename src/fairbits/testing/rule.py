"""What a broken rule raises."""

from __future__ import annotations


class ConformanceError(AssertionError):
    """A rule that the object under test does not keep: the sentence says which, and with what values."""


def expect(holds: bool, rule: str, words: str) -> None:
    """Raise where a rule is broken.

    Parameters
    ----------
    holds
        Whether it is kept.
    rule
        The name of the rule.
    words
        What was found, without a full stop.

    Raises
    ------
    ConformanceError
        If the rule is not kept.
    """
    if not holds:
        raise ConformanceError(f"{rule}: {words}.")
