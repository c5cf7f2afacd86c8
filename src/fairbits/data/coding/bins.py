"""Numbers cut into ranges, and the labels that people read for them."""

from __future__ import annotations

import numpy as np

from fairbits.data.coding.raw import Floats, Ints


def equal_bins(values: Floats, low: float, high: float, count: int) -> Ints:
    """Bins 1..count of equal width; a value on an edge belongs to the bin below it (right-closed)."""
    edges = np.linspace(low, high, count + 1)
    return np.searchsorted(edges[1:-1], values, side="left").astype(np.int64) + 1


def bin_labels(low: float, high: float, count: int, *, digits: int = 1) -> tuple[str, ...]:
    """Labels of the bins of ``equal_bins``; each begins just above the end of the one before."""
    edges = [f"{edge:,.{digits}f}".replace("-", "−") for edge in np.linspace(low, high, count + 1)]
    first = f"{edges[0]} to {edges[1]}"
    return (first, *(f"over {edges[i]} to {edges[i + 1]}" for i in range(1, count)))


def whole_bin_labels(low: int, high: int, count: int) -> tuple[str, ...]:
    """Labels of bins of whole numbers: "21–27", "28–34", …."""
    ends = [int(np.floor(edge + 1e-9)) for edge in np.linspace(low, high, count + 1)]
    starts = [low, *(end + 1 for end in ends[1:-1])]
    return tuple(f"{a}–{b}" if a != b else f"{a}" for a, b in zip(starts, ends[1:], strict=True))


def range_labels(width: int, first: int, last: int, *, top: bool = False) -> tuple[str, ...]:
    """Labels of ``value // width``: 2 reads "2,000–2,999" for a width of 1000."""
    names = [f"{code * width:,}–{code * width + width - 1:,}" for code in range(first, last + 1)]
    if top:
        names[-1] = f"{last * width:,} and over"
    return tuple(names)
