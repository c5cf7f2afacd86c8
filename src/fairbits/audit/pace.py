"""Models outside of the compiled kernels may be slow: how many people fit into the time, and work in steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from math import inf

import numpy as np

from fairbits.audit.clock import LateError, StageClock
from fairbits.debug import Tried, TryOut, try_here
from fairbits.domain import Codes
from fairbits.measure import Evaluator, Measure
from fairbits.models import Do, Network
from fairbits.subject import Subject

#: Values that neurons are held at between two looks at the clock.
STEP = 64
#: Repair is not begun after this share of the whole: it could not be ended in time.
REPAIR_BEGIN = 0.6
#: Repair asks a slow model about as often as measuring the table so many times does: not begun where less time is left.
REPAIR_MEASURES = 10


def rows_in_time(evaluator: Evaluator, subject: Subject, seconds: float, clock: StageClock) -> int | None:
    """How many rows a slow model can be asked about in the time of measuring."""
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


def check_time(stage: str, clock: StageClock, measured: float) -> None:
    """Refuse to begin a stage that could not be ended in time."""
    shares = clock.shares
    limit = shares.debug_by if stage == "debug" else shares.repair_by
    clock.until(stage, limit)("not begun")
    left = limit - clock.now
    late = clock.now > REPAIR_BEGIN * shares.seconds or left < REPAIR_MEASURES * measured
    if stage == "repair" and limit < inf and late:
        raise LateError(
            f"it was not begun, because {left:.1f} s of {shares.seconds:g} s were left; do it with: "
            f"fairbits repair {clock.folder}"
        )


def in_steps(progress: Callable[[str], None]) -> TryOut:
    """Holds neurons at values in this process, some at a time, so that a stage that takes too long can be ended."""

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
