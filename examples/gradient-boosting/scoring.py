"""The function that fairbits asks: ``scoring:approval`` gets people as a data frame and gives one score each."""

from functools import cache

import lightgbm
import pandas as pd

CATEGORIES = {
    "sex": ["female", "male"],
    "nationality": ["domestic", "european", "other"],
    "education": ["primary", "secondary", "bachelor", "master"],
}


def prepared(people: pd.DataFrame) -> pd.DataFrame:
    """Text columns as categories, always the same ones."""
    return people.astype({name: pd.CategoricalDtype(values) for name, values in CATEGORIES.items()})


@cache
def booster() -> lightgbm.Booster:
    """The trees, read once."""
    return lightgbm.Booster(model_file="model.txt")


def approval(people: pd.DataFrame) -> pd.Series:
    """The probability that each of these people gets the loan."""
    return booster().predict(prepared(people))
