"""Boosters asked through their own library: to compare what was read with it, and where trees do not say it all."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import sandbox
from fairbits.domain import Schema
from fairbits.errors import FairbitsError, MissingDependencyError, ModelError
from fairbits.models.black_box import reason
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner
from fairbits.models.predictors import from_predictor
from fairbits.models.trees.features import Read
from fairbits.models.trees.lightgbm import is_lightgbm

#: How libraries are called by those who write them.
_NAMES = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}


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


def compared(loaded: Loaded, read: Read, content: bytes, file: Path, schema: Schema, options: ModelOptions) -> Loaded:
    """The trees that were read, with their library to be asked about the same inputs; a note where it is missing."""
    name = library_named(content)
    if not installed(name):
        return replace(loaded, notes=(*loaded.notes, f"not compared with {_NAMES[name]}: it is not installed."))
    texts = read.features.categories if name == "catboost" else {}
    order = None  # of several outputs, where ours stand in the schema's order
    if read.labels is not None and loaded.classes is not None and read.ensemble.outputs > 1:
        order = [read.labels.index(label) for label in loaded.classes]

    def ask(rows: Any) -> Any:
        """In a child: the library's reader trusts files more than ours does."""
        memory = 2 * options.max_model_bytes
        job, given = f"{__name__}:answer", (content, file, np.asarray(rows, np.float64), texts)
        outcome = sandbox.try_out(job, given, seconds=options.max_seconds, memory=memory)
        if outcome.error is not None:
            raise outcome.error
        if outcome.fault:
            raise ModelError(f"{_NAMES[name]} {outcome.fault}")
        found = np.array(outcome.known["answer"])
        return found if order is None else found[:, order]

    def library(why: str) -> Loaded:
        return through_library(content, file, schema, options, why)

    return replace(loaded, owner=Owner(ask, (), "inputs", library=library))


def answer(given: Any, notify: sandbox.Notify) -> None:
    """In the child process: what the library says about rows of features."""
    content, file, rows, texts = given
    model = library_model(content, file)
    if texts:  # CatBoost takes categories as texts; what is in none of its lists is new to it
        rows = rows.astype(object)
        for place, known in texts.items():
            rows[:, place] = ["\0" if np.isnan(number) else known[int(number)] for number in rows[:, place]]
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    notify(answer=np.asarray(ask(rows), np.float64).tolist())


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
        facts = json.loads(booster.save_config())["learner"]
        self._linear = facts["gradient_booster"]["name"] == "gblinear"
        if facts["objective"]["name"] == "multi:softmax":  # the class alone, where its trees give probabilities
            booster.set_param({"objective": "multi:softprob"})

    def predict(self, rows: Any) -> Any:
        """What the booster predicts for a frame or an array."""
        import xgboost

        best = self._booster.attr("best_iteration")
        trees = (0, 0 if best is None else int(best) + 1)  # as the scikit-learn classes have it
        if isinstance(rows, np.ndarray) and not self._linear:
            return self._booster.inplace_predict(rows, iteration_range=trees, validate_features=False)
        return self._booster.predict(xgboost.DMatrix(rows, enable_categorical=True), iteration_range=trees)
