"""A subject with a planted gap: a logistic score of income, and so much more for old men than for young women."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairbits import Network

SUBJECT = """
name = "planted"
[model]
path = "model.npz"
[table]
path = "table.csv"
target = "paid"
favourable = 1
[attributes.sex]
kind = "category"
labels = ["Female", "Male"]
protected = true
[attributes.age]
kind = "integer"
low = 1
high = 4
protected = true
[attributes.income]
kind = "integer"
low = 0
high = 999
[attributes.region]
kind = "category"
labels = ["North", "South"]
"""


def network(gap: float, *, region: float = 0.0, shift: float = 0.0) -> Network:
    """P(paid) = logistic((income − 500 + gap · (sex / 2 + (age − 1) / 6) + region · region + shift) / 100)."""
    weights = np.zeros((4, 2))
    weights[:, 1] = np.array([gap / 2, gap / 6, 1.0, region]) / 100
    return Network.build([weights], [np.array([0.0, (shift - 500 - gap / 6) / 100])])


def write_table(folder: Path, rows: int, *, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    income, sex, region = rng.integers(0, 1000, rows), rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    age = rng.integers(1, 5, rows)
    paid = rng.random(rows) < 1 / (1 + np.exp(-(income - 500) / 100))
    lines = ["sex,age,income,region,paid"]
    for s, a, i, r, p in zip(sex, age, income, region, paid, strict=True):
        lines.append(f"{('Female', 'Male')[s]},{a},{i},{('North', 'South')[r]},{int(p)}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")


def write_subject(folder: Path, gap: float, *, rows: int = 2000, **more: float) -> Path:
    """Model, table and description; the same people whatever the model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "subject.toml").write_text(SUBJECT)
    if not (folder / "table.csv").exists():
        write_table(folder, rows)
    network(gap, **more).save(folder / "model.npz")
    return folder / "subject.toml"
