"""A planted table in which group and label hang together, and models that have learned it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairbits import Attribute, Audit, Network, Schema, Table
from fairbits.search import Budget, Settings, search_subject
from fairbits.store import Run
from fairbits.subject import Subject, make_subject

SCHEMA = Schema(
    attributes=(
        Attribute(name="skill", kind="integer", low=0, high=9),
        Attribute(name="sex", kind="category", labels=("a", "b"), protected=True),
        Attribute(name="hint", kind="category", labels=("no", "yes")),
    ),
    target="hired",
    classes=("no", "yes"),
)
ROWS = 900


def table(rows: int = ROWS) -> Table:
    """The label follows skill, and sex; the hint follows sex. A third of the rows is held out."""
    rng = np.random.default_rng(5)
    skill, sex = rng.integers(0, 10, rows), rng.integers(0, 2, rows)
    hint = np.where(rng.random(rows) < 0.8, sex, 1 - sex)
    chance = 1 / (1 + np.exp(-(0.9 * (skill - 4.5) + 1.6 * (sex - 0.5))))
    codes = np.column_stack([skill, sex, hint]).astype(np.float64)
    return Table(codes, (rng.random(rows) < chance).astype(np.float64), np.arange(rows) % 3 == 0)


def network() -> Network:
    """A logit of 0.9·(skill − 4.5) + 1.6·(sex − 0.5), through one hidden layer."""
    first = [[0.9, -0.9], [1.6, -1.6], [0.0, 0.0]]
    return Network.build([first, [[1.0], [-1.0]]], [[-4.85, 4.85], [0.0]], head="sigmoid")


def network_subject(rows: int = ROWS) -> Subject:
    return make_subject("planted", network(), SCHEMA, table(rows), original=network())


def estimator_subject(estimator: Any, rows: int = ROWS) -> Subject:
    """A fitted scikit-learn model on the codes of the training rows."""
    people = table(rows)
    known = people.training()
    estimator.fit(known.codes, np.array(SCHEMA.classes)[known.labels.astype(int)])
    return Audit(estimator, people, SCHEMA, name="planted", input_format="codes").subject


def searched(subject: Subject, folder: Path, evaluations: int = 600) -> Run:
    settings = Settings(budget=Budget(evaluations=evaluations), strategy="random", threads=1)
    return search_subject(subject, settings, folder)
