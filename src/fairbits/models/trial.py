"""A foreign model loaded and called for the first time in a child process, before it is in this one."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import sandbox
from fairbits.domain import Schema
from fairbits.errors import FairbitsError, ModelError
from fairbits.models.options import ModelOptions
from fairbits.models.probe import random_people

#: Rows of the second call, from which the memory of larger batches is foreseen.
_ROWS = 1024
#: A model whose batch takes less than this grows in no way that matters.
_SMALL = 4 << 20
#: What the child runs of ours: imported once by the process that children are forks of, not by every child.
_OURS = ("fairbits.models.trial", "fairbits.models.outputs", "fairbits.models.registry")
#: What was tried out already in this process, and the batch that came of it.
_known: dict[str, int | None] = {}


def tried(source: Path, schema: Schema | None, options: ModelOptions, *, needs: tuple[str, ...]) -> ModelOptions:
    """Try a model out in a child process; gives the options with a batch that fits the memory."""
    if sandbox.inside():
        return options
    key = _key(source, schema, options)
    if key not in _known:
        memory = 2 * options.max_model_bytes
        outcome = sandbox.try_out(
            "fairbits.models.trial:first_call",
            (source, schema, options),
            seconds=options.max_seconds,
            memory=memory,
            needs=(*_OURS, *needs),
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
    from fairbits.models.outputs import fit_to_schema
    from fairbits.models.registry import read_model

    source, schema, options = given
    loaded = read_model(source, schema, options)
    notify(loaded=True)
    model, rows = loaded.model, None
    if schema is not None:
        try:
            fitted = fit_to_schema(loaded, schema, options=options)
            model, rows = fitted.model, fitted.encoding.encode(random_people(schema, _ROWS))
        except FairbitsError:  # said again, and better, where the subject is put together
            rows = None
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
    if grown <= _SMALL:
        return None
    fits = _ROWS * (memory / 2 / grown) ** 0.5
    return 1 << max(0, int(np.log2(max(fits, 1.0))))


def _key(source: Path, schema: Schema | None, options: ModelOptions) -> str:
    people = None if schema is None else [getattr(schema, entry.name) for entry in fields(schema)]
    state = source.stat()
    seen = [str(source), people, options, source.resolve(), state.st_mtime_ns, state.st_size, state.st_ino]
    return hashlib.sha256(repr(seen).encode("utf-8", "replace")).hexdigest()


def _sentence(source: Path, outcome: sandbox.ChildOutcome) -> str:
    remedy = "leave it, or mend it"
    if outcome.known.get("time"):
        remedy = "raise --max-seconds if it is only slow"
    elif outcome.known.get("memory"):
        remedy = "raise --max-model-bytes if it is yours"
    when = "when it is first called" if outcome.known.get("loaded") else "when it is loaded"
    return f"the model {source.name!r} {outcome.fault} {when}; {remedy}."
