"""What `fairbits alternatives` and `fairbits tune` show: all candidates in a table, the front with its intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless

if TYPE_CHECKING:
    from fairbits.measure import Estimate
    from fairbits.repair import Alternative, Alternatives


def show(found: Alternatives) -> None:
    """Print everything, at most 80 columns wide."""
    console = Console(highlight=False, width=min(80, Console().width))
    evidence = found.evidence
    console.print(Text.assemble((harmless(found.subject), "bold"), f" · seed {found.seed}"))
    for line in () if found.agreement is None else found.agreement.lines():
        console.print(Text(harmless(line), style="dim"))
    console.print(
        Text(
            f"{len(found.candidates) - 1} alternatives, judged on {evidence.held_out_rows:,} rows that none has seen",
            style="dim",
        )
    )
    console.print()
    console.print(_table(found))
    console.print(
        Text(
            "* no other is at least as good in accuracy, direct and indirect bits and impact\n"
            "  ratio, and better in one\n"
            "direct: bits, mean Q∞ of rows   indirect: bits through other attributes\n"
            "impact: lowest selection rate of a group over the highest\n"
            "flips: rows whose twins get both decisions",
            style="dim",
        )
    )
    console.print()
    console.print(Text("Not beaten, with 95 % intervals", style="bold"))
    for one in found.front:
        console.print(_line(one))
    console.print()
    for name, reason in found.left_out:
        console.print(Text(f"Left out: {harmless(name)}: {harmless(reason)}", style="yellow"))
    for note in (*evidence.notes, *found.warnings):
        console.print(Text(f"Note: {harmless(note)}", style="yellow"))
    console.print(Text(f"Log, models and page: {found.folder / 'alternatives.html'}"), soft_wrap=True)


def _table(found: Alternatives) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("candidate", no_wrap=True)
    for heading in (found.quality, "direct", "indirect", "impact", "flips", "proved"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found.candidates:
        table.add_row(
            "*" if one.on_front else "",
            harmless(one.name),
            f"{one.accuracy.value:.1%}",
            f"{one.bits.value:.2f}",
            _value(one.indirect_bits),
            _value(one.impact_ratio),
            "–" if one.flips is None else f"{one.flips.value:.1%}",
            "" if one.k_max_proved is None else f"k ≤ {one.k_max_proved}",
            style="bold" if one.on_front else "dim",
        )
    return table


def _line(one: Alternative) -> Text:
    parts = [f"accuracy {_range(one.accuracy, percent=True)}", f"direct {_range(one.bits)}"]
    parts += [] if one.indirect_bits is None else [f"indirect {_range(one.indirect_bits)} ({one.indirect_attribute})"]
    parts += [] if one.impact_ratio is None else [f"impact {_range(one.impact_ratio)} ({one.impact_attribute})"]
    return Text.assemble((f"{harmless(one.name)}: ", "bold"), harmless("; ".join(parts)))


def _value(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{estimate.value:.2f}"


def _range(estimate: Estimate, *, percent: bool = False) -> str:
    if percent:
        return f"{estimate.value:.1%} ({estimate.low:.1%} to {estimate.high:.1%})"
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"
