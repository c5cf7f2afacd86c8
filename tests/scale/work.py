"""A search that is small enough to be done many times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from fairbits.scale import ExecutorOptions
from fairbits.scale.run import search
from fairbits.search import Budget, Settings
from fairbits.store import Run
from tests.search.planted import planted_subject

SHARDS, EVALUATIONS = 8, 16_000


def planted_search(folder: Path | str, executor_options: ExecutorOptions | None = None, **more: Any) -> Run:
    """Eight shards of the planted subject."""
    chosen = {"budget": Budget(evaluations=EVALUATIONS), "strategy": "climb", "options": {"seeds": 25}}
    settings = Settings(**{name: more.pop(name, value) for name, value in chosen.items()})
    return search(planted_subject(), settings, folder, executor_options=executor_options, **{"shards": SHARDS, **more})


def cases_of(run: Run) -> pa.Table:
    """Everything that is known about the cases but the time of day, in a fixed order."""
    return run.query("SELECT * EXCLUDE (seconds) FROM cases ORDER BY evaluation")
