"""Trees behind encoders: which way every value of an attribute takes, found by asking the encoders themselves.

A split compares what the encoders make of a value, in the library's precision. Computing that again by another formula,
or moving thresholds back through one, is off by a rounding error, and a row whose value lies on a threshold (trees take
their thresholds from rows) then takes the wrong way. So no formula is used. Attributes of few values become tables of
what the encoders make of each. A real one goes through steps that never turn two values round (``MONOTONE``): for each
split, the last value that goes left is found by halving, down to neighbouring floats, and becomes the threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Encoding, Lookup, Numeric, Part, Schema, Unseen
from fairbits.models.native.chain import NotNative
from fairbits.models.probe import PEOPLE, NotColumnwise, RefusedRows, Transform, inputs_of, random_people, refused_value
from fairbits.models.trees.ensemble import NAN, ZERO, Ensemble

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]
#: A whole number with fewer values is a table.
_MAX_VALUES = 10_000
#: Steps that keep the order of values, rounding included: one correctly rounded operation after the other, searches,
#: or the column as it is.
MONOTONE = {
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "KBinsDiscretizer", "Binarizer"),
    *("SimpleImputer", "MissingIndicator", "FunctionTransformer", "VarianceThreshold", "SelectKBest"),
    *("SelectPercentile", "SelectFromModel", "RFE", "RFECV", "SelectFpr", "SelectFdr", "SelectFwe"),
    *("GenericUnivariateSelect", "SequentialFeatureSelector"),
}


def trees_behind(
    ensemble: Ensemble, transform: Transform, schema: Schema, columns: Sequence[str], steps: Sequence[Any]
) -> tuple[Ensemble, Encoding]:
    """The trees that take codes as ``ensemble`` takes what ``transform`` makes of them, and the encoding for it."""
    ask = _Encoders(ensemble, transform, schema)
    if ask.width != ensemble.features:
        raise NotNative(f"its encoders make {ask.width} columns, and its trees take {ensemble.features}.")
    parts: list[Part] = []
    owner = np.full(ask.width, -1)
    left_out: list[int] = []
    reals: list[_Real] = []
    for i, attribute in enumerate(schema.attributes):
        filled = np.empty(0, np.int64)
        if attribute.name not in columns:
            part: Part = Unseen()
        elif attribute.kind == "category" or (attribute.discrete and attribute.upper - attribute.low < _MAX_VALUES):
            part, filled = _table(ask, i)
        elif all(_keeps_order(step) for step in touching(steps, columns.index(attribute.name), columns)):
            real = _Real(ask, ensemble, i)
            part, filled = real.part, real.filled
            left_out += filled[1:].tolist()
            reals.append(real)
        else:
            raise NotColumnwise(attribute.name)
        if (owner[filled] >= 0).any():
            raise NotColumnwise
        owner[filled] = i
        parts.append(part)
    fixed = {int(column): float(ask.start[column]) for column in np.flatnonzero(owner < 0)}
    fixed |= dict.fromkeys(left_out, 0.0)  # their splits look at the attribute's first column instead
    # Tables and fixed inputs are in the library's precision already, thresholds of codes need all of theirs.
    trees, encoding = _moved(ask, ensemble, reals), Encoding(parts, fixed=fixed, dtype=np.float64)
    people = random_people(schema, PEOPLE, lacking=True)
    if not np.array_equal(trees.leaves(encoding.encode(people)), ensemble.leaves(ask(people))):
        raise NotColumnwise
    return trees, encoding


class _Encoders:
    """What encoders make of people, in the precision in which trees compare; missing inputs are NaN."""

    def __init__(self, ensemble: Ensemble, transform: Transform, schema: Schema):
        self._ensemble, self._transform, self.schema = ensemble, transform, schema
        #: XGBoost takes for missing what a sparse matrix does not store: zeros.
        self.zero_is_missing = False
        self.someone = np.array([[a.first for a in schema.attributes]], dtype=np.float64)
        self.start = self(self.someone)[0]
        self.width = len(self.start)

    def __call__(self, codes: Codes) -> Floats:
        try:
            return self._ensemble.rounded(inputs_of(self._stored, codes, self.schema, missing=True))
        except RefusedRows as error:
            raise refused_value(self._stored, self.schema, self.someone, codes, error) from None

    def _stored(self, codes: Codes) -> Any:
        rows = self._transform(codes)
        if self._ensemble.adds != "float32" or not hasattr(rows, "tocoo"):
            return rows
        self.zero_is_missing = True
        entries = rows.tocoo()
        dense = np.full(entries.shape, np.nan)
        dense[entries.row, entries.col] = entries.data
        return dense

    def of(self, i: int | Keys, points: Floats) -> Floats:
        """What somebody becomes with another value of one attribute each time."""
        rows = np.repeat(self.someone, len(points), axis=0)
        rows[np.arange(len(points)), i] = points
        return self(rows)

    def filled(self, found: Floats) -> npt.NDArray[np.int64]:
        """The inputs that differ from those of somebody."""
        same = (found == self.start) | (np.isnan(found) & np.isnan(self.start))
        return np.flatnonzero(~same.all(axis=0))


def _table(ask: _Encoders, i: int) -> tuple[Part, npt.NDArray[np.int64]]:
    attribute = ask.schema.attributes[i]
    points = attribute.values() if attribute.allowed else np.arange(attribute.low, attribute.upper + 1.0)
    gap = attribute.gap if attribute.kind != "category" else None
    points = points if gap is None else np.unique(np.append(points, gap))
    found = ask.of(i, points)
    filled = ask.filled(found)
    if not len(filled):
        return Unseen(), filled
    table = np.zeros((int(points[-1] - points[0]) + 1, len(filled)))  # codes that nobody has stay 0
    table[(points - points[0]).astype(np.int64)] = found[:, filled]
    return Lookup(filled, table, int(points[0])), filled


class _Real:
    """An attribute of many values: the inputs that it fills, and the splits that look at them."""

    def __init__(self, ask: _Encoders, trees: Ensemble, i: int):
        self.i, self.attribute = i, ask.schema.attributes[i]
        name, gap = self.attribute.name, self.attribute.gap
        if ask.zero_is_missing:
            raise NotNative(f"a sparse matrix leaves out zeros of {name!r}, which XGBoost takes for missing.")
        ends = ask.of(i, np.array([self.attribute.low, self.attribute.upper]))
        gone = ends[:0] if gap is None else ask.of(i, np.array([gap]))
        self.filled = ask.filled(np.concatenate([ends, gone]))
        self.part: Part = Numeric(int(self.filled[0]), gap=gap) if len(self.filled) else Unseen()
        self.nodes = np.flatnonzero(np.isin(trees.feature, self.filled))
        if (trees.sets[self.nodes] >= 0).any() or (trees.missing[self.nodes] == ZERO).any() or np.isnan(ends).any():
            raise NotColumnwise(name)
        self.gone_left = gap is not None and trees.goes_left(self.nodes, gone[0, trees.feature[self.nodes]])


def _moved(ask: _Encoders, trees: Ensemble, reals: Sequence[_Real]) -> Ensemble:
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


def _last_left(ask: _Encoders, attributes: Floats, features: Floats, limits: Floats) -> Floats:
    """For each of some comparisons of an input, the last value of its attribute that goes left; −∞ where none does, ∞
    where all do."""
    owners, inputs, everyone = attributes.astype(np.int64), features.astype(np.int64), np.arange(len(limits))
    whole = np.array([a.discrete for a in ask.schema.attributes], np.bool_)[owners]

    def value(key: Keys) -> Floats:
        return np.where(whole, key, _float_of(key))

    def left(key: Keys) -> npt.NDArray[np.bool_]:
        return np.asarray(ask.of(owners, value(key))[everyone, inputs] <= limits)

    ends = np.array([[a.low, a.upper] for a in ask.schema.attributes], np.float64)[owners].T
    low, high = np.where(whole, ends.astype(np.int64), _key_of(ends))
    none, all_ = ~left(low), left(high)
    if (none & all_).any():
        raise NotColumnwise(ask.schema.names[owners[none & all_][0]])
    while (low + 1 < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        goes = left(middle)
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    return np.where(none, -np.inf, np.where(all_, np.inf, value(low)))


def _key_of(values: Floats) -> Keys:
    """Whole numbers in the order of floats, neighbours for neighbours."""
    bits = values.view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _float_of(keys: Keys) -> Floats:
    return np.where(keys < 0, np.int64(-(2**63)) - keys, keys).view(np.float64)


def _keeps_order(step: Any) -> bool:
    if type(step).__name__ not in MONOTONE:
        return False
    if type(step).__name__ == "KBinsDiscretizer":
        return bool(step.encode == "ordinal")
    filled = getattr(step, "missing_values", None)  # an imputer may also replace a number
    return not isinstance(filled, int | float) or bool(np.isnan(filled))


def touching(steps: Iterable[Any], place: int | None, columns: Sequence[str]) -> Iterator[Any]:
    """The single steps through which one column of the table may go; where it is not known which, all of them."""
    for step in steps:
        if step in (None, "passthrough", "drop"):
            continue
        if type(step).__name__ == "Pipeline":
            inner = [entry[1] for entry in step.steps]
            yield from touching(inner, place, columns)
        elif type(step).__name__ == "ColumnTransformer":
            for _, inner, chosen in step.transformers_:
                if place is None or _takes(chosen, place, columns):
                    yield from touching([inner], None, columns)
            place = None
        else:
            yield step


def _takes(chosen: Any, place: int, columns: Sequence[str]) -> bool:
    """Whether a ColumnTransformer's choice of columns holds one of them; also where it cannot be told."""
    if isinstance(chosen, str | int | np.integer):
        chosen = [chosen]
    if isinstance(chosen, slice) or callable(chosen):
        return True
    listed = np.asarray(chosen)
    if listed.dtype == np.bool_:
        return bool(place < len(listed) and listed[place])
    names = (columns[place], place, place - len(columns))
    return any(entry in names for entry in listed.tolist())


__all__ = ["trees_behind"]
