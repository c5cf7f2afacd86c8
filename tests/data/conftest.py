from __future__ import annotations

from pathlib import Path

import pytest

from fairbits.data import sources


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder that is not the user's."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(sources, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenML cannot be reached."""
    from urllib.error import URLError

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise URLError("no way out")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refuse)
