"""Bits in the labels: what the protected attributes tell about the label when everything else is known.

Two learners (gradient-boosted trees) predict the label of rows that they have not seen, one with the protected columns
and one without. The difference of their log-losses, in bits per row, estimates the conditional mutual information of
label and protected attributes given the rest. It is a difference on held-out rows, so it is about zero where the
protected attributes tell nothing (what falls below is counted as 0); what the learners cannot see is missed, so it
leans low.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.debug.records import Floats, LabelBits
from fairbits.domain import Schema, Table
from fairbits.errors import TableError
from fairbits.measure import Estimate, bootstrap_means, student_ratio

FOLDS = 3
#: More rows than this make the estimate no better by a digit that matters, and take long.
MAX_ROWS = 20_000
MIN_ROWS = 30
TREES, LEAVES, RATE = 60, 12, 0.1
#: A prediction is never more certain than one row in this many: one wrong row must not decide.
CERTAIN = 1e4
RESAMPLES = 1000


def label_bits(schema: Schema, table: Table, rng: np.random.Generator) -> LabelBits:
    """Bits of the protected attributes in the labels, with a 95 % bootstrap interval over rows."""
    if table.labels is None:
        raise TableError("the table has no labels, so nothing can be said about bits in them; name its target.")
    if len(table) < MIN_ROWS:
        raise TableError(f"{len(table)} rows are too few to say what their labels carry; {MIN_ROWS} are needed.")
    rows = rng.permutation(len(table))[:MAX_ROWS]
    codes, labels = table.codes[rows], table.labels[rows]
    folds = np.arange(len(rows)) % FOLDS  # rows are in random order already
    free = np.array(schema.free_columns, dtype=np.int64)
    seed = int(rng.integers(2**31))
    every = np.arange(len(schema))
    import sklearn.ensemble  # noqa: F401 - its thread pool can be limited only once it is there
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # its threads wait by spinning: on busy cores that takes a hundred times as long
        with_them = _losses(schema, codes, labels, folds, every, seed)
        without = _losses(schema, codes, labels, folds, free, seed)
        if schema.regression:
            return _gaussian(with_them, without)
        estimate = bootstrap_means((without - with_them)[:, None], rng, resamples=RESAMPLES)[0]
    return LabelBits(_bits_of(estimate), float(without.mean()), len(rows), FOLDS)


def _losses(
    schema: Schema,
    codes: npt.NDArray[np.float64],
    labels: Floats,
    folds: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int64],
    seed: int,
) -> Floats:
    """Bits (or squared errors, for a regression) that each row's label costs a learner that has not seen it."""
    found = np.empty(len(labels))
    for fold in range(FOLDS):
        held = folds == fold
        learner = _learner(schema, columns, seed) if len(columns) else None
        if learner is None:
            found[held] = _without_inputs(schema, labels[~held], labels[held])
            continue
        learner.fit(codes[~held][:, columns], labels[~held])
        if schema.regression:
            found[held] = (learner.predict(codes[held][:, columns]) - labels[held]) ** 2
            continue
        shares = np.full((int(held.sum()), len(schema.classes)), 1 / CERTAIN)
        shares[:, learner.classes_.astype(np.int64)] = learner.predict_proba(codes[held][:, columns])
        found[held] = _bits(shares, labels[held])
    return found


def _learner(schema: Schema, columns: npt.NDArray[np.int64], seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if schema.regression else HistGradientBoostingClassifier
    attributes = [schema.attributes[i] for i in columns]
    categories = [a.kind == "category" and 2 < len(a.labels) <= 255 for a in attributes]
    return kind(
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        l2_regularization=1.0,
        early_stopping=False,
        categorical_features=categories if any(categories) else None,
        random_state=seed,
    )


def _without_inputs(schema: Schema, known: Floats, labels: Floats) -> Floats:
    if schema.regression:
        return (labels - known.mean()) ** 2
    counts = np.bincount(known.astype(np.int64), minlength=len(schema.classes))
    return _bits(np.tile((counts + 1 / CERTAIN) / len(known), (len(labels), 1)), labels)


def _bits(shares: Floats, labels: Floats) -> Floats:
    mine = shares[np.arange(len(labels)), labels.astype(np.int64)]
    return -np.log2(np.clip(mine, 1 / CERTAIN, 1 - 1 / CERTAIN))


def _gaussian(with_them: Floats, without: Floats) -> LabelBits:
    """For a regression: ½ log2 of the ratio of mean squared errors, the bits if errors were Gaussian."""
    tiny = np.finfo(np.float64).tiny
    ratio = student_ratio(without + tiny, with_them + tiny)
    ends = (0.5 * float(np.log2(max(end, tiny))) for end in (ratio.value, ratio.low, ratio.high))
    # The bits left to know about a number depend on its unit: none are given.
    return LabelBits(_bits_of(Estimate(*ends)), float("nan"), len(without), FOLDS)


def _bits_of(found: Estimate) -> Estimate:
    """Attributes tell no negative number of bits: a difference below 0 is chance, and an interval ends there."""
    return Estimate(*(max(value, 0.0) + 0.0 for value in (found.value, found.low, found.high)))
