from __future__ import annotations

from pathlib import Path

import pytest

from .planted import write_subject


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a subject whose decision flips for about 5 % of 2,000 people, and which is the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    write_subject(tmp_path, gap=50)
    return tmp_path
