"""Blinding: shrink what protected inputs add to the first layer towards its mean; all the way, k is 1.

This ends the *direct* use of protected attributes only. Whatever stands in for them among the other attributes (a
postcode for an origin, hours of work for a sex) stays: proxies are not touched, and group figures say what they do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Encoding, Schema
from fairbits.errors import OptionError
from fairbits.models import Network

WARNING = "Blinding ends the direct use of protected attributes only: attributes that stand in for them (proxies) stay."


def protected_inputs(schema: Schema, encoding: Encoding) -> npt.NDArray[np.int64]:
    """Positions of the network's inputs that protected attributes fill."""
    return np.concatenate([encoding.parts[i].columns for i in schema.protected_columns])


def shrunk(network: Network, schema: Schema, encoding: Encoding, rows: Codes, share: float) -> Network:
    """The network with protected inputs moved this share of the way to their mean over the rows.

    Their weights become ``1 − share`` of what they were, and the first bias takes up the rest: the shape stays.
    """
    if not 0 <= share <= 1:
        raise OptionError(f"the share to shrink by is {share}; it must be between 0 and 1.")
    inputs = protected_inputs(schema, encoding)
    mean = encoding.encode(rows)[:, inputs].mean(axis=0, dtype=np.float64)
    first = network.weights[0].copy()
    taken = share * (mean @ first[inputs].astype(np.float64))
    first[inputs] *= np.float32(1 - share)
    bias = (network.biases[0] + taken).astype(np.float32)
    return replace(network, weights=(first, *network.weights[1:]), biases=(bias, *network.biases[1:]))


def without_weights(network: Network, inputs: npt.NDArray[np.int64]) -> Network:
    """The same network, which gives some of its inputs no weight."""
    first = network.weights[0].copy()
    first[inputs] = 0
    return replace(network, weights=(first, *network.weights[1:]))


def blinded(network: Network, schema: Schema, encoding: Encoding, rows: Codes) -> Network:
    """The network that sees the mean in place of every protected input: k = 1 for everybody."""
    return shrunk(network, schema, encoding, rows, 1.0)
