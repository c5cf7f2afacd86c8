"""The stages of `fairbits audit` on stderr as they pass, with their times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fairbits.cli.console import Console
from fairbits.cli.render.people import harmless
from fairbits.cli.render.progress import working

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
