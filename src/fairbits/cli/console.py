"""Rich's console, for text that others chose: no markup is read in it, and control characters are replaced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any, cast

from rich import console as rich_console
from rich.segment import Segment

from fairbits.cli.output import SafeStream
from fairbits.text import harmless_lines


class Console(rich_console.Console):
    """A console whose every segment is harmless before it is coloured. Brackets are brackets, not markup."""

    def __init__(self, **options: Any):
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    @property
    def file(self) -> IO[str]:
        """The stream to write to: where our filter stands before it, the side that lets colours through."""
        found = rich_console.Console.file.fget(self)  # type: ignore[attr-defined]
        return cast(IO[str], found.rich_proxied_file) if isinstance(found, SafeStream) else found

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def render(
        self, renderable: rich_console.RenderableType, options: rich_console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Segments as rich makes them, their text cleaned; rich's own moves of the cursor stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless_lines(segment.text), segment.style)
