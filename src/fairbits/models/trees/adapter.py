"""Boosters in files and in memory as models: native where the trees say it all, else asked through ``library``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Encoding, Schema
from fairbits.errors import FairbitsError, ModelError
from fairbits.functions import expit
from fairbits.models.black_box import reason
from fairbits.models.guards import options_after_trial
from fairbits.models.native.chain import NotNative
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded
from fairbits.models.predictors import RefusesMissing, from_predictor
from fairbits.models.probe import random_people
from fairbits.models.trees.ensemble import Ensemble
from fairbits.models.trees.features import Read, encoding_for
from fairbits.models.trees.library import compared, installed, library_named, through_library
from fairbits.models.trees.lightgbm import ensemble_of_text
from fairbits.models.trees.model import TreeModel
from fairbits.models.trees.sklearn import ensemble_of_sklearn, is_sklearn_ensemble
from fairbits.models.trees.tree import Damaged
from fairbits.models.trees.xgboost import document_of_bytes, ensemble_of_document, is_xgboost, missing_notes

#: Files beyond this size are not read: 5 million nodes of the wordiest format fit.
MAX_BYTES = 2_000_000_000


def read_booster(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A booster's own file: LightGBM's text, XGBoost's JSON or UBJSON, CatBoost's .cbm or JSON."""
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise ModelError(f"the model {str(file)!r} has {size:,} bytes, more than the {MAX_BYTES:,} that are read.")
    content = file.read_bytes()
    if library_named(content) == "catboost" and installed("catboost"):
        # Its files are read with the help of the library, or by it alone.
        options = options_after_trial(file, schema, options, needs=("catboost",))
    try:
        read = _read_content(content, file, schema)
        loaded = tree_loaded(read, schema, options)
        if schema is None or loaded.encoding is None:
            return loaded
        taken = [attribute for i, attribute in enumerate(schema.attributes) if i not in loaded.encoding.unseen]
        notes = missing_notes(taken) if library_named(content) == "xgboost" else ()
        loaded = replace(loaded, notes=(*loaded.notes, *notes))
        return compared(loaded, read, content, file, schema, options)
    except NotNative as error:
        if installed(library_named(content)):
            options = options_after_trial(file, schema, options, needs=(library_named(content),))
        return through_library(content, file, schema, options, str(error))
    except Damaged as error:
        raise ModelError(f"the model {str(file)!r} is damaged or no booster's file: {error}") from None
    except FairbitsError as error:
        raise type(error)(f"the model in {str(file)!r}: {error}") from None


def _read_content(content: bytes, file: Path, schema: Schema | None) -> Read:
    try:
        return _read_trees(content, file, schema)
    except FairbitsError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Damaged(f"a part of it is missing, or is not what it should be ({reason(error)})") from None


def _read_trees(content: bytes, file: Path, schema: Schema | None) -> Read:
    if content[:4] == b"CBM1":
        from fairbits.models.trees.catboost import read_cbm

        return read_cbm(file, schema)
    start = content[:64].lstrip()
    if start.startswith(b"tree"):
        return ensemble_of_text(_text(content))
    if not start.startswith(b"{"):
        if start.startswith((b"binf", b"bs64")):
            raise Damaged("it is in XGBoost's old binary format; load and save it again with XGBoost, as .json.")
        raise Damaged("it is neither LightGBM's text, nor XGBoost's JSON or UBJSON, nor CatBoost's .cbm or JSON.")
    document = document_of_bytes(content)
    if is_xgboost(document):
        return ensemble_of_document(document)
    if isinstance(document, dict) and "features_info" in document:
        from fairbits.models.trees.catboost import read_document

        return read_document(document, file, schema)
    if isinstance(document, dict) and "tree_info" in document:
        raise Damaged('it is what LightGBM\'s dump_model prints; write the model with save_model("model.txt").')
    raise Damaged("its JSON is neither XGBoost's (learner) nor CatBoost's (features_info).")


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise Damaged("it is no text.") from None


def is_booster(model: Any) -> bool:
    """Whether an object in memory is one of the libraries' tree models."""
    return is_sklearn_ensemble(model) or _library_of(model) is not None


def _library_of(model: Any) -> str | None:
    home = type(model).__module__.partition(".")[0]
    kinds = {
        "lightgbm": ("Booster", "LGBMModel", "LGBMClassifier", "LGBMRegressor", "LGBMRanker"),
        "xgboost": ("Booster", "XGBModel", "XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor"),
        "catboost": ("CatBoost", "CatBoostClassifier", "CatBoostRegressor"),
    }
    return home if type(model).__name__ in kinds.get(home, ()) else None


def from_booster(model: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A fitted tree model in memory as a native model."""
    return tree_loaded(read_object(model, schema), schema, options)


def read_object(model: Any, schema: Schema | None) -> Read:
    """The trees of a fitted model in memory."""
    if is_sklearn_ensemble(model):
        return ensemble_of_sklearn(model)
    library = _library_of(model)
    try:
        if library == "lightgbm":
            booster = getattr(model, "booster_", model)
            read = ensemble_of_text(booster.model_to_string())
        elif library == "xgboost":
            booster = model if type(model).__name__ == "Booster" else model.get_booster()
            taken = getattr(model, "missing", np.nan)
            if not np.isnan(taken):
                raise NotNative(f"it takes {taken:g} for a missing value.")
            read = ensemble_of_document(document_of_bytes(bytes(booster.save_raw("json"))), bare=booster is model)
        else:
            from fairbits.models.trees.catboost import read_live

            read = read_live(model, schema)
    except FairbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise NotNative(f"its trees cannot be read: {reason(error)}") from None
    classes = getattr(model, "classes_", None)
    if classes is None or read.labels is not None or len(classes) < 2:
        return read
    from fairbits.domain import text_of

    return replace(read, labels=tuple(text_of(value) for value in list(classes)))


def tree_loaded(read: Read, schema: Schema | None, options: ModelOptions) -> Loaded:
    """The model that was read, with its features found in the schema."""
    read = settled(read, schema, options)
    if schema is None:
        model = TreeModel(read.ensemble, read.classes, names=read.features.names, name=read.name)
        chosen = model if options.favourable is None else model.with_favourable(options.favourable)
        return Loaded(chosen, None, read.labels, read.notes)
    encoding, notes = encoding_for(read, schema, options)
    return with_encoding(read, encoding, schema, (*read.notes, *notes))


def with_encoding(read: Read, encoding: Encoding, schema: Schema, notes: tuple[str, ...] = ()) -> Loaded:
    """The model that was read, behind a known encoding; its classes in the schema's order."""
    ensemble, labels = read.ensemble, read.labels
    if labels is not None and ensemble.outputs > 1 and labels != schema.classes and set(labels) == set(schema.classes):
        ensemble = ensemble.reordered([labels.index(name) for name in schema.classes])
        labels = schema.classes
    model = TreeModel(ensemble, read.classes, names=read.features.names, name=read.name)
    return Loaded(model, encoding, labels, notes)


def settled(read: Read, schema: Schema | None, options: ModelOptions) -> Read:
    """The model that was read, with the meaning of its output settled: a logit, a probability, or a value."""
    ensemble = read.ensemble
    decides = bool(read.classes) if schema is None or schema.target is None else bool(schema.classes)
    if not read.classes and ensemble.outputs > 1:
        raise ModelError(f"{read.name} predicts {ensemble.outputs} values at once; give a model with one.")
    if read.classes or not decides:
        if schema is not None and schema.target is not None and not schema.classes and read.classes == 2:
            return read
        return read if read.classes else replace(read, classes=0)
    if schema is not None and len(schema.classes) != 2:
        return read
    names = ("0", "1") if schema is None else schema.classes
    if read.classes is None and ensemble.link == "identity" and options.output in (None, "logit"):
        note = (
            f"{read.name} puts out raw sums ({read.objective or 'no objective stated'}), which are read as the "
            f'logit of {names[1]!r}; if they are something else, say so with output = "…" under [model].'
        )
        more = () if options.output else (note,)
        return replace(read, ensemble=_logistic(ensemble), classes=2, notes=(*read.notes, *more))
    note = f"{read.name} predicts a value ({read.objective}), which is read as the probability of {names[1]!r}."
    return replace(read, classes=2, notes=(*read.notes, note))


def _logistic(ensemble: Ensemble) -> Ensemble:
    return replace(ensemble, link="logistic")


#: People on whom trees that were read are held against their library, and how far scores may lie apart: the library's
#: float64 sums of several threads may differ by a last bit, and so, rarely, their float32.
_PEOPLE, _APART = 128, 2.0**-22


def disagreement(loaded: Loaded, model: Any, schema: Schema, options: ModelOptions) -> str:
    """Why the trees that were read do not predict what the model in memory predicts.

    A model whose library cannot be asked this way (a bare XGBoost booster wants its own matrices) is believed.
    """
    from fairbits.models.outputs import fit_to_schema, with_model_classes

    codes = random_people(schema, _PEOPLE, lacking=True)
    schema, _ = with_model_classes(schema, loaded)
    try:
        box = fit_to_schema(from_predictor(model, schema, options), schema, options=options)
        theirs = np.asarray(box.model.scores(box.encoding.encode(codes)), np.float64)
    except RefusesMissing:
        if type(model).__module__.partition(".")[0] == "catboost":
            return ""  # its categories are texts, so a missing one has a text that only its owner knows
        raise  # the trees would take it somewhere, but the model does not
    except FairbitsError:
        return ""
    mine = fit_to_schema(loaded, schema, options=options)
    ours = mine.model.scores(mine.encoding.encode(codes))
    sums = isinstance(loaded.model, TreeModel) and loaded.model.ensemble.link == "logistic"
    if sums and options.output is None and ((theirs < 0) | (theirs > 1)).any():
        theirs = expit(theirs)  # trained for an objective of its own, it puts out the sums that a note calls logits
    apart = np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))
    if apart.max() <= _APART:
        return ""
    return f"its trees, as read, score somebody {apart.max():.2g} away from what it predicts."
