"""What all tests share: where the development data lies, if it does, and small random networks."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Network, Schema
from fairbits.models import Activation

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20230514)


@pytest.fixture(scope="session")
def shared() -> Path:
    if not (SHARED / "reference").is_dir():
        pytest.skip("the development data (../shared) is not on this machine")
    return SHARED


@pytest.fixture
def people_schema() -> Schema:
    """Two protected attributes (m = 6), one of each kind besides."""
    return Schema(
        attributes=(
            Attribute(name="age", kind="integer", low=1, high=3, labels=("young", "middle", "old"), protected=True),
            Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm", "Care")),
            Attribute(name="income", kind="real", low=-1.5, high=4.0),
            Attribute(name="sex", kind="category", labels=("Female", "Male"), protected=True),
            Attribute(name="hours", kind="integer", low=0, high=99),
        ),
        target="hired",
        classes=("no", "yes"),
    )


def random_network(
    rng: np.random.Generator,
    widths: list[int],
    *,
    activation: str = "relu",
    head: str | None = None,
    favourable: int | None = None,
) -> Network:
    weights = [rng.normal(0, 1.5 / np.sqrt(a), (a, b)) for a, b in itertools.pairwise(widths)]
    biases = [rng.normal(0, 0.3, b) for b in widths[1:]]
    return Network.build(weights, biases, activation=Activation(activation, 0.3), head=head, favourable=favourable)  # type: ignore[arg-type]


def random_people(rng: np.random.Generator, schema: Schema, n: int) -> np.ndarray:
    """Uniform over the domain."""
    columns = [
        rng.uniform(a.low, a.upper, n) if a.kind == "real" else rng.integers(int(a.low), int(a.upper) + 1, n)
        for a in schema.attributes
    ]
    return np.column_stack(columns).astype(np.float64)
