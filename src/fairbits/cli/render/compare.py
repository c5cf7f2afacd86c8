"""What `fairbits compare` shows: a line about what runs now, then two tables that fit on 80 columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.text import harmless

if TYPE_CHECKING:
    from fairbits.paper import Entry, StrategyComparison, Verdict


#: A run that took less than this share of its budget was not run, but read.
READ = 0.1


@contextmanager
def steps(seconds: float, *, shown: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """One line on stderr: which run is going on, and how long the rest will take; only on a terminal.

    Parameters
    ----------
    seconds
        About how long a run takes.
    shown
        Whether to show anything, as ``--quiet`` and ``--json`` decide.

    Yields
    ------
    Iterator[Callable[[int, int, str], None] | None]
        A progress callback, or None.
    """
    console = Console(stderr=True, highlight=False)
    if not shown or not console.is_terminal:
        yield None
        return
    last, spent = time.monotonic(), list[float]()
    with Live(Text("preparing …"), console=console, transient=True, auto_refresh=False) as line:

        def report(done: int, total: int, what: str) -> None:
            nonlocal last
            now = time.monotonic()
            if done and now - last > READ * seconds:  # a run that was read from disk says nothing about the others
                spent.append(now - last)
            last = now
            each = sum(spent) / len(spent) if spent else seconds
            text = Text(f"{done + 1} of {total} · {what}")
            text.append(f" · about {duration(each * (total - done))} left", style="dim")
            line.update(text, refresh=True)

        yield report


def duration(seconds: float) -> str:
    """A time such as "45 s", "12 min" or "1.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show(found: StrategyComparison) -> None:
    """Print both tables, and what must be known to read them."""
    console = Console(highlight=False)
    contest = found.contest
    times = f"{contest.repeats} runs each" if contest.repeats > 1 else "one run each"
    console.print(Text.assemble((harmless(found.subject), "bold"), f" · {contest.budget} a run · {times}"))
    for line in () if found.quality is None else found.quality.lines():
        console.print(Text(harmless(line), style="dim"))
    console.print()
    console.print(_yield_table(found))
    console.print(_kind_table(found))
    console.print(Text(found.sentence, style="bold"))
    for name, missing in found.left_out.items():
        console.print(Text(f"{name} was left out: it needs {missing}, which this model lacks.", style="yellow"))
    if found.idle:
        names, short = ", ".join(found.idle), f"{contest.budget} is too short for one step; raise --budget."
        console.print(Text(f"No person was evaluated in at least one run of: {names}. There, {short}", style="yellow"))
    if contest.repeats == 1:
        console.print(Text("One run each: no deviation and no test of significance.", style="dim"))
    elif any(entry.verdict for entry in found.entries):
        console.print(Text("p, A12: ID cases against dice (Mann-Whitney, two-sided, Holm-corrected).", style="dim"))
    if found.page is not None:
        print(f"Page with plots: {found.page}\nAll figures beside it, in compare.csv and compare.json.")


def _yield_table(found: StrategyComparison) -> Table:
    single = found.contest.repeats == 1
    tested = any(entry.verdict for entry in found.entries)
    table = _table("strategy", "ID cases", *([] if single else ["±"]), "ID/s", "ID/M q", "local", "1st s", "1000th")
    for heading in ("p", "A12") if tested else ():
        table.add_column(heading, justify="right")
    for entry in found.entries:
        cells = [entry.strategy, *_count(entry, single)]
        cells += [_whole(entry.mean("id_per_second")), _whole(entry.mean("id_per_million_queries"))]
        cells += [_percent(entry.mean("local_success_rate"))]
        cells += [_seconds(entry.mean("seconds_to_first_id")), _seconds(entry.mean("seconds_to_1000_id"))]
        if tested:
            cells += _verdict(entry.verdict)
        table.add_row(*cells)
    return table


def _kind_table(found: StrategyComparison) -> Table:
    table = _table("strategy", "largest k", "Q∞", "Q1", "diversity", "leaves", "changed", "L1")
    for entry in found.entries:
        leaves = "–" if not entry.runs[0]["leaves"] else f"{entry.mean('leaves_covered'):.0f}/{entry.runs[0]['leaves']}"
        names = ("k_max", "q_inf_mean_id", "q_1_mean_id", "diversity")
        cells = [_number(entry.mean(name)) for name in names] + [leaves]
        table.add_row(entry.strategy, *cells, *(_number(entry.mean(name)) for name in ("changed", "l1")))
    return table


def _table(first: str, *rest: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, no_wrap=True)
    for heading in rest:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _count(entry: Entry, single: bool) -> list[str]:
    ids = entry.mean("id_cases") or 0.0
    spread = entry.deviation("id_cases") or 0.0
    return [_whole(ids) if ids else "none found", *([] if single else [_whole(spread)])]


def _verdict(verdict: Verdict | None) -> list[str]:
    if verdict is None:
        return ["", ""]
    return ["<.01" if verdict.p_holm < 0.01 else f"{verdict.p_holm:.2f}", f"{verdict.a12:.2f}"]


def _whole(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value < 1e5 else f"{value / 1e3:,.0f}k"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".removesuffix(".00")
