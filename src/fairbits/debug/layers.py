"""Where twins drift apart: distances between their outputs in every layer, and which layer widens them most."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fairbits.debug.records import QUANTILES, Floats, LayerEffect
from fairbits.domain import Codes, Inputs, Truth
from fairbits.engine import widest
from fairbits.measure import Evaluator
from fairbits.models import HasActivations, require

#: Keeps ρ finite where twins do not differ yet (ε1 of the paper).
SMALL = 1e-7
#: Twins run through the model at a time.
ROWS = 32_768


def layer_distances(evaluator: Evaluator, people: Codes) -> tuple[Floats, tuple[int, ...]]:
    """δ of every case and layer, (cases, layers + 1), and the layers' widths; column 0 is the protected input.

    δ is the largest L1 distance between two twins' outputs, divided by the width. Twins that cannot exist do not count.

    Parameters
    ----------
    evaluator
        The model, and how people are evaluated.
    people
        People, (n, attributes).

    Returns
    -------
    tuple[Floats, tuple[int, ...]]
        Distances, (n, layers + 1), and widths of the layers.

    Raises
    ------
    CapabilityError
        If the model does not show its layers.
    """
    model, encoding, twins = evaluator.model, evaluator.encoding, evaluator.twins
    require(model, HasActivations, "measuring layers")
    protected = np.concatenate([encoding.parts[i].columns for i in twins.columns])
    pieces: list[Floats] = []
    widths: tuple[int, ...] = ()
    step = max(1, ROWS // twins.m)
    for start in range(0, len(people), step):
        batch = people[start : start + step]
        valid = evaluator.valid_twins(batch)
        inputs = _existing(encoding.encode_twins(batch, twins), valid)
        outputs = model.activations(inputs.reshape(-1, encoding.width))  # type: ignore[attr-defined]
        layers = (inputs[:, :, protected], *(_by_person(layer, inputs.shape[:2]) for layer in outputs))
        widths = tuple(layer.shape[2] for layer in layers)
        # The protected inputs of all people are the same, unless some twins cannot exist.
        first = widest(layers[0][:1] if valid is None else layers[0], threads=evaluator.threads)
        found = [np.broadcast_to(first, len(batch)), *(widest(one, threads=evaluator.threads) for one in layers[1:])]
        pieces.append(np.column_stack(found) / np.maximum(widths, 1))
    return np.concatenate(pieces), widths


def _existing(inputs: Inputs, valid: Truth | None) -> Inputs:
    """Twins that cannot exist stand where the person's first one stands that can: no further apart than it is."""
    if valid is None:
        return inputs
    stand_in = inputs[np.arange(len(inputs)), valid.argmax(axis=1)]
    return np.where(valid[:, :, None], inputs, stand_in[:, None, :])


def _by_person(layer: npt.NDArray[np.float32], shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    return np.asarray(layer, np.float32).reshape(*shape, -1)


def amplification(delta: Floats) -> Floats:
    """Growth ρ of every case and layer from the first layer on, over the widest layer before, relative to that.

    Parameters
    ----------
    delta
        Distances, (n, layers + 1).

    Returns
    -------
    Floats
        Growth, (n, layers).
    """
    before = np.maximum.accumulate(delta, axis=1)[:, :-1]
    return (delta[:, 1:] - before) / (before + SMALL)


def layer_effects(
    delta: Floats, rho: Floats, widths: tuple[int, ...]
) -> tuple[tuple[LayerEffect, ...], npt.NDArray[np.int64]]:
    """One record per layer, and each case's vote: the layer with the largest ρ (the earlier one if equal).

    Parameters
    ----------
    delta
        Distances, (n, layers + 1).
    rho
        Growth, (n, layers).
    widths
        Widths of the layers.

    Returns
    -------
    tuple[tuple[LayerEffect, ...], npt.NDArray[np.int64]]
        Records, and the layer that each case votes for, (n,).
    """
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
    """The hidden layer with the largest number of votes, by mean ρ where votes are equal.

    The last layer is the decision itself: no neuron of it can be held.

    Parameters
    ----------
    layers
        Records of all layers.

    Returns
    -------
    int | None
        Number of the layer, counted from 1; None for a network without hidden layers.
    """
    hidden = layers[1:-1]
    return max(hidden, key=lambda one: (one.votes, one.rho or 0.0)).layer if hidden else None


def _quantiles(values: Floats) -> tuple[float, ...]:
    return tuple(np.quantile(values, QUANTILES).tolist())
