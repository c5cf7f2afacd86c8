"""What `fairbits diff` shows, at most 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless

if TYPE_CHECKING:
    from fairbits.diff import ModelDiff

_STYLES = {"worse": "red", "better": "green", "open": "dim", "same": "dim"}
#: Groups that the terminal shows; the page and --json have all.
_WIDTH = 80
_GROUPS, _NAME = 14, 26


def show(found: ModelDiff) -> None:
    """Print the comparison."""
    console = Console(highlight=False)
    console.print(Text(harmless(found.sentence), style="bold"))
    for name, side in (("A", found.a), ("B", found.b)):
        console.print(Text(f"{name}  {harmless(side.name)[:60]} ({side.model})"))
        for line in side.quality.lines():
            console.print(Text(f"   {harmless(line)}", style="dim"))
    some = "all" if found.rows == found.rows_total else f"{found.rows:,} of"
    console.print(
        Text(
            f"{some} {found.rows_total:,} people, {found.m} twins each; scores of one twin differ by "
            f"{found.score_distance:.3g} on average, at most by {found.score_distance_max:.3g}.",
            style="dim",
        )
    )
    console.print(_figures(found))
    _decisions(console, found)
    _groups(console, found)
    _people(console, found)
    _layers(console, found)
    for note in found.notes:
        console.print(Text(f"Note: {harmless(note)}", style="yellow"))


def _figures(found: ModelDiff) -> Table:
    from fairbits.diff import shift_words

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("the same people")
    for heading in ("A", "B", "change", "95 % interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for shift in found.shifts:
        *cells, verdict = shift_words(shift)
        table.add_row(*cells, Text("" if verdict == "–" else verdict, style=_STYLES.get(verdict, "")))
    return table


def _decisions(console: Console, found: ModelDiff) -> None:
    changed = found.changed
    if changed is None:
        return
    text = Text(f"{changed.people:,} decisions changed", style="bold")
    text.append(
        f" ({changed.rate.value:.1%}, 95 % interval {changed.rate.low:.1%} to {changed.rate.high:.1%}): "
        f"{changed.lost:,} favourable ones lost, {changed.gained:,} gained",
        style="not bold",
    )
    if changed.made_right is not None:
        text.append(f"; {changed.made_right:,} made right, {changed.made_wrong:,} made wrong", style="not bold")
    console.print(text.append("."))


def _groups(console: Console, found: ModelDiff) -> None:
    from fairbits.diff import group_words

    if found.same:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("group as it is", max_width=_NAME)
    heads = ["people", *(["selected A", "B", "lost", "gained"] if found.changed else []), "mean k", "k rose"]
    for heading in heads:
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found.groups[:_GROUPS]:
        decided = []
        if found.changed is not None:
            rates = (one.selection_before or 0.0, one.selection_after or 0.0)
            decided = [*(f"{rate:.1%}" for rate in rates), f"{one.lost:,}", f"{one.gained:,}"]
        name = harmless(f"{one.attribute} {one.group}")[:_NAME]
        table.add_row(Text(name), f"{one.people:,}", *decided, group_words(one)[2], f"{one.rose:.1%}")
    console.print(table)
    if len(found.groups) > _GROUPS:
        console.print(Text(f"{len(found.groups) - _GROUPS} more groups: --json or --html.", style="dim"))


def _people(console: Console, found: ModelDiff) -> None:
    if found.same:
        return
    console.print(Text(f"k rose for {found.k_rose:,} people and fell for {found.k_fell:,}.", style="bold"))
    for rank, one in enumerate(found.people, 1):
        own = harmless(", ".join(one.own.values()))[:36]
        flips = "  flips now" if one.flips_after and not one.flips_before else ""
        line = Text(f"{rank:>2}. k {one.k_before} → {one.k_after}", style="bold").append(
            f"  {own}  (", style="not bold"
        )
        place, room = harmless(one.place), _WIDTH - len(line) - len(flips) - 1
        place = place if len(place) <= room else f"{place[: room - 1]}…"
        console.print(line.append(f"{place}){flips}", style="not bold"))
        decision = "" if one.decision_before is None else f"; {one.decision_before} → {one.decision_after}"
        words = f"span {one.span_before:.3f} → {one.span_after:.3f}, own score {one.score_before:.3f} → "
        console.print(Text(f"    {words}{one.score_after:.3f}{harmless(decision)[:30]}", style="dim"))


def _layers(console: Console, found: ModelDiff) -> None:
    if not found.layers:
        return
    if found.parted is None:
        console.print(Text("Layers: all put out the same, but for rounding.", style="bold"))
        return
    adds = f"; later, layer {found.adds_most} adds most" if found.adds_most else ""
    console.print(Text(f"The outputs part in layer {found.parted} of {len(found.layers)}{adds}.", style="bold"))
    shown = " · ".join(f"{one.layer}: {one.relative:.2%}" for one in found.layers[:10])
    console.print(Text(f"difference as a share of A's output, by layer: {shown}", style="dim"))
