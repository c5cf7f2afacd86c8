"""Which neurons carry it: every neuron held at every value that it can take, and what becomes of k and accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fairbits.debug.records import Candidate, Floats, NeuronEffect, halves
from fairbits.domain import Codes
from fairbits.engine import accuracies
from fairbits.errors import ModelError
from fairbits.measure import Evaluator, hold
from fairbits.models import Do, HasActivations, HasInterventions, Model, Network, kind_of
from fairbits.subject import Subject, decided

#: A value is a candidate if it costs at most this much accuracy (ε2 of the paper).
MAX_LOSS = 0.05
#: And it must leave this share of what the network gains over deciding the same for everybody: where classes are
#: uneven, the first rule alone would keep values that switch the whole network off (k = 1, and of no use).
MIN_GAIN = 0.1
#: A value this small beside the neuron's largest counts as inactive.
INACTIVE = 1e-3
#: Rows that the neurons' values are taken from, at most; and how many run through the model at a time.
MAX_ROWS, ROWS = 100_000, 16_384
STATISTICS = ("zero", "min", "max", "mean", "mean-sd", "mean+sd", "mean-2sd", "mean+2sd")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
NAMES = (*STATISTICS, *(f"q{round(100 * level):02d}" for level in LEVELS))


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """What each intervention does; ``accuracy`` is NaN where it is not known."""

    accuracy: Floats
    k_mean: Floats
    id_rate: Floats


class TryOut(Protocol):
    """Whoever holds neurons at values: this process, or many hands."""

    def __call__(self, evaluator: Evaluator, subject: Subject, cases: Codes, dos: list[Do], *, judged: bool) -> Tried:
        """What each intervention does, in their order."""


def neuron_effects(
    evaluator: Evaluator,
    subject: Subject,
    cases: Codes,
    layers: Sequence[int],
    *,
    rng: np.random.Generator,
    try_out: TryOut | None = None,
) -> tuple[tuple[NeuronEffect, ...], float | None]:
    """Every neuron of the layers (1 is the first), and the accuracy with nothing held (None: not known).

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    subject
        The model, its table and its schema.
    cases
        People, (n, attributes).
    layers
        Numbers of layers, counted from 1.
    rng
        Source of random numbers.
    try_out
        Holds neurons at values; None does it in this process.

    Returns
    -------
    tuple[tuple[NeuronEffect, ...], float | None]
        Effects of the neurons, and the accuracy with nothing held (None where it is not known).
    """
    codes = subject.table.codes
    if len(codes) > MAX_ROWS:
        codes = codes[np.sort(rng.choice(len(codes), MAX_ROWS, replace=False))]
    values = values_of(subject, codes, [layer - 1 for layer in layers])
    named = [
        (name, Do(layer - 1, neuron, float(table[place, neuron])))
        for layer, table in zip(layers, values, strict=True)
        for neuron in range(table.shape[1])
        for place, name in enumerate(NAMES)
    ]
    ranges = {layer - 1: table[1:3] for layer, table in zip(layers, values, strict=True)}
    named = [(name, do) for name, do in named if can_hold(subject.model, do, ranges[do.layer][:, do.neuron])]
    distinct = list(dict.fromkeys(do for _, do in named))
    baseline = accuracy_of(subject.model, subject)
    hold_them = try_out or try_here
    choosing, reporting = halves(cases)
    tried = (
        hold_them(evaluator, subject, choosing, distinct, judged=baseline is not None),
        hold_them(evaluator, subject, reporting, distinct, judged=False),
    )
    sizes = len(choosing), len(reporting)
    where = {do: number for number, do in enumerate(distinct)}
    k_before = [float(half.mean()) for half in halves(evaluator.evaluate(cases).k)]
    floor = -np.inf if baseline is None else accuracy_floor(baseline, subject)
    found = []
    for (layer, neuron), group in groupby(named, key=lambda pair: (pair[1].layer, pair[1].neuron)):
        candidates = tuple(
            _candidate(name, do, tried, sizes, where[do], floor, subject.schema.regression) for name, do in group
        )
        found.append(_judged(layer + 1, neuron, candidates, k_before))
    return tuple(found), baseline


def accuracy_floor(baseline: float, subject: Subject) -> float:
    """The smallest accuracy that counts as kept.

    Parameters
    ----------
    baseline
        Accuracy with nothing held.
    subject
        The model, its table and its schema.

    Returns
    -------
    float
        The accuracy.
    """
    floor = baseline - MAX_LOSS
    labels = np.asarray(subject.table.labels).astype(np.int64)
    majority = float(np.bincount(labels).max() / len(labels))
    return max(floor, majority + MIN_GAIN * (baseline - majority)) if baseline > majority else floor


def accuracy_of(model: Model, subject: Subject) -> float | None:
    """The share of the table's rows decided as labelled; None where there are no labels or no decisions.

    Parameters
    ----------
    model
        The model.
    subject
        The model, its table and its schema.

    Returns
    -------
    float | None
        The share; None where there are no labels or no decisions.
    """
    decided = _decisions(model, subject)
    return None if decided is None else float((decided == subject.table.labels).mean())


def _decisions(model: Model, subject: Subject) -> npt.NDArray[np.int64] | None:
    table = subject.table
    if table.labels is None:
        return None
    pieces = []
    for start in range(0, len(table), ROWS):
        piece = decided(model, subject.encoding.encode(table.codes[start : start + ROWS]), subject.schema)
        if piece is None:  # a regression, or a score that does not say which of several classes is decided
            return None
        pieces.append(piece)
    return np.concatenate(pieces)


def values_of(subject: Subject, codes: Codes, layers: Sequence[int]) -> list[npt.NDArray[np.float32]]:
    """The candidate values of every neuron of each layer, (values, width), in the order of NAMES.

    Parameters
    ----------
    subject
        The model, its table and its schema.
    codes
        People, (n, attributes).
    layers
        Numbers of layers, counted from 1.

    Returns
    -------
    list[npt.NDArray[np.float32]]
        Values of every neuron, one array (values, neurons) per layer.

    Raises
    ------
    ModelError
        If the model does not show its layers.
    """
    model = subject.model
    if not isinstance(model, HasActivations):
        raise ModelError(f"{kind_of(model)!r} does not show its layers.")
    pieces: list[list[npt.NDArray[np.float32]]] = [[] for _ in layers]
    for start in range(0, len(codes), ROWS):
        outputs = model.activations(subject.encoding.encode(codes[start : start + ROWS]))
        for place, layer in enumerate(layers):
            pieces[place].append(np.asarray(outputs[layer], dtype=np.float32))
    return [_statistics(np.concatenate(piece)) for piece in pieces]


def _statistics(outputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    mean, spread = outputs.mean(axis=0, dtype=np.float64), outputs.std(axis=0, dtype=np.float64)
    around = [mean + factor * spread for factor in (0, -1, 1, -2, 2)]
    rows = [np.zeros_like(mean), outputs.min(axis=0), outputs.max(axis=0), *around]
    return np.concatenate([np.stack(rows), np.quantile(outputs, LEVELS, axis=0)]).astype(np.float32)


def can_hold(model: Model, do: Do, seen: npt.NDArray[np.float32]) -> bool:
    """Whether the neuron's activation can put out the value; of a foreign model only the values seen are known to.

    Parameters
    ----------
    model
        The model.
    do
        Layer, neuron and value.
    seen
        Smallest and largest output that was seen.

    Returns
    -------
    bool
        True where it can.
    """
    if not isinstance(model, Network):
        return bool(seen[0] <= do.value <= seen[1])
    try:
        model.holding_bias(do)
    except ModelError:
        return False
    return True


def try_here(evaluator: Evaluator, subject: Subject, cases: Codes, dos: list[Do], *, judged: bool) -> Tried:
    """Effects of every intervention on the cases, and on the accuracy where that is known.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    subject
        The model, its table and its schema.
    cases
        People, (n, attributes).
    dos
        Interventions.
    judged
        Whether accuracy is wanted.

    Returns
    -------
    Tried
        Accuracy, mean k and rate of discrimination, per intervention.
    """
    model, table = subject.model, subject.table
    held = hold(evaluator, cases, dos)
    kept = np.full(len(dos), np.nan)
    if judged and isinstance(model, Network) and table.labels is not None:
        kept = accuracies(
            model,
            subject.encoding,
            table.codes,
            table.labels,
            dos,
            threshold=evaluator.threshold,
            threads=evaluator.threads,
        )
    elif judged and isinstance(model, HasInterventions):
        known = [accuracy_of(model.with_interventions([do]), subject) for do in dos]
        kept = np.array([np.nan if one is None else one for one in known], dtype=np.float64)
    return Tried(kept, held.k_mean, held.id_rate)


def _candidate(
    name: str, do: Do, tried: tuple[Tried, Tried], sizes: tuple[int, int], number: int, floor: float, regression: bool
) -> Candidate:
    accuracy = float(tried[0].accuracy[number])
    known = not np.isnan(accuracy)
    return Candidate(
        statistic=name,
        value=do.value,
        accuracy=accuracy if known else None,
        kept=accuracy >= floor if known else True,
        k_mean=float(np.average([half.k_mean[number] for half in tried], weights=sizes)),
        id_rate=None if regression else float(np.average([half.id_rate[number] for half in tried], weights=sizes)),
        k_choosing=float(tried[0].k_mean[number]),
        k_reported=float(tried[1].k_mean[number]),
    )


def _judged(layer: int, neuron: int, candidates: tuple[Candidate, ...], k_before: Sequence[float]) -> NeuronEffect:
    """ACD between the inactive value (nearest to 0) and the active one (> 0) that moves k most from there.

    Which one moves k most, one half of the cases says; by how much, the other. A neuron that is never near 0 (a
    sigmoid, say) is inactive at the smallest of its values.
    """
    largest = max((abs(one.value) for one in candidates), default=0.0)
    near = [one for one in candidates if abs(one.value) <= INACTIVE * largest]
    quiet = [one for one in near or candidates if one.kept]
    inactive = min(quiet, key=lambda one: abs(one.value), default=None)
    if inactive is None:
        return NeuronEffect(layer, neuron, None, None, None, candidates)
    still, floor = inactive.k_choosing, max(inactive.value, 0.0) + INACTIVE * largest
    loud = [one for one in candidates if one.kept and one.value > floor]
    active = max(loud, key=lambda one: abs(one.k_choosing - still), default=None)
    if active is None:
        return NeuronEffect(layer, neuron, None, None, inactive, candidates)
    chosen = (active.k_choosing - still) / k_before[0]
    reported = (active.k_reported - inactive.k_reported) / k_before[1]
    return NeuronEffect(layer, neuron, reported, active, inactive, candidates, chosen)
