"""A small histogram for the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

_LENGTH = 40
_MOST = 14


def histogram(counts: Mapping[int, int], heading: str) -> Text:
    """A histogram of k, with neighbouring values together where there are many."""
    least, most = min(counts), max(counts)
    width = -(-(most - least + 1) // _MOST)
    bars = {
        start: sum(counts.get(k, 0) for k in range(start, start + width)) for start in range(least, most + 1, width)
    }
    tallest = max(bars.values())
    text = Text(f"    k  {heading:>11}\n", style="bold")
    for start, count in bars.items():
        end = min(start + width - 1, most)
        name = str(start) if start == end else f"{start}–{end}"
        length = round(_LENGTH * count / tallest) or (1 if count else 0)
        text.append(f"{name:>5}  {count:>11,}  ")
        text.append("█" * length + "\n", style="cyan")
    text.rstrip()
    return text
