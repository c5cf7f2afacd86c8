"""The command that does again what was done: where a subject came from, and options as they are typed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairbits.domain import GrantOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectOrigin:
    """Where the subject of an audit came from."""

    name: str | None = None
    protected: tuple[str, ...] | None = None
    grants: GrantOptions = field(default_factory=GrantOptions)


def command_of(command: str, places: tuple[str | None, ...], options: Mapping[str, Any], grants: GrantOptions) -> str:
    """A command line, as one would type it.

    Examples
    --------
    >>> command_of("compare", ("my loan.toml",), {"strategies": ["climb", "adf"], "epsilon": None}, {"trust": True})
    "fairbits compare 'my loan.toml' --strategies climb,adf --trust"
    """
    if any(place is None for place in places):
        return ""
    words = ["fairbits", command, *(str(place) for place in places)]
    for name, value in {**options, **grants}.items():
        words += _words("--" + name.replace("_", "-"), value)
    return shlex.join(words)


def _words(option: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [option]
    return [option, ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]


def duration(seconds: float) -> str:
    """A time as options take it.

    Examples
    --------
    >>> duration(15.0), duration(0.25)
    ('15s', '0.25s')
    """
    return f"{int(seconds) if seconds == int(seconds) else seconds}s"
