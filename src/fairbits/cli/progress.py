"""What stderr shows while one waits: a bar, a line that says what is done, the stages of an audit, the runs left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fairbits.text import harmless

if TYPE_CHECKING:
    from rich.console import Group
    from rich.progress import Progress
    from rich.text import Text

    from fairbits.cli.console import Console
    from fairbits.search import Tally

PATIENCE = 1.0


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr once the work takes more than a second."""
    bar: Progress | None = None
    begin = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and done < total and time.monotonic() - begin > PATIENCE:
            bar = _bar(title)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done, total=total)

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


def _bar(title: str) -> Progress:
    """Made when it is needed: its library takes a tenth of a second to bring in."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fairbits.cli.console import Console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(title)
    return bar


@contextmanager
def working(*, shown: bool) -> Iterator[Callable[[str | Text], None] | None]:
    """One line on stderr that says what is being done; only on a terminal."""
    from fairbits.cli.console import Console

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    with console.status("preparing …") as line:
        yield lambda what: line.update(f"{what} …" if isinstance(what, str) else what)


#: A run that took less than this share of its budget was not run, but read.
READ = 0.1


@contextmanager
def steps(seconds: float, *, shown: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """One line on stderr: which run is going on, and how long the rest will take; only on a terminal."""
    from rich.text import Text

    last, spent = time.monotonic(), list[float]()
    with working(shown=shown) as say:

        def report(done: int, total: int, what: str) -> None:
            nonlocal last
            now = time.monotonic()
            if done and now - last > READ * seconds:  # a run that was read from disk says nothing about the others
                spent.append(now - last)
            last = now
            each = sum(spent) / len(spent) if spent else seconds
            text = Text(f"{done + 1} of {total} · {what}")
            text.append(f" · about {duration(each * (total - done))} left", style="dim")
            if say is not None:
                say(text)

        yield None if say is None else report


def duration(seconds: float) -> str:
    """A time such as "45 s", "12 min" or "1.5 h"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@contextmanager
def live(*, shown: bool) -> Iterator[Callable[[Tally, float], None] | None]:
    """One line on stderr that keeps up with the search; only on a terminal."""
    with working(shown=shown) as say:
        yield None if say is None else lambda tally, seconds: say(_line(tally, seconds))


def _line(tally: Tally, seconds: float) -> Text:
    from rich.text import Text

    speed = tally.cases / seconds if seconds > 0 else 0.0
    text = Text(f"{tally.cases:,} cases · {tally.id_cases:,} ID · {speed:,.0f}/s · largest k ")
    text.append(str(tally.k_max), style="bold red")
    if tally.left is not None:
        text.append(f" · {tally.left:,.0f} s left", style="dim")
    return text


_MARKS = {
    "start": ("…", "cyan"),
    "done": ("✓", "green"),
    "kept": ("=", "dim"),
    "skipped": ("–", "dim"),
    "failed": ("!", "yellow"),
}
_STAGES = ("measure", "search", "debug", "repair", "certify", "proxies", "report")
_REFRESH = 8


@contextmanager
def stages(*, shown: bool, scores_only: bool = False) -> Iterator[Callable[[str, str, str], None] | None]:
    """Show the stages on stderr with their times; line by line where stderr is no terminal."""
    from rich.live import Live

    from fairbits.cli.console import Console

    console = Console(stderr=True, highlight=False)
    if not shown:
        yield None
    elif scores_only:
        with working(shown=True) as say:
            yield None if say is None else lambda _, event, words: say(words) if event == "say" else None
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
        from rich.text import Text

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
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for stage in _STAGES:
            mark, style = _MARKS.get(self.state[stage], (" ", "dim"))
            now = self.took.get(stage)
            if now is None and self.state[stage] == "start":
                now = time.monotonic() - self.begin[stage]
            clock = "" if now is None else f"{now:5.1f} s"
            table.add_row(Text(mark, style=style), stage, clock, Text(harmless(self.words[stage])[:60], style="dim"))
        return Group(Text(f"plan of {harmless(self.plan)}", style="dim"), table)
