"""Trees behind encoders: which way every value of an attribute takes, found by asking the encoders themselves.

A split compares what the encoders make of a value, in the library's precision. Computing that again by another formula,
or moving thresholds back through one, is off by a rounding error, and a row whose value lies on a threshold (trees take
their thresholds from rows) then takes the wrong way. So no formula is used. Attributes of few values become tables of
what the encoders make of each. A real one goes through steps that never turn two values round (``MONOTONE``): for each
split, the last value that goes left is found by halving, down to neighbouring floats, and becomes the threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Encoding, Numeric, Part, Schema, Unseen
from fairbits.models.inputs import PEOPLE, Encoders, NotColumnwise, Transform, random_people
from fairbits.models.native.chain import NotNative
from fairbits.models.trees.ensemble import NAN, ZERO, Ensemble

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]
#: A whole number with fewer values is a table.
_MAX_VALUES = 10_000
#: Steps that keep the order of values, rounding included: one correctly rounded operation after the other, searches,
#: or the column as it is; and those that take labels alone.
MONOTONE = {
    *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "KBinsDiscretizer", "Binarizer"),
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
    for i, attribute in enumerate(schema.attributes):
        if attribute.name not in columns:
            parts.append(Unseen())
        elif attribute.kind == "category" or (attribute.discrete and attribute.upper - attribute.low < _MAX_VALUES):
            parts.append(ask.table(i))
            owned += parts[-1].columns.tolist()
        elif ordered:
            reals.append(_Real(ask, ensemble, i))
            parts.append(reals[-1].part)
            owned += reals[-1].filled.tolist()
        else:
            raise NotColumnwise(attribute.name)
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

    def __call__(self, codes: Codes) -> Floats:
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


def _last_left(ask: Encoders, attributes: Floats, features: Floats, limits: Floats) -> Floats:
    """For each of some comparisons of an input, the last value of its attribute that goes left; −∞ where none does, ∞
    where all do."""
    owners, inputs, everyone = attributes.astype(np.int64), features.astype(np.int64), np.arange(len(limits))
    whole = np.array([a.discrete for a in ask.schema.attributes], np.bool_)[owners]

    def turned(bits: Keys) -> Keys:
        """Between the bits of floats and whole numbers in their order, neighbours for neighbours."""
        return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)

    def value(key: Keys) -> Floats:
        return np.where(whole, key, turned(key).view(np.float64))

    def left(key: Keys) -> npt.NDArray[np.bool_]:
        return np.asarray(ask.of(owners, value(key))[everyone, inputs] <= limits)

    ends = np.array([[a.low, a.upper] for a in ask.schema.attributes], np.float64)[owners].T
    low, high = np.where(whole, ends.astype(np.int64), turned(ends.view(np.int64)))
    none, all_ = ~left(low), left(high)
    if (none & all_).any():
        raise NotColumnwise(ask.schema.names[owners[none & all_][0]])
    while (low + 1 < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        goes = left(middle)
        low, high = np.where(goes, middle, low), np.where(goes, high, middle)
    return np.where(none, -np.inf, np.where(all_, np.inf, value(low)))


def _keeps_order(step: Any) -> bool:
    if type(step).__name__ not in MONOTONE:
        return False
    if type(step).__name__ == "KBinsDiscretizer":
        return bool(step.encode == "ordinal")
    filled = getattr(step, "missing_values", None)  # an imputer may also replace a number
    return not isinstance(filled, int | float) or bool(np.isnan(filled))
