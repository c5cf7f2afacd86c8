"""Group figures on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairbits.cli.render.people import harmless

if TYPE_CHECKING:
    from fairbits.measure import Estimate, GroupTable

#: Of fairbits.measure, which brings the compiler along.
MIN_PEOPLE = 30
#: Rows of one table on a terminal; the rest is in --json and the report.
MAX_ROWS = 12


def groups_text(tables: Sequence[GroupTable], *, max_rows: int = MAX_ROWS) -> RenderableType:
    """Single attributes: how many are selected, and how right that is; intersections are in --json and the report."""
    single = [table for table in tables if " × " not in table.attribute] or list(tables)
    blocks: list[RenderableType] = [_decided(single, max_rows)]
    if any(one.base_rate is not None for table in single for one in table.groups):
        blocks.append(_right(single, max_rows))
    small = [f"{table.attribute} {name}" for table in tables for name in table.small]
    if small:
        shown = ", ".join(small[:6]) + (f" and {len(small) - 6} more" if len(small) > 6 else "")
        blocks.append(Text(harmless(f"Fewer than {MIN_PEOPLE} people, so in no ratio: {shown}."), style="dim"))
    return Group(*blocks)


def _decided(tables: Sequence[GroupTable], max_groups: int) -> Table:
    """People, selection rate with its interval, impact ratio."""
    decides = any(one.selection_rate is not None for table in tables for one in table.groups)
    shown = _empty("people", "selected" if decides else "above median", "95 % interval", "impact ratio", "mean score")
    for table in tables:
        for one in table.groups[:max_groups]:
            rate = one.selection_rate if decides else one.scoring_rate
            kind = "impact_ratio" if decides else "scoring_ratio"
            ratio = ratio_words(*(getattr(one, f"{kind}{end}") for end in ("", "_low", "_high")))
            words = "under 30" if one.small else ratio
            mean = "–" if one.mean_score is None else f"{one.mean_score.value:.3f}"
            name = Text(harmless(f"{table.attribute} {one.group}"))
            shown.add_row(name, f"{one.people:,}", _rate(rate), _interval(rate), words, mean)
        left = len(table.groups) - max_groups
        if left > 0:
            shown.add_row(Text(f"… {left} more", style="dim"))
    return shown


def ratio_words(ratio: float | None, low: float | None, high: float | None) -> str:
    """An impact ratio with its interval."""
    return "–" if ratio is None else f"{ratio:.2f} ({low:.2f}–{high:.2f})"


def _right(tables: Sequence[GroupTable], max_groups: int) -> Table:
    """What the labels say: base rate, errors, and whether scores mean what they say."""
    shown = _empty("base rate", "TPR", "FPR", "precision", "calibration")
    for table in tables:
        for one in table.groups[:max_groups]:
            gap = "–" if one.calibration is None else f"{one.calibration.value:+.3f}".replace("-", "−")
            rates = (_rate(rate) for rate in (one.base_rate, one.tpr, one.fpr, one.precision))
            shown.add_row(Text(harmless(f"{table.attribute} {one.group}")), *rates, gap)
    return shown


def _empty(*headings: str) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("group", max_width=26, overflow="ellipsis", no_wrap=True)
    for heading in headings:
        shown.add_column(heading, justify="right")
    return shown


def _rate(rate: Estimate | None) -> str:
    return "–" if rate is None else f"{rate.value:.1%}"


def _interval(rate: Estimate | None) -> str:
    return "–" if rate is None else f"{rate.low:.1%} – {rate.high:.1%}"
