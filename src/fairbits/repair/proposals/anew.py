"""Small tables: a network of the same shape trained anew without protected inputs, stopped where cross-validation says.

A model that knows a few hundred rows by heart is a poor teacher: what it says about their neighbours is mostly those
rows. Training anew on the labels costs seconds there. How long, and where the threshold lies, is chosen by five-fold
cross-validation *inside the training rows*; rows that are held out are never looked at. Random starts move such small
tables by a point or two, so several networks are trained and one of the same shape is taught what they say on the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from fairbits.domain import DEFAULT_THRESHOLD, Codes, DecisionRule, Encoding, Schema
from fairbits.errors import CapabilityError
from fairbits.models import Fitting, Network, refit
from fairbits.repair.proposals.blind import protected_inputs, without_weights
from fairbits.repair.proposals.clip import moved_odds
from fairbits.repair.proposals.distil import near_people
from fairbits.subject import balanced_accuracy

Doubles = npt.NDArray[np.float64]

#: Tables of so many training rows are trained on anew; beyond, a model's own opinion is worth more than its rows.
FEWEST, MOST = 60, 5_000
FOLDS, STARTS = 5, 5
#: Updates that are tried.
UPDATES = (50, 100, 200, 400, 800, 1600)
BATCH, RATE = 128, 2e-3
#: People near the rows about whom the mean of several networks is heard, and updates to learn it.
NEAR, LESSONS = 4_000, 1_500
#: Thresholds that are tried, and how much accuracy one may cost for the sake of balanced accuracy.
THRESHOLDS, SPARED = 100, 0.005
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
            f"a network of the same shape without weights on protected inputs, taught the mean of {STARTS} that were "
            f"trained anew on the labels: {self.updates} updates, chosen by cross-validation on training rows "
            f"({self.accuracy:.1%} there, balanced {self.balanced_accuracy:.1%})"
        )


def trained_anew(
    network: Network,
    schema: Schema,
    encoding: Encoding,
    rows: Codes,
    labels: Doubles,
    rng: np.random.Generator,
) -> Anew:
    """Train a network of the same shape from random weights, blind."""
    if schema.regression or len(schema.classes) != 2 or not FEWEST <= len(rows) <= MOST:
        raise CapabilityError(
            f"a network is trained anew for two classes and {FEWEST} to {MOST:,} training rows, and here are "
            f"{len(schema.classes)} classes and {len(rows):,} rows."
        )
    inputs = np.asarray(encoding.encode(rows), np.float32)
    protected = protected_inputs(schema, encoding)
    inputs[:, protected] = 0
    folds = _folds(labels, rng)

    def several(some: npt.NDArray[np.bool_], updates: int, scaled: bool, starts: int) -> list[Network]:
        lesson = inputs[some], labels[some]
        return [_fitted(network, *lesson, protected, rng, updates, scaled=scaled) for _ in range(starts)]

    def out_of_fold(updates: int, scaled: bool, starts: int) -> Doubles:
        out = np.empty(len(rows))
        for fold in range(FOLDS):
            kept = folds != fold
            out[~kept] = _mean(several(kept, updates, scaled, starts), inputs[~kept])
        return out

    best: tuple[float, int, bool] | None = None
    for scaled, updates in product((False, True), UPDATES):
        out = out_of_fold(updates, scaled, 1)
        value = float(np.mean(_quality(out, _best_shift(out, labels, schema), labels, schema)))
        if best is None or value > best[0]:
            best = (value, updates, scaled)
    assert best is not None  # noqa: S101 - there is at least one number of updates
    _, updates, scaled = best
    out = out_of_fold(updates, scaled, STARTS)
    shift = _best_shift(out, labels, schema)
    accuracy, balanced_accuracy = _quality(out, shift, labels, schema)
    trained = several(np.ones(len(rows), np.bool_), updates, scaled, STARTS)
    near = np.asarray(encoding.encode(near_people(schema, rows, NEAR, rng)), np.float32)
    near[:, protected] = 0
    made = _taught(trained, np.concatenate([inputs, near]), protected, rng)
    return Anew(_moved(made, shift), updates, shift, accuracy, balanced_accuracy)


def _mean(networks: list[Network], inputs: npt.NDArray[np.float32]) -> Doubles:
    """What networks say on the mean."""
    return np.asarray(np.mean([one.scores(inputs) for one in networks], axis=0, dtype=np.float64))


def _taught(
    teachers: list[Network],
    inputs: npt.NDArray[np.float32],
    protected: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> Network:
    """One network that says what several say on the mean; it goes on from the one that is nearest to it.

    Small networks can start badly (ReLU neurons that are never on): such a one is far from the mean.
    """
    mean = _mean(teachers, inputs)
    first = min(teachers, key=lambda one: float(np.abs(one.scores(inputs) - mean).mean()))
    targets = DecisionRule(2, first.favourable, None).both(mean)
    fitting = Fitting(LESSONS, batch=min(BATCH, len(inputs)), learning_rate=RATE)
    return without_weights(refit(first, inputs, targets, rng, fitting=fitting, frozen=protected), protected)


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
    return without_weights(learned, protected)


def _best_shift(scores: Doubles, labels: Doubles, schema: Schema) -> float:
    """The shift of the log-odds with the best balanced accuracy, among those that cost next to no accuracy."""
    levels = np.clip(np.quantile(scores, np.linspace(0, 1, THRESHOLDS + 1)[1:-1]), _TINY, 1 - _TINY)
    stated = DEFAULT_THRESHOLD if schema.rule.threshold is None else schema.rule.threshold
    cut = float(np.clip(stated, _TINY, 1 - _TINY))
    shifts = np.append(0.0, np.log(cut / (1 - cut)) - np.log(levels / (1 - levels)))
    found = np.array([_quality(scores, float(shift), labels, schema) for shift in shifts])
    kept = np.flatnonzero(found[:, 0] >= found[:, 0].max() - SPARED)
    # Of equal ones the smallest move.
    return float(min(shifts[kept[found[kept, 1] == found[kept, 1].max()]], key=abs))


def _quality(scores: Doubles, shift: float, labels: Doubles, schema: Schema) -> tuple[float, float]:
    """Accuracy and balanced accuracy of scores whose log-odds are moved."""
    right = schema.rule.decide(moved_odds(scores, shift, _TINY)) == labels
    return float(right.mean()), balanced_accuracy(right, labels)


def _moved(network: Network, shift: float) -> Network:
    """The same network with the favourable class's log-odds moved: its last bias takes the shift up."""
    last = network.biases[-1].copy()
    if network.head == "softmax":
        last[network.favourable] += np.float32(shift)
    else:
        last += np.float32(shift if network.favourable == 1 else -shift)
    return replace(network, biases=(*network.biases[:-1], last))
