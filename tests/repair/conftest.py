"""A network in which exactly one neuron carries the protected attribute, and a run that found it out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Network, Schema, Subject, Table, load_subject
from fairbits.search import Budget, Settings, search_subject
from fairbits.store import Run
from fairbits.subject import make_subject

from .bare import BareInterpreter

CARRIER = (0, 1)  # layer, neuron

SCHEMA = Schema(
    attributes=(
        Attribute(name="skill", kind="integer", low=0, high=9),
        Attribute(name="sex", kind="category", labels=("a", "b", "c"), protected=True),
        Attribute(name="shoe", kind="integer", low=0, high=40),
    ),
    target="hired",
    classes=("no", "yes"),
)

TOML = """
name = "wired"
[model]
path = "model{ending}"
[table]
path = "table.csv"
target = "hired"
favourable = "yes"
classes = ["no", "yes"]
[attributes.skill]
kind = "integer"
low = 0
high = 9
[attributes.sex]
kind = "category"
labels = ["a", "b", "c"]
protected = true
[attributes.shoe]
kind = "integer"
low = 0
high = 40
"""


def wired(activation: str = "relu") -> Network:
    """The logit is skill − 4.5 + 0.3·(sex − 1): skill decides, and only neuron 0:1 knows the sex."""
    first = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    second = [[0.0, 1.0], [0.0, 0.3], [0.0, 0.0]]
    return Network.build([first, second], [[0.0, 0.0, 0.0], [0.0, -4.8]], activation=activation, head="softmax")


def people(rows: int = 400) -> Table:
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, high + 1, rows) for high in (9, 2, 40)]).astype(np.float64)
    return Table(codes, (codes[:, 0] >= 5).astype(np.float64))


def write_subject(folder: Path, *, ending: str = ".npz") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    wired().save(folder / f"model{ending}")
    table = people()
    lines = ["skill,sex,shoe,hired"]
    for (skill, sex, shoe), label in zip(table.codes.astype(int), table.labels, strict=True):
        lines.append(f"{skill},{'abc'[sex]},{shoe},{'yes' if label else 'no'}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    path = folder / "subject.toml"
    path.write_text(TOML.format(ending=ending))
    return path


def searched(
    subject: Subject, folder: Path, *, evaluations: int = 2_000, strategy: str = "random", epsilon: float | None = None
) -> Run:
    settings = Settings(budget=Budget(evaluations=evaluations), strategy=strategy, epsilon=epsilon, threads=1)
    return search_subject(subject, settings, folder)


@pytest.fixture
def subject() -> Subject:
    return make_subject("wired", wired(), SCHEMA, people())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return searched(load_subject(write_subject(tmp_path / "subject")), tmp_path / "run")


@pytest.fixture(scope="session")
def bare() -> Iterator[BareInterpreter]:
    interpreter = BareInterpreter()
    yield interpreter
    interpreter.close()
