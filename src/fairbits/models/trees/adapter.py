"""Boosters in files and in memory as models: their trees where these say it all, else asked through their library.

A file's trees are compared with its library too, on rows of the owner's table, in a child process: the libraries'
readers trust a file more than ours do.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairbits import sandbox
from fairbits.domain import Encoding, Schema
from fairbits.errors import FairbitsError, MissingDependencyError, ModelError
from fairbits.functions import expit
from fairbits.models.black_box import reason
from fairbits.models.guards import options_after_trial
from fairbits.models.native.chain import NotNative
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner
from fairbits.models.predictors import RefusesMissing, from_predictor
from fairbits.models.probe import random_people
from fairbits.models.trees.ensemble import Damaged, Ensemble, TreeModel
from fairbits.models.trees.features import Read, encoding_for
from fairbits.models.trees.lightgbm import ensemble_of_text, is_lightgbm
from fairbits.models.trees.sklearn import ensemble_of_sklearn, is_sklearn_ensemble
from fairbits.models.trees.xgboost import document_of_bytes, ensemble_of_document, is_xgboost, missing_notes

#: How libraries are called by those who write them.
_NAMES = {"lightgbm": "LightGBM", "xgboost": "XGBoost", "catboost": "CatBoost"}


#: Files beyond this size are not read: 5 million nodes of the wordiest format fit.
MAX_BYTES = 2_000_000_000


def read_booster(file: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A booster's own file: LightGBM's text, XGBoost's JSON or UBJSON, CatBoost's .cbm or JSON."""
    size = file.stat().st_size
    if size > MAX_BYTES:
        raise ModelError(f"the model {str(file)!r} has {size:,} bytes, more than the {MAX_BYTES:,} that are read.")
    content = file.read_bytes()
    library = _library_named(content)
    if library == "catboost" and _installed("catboost"):
        # Its files are read with the help of the library, or by it alone.
        options = options_after_trial(file, schema, options, needs=("catboost",))
    try:
        read = _read_content(content, file, schema)
        loaded = tree_loaded(read, schema, options)
        if schema is None or loaded.encoding is None:
            return loaded
        taken = [attribute for i, attribute in enumerate(schema.attributes) if i not in loaded.encoding.unseen]
        notes = missing_notes(taken) if library == "xgboost" else ()
        loaded = replace(loaded, notes=(*loaded.notes, *notes))
        return _compared(loaded, read, library, file, schema, options)
    except NotNative as error:
        if _installed(library):
            options = options_after_trial(file, schema, options, needs=(library,))
        return _through_library(library, file, schema, options, str(error))
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


def _through_library(library: str, file: Path, schema: Schema | None, options: ModelOptions, why: str) -> Loaded:
    """A file whose trees do not say it all, asked through its own library, and the reason as a note."""
    model = _library_model(library, file)
    if schema is not None:
        note = f"the model is asked through its own library, not read: {why}"
        try:
            loaded = from_predictor(model, schema, options)
        except FairbitsError as error:
            raise type(error)(f"the model in {str(file)!r} is not read: {why} Nor can it be asked: {error}") from None
        return replace(loaded, notes=(*loaded.notes, note))
    return from_predictor(model, schema, options)


def _compared(loaded: Loaded, read: Read, library: str, file: Path, schema: Schema, options: ModelOptions) -> Loaded:
    """The trees that were read, with their library to be asked about the same inputs; a note where it is missing."""
    name = _NAMES[library]
    if not _installed(library):
        return replace(loaded, notes=(*loaded.notes, f"not compared with {name}: it is not installed."))
    texts = read.features.categories if library == "catboost" else {}
    order = None  # of several outputs, where ours stand in the schema's order
    if read.labels is not None and loaded.classes is not None and read.ensemble.outputs > 1:
        order = [read.labels.index(label) for label in loaded.classes]

    def ask(rows: Any) -> Any:
        memory = 2 * options.max_model_bytes
        job, given = f"{__name__}:answer", (library, file, np.asarray(rows, np.float64), texts)
        outcome = sandbox.try_out(job, given, seconds=options.max_seconds, memory=memory)
        if outcome.error is not None:
            raise outcome.error
        if outcome.fault:
            raise ModelError(f"{name} {outcome.fault}")
        found = np.array(outcome.known["answer"])
        return found if order is None else found[:, order]

    def instead(why: str) -> Loaded:
        return _through_library(library, file, schema, options, why)

    return replace(loaded, owner=Owner(ask, (), "inputs", library=instead))


def answer(given: Any, notify: sandbox.Notify) -> None:
    """In the child process: what the library says about rows of features."""
    library, file, rows, texts = given
    model = _library_model(library, file)
    if texts:  # CatBoost takes categories as texts; what is in none of its lists is new to it
        rows = rows.astype(object)
        for place, known in texts.items():
            rows[:, place] = ["\0" if np.isnan(number) else known[int(number)] for number in rows[:, place]]
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    notify(answer=np.asarray(ask(rows), np.float64).tolist())


def _installed(library: str) -> bool:
    """Whether a library is there, without importing it."""
    return importlib.util.find_spec(library) is not None


def _library_named(content: bytes) -> str:
    """The library whose file it is."""
    if content[:4] == b"CBM1" or b'"features_info"' in content[:100_000_000]:
        return "catboost"
    return "lightgbm" if is_lightgbm(content[:64].decode("utf-8", errors="replace")) else "xgboost"


def _library_model(name: str, file: Path) -> Any:
    """The library's own object for a file."""
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
