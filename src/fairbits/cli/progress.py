"""What stderr shows while one waits: a bar, a line that says what is done, the stages of an audit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.text import Text

from fairbits.cli.terminal import Console
from fairbits.text import harmless

if TYPE_CHECKING:
    from rich.progress import Progress

    from fairbits.search import Tally

PATIENCE = 1.0


@contextmanager
def progress_bar(title: str, patience: float = PATIENCE) -> Iterator[Callable[..., None]]:
    """Show a progress bar on stderr once the work takes more than a second; what is being done may be told."""
    bar: Progress | None = None
    begin = time.monotonic()

    def report(done: int, total: int, what: str = title) -> None:
        nonlocal bar
        if bar is None and done < total and time.monotonic() - begin > patience:
            bar = _bar(title)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done, total=total, description=what)

    try:
        yield report
    finally:
        if bar is not None:
            bar.stop()


def _bar(title: str) -> Progress:
    """Made when it is needed: its library takes a tenth of a second to bring in."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(title)
    return bar


@contextmanager
def working(*, shown: bool) -> Iterator[Callable[[str | Text], None] | None]:
    """One line on stderr that says what is being done; only on a terminal."""
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    with console.status("preparing …") as line:
        yield lambda what: line.update(f"{what} …" if isinstance(what, str) else what)


@contextmanager
def live(*, shown: bool) -> Iterator[Callable[[Tally, float], None] | None]:
    """One line on stderr that keeps up with the search; only on a terminal."""
    with working(shown=shown) as say:
        yield None if say is None else lambda tally, seconds: say(_line(tally, seconds))


def _line(tally: Tally, seconds: float) -> Text:
    speed = tally.cases / seconds if seconds > 0 else 0.0
    text = Text(f"{tally.cases:,} cases · {tally.id_cases:,} ID · {speed:,.0f}/s · largest k ")
    left = "" if tally.left is None else f" · {tally.left:,.0f} s left"
    return text.append(str(tally.k_max), style="bold red").append(left, style="dim")


@contextmanager
def stages(*, shown: bool) -> Iterator[Callable[[str, str, str], None] | None]:
    """The plan and a line on stderr for every stage that has ended; on a terminal, also what is being done."""
    if not shown:
        yield None
        return
    console = Console(stderr=True)
    begin = time.monotonic()
    with console.status("preparing …") if console.is_terminal else nullcontext() as line:

        def tell(stage: str, event: str, words: str) -> None:
            nonlocal begin
            if event == "start":
                begin = time.monotonic()
            if event in ("start", "say"):
                if line is not None:
                    line.update(Text(f"{stage} … {harmless(words)}"))
                return
            said = {"plan": harmless(words), "done": f"{time.monotonic() - begin:5.1f} s", "kept": "kept"}
            console.print(f"{stage:<8} {said.get(event, f'not run: {harmless(words)}')}")

        yield tell
