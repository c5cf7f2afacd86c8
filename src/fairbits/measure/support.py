"""Twins that could be somebody: those whose protected values enough rows of the table have, and each attribute alone.

Three nested sets of twins of a person (METHOD.md 15): all; those that the rules allow; those that are supported,
because at least ten rows of the table have that combination of protected values. Where rules leave people different
twins, rows count for people to whom the rules leave the same ones. A value of a person's own counts as the range that
it is in. Beside these, the twins that differ in one attribute only, the others at the person's own values.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Truth, Twins, Validity
from fairbits.measure.evaluator import Evaluator

#: Rows of the table that must have a combination of protected values.
MIN_ROWS = 10

Keys = npt.NDArray[np.int64]


class Support:
    """Which twins of people at least so many rows of a table have."""

    def __init__(self, evaluator: Evaluator, rows: Codes, *, least: int = MIN_ROWS):
        self._twins = evaluator.twins
        # By the rules alone: that a row breaks one does not move its neighbours into another stratum.
        self._rules = Validity(evaluator.schema, Twins(evaluator.schema, own=False))
        found, counts = np.unique(self._keys(rows, self._strata(rows)), return_counts=True)
        self._known: Keys = found[counts >= least]
        #: How many of the combinations that everybody has at least so many rows have, whatever their stratum.
        self.count = int((np.bincount(self._twins.index_of(rows), minlength=self._twins.m) >= least).sum())

    def twins(self, codes: Codes) -> Truth:
        """The supported twins of these people, (n, twins); whether they can exist is not looked at."""
        twins, strata = self._twins, self._strata(codes)
        found = np.empty((len(codes), twins.most), np.bool_)
        for twin in range(twins.most):
            at = np.full(len(codes), twin)
            found[:, twin] = np.isin(self._keys(twins.as_twins(codes, at), strata), self._known)
        return found

    def _strata(self, codes: Codes) -> Keys:
        """A number for the twins that the rules leave a person: equal where they are, else practically never."""
        if not self._rules.about_twins:
            return np.zeros(len(codes), np.int64)
        lots = np.random.default_rng(0).integers(1, 2**62, self._twins.m, dtype=np.int64)
        return np.asarray(np.where(self._rules.twins(codes), lots, 0).sum(axis=1))  # which may wrap round

    def _keys(self, codes: Codes, strata: Keys) -> Keys:
        """A number for the protected values of people, by the ranges, within their stratum."""
        key = np.zeros(len(codes), np.int64)
        for column in self._twins.columns:
            attribute = self._twins.schema.attributes[column]
            key = key * (attribute.twin_count + 1) + attribute.twin_place(codes[:, column]) + 1
        return key ^ strata


def alone(twins: Twins, codes: Codes, place: int) -> Truth:
    """The twins that differ from these people in one protected attribute, given by its place, (n, twins)."""
    found = np.ones((len(codes), twins.most), np.bool_)
    for other, column in enumerate(twins.columns):
        if other != place:
            pattern = twins.patterns[:, other][None, :]
            found &= np.isnan(pattern) | (pattern == codes[:, column][:, None])
    return found


def flips_within(decisions: npt.NDArray[np.int64], there: Truth) -> npt.NDArray[np.bool_]:
    """Who has two different decisions among some of the twins."""
    most = np.where(there, decisions, -1).max(axis=1)
    least = np.where(there, decisions, np.iinfo(np.int64).max).min(axis=1)
    return np.asarray(most > least)
