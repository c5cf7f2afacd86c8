"""A guarded estimator out of scikit-learn's own parts, so that a .skops file of it opens without fairbits.

A skops file holds no code, only classes that can be imported where it is opened. The guard is therefore built from
classes of scikit-learn: for every twin a pipeline that puts the twin's protected values into the row and asks the model
itself; a weighted vote of them (c, the average over twins); and a stack whose last estimator is a perceptron with
weights set by hand: it moves the log-odds by a straight line between close knots, and holds the own score within tau of
c with two rectified units. The model itself is in the file once.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import CapabilityError, MissingDependencyError
from fairbits.models import estimator_of, feed_of
from fairbits.repair.proposals.clip import HAIR, least_size
from fairbits.repair.proposals.guard import Guard

Doubles = npt.NDArray[np.float64]

#: Twins that a file may have a pipeline for.
MAX_TWINS = 500
#: Knots between which moved log-odds are a straight line: no probability is more than 1e-6 off.
KNOTS = 1_024
#: People by whom the columns are found that differ between twins.
_SHOWN = 100


def write_guard_skops(guard: Guard, path: str | Path) -> None:
    """Write a guarded estimator as .skops, with the model itself in it once.

    skops writes an object wherever it is met, though its reader knows objects that were read before. So all twins but
    the first are written with a stand-in, which then becomes a note that the model has been read already.
    """
    try:
        from skops import io as skops
    except ImportError:
        raise MissingDependencyError("skops", "sklearn", "writing .skops files") from None
    from sklearn.dummy import DummyClassifier, DummyRegressor

    own = estimator_of(guard.subject.original, guard.model, guard.subject.options)
    stand_in = DummyRegressor() if guard.schema.regression else DummyClassifier()
    made = guarded_estimator(guard, own=own, stand_in=stand_in)
    target = Path(path)
    with (
        zipfile.ZipFile(io.BytesIO(skops.dumps(made))) as written,
        zipfile.ZipFile(target, "w", compression=zipfile.ZIP_DEFLATED) as file,
    ):
        for name in written.namelist():
            content = written.read(name)
            if name == "schema.json":
                content = json.dumps(_once(json.loads(content), {id(stand_in): id(own)}, set())).encode()
            file.writestr(name, content)


def _once(node: Any, named: dict[int, int], met: set[int]) -> Any:
    """A tree of skops in which every object is spelled out where it is met first, and named after that."""
    if isinstance(node, list):
        return [_once(one, named, met) for one in node]
    if not isinstance(node, dict):
        return node
    if node.get("__loader__") == "ObjectNode":
        mine = int(node["__id__"])
        known = named.get(mine, mine)
        if known in met:
            kept = {name: node[name] for name in ("__class__", "__module__")}
            return {**kept, "__loader__": "CachedNode", "__id__": known}
        met.add(known)
    return {name: _once(value, named, met) for name, value in node.items()}


def guarded_estimator(guard: Guard, *, own: Any = None, stand_in: Any = None) -> Any:
    """An estimator that takes what the guarded one takes and gives the guard's scores."""
    try:
        import sklearn.ensemble  # noqa: F401 - what it is built from
    except ImportError:
        raise MissingDependencyError("scikit-learn", "sklearn", "a guarded estimator") from None
    subject = guard.subject
    own = estimator_of(subject.original, guard.model, subject.options) if own is None else own
    if guard.by_rules:
        raise CapabilityError("scikit-learn has no step that leaves out twins by rules; use .py.")
    if len(guard.schema.classes) > 2 and guard.tau > 0:
        raise CapabilityError(
            "scikit-learn has no step that holds the probabilities of three classes or more near their average; the "
            "plain average (--guarantee 1) goes into .skops, and .py takes both."
        )
    if guard.m > MAX_TWINS:
        raise CapabilityError(
            f"it would take {guard.m:,} pipelines, one for each twin, and {MAX_TWINS} are allowed; use .py, or the "
            f"distilled model."
        )
    rows, changed = _columns(guard, own)
    other = own if stand_in is None else stand_in
    asked = [(f"twin_{i}", _twin(rows, changed, i, other if i else own)) for i in range(guard.m)]
    average = _vote(asked, own, guard)
    if guard.tau == 0 and guard.shift == 0:
        return average
    return _stack(average, own, other, guard)


def _columns(guard: Guard, own: Any) -> tuple[Any, dict[int, npt.NDArray[Any]]]:
    """Some rows as the estimator takes them, and by column what each twin has there."""
    subject = guard.subject
    feed = feed_of(own, guard.model, guard.encoding, guard.schema, subject.options)
    some = subject.table.codes[:_SHOWN]
    twins = guard.subject_twins.expand(some)
    rows = feed(some)
    shown = [_array(feed(np.ascontiguousarray(twins[:, i]))) for i in range(guard.m)]
    changed: dict[int, npt.NDArray[Any]] = {}
    for column in range(shown[0].shape[1]):
        values = np.array([[piece[row, column] for piece in shown] for row in range(len(some))], dtype=object)
        gone = values != values  # noqa: PLR0124 - NaN: a missing value is the same in all twins, too
        if not ((values == values[:, :1]) | (gone & gone[:, :1])).all():
            if not ((values == values[:1]) | (gone & gone[:1])).all():
                raise CapabilityError(f"column {column} holds more than protected values; use .py.")
            changed[column] = values[0]
    if not changed:
        raise CapabilityError("no column of its input differs between twins, so there is nothing to guard.")
    return rows, changed


def _array(rows: Any) -> npt.NDArray[Any]:
    return np.asarray(rows.to_numpy(dtype=object) if hasattr(rows, "to_numpy") else rows)


def _twin(rows: Any, changed: dict[int, npt.NDArray[Any]], twin: int, own: Any) -> Any:
    """The model itself behind a step that puts one twin's values into the row."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    framed = hasattr(rows, "columns")
    if framed and any(str(rows.dtypes.iloc[i]) == "category" for i in changed):
        raise CapabilityError("no step of scikit-learn gives back a column of pandas' type 'category'; use .py.")
    names = list(rows.columns) if framed else list(range(rows.shape[1]))
    steps = [
        (f"column_{i}", _constant(changed[i], twin) if i in changed else "passthrough", [name])
        for i, name in enumerate(names)
    ]
    put = ColumnTransformer(steps, verbose_feature_names_out=False)
    if framed:
        put.set_output(transform="pandas")
    put.fit(rows)
    for i, values in changed.items():
        _settle(put.named_transformers_[f"column_{i}"], values[twin])
    return Pipeline([("twin", put), ("model", own)])


def _constant(values: npt.NDArray[Any], twin: int) -> Any:
    """A step that makes one value of every other: numbers by a slope of 0, text value by value."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler

    wanted = values[twin]
    if isinstance(wanted, int | float | np.number) and not isinstance(wanted, bool | np.bool_):
        return MinMaxScaler()
    if not isinstance(wanted, str):
        raise CapabilityError(f"no step of scikit-learn puts a {type(wanted).__name__} into a column; use .py.")
    steps = [
        (f"value_{i}", SimpleImputer(missing_values=value, strategy="constant", fill_value=wanted))
        for i, value in enumerate(sorted(set(values) - {wanted}))
    ]
    return Pipeline(steps)


def _settle(step: Any, value: Any) -> None:
    """Give a fitted scaler the slope 0 and the constant."""
    if hasattr(step, "scale_"):
        step.scale_, step.min_ = np.zeros_like(step.scale_), np.full_like(step.min_, float(value))


def _vote(asked: list[tuple[str, Any]], own: Any, guard: Guard) -> Any:
    """The weighted average of the twins' answers."""
    from sklearn.ensemble import VotingClassifier, VotingRegressor
    from sklearn.preprocessing import LabelEncoder

    weights = [float(weight) for weight in guard.weights]
    if guard.schema.regression:
        vote = VotingRegressor(asked, weights=weights)
    else:
        vote = VotingClassifier(asked, voting="soft", weights=weights)
        vote.le_ = LabelEncoder().fit(own.classes_)
        vote.classes_ = vote.le_.classes_
    vote.estimators_ = [one for _, one in asked]
    _name_columns(vote, own)
    return vote


def _stack(average: Any, own: Any, written: Any, guard: Guard) -> Any:
    """The average and the own score, and a perceptron that holds them together."""
    from sklearn.ensemble import StackingClassifier, StackingRegressor
    from sklearn.preprocessing import LabelEncoder

    parts = [("average", average), *([("own", written)] if guard.tau > 0 else [])]
    if guard.schema.regression:
        stack = StackingRegressor(parts, cv="prefit")
        stack.final_estimator_ = _perceptron(guard)
        stack.stack_method_ = ["predict"] * len(parts)
    else:
        stack = StackingClassifier(parts, cv="prefit", stack_method="predict_proba")
        stack.final_estimator_ = _perceptron(guard, positive=list(own.classes_).index(_favourable(guard, own)) == 1)
        stack.stack_method_ = ["predict_proba"] * len(parts)
        stack._label_encoder = LabelEncoder().fit(own.classes_)
        stack.classes_ = stack._label_encoder.classes_
    stack.estimators_ = [one for _, one in parts]
    _name_columns(stack, own)
    return stack


def _name_columns(made: Any, own: Any) -> None:
    """Say which columns it takes, as the guarded estimator does."""
    names = getattr(own, "feature_names_in_", None)
    if names is not None:
        made.feature_names_in_ = names


def _favourable(guard: Guard, own: Any) -> Any:
    """The estimator's own name of the favourable class: the one whose probability is the score."""
    feed = feed_of(own, guard.model, guard.encoding, guard.schema, guard.subject.options)
    some = guard.subject.table.codes[:_SHOWN]
    scores = np.asarray(guard.model.scores(guard.encoding.encode(some)), np.float64)
    apart = np.abs(np.asarray(own.predict_proba(feed(some))) - scores[:, None]).max(axis=0)
    return own.classes_[int(apart.argmin())]


def _perceptron(guard: Guard, *, positive: bool = True) -> Any:
    """Moves the average (and the own score) and holds the second within tau of the first; every weight set by hand."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.preprocessing import LabelBinarizer

    regression = guard.schema.regression
    shift = guard.shift if regression or positive else -guard.shift  # the stack passes on the second class
    inputs = 2 if guard.tau > 0 else 1
    size = least_size(guard.tau)
    first, offsets, slopes, constant = _regression_units(shift, size) if regression else _moved_units(shift)
    units = len(first)
    # Layer 1: the same units on each input. A linear form of them is the moved value.
    weights = [np.kron(np.eye(inputs), first[None, :])]
    biases = [np.tile(offsets, inputs)]
    if guard.tau > 0:
        centre, own = (np.concatenate([slopes * (i == 0), slopes * (i == 1)]) for i in range(2))
        apart = own - centre  # their constants cancel
        room = np.zeros(inputs * units)
        if regression:  # rounding grows with the value: room is tau − HAIR · max(size, |c|), and never below 0
            room[2:4] = -HAIR
        # Layer 2: centre, distance and room. Layer 3: the distance, held within the room.
        weights.append(np.stack([centre, -centre, apart, -apart, room], axis=1))
        biases.append(np.array([constant, -constant, 0.0, 0.0, guard.tau - HAIR * size]))
        held = np.zeros((5, 5))
        held[:2, :2], held[2:4, 2], held[2:4, 3], held[4, 2:] = np.eye(2), (1, -1), (1, -1), (1, -1, 1)
        weights.append(held)
        biases.append(np.zeros(5))
        weights.append(np.array([[1.0], [-1.0], [1.0], [-1.0], [-1.0]]))
        biases.append(np.zeros(1))
    else:
        weights.append(slopes[:, None])
        biases.append(np.array([constant]))
    shape = tuple(w.shape[1] for w in weights[:-1])
    made = (MLPRegressor if regression else MLPClassifier)(hidden_layer_sizes=shape, activation="relu")
    made.coefs_, made.intercepts_ = weights, biases
    made.n_layers_, made.n_outputs_, made.out_activation_ = len(weights) + 1, 1, "identity"
    made.n_features_in_ = inputs
    if not regression:
        made._label_binarizer = LabelBinarizer().fit([0, 1])
        made.classes_ = np.array([0, 1])
    return made


def _regression_units(shift: float, size: float) -> tuple[Doubles, Doubles, Doubles, float]:
    """Weights and offsets of units, and the linear form of them that is the value plus the shift; two tell how far its
    size is beyond ``size``."""
    first = np.array([1.0, -1.0, 1.0, -1.0])
    offsets = np.array([shift, -shift, shift - size, -shift - size])
    return first, offsets, np.array([1.0, -1.0, 0.0, 0.0]), 0.0


def _moved_units(shift: float) -> tuple[Doubles, Doubles, Doubles, float]:
    """The same for a probability whose log-odds move by the shift: straight lines between knots."""
    if shift == 0:
        return np.ones(1), np.zeros(1), np.ones(1), 0.0
    # p → e^b·p / (1 + (e^b − 1)·p). Knots lie where the root of its curvature asks for them.
    slope = np.expm1(shift)
    ends = 1 - np.linspace(0, 1, KNOTS + 1) * (1 - (1 + slope) ** -0.5)
    knots = (ends**-2 - 1) / slope
    knots[0], knots[-1] = 0.0, 1.0
    steps = np.diff((1 + slope) * knots / (1 + slope * knots)) / np.diff(knots)
    return np.ones(KNOTS), -knots[:-1], np.diff(steps, prepend=0.0), 0.0
