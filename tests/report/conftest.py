"""Small audited runs: an ordinary subject with every stage, and one whose names and labels are hostile."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fairbits import Attribute, Audit, Budget, Schema, Subject, Table
from fairbits.debug import debug_run
from fairbits.repair import repair_run
from fairbits.store import Run
from fairbits.subject import make_subject

from ..conftest import random_network, random_people

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    '=HYPERLINK("http://evil.example")',
    "right\u202eto left\u2066",
    "emoji 👩🏽‍🚒 and $x_1$ maths",
    "[a](http://evil.example) | `b` *c*",
    "{{ 7*7 }}{% raw %}",
    "z" * 10_000,
)


def unlinked(page: str) -> str:
    """A page without its links to the glossary, so that sentences are whole."""
    return re.sub(r'<a class="term" [^>]*>(.*?)</a>', r"\1", page)


def build_subject(schema: Schema, name: str, *, rows: int = 400, seed: int = 3) -> Subject:
    rng = np.random.default_rng(seed)
    network = random_network(rng, [len(schema), 12, 8, 2])
    codes = random_people(rng, schema, rows)
    subject = make_subject(name, network, schema, Table(codes))
    scores = network.scores(subject.encoding.encode(codes))
    labels = (scores + rng.normal(0, 0.1, rows) > np.median(scores)).astype(float)
    return make_subject(name, network, schema, Table(codes, labels))


def search(subject: Subject, folder: Path, *, evaluations: int = 3000) -> Run:
    return Audit.of(subject).search(budget=Budget(evaluations=evaluations), out=folder, threads=1)


def with_stages(subject: Subject, run: Run) -> Run:
    debug_run(run, subject=subject, samples=60, threads=1)
    repair_run(run, subject=subject, retrain=False, threads=1, max_accuracy_loss=0.5)
    return run


def ordinary_schema(**changes: object) -> Schema:
    return Schema(
        attributes=(
            Attribute(name="age", kind="integer", low=1, high=3, labels=("young", "middle", "old"), protected=True),
            Attribute(name="job", kind="category", labels=("Sales", "Tech", "Farm", "Care")),
            Attribute(name="sex", kind="category", labels=("Female", "Male"), protected=True),
            Attribute(name="hours", kind="integer", low=0, high=9),
        ),
        target="hired",
        classes=("no", "yes"),
    )


def hostile_schema() -> Schema:
    return Schema(
        attributes=(
            Attribute(name=HOSTILE[0] + " sex", kind="category", labels=(HOSTILE[0], HOSTILE[1]), protected=True),
            Attribute(
                name=HOSTILE[3] + " race", kind="category", labels=(HOSTILE[2], HOSTILE[7], HOSTILE[4]), protected=True
            ),
            Attribute(name=HOSTILE[5], kind="category", labels=HOSTILE),
            Attribute(name=HOSTILE[7][:300], kind="integer", low=0, high=9),
        ),
        target=HOSTILE[6],
        classes=(HOSTILE[0], HOSTILE[2]),
    )


@pytest.fixture(scope="session")
def subject() -> Subject:
    return build_subject(ordinary_schema(), "small")


@pytest.fixture(scope="session")
def searched(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with nothing but a search."""
    return search(subject, tmp_path_factory.mktemp("runs") / "searched")


@pytest.fixture(scope="session")
def audited(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with every stage."""
    return with_stages(subject, search(subject, tmp_path_factory.mktemp("runs") / "audited"))


@pytest.fixture(scope="session")
def hostile_subject() -> Subject:
    return build_subject(hostile_schema(), HOSTILE[0])


@pytest.fixture(scope="session")
def hostile(hostile_subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return with_stages(hostile_subject, search(hostile_subject, tmp_path_factory.mktemp("runs") / "hostile"))
