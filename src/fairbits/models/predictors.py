"""Anything with predict_proba or predict, and any function: black boxes that eat decoded rows.

Tree ensembles (XGBoost, LightGBM, CatBoost), scikit-learn models that are no perceptrons, and your own code come in
here. They get what they were trained on: a data frame where they remember column names, else an array; labels, not
codes. An array model that does not take the labels of its categories is asked with codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fairbits.domain import Decoder, Schema
from fairbits.domain.attribute import Codes
from fairbits.domain.decoding import table_columns
from fairbits.domain.table import text_of
from fairbits.errors import ModelError, choose_from
from fairbits.models.blackbox import BlackBox, reason, with_classes
from fairbits.models.loaded import Loaded, favourable_output
from fairbits.models.options import Eats, ModelOptions

Decode = Callable[[Codes], Any]


def from_predictor(predictor: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """An object with predict_proba or predict."""
    name = f"the {type(predictor).__name__}"
    if schema is None:
        return _without_schema(predictor, options, name)
    names = _names_of(predictor)
    columns = options.columns or (table_columns(schema) if names is None else checked_columns(names, schema))
    classes = _classes_of(predictor)
    favourable = favourable_output(schema, classes) if schema.classes else None
    ask, chosen = _question(predictor, schema, classes, favourable)
    decoder = Decoder(schema, columns, categorical=_categorical(predictor))
    wanted = getattr(predictor, "n_features_in_", len(columns))
    if wanted != len(columns):
        raise ModelError(
            f"{name} takes {wanted} columns, but {len(columns)} attributes are given ({', '.join(columns)}); "
            f"list those that it sees under [model] columns."
        )
    decode = _decoding(ask, decoder, schema, options.eats or ("frame" if names is not None else None), name)
    inputs = len(decoder.names)
    box = BlackBox(lambda rows: ask(decode(rows)), inputs, favourable=chosen, batch=options.batch, name=name)
    return Loaded(box if chosen is None else with_classes(box, schema, classes), decoder.encoding)


def from_function(function: Callable[[Any], Any], schema: Schema | None, options: ModelOptions) -> Loaded:
    """A function from rows to scores: one per row, for the favourable class, or one column per class.

    It gets a data frame, unless ``eats`` says array or codes.
    """
    name = f"the function {getattr(function, '__name__', type(function).__name__)!r}"
    if schema is None:
        raise ModelError(f"{name} needs the schema of its rows; use load_with_encoding or a subject.toml.")
    decoder = Decoder(schema, options.columns)
    decode = _decoders(decoder)[options.eats or "frame"]
    favourable = schema.favourable_index if schema.classes else None

    def ask(rows: Codes) -> Any:
        found = np.asarray(function(decode(rows)))
        return found.ravel() if found.size == len(rows) else found

    box = BlackBox(ask, len(decoder.names), favourable=favourable, batch=options.batch, name=name)
    return Loaded(box, decoder.encoding)


def checked_columns(names: Iterable[Any], schema: Schema) -> tuple[str, ...]:
    """The columns that a model was trained on, all of which the schema must know."""
    columns = tuple(str(name) for name in names)
    known = table_columns(schema)
    strange = [name for name in columns if name not in known]
    if strange:
        raise ModelError(
            f"the model was trained on the column {strange[0]!r}, which the schema does not describe; "
            f"{choose_from(strange[0], known)}"
        )
    return columns


def _without_schema(predictor: Any, options: ModelOptions, name: str) -> Loaded:
    """Rows of numbers go in as they are; the favourable class is given by its position."""
    width = getattr(predictor, "n_features_in_", None)
    ask = getattr(predictor, "predict_proba", None) or getattr(predictor, "predict", None)
    if width is None or ask is None or _names_of(predictor) is not None:
        raise ModelError(f"{name} needs the schema of its rows; use load_with_encoding or a subject.toml.")
    box = BlackBox(ask, int(width), favourable=options.favourable, batch=options.batch, name=name)
    return Loaded(box, None, _classes_of(predictor))


def _question(
    predictor: Any, schema: Schema, classes: tuple[str, ...] | None, favourable: int | None
) -> tuple[Decode, int | None]:
    """The method to call, and which column of its answer counts."""
    if schema.classes and hasattr(predictor, "predict_proba"):
        return predictor.predict_proba, favourable
    if not hasattr(predictor, "predict"):
        raise ModelError(f"{type(predictor).__name__!r} has neither predict_proba nor predict, so it cannot be asked.")
    if not schema.classes:
        return predictor.predict, None
    wanted = schema.favourable if classes is None else classes[favourable or 0]

    def decided(rows: Any) -> Any:
        """Without probabilities a score is the decision itself: 1 for the favourable class, else 0."""
        found = np.asarray(predictor.predict(rows)).ravel().tolist()
        return np.array([text_of(value) == wanted for value in found], dtype=np.float32)

    return decided, None


def _decoders(decoder: Decoder) -> dict[Eats, Decode]:
    return {"frame": decoder.frame, "array": decoder.array, "codes": lambda codes: codes}


def _decoding(ask: Decode, decoder: Decoder, schema: Schema, eats: Eats | None, name: str) -> Decode:
    """What to feed it: as stated or as its column names tell, else whatever one person goes through with."""
    decoders = _decoders(decoder)
    if eats is not None:
        return decoders[eats]
    someone = np.array([[schema[name].values()[0] for name in decoder.names]])
    complaint = ""
    ways: tuple[Eats, ...] = ("array", "codes")
    for way in ways:
        try:
            ask(decoders[way](someone))
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the last complaint is shown
            complaint = reason(error)
            continue
        return decoders[way]
    raise ModelError(f"{name} takes neither labels nor codes: {complaint}")


def _names_of(predictor: Any) -> list[str] | None:
    """The columns of the frame that it was trained on, where it remembers them."""
    for attribute in ("feature_names_in_", "feature_names_"):
        found = getattr(predictor, attribute, None)
        made_up = ("Column_", "f")  # what LightGBM and XGBoost call the columns of an array
        if found is not None and len(found):
            names = [str(name) for name in found]
            numbered = any(names == [f"{mark}{i}" for i in range(len(names))] for mark in made_up)
            return None if numbered or names == [str(i) for i in range(len(names))] else names
    return None


def _classes_of(predictor: Any) -> tuple[str, ...] | None:
    found = getattr(predictor, "classes_", None)
    return None if found is None else tuple(text_of(value) for value in np.asarray(found).ravel().tolist())


def _categorical(predictor: Any) -> bool:
    """Whether it was trained on pandas categories (XGBoost and LightGBM treat them as such)."""
    booster = getattr(predictor, "booster_", None)
    return bool(getattr(predictor, "enable_categorical", False) or getattr(booster, "pandas_categorical", None))
