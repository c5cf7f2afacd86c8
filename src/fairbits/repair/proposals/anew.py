"""Small tables: a network of the same shape trained anew without protected inputs, stopped where cross-validation says.

A model that knows a few hundred rows by heart is a poor teacher: what it says about their neighbours is mostly those
rows. Training anew on the labels costs seconds there. How long, and where the threshold lies, is chosen by five-fold
cross-validation *inside the training rows*; rows that are held out are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from fairbits.domain import DEFAULT_THRESHOLD, Codes, Encoding, Schema
from fairbits.errors import CapabilityError
from fairbits.models import Fitting, Network, refit
from fairbits.repair.proposals.blind import protected_inputs

Doubles = npt.NDArray[np.float64]

#: Tables of so many training rows are trained on anew; beyond, a model's own opinion is worth more than its rows.
FEWEST, MOST = 60, 5_000
FOLDS, STARTS = 5, 3
#: Updates that are tried.
UPDATES = (50, 100, 200, 400, 800, 1600)
BATCH, RATE = 128, 2e-3
_TINY = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Anew:
    """The network, and what cross-validation inside the training rows says about it."""

    network: Network
    updates: int
    shift: float
    accuracy: float
    balanced_accuracy: float

    @property
    def words(self) -> str:
        """How it was made."""
        return (
            f"a network of the same shape without weights on protected inputs, trained anew on the labels: "
            f"{self.updates} updates, chosen by cross-validation on training rows ({self.accuracy:.1%} there, "
            f"balanced {self.balanced_accuracy:.1%})"
        )


def trained_anew(
    network: Network,
    schema: Schema,
    encoding: Encoding,
    rows: Codes,
    labels: Doubles,
    rng: np.random.Generator,
) -> Anew:
    """Train a network of the same shape from random weights, blind.

    Parameters
    ----------
    network
        Whose shape it gets.
    schema, encoding
        As of the subject.
    rows, labels
        Training rows alone.
    rng
        Draws folds and weights.

    Returns
    -------
    Anew
        The network with the number of updates, and the threshold, that do best out of fold: by the mean of accuracy
        and balanced accuracy.

    Raises
    ------
    CapabilityError
        For regressions, more than two classes, and tables too small or too large for it.
    """
    if schema.regression or len(schema.classes) != 2 or not FEWEST <= len(rows) <= MOST:
        raise CapabilityError(
            f"a network is trained anew for two classes and {FEWEST} to {MOST:,} training rows, and here are "
            f"{len(schema.classes)} classes and {len(rows):,} rows."
        )
    inputs = np.asarray(encoding.encode(rows), np.float32)
    protected = protected_inputs(schema, encoding)
    inputs[:, protected] = 0
    folds = _folds(labels, rng)
    best: tuple[float, int, bool, float, Doubles] | None = None
    for scaled, updates in product((False, True), UPDATES):
        out = np.empty(len(rows))
        for fold in range(FOLDS):
            kept = folds != fold
            made = _fitted(network, inputs[kept], labels[kept], protected, rng, updates, scaled=scaled)
            out[~kept] = made.scores(inputs[~kept])
        for shift in dict.fromkeys((0.0, _matching(out, labels == schema.favourable_index, schema))):
            value = float(np.mean(_quality(out, shift, labels, schema)))
            if best is None or value > best[0]:
                best = (value, updates, scaled, shift, out)
    assert best is not None  # noqa: S101 - there is at least one number of updates
    _, updates, scaled, shift, out = best
    accuracy, balanced_accuracy = _quality(out, shift, labels, schema)
    # Small networks can start badly (ReLU neurons that are never on): of a few, the one that fits these rows best.
    several = [
        _moved(_fitted(network, inputs, labels, protected, rng, updates, scaled=scaled), shift) for _ in range(STARTS)
    ]
    made = max(
        several, key=lambda one: float(np.mean(_quality(one.scores(inputs).astype(np.float64), 0.0, labels, schema)))
    )
    return Anew(made, updates, shift, accuracy, balanced_accuracy)


def _folds(labels: Doubles, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """A fold for every row, each class spread evenly."""
    folds = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        mine = rng.permutation(np.flatnonzero(labels == label))
        folds[mine] = np.arange(len(mine)) % FOLDS
    return folds


def _fitted(
    shape: Network,
    inputs: npt.NDArray[np.float32],
    labels: Doubles,
    protected: npt.NDArray[np.int64],
    rng: np.random.Generator,
    updates: int,
    *,
    scaled: bool,
) -> Network:
    """A network of this shape from random weights (He 2015), trained on labels.

    With ``scaled``, first weights are drawn for inputs in units of their spread, else for inputs as they are, where
    those with wide ranges count for more at the start.
    """
    weights = [rng.normal(0, np.sqrt(2 / w.shape[0]), w.shape) for w in shape.weights]
    biases = [np.zeros(b.shape) for b in shape.biases]
    if scaled:
        spread = inputs.std(axis=0, dtype=np.float64)
        weights[0] /= np.where(spread > 0, spread, 1.0)[:, None]
        biases[0] -= inputs.mean(axis=0, dtype=np.float64) @ weights[0]
    weights[0][protected] = 0
    fresh = replace(
        shape,
        weights=tuple(w.astype(np.float32) for w in weights),
        biases=tuple(b.astype(np.float32) for b in biases),
    )
    fitting = Fitting(updates, batch=min(BATCH, len(inputs)), learning_rate=RATE)
    learned = refit(fresh, inputs, labels.astype(np.int64), rng, fitting=fitting, frozen=protected)
    first = learned.weights[0].copy()
    first[protected] = 0
    return replace(learned, weights=(first, *learned.weights[1:]))


def _matching(scores: Doubles, deserved: npt.NDArray[np.bool_], schema: Schema) -> float:
    """The shift of the log-odds at which as many are favoured as deserve it."""
    level = float(np.clip(np.quantile(scores, 1 - deserved.mean()), _TINY, 1 - _TINY))
    stated = DEFAULT_THRESHOLD if schema.rule.threshold is None else schema.rule.threshold
    cut = float(np.clip(stated, _TINY, 1 - _TINY))
    return float(np.log(cut / (1 - cut)) - np.log(level / (1 - level)))


def _quality(scores: Doubles, shift: float, labels: Doubles, schema: Schema) -> tuple[float, float]:
    """Accuracy and balanced accuracy of scores whose log-odds are moved."""
    inside = np.clip(scores, _TINY, 1 - _TINY)
    odds = np.exp(shift) * inside / (1 - inside)
    right = schema.rule.decide(odds / (1 + odds)) == labels
    return float(right.mean()), float(np.mean([right[labels == label].mean() for label in np.unique(labels)]))


def _moved(network: Network, shift: float) -> Network:
    """The same network with the favourable class's log-odds moved: its last bias takes the shift up."""
    last = network.biases[-1].copy()
    if network.head == "softmax":
        last[network.favourable] += np.float32(shift)
    else:
        last += np.float32(shift if network.favourable == 1 else -shift)
    return replace(network, biases=(*network.biases[:-1], last))
