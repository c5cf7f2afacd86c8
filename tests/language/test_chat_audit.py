"""A whole audit of a language model: measured, its words studied, its page replayed; nothing searched by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fairbits import Audit
from tests.language.conftest import FakeModel, wary_of_women


def test_a_page_can_be_made_again_without_the_endpoint(
    fake: Callable[..., FakeModel], audit_file: Callable[..., Path], tmp_path: Path
) -> None:
    model = fake(wary_of_women)
    file = audit_file(model.url)
    first = Audit.of(file).audit(out=tmp_path / "first", budget=1.0, skip="proxies")
    asked = len(model.asked)
    model.stop()
    second = Audit.of(file, max_requests=0).audit(out=tmp_path / "second", budget=1.0, skip="proxies")
    assert len(model.asked) == asked
    assert first.data.words is not None
    assert second.data.words is not None
    assert second.data.words.families == first.data.words.families
    assert second.data.measured.figures == first.data.measured.figures
    assert asked < 200  # a search would have asked for thousands
    assert "take 80 % of the probability" in (tmp_path / "second" / "report.md").read_text()
