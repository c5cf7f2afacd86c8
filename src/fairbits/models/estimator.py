"""The fitted object of a library behind a model: found, given rows as it was trained on them, fitted again, written.

``refitted`` fits one of the same kind and size to soft targets without the protected columns. Tree models keep their
columns: the protected ones hold one value while they are fitted, so that no tree can split on them. Everything else is
cloned behind a step that drops them. Classes with shares of a person become rows of that person, weighted by the shares
(the expected log-loss is the same); an estimator that takes no weights gets labels drawn by them.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Doubles, Encoding, Schema, table_columns
from fairbits.errors import CapabilityError, FairbitsError, ModelError, foreign, reason
from fairbits.models.base import Model, kind_of
from fairbits.models.black_box import attribute
from fairbits.models.native.network import Network
from fairbits.models.options import DEFAULTS, ModelOptions
from fairbits.models.predictors import classes_of, named_frame, trained_on_categories
from fairbits.models.registry import PICKLES, is_url, read_object, settled_original, write_object
from fairbits.models.sklearn import is_pipeline, last_step, taken_apart, winner
from fairbits.models.trees.adapter import is_booster
from fairbits.models.trees.ensemble import TreeModel

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
        found = read_object(found, trust_pickle=options.trust_pickle)
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
    people: Codes,
) -> Feed:
    """How people become rows of a fitted estimator: whichever way gives back the model's scores."""
    names = attribute(estimator, "feature_names_in_")
    columns = None if names is None else tuple(map(str, names))
    framed: Callable[[Any], Any] = np.asarray if columns is None else named_frame(columns)
    by_category = trained_on_categories(estimator)  # codes tell a fitted model its categories, but nothing to a new one
    bare = not is_pipeline(estimator) and attribute(estimator, "_preprocessor") is None
    native = isinstance(model, Network | TreeModel) and bare and not by_category
    ways: list[Feed] = [lambda codes: framed(encoding.encode(codes))] if native else []
    chosen = columns or options.columns or table_columns(schema)
    if set(chosen) <= set(table_columns(schema)):
        categories = tuple(one.name for one in schema.attributes if one.kind == "category")
        for as_text, categorical in product(((), categories), (True,) if by_category else (False, True)):
            decoder = Decoder(schema, chosen, as_text=as_text, categorical=categorical)
            makes: list[Feed] = [] if options.input_format == "codes" else [decoder.array]
            if options.input_format != "array" and (columns is not None or options.input_format == "frame"):
                makes = makes and [decoder.frame]
            makes += [lambda codes, own=decoder: framed(own.numbers(codes))] if not by_category else []  # type: ignore[misc]
            ways += [lambda codes, make=make, own=decoder: make(own.encoding.encode(codes)) for make in makes]  # type: ignore[misc]
    if options.input_format == "codes":
        ways = ways[::-1]
    wanted = np.asarray(model.scores(encoding.encode(people)), np.float64).reshape(len(people), -1)[:, :1]
    complaint = "its answers differ from the model's"
    for way in ways:
        try:
            found = _answers(estimator, way(people)).reshape(len(people), -1)
        except FairbitsError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the last complaint is shown
            complaint = reason(error)
            continue
        if np.isclose(found, wanted, rtol=1e-3, atol=1e-3).all(axis=0).any():
            return way
    raise CapabilityError(
        f"{type(estimator).__name__} cannot be fitted again, because people cannot be given to it as it was trained on "
        f"them ({complaint.rstrip('.')})."
    )


def save_estimator(estimator: Any, path: str | Path) -> None:
    """Write a fitted estimator in the format that the ending names."""
    file, ending = Path(path), Path(path).suffix.lower()
    with foreign(f"a {type(estimator).__name__} cannot be written as {ending}"):
        if ending in _ENDINGS:
            write_object(estimator, file)
        elif ending in {".txt", ".json", ".ubj", ".cbm"} and not is_pipeline(estimator):
            getattr(estimator, "booster_", estimator).save_model(str(file))
        else:
            raise ModelError(f"a {type(estimator).__name__} has no {ending} format.")


def estimator_ending(estimator: Any, original: Any, options: ModelOptions) -> str:
    """The ending of the file that a refitted estimator goes to."""
    found = settled_original(original, options)
    if isinstance(found, Path) and found.suffix.lower() in _ENDINGS:
        return found.suffix.lower()
    endings = {"lightgbm": ".txt", "xgboost": ".json", "catboost": ".cbm"}
    return endings.get(type(estimator).__module__.partition(".")[0], ".skops")


def _answers(estimator: Any, rows: Any) -> Any:
    ask = attribute(estimator, "predict_proba")
    return np.asarray(ask(rows) if callable(ask) else estimator.predict(rows), dtype=np.float64).ravel()


def classes_in_order(
    estimator: Any, feed: Feed, model: Model, encoding: Encoding, schema: Schema, people: Codes
) -> Any:
    """What a fitted classifier calls the schema's classes, in their order."""
    if schema.regression:
        return None
    names = classes_of(estimator) or ()
    if len(names) != len(schema.classes):
        raise CapabilityError(
            f"{kind_of(model)!r} does not say which {len(schema.classes)} classes it knows, so it cannot be fitted "
            f"again."
        )
    classes = np.asarray(estimator.classes_)
    if set(names) == set(schema.classes):
        return classes[[names.index(name) for name in schema.classes]]
    if len(classes) != 2:
        return classes
    mine = schema.rule.decide(model.scores(encoding.encode(people)))
    said = np.asarray(estimator.predict(feed(people))).ravel()
    return classes if float((said == classes[mine]).mean()) >= 0.5 else classes[::-1]


#: Names of parameters that take a seed (also whatever ends in ``_seed``), and a number of threads.
_SEEDS, _THREADS = {"random_state", "random_seed", "seed"}, {"n_jobs", "thread_count", "num_threads", "nthread"}
#: Parameters that stop a training by rows of its own, which are not at hand when it is trained again.
_LIGHTGBM_STOPS = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")
_CATBOOST_STOPS = ("early_stopping_rounds", "od_wait", "od_pval", "od_type", "use_best_model", "eval_fraction")
_CATBOOST_TREES = ("iterations", "n_estimators", "num_boost_round", "num_trees")


def fresh_estimator(estimator: Any, seed: int) -> Any:
    """An unfitted copy of a fitted estimator: one thread, every seed in it the same, and as many trees as it kept."""
    with foreign(f"{type(estimator).__name__!r} cannot be cloned and trained again", CapabilityError):
        made = _unfitted(estimator)
        known = made.get_params()
    last = {name: name.rpartition("__")[2] for name in known}
    seeds = {name: seed for name, own in last.items() if own in _SEEDS or own.endswith("_seed")}
    single = {name: 1 for name, own in last.items() if own in _THREADS and known[name] != 1}
    return made.set_params(**seeds, **single)


def fit_again(estimator: Any, rows: Any, targets: Any, weights: Mapping[str, Any] | None = None) -> None:
    """Fit a copy, in place and on one core."""
    from threadpoolctl import threadpool_limits

    trouble = f"{type(estimator).__name__} could not be fitted again"
    with foreign(trouble, CapabilityError), threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether it converged shows in its figures
        estimator.fit(rows, targets, **(weights or {}))


def _unfitted(estimator: Any) -> Any:
    from sklearn.base import clone

    if is_pipeline(estimator):  # a step may be what scikit-learn cannot clone
        fresh = [(name, _unfitted(step)) for name, step in estimator.steps]
        return type(estimator)(**{**estimator.get_params(deep=False), "steps": fresh})
    if isinstance(estimator, str) or estimator is None:  # a step that does nothing
        return estimator
    library = type(estimator).__module__.partition(".")[0]
    if library == "catboost":
        return _fresh_catboost(estimator)
    settings = _lightgbm_settings(estimator) if library == "lightgbm" else {}
    if library == "xgboost" and attribute(estimator, "early_stopping_rounds") is not None:
        kept = attribute(estimator, "best_iteration")
        settings = {"early_stopping_rounds": None, **({} if kept is None else {"n_estimators": int(kept) + 1})}
    return clone(estimator).set_params(**settings) if settings else clone(estimator)


def _lightgbm_settings(estimator: Any) -> dict[str, Any]:
    """What a copy must be told: when to stop, and which numbers are categories, where ``fit`` alone was told."""
    found: dict[str, Any] = {name: 0 for name in _LIGHTGBM_STOPS if estimator.get_params().get(name)}
    kept, booster = attribute(estimator, "best_iteration_"), attribute(estimator, "booster_")
    found |= {"n_estimators": int(kept)} if kept else {}
    if booster is not None and not attribute(booster, "pandas_categorical"):
        about = booster.dump_model(num_iteration=1)["feature_infos"]
        places = [i for i, name in enumerate(booster.feature_name()) if about.get(name, {}).get("values")]
        found |= {"categorical_feature": places} if places else {}
    return found


def _fresh_catboost(estimator: Any) -> Any:
    """A CatBoost model names only parameters that were given, and its lists are copies, which ``clone`` refuses."""
    known = {name: value for name, value in estimator.get_params().items() if name not in _CATBOOST_STOPS}
    given = {"thread_count": 1, **({} if _SEEDS & set(known) else {"random_seed": 0}), **copy.deepcopy(known)}
    kept = attribute(estimator, "tree_count_")
    if kept:
        given[next((name for name in _CATBOOST_TREES if name in given), _CATBOOST_TREES[0])] = int(kept)
    places = [int(place) for place in estimator.get_cat_feature_indices()]  # also those named to ``fit`` alone
    return type(estimator)(**{**given, **({"cat_features": places} if places else {})})


#: Libraries whose estimators can be cloned: they tell their settings and take them back.
_LIBRARIES = {"sklearn", "lightgbm", "xgboost", "catboost"}
#: People on whom it is seen how rows are made for an estimator.
_TRIED = 64


def refitted(
    original: Any,
    model: Model,
    encoding: Encoding,
    schema: Schema,
    people: Codes,
    targets: Doubles,
    rng: np.random.Generator,
    *,
    options: ModelOptions = DEFAULTS,
) -> tuple[Any, str]:
    """A clone of the estimator behind a model fitted to soft targets, without the protected columns; and how, in
    words."""
    whole = opened_estimator(original, options)
    steps, final = taken_apart(whole)
    known = type(final).__module__.partition(".")[0] in _LIBRARIES
    if not known or not all(callable(attribute(final, name)) for name in ("fit", "get_params")):
        raise CapabilityError(
            f"{type(final).__name__!r} cannot be cloned and fitted again here (scikit-learn estimators can); the guard "
            f"itself works for it, and its own training without the protected columns is the place for a model of one "
            f"score a decision."
        )
    some = people[:_TRIED]
    feed = feed_of(whole, model, encoding, schema, options, some)
    classes = classes_in_order(whole, feed, model, encoding, schema, some)
    taught, labels, weights = _training_data(final, classes, people, targets, rng)
    seed = int(rng.integers(2**31))
    with foreign(f"{type(final).__name__} could not be fitted again"):
        if is_booster(final):
            held = taught.copy()
            held[:, schema.protected_columns] = [schema.attributes[i].first for i in schema.protected_columns]
            made = _trees(whole, steps, final, feed(held), labels, weights, seed)
            how = "that saw one value of the protected columns"
        else:
            made = _pipeline(whole, feed(taught), schema, options, labels, weights, seed)
            how = "without the protected columns"
    return made, f"a {type(final).__name__} of the same settings {how}, taught the average over twins"


def drops_protected(estimator: Any, schema: Schema, options: ModelOptions) -> bool:
    """Whether a fitted pipeline begins with scikit-learn's own step that passes on no protected column."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    if type(estimator) is not Pipeline or type(estimator.steps[0][1]) is not ColumnTransformer:
        return False
    fitted = attribute(estimator.steps[0][1], "transformers_")
    if not isinstance(fitted, list):
        return False
    protected = _protected(schema)
    columns = enumerate(options.columns or table_columns(schema))
    free = {one for pair in columns if pair[1] not in protected for one in pair}
    passed = [taken for _, step, taken in fitted if not (isinstance(step, str) and step == "drop")]
    return bool(passed) and all(
        isinstance(taken, list) and all(type(one) in (str, int) and one in free for one in taken) for taken in passed
    )


def _protected(schema: Schema) -> set[str]:
    """The protected columns of the table."""
    return {name for i in schema.protected_columns for name in schema.attributes[i].own_columns}


#: People, their labels, and what they weigh (None: all the same).
_TrainingData = tuple[Codes, npt.NDArray[Any], Doubles | None]


def _training_data(final: Any, labels: Any, people: Codes, targets: Doubles, rng: np.random.Generator) -> _TrainingData:
    """``labels`` are the estimator's own, in the order of the schema's classes; None for a regression."""
    from sklearn.utils.validation import has_fit_parameter

    if labels is None:
        return people, np.asarray(targets, np.float64), None
    n, classes = targets.shape
    if has_fit_parameter(final, "sample_weight"):
        weights = np.asarray(targets, np.float64).T.ravel()
        some = weights > 1e-6
        return np.tile(people, (classes, 1))[some], np.repeat(labels, n)[some], weights[some]
    sums = np.cumsum(targets, axis=1)
    drawn = (rng.random((n, 1)) * sums[:, -1:] > sums).sum(axis=1)
    return people, labels[np.minimum(drawn, classes - 1)], None


def _trees(
    whole: Any, steps: list[Any], final: Any, rows: Any, labels: npt.NDArray[Any], weights: Doubles | None, seed: int
) -> Any:
    """Trees fitted anew, behind the same fitted encoders."""
    for step in steps:
        rows = step.transform(rows)
    fresh = fresh_estimator(final, seed)
    fit_again(fresh, rows, labels, {} if weights is None else {"sample_weight": weights})
    if not steps:
        return fresh
    return copy.deepcopy(whole).set_params(**{last_step(whole)[0].removesuffix("__"): fresh})


def _pipeline(
    whole: Any,
    rows: Any,
    schema: Schema,
    options: ModelOptions,
    labels: npt.NDArray[Any],
    weights: Doubles | None,
    seed: int,
) -> Any:
    """A clone of everything behind a step that drops the protected columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    framed = hasattr(rows, "columns")
    names = list(rows.columns) if framed else list(options.columns or table_columns(schema))
    every = names if framed else list(range(len(names)))
    gone = {column for column, name in zip(every, names, strict=True) if name in _protected(schema)}
    kept = [column for column in every if column not in gone]
    drop = ColumnTransformer([("kept", "passthrough", kept)], verbose_feature_names_out=False)
    if framed:
        drop.set_output(transform="pandas")
    inner = fresh_estimator(whole, seed)
    _strip(inner, gone, framed=framed)
    made = Pipeline([("without_protected", drop), ("model", inner)])
    weighted = {} if weights is None else {f"model__{last_step(inner)[0]}sample_weight": weights}
    fit_again(made, rows, labels, weighted)
    return made


def _strip(estimator: Any, gone: set[Any], *, framed: bool) -> None:
    """Take the dropped columns out of every column transformer that names them."""
    for _, step in getattr(estimator, "steps", ()):
        _strip(step, gone, framed=framed)
    listed = attribute(estimator, "transformers")
    if not isinstance(listed, list):
        return
    changed = []
    for name, step, columns in listed:
        left: Any = columns
        if not callable(columns):
            wanted = [columns] if isinstance(columns, str) else list(columns)
            if not framed or not all(isinstance(column, str) for column in wanted):
                raise CapabilityError(
                    "its encoders take columns by their numbers, which change when protected ones are dropped; name "
                    "the columns in the pipeline to have it distilled."
                )
            left = [column for column in wanted if column not in gone]
        changed += [(name, step, left)] if left else []
    estimator.set_params(transformers=changed)
