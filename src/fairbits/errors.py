"""What fairbits says when something is wrong: the culprit, its value and the remedy, in one sentence.

The tree, with the exit code of the command line::

    FairbitsError                4  something failed
    ├── ContradictionError          two of our own statements cannot both be true
    └── UsageError               2  what was asked for or handed over cannot be used
        ├── OptionError             an option has a value that makes no sense
        ├── SchemaError             the description of the attributes is wrong
        ├── TableError              the table does not fit its description
        ├── ModelError              the model cannot be read or does not fit
        ├── CapabilityError         the model cannot do what a stage needs
        └── MissingDependencyError  an optional package is not installed
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import requires
from typing import Self

from fairbits.text import for_reader, one_line, shortened

#: Where a message about one row of a batch names the row.
ROW = "{row}"
#: Where in its source, and when, a compiled library raised an error.
_PLACE = re.compile(r"^(\[[\d:]+\] \S+:\d+: |\[ONNXRuntimeError\] : \d+ : \w+ : (.*\.(cc|h):\d+ .*\) )?)")
#: Letters of a sentence, and what is left of the start and the end of a longer one, which quotes too much: the culprit
#: stands in front, the remedy behind.
_MAX_LETTERS, _START, _END = 2_000, 1_500, 400
#: Letters of a name that are shown; and names, and letters of each, among which the closest is looked for.
_SHOWN, _COMPARED, _LETTERS = 80, 2_000, 100


class FairbitsError(Exception):
    """Base of everything that fairbits raises on purpose. Its text is one line and safe to show, whatever is quoted.

    An error about one row of a batch carries the row (counted from 0), so that whoever knows where the batch comes from
    can say so: see ``of_row`` and ``rows_named``. Messages are written with flags; read from Python, they name
    arguments (`words`).
    """

    exit_code = 4
    row: int | None = None
    template: str = ""

    @classmethod
    def of_row(cls, template: str, row: int, place: str | None = None) -> Self:
        """An error about one row of a batch, or of the larger table that the batch is part of.

        Parameters
        ----------
        template
            The message, with ``ROW`` where the row is named.
        row
            Position of the row, counted from 0; the message counts from 1.
        place
            What to call the row instead, such as "row 1,201 of loan.csv".

        Returns
        -------
        Self
            The error, which remembers its row.
        """
        found = cls(template.replace(ROW, place or f"row {row + 1:,}"))
        found.template, found.row = template, row
        return found

    def __str__(self) -> str:
        said = one_line(for_reader(super().__str__()))
        return said if len(said) <= _MAX_LETTERS else f"{said[:_START].rstrip()} … {said[-_END:].lstrip()}"


class ContradictionError(FairbitsError):
    """Two statements of one run cannot both be true: an error inside fairbits, found by itself."""


class UsageError(FairbitsError):
    """What was asked for, or handed over, cannot be used."""

    exit_code = 2


class OptionError(UsageError):
    """An option has a value that makes no sense."""


class SchemaError(UsageError):
    """The description of the attributes is wrong."""


class TableError(UsageError):
    """The table does not fit its description."""


class ModelError(UsageError):
    """The model cannot be read, or does not fit the schema."""


class CapabilityError(UsageError):
    """The model cannot do what a stage needs."""


class MissingDependencyError(UsageError):
    """An optional package is not installed."""

    @classmethod
    def of(cls, package: str, extra: str, purpose: str) -> Self:
        # What the extra asks for, as pip takes it: that works beside a checkout and beside a wheel.
        asked = [one.partition(";") for one in requires("fairbits") or ()]
        found = [shlex.quote(name.strip()) for name, _, why in asked if f"'{extra}'" in why.replace('"', "'")]
        return cls(f"{purpose} needs {package!r}, which is not installed: pip install {' '.join(found) or package}.")


@contextmanager
def foreign(what: str, kind: type[FairbitsError] = ModelError) -> Iterator[None]:
    """Whatever another library raises within the block, an exit included, as one sentence that begins with ``what``."""
    try:
        yield
    except FairbitsError:
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"{what}: {reason(error)}") from error


@contextmanager
def on_disk(what: str, remedy: str = "") -> Iterator[None]:
    """Files that cannot be read or written within the block, as one sentence that begins with ``what``."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"{what}: {error.strerror or error}{remedy and f'; {remedy}'}.") from None


def reason(error: BaseException) -> str:
    """The line of another library's message that says what is wrong, shortened to a sentence."""
    lines = str(error).strip().splitlines() or [""]
    first = lines[-1] if "TorchScript interpreter" in lines[0] else lines[0]  # whose own traceback comes first
    said = _PLACE.sub("", first)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (text if len(text) <= 240 else text[:237] + "…").rstrip(".") + "."


@contextmanager
def rows_named(first: int = 0, place: Callable[[int], str] | None = None) -> Iterator[None]:
    """Errors about a row of a batch leave with the row's own number."""
    try:
        yield
    except FairbitsError as error:
        if error.row is None:
            raise
        row = first + error.row
        named = None if place is None else place(row)
        raise type(error).of_row(error.template, row, named) from error.__cause__


def choose_from(wanted: str, available: Iterable[str], *, max_shown: int = 20) -> str:
    """The end of a message about an unknown name: the names there are, and the closest one.

    Examples
    --------
    >>> choose_from("gender", ["age", "sex", "sender"])
    "choose from: age, sex, sender. Did you mean 'sender'?"
    """
    names = list(available)
    listed = [f'"{shortened(name, _SHOWN)}"' if "," in name else shortened(name, _SHOWN) for name in names[:max_shown]]
    shown = ", ".join(listed) + (f", … ({len(names)} in all)" if len(names) > max_shown else "")
    compared = [name.lower() for name in names[:_COMPARED] if len(name) <= _LETTERS]
    close = difflib.get_close_matches(str(wanted)[:_LETTERS].lower(), compared, n=1, cutoff=0.5)
    hint = next((f" Did you mean {name!r}?" for name in names if close and name.lower() == close[0]), "")
    return f"choose from: {shown or 'nothing'}.{hint}"
