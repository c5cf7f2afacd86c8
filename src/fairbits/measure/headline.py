"""What happens to people, in one sentence: the first that every output says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairbits.domain import shortened, unsigned_zero
from fairbits.measure.support import MIN_ROWS

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
    supported: Estimate | None = None,
    bounded: bool = False,
) -> str:
    """How many people would be decided or scored otherwise, all else equal; ``bounded``: not every value was asked.

    Where fewer flip among combinations of protected values that enough rows have, their share stands beside it.
    """
    if not protected:
        return ""
    names = [shortened(name, 60) for name in protected]
    other = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    people = f"these {rows:,} people" if complete else f"{rows:,} people drawn from the table"
    what = "a different decision" if flip_rate is not None else f"a score that differs by more than {epsilon:g}"
    share = (flip_rate or split_rate).value
    many = "None" if share == 0 else "All" if share == 1 else _share_words(share, rows)
    many = f"At least {many}" if bounded and 0 < share < 1 else many
    among = " at the values asked" if bounded and share == 0 else ""
    beside = ""
    if flip_rate is not None and supported is not None and supported.value < flip_rate.value:
        beside = f" ({_share_words(supported.value, rows)} among combinations that at least {MIN_ROWS} rows have)"
    return f"{many} of {people} would get {what} if only their {other} differed{among}{beside}."


def _share_words(share: float, rows: int) -> str:
    words = unsigned_zero(f"{100 * share:.1f} %")
    return f"{round(share * rows):,}" if words == "0.0 %" else words
