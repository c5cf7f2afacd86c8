"""scikit-learn, bare or behind encoders: native where it can be read as a network or trees, else a black box."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Encoding, Schema, table_columns, text_of
from fairbits.errors import FairbitsError, ModelError
from fairbits.models.black_box import attribute, reason
from fairbits.models.dummies import dummy_encoding
from fairbits.models.native.chain import NotNative
from fairbits.models.native.network import Network
from fairbits.models.options import InputFormat, ModelOptions
from fairbits.models.outputs import Loaded, Owner, column_note
from fairbits.models.predictor_facts import names_of
from fairbits.models.predictors import checked_columns, from_predictor, named_frame
from fairbits.models.probe import NotColumnwise, RefusedRows, Transform, encoding_of, inputs_of
from fairbits.models.sklearn_networks import LOGISTIC, is_linear, is_perceptron, network_of_linear, network_of_sklearn
from fairbits.models.sklearn_pipelines import final_of, is_pipeline, taken_apart, winner
from fairbits.models.trees.adapter import disagreement, from_booster, is_booster, read_object, settled, with_encoding
from fairbits.models.trees.behind import trees_behind
from fairbits.models.trees.ensemble import Ensemble
from fairbits.models.trees.model import TreeModel
from fairbits.models.trees.scorecard import scorecard_of

_Read = TypeVar("_Read")
Names = tuple[str, ...] | None

#: Steps that look at one column at a time. Tables are asked for, so their settings do not matter here.
_COLUMNWISE = {
    *("ColumnTransformer", "Pipeline", "FunctionTransformer", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder"),
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer", "KBinsDiscretizer"),
    *("PowerTransformer", "QuantileTransformer", "Binarizer", "MissingIndicator", "VarianceThreshold"),
    *("SplineTransformer", "SelectKBest", "SelectPercentile", "SelectFromModel", "RFE", "RFECV", "SelectFpr"),
    *("SelectFdr", "SelectFwe", "GenericUnivariateSelect", "SequentialFeatureSelector"),
}


def from_sklearn(estimator: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """Any fitted scikit-learn model, native where it is a perceptron, linear or trees behind column-wise encoders."""
    estimator = winner(estimator)
    loaded = _read(estimator, schema, options)
    threshold = own_threshold(estimator)
    if schema is None:
        return loaded
    owner = loaded.owner or _owner(estimator, schema, options)
    return replace(loaded, owner=owner, threshold=threshold)


def _owner(estimator: Any, schema: Schema, options: ModelOptions) -> Owner | None:
    """A model that was read, asked through its library with the owner's rows."""
    names = names_of(estimator)
    spread = None if names is None or options.columns else dummy_encoding(names, schema)
    if options.input_format == "codes":
        return None
    ask = attribute(estimator, "predict_proba") if schema.classes else None

    def library(why: str) -> Loaded:
        return _asked(estimator, schema, options, why)

    columns = options.columns or (tuple(names) if names is not None and spread is None else table_columns(schema))
    asked = ask if callable(ask) else estimator.predict
    form: Any = "dummies" if spread is not None else "array" if names is None else "frame"
    return Owner(asked, columns, options.input_format or form, tuple(names or ()), library=library)


def own_threshold(estimator: Any) -> float | None:
    """The cut-off of a classifier that decides by another than one half, on the probability of its last class."""
    final = final_of(estimator)
    name = {"TunedThresholdClassifierCV": "best_threshold_", "FixedThresholdClassifier": "threshold"}
    found = attribute(final, name.get(type(final).__name__, ""))
    if not isinstance(found, float | np.number) or attribute(final, "response_method") == "decision_function":
        return None
    if not callable(attribute(estimator, "predict_proba")):
        return None  # its decisions are asked for
    first = text_of(attribute(final, "pos_label")) == text_of(next(iter(final.classes_)))
    return float(np.nextafter(1 - found, np.inf)) if first else float(found)


def _read(estimator: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    steps, final = taken_apart(estimator)
    if is_booster(final):
        return _trees(estimator, steps, final, schema, options)
    if not is_perceptron(final) and not is_linear(final):
        return _asked(estimator, schema, options, _no_reader(final))
    try:
        network = network_of_sklearn(final) if is_perceptron(final) else network_of_linear(final)
    except FairbitsError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = type(final).__name__
        raise ModelError(
            f"the weights of the {what} cannot be read ({reason(error)}); fit and save it again."
        ) from None
    classes = getattr(final, "classes_", None)
    names = None if classes is None else tuple(text_of(value) for value in np.asarray(classes).tolist())
    if schema is None:
        if steps:
            raise ModelError(
                "a pipeline with encoders needs the schema of its columns; load it with load_with_encoding."
            )
        chosen = network if options.favourable is None else network.with_favourable(options.favourable)
        return Loaded(chosen, None, names)
    if not steps:
        return Loaded(network, _bare(estimator, schema, options), names)
    return _encoded(estimator, steps, network, names, schema, options)


def _encoded(
    estimator: Any, steps: list[Any], network: Network, names: Names, schema: Schema, options: ModelOptions
) -> Loaded:
    """A network behind encoders: with their tables, as a scorecard, else a black box, with the reason as a note."""
    notes = _order_note(estimator, schema, options)
    try:
        return Loaded(network, _behind(estimator, steps, schema, options, encoding_of), names, notes)
    except NotColumnwise as error:
        why = str(error)
    try:
        model, encoding = _scorecard(estimator, steps, network, schema, options)
    except NotNative:
        return _asked(estimator, schema, options, why)
    return Loaded(model, encoding, names, notes)


def _trees(estimator: Any, steps: list[Any], final: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A tree model: its own trees where they say it all, else a black box, with the reason as a note."""
    try:
        loaded = _native_trees(estimator, steps, final, schema, options)
    except NotNative as error:
        why = str(error)
    else:
        if schema is None or options.input_format is not None:
            return loaded
        why = disagreement(loaded, estimator, schema, options)
        if not why:
            return loaded
    return _asked(estimator, schema, options, why)


def _no_reader(final: Any) -> str:
    """Why a model is not read into layers or trees."""
    kind = type(final).__name__
    if kind in LOGISTIC or kind == "SGDClassifier":
        return f"this {kind} does not end in one sigmoid or softmax (its loss, or its way with several classes)."
    if hasattr(final, "decision_function") and not hasattr(final, "predict_proba"):
        return f"{kind} gives no probabilities that a reader here could make."
    return f"{kind} is neither linear nor a perceptron nor one of the tree models that have a reader here."


def _asked(estimator: Any, schema: Schema | None, options: ModelOptions, why: str) -> Loaded:
    """The model as a black box, and why it is one."""
    box = from_predictor(estimator, schema, options)
    if schema is None:  # a bare model has no place for notes
        return box
    return replace(box, notes=(*box.notes, f"the model is asked through its own library, not read: {why}"))


def _native_trees(estimator: Any, steps: list[Any], final: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    prepares = getattr(final, "_preprocessor", None) is not None  # HistGradientBoosting encodes categories itself
    if schema is None:
        if steps or prepares:
            raise ModelError(
                "a pipeline with encoders needs the schema of its columns; load it with load_with_encoding."
            )
        return from_booster(final, schema, options)
    if not steps and not prepares:
        return from_booster(final, schema, options)
    read = settled(read_object(final, schema), schema, options)

    def behind(transform: Transform, schema: Schema, columns: Iterable[str]) -> tuple[Ensemble, Encoding]:
        return trees_behind(read.ensemble, transform, schema, tuple(columns), steps)

    ensemble, encoding = _behind(estimator, steps, schema, options, behind, exact=True)
    read = replace(read, ensemble=ensemble)
    return with_encoding(read, encoding, schema, (*read.notes, *_order_note(estimator, schema, options)))


def _bare(estimator: Any, schema: Schema, options: ModelOptions) -> Encoding | None:
    """A perceptron trained on a frame knows its columns; one trained on an array is matched by their number."""
    if options.columns is not None or not hasattr(estimator, "feature_names_in_"):
        return None
    spread = dummy_encoding(estimator.feature_names_in_, schema)
    if spread is not None:
        return spread
    return Encoding.of_columns(schema, checked_columns(estimator.feature_names_in_, schema))


def _scorecard(
    estimator: Any, steps: list[Any], network: Network, schema: Schema, options: ModelOptions
) -> tuple[TreeModel, Encoding]:
    """A linear model of bins as trees."""
    edges = _edges(steps)
    if len(network.weights) > 1 or network.head == "softmax" or edges is None:
        raise NotColumnwise
    final = final_of(estimator)
    weights, start = np.ravel(final.coef_).astype(np.float64), float(np.ravel(final.intercept_)[0])

    def read(transform: Transform, schema: Schema, columns: Iterable[str]) -> tuple[Ensemble, Encoding]:
        def sums(codes: Codes) -> npt.NDArray[np.float64]:
            return np.asarray(inputs_of(transform, codes, schema).astype(np.float64) @ weights + start)

        return scorecard_of(sums, schema, columns, edges, link="logistic" if network.head == "sigmoid" else "identity")

    ensemble, encoding = _behind(estimator, steps, schema, options, read)
    classes = 2 if network.head == "sigmoid" else 0
    return TreeModel(ensemble, classes, name=f"the {type(final).__name__} over bins"), encoding


def _edges(steps: list[Any]) -> npt.NDArray[np.float64] | None:
    """The values at which bins begin; None where they are not those of the table, because others were made first."""
    found, kept = [np.empty(0)], True
    for step in steps:
        if type(step).__name__ in ("KBinsDiscretizer", "Binarizer") and not kept:
            return None
        inner = [entry[1] for entry in getattr(step, "transformers_", getattr(step, "steps", []))]
        if type(step).__name__ == "KBinsDiscretizer":
            found += [np.asarray(edges, dtype=np.float64) for edges in step.bin_edges_]
        elif type(step).__name__ == "Binarizer":
            found.append(np.array([step.threshold], dtype=np.float64))
        chains = [inner] if type(step).__name__ == "Pipeline" else [[one] for one in inner]
        for chain in chains:
            edges = _edges(chain)
            if edges is None or (len(edges) and not kept):
                return None
            found.append(edges)
        kept = kept and _keeps_values(step)
    return np.concatenate(found)


def _keeps_values(step: Any) -> bool:
    """Whether columns leave a step with the values that they had, gaps apart."""
    if step in (None, "passthrough", "drop") or type(step).__name__ == "SimpleImputer":
        return True
    inner = [entry[1] for entry in getattr(step, "transformers_", getattr(step, "steps", []))]
    return bool(inner) and all(_keeps_values(one) for one in inner)


def _behind(
    estimator: Any,
    steps: list[Any],
    schema: Schema,
    options: ModelOptions,
    read: Callable[[Transform, Schema, Iterable[str]], _Read],
    *,
    exact: bool = False,
) -> _Read:
    """What is read off the encoders, asked with rows as they take them; NotColumnwise where a step mixes columns."""
    if not all(_columnwise(step) for step in steps):
        raise NotColumnwise
    names = getattr(estimator, "feature_names_in_", None)
    columns = checked_columns(names, schema) if names is not None else options.columns or table_columns(schema)
    _check_width(estimator, columns, schema)

    def asked(as_text: tuple[str, ...]) -> _Read:
        by_dtype = exact and not as_text and _by_dtype(estimator)
        # What a step makes of a float32 is read off exact numbers, and held against real rows afterwards.
        decoder = Decoder(schema, columns, as_text=as_text, categorical=by_dtype, typed=False)
        way: InputFormat = options.input_format or ("array" if names is None else "frame")
        decode = _rows_of(decoder, way, names)
        seen = [schema.column(name) for name in decoder.names]
        return read(lambda codes: _transform(estimator, decode(codes[:, seen])), schema, decoder.names)

    try:
        try:
            return asked(())
        except ModelError:
            # Labels such as "1" may have been text when the encoders were fitted; if that is no better, say the first.
            categories = tuple(a.name for a in schema.attributes if a.kind == "category")
            try:
                return asked(categories)
            except ModelError:
                pass
            raise
    except RefusedRows as error:
        if options.input_format is not None:
            raise
        raise ModelError(
            f"{str(error).rstrip('.')}; if it was trained on codes that number the labels as the schema does, say "
            f'input_format = "codes" under [model].'
        ) from error


def _order_note(estimator: Any, schema: Schema, options: ModelOptions) -> tuple[str, ...]:
    """A pipeline that was fitted on an array gets the table's columns in their order."""
    return () if hasattr(estimator, "feature_names_in_") else column_note(table_columns(schema), options)


def _rows_of(decoder: Decoder, way: InputFormat, names: Any) -> Callable[[Any], Any]:
    """Codes to rows as the encoders take them; encoders that were fitted on a frame find their columns by name."""
    if way != "codes":
        return decoder.frame if way == "frame" else decoder.array
    if names is None:
        return decoder.numbers
    frame = named_frame(names)
    return lambda codes: frame(decoder.numbers(codes))


def _transform(estimator: Any, rows: Any) -> Any:
    while is_pipeline(estimator):
        for _, step in estimator.steps[:-1]:
            rows = rows if step in (None, "passthrough") else step.transform(rows)
        estimator = estimator.steps[-1][1]
    if getattr(estimator, "_preprocessor", None) is not None:
        rows = estimator._preprocess_X(rows, reset=False)
    return rows


def _by_dtype(estimator: Any) -> bool:
    """Whether it takes pandas categories for categories."""
    return bool(getattr(estimator, "categorical_features", None) == "from_dtype")


def _check_width(estimator: Any, columns: tuple[str, ...], schema: Schema) -> None:
    wanted = getattr(estimator, "n_features_in_", len(columns))
    if wanted != len(columns):
        raise ModelError(
            f"the pipeline takes {wanted} columns, but the schema has {len(schema)} attributes "
            f"({', '.join(schema.names)}); list those that it sees under [model] columns."
        )


def _columnwise(step: Any) -> bool:
    if step in (None, "passthrough", "drop"):
        return True
    if type(step).__name__ not in _COLUMNWISE or not type(step).__module__.startswith("sklearn."):
        return False
    if type(step).__name__ == "FunctionTransformer":
        return step.func is None
    inner = [entry[1] for entry in getattr(step, "transformers_", getattr(step, "steps", []))]
    return all(_columnwise(entry) for entry in inner)
