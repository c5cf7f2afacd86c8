"""A progress bar on stderr that appears only when the work takes more than a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 1.0


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr once the work takes more than a second.

    Parameters
    ----------
    title
        What is being done.

    Yields
    ------
    Iterator[Callable[[int, int], None]]
        A function to call with the number done and the number in all.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from fairbits.cli.console import Console

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(title)
    begin = time.monotonic()
    shown = False

    def report(done: int, total: int) -> None:
        nonlocal shown
        if not shown and done < total and time.monotonic() - begin > PATIENCE:
            bar.start()
            shown = True
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        if shown:
            bar.stop()


@contextmanager
def working(*, shown: bool) -> Iterator[Callable[[str], None] | None]:
    """One line on stderr that says what is being done; only on a terminal.

    Parameters
    ----------
    shown
        Whether to show anything, as ``--quiet`` and ``--json`` decide.

    Yields
    ------
    Iterator[Callable[[str], None] | None]
        A progress callback, or None.
    """
    from fairbits.cli.console import Console

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    with console.status("…") as line:
        yield lambda what: line.update(f"{what} …")
