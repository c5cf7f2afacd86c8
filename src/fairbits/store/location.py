"""Where a run lies: a folder of this machine, or an address such as ``s3://bucket/run``.

An address becomes a path of universal-pathlib, which has the methods of ``pathlib.Path`` over any fsspec file system:
whoever is handed a place uses it as a ``Path``, and asks ``is_local`` only where files of this machine can do more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from fairbits.errors import FairbitsError, MissingDependencyError, OptionError

MARK = "://"
#: What a file system may refuse or understand as something else: all but letters, digits, and a few marks between.
_UNSAFE = re.compile(r"[^\w.-]+")
#: Devices of Windows, whatever follows after a point.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
#: Bytes of a name; file systems end at 255, and more words are to come.
_MAX_BYTES = 120


def folder_name(text: str) -> str:
    """A safe folder name for any text.

    Examples
    --------
    >>> folder_name("loans/2026: first try"), folder_name(".."), folder_name("con")
    ('loans-2026-first-try', 'subject', 'subject-con')
    """
    short = _UNSAFE.sub("-", text).strip("-.").encode()[:_MAX_BYTES].decode(errors="ignore").rstrip("-.")
    return f"subject-{short}" if _DEVICE.match(short) else short or "subject"


def new_folder(*words: str) -> Path:
    """A folder below ``runs`` named after what is done, and when."""
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    return Path("runs") / "-".join([*map(folder_name, words), now])


def place_of(text: str | Path) -> Path:
    """The place that a text names: a path of this machine, or a path-like object for an address."""
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
    """Whether a place is on this machine."""
    return isinstance(place, Path)


@contextmanager
def reaching(place: Path) -> Iterator[None]:
    """Turn errors of a remote store into one sentence: each kind of store has errors of its own."""
    try:
        yield
    except FairbitsError:
        raise
    except Exception as error:  # libraries of cloud stores have exceptions of their own, without a common base
        if is_local(place):
            raise
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise OptionError(f"cannot use {str(place)!r}: {reason}; check the address and who may use it.") from error
