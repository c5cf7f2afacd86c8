"""What `fairbits search` shows: a live line while it searches, then what it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fairbits.cli import waited
from fairbits.cli.commands.cases import origin_of, place_of
from fairbits.cli.console import Console
from fairbits.cli.render.bars import histogram
from fairbits.cli.render.people import harmless, people_text, quality_lines
from fairbits.text import one_line

if TYPE_CHECKING:
    from fairbits.search import Settings, Tally
    from fairbits.store import Run

_REFRESH = 0.1


@contextmanager
def live(settings: Settings, *, shown: bool) -> Iterator[Callable[[Tally, float], None] | None]:
    """One line on stderr that keeps up with the search; only on a terminal."""
    console = Console(stderr=True, highlight=False)
    if not shown or not console.is_terminal:
        yield None
        return
    last = 0.0
    with Live(Text("preparing …"), console=console, transient=True, auto_refresh=False) as line:

        def watch(tally: Tally, seconds: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > _REFRESH:
                last = now
                line.update(_line(tally, seconds, settings), refresh=True)

        yield watch


def _line(tally: Tally, seconds: float, settings: Settings) -> Text:
    speed = tally.cases / seconds if seconds > 0 else 0.0
    text = Text(f"{tally.cases:,} cases · {tally.id_cases:,} ID · {speed:,.0f}/s · largest k ")
    text.append(str(tally.k_max), style="bold red")
    left = time_left(tally, seconds, settings)
    if left is not None:
        text.append(f" · {left:,.0f} s left", style="dim")
    return text


def time_left(tally: Tally, seconds: float, settings: Settings) -> float | None:
    """Seconds until the first limit of the budget is reached at this speed."""
    budget = settings.budget
    guesses = [budget.seconds - seconds] if budget.seconds is not None and budget.seconds < 1e8 else []
    limits = ((budget.evaluations, tally.evaluations), (budget.cases, tally.cases), (tally.goal, tally.evaluations))
    for limit, done in limits:
        if limit is not None and done:
            guesses.append((limit - done) * seconds / done)
    return max(0.0, min(guesses)) if guesses else None


def show(run: Run, top: int, notes: Iterable[str] = ()) -> None:
    """Print the findings of a run, and what must be known about its subject to read them."""
    from fairbits.measure import Noise

    console = Console(highlight=False)
    summary = run.summary or {}
    blocks = [_headline(run, summary), _near(summary), _paper_row(summary)]
    if summary["top"]:
        blocks.append(histogram({entry["k"]: entry["cases"] for entry in summary["top"]}, "cases"))
    if top and len(run):
        people = [(case, place_of(case), origin_of(case)) for case in run.worst(top)]
        blocks.append(people_text(f"The {len(people)} worst" if len(people) > 1 else "The worst", people))
    for block in blocks:
        console.print(block)
        console.print()
    noise = Noise.read(summary.get("noise"))
    for note in () if noise is None else noise.notes(summary["epsilon"]):
        console.print(Text(f"Note: {note}", style="yellow"))
    for note in notes:
        console.print(Text(f"Note: {one_line(note)}", style="dim"))
    console.print(Text(f"Kept in {run.folder} · more with: fairbits cases {run.folder}", style="dim"))
    if run.status == "interrupted":
        console.print(Text(f"Ended early; go on with: fairbits search --resume {run.folder}", style="yellow"))
    for warning in run.warnings():
        console.print(Text(one_line(warning), style="yellow"))


def _headline(run: Run, summary: dict[str, Any]) -> Text:
    protected = run.schema.protected
    names = protected[0] if len(protected) == 1 else f"{', '.join(protected[:-1])} and {protected[-1]}"
    text = Text()
    text.append(harmless(str(summary["subject"])), style="bold")
    text.append(
        f" · {summary['strategy']} · {summary['seconds']:.1f} s of search ({waited()}) · "
        f"{summary['evaluations']:,} people asked · seed {summary['seed']}\n"
    )
    by = "" if summary.get("objective", "q_inf") == "q_inf" else ", measure Q1"
    text.append(f"ε = {summary['epsilon']:g}, {summary['partition']} partition{by}\n", style="dim")
    for line in quality_lines(summary):
        text.append(f"{line}\n", style="dim")
    text.append(_limits(summary) + "\n", style="dim")
    if not summary["cases"]:
        text.append("No case was found.")
        return text
    bits = max((case.q_inf for case in run.worst(1)), default=0.0)
    text.append(f"Found decisions that use {bits:.2f} of {summary['bits_limit']:.2f} bits", style="bold")
    text.append(f" of {harmless(names)}.\n")
    if summary.get("noise"):
        text.append(f"Answers vary: one twin alone shows up to {summary['null_q_inf_max']:.2f}.\n", style="yellow")
    text.append(f"{summary['cases']:,} distinct people")
    if not run.schema.regression:  # which decides nothing
        text.append(f", {summary['id_cases']:,} of them with twins that get another decision")
    text.append(".")
    return text


def _limits(summary: dict[str, Any]) -> str:
    """What kept people real, and what it cost."""
    lines = []
    if summary["rules"]:
        count = len(summary["rules"])
        share = summary["twins_removed"] / max(summary["m"] * summary["evaluations"], 1)
        lines.append(
            f"{count} rule{'s' if count > 1 else ''} removed {summary['twins_removed']:,} twins ({share:.1%}) "
            f"and {summary['moves_removed']:,} moves\n"
        )
    if summary["min_plausibility"] is not None:
        lines.append(f"only people of plausibility {summary['min_plausibility']:g} or more\n")
    return "".join(lines)


def _near(summary: dict[str, Any]) -> Table:
    """The largest k by how real the person is, and whether that is all there can be."""
    from fairbits.search import DISTANCES

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("people")
    table.add_column("largest k", justify="right")
    table.add_column("")
    limit = round(2 ** summary["bits_limit"])
    for key, name in DISTANCES.items():
        k = summary[key]
        kind = "exact" if key in summary["exact"] else "at least: a lower bound"
        if key in summary["exact"] and k == limit:
            kind = "exact: it cannot be more"
        table.add_row(name, "–" if not k else str(k), Text(kind if k else "none seen", style="dim"))
    return table


def _paper_row(summary: dict[str, Any]) -> Table:
    """The columns of the paper's first research question."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    top = [entry["cases"] for entry in summary["top"][:3]]
    cells = {
        "m": str(summary["m"]),
        "limit": f"{summary['bits_limit']:.2f}",
        "K_I": _number(summary["k_initial"]),
        "cases": f"{summary['cases']:,}",
        "K_F": _number(summary["k_final"]),
        "T (s)": _number(summary["seconds_to_k_final"]),
        "Q∞": _number(summary["q_inf_mean_id"]),
        "Q1": _number(summary["q_1_mean_id"]),
        **{f"#K{i + 1}": f"{top[i]:,}" if i < len(top) else "–" for i in range(3)},
    }
    for heading in cells:
        table.add_column(heading, justify="right")
    table.add_row(*cells.values())
    finished, seeds = summary.get("seeds_finished"), summary["seeds"]
    if seeds:
        whom = f"{finished:,} of {seeds:,} seeds, which had all their moves" if finished else f"{seeds:,} seeds"
        table.caption, table.caption_justify = f"K_I, K_F and T are means over {whom}", "left"
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
