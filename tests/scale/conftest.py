"""What everybody else's cases are compared with."""

from __future__ import annotations

import pytest

from fairbits.scale import ExecutorOptions
from fairbits.store import Run

from .work import planted_search


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Found by one process; only read."""
    return planted_search(tmp_path_factory.mktemp("alone") / "run", ExecutorOptions(workers=1))
