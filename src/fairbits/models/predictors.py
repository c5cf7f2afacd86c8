"""Anything with predict_proba or predict, and any function: black boxes that take decoded rows.

Tree ensembles (XGBoost, LightGBM, CatBoost), scikit-learn models that are no perceptrons, and your own code come in
here. They get what they were trained on: a data frame where they remember column names, else an array; labels, not
codes. An array model that does not take the labels of its categories is asked with codes. Where the columns are those
of ``pandas.get_dummies``, they are made from the labels of the table as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from fairbits.domain import (
    Attribute,
    Codes,
    Decoder,
    Encoding,
    Lookup,
    Numeric,
    Part,
    Schema,
    Unseen,
    table_columns,
    text_of,
    values_of,
)
from fairbits.errors import FairbitsError, ModelError, choose_from, reason
from fairbits.models.black_box import BlackBox, attribute
from fairbits.models.inputs import remedy_for_labels
from fairbits.models.options import InputFormat, ModelOptions
from fairbits.models.outputs import Loaded, Names, Owner, column_note, output_order, plain_reading


def names_of(predictor: Any, schema: Schema | None) -> tuple[str, ...] | None:
    """The columns of the frame that it was trained on, where it remembers them."""
    found = (_listed(attribute(predictor, name)) for name in ("feature_names_in_", "feature_names_", "feature_name"))
    return own_names(next((names for names in found if names), ()), schema) or None


def own_names(names: Iterable[Any], schema: Schema | None) -> tuple[str, ...]:
    """Names of columns, none where a library made them up of the numbers of an array's columns.

    Names that the table has as well are its own, whatever they look like, and may stand in another order there.
    LightGBM rewrites blanks and signs: own_age is the table's "own age", where no other column could be meant.
    """
    known = () if schema is None else table_columns(schema)
    plain = {re.sub(r"\W+", "_", column): column for column in known}
    plain = plain if len(plain) == len(known) else {}
    found = tuple(name if name in known else plain.get(name, name) for name in map(str, names))
    if not {*found}.isdisjoint(known):
        return found
    marks = ("Column_", "f", "")  # LightGBM's, XGBoost's, CatBoost's (which may also leave them empty)
    made_up = any(all(name in ("", f"{mark}{i}") for i, name in enumerate(found)) for mark in marks)
    return () if made_up else found


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
    found = _listed(attribute(predictor, "classes_"))
    return tuple(text_of(value) for value in found) or None


def width_of(predictor: Any) -> int | None:
    """How many columns a predictor says that it takes, where it says so in a number."""
    found = attribute(predictor, "n_features_in_")
    known = isinstance(found, int | np.integer) and not isinstance(found, bool)
    return int(found) or None if known else None  # CatBoost says 0 of a model from a file


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


def spellings(text: str) -> tuple[str, ...]:
    """How a value may have been written as text: truth values and whole numbers have several ways."""
    if text in ("true", "false"):
        digit = str(int(text == "true"))
        return (text, text.capitalize(), text.upper(), digit, f"{digit}.0")
    whole = re.fullmatch(r"(-?\d{1,15})(\.0)?", text)
    return (text,) if whole is None else (text, whole[1] if whole[2] else f"{text}.0")


def label_columns(schema: Schema) -> dict[str, tuple[str, int | None]]:
    """The columns that the schema's people can fill: whose they are, and of which label (None: of all of it).

    Categories may be spread out, in the table itself or as ``pandas.get_dummies`` does.
    """
    found: dict[str, tuple[str, int | None]] = {
        f"{one.name}_{way}": (one.name, i)
        for one in schema.attributes
        if one.kind == "category" and not one.columns
        for i, label in enumerate(one.labels)
        for way in spellings(label)
    }
    for one in schema.attributes:
        found |= {column: (one.name, i) for i, column in enumerate(one.columns) if column}
        found |= {} if one.columns else {one.name: (one.name, None)}
    return found


def parts_of(columns: Mapping[int, str], schema: Schema, whole: Callable[[Attribute, int], Part]) -> list[Part]:
    """How people become columns by name, a label that was dropped being zero in all; ``whole`` makes of an attribute
    one column."""
    owners, places = label_columns(schema), dict[str, dict[int | None, int]]()
    for place, name in columns.items():
        owner, label = owners.get(name) or (schema.names[schema.column(name)], None)
        places.setdefault(owner, {})[label] = place
    parts: list[Part] = []
    for one in schema.attributes:
        mine = places.get(one.name, {})
        if not mine:
            parts.append(Unseen())
        elif None in mine:
            parts.append(whole(one, mine[None]))
        else:
            table = np.zeros((len(one.labels), len(mine)))
            table[[label for label in mine if label is not None], range(len(mine))] = 1.0
            parts.append(Lookup(np.array([*mine.values()], dtype=np.int64), table))
    return parts


def dummy_encoding(names: Iterable[Any], schema: Schema, *, dtype: Any = np.float32) -> Encoding | None:
    """How people become the columns of a model that was trained on dummies; None where it was not, or on words."""
    wanted, known = {place: str(name) for place, name in enumerate(names)}, label_columns(schema)
    if set(wanted.values()) <= set(table_columns(schema)) or not set(wanted.values()) <= set(known):
        return None
    kept = [one for one in schema.attributes if one.kind == "category" and known.get(one.name) == (one.name, None)]
    values = (value for one in kept if one.name in wanted.values() for value in values_of(one).tolist())
    if any(isinstance(value, str) for value in values):
        return None
    return Encoding(parts_of(wanted, schema, _number), dtype=dtype)


def _number(one: Attribute, place: int) -> Part:
    """An attribute that is one column of numbers."""
    if one.kind != "category":
        return Numeric(place, gap=one.gap)
    return Lookup(np.array([place]), np.array([[float(value)] for value in values_of(one).tolist()]))


Decode = Callable[[Codes], Any]


class RefusesMissing(ModelError):
    """The model takes people, but nobody who lacks a value that people of the table lack."""


def from_predictor(predictor: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """An object with predict_proba or predict as a model."""
    name = f"the {type(predictor).__name__}"
    if schema is None:
        return _without_schema(predictor, options, name)
    names, classes = names_of(predictor, schema), classes_of(predictor)
    spread = None if names is None or options.columns else dummy_encoding(names, schema, dtype=np.float64)
    columns = options.columns or table_columns(schema)
    if spread is None and options.columns is None and names is not None:
        columns = checked_columns(names, schema)
    ask, single = _question(predictor, schema, classes, options)
    decoder = Decoder(schema, columns, categorical=trained_on_categories(predictor))
    wanted = width_of(predictor)
    if spread is None and wanted not in (None, len(columns)):
        raise ModelError(
            f"{name} takes {wanted} columns, but {len(columns)} attributes are given ({', '.join(columns)}); "
            f"list those that it sees under [model] columns."
        )
    if spread is not None and names is not None:
        decode, encoding = named_frame(names), spread
        owner = Owner(ask, columns, "dummies", names)
        first = next(name for name in names if name not in columns)
        how = "which are made from the table's labels as pandas.get_dummies does"
        notes: tuple[str, ...] = (f"the model takes columns such as {first!r}, {how}.",)
    else:
        way = _form_of(ask, decoder, schema, options, named=names is not None, name=name)
        decode, encoding = decoding(decoder, way, named=names is not None), decoder.encoding
        owner = Owner(ask, columns, "array" if names is None and way != "frame" else "frame")
        notes = _order_note(way, columns, schema, options) if names is None else ()
    box = BlackBox(
        lambda rows: ask(decode(rows)),
        encoding.width,
        name=name,
        batch=options.batch,
        reading=plain_reading(options),
        outputs=1 if single else None,
    )
    if single is not None and schema.classes and callable(attribute(predictor, "decision_function")):
        notes += (
            f"{name} gives decisions and no probabilities, so that scores are 0 or 1 and twins differ by these alone; "
            f"put it into a CalibratedClassifierCV to see how far apart they are.",
        )
    return Loaded(box, encoding, classes, notes, owner)


def named_frame(names: Iterable[Any]) -> Decode:
    """Rows of numbers as a frame with a model's own columns."""
    columns = [str(name) for name in names]

    def frame(rows: Codes) -> Any:
        import pandas as pd

        return pd.DataFrame(np.asarray(rows, dtype=np.float64), columns=columns)

    return frame


def from_function(function: Callable[[Any], Any], schema: Schema | None, options: ModelOptions) -> Loaded:
    """A function from rows to scores as a model.

    It gives one score per row, for the favourable class (or the one that ``score_of`` names), or one column per class.
    It gets a data frame, unless ``input_format`` says array or codes.
    """
    name = f"the function {getattr(function, '__name__', type(function).__name__)!r}"
    if schema is None:
        raise ModelError(f"{name} needs the schema of its rows; use load_with_encoding or a subject.toml.")
    decoder, way = Decoder(schema, options.columns), options.input_format or "frame"
    columns, decode = options.columns or table_columns(schema), decoding(decoder, way)

    def ask(rows: Codes) -> Any:
        found = np.asarray(function(decode(rows)))
        return found.ravel() if found.size == len(rows) else found

    box = BlackBox(ask, len(decoder.names), name=name, batch=options.batch, reading=plain_reading(options), own=True)
    if len(schema.classes) > 2:
        next(box.answers(_someone(decoder, schema)))  # whether it gives one column for each class
    owner = None if way == "codes" else Owner(function, columns, way, own=True)
    return Loaded(box, decoder.encoding, notes=_order_note(way, columns, schema, options), owner=owner)


def checked_columns(names: Iterable[Any], schema: Schema) -> tuple[str, ...]:
    columns, known = tuple(str(name) for name in names), table_columns(schema)
    strange = next((name for name in columns if name not in known), None)
    if strange is not None:
        raise ModelError(
            f"the model was trained on the column {strange!r}, which the schema does not describe"
            f"{_why_left_out(strange, schema)}; {choose_from(strange, known)}"
        )
    return columns


def _why_left_out(column: str, schema: Schema) -> str:
    """What the schema says about leaving a column out, where it does."""
    return next((f" ({note.rstrip('.')})" for note in schema.notes if f" {column} (" in note), "")


def _without_schema(predictor: Any, options: ModelOptions, name: str) -> Loaded:
    """Rows of numbers go in as they are; the favourable class is given by its position."""
    width = width_of(predictor)
    ask = attribute(predictor, "predict_proba") or attribute(predictor, "predict")
    if width is None or ask is None or names_of(predictor, None) is not None:
        raise ModelError(f"{name} needs the schema of its rows; use load_with_encoding or a subject.toml.")
    box = BlackBox(ask, int(width), name=name, batch=options.batch, reading=plain_reading(options))
    return Loaded(box, None, classes_of(predictor))


def _question(predictor: Any, schema: Schema, classes: Names, options: ModelOptions) -> tuple[Decode, bool | None]:
    """The method to call; and, where that tells no probabilities, whether it decides between two classes."""
    own = classes if schema.target is None and not schema.classes and classes and len(classes) > 1 else ()
    known = schema.classes or own
    if known and callable(attribute(predictor, "predict_proba")):
        return predictor.predict_proba, None
    if not callable(attribute(predictor, "predict")):
        raise ModelError(f"{type(predictor).__name__!r} has neither predict_proba nor predict, so it cannot be asked.")
    if not known:
        return predictor.predict, False
    order, kind = output_order(schema, classes, options) or known, type(predictor).__name__
    return lambda rows: _as_shares(np.asarray(predictor.predict(rows)), order, kind), len(known) == 2


def _as_shares(answer: Any, classes: tuple[str, ...], name: str) -> Any:
    """What `predict` says without `predict_proba`, as one column per class.

    A decision is 1 for its class and 0 for the others. Boosters answer with probabilities here: a table of them is
    taken as it is, and single numbers between two classes are the probability of the second one.
    """
    if answer.ndim == 2 and answer.shape[1] > 1:
        return answer
    found, place = np.unique(answer.ravel(), return_inverse=True)
    texts = [text_of(value) for value in found.tolist()]
    strange = next((text for text in texts if text not in classes), None)
    if strange is None:
        return np.eye(len(classes), dtype=np.float32)[np.array([classes.index(text) for text in texts])[place]]
    if len(classes) == 2 and np.issubdtype(answer.dtype, np.number):
        return answer.reshape(-1, 1)
    raise ModelError(
        f"the {name} predicts {strange!r}, which is not a class of the target; {choose_from(strange, classes)}"
    )


def decoding(decoder: Decoder, way: InputFormat, *, named: bool = False) -> Decode:
    """How codes become rows of a form; steps that choose columns by name find none in an array of codes."""
    if way == "codes" and named:
        frame = named_frame(decoder.names)
        return lambda codes: frame(decoder.numbers(codes))
    return {"frame": decoder.frame, "array": decoder.array, "codes": decoder.numbers}[way]


def _form_of(
    ask: Decode, decoder: Decoder, schema: Schema, options: ModelOptions, *, named: bool, name: str
) -> InputFormat:
    """What to feed it: as stated or as its column names tell, else whatever one person goes through with."""
    if options.input_format is not None:
        return options.input_format
    complaint, lacking = "", ""
    # Without names it was made for arrays, or it is somebody's own class around a pipeline that wants a frame.
    ways: tuple[InputFormat, ...] = ("frame",) if named else ("array", "codes", "frame")
    for way in ways:
        decode = decoding(decoder, way)
        try:
            ask(decode(_someone(decoder, schema)))
        except FairbitsError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the last complaint is shown
            complaint = reason(error).rstrip(".")
            continue
        lacking = _refused_gap(ask, decode, decoder, schema)
        if not lacking:
            return way
    if lacking:
        raise RefusesMissing(f"{name} does not take {lacking}; fill it in the table, or train the model with it.")
    if named:  # its own columns, but not these values: codes would be a guess, as nobody knows whose codes
        remedy = remedy_for_labels(schema.attributes)
        raise ModelError(f"{name} does not take the table's values ({complaint.rstrip(':')}); {remedy}.")
    raise ModelError(f"{name} takes neither labels nor codes, as an array or as a frame: {complaint}.")


def _order_note(way: InputFormat, columns: tuple[str, ...], schema: Schema, options: ModelOptions) -> tuple[str, ...]:
    """What is guessed about rows without names; a frame has names."""
    if way == "frame":
        return ()
    coded = way == "codes" and options.input_format is None and any(a.kind == "category" for a in schema.attributes)
    return column_note(columns, options, how="categories as codes" if coded else "")


def _refused_gap(ask: Decode, decode: Decode, decoder: Decoder, schema: Schema) -> str:
    """The first attribute whose missing value a model refuses, and what it says; "" where it takes them all."""
    someone = _someone(decoder, schema)
    for place, name in enumerate(decoder.names):
        gap = schema[name].gap
        if gap is None or (schema[name].protected and schema[name].missing != "value"):
            continue  # where only a real row lacks a protected value, its twins all have one
        person = someone.copy()
        person[0, place] = gap
        try:
            ask(decode(person))
        except FairbitsError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything; its complaint is shown
            return f"a missing {name!r}, which people of the table have ({reason(error).rstrip('.')})"
    return ""


def _someone(decoder: Decoder, schema: Schema) -> Codes:
    return np.array([[schema[name].first for name in decoder.names]])
