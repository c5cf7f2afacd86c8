"""What `fairbits proxies` shows on a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.groups import groups_text, ratio_words
from fairbits.cli.render.people import harmless
from fairbits.text import one_line

if TYPE_CHECKING:
    from fairbits.measure import Filing
    from fairbits.proxies import ProxyStudy

_WIDTH = 80
#: Columns and pairs per attribute.
_MAX_COLUMNS, _MAX_PAIRS = 6, 3


def show(found: ProxyStudy) -> None:
    """Print everything but the groups of intersections, which are in ``--json``."""
    console = Console(highlight=False)
    document = found.document()
    kind = "scores only" if found.subject.scores_only else "no protected input" if found.sees_none else "its score"
    console.print(Text(f"{harmless(found.subject.name)} · {document['rows']:,} people · {kind}", style="bold"))
    for line in found.subject.lines():
        console.print(Text(harmless(line), style="dim"))
    console.print()
    show_bits(console, document)
    console.print(groups_text(found.groups))
    for entry in document["attributes"]:
        if entry["by_column"]:
            console.print(_columns(entry))
        # Where people of one group are scored as far apart, a pair shows nothing about groups.
        if entry["matched"] and entry["matched"]["pairs"] and entry["matched"]["excess"]["low"] > 0:
            console.print(_pairs(entry))
    if document["periods"]:
        console.print(_periods(document))
    for note in document["notes"]:
        console.print(Text(f"Note: {one_line(note)}", style="dim"))


def show_bits(console: Console, document: dict[str, Any]) -> None:
    """Print the sentences about every attribute."""
    from fairbits.proxies import WHAT_A_BIT_IS, details, sentence_of

    for entry in document["attributes"]:
        sentence = sentence_of(entry)
        console.print(Text(harmless(f"{sentence[:1].upper()}{sentence[1:]}".rstrip(".") + "."), style="bold"))
        for line in details(entry):
            console.print(Text(_indented(harmless(line)), style="dim"))
        console.print()
    console.print(Text(WHAT_A_BIT_IS, style="dim"))
    console.print()


def show_filing(papers: Filing) -> None:
    """Print the tables of a filing."""
    console = Console(highlight=False)
    console.print(Text(f"{harmless(papers.subject)}: impact ratios", style="bold"))
    console.print(Text(f"date {papers.date} · data source {harmless(papers.data_source)}"))
    console.print(Text(f"distribution date of the tool: {harmless(papers.distribution_date or 'not given')}"))
    for table in papers.tables:
        shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=Text(harmless(table.attribute)), title_justify="left")
        shown.add_column("category")
        for heading in ("number", table.kind, "impact ratio"):
            shown.add_column(heading, justify="right")
        shown.add_column("")
        for row in table.rows:
            rate = "–" if row.rate is None else f"{row.rate:.1%}"
            ratio = ratio_words(row.impact_ratio, row.impact_ratio_low, row.impact_ratio_high)
            shown.add_row(Text(harmless(row.category)), f"{row.people:,}", rate, ratio, Text(row.mark, style="dim"))
        shown.add_row(Text("unknown", style="dim"), f"{table.unknown:,}", "", "", "")
        console.print(shown)
    for note in papers.notes:
        console.print(Text(f"Note: {one_line(note)}", style="dim"))


def _columns(entry: dict[str, Any]) -> Table:
    title = Text(harmless(f"Columns that carry {entry['attribute']}"), style="bold")
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    shown.add_column("column", max_width=24, overflow="ellipsis", no_wrap=True)
    for heading in ("bits alone", "at least", "score loses", "95 % interval"):
        shown.add_column(heading, justify="right")
    for one in entry["by_column"][:_MAX_COLUMNS]:
        lost = one["fall"] is not None
        shown.add_row(
            Text(harmless(one["column"]) + (" (copy)" if one["copy"] else "")),
            f"{one['bits']:.3f}",
            f"{one['bits_low']:.3f}",
            f"{one['fall']:.3f}" if lost else "–",
            f"{one['fall_low']:.3f} – {one['fall_high']:.3f}" if lost else "–",
        )
    return shown


def _pairs(entry: dict[str, Any]) -> Text:
    text = Text(f"Alike on the justified attributes, not in {harmless(entry['attribute'])}\n", style="bold")
    for rank, pair in enumerate(entry["matched"]["pairs"][:_MAX_PAIRS], 1):
        text.append(f"\n{rank:>2}. ")
        for side in (pair["lower"], pair["higher"]):
            text.append(
                f"{side['score']:.3f}  {harmless(side['group'])} ({harmless(side['place'])})\n    ", style="bold"
            )
            words = ", ".join(f"{name} {value}" for name, value in side["attributes"].items())
            text.append(_indented(harmless(words)).lstrip() + "\n    ", style="dim")
    text.rstrip()
    text.append("\n")
    return text


def _periods(document: dict[str, Any]) -> Table:
    title = Text(harmless(f"Over {document['by']}"), style="bold")
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    shown.add_column(Text(harmless(document["by"])))
    shown.add_column("people", justify="right")
    shown.add_column("selected", justify="right")
    direct = any(one["q_inf_mean"] for one in document["periods"])
    for heading in ("bits used", "flips") if direct else ():
        shown.add_column(heading, justify="right")
    names = [one["attribute"] for one in document["periods"][0]["bits"]]
    for name in names:
        shown.add_column(Text(harmless(f"bits {name}")), justify="right")
    shown.add_column("")
    top = max((one.get("bits", 0.0) for period in document["periods"] for one in period["bits"]), default=0.0)
    for period in document["periods"]:
        rate = period["selection_rate"]
        bits = [f"{one['bits']:.2f} (≥ {one['low']:.2f})" if "bits" in one else "–" for one in period["bits"]]
        most = max((one.get("bits", 0.0) for one in period["bits"]), default=0.0)
        bar = "█" * round(12 * most / top) if top > 0 else ""
        shown.add_row(
            Text(harmless(period["period"])),
            f"{period['people']:,}",
            "–" if rate is None else f"{rate:.1%}",
            *((_between(period, "q_inf_mean", ".2f"), _between(period, "flip_rate", ".1%")) if direct else ()),
            *bits,
            bar,
        )
    return shown


def _between(one: dict[str, Any], name: str, how: str) -> str:
    value, low, high = (one[key] for key in (name, f"{name}_low", f"{name}_high"))
    return "–" if value is None else f"{value:{how}} ({low:{how}}–{high:{how}})"


def _indented(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
