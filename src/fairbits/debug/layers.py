"""Where twins drift apart: distances between their outputs in every layer, and which layer widens them most."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.debug.results import QUANTILES, Floats, LayerEffect
from fairbits.domain import Encoding, Twins
from fairbits.domain.attribute import Codes
from fairbits.engine.distances import widest
from fairbits.models import HasActivations

#: Keeps ρ finite where twins do not differ yet (ε1 of the paper).
SMALL = 1e-7
#: Twins run through the model at a time.
ROWS = 32_768


def layer_distances(
    model: HasActivations, encoding: Encoding, twins: Twins, people: Codes, *, threads: int | None = None
) -> tuple[Floats, tuple[int, ...]]:
    """δ of every case and layer, (cases, layers + 1), and the layers' widths; column 0 is the protected input.

    δ is the largest L1 distance between two twins' outputs, divided by the width.
    """
    first, inputs = _protected_distance(encoding, twins, threads)
    pieces: list[Floats] = []
    widths: tuple[int, ...] = (inputs,)
    step = max(1, ROWS // twins.m)
    for start in range(0, len(people), step):
        batch = people[start : start + step]
        outputs = model.activations(encoding.encode_twins(batch, twins).reshape(-1, encoding.width))
        widths = (inputs, *(int(layer.shape[1]) for layer in outputs))
        found = [
            widest(np.asarray(layer, np.float32).reshape(len(batch), twins.m, -1), threads=threads)
            / max(layer.shape[1], 1)
            for layer in outputs
        ]
        pieces.append(np.column_stack([np.full(len(batch), first), *found]))
    return np.concatenate(pieces), widths


def _protected_distance(encoding: Encoding, twins: Twins, threads: int | None) -> tuple[float, int]:
    parts = [encoding.parts[i].encode(twins.values[:, place]) for place, i in enumerate(twins.columns)]
    inputs = np.column_stack(parts).astype(np.float32)
    return float(widest(inputs[None], threads=threads)[0]) / inputs.shape[1], inputs.shape[1]


def amplification(delta: Floats) -> Floats:
    """ρ of every case and layer from the first layer on: growth over the widest layer before, relative to that."""
    before = np.maximum.accumulate(delta, axis=1)[:, :-1]
    return (delta[:, 1:] - before) / (before + SMALL)


def layer_effects(
    delta: Floats, rho: Floats, widths: tuple[int, ...]
) -> tuple[tuple[LayerEffect, ...], npt.NDArray[np.int64]]:
    """One record per layer, and each case's vote: the layer with the largest ρ (the earlier one if equal)."""
    ballots = rho.argmax(axis=1) + 1
    votes = np.bincount(ballots, minlength=delta.shape[1])
    found = []
    for layer, width in enumerate(widths):
        growth = rho[:, layer - 1] if layer else None
        found.append(
            LayerEffect(
                layer=layer,
                width=width,
                delta=float(delta[:, layer].mean()),
                rho=None if growth is None else float(growth.mean()),
                votes=int(votes[layer]),
                delta_quantiles=_quantiles(delta[:, layer]),
                rho_quantiles=None if growth is None else _quantiles(growth),
            )
        )
    return tuple(found), ballots


def suspect_of(layers: tuple[LayerEffect, ...]) -> int | None:
    """The hidden layer with the most votes, by mean ρ where votes are equal; None for a network without any.

    The last layer is the decision itself: no neuron of it can be held.
    """
    hidden = layers[1:-1]
    return max(hidden, key=lambda one: (one.votes, one.rho or 0.0)).layer if hidden else None


def _quantiles(values: Floats) -> tuple[float, ...]:
    return tuple(np.quantile(values, QUANTILES).tolist())
