"""What happens to people, in one sentence: the first that every output says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairbits.domain import shortened, unsigned_zero

if TYPE_CHECKING:
    from fairbits.measure.intervals import Estimate


def people_headline(
    protected: Sequence[str],
    rows: int,
    split_rate: Estimate,
    flip_rate: Estimate | None,
    *,
    epsilon: float,
    complete: bool = True,
) -> str:
    """How many people would be decided otherwise, or scored otherwise, as somebody else."""
    if not protected:
        return ""
    names = [shortened(name, 60) for name in protected]
    other = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    people = f"these {rows:,} people" if complete else f"{rows:,} people drawn from the table"
    what = "another decision" if flip_rate is not None else f"a score that differs by more than {epsilon:g}"
    share = (flip_rate or split_rate).value
    many = "None" if share == 0 else "All" if share == 1 else unsigned_zero(f"{100 * share:.1f} %")
    if many == "0.0 %":
        many = f"{round(share * rows):,}"
    return f"{many} of {people} would get {what} as another {other}."
