"""What stderr shows while one waits: a bar, a line that says what is done, or the runs that are left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

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
def working(*, shown: bool) -> Iterator[Callable[[str], None] | None]:
    """One line on stderr that says what is being done; only on a terminal."""
    from fairbits.cli.console import Console

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    with console.status("…") as line:
        yield lambda what: line.update(f"{what} …")


#: A run that took less than this share of its budget was not run, but read.
READ = 0.1


@contextmanager
def steps(seconds: float, *, shown: bool) -> Iterator[Callable[[int, int, str], None] | None]:
    """One line on stderr: which run is going on, and how long the rest will take; only on a terminal."""
    from rich.live import Live
    from rich.text import Text

    from fairbits.cli.console import Console

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
