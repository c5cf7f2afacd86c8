"""A scikit-learn style model of the same kind and size, fitted to soft targets without the protected columns.

Tree models keep their columns: the protected ones hold one value while they are fitted, so that no tree can split on
them. Everything else is cloned behind a step that drops the protected columns. Classes with shares of a person become
rows of that person, weighted by the shares (the expected log-loss is the same); an estimator that takes no weights gets
labels drawn by them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Decoder, Schema, table_columns
from fairbits.errors import CapabilityError, FairbitsError, ModelError
from fairbits.models.black_box import attribute, reason
from fairbits.models.estimator import opened_estimator
from fairbits.models.estimator_copies import fit_again, fresh_estimator
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import output_order
from fairbits.models.predictor_facts import classes_of, names_of
from fairbits.models.predictors import asked_as, checked_columns
from fairbits.models.sklearn_pipelines import taken_apart
from fairbits.models.trees.adapter import is_booster

Doubles = npt.NDArray[np.float64]

#: Libraries whose estimators can be cloned: they tell their settings and take them back.
_LIBRARIES = {"sklearn", "lightgbm", "xgboost", "catboost"}


@dataclass(frozen=True, slots=True, eq=False)
class Refitted:
    """An estimator that was fitted anew without the protected columns."""

    estimator: Any
    words: str


def refitted(
    original: Any,
    schema: Schema,
    people: Codes,
    targets: Doubles,
    rng: np.random.Generator,
    *,
    options: ModelOptions | None = None,
) -> Refitted:
    """Fit a clone of an estimator to soft targets, without the protected columns."""
    options = options or ModelOptions()
    whole = opened_estimator(original, options)
    steps, final = taken_apart(whole)
    home = type(final).__module__.partition(".")[0]
    if home not in _LIBRARIES or not callable(attribute(final, "fit")) or not callable(attribute(final, "get_params")):
        raise CapabilityError(
            f"{type(final).__name__!r} cannot be cloned and fitted again here (scikit-learn estimators can); the guard "
            f"itself works for it, and its own training without the protected columns is the place for a model of one "
            f"score a decision."
        )
    names = names_of(whole)
    columns = options.columns or (table_columns(schema) if names is None else checked_columns(names, schema))
    order = output_order(schema, classes_of(final), options)
    decoder, decode = asked_as(whole, schema, columns, options, named=names is not None)
    seen = [schema.column(name) for name in decoder.names]
    lessons = _Lessons.of(final, schema, order, people, targets, rng)
    seed = int(rng.integers(2**31))
    try:
        if is_booster(final):
            held = lessons.people.copy()
            for column in schema.protected_columns:
                held[:, column] = schema.attributes[column].first
            made, words = (
                _trees(whole, steps, final, decode(held[:, seen]), lessons, seed),
                "their protected columns held",
            )
        else:
            rows = decode(lessons.people[:, seen])
            made = _pipeline(whole, rows, _protected(decoder, schema), lessons, seed)
            words = "columns dropped"
    except FairbitsError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        raise ModelError(f"{type(final).__name__} could not be fitted again: {reason(error)}") from None
    kind = type(final).__name__
    if words == "columns dropped":
        how = "without the protected columns"
    else:
        how = "that saw one value of the protected columns"
    return Refitted(made, f"a {kind} of the same settings {how}, taught the average over twins")


def drops_protected(estimator: Any, schema: Schema, options: ModelOptions) -> bool:
    """Whether a fitted pipeline begins with scikit-learn's own step that passes on no protected column."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    if type(estimator) is not Pipeline or type(estimator.steps[0][1]) is not ColumnTransformer:
        return False
    fitted = attribute(estimator.steps[0][1], "transformers_")
    if not isinstance(fitted, list):
        return False
    columns = list(options.columns or table_columns(schema))
    protected = {name for i in schema.protected_columns for name in schema.attributes[i].own_columns}
    free: set[Any] = {name for name in columns if name not in protected}
    free |= {place for place, name in enumerate(columns) if name not in protected}
    passed = [taken for _, step, taken in fitted if not (isinstance(step, str) and step == "drop")]
    return bool(passed) and all(
        isinstance(taken, list) and all(type(one) in (str, int) and one in free for one in taken) for taken in passed
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Lessons:
    """Rows, their labels, and what they weigh (None: all the same)."""

    people: Codes
    labels: npt.NDArray[Any]
    weights: Doubles | None

    @classmethod
    def of(
        cls, final: Any, schema: Schema, order: Any, people: Codes, targets: Doubles, rng: np.random.Generator
    ) -> _Lessons:
        if schema.regression:
            return cls(people, np.asarray(targets, np.float64), None)
        own = np.asarray(attribute(final, "classes_"))
        known = list(order or schema.classes)
        # The estimator's own labels, in the order of the schema's classes.
        labels = own[[known.index(name) for name in schema.classes]]
        n, classes = targets.shape
        if _takes_weights(final):
            weights = np.asarray(targets, np.float64).T.ravel()
            some = weights > 1e-6
            return cls(np.tile(people, (classes, 1))[some], np.repeat(labels, n)[some], weights[some])
        sums = np.cumsum(targets, axis=1)
        drawn = (rng.random((n, 1)) * sums[:, -1:] > sums).sum(axis=1)
        return cls(people, labels[np.minimum(drawn, classes - 1)], None)


def _takes_weights(final: Any) -> bool:
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(final, "sample_weight"))


def _trees(whole: Any, steps: list[Any], final: Any, rows: Any, lessons: _Lessons, seed: int) -> Any:
    """Trees fitted anew, behind the same fitted encoders."""
    for step in steps:
        rows = step.transform(rows)
    fresh = fresh_estimator(final, seed)
    fit_again(fresh, rows, lessons.labels, {} if lessons.weights is None else {"sample_weight": lessons.weights})
    if not steps:
        return fresh
    made = inner = copy.deepcopy(whole)
    while hasattr(inner.steps[-1][1], "steps"):
        inner = inner.steps[-1][1]
    inner.steps[-1] = (inner.steps[-1][0], fresh)
    return made


def _protected(decoder: Decoder, schema: Schema) -> list[int]:
    """The places of the columns that protected attributes fill."""
    return [i for i, column in enumerate(decoder.columns) if schema[decoder.names[column.place]].protected]


def _pipeline(whole: Any, rows: Any, protected: list[int], lessons: _Lessons, seed: int) -> Any:
    """A clone of everything behind a step that drops the protected columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    framed = hasattr(rows, "columns")
    every = list(rows.columns) if framed else list(range(rows.shape[1]))
    gone = {every[i] for i in protected}
    kept = [name for name in every if name not in gone]
    drop = ColumnTransformer([("kept", "passthrough", kept)], verbose_feature_names_out=False)
    if framed:
        drop.set_output(transform="pandas")
    inner = fresh_estimator(whole, seed)
    _strip(inner, gone, framed=framed)
    made = Pipeline([("without_protected", drop), ("model", inner)])
    where, part = "model", inner
    while hasattr(part, "steps"):
        where, part = f"{where}__{part.steps[-1][0]}", part.steps[-1][1]
    weights = {} if lessons.weights is None else {f"{where}__sample_weight": lessons.weights}
    fit_again(made, rows, lessons.labels, weights)
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
        if callable(columns):
            changed.append((name, step, columns))
            continue
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if not framed or not all(isinstance(column, str) for column in wanted):
            raise CapabilityError(
                "its encoders take columns by their numbers, which change when protected ones are dropped; name the "
                "columns in the pipeline to have it distilled."
            )
        left = [column for column in wanted if column not in gone]
        if left:
            changed.append((name, step, left))
    estimator.set_params(transformers=changed)
