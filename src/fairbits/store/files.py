"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.errors import OptionError
from fairbits.store.location import is_local

#: A name that ends so is half-written: whoever finds one may delete it.
TEMPORARY = ".tmp"
#: The largest JSON files of runs, those of hundreds of repairs, have a few megabytes.
MAX_JSON = 256 << 20


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that a reader, or a crash at any moment, sees the old one or the new one.

    Parameters
    ----------
    path
        The file.
    content
        Bytes of the file.
    """
    if not is_local(path):
        path.write_bytes(bytes(content))  # stores of objects show an object once it is whole
        return
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make sure that new names in a folder survive a power cut.

    Parameters
    ----------
    folder
        A folder of this machine.
    """
    if os.name == "nt":  # Windows cannot open a folder, and needs no such thing
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document so that it is there whole or not at all.

    Parameters
    ----------
    path
        The file.
    document
        Content; arrays become lists, numbers that are not finite become null.
    """
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(path, (text + "\n").encode("utf-8", errors="replace"))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON document.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict[str, Any]
        Its content.

    Raises
    ------
    OptionError
        If the file cannot be read, or holds no JSON object.
    """
    try:
        if path.stat().st_size > MAX_JSON:
            raise OptionError(f"{str(path)!r} has more than {MAX_JSON >> 20} MB; no file of a run is that large.")
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read {str(path)!r}: {error.strerror or error}.") from None
    except RecursionError:
        raise OptionError(f"{str(path)!r} is damaged (it is nested too deeply); restore it from a copy.") from None
    except ValueError as error:
        raise OptionError(f"{str(path)!r} is damaged ({error}); restore it from a copy.") from None
    if not isinstance(document, dict):
        raise OptionError(f"{str(path)!r} is damaged (it holds no JSON object); restore it from a copy.")
    return document


def plain(value: Any) -> Any:
    """A value in types that JSON knows; numbers that are not finite become null.

    Parameters
    ----------
    value
        Mappings, sequences, arrays, NumPy numbers, paths.

    Returns
    -------
    Any
        Dictionaries, lists, texts, numbers, None.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [plain(item) for item in items]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
