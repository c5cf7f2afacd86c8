"""What `fairbits audit` shows: the stages as they pass, then at most 25 lines and the path of the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless

if TYPE_CHECKING:
    from fairbits.audit import AuditResult
    from fairbits.report import Portrait

_MARKS = {
    "start": ("…", "cyan"),
    "done": ("✓", "green"),
    "kept": ("=", "dim"),
    "skipped": ("–", "dim"),
    "failed": ("!", "yellow"),
}
_STAGES = ("measure", "search", "debug", "repair", "certify", "proxies", "report")
_WIDTH, _REFRESH = 80, 8


@contextmanager
def stages(*, shown: bool) -> Iterator[Callable[[str, str, str], None] | None]:
    """Show the stages on stderr with their times; line by line where stderr is no terminal.

    Parameters
    ----------
    shown
        Whether to show anything, as ``--quiet`` and ``--json`` decide.

    Yields
    ------
    Iterator[Callable[[str, str, str], None] | None]
        A progress callback, or None.
    """
    console = Console(stderr=True, highlight=False)
    if not shown:
        yield None
    elif not console.is_terminal:
        yield _Lines(console)
    else:
        board = _Board()
        with Live(board, console=console, refresh_per_second=_REFRESH, transient=True):
            yield board


class _Lines:
    """One line for every stage that has ended."""

    def __init__(self, console: Console):
        self.console, self.begin = console, time.monotonic()

    def __call__(self, stage: str, event: str, words: str) -> None:
        if event == "plan":
            self.console.print(Text(f"{stage:<8} {harmless(words)}"))
        elif event == "start":
            self.begin = time.monotonic()
        elif event == "done":
            self.console.print(f"{stage:<8} {time.monotonic() - self.begin:5.1f} s")
        elif event != "say":
            self.console.print(Text(f"{stage:<8} {event}  {harmless(words)}".rstrip()))


class _Board:
    """All stages, one of them in progress."""

    def __init__(self) -> None:
        self.state = dict.fromkeys(_STAGES, "")
        self.words = dict.fromkeys(_STAGES, "")
        self.begin: dict[str, float] = {}
        self.took: dict[str, float] = {}
        self.plan = ""

    def __call__(self, stage: str, event: str, words: str) -> None:
        if event == "plan":
            self.plan = words
            return
        if event == "say":
            self.words[stage] = words
            return
        self.state[stage] = event
        self.words[stage] = words
        if event == "start":
            self.begin[stage] = time.monotonic()
        elif event == "done":
            self.took[stage] = time.monotonic() - self.begin[stage]

    def __rich__(self) -> Group:
        table = Table.grid(padding=(0, 2))
        for stage in _STAGES:
            mark, style = _MARKS.get(self.state[stage], (" ", "dim"))
            now = self.took.get(stage)
            if now is None and self.state[stage] == "start":
                now = time.monotonic() - self.begin[stage]
            clock = "" if now is None else f"{now:5.1f} s"
            table.add_row(Text(mark, style=style), stage, clock, Text(harmless(self.words[stage])[:60], style="dim"))
        return Group(Text(f"plan of {harmless(self.plan)}", style="dim"), table)


def show(found: AuditResult) -> None:
    """The findings, shortest first; everything else is in the report.

    Parameters
    ----------
    found
        The audit.
    """
    console = Console(highlight=False)
    for line in _lines(found):
        line.truncate(2 * _WIDTH, overflow="ellipsis")  # whatever the names are, 25 lines hold it all
        console.print(line, soft_wrap=False)
    console.print(Text("report  ").append(str(found.page), style="bold"), soft_wrap=True)


def _lines(found: AuditResult) -> Iterator[Text]:
    data = found.data
    yield Text(harmless(data.sentence), style="bold")
    yield from (Text(harmless(line), style="dim") for line in (*data.about.quality.lines(), *data.examined))
    yield Text("")
    if not data.about.protected and data.proxies is not None:
        yield from _indirect(data.proxies)
        yield from _ending(found)
        return
    yield Text("largest k").append(
        "  " + " · ".join(f"{one.people} {one.k}{'' if one.exact else '+'}" for one in data.near), style="bold"
    )
    rate = data.measured.flip_rate or data.measured.split_rate
    what = "rows whose decision flips" if data.measured.flip_rate else "rows with more than one class"
    yield Text(f"{what}  {rate.value:.1%} (95 % interval {rate.low:.1%} to {rate.high:.1%})")
    for title, real in (("worst row", True), ("worst case", False)):
        person = next((one for one in data.people if one.real is real), None)
        if person is not None:
            yield _person(title, person)
    noise = data.measured.noise
    if noise is not None:
        yield from (Text(note, style="yellow") for note in noise.notes(data.about.epsilon))
    yield from _explained(found)
    yield from _ending(found)


def _indirect(document: Mapping[str, Any]) -> Iterator[Text]:
    """Nobody has a twin: what the score tells, and the groups that fare worst."""
    from fairbits.proxies import details, told

    for entry in document["attributes"]:
        if " × " in entry["attribute"]:
            continue
        yield Text(f"{told(entry)[:1].upper()}{harmless(told(entry))[1:]}")
        yield from (Text(f"  {harmless(line)}", style="dim") for line in list(details(entry))[:2])
    for table in document["groups"]:
        ratios = [one for one in table["groups"] if one["impact_ratio"] is not None]
        if " × " not in table["attribute"] and len(ratios) > 1:
            least = min(ratios, key=lambda one: one["impact_ratio"])
            yield Text(
                f"lowest impact ratio by {harmless(table['attribute'])}  {harmless(least['group'])[:40]} "
                f"{least['impact_ratio']:.2f} (selected {least['selection_rate']:.1%})"
            )


def _ending(found: AuditResult) -> Iterator[Text]:
    """What was not possible, and how long everything took."""
    for stage, fault in found.faults.items():
        yield Text(f"{stage} was not possible: {harmless(fault)[:400]}", style="yellow")
    yield Text("")
    times = " · ".join(f"{stage} {took:.1f} s" for stage, took in found.seconds.items() if took is not None)
    mark = "   (+: a lower bound)" if found.data.about.protected else ""
    yield Text(f"{times}{mark}", style="dim")
    if found.stopped:
        yield Text(f"Ended early; go on with: fairbits audit --resume {found.run.folder}", style="yellow")


def _person(title: str, one: Portrait) -> Text:
    return Text(
        f"{title}  k {one.k}: {one.low:.3f} as {harmless(one.worst)[:40]}, {one.high:.3f} as {harmless(one.best)[:40]}"
    )


def _explained(found: AuditResult) -> Iterator[Text]:
    debugged, repaired = found.data.debugged, found.data.repaired
    if debugged is not None and debugged.shares:
        shares = sorted(debugged.shares, key=lambda share: -share.shapley)[:5]
        yield Text("bits come from  " + " · ".join(f"{harmless(s.attribute)[:20]} {s.share:.0%}" for s in shares))
    if debugged is not None:
        layer = f"layer {debugged.suspect}; " if debugged.suspect is not None else ""
        yield Text(f"where  {layer}data or training: {debugged.verdict}")
    if repaired is not None:
        chosen = next((mend for mend in repaired.repairs if mend.chosen), None)
        if chosen is None:
            yield Text(f"repair  none chosen: {harmless(repaired.words)}")
            return
        proved = "" if chosen.k_max_proved is None else f"; k ≤ {chosen.k_max_proved} proved for everybody"
        yield Text(
            f"repair  {chosen.name}: mean k {repaired.k_mean_before:.2f} → {chosen.k_mean:.2f}, "
            f"{repaired.quality} {repaired.accuracy_before:.1%} → {chosen.accuracy:.1%} (held out){proved}"
        )
