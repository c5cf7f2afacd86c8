"""Boosters asked through their own library, where their trees do not say it all."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairbits.domain import Schema
from fairbits.errors import FairbitsError, MissingDependencyError, ModelError
from fairbits.models.black_box import reason
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded
from fairbits.models.predictors import from_predictor
from fairbits.models.trees.lightgbm import is_lightgbm


def through_library(content: bytes, file: Path, schema: Schema | None, options: ModelOptions, why: str) -> Loaded:
    """A file whose trees do not say it all, asked through its own library, and the reason as a note."""
    model = library_model(content, file)
    if schema is not None:
        note = f"the model is asked through its own library, not read: {why}"
        try:
            loaded = from_predictor(model, schema, options)
        except FairbitsError as error:
            raise type(error)(f"the model in {str(file)!r} is not read: {why} Nor can it be asked: {error}") from None
        return replace(loaded, notes=(*loaded.notes, note))
    return from_predictor(model, schema, options)


def installed(library: str) -> bool:
    """Whether a library is there, without importing it."""
    return importlib.util.find_spec(library) is not None


def library_named(content: bytes) -> str:
    """The library whose file it is."""
    if content[:4] == b"CBM1" or b'"features_info"' in content[:100_000_000]:
        return "catboost"
    return "lightgbm" if is_lightgbm(content[:64].decode("utf-8", errors="replace")) else "xgboost"


def library_model(content: bytes, file: Path) -> Any:
    """The library's own object for a file."""
    name = library_named(content)
    try:
        if name == "catboost":
            from fairbits.models.trees.catboost import open_file

            return open_file(file)
        if name == "lightgbm":
            import lightgbm

            return lightgbm.Booster(model_file=str(file))
        import xgboost

        booster = xgboost.Booster()
        booster.load_model(str(file))
        return XGBoostBooster(booster)
    except ImportError:
        raise MissingDependencyError(name, name, f"a model file that only {name} itself can ask") from None
    except FairbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise ModelError(f"the model {str(file)!r} cannot be opened by {name}: {reason(error)}") from None


class XGBoostBooster:
    """A bare XGBoost booster that takes plain rows."""

    def __init__(self, booster: Any):
        self._booster = booster
        self.feature_names_in_ = list(booster.feature_names or ())
        self.n_features_in_ = int(booster.num_features())

    def predict(self, rows: Any) -> Any:
        """What the booster predicts for a frame or an array."""
        import xgboost

        # The shortcut without a matrix is for trees only.
        return self._booster.predict(xgboost.DMatrix(rows, enable_categorical=True))
