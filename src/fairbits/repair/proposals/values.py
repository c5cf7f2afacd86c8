"""Which neurons may be held, and at which values: off, and at typical values of the neuron over real people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairbits.errors import ModelError
from fairbits.models import Do, Network

#: Where in the distribution of a neuron's output its values are taken, beside zero and the mean.
QUANTILES = (0.1, 0.5, 0.9, 1.0)
#: Outputs closer to zero than this count as off.
OFF = 1e-6


def candidates(network: Network, inputs: npt.NDArray[np.float32]) -> list[Do]:
    """Every hidden neuron at every one of its values; dead neurons are left out."""
    found: list[Do] = []
    for layer, outputs in enumerate(network.activations(inputs)[:-1]):
        for neuron in range(outputs.shape[1]):
            if np.ptp(outputs[:, neuron]) > OFF:
                found += _attainable(network, layer, neuron, _values(outputs[:, neuron]))
    return found


def around(network: Network, inputs: npt.NDArray[np.float32], dos: Sequence[Do], *, values: int = 9) -> list[Do]:
    """The same neurons at values spread over their outputs for real people."""
    outputs = network.activations(inputs)
    found: list[Do] = []
    for do in dos:
        column = outputs[do.layer][:, do.neuron]
        found += _attainable(network, do.layer, do.neuron, np.linspace(column.min(), column.max(), values))
    return found


def is_off(do: Do) -> bool:
    """Whether an intervention switches a neuron off."""
    return abs(do.value) <= OFF


def _values(outputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    typical = [0.0, float(outputs.mean(dtype=np.float64)), *np.quantile(outputs, QUANTILES).tolist()]
    return np.unique(np.round(typical, 6))


def _attainable(network: Network, layer: int, neuron: int, values: npt.NDArray[np.float64]) -> list[Do]:
    """Some values are beyond an activation (a sigmoid is never 0): surgery could not write them into a bias."""
    found = []
    for value in values.tolist():
        try:
            network.activations_after[layer].inverse(value)
        except ModelError:
            continue
        found.append(Do(layer, neuron, value))
    return found
