"""Runs of small subjects whose networks are wired by hand: where the protected attribute goes is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Network, Schema, Table
from fairbits.data import load_subject
from fairbits.search import Budget, Settings, search_subject
from fairbits.store import Run
from fairbits.subject import Subject, make_subject
from fairbits.subject.export import export_subject

#: sex (protected, 0 or 1), skill and luck (0 to 9), in this order.
SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", kind="integer", low=0, high=1, protected=True),
        Attribute(name="skill", kind="integer", low=0, high=9),
        Attribute(name="luck", kind="integer", low=0, high=9),
    ),
    target="hired",
    classes=("no", "yes"),
)


def wired(first: list[list[float]], second: list[float], *, bias: list[float], shift: float) -> Network:
    """One hidden layer: rows of `first` are sex, skill and luck; a sigmoid on the sum."""
    return Network.build(
        [np.array(first), np.array(second)[:, None]], [np.array(bias), np.array([shift])], head="sigmoid"
    )


def table_of(rng: np.random.Generator, network: Network, *, rows: int = 4000, labels: str | None = "lot") -> Table:
    """People with labels by lot, which every network gets about half right; or the network's own, or none.

    A few more get a yes than a no, so that no network does better than the majority: accuracy then keeps nothing out.
    """
    codes = np.column_stack([rng.integers(0, 2, rows), rng.integers(0, 10, (rows, 2))]).astype(np.float64)
    known = {"lot": rng.permutation(np.arange(rows) < 0.53 * rows), "own": network.labels(codes), None: None}[labels]
    return Table(codes, None if known is None else known.astype(np.float64))


Maker = Callable[..., Run]


@pytest.fixture
def make_run(tmp_path: Path, rng: np.random.Generator) -> Maker:
    """A run on disk, and its subject beside it."""

    def make(network: Network, *, evaluations: int = 60, **table: object) -> Run:
        people = table_of(rng, network, **table)  # type: ignore[arg-type]
        schema = replace(SCHEMA, target=None) if people.labels is None else SCHEMA
        subject: Subject = make_subject("wired", network, schema, people)
        export_subject(subject, tmp_path / "subject")
        loaded = load_subject(tmp_path / "subject" / "subject.toml")
        settings = Settings(budget=Budget(evaluations=evaluations), strategy="random", threads=1)
        return search_subject(loaded, settings, tmp_path / "run")

    return make


@pytest.fixture
def carrier() -> Network:
    """Neuron 1 alone knows the sex; held at any value, twins are the same."""
    return wired([[0, 1, 0], [1, 0, 0], [0, 0, 1]], [0.41, 1.03, 0.23], bias=[0, 0, 0], shift=-3.07)
