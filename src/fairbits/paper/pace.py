"""How the ID cases of a run came over its time."""

from __future__ import annotations

import numpy as np

from fairbits.store import Run

#: Equal steps that the time of a run is cut into.
STEPS = 40


def pace(run: Run, seconds: float) -> list[int]:
    """ID cases found so far, at the end of each of some equal steps of time."""
    step = f"least(floor(seconds / {max(seconds, 1e-9)!r} * {STEPS}), {STEPS - 1})::INTEGER"
    rows = run.query(f"SELECT {step} AS step, count(*) AS ids FROM cases WHERE flips GROUP BY 1").to_pylist()  # noqa: S608
    found = np.zeros(STEPS, dtype=np.int64)
    for row in rows:
        found[row["step"]] = row["ids"]
    return found.cumsum().tolist()
