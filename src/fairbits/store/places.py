"""Where a run lies: a folder of this machine, or an address such as ``s3://bucket/run``.

An address becomes a path of universal-pathlib, which has the methods of ``pathlib.Path`` over any fsspec file system:
whoever is handed a place uses it as a ``Path``, and asks ``is_local`` only where files of this machine can do more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from fairbits.errors import FairbitsError, MissingDependencyError, OptionError

MARK = "://"


def place_of(text: str | Path) -> Path:
    """The place that somebody wrote."""
    if not isinstance(text, str):
        return text
    if MARK not in text:
        return Path(text)
    if text.startswith("file://"):
        return Path(text.removeprefix("file://"))
    try:
        from upath import UPath
    except ImportError:
        raise MissingDependencyError("universal-pathlib", "remote", f"a run at {text!r}") from None
    try:
        place: Any = UPath(text)
        place.fs.invalidate_cache()  # what others wrote since this process last looked
    except ImportError as error:
        raise OptionError(f"{text!r} needs a package that is not installed ({error}).") from None
    except ValueError:
        place = None
    if place is None or is_local(place):
        raise OptionError(f"{text!r} is no address of a file system that fsspec knows; write e.g. s3://bucket/run.")
    return cast(Path, place)


def is_local(place: Path) -> bool:
    """Whether it is a folder or file of this machine."""
    return isinstance(place, Path)


@contextmanager
def reaching(place: Path) -> Iterator[None]:
    """Say in one sentence why a store elsewhere cannot be used: each kind has errors of its own."""
    try:
        yield
    except FairbitsError:
        raise
    except Exception as error:
        if is_local(place):
            raise
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise OptionError(f"cannot use {str(place)!r}: {reason}; check the address and who may use it.") from error
