"""Boosters as models: their trees where these say it all, else asked through their library.

A file is opened by its own library, in a child process first, and read as any fitted model in memory is. What a library
says of its trees is checked before anything follows their child numbers: its own reader trusts a file.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import (
    MISSING,
    Attribute,
    Encoding,
    Lookup,
    Numeric,
    Part,
    Schema,
    table_columns,
    text_of,
    values_of,
)
from fairbits.errors import FairbitsError, MissingDependencyError, ModelError, choose_from, foreign
from fairbits.functions import expit
from fairbits.models.black_box import attribute
from fairbits.models.guards import options_after_trial
from fairbits.models.inputs import random_people, remedy_for_labels
from fairbits.models.native.chain import NotNative
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner, column_note, fit_to_schema, with_model_classes
from fairbits.models.predictors import RefusesMissing, from_predictor, label_columns, own_names, parts_of, spellings
from fairbits.models.registry import adapt_content
from fairbits.models.trees.ensemble import Read, TreeModel
from fairbits.models.trees.readers import (
    clean_text,
    ensemble_of_booster,
    ensemble_of_catboost,
    ensemble_of_document,
    ensemble_of_sklearn,
    is_sklearn_ensemble,
    missing_notes,
)

_KINDS = {
    "lightgbm": ("Booster", "LGBMModel", "LGBMClassifier", "LGBMRegressor", "LGBMRanker"),
    "xgboost": ("Booster", "XGBModel", "XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"),
    "catboost": ("CatBoost", "CatBoostClassifier", "CatBoostRegressor"),
}


def read_file(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A booster's own file, its trees held against its library on the inputs that the schema makes."""
    library = library_of_file(file)
    options = options_after_trial(file, schema, options, needs=(library,))
    booster = opened_booster(library, file)
    loaded = adapt_content(booster, file, schema, options)
    if schema is None or loaded.owner is None or not isinstance(loaded.model, TreeModel):
        return loaded
    ask = booster.predict_proba if loaded.model.classes and hasattr(booster, "predict_proba") else booster.predict
    taken = [one for i, one in enumerate(schema.attributes) if loaded.encoding and i not in loaded.encoding.unseen]
    notes = missing_notes(taken) if library == "xgboost" else ()
    owner = Owner(ask, (), "inputs", library=loaded.owner.library)
    return replace(loaded, notes=(*loaded.notes, *notes), owner=owner)


def library_of_file(file: Path) -> str:
    """The library whose file it is, by its first bytes; refused where it is nobody's, or the library is not there."""
    with file.open("rb") as stream:
        start = stream.read(4096).lstrip()
    library = "xgboost"
    if start.startswith(b"tree"):
        library = "lightgbm"
    elif start.startswith(b"CBM1") or (start.startswith(b"{") and b'"features_info"' in file.read_bytes()):
        library = "catboost"
    elif start.startswith((b"binf", b"bs64")):
        raise ModelError(
            f"the model {str(file)!r} is in XGBoost's old binary format; load and save it again with XGBoost, as .json."
        )
    elif not start.startswith(b"{") or b'"tree_info"' in start[:200]:
        raise ModelError(
            f"the model {str(file)!r} is no booster's file: neither LightGBM's text (save_model, not dump_model), nor "
            f"XGBoost's JSON or UBJSON, nor CatBoost's .cbm or JSON."
        )
    if importlib.util.find_spec(library) is None:
        raise MissingDependencyError.of(library, library, f"the model file {file.name!r}")
    return library


def opened_booster(library: str, file: Path) -> Any:
    """The library's own object for a file."""
    with foreign(f"the model {str(file)!r} cannot be opened by {library}"):
        home = importlib.import_module(library)
        if library == "lightgbm":
            return home.Booster(model_str=clean_text(file.read_text(encoding="utf-8")))
        if library == "xgboost":
            facts = json.loads(home.Booster(model_file=str(file)).save_config())
            decides = facts["learner"]["objective"]["name"].startswith(("binary:", "multi:"))
            model = home.XGBClassifier() if decides else home.XGBRegressor()
            model.load_model(str(file))
            return model
        way = "json" if file.suffix.lower() == ".json" else "cbm"
        model = home.CatBoostRegressor().load_model(str(file), format=way)  # puts out the exponential of its loss
        decides = len(getattr(model, "classes_", ())) > 1
        return home.CatBoostClassifier().load_model(str(file), format=way) if decides else model


def is_booster(model: Any) -> bool:
    return is_sklearn_ensemble(model) or type(model).__name__ in _KINDS.get(
        type(model).__module__.partition(".")[0], ()
    )


def from_booster(model: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A fitted tree model in memory as a native model, with its features found in the schema."""
    read = settled(read_object(model), schema, options)
    if schema is None:
        return with_encoding(read, None, favourable=options.favourable)
    return with_encoding(read, *encoding_for(read, schema, options))


def read_object(model: Any) -> Read:
    with foreign("its trees cannot be read", NotNative):
        if is_sklearn_ensemble(model):
            return ensemble_of_sklearn(model)
        library = type(model).__module__.partition(".")[0]
        if library == "lightgbm":
            read = ensemble_of_booster(getattr(model, "booster_", model))
        elif library == "xgboost":
            bare, taken = type(model).__name__ == "Booster", getattr(model, "missing", np.nan)
            if not np.isnan(taken):
                raise NotNative(f"it takes {taken:g} for a missing value.")
            document = (model if bare else model.get_booster()).save_raw("json")
            read = ensemble_of_document(json.loads(bytes(document)), bare=bare)
        else:
            read = ensemble_of_catboost(model)
    classes = attribute(model, "classes_")
    if classes is None or read.labels is not None or len(classes) < 2:
        return read
    return replace(read, labels=tuple(text_of(value) for value in list(classes)))


def with_encoding(
    read: Read, encoding: Encoding | None, notes: tuple[str, ...] = (), *, favourable: int | None = None
) -> Loaded:
    model = TreeModel(read.ensemble, read.classes, name=read.name)
    chosen = model if favourable is None else model.with_favourable(favourable)
    return Loaded(chosen, encoding, read.labels, (*read.notes, *notes))


def settled(read: Read, schema: Schema | None, options: ModelOptions) -> Read:
    """The model that was read, with its names settled and what it puts out: a logit, a probability, or a value."""
    ensemble, read = read.ensemble, replace(read, names=own_names(read.names, schema))
    decides = bool(read.classes) if schema is None or schema.target is None else bool(schema.classes)
    if not read.classes and ensemble.outputs > 1:
        raise ModelError(f"{read.name} predicts {ensemble.outputs} values at once; give a model with one.")
    if not read.classes and not decides:
        return replace(read, classes=0)
    if read.classes or (schema is not None and len(schema.classes) != 2):
        return read
    names = ("0", "1") if schema is None else schema.classes
    if read.classes is None and ensemble.link == "identity" and options.output in (None, "logit"):
        note = (
            f"{read.name} puts out raw sums ({read.objective or 'no objective stated'}), which are read as the "
            f'logit of {names[1]!r}; if they are something else, say so with output = "…" under [model].'
        )
        notes = read.notes if options.output else (*read.notes, note)
        return replace(read, ensemble=replace(ensemble, link="logistic"), classes=2, notes=notes)
    note = f"{read.name} predicts a value ({read.objective}), which is read as the probability of {names[1]!r}."
    return replace(read, classes=2, notes=(*read.notes, note))


#: People on whom trees that were read are held against their library, and how far scores may lie apart: the library's
#: float64 sums of several threads may differ by a last bit, and so, rarely, their float32.
_PEOPLE, _APART = 128, 2.0**-22


def disagreement(loaded: Loaded, model: Any, schema: Schema, options: ModelOptions) -> str:
    """Why the trees that were read do not predict what the model in memory predicts.

    A model whose library cannot be asked this way (a bare XGBoost booster wants its own matrices) is believed.
    """
    codes = random_people(schema, _PEOPLE, lacking=True)
    schema, _ = with_model_classes(schema, loaded)
    try:
        box = fit_to_schema(from_predictor(model, schema, options), schema, options=options)
        theirs = np.asarray(box.model.scores(box.encoding.encode(codes)), np.float64)
    except RefusesMissing:
        raise  # the trees would take it somewhere, but the model does not
    except FairbitsError:
        return ""
    mine = fit_to_schema(loaded, schema, options=options)
    ours = mine.model.scores(mine.encoding.encode(codes))
    sums = isinstance(loaded.model, TreeModel) and loaded.model.ensemble.link == "logistic"
    if sums and options.output is None and ((theirs < 0) | (theirs > 1)).any():
        theirs = expit(theirs)  # trained for an objective of its own, it puts out the sums that a note calls logits
    apart = float((np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))).max())
    return "" if apart <= _APART else f"its trees, as read, score somebody {apart:.2g} away from what it predicts."


def encoding_for(read: Read, schema: Schema, options: ModelOptions) -> tuple[Encoding, tuple[str, ...]]:
    """How codes become rows of features, and notes on what had to be assumed."""
    notes = list[str]()
    used = set(np.unique(read.ensemble.feature[read.ensemble.feature >= 0]).tolist())
    columns, fixed = _columns(read, schema, options, used)
    parts = parts_of(
        columns,
        schema,
        lambda attribute, place: _whole_part(attribute, place, read, options, used=place in used, notes=notes),
    )
    encoding = Encoding(parts, fixed=fixed, dtype=np.float64)
    return encoding, (*notes, *(() if read.names else column_note(tuple(columns.values()), options)))


def _columns(
    read: Read, schema: Schema, options: ModelOptions, used: set[int]
) -> tuple[dict[int, str], dict[int, float]]:
    """The table's column of each feature; features that no split looks at may be missing from the table."""
    if not read.names:
        columns, count = options.columns or table_columns(schema), read.ensemble.features
        if len(columns) != count:
            raise ModelError(
                f"{read.name} takes {count} columns, but {len(columns)} attributes are given ({', '.join(columns)}); "
                f"list those that it sees under [model] columns."
            )
        return dict(enumerate(columns)), {}
    known, found, fixed = label_columns(schema), dict[int, str](), dict[int, float]()
    for place, name in enumerate(read.names):
        column = _match(name, known)
        if column is not None and column not in found.values():
            found[place] = column
        elif place not in used:
            fixed[place] = 0.0
        else:
            raise ModelError(
                f"{read.name} was trained on the column {name!r}, which the schema does not describe; "
                f"{choose_from(name, tuple(known))}"
            )
    return found, fixed


def _match(name: str, known: Iterable[str]) -> str | None:
    if name in known:
        return name
    rewritten = {column: re.sub(r"\W+", "_", column) for column in (name, *known)}  # as LightGBM does blanks and signs
    plain = [column for column in known if rewritten[column] == rewritten[name]]
    return plain[0] if len(plain) == 1 else None


def _whole_part(
    attribute: Attribute, place: int, read: Read, options: ModelOptions, *, used: bool, notes: list[str]
) -> Part:
    """An attribute that is one feature: a number, or the model's number for each category."""
    number = Numeric(place, gap=None if attribute.kind == "category" else attribute.gap)
    if attribute.kind == "real" or options.input_format == "codes":
        return number
    known = read.categories.get(place)
    if known is not None:
        return _by_value(attribute, place, known, read, used=used, notes=notes)
    if attribute.kind == "integer":
        return number
    if not any(isinstance(value, str) for value in values_of(attribute).tolist()):
        spelled = [float(value) for value in values_of(attribute).tolist()]
    elif place in read.categories:
        present = sorted(label for label in attribute.labels if label != MISSING)
        spelled = [np.nan if label == MISSING else float(present.index(label)) for label in attribute.labels]
        if used:
            notes.append(
                f"the model does not say what its categories of {attribute.name!r} are called; they are taken to be "
                f"numbered in alphabetical order, as pandas does."
            )
    elif all(label == MISSING or _digits(label) for label in attribute.labels):  # "02139": it cannot take text
        spelled = [np.nan if label == MISSING else float(label) for label in attribute.labels]
    elif read.names and used:  # its own columns, but not these values: codes would be a guess
        raise ModelError(
            f"{read.name} takes numbers for {attribute.name!r}, which has labels such as {attribute.labels[0]!r}; "
            f"{remedy_for_labels([attribute])}."
        )
    else:
        spelled = [float(code) for code in range(len(attribute.labels))]
        if used:
            notes.append(f"the labels of {attribute.name!r} are numbered as in the schema, from 0 up, for {read.name}.")
    return Lookup(np.array([place]), np.array(spelled)[:, None])


def _by_value(
    attribute: Attribute, place: int, known: tuple[Any, ...], read: Read, *, used: bool, notes: list[str]
) -> Part:
    """A feature of categories that the model remembers."""
    number = {text_of(value): i for i, value in enumerate(known)}
    texts = there = list(attribute.labels)
    if attribute.kind == "integer":
        texts = there = [str(code) for code in range(int(attribute.low), int(attribute.upper) + 1)]
        number |= {text_of(int(value)): i for i, value in enumerate(known) if _whole_number(value)}
        if attribute.allowed:
            there = [text_of(code) for code in attribute.allowed]
    else:
        number |= {str(value).lower(): i for i, value in enumerate(known) if isinstance(value, bool)}
        for text in texts:  # the zeros of "02139" may have been lost before it was trained, "true" been "True"
            known_as = next((way for way in (*spellings(text), text.lstrip("0")) if way in number), None)
            if known_as is not None:
                number[text] = number[known_as]
    strange = [text for text in there if text not in number and text != MISSING]
    if strange and ((read.refuses and used) or len(strange) == len(there)):
        if not all(str(value).isascii() for value in known):
            raise NotNative(f"the categories of {attribute.name!r} are not all ASCII, and its library cuts such names.")
        raise ModelError(
            f"{read.name} does not know the value {strange[0]!r} of {attribute.name!r}; it was trained on "
            f"{', '.join(list(number)[:8])}: take it out of the domain or train with it."
        )
    if strange:
        shown = ", ".join(map(repr, strange[:4]))
        notes.append(f"{read.name} does not know {shown} of {attribute.name!r} and reads it as missing.")
    table = np.array([[number.get(text, np.nan)] for text in texts], dtype=np.float64)
    return Lookup(np.array([place]), table, int(attribute.low))


def _digits(label: str) -> bool:
    return label.isascii() and label.isdecimal()


def _whole_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value).is_integer() if number else _digits(str(value))
