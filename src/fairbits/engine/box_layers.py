"""A subject's ReLU network as the kernel of certificates takes it: its margin, seen from the attributes, in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairbits.domain import Attribute, Encoding, Numeric, Schema, Twins, Unseen
from fairbits.engine.kernels.box_bounds import Doubles, Integers, Layers
from fairbits.engine.rounding import DOUBLE, exact_layers, gamma, terms_of
from fairbits.errors import CapabilityError
from fairbits.models import Network

#: Values of an attribute that a set of values can hold.
MAX_SET = 64
#: A real attribute is cut into 2 to the power of this many parts, fewer where many are real: counts stay doubles.
PARTS, MAX_BITS = 16, 800


@dataclass(frozen=True, slots=True, eq=False)
class BoxNetwork:
    """A network over boxes of people.

    ``values`` are the codes of discrete attributes; of a real one, where each of its equal parts begins: the people of
    a part are all the reals in it, so that ``people`` counts parts of the domain and not persons where one is real.
    """

    layers: Layers
    columns: Integers
    values: tuple[Doubles, ...]
    paces: tuple[float, ...]
    factor: int

    @property
    def numeric(self) -> int:
        """How many attributes are ranges of steps."""
        return self.layers.numeric

    @property
    def people(self) -> int:
        """How many people there are in all; equal parts of them, where an attribute is real."""
        return self.factor * math.prod(len(values) for values in self.values)

    @property
    def countable(self) -> bool:
        """Whether a box holds people who can be counted, and not reals."""
        return not self.layers.wide.any()

    def whole(self) -> tuple[Doubles, Doubles, NDArray[np.uint64]]:
        """The box of everybody: first and last steps, and sets."""
        last = np.array([len(values) - 1 for values in self.values[: self.numeric]], dtype=np.float64)
        sets = [(1 << len(values)) - 1 for values in self.values[self.numeric :]]
        return np.zeros((1, self.numeric)), last[None], np.array([sets], dtype=np.uint64).reshape(1, -1)

    def places(self, codes: Doubles) -> tuple[NDArray[np.bool_], Doubles]:
        """Which people lie in the domain, and everybody's places: steps (broken ones of reals), positions in sets."""
        inside = np.ones(len(codes), np.bool_)
        found = np.zeros((len(codes), len(self.values)))
        for i, (column, values) in enumerate(zip(self.columns, self.values, strict=True)):
            mine = codes[:, int(column)]
            if i < self.numeric:
                found[:, i] = (mine - values[0]) / self.paces[i]
                wide = self.layers.wide[i]
                if wide == 0.0:
                    found[:, i] = np.rint(found[:, i])
                most = len(values) - 1 + wide
                inside &= (found[:, i] >= 0.0) & (found[:, i] <= most * (1 + 1e-9))  # the last real is rounded
                found[:, i] = np.minimum(found[:, i], most)
            else:
                order = np.argsort(values)
                at = np.clip(np.searchsorted(values[order], mine), 0, len(values) - 1)
                inside &= values[order][at] == mine
                found[:, i] = order[at]
        return inside, found


class _Numbers(NamedTuple):
    """An attribute whose values are a line of steps, or of parts of an interval."""

    column: int
    values: Doubles  # steps, or where parts begin
    slope: Doubles  # (neurons,), by step
    weight: Doubles  # (neurons,), of the input
    origin: float  # the first input, and how far apart two are
    gauge: float
    pace: float  # between two codes
    wide: float  # 1 where a step stands for all reals up to the next
    drift: float  # how far an input can be from origin + i · gauge, float64's own rounding too


def box_network(  # noqa: PLR0915 - attribute by attribute, then layer by layer
    network: Network, schema: Schema, encoding: Encoding, twins: Twins
) -> BoxNetwork:
    """The margin of a network, over boxes of people."""
    weights, biases, sizes = _margin(network)
    first, first_sizes = weights[0], sizes if len(network.weights) == 1 else np.abs(weights[0])
    bias = biases[0].copy()
    still = np.abs(bias) if len(network.weights) > 1 else np.array([np.abs(network.biases[-1]).sum(dtype=np.float64)])
    for column, value in encoding.fixed.items():
        bias += value * first[column]
        still = still + abs(value) * first_sizes[column]
    magnitude = still.copy()
    numeric: list[_Numbers] = []
    lookups: list[tuple[int, Doubles, Doubles, Doubles]] = []
    free = [i for i in schema.free_columns if not isinstance(encoding.parts[i], Unseen)]
    reals = sum(_interval(schema.attributes[i]) for i in free)
    parts = 2 ** min(PARTS, MAX_BITS // max(reals, 1))
    factor = math.prod(_count(schema.attributes[i]) for i in schema.free_columns if i not in free)
    for column in free:
        attribute, part = schema.attributes[column], encoding.parts[column]
        if _interval(attribute):
            if not isinstance(part, Numeric):
                raise CapabilityError(
                    f"attribute {attribute.name!r} is real, but the network gets it through a table; the statistical "
                    f"statement holds for it as for every model."
                )
            ends = np.array([attribute.low, attribute.upper], dtype=np.float64)
        else:
            ends = attribute.domain_values()
        rows = np.asarray(part.encode(ends), dtype=np.float64).reshape(len(ends), -1) @ first[part.columns]
        most = (np.abs(np.asarray(part.encode(ends))).reshape(len(ends), -1) @ first_sizes[part.columns]).max(axis=0)
        if not np.ptp(rows, axis=0).any():
            bias += rows[0]
            still = still + most
            factor *= 1 if _interval(attribute) else len(ends)
        elif isinstance(part, Numeric) and (_interval(attribute) or _even(ends)):
            one = _numbers(column, ends, parts if _interval(attribute) else None, part, first)
            bias += one.origin * one.weight
            numeric.append(one)
            most = (abs(one.origin) + abs(one.gauge) * len(one.values)) * first_sizes[part.column]
        else:
            if len(ends) > MAX_SET:
                raise CapabilityError(
                    f"attribute {attribute.name!r} has {len(ends)} values without an even step, and a box holds sets "
                    f"of up to {MAX_SET}; coarsen it, or rely on the statistical statement."
                )
            order = _by_effect(rows)
            encoded = np.abs(np.asarray(part.encode(ends), dtype=np.float64)).reshape(len(ends), -1)
            lookups.append((column, ends[order], rows[order], (encoded @ first_sizes[part.columns])[order]))
        magnitude = magnitude + most
    added, added_sizes = _twins(first, encoding, twins), _twins(first_sizes, encoding, twins, sizes=True)
    magnitude = magnitude + added_sizes.max(axis=0)
    still = still + added_sizes.max(axis=0)
    exact = exact_layers(network, schema, encoding, twins)
    gammas = [gamma(terms_of(encoding)), *(gamma(len(w)) for w in weights[1:])]
    if len(network.weights) == 1:
        # Without hidden layers the sum passes through one neuron that is lifted so far that it is always on.
        lift = 2.0 ** math.ceil(math.log2(2.0 * float(magnitude.max()) + 1.0))
        bias, magnitude, biases[1] = bias + lift, magnitude + lift, biases[1] - lift
        exact, gammas = [*exact, True], [gammas[0], 0.0]
        final, final_bias = np.ones(1), 0.0
    else:
        final, final_bias = sizes, float(np.abs(network.biases[-1]).sum(dtype=np.float64))
    steps = [one.slope[:, None] for one in numeric] + [rows.T for _, _, rows, _ in lookups]
    spans = [np.abs(first_sizes[encoding.parts[one.column].columns[0]])[:, None] for one in numeric]
    spans += [some.T for *_, some in lookups]
    ends_at = np.cumsum([len(numeric), *(len(values) for _, values, _, _ in lookups)])
    slacks = _slacks(magnitude, weights, biases, sum(step.shape[1] for step in steps) + twins.m)
    up = np.concatenate([w.ravel() for w in weights[1:]])
    nothing = np.empty((len(bias), 0))
    layers = Layers(
        np.array([len(b) for b in biases[:-1]], dtype=np.int64),
        bias,
        np.ascontiguousarray(added),
        np.stack([added.min(axis=0), added.max(axis=0)]),
        np.ascontiguousarray(np.concatenate(steps, axis=1) if steps else nothing),
        len(numeric),
        ends_at.astype(np.int64),
        np.concatenate([w.T.ravel() for w in weights[1:]]),
        np.maximum(up, 0.0),
        np.minimum(up, 0.0),
        np.concatenate(biases[1:]),
        float(slacks[-1]),
        slacks[:-1],
        np.array([one.wide for one in numeric], dtype=np.float64),
        np.array([[one.origin, one.gauge] for one in numeric], dtype=np.float64).reshape(-1, 2),
        np.ascontiguousarray(np.concatenate(spans, axis=1) if spans else nothing),
        still,
        sum((one.drift * spans[i][:, 0] for i, one in enumerate(numeric)), np.zeros(len(bias))),
        np.where(exact, 0.0, gammas),
        np.ascontiguousarray(final),
        final_bias,
        0.0 if all(exact) else float(slacks[-1]),
    )
    return BoxNetwork(
        layers,
        np.array([*(one.column for one in numeric), *(column for column, *_ in lookups)], dtype=np.int64),
        (*(one.values for one in numeric), *(values for _, values, _, _ in lookups)),
        tuple(one.pace for one in numeric),
        factor,
    )


def _interval(attribute: Attribute) -> bool:
    """Whether people can have every real number between its ends."""
    return not attribute.discrete and not attribute.allowed


def _count(attribute: Attribute) -> int:
    """How many people an attribute makes of one where the network does not look at it."""
    return 1 if _interval(attribute) else len(attribute.domain_values())


def _even(values: Doubles) -> bool:
    """Whether values stand in even steps, but for rounding."""
    line = np.linspace(values[0], values[-1], len(values))
    return bool(np.abs(values - line).max() <= 1e-9 * (values[-1] - values[0]) / len(values))


def _numbers(column: int, values: Doubles, parts: int | None, part: Numeric, first: Doubles) -> _Numbers:
    """An attribute as a line of steps, or of equal parts of an interval; what it strays from the line is its drift."""
    low, high = Fraction(float(values[0])), Fraction(float(values[-1]))
    if parts is None:
        pace = float(values[1] - values[0])
        whole = bool((values == np.rint(values)).all()) and pace == np.rint(pace)
        line = values[0] + pace * np.arange(len(values))
        # The line is computed in float64 too, at most three roundings of its largest number.
        stray = 0.0 if whole else float(np.abs(values - line).max()) + 4 * DOUBLE * float(np.abs(values).max())
    else:
        pace = float((high - low) / parts)
        stray = float(abs(high - (low + parts * Fraction(pace)))) * (1 + 1e-9)
        values = float(values[0]) + pace * np.arange(parts, dtype=np.float64)
    weight, largest = first[part.column], max(abs(float(low)), abs(float(high)))
    origin, gauge = (float(low) - part.shift) * part.scale, pace * part.scale
    plain = part.shift == 0 and part.scale == 1
    lost = 0.0 if plain and parts is None else 16 * DOUBLE * (largest + abs(part.shift)) * abs(part.scale)
    return _Numbers(
        *(column, values, gauge * weight, weight, origin, gauge, pace),
        0.0 if parts is None else 1.0,
        stray * abs(part.scale) + lost,
    )


def _margin(network: Network) -> tuple[list[Doubles], list[Doubles], Doubles]:
    """The network with one output: the logit margin of the favourable class, or the predicted value.

    Also gives the sizes of the weights that the margin is made of: a softmax computes two logits, each with its own
    rounding, of which the margin is the difference. Of one layer, they are (inputs, 1).
    """
    strange = next((a for a in network.activations_after if a.name != "relu"), None)
    if strange is not None:
        raise CapabilityError(
            f"boxes need a dense ReLU network, but this one has {strange.name} layers; the statistical statement holds "
            f"for it as for every model."
        )
    weights = [w.astype(np.float64) for w in network.weights]
    biases = [b.astype(np.float64) for b in network.biases]
    sizes = np.abs(weights[-1]).sum(axis=1)
    if network.head == "softmax":
        if network.classes != 2:
            raise CapabilityError(
                f"boxes need a decision between two classes, but this network has {network.classes}; the statistical "
                f"statement holds for it as for every model."
            )
        signs = np.where(np.arange(2) == network.favourable, 1.0, -1.0)
        weights[-1], biases[-1] = (weights[-1] @ signs)[:, None], np.array([biases[-1] @ signs])
    elif network.head == "sigmoid" and network.favourable == 0:
        weights[-1], biases[-1] = -weights[-1], -biases[-1]
    if len(weights) == 1:
        weights, biases, sizes = [weights[0], np.ones((1, 1))], [biases[0], np.zeros(1)], sizes[:, None]
    return weights, biases, sizes


def _twins(first: Doubles, encoding: Encoding, twins: Twins, *, sizes: bool = False) -> Doubles:
    """What each twin adds to the first layer, or to its sums of sizes, (m, h)."""
    total = np.zeros((twins.m, first.shape[1]))
    for place, column in enumerate(twins.columns):
        part = encoding.parts[int(column)]
        if not isinstance(part, Unseen):
            encoded = np.asarray(part.encode(twins.values[:, place]), dtype=np.float64).reshape(twins.m, -1)
            total += (np.abs(encoded) if sizes else encoded) @ first[part.columns]
    return total


def _by_effect(rows: Doubles) -> Integers:
    """An order in which values with similar effects stand side by side, so that halves of a set are alike."""
    centred = rows - rows.mean(axis=0)
    return np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0], kind="stable")


def _slacks(magnitude: Doubles, weights: list[Doubles], biases: list[Doubles], inputs: int) -> Doubles:
    """How far rounding can move a bound of each layer's pre-activations.

    A bound is a sum of products. Back-substitution passes at most one sum over each layer's width and one over the
    inputs, and a handful of operations per layer for slopes and intercepts, so no term sees more than ``n`` roundings,
    and the computed bound differs from the exact one by at most n u / (1 - n u) times the sum of the terms' sizes
    (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1). Slopes lie in 0 to 1, so these sizes
    are at most what the network makes of absolute weights and inputs (``magnitude``), once for the linear function and
    once for the intercepts of every layer below. The factor 2 covers the roundings of this computation itself.
    """
    slacks, below = [], 0
    for depth in range(len(biases)):
        if depth:
            magnitude = np.abs(biases[depth]) + np.abs(weights[depth]).T @ magnitude
        below += len(magnitude)
        n = inputs + below + 16 * (depth + 2)
        slacks.append(2.0 * n * DOUBLE * (depth + 2) * float(magnitude.max(initial=0.0)))
    return np.array(slacks)


__all__ = ["BoxNetwork", "box_network"]
