"""Models outside of the compiled kernels may be slow: how many people fit into the time, and work in steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields

import numpy as np

from fairbits.audit.clock import StageClock
from fairbits.debug import Tried, TryOut, try_here
from fairbits.domain import Codes
from fairbits.measure import Evaluator, Measure
from fairbits.models import Do, Network
from fairbits.subject import Subject

#: Values that neurons are held at between two looks at the clock.
STEP = 64


def rows_in_time(evaluator: Evaluator, subject: Subject, seconds: float, clock: StageClock) -> int | None:
    """How many rows a slow model can be asked about in the time of measuring.

    Parameters
    ----------
    evaluator
        What asks the model.
    subject
        The model and its people.
    seconds
        After the beginning of the audit, measuring has to end.
    clock
        Of the audit.

    Returns
    -------
    int or None
        The number; None: all of them.
    """
    table = subject.table
    if isinstance(subject.model, Network):
        return None  # millions of scores a second: a stopwatch on a busy machine is no reason to leave anybody out
    evaluator.evaluate(table.codes[:1])  # compiles, connects
    few = table.codes[:8]
    begin = time.perf_counter()
    evaluator.evaluate(few)
    each = (time.perf_counter() - begin) / max(1, len(few))
    rows = int(seconds / max(each, 1e-9))
    if rows >= len(table):
        return None
    # A small batch says too little about a large one: ask about more, unless that alone would take too long.
    more = table.codes[: max(8, min(rows // 4, 512))]
    begin = time.perf_counter()
    evaluator.evaluate(more)
    each = (time.perf_counter() - begin) / len(more)
    rows = int((seconds - clock.now) / max(each, 1e-9))
    return None if rows >= len(table) else max(1, rows)


def in_steps(progress: Callable[[str], None]) -> TryOut:
    """Holds neurons at values in this process, some at a time, so that a stage that takes too long can be ended.

    Parameters
    ----------
    progress
        Called before each step; what it raises ends the stage.

    Returns
    -------
    TryOut
        The function that debugging calls.
    """

    def try_out(
        evaluator: Evaluator,
        subject: Subject,
        cases: Codes,
        dos: list[Do],
        *,
        judged: bool,
        measure: Measure = "q_inf",
    ) -> Tried:
        found = []
        for start in range(0, max(len(dos), 1), STEP):
            progress(f"holding neurons: {start:,} of {len(dos):,} values tried")
            found.append(try_here(evaluator, subject, cases, dos[start : start + STEP], judged=judged, measure=measure))
        return Tried(*(np.concatenate([getattr(one, part.name) for one in found]) for part in fields(Tried)))

    return try_out
