"""fairbits where scikit-learn works: scorers for cross-validation and grid search, and a guarded classifier.

Both ask an estimator as its owner would: people are repeated with the cells of others in the protected columns, as a
frame of the same library or as an array, so that a pipeline's own encoders see values of the kind they were fitted on.
Twins are the combinations of the values that the rows at hand have; a number of many values is cut at quantiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from fairbits.engine import check_epsilon
from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.measure import DEFAULT_EPSILON, qid
from fairbits.repair import averaged, clipped, decision_shift, half_width, moved_odds

Doubles = npt.NDArray[np.float64]

#: A protected number of more values than this is asked about at so many of its quantiles.
MOST_VALUES = 20
#: Combinations of protected values at most.
MOST_TWINS = 10_000
#: Twins that are asked about at once.
_AT_ONCE = 200_000
#: Probabilities nearer to 0 or 1 than this are not told apart when their odds move.
_TINY = 1e-9


class _Twins:
    """Every combination of the protected values of some rows, as cells of those rows."""

    def __init__(self, rows: Any, protected: str | int | Iterable[str | int]):
        self.columns = [protected] if isinstance(protected, str | int) else list(protected)
        if not self.columns:
            raise OptionError('no protected column is named; say for example protected=["sex"].')
        frame = _native(rows)
        if not len(frame):
            raise OptionError("there are no rows, so nobody has a twin; give some people.")
        found = [_choices(_column(frame, name)) for name in self.columns]
        self.m = int(np.prod([len(cells) for cells, _ in found]))
        if self.m > MOST_TWINS:
            raise OptionError(
                f"the protected columns make {self.m:,} combinations; name fewer of them ({MOST_TWINS:,} at most)."
            )
        # For each protected column, the row that lends its cell to each twin, (m,).
        lenders = np.array(list(product(*(cells for cells, _ in found)))).reshape(self.m, -1).T
        self._cells = [_taken(_column(frame, name), rows) for name, rows in zip(self.columns, lenders, strict=True)]
        places = np.ravel_multi_index(tuple(codes for _, codes in found), [len(cells) for cells, _ in found])
        counts = np.bincount(places, minlength=self.m)
        #: How often each combination occurs among the rows.
        self.weights = counts / counts.sum()

    def pieces(self, rows: Any) -> Iterator[tuple[slice, Any]]:
        """People and all of their twins, person by person, some thousand at once."""
        frame = _native(rows)
        n = len(frame)
        step = max(1, _AT_ONCE // self.m)
        for start in range(0, n, step):
            people = np.arange(start, min(start + step, n))
            places = np.repeat(people, self.m)
            repeated = frame[places.tolist(), :] if isinstance(frame, nw.DataFrame) else frame[places]
            for name, cells in zip(self.columns, self._cells, strict=True):
                repeated = _replaced(repeated, name, _taken(cells, np.tile(np.arange(self.m), len(people))))
            # What an estimator gets: a frame of its owner's library, or an array.
            given = repeated.to_native() if isinstance(repeated, nw.DataFrame) else repeated
            yield slice(start, start + len(people)), given

    def scores(self, estimator: Any, rows: Any) -> Doubles:
        """What the estimator says about every twin of everybody, (n, m, outputs)."""
        return np.concatenate(
            [outputs(estimator, twins).reshape(some.stop - some.start, self.m, -1) for some, twins in self.pieces(rows)]
        )


def _native(rows: Any) -> Any:
    """A frame as narwhals sees it, or an array."""
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    # scikit-learn's own words for what it does not take: its users know them.
    return frame if isinstance(frame, nw.DataFrame) else check_array(rows, dtype=None, ensure_all_finite=False)


def _column(rows: Any, name: str | int) -> Any:
    if isinstance(rows, nw.DataFrame):
        names: list[Any] = rows.columns
        if isinstance(name, int) and name not in names and -len(names) <= name < len(names):
            name = names[name]
        if name not in names:
            raise OptionError(f"{name!r} is no column of X; {choose_from(str(name), [str(one) for one in names])}")
        return rows.get_column(name)  # type: ignore[arg-type]  # a frame of pandas may have numbers for names
    if not isinstance(name, int | np.integer) or not -rows.shape[1] <= name < rows.shape[1]:
        raise OptionError(f"{name!r} is no column of an array of {rows.shape[1]}; give a position from 0 on.")
    return rows[:, name]


def _choices(column: Any) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows that lend a cell to twins, one per value, and which of them each row is nearest to."""
    values = column.to_numpy() if isinstance(column, nw.Series) else column
    try:
        found, first, codes = np.unique(values, return_index=True, return_inverse=True)
    except TypeError:  # None beside text has no order
        found, first, codes = np.unique(values.astype(str), return_index=True, return_inverse=True)
    if len(found) <= MOST_VALUES or found.dtype.kind not in "fiu":
        return first, codes
    shares = (np.arange(MOST_VALUES) + 0.5) / MOST_VALUES
    kept = np.unique(np.nanquantile(values, shares, method="nearest"))
    return first[np.searchsorted(found, kept)], np.abs(found[:, None] - kept[None]).argmin(axis=1)[codes]


def _taken(column: Any, places: npt.NDArray[np.intp]) -> Any:
    return column[places.tolist()] if isinstance(column, nw.Series) else column[places]


def _replaced(rows: Any, name: str | int, cells: Any) -> Any:
    if isinstance(rows, nw.DataFrame):
        own = _column(rows, name)
        if getattr(cells, "implementation", None) is not rows.implementation:  # fitted on a table of another library
            cells = nw.new_series(own.name, list(cells), backend=rows.implementation)
        return rows.with_columns(cells.alias(own.name))
    changed = rows.copy()
    changed[:, name] = cells
    return changed


def outputs(estimator: Any, rows: Any) -> Doubles:
    """Probabilities of all classes, margins, or what is predicted, (n, outputs)."""
    ask = next((m for m in ("predict_proba", "decision_function") if hasattr(estimator, m)), "predict")
    if ask == "predict" and is_classifier(estimator):
        raise CapabilityError(
            f"{type(estimator).__name__} says neither probabilities nor margins; fit it with probabilities, for "
            f"example in a CalibratedClassifierCV."
        )
    told = getattr(estimator, ask)(rows)
    if isinstance(told, list) or (ask == "predict" and np.shape(told)[1:] > (1,)):
        raise CapabilityError(f"{type(estimator).__name__} predicts several targets; fit one estimator for each.")
    found = np.asarray(told, dtype=np.float64)
    return found.reshape(len(found), -1)


class TwinScorer:
    """A figure of all twins as a scorer, for ``scoring=`` of scikit-learn: larger is better, so it is negative."""

    def __init__(self, figure: str, protected: Any, epsilon: float, favourable: Any, threshold: float):
        self.figure, self.protected, self.epsilon = figure, protected, epsilon
        self.favourable, self.threshold = favourable, threshold
        self._requests = MetadataRequest(owner=type(self).__name__)

    def __call__(self, estimator: Any, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:  # noqa: ARG002
        twins = _Twins(X, self.protected)
        if twins.m < 2:  # 0 would be the best score of all
            raise OptionError(
                f"all {len(X):,} rows have the same {', '.join(map(str, twins.columns))}, so nobody has a twin; score "
                f"more rows, e.g. in fewer folds."
            )
        scores = self._scores(estimator, twins.scores(estimator, X))
        if self.figure == "bits":
            each: Any = qid(scores, epsilon=self.epsilon).q_inf
        else:
            cut = self.threshold if hasattr(estimator, "predict_proba") else 0.0
            favoured = scores >= cut
            each = (favoured.any(axis=1) & ~favoured.all(axis=1)).astype(np.float64)
        return 0.0 - float(np.average(each, weights=sample_weight))

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Ask scikit-learn's metadata routing for the weights of people."""
        self._requests.score.add_request(param="sample_weight", alias=sample_weight)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """What this scorer asks for."""
        return self._requests

    def __repr__(self) -> str:
        return f"{self.figure}_scorer(protected={self.protected!r}, epsilon={self.epsilon})"

    def _scores(self, estimator: Any, found: Doubles) -> Doubles:
        classes = list(getattr(estimator, "classes_", ()))
        if self.favourable is not None and self.favourable not in classes:
            known = choose_from(str(self.favourable), [str(one) for one in classes])
            raise OptionError(f"the favourable class is {self.favourable!r}; {known}")
        if found.shape[2] == 1 or not classes:
            if self.figure == "flip_rate" and not classes:
                raise CapabilityError(f"{type(estimator).__name__} decides nothing: flips need a classifier.")
            turned = self.favourable is not None and self.favourable == classes[0]
            return -found[:, :, 0] if turned else found[:, :, 0]
        return found[:, :, -1 if self.favourable is None else classes.index(self.favourable)]


def bits_scorer(
    protected: str | int | Iterable[str | int], *, epsilon: float = DEFAULT_EPSILON, favourable: Any = None
) -> TwinScorer:
    """A scorer of scikit-learn: minus the mean number of bits of protected information that an estimator uses.

    Parameters
    ----------
    protected
        Columns of ``X`` that are protected: names, or positions in an array. Twins take the values that ``X`` has; of a
        number of more than 20 values they take 20, and the figure is a lower bound.
    epsilon
        Scores closer than this count as the same.
    favourable
        The class whose probability is the score; by default the last of ``classes_``.

    Returns
    -------
    TwinScorer
        For ``scoring=`` of :func:`sklearn.model_selection.cross_validate`, ``GridSearchCV`` and others; 0 is best. With
        metadata routing, ``set_score_request(sample_weight=True)`` weighs people.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 3)).astype(float)
    >>> model = LogisticRegression().fit(X, X[:, 1])
    >>> bits_scorer(protected=[1])(model, X)
    -1.0
    """
    return TwinScorer("bits", protected, epsilon, favourable, 0.5)


def flip_rate_scorer(
    protected: str | int | Iterable[str | int], *, favourable: Any = None, threshold: float = 0.5
) -> TwinScorer:
    """A scorer of scikit-learn: minus the share of people whose decision depends on protected values.

    Parameters
    ----------
    protected
        Columns of ``X`` that are protected: names, or positions in an array.
    favourable
        The class whose probability is the score; by default the last of ``classes_``.
    threshold
        The probability from which on a decision is favourable.

    Returns
    -------
    TwinScorer
        For ``scoring=``; 0 is best.
    """
    if not 0 <= threshold <= 1:  # nothing would ever flip, and 0 is the best score of all
        raise OptionError(f"threshold is {threshold}; give a probability, 0 to 1.")
    return TwinScorer("flip_rate", protected, DEFAULT_EPSILON, favourable, threshold)


class GuardedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities fall into at most ``K`` classes among all twins of a person, whoever that is.

    A person's probabilities are moved towards the mean over their twins, weighted by how often each combination of
    protected values occurs where it was fitted, as :class:`fairbits.Guard` does for finished models; with ``K = 1``
    they are that mean, and no decision depends on a protected value. The bound holds for the protected values that it
    was fitted with and for any other: someone with another value is held to the same mean. Proxies stay.

    Parameters
    ----------
    estimator
        A classifier with ``predict_proba``.
    protected
        Columns of ``X`` that are protected: names, or positions in an array.
    K
        The most classes that anybody may have; with three outcomes or more only 1 and 2 differ (one box of width ε).
    epsilon
        Scores closer than this count as the same.

    Attributes
    ----------
    estimator_
        The fitted classifier, without its guard.
    classes_
        The classes.
    shift_
        What is added to the log-odds of the second of two classes, so that about as many people are favoured as by
        ``estimator_`` (means lie closer together than single scores).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (200, 3)).astype(float)
    >>> guarded = GuardedClassifier(LogisticRegression(), protected=[1]).fit(X, X[:, 1])
    >>> bits_scorer(protected=[1])(guarded, X)
    0.0
    """

    def __init__(
        self,
        estimator: Any = None,
        protected: Any = (),
        *,
        K: int = 1,
        epsilon: float = DEFAULT_EPSILON,
    ):
        self.estimator, self.protected = estimator, protected
        self.K, self.epsilon = K, epsilon

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit the estimator, and learn how often each combination of protected values occurs.

        Parameters
        ----------
        X
            People: a data frame or an array.
        y
            Their classes.
        **fit_params
            Handed on to the estimator.
        """
        if not isinstance(self.K, int | np.integer) or self.K < 1:
            raise OptionError(f"K is {self.K!r}; it must be a whole number of 1 or more.")
        if not hasattr(self.estimator, "predict_proba"):
            raise CapabilityError(f"{type(self.estimator).__name__} has no predict_proba, which a guard needs.")
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.twins_ = _Twins(X, self.protected)
        self.tau_ = half_width(int(self.K), check_epsilon(self.epsilon), "constrained", vector=len(self.classes_) > 2)
        self.shift_ = 0.0
        if len(self.classes_) == 2:
            deserved = np.asarray(y) == self.classes_[1]
            self.shift_ = decision_shift(self._centre(X)[:, 1], outputs(self.estimator_, X)[:, 1], deserved)
        return self

    def predict_proba(self, X: Any) -> Doubles:
        """Guarded probabilities.

        Parameters
        ----------
        X
            People.

        Returns
        -------
        ndarray
            One row per person, one column per class.
        """
        check_is_fitted(self)
        centre = self._moved(self._centre(X))
        return clipped(self._moved(outputs(self.estimator_, X)), centre, self.tau_) if self.tau_ > 0 else centre

    def predict(self, X: Any) -> Any:
        """The class of the largest guarded probability.

        Parameters
        ----------
        X
            People.
        """
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def get_metadata_routing(self) -> MetadataRouter:
        """What the estimator's own ``fit`` asks for, such as weights."""
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))

    def _moved(self, probabilities: Doubles) -> Doubles:
        if not self.shift_:
            return probabilities
        second = moved_odds(probabilities[:, 1], self.shift_, _TINY)
        return np.stack([1 - second, second], axis=1)

    def _centre(self, rows: Any) -> Doubles:
        return averaged(self.twins_.scores(self.estimator_, rows), self.twins_.weights, None)
