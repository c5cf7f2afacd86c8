"""What a fitted predictor says about itself: the columns, the classes and the categories that it was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairbits.domain import text_of
from fairbits.models.black_box import attribute


def names_of(predictor: Any) -> list[str] | None:
    """The columns of the frame that it was trained on, where it remembers them."""
    for name in ("feature_names_in_", "feature_names_", "feature_name"):
        found = _listed(attribute(predictor, name))
        made_up = ("Column_", "f")  # what LightGBM and XGBoost call the columns of an array
        if found:
            names = [str(entry) for entry in found]
            numbered = any(names == [f"{mark}{i}" for i in range(len(names))] for mark in made_up)
            return None if numbered or names == [str(i) for i in range(len(names))] else names
    return None


def _listed(found: Any) -> list[Any]:
    """Names in whatever holds them; nothing where an attribute only sounds like it holds names."""
    if callable(found):  # LightGBM's Booster has a method of this name
        try:
            found = found()
        except Exception:  # noqa: BLE001 - a foreign method of the same name may want anything
            return []
    listed = np.asarray(found, dtype=object)
    return listed.tolist() if listed.ndim == 1 and not isinstance(found, set | dict) else []


def classes_of(predictor: Any) -> tuple[str, ...] | None:
    """The classes that it names, in the order of its outputs, as text."""
    found = _listed(attribute(predictor, "classes_"))
    return tuple(text_of(value) for value in found) or None


def width_of(predictor: Any) -> int | None:
    """How many columns a predictor says that it takes, where it says so in a number."""
    found = attribute(predictor, "n_features_in_")
    return int(found) if isinstance(found, int | np.integer) and not isinstance(found, bool) else None


def trained_on_categories(predictor: Any) -> bool:
    """Whether a fitted object was given columns of pandas categories, and treats them as such."""
    members = attribute(predictor, "estimators_")
    if isinstance(members, list) and members:
        return trained_on_categories(members[0])
    booster = attribute(predictor, "booster_") or predictor
    if _listed(attribute(booster, "pandas_categorical")):
        return True
    if attribute(predictor, "enable_categorical") is True:
        get_booster = attribute(predictor, "get_booster")
        kinds = attribute(get_booster(), "feature_types") if callable(get_booster) else None
        return kinds is None or "c" in kinds
    by_dtype = attribute(predictor, "categorical_features") == "from_dtype"
    return by_dtype and attribute(predictor, "is_categorical_") is not None
