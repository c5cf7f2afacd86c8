"""A progress bar on stderr that appears only when the work takes more than a second."""

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
