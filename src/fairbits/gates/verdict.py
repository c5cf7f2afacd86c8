"""The one place where a figure becomes pass, fail or inconclusive; command, plugin and action all end here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from fairbits.gates.catalogue import Direction

Verdict = Literal["pass", "fail", "inconclusive"]
#: The exit code of each: what a pipeline looks at.
EXIT_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3}
_ORDER: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")


def verdict_of(
    low: float | None, high: float | None, threshold: float, *, direction: Direction = "max", sure: bool = True
) -> Verdict:
    """Hold the far end of an interval against a threshold.

    Examples
    --------
    >>> verdict_of(0.01, 0.04, 0.05), verdict_of(0.06, 0.08, 0.05), verdict_of(0.04, 0.06, 0.05)
    ('pass', 'fail', 'inconclusive')
    >>> verdict_of(0.7, 0.9, 0.8, direction="min"), verdict_of(None, None, 0.8)
    ('inconclusive', 'inconclusive')
    """
    if low is None or high is None:
        return "inconclusive"
    near, far = (low, high) if direction == "max" else (-high, -low)
    bound = threshold if direction == "max" else -threshold
    if far <= bound:
        return "pass"
    return "fail" if near > bound and sure else "inconclusive"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict over several checks: the worst of them.

    Examples
    --------
    >>> overall(["pass", "inconclusive"]), overall(["inconclusive", "fail"]), overall([])
    ('inconclusive', 'fail', 'pass')
    """
    found = set(verdicts)
    return next((one for one in _ORDER if one in found), "pass")
