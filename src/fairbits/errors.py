"""What fairbits says when something is wrong: the culprit, its value and the remedy, in one sentence.

The tree, with the exit code of the command line::

    FairbitsError                3  something failed
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
from collections.abc import Iterable

from fairbits.text import one_line


class FairbitsError(Exception):
    """Base of everything that fairbits raises on purpose. Its text is one line and safe to show, whatever is quoted."""

    exit_code = 3

    def __str__(self) -> str:
        return one_line(super().__str__())


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

    def __init__(self, package: str, extra: str, purpose: str):
        super().__init__(f"{purpose} needs {package!r}, which is not installed: pip install 'fairbits[{extra}]'.")


def choose_from(wanted: str, available: Iterable[str], *, most: int = 20) -> str:
    """The end of a message about an unknown name: what there is, and the likeliest slip of the pen.

    >>> choose_from("gender", ["age", "sex", "sender"])
    "it has: age, sex, sender. Did you mean 'sender'?"
    """
    names = list(available)
    shown = ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
    close = difflib.get_close_matches(wanted.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
    hint = next((f" Did you mean {name!r}?" for name in names if close and name.lower() == close[0]), "")
    return f"it has: {shown or 'nothing'}.{hint}"
