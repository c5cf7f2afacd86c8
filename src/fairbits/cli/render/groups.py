"""Group figures on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.render.people import harmless

if TYPE_CHECKING:
    from fairbits.measure import Estimate, GroupTable

#: Rows of one table on a terminal; the rest is in --json and the report.
MAX_ROWS = 12


def groups_text(tables: Sequence[GroupTable], *, max_rows: int = MAX_ROWS) -> Table:
    """A table of group figures, single attributes first: people, selection rate, impact ratio, errors.

    Parameters
    ----------
    tables
        Group figures.
    max_rows
        How many rows to show.

    Returns
    -------
    Table
        The table.
    """
    single = [table for table in tables if " × " not in table.attribute] or list(tables)
    decides = any(one.selection_rate is not None for table in single for one in table.groups)
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("group", max_width=26, overflow="ellipsis", no_wrap=True)
    headings = ["people", "selected" if decides else "above median", "95 % interval", "ratio"]
    errors = any(one.tpr is not None for table in single for one in table.groups)
    for heading in headings + (["TPR", "FPR"] if errors else []):
        shown.add_column(heading, justify="right")
    for table in single:
        for one in table.groups[:max_rows]:
            rate = one.selection_rate if decides else one.scoring_rate
            ratio = one.impact_ratio if decides else one.scoring_ratio
            cells = [f"{one.people:,}", _rate(rate), _interval(rate)]
            cells += ["under 30" if one.small else "–" if ratio is None else f"{ratio:.2f}"]
            cells += [_rate(one.tpr), _rate(one.fpr)] if errors else []
            shown.add_row(Text(harmless(f"{table.attribute} {one.group}")), *cells)
        left = len(table.groups) - max_rows
        if left > 0:
            shown.add_row(Text(f"… {left} more", style="dim"))
        if table.unknown:
            shown.add_row(Text(harmless(f"{table.attribute} unknown"), style="dim"), f"{table.unknown:,}")
    return shown


def _rate(rate: Estimate | None) -> str:
    return "–" if rate is None else f"{rate.value:.1%}"


def _interval(rate: Estimate | None) -> str:
    return "–" if rate is None else f"{rate.low:.1%} – {rate.high:.1%}"
