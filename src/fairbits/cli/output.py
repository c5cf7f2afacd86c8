"""The one way to a terminal: what is written to stdout and stderr passes a filter, whoever writes it.

`safe_output` stands around every command. Text that others chose (names, labels, cells, complaints of other libraries)
loses whatever could command a terminal. Colours and cursor moves of rich are let through where the stream is a
terminal, and our own consoles (`fairbits.cli.terminal`) clean their text before they colour it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from fairbits import store
from fairbits.blocks import Block, Page
from fairbits.text import REPLACEMENT, harmless_lines, json_text

#: What rich writes to a terminal: colours, and the moves of a line that is drawn again. No titles, links, clipboard.
_OWN = re.compile("(\x1b\\[(?:[0-9;]*m|\\?25[hl]|[0-9;]*[ABCDGHJK])|\r)")


class OutputError(OSError):
    """Output that could not be written: a full device behind ``>``."""


class SafeStream:
    """A text stream that replaces control characters; everything else is the stream's own."""

    def __init__(self, stream: TextIO, *, drawing: bool = False):
        self._stream, self._drawing = stream, drawing

    @property
    def rich_proxied_file(self) -> SafeStream:
        """What rich's consoles write to instead: with their colours, if there is a terminal to show them."""
        return self if self._drawing else SafeStream(self._stream, drawing=self.isatty())

    def write(self, text: str) -> int:
        """Write text with control characters replaced."""
        with self._heard():
            self._stream.write(_but_own(text) if self._drawing else harmless_lines(text))
        return len(text)

    def flush(self) -> None:
        """Have it written."""
        with self._heard():
            self._stream.flush()

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """What cannot be written any more goes nowhere; that a reader (`| head`) has seen enough is no failure."""
        try:
            yield
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            if not isinstance(error, BrokenPipeError):
                raise OutputError(error.errno, error.strerror or str(error)) from None

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts with control characters replaced."""
        for line in lines:
            self.write(line)

    def isatty(self) -> bool:
        """Whether a person is looking."""
        return self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _but_own(text: str) -> str:
    """A text made harmless between what rich itself writes, which is every second piece."""
    pieces = _OWN.split(text)
    return "".join(piece if i % 2 else harmless_lines(piece) for i, piece in enumerate(pieces))


@contextmanager
def safe_output() -> Iterator[None]:
    """Put the filter before stdout and stderr, once; what their encoding cannot hold is replaced."""
    before = sys.stdout, sys.stderr
    undo = [_lenient(stream) for stream in before]
    safe = [stream if stream is None or isinstance(stream, SafeStream) else SafeStream(stream) for stream in before]
    sys.stdout, sys.stderr = cast(list[TextIO], safe)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream, errors in undo:
            stream.reconfigure(errors=errors) if errors else None


def print_json(document: Any, *, indent: int | None = 2) -> None:
    """Print a document as JSON; tricky characters and those that stdout cannot hold are escaped."""
    print(json_text(document, indent=indent, ascii_only=not _holds_all(sys.stdout)))


def answer(
    as_json: bool,
    document: Callable[[], Any],
    look: Callable[[], Iterable[Block] | Page],
    *last: str,
    everything: bool | None = None,
) -> None:
    """Print a result, as JSON or as blocks; after these, what to do next."""
    if as_json:
        print_json(document())
    else:
        from fairbits.cli.terminal import show

        show(look(), *last, everything=everything)


def _lenient(stream: Any) -> tuple[Any, str | None]:
    """Let a stream replace what its encoding has no character for; gives what it did before."""
    strict = getattr(stream, "errors", None) in ("strict", "surrogateescape")
    if not strict or isinstance(stream, SafeStream) or not hasattr(stream, "reconfigure"):
        return stream, None
    before = str(stream.errors)
    stream.reconfigure(errors="replace")
    return stream, before


def _holds_all(stream: Any) -> bool:
    try:
        REPLACEMENT.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def warn_of_damage(run: store.Run) -> None:
    """Say on stderr which parts of a run had to be skipped."""
    run.verify()
    for warning in run.warnings():
        print(f"fairbits: {warning}", file=sys.stderr)
