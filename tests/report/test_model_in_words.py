"""What the report says about a model is what the model offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairbits import Audit, Budget, Table
from fairbits.report import compute_report
from tests.report.drawn import render_markdown, render_words

from ..conftest import random_people
from ..models.modules import residual
from ..models.zoo import SCHEMA


def words_of(audit: Audit, folder: Path) -> str:
    run = audit.search(budget=Budget(evaluations=100), strategy="random", out=folder, threads=1)
    data = compute_report(run, subject=audit.subject, threads=1)
    assert data.about.model in render_words(data)
    assert data.about.model in render_markdown(data)
    return data.about.model


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"layers": ("act", "act2")},
            "scores, gradients and the outputs of 2 hidden layers (9 – 9), whose neurons can be held",
        ),
        ({"layers": ("act",)}, "scores, gradients and the outputs of 1 hidden layer (9), whose neurons can be held"),
        ({"layers": ()}, "scores and gradients"),
    ],
)
def test_a_module_that_is_no_chain(options: dict[str, Any], words: str, rng, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the torch extra is not installed")
    module = residual()
    module.last = torch.nn.Linear(9, 2)
    audit = Audit(module, Table(random_people(rng, SCHEMA, 40)), SCHEMA, **options)
    assert words_of(audit, tmp_path / "run") == f"a model that gives {words} (TorchModel)"


def test_a_black_box(rng, tmp_path: Path) -> None:
    audit = Audit(lambda frame: 0.3 + 0.4 * (frame["sex"] == "Male"), Table(random_people(rng, SCHEMA, 40)), SCHEMA)
    assert words_of(audit, tmp_path / "run") == "a model that gives scores only (BlackBox)"
