"""The table of the examples: 600 invented applicants for a loan, and what a clerk with habits decided about them.

Nobody in it is real. The clerk looks at income, debts and experience, and also, a little, at age, sex and nationality:
so a model that learns from these decisions has something to pick up. ``python make_people.py`` writes people.csv.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

COLUMNS = ("age", "sex", "nationality", "education", "years_employed", "income", "loan", "approved")
EDUCATION = ("primary", "secondary", "bachelor", "master")


def people(n: int = 600, seed: int = 7) -> list[tuple[object, ...]]:
    """Rows in the order of the columns."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(6.0, 4.5, n) + 16, 18, 75).astype(int)
    sex = rng.choice(["female", "male"], n)
    nationality = rng.choice(["domestic", "european", "other"], n, p=[0.7, 0.18, 0.12])
    education = rng.choice(len(EDUCATION), n, p=[0.15, 0.45, 0.27, 0.13])
    years = np.minimum(rng.poisson(np.maximum(age - 20, 0) * 0.6), age - 16)
    income = np.round(rng.lognormal(3.2 + 0.14 * education + 0.012 * years, 0.35), 1)
    loan = np.round(rng.lognormal(2.6, 0.6, n)).astype(int) + 1
    merit = 0.09 * (income - 30) + 0.05 * years - 0.06 * loan + 0.2 * education
    habit = 0.7 * (sex == "male") - 0.9 * (nationality == "other") - 0.02 * np.abs(age - 40)
    approved = np.where(merit + habit + rng.logistic(0, 0.6, n) > 0, "yes", "no")
    columns = (age, sex, nationality, np.array(EDUCATION)[education], years, income, loan, approved)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def main() -> None:
    """Write the table beside this file."""
    with (Path(__file__).parent / "people.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(people())


if __name__ == "__main__":
    main()
