"""What keeps a stranger's file from filling memory or taking the process along.

Archives and arrays are held against limits before anything is unpacked. A model that runs in a library of its own is
loaded and called in a child process, whose time and memory are limited, before it is in this one.
"""

from __future__ import annotations

import copy
import hashlib
import math
import os
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import sandbox
from fairbits.domain import Schema
from fairbits.errors import FairbitsError, ModelError, foreign
from fairbits.models.options import ModelOptions

#: Entries of an archive; a forest of a thousand trees has some ten thousand.
_MAX_ENTRIES = 100_000
#: Bytes of a description (JSON) inside an archive: it becomes Python objects of many times its size.
MAX_DESCRIPTION = 32 << 20
#: Bytes that one number takes while a model is read, whatever its type in the file.
_NUMBER = 8
_LAST_POINT = 0x10FFFF
#: What reads the header of an array, by the version of its format.
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
#: Bytes unpacked at a time.
_PIECE = 1 << 20


def checked_file(path: str | Path, max_model_bytes: int, *, what: str = "model") -> Path:
    """A file that is there, not empty, and not too large."""
    file = Path(path)
    if not os.path.exists(file):
        raise ModelError(f"the {what} {str(file)!r} does not exist; check the path.")
    if file.is_dir():
        raise ModelError(f"the {what} {str(file)!r} is a folder; name the file in it.")
    size = file.stat().st_size
    if size == 0:
        raise ModelError(f"the {what} {str(file)!r} is empty; export it again.")
    if size > max_model_bytes:
        raise too_large(file, f"{size:,} bytes", max_model_bytes)
    return file


def is_archive(path: Path) -> bool:
    """Whether a file is a zip archive, sound or not."""
    try:
        return zipfile.is_zipfile(path)
    except zipfile.BadZipFile:
        return True


def check_archive(path: Path, max_model_bytes: int) -> list[zipfile.ZipInfo]:
    """The entries of a zip archive, once what they declare is within the limit."""
    with foreign(f"the model {str(path)!r} is not a readable {path.suffix} file"), zipfile.ZipFile(path) as file:
        entries = file.infolist()
    if len(entries) > _MAX_ENTRIES:
        raise ModelError(f"the model {str(path)!r} has {len(entries):,} entries; at most {_MAX_ENTRIES:,} can be read.")
    total = sum(entry.file_size for entry in entries)
    if total > max_model_bytes:
        raise too_large(path, f"{total:,} bytes when unpacked", max_model_bytes)
    if sum(entry.compress_size for entry in entries) > path.stat().st_size:
        raise ModelError(f"the model {str(path)!r} has entries that overlap, which no program writes; export it again.")
    if len({entry.filename for entry in entries}) < len(entries):
        raise ModelError(f"the model {str(path)!r} has two entries of one name; export it again.")
    for entry in entries:
        if entry.filename.endswith(".json") and entry.file_size > MAX_DESCRIPTION:
            raise too_large(path, f"a description of {entry.file_size:,} bytes", MAX_DESCRIPTION)
    if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in entries):
        raise ModelError(
            f"the model {str(path)!r} is packed in a way that cannot be unpacked piece by piece; save it again, "
            f"with deflate or none."
        )
    with foreign(f"the model {str(path)!r} is not a readable {path.suffix} file"), zipfile.ZipFile(path) as file:
        for entry in entries:  # one that is larger than it declares is unpacked whole by its reader, and cut then
            longer = copy.copy(entry)
            longer.file_size += 1
            with file.open(longer) as stream:
                unpacked = sum(map(len, iter(partial(stream.read, _PIECE), b"")))
            if unpacked > entry.file_size:
                raise ModelError(
                    f"the model {str(path)!r} has an entry, {entry.filename[:80]!r}, larger than it declares; export "
                    f"it again."
                )
    return entries


def check_arrays(path: Path, entries: Iterable[zipfile.ZipInfo], max_model_bytes: int) -> dict[str, np.dtype[Any]]:
    """The types of the NumPy arrays in an archive, once their declared shapes are within the limit."""
    kinds: dict[str, np.dtype[Any]] = {}
    total, what = 0, f"the model {str(path)!r} is not a readable {path.suffix} file"
    with foreign(what), zipfile.ZipFile(path) as file:
        for entry in entries:
            if not entry.filename.endswith(".npy"):
                continue
            fault, name = "", entry.filename
            with file.open(entry) as stream:
                shape, _, kind = _HEADERS[np.lib.format.read_magic(stream)](stream)
                count = math.prod(shape)
                if kind.hasobject:
                    fault = "holds Python objects"
                elif count * kind.itemsize > entry.file_size or any(size < 0 for size in shape):
                    fault = f"declares {shape}, more than it holds"
                elif kind.kind == "U":  # texts are read as they stand, and break whatever touches them
                    units = np.dtype(np.uint32).newbyteorder(kind.byteorder)
                    points = np.frombuffer(stream.read(count * kind.itemsize), dtype=units)
                    if ((points > _LAST_POINT) | ((points >= 0xD800) & (points <= 0xDFFF))).any():
                        fault = "holds text with numbers that are no characters"
            if fault:
                raise ModelError(f"{what}: its array {name!r} {fault}; save it again.")
            total += count * max(_NUMBER if kind.kind in "fiub" else 1, kind.itemsize)
            kinds[name.removesuffix(".npy")] = kind
    if total > max_model_bytes:
        raise too_large(path, f"arrays of {total:,} bytes", max_model_bytes)
    return kinds


def too_large(what: Path | str, size: str, limit: int) -> ModelError:
    return ModelError(
        f"the model {str(what)!r} has {size}, and {limit:,} bytes are allowed; raise --max-model-bytes if it is yours."
    )


#: Rows of the second call, from which the memory of larger batches is foreseen.
_ROWS = 1024
#: A model whose batch takes less than this grows in no way that matters.
_LITTLE = 4 << 20
#: What the child runs of ours: imported once by the process that children are forks of, not by every child.
_OURS = ("fairbits.models.guards", "fairbits.models.outputs", "fairbits.models.registry")
#: What was tried out already in this process, and the batch that came of it.
_known: dict[str, int | None] = {}


def options_after_trial(
    source: Path,
    about: Schema | Path | None,
    options: ModelOptions,
    *,
    needs: tuple[str, ...],
    job: str = "fairbits.models.guards:first_call",
) -> ModelOptions:
    """Try a model out in a child process; gives the options with a batch that fits the memory.

    ``about`` says what goes into it: a schema, or the file of a tokenizer.
    """
    if sandbox.inside():
        return options
    key = _key(source, about, options)
    if key not in _known:
        memory, needs = 2 * options.max_model_bytes, (*_OURS, *needs)
        outcome = sandbox.try_out(
            job, (source, about, options), seconds=options.max_seconds, memory=memory, needs=needs
        )
        if outcome.error is not None:
            raise outcome.error
        large = outcome.known.get("called") and (outcome.known.get("memory") or outcome.known.get("time"))
        if outcome.fault and not large:
            raise ModelError(_sentence(source, outcome))
        # Here the model has answered once; what a large batch takes only decides how large batches are.
        _known[key] = 16 if outcome.fault else _batch(int(outcome.known.get("grown", 0)), memory)
    batch = _known[key]
    return options if batch is None or batch >= options.batch else replace(options, batch=batch)


def first_call(given: Any, notify: sandbox.Notify) -> None:
    """In the child process: load the model, ask it about two people, then about a thousand."""
    from fairbits.models.inputs import random_people
    from fairbits.models.outputs import fit_to_schema
    from fairbits.models.registry import read_model

    source, schema, options = given
    loaded = read_model(source, schema, options)
    notify(loaded=True)
    model, rows = loaded.model, None
    if schema is not None:
        with suppress(FairbitsError):  # said again, and better, where the subject is put together
            fitted = fit_to_schema(loaded, schema, options=options)
            model, rows = fitted.model, fitted.encoding.encode(random_people(schema, _ROWS))
    if rows is None:
        rows = np.random.default_rng(0).random((_ROWS, model.inputs))
    _call(model, rows[:2])
    notify(called=True)
    before = _peak()
    _call(model, rows)
    notify(grown=_peak() - before)


def _call(model: Any, rows: Any) -> None:
    try:
        model.scores(rows)
    except FairbitsError as error:  # random people may be none that the model takes: the table decides
        if sandbox.out_of_memory(str(error)):
            raise MemoryError from None


def _peak() -> int:
    try:
        import resource
    except ImportError:  # no such count on this system
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _batch(grown: int, memory: int) -> int | None:
    """The largest power of two whose memory fits even if it grows with the square of the rows."""
    return None if grown <= _LITTLE else 1 << int(np.log2(max(_ROWS * (memory / 2 / grown) ** 0.5, 1.0)))


def _key(source: Path, about: Schema | Path | None, options: ModelOptions) -> str:
    people = [getattr(about, entry.name) for entry in fields(about)] if isinstance(about, Schema) else about
    files = [(file, file.resolve(), file.stat()) for file in (source, about) if isinstance(file, Path)]
    seen = (people, options, [(*names, now.st_mtime_ns, now.st_size, now.st_ino) for *names, now in files])
    return hashlib.sha256(repr(seen).encode("utf-8", "replace")).hexdigest()


def _sentence(source: Path, outcome: sandbox.ChildOutcome) -> str:
    remedies = {"time": "raise --max-seconds if it is only slow", "memory": "raise --max-model-bytes if it is yours"}
    harm = "it is damaged or made to do harm: save it again, or leave it"
    remedy = next((remedy for limit, remedy in remedies.items() if outcome.known.get(limit)), harm)
    when = "when it is first called" if outcome.known.get("loaded") else "when it is loaded"
    return f"the model {source.name!r} {outcome.fault} {when}; {remedy}."
