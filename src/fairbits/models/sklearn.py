"""scikit-learn, bare or behind encoders: native where it can be read as a network or trees, else a black box.

Trees behind encoders take the way that the encoders themselves tell of every value of an attribute. A split compares
what the encoders make of a value, in the library's precision. Computing that again by another formula, or moving
thresholds back through one, is off by a rounding error, and a row whose value lies on a threshold (trees take their
thresholds from rows) then takes the wrong way. So no formula is used. Attributes of few values become tables of what
the encoders make of each. A real one goes through steps that never turn two values round (``MONOTONE``): for each
split, the last value that goes left is found by halving, down to neighbouring floats, and becomes the threshold.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fairbits.domain import (
    ABOVE_HALF,
    Codes,
    Decoder,
    Doubles,
    Encoding,
    Integers,
    Numeric,
    Part,
    Schema,
    Unseen,
    table_columns,
    text_of,
)
from fairbits.errors import FairbitsError, ModelError, foreign
from fairbits.functions import in_order
from fairbits.models.black_box import attribute, homes_of
from fairbits.models.inputs import (
    PEOPLE,
    Encoders,
    NotColumnwise,
    RefusedRows,
    Transform,
    encoding_of,
    random_people,
    remedy_for_labels,
)
from fairbits.models.native.chain import NotNative
from fairbits.models.native.network import Head, Network
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner, column_note, fit_to_schema
from fairbits.models.predictors import checked_columns, classes_of, decoding, dummy_encoding, from_predictor, names_of
from fairbits.models.registry import read_object as read_fitted
from fairbits.models.registry import write_object
from fairbits.models.trees.adapter import disagreement, from_booster, is_booster, read_object, settled, with_encoding
from fairbits.models.trees.ensemble import NAN, ZERO, Ensemble


def is_pipeline(estimator: Any) -> bool:
    """Whether it is a pipeline: ``steps`` are pairs of a name and a step, and not just any attribute of that name."""
    steps = attribute(estimator, "steps")
    return isinstance(steps, list) and bool(steps) and all(isinstance(s, tuple) and len(s) == 2 for s in steps)


def winner(estimator: Any) -> Any:
    """The best estimator of a finished search over settings; anything else stands for itself."""
    found = attribute(estimator, "best_estimator_")
    return found if callable(attribute(found, "predict")) else estimator


def taken_apart(estimator: Any) -> tuple[list[Any], Any]:
    """The encoders in front, and what stands at the end of the pipeline."""
    steps: list[Any] = []
    while is_pipeline(estimator):
        steps += [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        estimator = estimator.steps[-1][1]
    return steps, estimator


def last_step(estimator: Any) -> tuple[str, Any]:
    """The last step of a pipeline, and what the names of its parameters begin with."""
    if not is_pipeline(estimator):
        return "", estimator
    name, step = estimator.steps[-1]
    prefix, final = last_step(step)
    return f"{name}__{prefix}", final


_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "logistic": "sigmoid", "identity": "identity"}
_HEADS: dict[str, Head] = {"softmax": "softmax", "logistic": "sigmoid", "identity": "linear"}
LOGISTIC = {"LogisticRegression", "LogisticRegressionCV"}
_REGRESSIONS = {
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "SGDRegressor"),
    *(
        "HuberRegressor",
        "QuantileRegressor",
        "BayesianRidge",
        "ARDRegression",
        "TheilSenRegressor",
        "Lars",
        "LassoLars",
    ),
}


def is_perceptron(estimator: Any) -> bool:
    """Whether a model has the attributes of an MLPClassifier or MLPRegressor."""
    marks = ("activation", "hidden_layer_sizes", "solver")
    return "sklearn" in homes_of(estimator) and all(hasattr(estimator, name) for name in marks)


def is_linear(estimator: Any) -> bool:
    """Whether its score is a weighted sum of its inputs, behind a sigmoid or softmax where it classifies."""
    kind = type(estimator)
    if not kind.__module__.startswith("sklearn.linear_model.") or not hasattr(estimator, "coef_"):
        return False
    single = int(np.prod(np.shape(estimator.coef_)[:-1])) == 1  # one output for a flat list
    if kind.__name__ in LOGISTIC:
        one_by_one = getattr(estimator, "solver", "") == "liblinear" or getattr(estimator, "multi_class", "") == "ovr"
        return single or not one_by_one
    sigmoid = kind.__name__ == "SGDClassifier" and estimator.loss == "log_loss"  # of several classes no softmax
    return single and (sigmoid or kind.__name__ in _REGRESSIONS)


def network_of_sklearn(estimator: Any) -> Network:
    """A linear or logistic model, or a perceptron, as a network; class order as in ``classes_``."""
    kind = type(estimator).__name__
    if is_linear(estimator):
        weights = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64)).T
        biases = np.broadcast_to(np.asarray(estimator.intercept_, dtype=np.float64).ravel(), weights.shape[1])
        ends: Head = "sigmoid" if weights.shape[1] == 1 else "softmax"
        return Network.build([weights], [biases], head=ends if hasattr(estimator, "classes_") else "linear")
    if not is_perceptron(estimator):
        raise ModelError(f"{kind} is not a multi-layer perceptron; give an MLPClassifier or MLPRegressor.")
    if not hasattr(estimator, "coefs_"):
        raise ModelError(f"this {kind} has not been fitted; call fit() before handing it over.")
    head = _HEADS[estimator.out_activation_]
    if estimator.n_outputs_ > 1 and head != "softmax":
        raise ModelError(f"this {kind} predicts {estimator.n_outputs_} targets at once; give a model with one.")
    activation = _ACTIVATIONS[estimator.activation]
    return Network.build(estimator.coefs_, estimator.intercepts_, activation=activation, head=head)


def with_weights(estimator: Any, network: Network) -> Any:
    """A copy of a model or pipeline whose last step has a network's weights; unchanged ones keep every bit."""
    changed = copy.deepcopy(estimator)
    final = taken_apart(winner(changed))[1]
    if [w.shape for w in network_of_sklearn(final).weights] != [w.shape for w in network.weights]:
        raise ModelError(f"the original model has other layers than the network, whose widths are {network.widths}.")
    if is_linear(final):
        final.coef_, biases = _kept(final.coef_, network.weights[0].T), _kept(final.intercept_, network.biases[0])
        final.intercept_ = biases if np.ndim(biases) else float(biases)
    else:
        final.coefs_ = list(map(_kept, final.coefs_, network.weights))
        final.intercepts_ = list(map(_kept, final.intercepts_, network.biases))
    return changed


def rewrite_sklearn(network: Network, original: Any, path: Path, options: ModelOptions) -> None:
    if isinstance(original, Path):
        original = read_fitted(original, trust_pickle=options.trust_pickle)
    write_object(with_weights(original, network), path)


def _kept(old: Any, new: Any) -> Any:
    """New numbers in the shape and type of the old ones, where they differ from these as float32."""
    before = np.asarray(old)
    after = np.reshape(new, before.shape)
    return np.where(before.astype(np.float32) == after, before, after).astype(before.dtype)


_Read = TypeVar("_Read")

#: Steps that look at one column at a time. Tables are asked for, so their settings do not matter here.
_COLUMNWISE = {
    *("FunctionTransformer", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder"),
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "SimpleImputer", "KBinsDiscretizer"),
    *("PowerTransformer", "QuantileTransformer", "Binarizer", "MissingIndicator", "VarianceThreshold"),
    *("SplineTransformer", "SelectKBest", "SelectPercentile", "SelectFromModel", "RFE", "RFECV", "SelectFpr"),
    *("SelectFdr", "SelectFwe", "GenericUnivariateSelect", "SequentialFeatureSelector"),
}


def from_sklearn(estimator: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """Any fitted scikit-learn model, native where it is a perceptron, linear or trees behind column-wise encoders."""
    estimator = winner(estimator)
    loaded = _read(estimator, schema, options)
    if schema is None:
        return loaded
    owner = loaded.owner or _owner(estimator, schema, options)
    if owner is not None and schema.classes and callable(attribute(estimator, "predict_proba")):
        owner = replace(owner, decide=attribute(estimator, "predict"))
    return replace(loaded, owner=owner, threshold=own_threshold(estimator))


def _owner(estimator: Any, schema: Schema, options: ModelOptions) -> Owner | None:
    """A model that was read, asked through its library with the owner's rows."""
    if options.input_format == "codes":
        return None
    names = names_of(estimator, schema)
    spread = None if names is None or options.columns else dummy_encoding(names, schema)
    ask = attribute(estimator, "predict_proba") if schema.classes else None
    columns = options.columns or (names if names is not None and spread is None else table_columns(schema))
    form: Any = "dummies" if spread is not None else "array" if names is None else "frame"
    return Owner(
        ask if callable(ask) else estimator.predict,
        columns,
        options.input_format or form,
        names or (),
        library=lambda why: _asked(estimator, schema, options, why),
    )


#: Their probabilities are shares or steps, so ties are common; `predict` gives them to the first class.
_SHARES = {
    *("DecisionTreeClassifier", "ExtraTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier"),
    *("BaggingClassifier", "KNeighborsClassifier", "RadiusNeighborsClassifier", "VotingClassifier"),
    *("CalibratedClassifierCV", "OneVsRestClassifier", "LabelPropagation", "LabelSpreading"),
}


def own_threshold(estimator: Any) -> float | None:
    """The cut-off of a classifier that decides by another than one half, on the probability of its last class."""
    final = taken_apart(winner(estimator))[1]
    if type(final).__name__ in _SHARES:
        return ABOVE_HALF
    if type(final).__name__ == "CatBoostClassifier" and len(final.classes_) == 2:
        known = final.get_probability_threshold()  # above which it decides for the last class
        return None if known == 0.5 else float(np.nextafter(known, np.inf))
    name = {"TunedThresholdClassifierCV": "best_threshold_", "FixedThresholdClassifier": "threshold"}
    found = attribute(final, name.get(type(final).__name__, ""))
    if not isinstance(found, float | np.number) or attribute(final, "response_method") == "decision_function":
        return None
    if not callable(attribute(estimator, "predict_proba")):
        return None  # its decisions are asked for
    first = text_of(attribute(final, "pos_label")) == text_of(next(iter(final.classes_)))
    return float(np.nextafter(1 - found, np.inf)) if first else float(found)


def _read(estimator: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A network or trees where they say it all, else a black box, with the reason as a note."""
    steps, final = taken_apart(estimator)
    trees = is_booster(final)
    if not trees and not is_perceptron(final) and not is_linear(final):
        return _asked(estimator, schema, options, _no_reader(final))
    if schema is None and (steps or _prepares(final)):
        raise ModelError("a pipeline with encoders needs the schema of its columns; load it with load_with_encoding.")
    try:
        loaded = (_trees if trees else _network)(estimator, steps, final, schema, options)
    except NotNative as error:
        return _asked(estimator, schema, options, str(error))
    except RefusedRows as error:
        return _asked_after(error, estimator, schema, options)
    if not trees or schema is None or options.input_format is not None:
        return loaded
    why = disagreement(loaded, estimator, schema, options)
    return _asked(estimator, schema, options, why) if why else loaded


def _network(estimator: Any, steps: list[Any], final: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    with foreign(f"the weights of the {type(final).__name__} cannot be read; fit and save it again"):
        network = network_of_sklearn(final)
    if schema is None:
        chosen = network if options.favourable is None else network.with_favourable(options.favourable)
        return Loaded(chosen, None, classes_of(final))
    if not steps:
        return Loaded(network, _bare(estimator, schema, options), classes_of(final))
    encoding = _behind(estimator, steps, schema, options, encoding_of)
    return Loaded(network, encoding, classes_of(final), _order_note(estimator, schema, options))


def _trees(estimator: Any, steps: list[Any], final: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    if schema is None or not (steps or _prepares(final)):
        return from_booster(final, schema, options)
    read = settled(read_object(final), schema, options)
    ensemble, encoding = _behind(
        estimator,
        steps,
        schema,
        options,
        lambda transform, schema, columns: trees_behind(
            read.ensemble, transform, schema, tuple(columns), single_steps(steps)
        ),
        exact=True,
    )
    return with_encoding(replace(read, ensemble=ensemble), encoding, _order_note(estimator, schema, options))


def _prepares(final: Any) -> bool:
    """Whether a model encodes its columns itself, as HistGradientBoosting does with categories."""
    return attribute(final, "_preprocessor") is not None


def _no_reader(final: Any) -> str:
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


def _asked_after(refusal: RefusedRows, estimator: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """The model as a black box where its encoders alone refuse rows that the whole of it takes, types and all."""
    if schema is None or not names_of(estimator, schema):  # whether bare arrays held codes is for its owner to say
        raise refusal
    try:
        box = _asked(estimator, schema, options, "its encoders, asked alone, refuse rows that it takes itself.")
        fitted = fit_to_schema(box, schema, options=options)
        fitted.model.scores(fitted.encoding.encode(random_people(schema, 8)))
    except FairbitsError:
        raise refusal from None
    return box


def _bare(estimator: Any, schema: Schema, options: ModelOptions) -> Encoding | None:
    """A perceptron trained on a frame knows its columns; one trained on an array is matched by their number."""
    if options.columns is not None or not hasattr(estimator, "feature_names_in_"):
        return None
    names = estimator.feature_names_in_
    return dummy_encoding(names, schema) or Encoding.of_columns(schema, checked_columns(names, schema))


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
    for step in single_steps(steps):
        known = type(step).__name__ in _COLUMNWISE and type(step).__module__.startswith("sklearn.")
        if not known or getattr(step, "func", None) is not None:  # a FunctionTransformer's may look at anything
            raise NotColumnwise
    names = getattr(estimator, "feature_names_in_", None)
    columns = checked_columns(names, schema) if names is not None else options.columns or table_columns(schema)
    wanted = getattr(estimator, "n_features_in_", len(columns))
    if wanted != len(columns):
        raise ModelError(
            f"the pipeline takes {wanted} columns, but the schema has {len(schema)} attributes "
            f"({', '.join(schema.names)}); list those that it sees under [model] columns."
        )
    final, complaints = taken_apart(estimator)[1], list[ModelError]()
    # Labels such as "1" may have been text when the encoders were fitted; if that is no better, the first counts.
    for as_text in ((), tuple(a.name for a in schema.attributes if a.kind == "category")):
        by_dtype = exact and not as_text and getattr(estimator, "categorical_features", None) == "from_dtype"
        # What a step makes of a float32 is read off exact numbers, and held against real rows afterwards.
        decoder = Decoder(schema, columns, as_text=as_text, categorical=by_dtype, typed=False)
        decode = decoding(
            decoder, options.input_format or ("array" if names is None else "frame"), named=names is not None
        )
        asked = partial(_encoded_rows, steps, final, decoder, decode)
        try:
            return read(asked, schema, decoder.names)
        except ModelError as error:
            complaints.append(error)
    if not isinstance(complaints[0], RefusedRows) or options.input_format is not None:
        raise complaints[0]
    raise RefusedRows(f"{str(complaints[0]).rstrip('.:')}; {remedy_for_labels(schema.attributes)}.") from complaints[0]


def _encoded_rows(steps: list[Any], final: Any, decoder: Decoder, decode: Callable[[Any], Any], codes: Any) -> Any:
    """What the encoders make of people, those inside of the last step included."""
    rows = decode(decoder.encoding.encode(codes))
    for step in steps:
        rows = step.transform(rows)
    return final._preprocess_X(rows, reset=False) if _prepares(final) else rows


def _order_note(estimator: Any, schema: Schema, options: ModelOptions) -> tuple[str, ...]:
    """A pipeline that was fitted on an array gets the table's columns in their order."""
    return () if hasattr(estimator, "feature_names_in_") else column_note(table_columns(schema), options)


def single_steps(steps: Iterable[Any]) -> Iterator[Any]:
    """The steps inside pipelines and column transformers, one by one."""
    for step in steps:
        if step in (None, "passthrough", "drop"):
            continue
        if type(step).__name__ in ("Pipeline", "ColumnTransformer") and "sklearn" in homes_of(step):
            yield from single_steps([entry[1] for entry in getattr(step, "transformers_", getattr(step, "steps", ()))])
        else:
            yield step


#: A whole number with fewer values is a table.
_MAX_VALUES = 10_000
#: Steps that keep the order of values, rounding included: one correctly rounded operation after the other, searches,
#: or the column as it is; and those that take labels alone.
MONOTONE = {
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Binarizer"),
    *("SimpleImputer", "MissingIndicator", "FunctionTransformer", "VarianceThreshold", "SelectKBest"),
    *("SelectPercentile", "SelectFromModel", "RFE", "RFECV", "SelectFpr", "SelectFdr", "SelectFwe"),
    *("GenericUnivariateSelect", "SequentialFeatureSelector", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder"),
}


def trees_behind(
    ensemble: Ensemble, transform: Transform, schema: Schema, columns: Sequence[str], steps: Iterable[Any]
) -> tuple[Ensemble, Encoding]:
    """The trees that take codes as ``ensemble`` takes what ``transform`` makes of them, and the encoding for it.

    ``steps`` are the single steps that ``transform`` is made of.
    """
    ask = _TreeInputs(ensemble, transform, schema)
    if len(ask.start) != ensemble.features:
        raise NotNative(f"its encoders make {len(ask.start)} columns, and its trees take {ensemble.features}.")
    ordered = all(_keeps_order(step) for step in steps)
    parts: list[Part] = []
    owned: list[int] = []
    reals: list[_Real] = []
    for i, one in enumerate(schema.attributes):
        if one.name not in columns:
            parts.append(Unseen())
        elif one.kind == "category" or (one.discrete and one.upper - one.low < _MAX_VALUES):
            parts.append(ask.table(i))
            owned += parts[-1].columns.tolist()
        elif ordered:
            reals.append(_Real(ask, ensemble, i))
            parts.append(reals[-1].part)
            owned += reals[-1].filled.tolist()
        else:
            raise NotColumnwise(one.name)
    if len(set(owned)) < len(owned):
        raise NotColumnwise
    fixed = {column: float(value) for column, value in enumerate(ask.start) if column not in owned}
    fixed |= {int(column): 0.0 for real in reals for column in real.filled[1:]}  # their splits look at the first one
    # Tables and fixed inputs are in the library's precision already, thresholds of codes need all of theirs.
    trees, encoding = _moved(ask, ensemble, reals), Encoding(parts, fixed=fixed, dtype=np.float64)
    people = random_people(schema, PEOPLE, lacking=True)
    if not np.array_equal(trees.leaves(encoding.encode(people)), ensemble.leaves(ask(people))):
        raise NotColumnwise
    return trees, encoding


class _TreeInputs(Encoders):
    """What encoders make of people, in the precision in which trees compare."""

    def __init__(self, ensemble: Ensemble, transform: Transform, schema: Schema):
        self._ensemble = ensemble
        super().__init__(transform, schema, missing=True)
        if ensemble.adds == "float32" and hasattr(transform(self.someone), "tocoo"):
            raise NotNative("a sparse matrix leaves out zeros, which XGBoost takes for missing.")

    def __call__(self, codes: Codes) -> Doubles:
        return self._ensemble.rounded(super().__call__(codes))


class _Real:
    """An attribute of many values: the inputs that it fills, and the splits that look at them."""

    def __init__(self, ask: Encoders, trees: Ensemble, i: int):
        self.i, self.attribute = i, ask.schema.attributes[i]
        name, gap = self.attribute.name, self.attribute.gap
        ends = ask.of(i, np.array([self.attribute.low, self.attribute.upper]))
        gone = ends[:0] if gap is None else ask.of(i, np.array([gap]))
        self.filled = ask.filled(np.concatenate([ends, gone]))
        self.part: Part = Numeric(int(self.filled[0]), gap=gap) if len(self.filled) else Unseen()
        self.nodes = np.flatnonzero(np.isin(trees.feature, self.filled))
        if (trees.sets[self.nodes] >= 0).any() or (trees.missing[self.nodes] == ZERO).any() or np.isnan(ends).any():
            raise NotColumnwise(name)
        self.gone_left = gap is not None and trees.goes_left(self.nodes, gone[0, trees.feature[self.nodes]])


def _moved(ask: Encoders, trees: Ensemble, reals: Sequence[_Real]) -> Ensemble:
    """The trees with thresholds among the values of attributes instead of among what they become."""
    changed = {name: getattr(trees, name).copy() for name in ("feature", "threshold", "missing", "missing_left")}
    questions = [np.empty((3, 0))]
    which, asked = [], 0
    for real in reals:
        mine = np.stack([trees.feature[real.nodes], trees.threshold[real.nodes]])
        distinct, place = np.unique(mine, axis=1, return_inverse=True)
        questions.append(np.vstack([np.full(distinct.shape[1], real.i), distinct]))
        which.append(asked + place.ravel())
        asked += distinct.shape[1]
        changed["feature"][real.nodes] = real.filled[:1]
        changed["missing"][real.nodes] = NAN
        changed["missing_left"][real.nodes] = real.gone_left
    last = _last_left(ask, *np.concatenate(questions, axis=1)) if asked else np.empty(0)
    for real, places in zip(reals, which, strict=True):
        changed["threshold"][real.nodes] = last[places]
    for array in changed.values():
        array.setflags(write=False)
    return replace(trees, precision="float64", **changed)


def _last_left(ask: Encoders, attributes: Doubles, features: Doubles, limits: Doubles) -> Doubles:
    """For each of some comparisons of an input, the last value of its attribute that goes left; −∞ where none does, ∞
    where all do."""
    owners, inputs, everyone = attributes.astype(np.int64), features.astype(np.int64), np.arange(len(limits))
    whole = np.array([a.discrete for a in ask.schema.attributes], np.bool_)[owners]

    def value(key: Integers) -> Doubles:
        return np.where(whole, key, in_order(key).view(np.float64))

    def left(key: Integers) -> npt.NDArray[np.bool_]:
        return np.asarray(ask.of(owners, value(key))[everyone, inputs] <= limits)

    ends = np.array([[a.low, a.upper] for a in ask.schema.attributes], np.float64)[owners].T
    low, high = np.where(whole, ends.astype(np.int64), in_order(ends.view(np.int64)))
    none, all_ = ~left(low), left(high)
    if (none & all_).any():
        raise NotColumnwise(ask.schema.names[owners[none & all_][0]])
    while (low + 1 < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        goes = left(middle)
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    return np.where(none, -np.inf, np.where(all_, np.inf, value(low)))


def _keeps_order(step: Any) -> bool:
    if type(step).__name__ == "KBinsDiscretizer":
        return bool(step.encode == "ordinal")
    filled = getattr(step, "missing_values", None)  # an imputer may also replace a number
    return type(step).__name__ in MONOTONE and (not isinstance(filled, int | float) or bool(np.isnan(filled)))
