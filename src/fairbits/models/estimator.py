"""The fitted object of a library behind a model: found again, given rows as it was trained on them, and written."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Codes, Decoder, Encoding, Schema, table_columns, text_of
from fairbits.errors import CapabilityError, FairbitsError, ModelError
from fairbits.models.base import Model, kind_of
from fairbits.models.black_box import attribute, reason
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.original import settled_original
from fairbits.models.pickles import PICKLES, read_pickle, read_skops, write_pickle, write_skops
from fairbits.models.predictor_facts import trained_on_categories
from fairbits.models.registry import is_url
from fairbits.models.sklearn_pipelines import winner
from fairbits.models.trees.model import TreeModel

#: Files of estimators that can be read as objects.
_ENDINGS = {".skops", *PICKLES}
#: What every estimator has that can be cloned and fitted again.
_METHODS = ("fit", "predict", "get_params", "set_params")


#: Rows as codes to rows as the estimator takes them.
Feed = Callable[[Codes], Any]


def opened_estimator(original: Any, options: ModelOptions) -> Any:
    """The object that a model was read from: a file opened, a reference followed, a finished search's winner."""
    if original is None or (isinstance(original, str) and is_url(original)):
        raise CapabilityError(
            f"{'a model of unknown origin' if original is None else 'an endpoint'} does not show how it was trained, "
            f"so it cannot be fitted again here; give the scikit-learn style estimator (an object, .skops or .joblib)."
        )
    found = settled_original(original, options)
    if isinstance(found, Path):
        suffix = found.suffix.lower()
        if suffix not in _ENDINGS:
            raise CapabilityError(
                f"a {suffix or 'file without ending'} is a finished model that has no fit of its own, so it cannot be "
                f"fitted again; give the scikit-learn style estimator (.skops, .joblib, or the object)."
            )
        read = read_skops if suffix == ".skops" else read_pickle
        found = read(found, trust_pickle=options.trust_pickle)
    return winner(found)


def estimator_of(original: Any, model: Model, options: ModelOptions) -> Any:
    """The fitted estimator that a model was read from, which can be cloned and fitted again."""
    found = opened_estimator(original, options)
    if isinstance(found, type) or not all(callable(attribute(found, name)) for name in _METHODS):
        kind = kind_of(model) if found is None else type(found).__name__
        raise CapabilityError(
            f"{kind!r} has no fit of its own, so it cannot be trained again here; give the scikit-learn style "
            f"estimator."
        )
    return found


def feed_of(
    estimator: Any,
    model: Model,
    encoding: Encoding,
    schema: Schema,
    options: ModelOptions,
    *,
    people: Codes | None = None,
    learned: bool = False,
) -> Feed:
    """How people become rows of a fitted estimator."""
    names = attribute(estimator, "feature_names_in_")
    columns = None if names is None else tuple(str(name) for name in names)
    someone = np.array([[one.first for one in schema.attributes]]) if people is None else people
    ways: list[Feed] = []
    bare = attribute(estimator, "steps") is None and attribute(estimator, "_preprocessor") is None
    by_category = trained_on_categories(estimator)
    if isinstance(model, Network | TreeModel) and bare and not (learned and by_category):
        ways.append(lambda codes: _framed(encoding.encode(codes), columns))
    chosen = columns or options.columns or table_columns(schema)
    categories = tuple(one.name for one in schema.attributes if one.kind == "category")
    known = set(table_columns(schema))
    if set(chosen) <= known:
        for as_text, categorical in product(((), categories), (True,) if by_category else (False, True)):
            decoder = Decoder(schema, chosen, as_text=as_text, categorical=categorical)
            seen = [schema.column(name) for name in decoder.names]
            formats = [decoder.frame] if columns is not None else [decoder.array]
            formats = {"frame": [decoder.frame], "array": [decoder.array], "codes": []}.get(
                options.input_format or "", formats
            )
            ways += [lambda codes, seen=seen, decode=decode: decode(codes[:, seen]) for decode in formats]  # type: ignore[misc]
            if not (learned and by_category):
                ways.append(lambda codes, seen=seen, own=decoder: _framed(own.numbers(codes[:, seen]), columns))  # type: ignore[misc]
    if options.input_format == "codes":
        ways = ways[::-1]
    wanted = np.asarray(model.scores(encoding.encode(someone)), np.float64).reshape(len(someone), -1)[:, :1]
    complaint = "its answers differ from the model's"
    for way in ways:
        try:
            found = _answers(estimator, way(someone))
        except FairbitsError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the last complaint is shown
            complaint = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            continue
        if np.isclose(found.reshape(len(someone), -1), wanted, rtol=1e-3, atol=1e-3).all(axis=0).any():
            return way
    raise CapabilityError(
        f"{type(estimator).__name__} cannot be fitted again, because people cannot be given to it as it was trained on "
        f"them ({complaint.rstrip('.')})."
    )


def save_estimator(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator in the format that the ending names."""
    file = Path(path)
    ending = file.suffix.lower()
    try:
        if ending == ".skops":
            write_skops(estimator, file)
        elif ending in PICKLES:
            write_pickle(estimator, file)
        elif ending in {".txt", ".json", ".ubj", ".cbm"} and not hasattr(estimator, "steps"):
            booster = estimator.booster_ if hasattr(estimator, "booster_") else estimator
            booster.save_model(str(file))
        else:
            raise ModelError(f"a {type(estimator).__name__} has no {ending} format.")
    except FairbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise ModelError(f"a {type(estimator).__name__} cannot be written as {ending}: {reason(error)}") from None


def estimator_ending(estimator: Any, original: Any, options: ModelOptions) -> str:
    """The ending of the file that a refitted estimator goes to."""
    found = settled_original(original, options)
    if isinstance(found, Path) and found.suffix.lower() in _ENDINGS:
        return found.suffix.lower()
    home = type(estimator).__module__.partition(".")[0]
    return {"lightgbm": ".txt", "xgboost": ".json", "catboost": ".cbm"}.get(home, ".skops")


def _framed(rows: Any, columns: tuple[str, ...] | None) -> Any:
    if columns is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))


def _answers(estimator: Any, rows: Any) -> Any:
    ask = attribute(estimator, "predict_proba")
    return np.asarray(ask(rows) if callable(ask) else estimator.predict(rows), dtype=np.float64).ravel()


def classes_in_order(
    estimator: Any, feed: Feed, model: Model, encoding: Encoding, schema: Schema, people: Codes
) -> Any:
    """What a fitted classifier calls the schema's classes, in their order."""
    if schema.regression:
        return None
    own = attribute(estimator, "classes_")
    if own is None or len(own) != len(schema.classes):
        raise CapabilityError(
            f"{kind_of(model)!r} does not say which {len(schema.classes)} classes it knows, so it cannot be fitted "
            f"again."
        )
    classes = np.asarray(own)
    names = [text_of(one) for one in classes.tolist()]
    if set(names) == set(schema.classes):
        return classes[[names.index(name) for name in schema.classes]]
    if len(classes) != 2:
        return classes
    mine = schema.rule.decide(model.scores(encoding.encode(people)))
    said = np.asarray(estimator.predict(feed(people))).ravel()
    return classes if float((said == classes[mine]).mean()) >= 0.5 else classes[::-1]
