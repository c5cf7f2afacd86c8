"""A subject's network as the kernel of certificates takes it: its margin, seen from the attributes, in float64;
and how far a network's scores can be from those of real arithmetic, whatever library computes them.

Networks compute in float32, each library in an order of its own: a dot product of n terms is off by at most
γ_n = n u / (1 - n u), u = 2⁻²⁴, times the sum of its terms' sizes, in any order of summation (Higham, "Accuracy and
Stability of Numerical Algorithms", 2002, section 3.1). What a certificate says about decisions holds for every library
that keeps to it. Where all numbers are so short that every sum is exact, nothing is off, and ties are decided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairbits.domain import Attribute, Encoding, Lookup, Numeric, Schema, Twins, Unseen
from fairbits.engine.kernels.boxes import (
    ELU,
    GELU,
    GELU_TANH,
    IDENTITY,
    LEAKY,
    RELU,
    SIGMOID,
    SOFTPLUS,
    TANH,
    Doubles,
    Integers,
    Layers,
)
from fairbits.errors import CapabilityError
from fairbits.models import Activation, Network

#: The relative error of one operation in float32 and in float64, and the smallest number of full precision in float32.
SINGLE, DOUBLE, TINY = 2.0**-24, 2.0**-53, 2.0**-126
#: Roundings of a term beside those of the sum: of its input and weight, of scales and biases that are folded into them.
EXTRA = 12
#: What a head or a smooth activation may be off by (16 units in the last place of 1), and the largest sum that float32
#: holds with room to spare.
HEAD, LARGEST = 2.0**-20, 1e37
#: A margin that nobody has.
NEVER = 1e300
#: Between the logits of two classes, what makes every library's probabilities differ in the same direction.
LEAD = 2.0**-18


class _Curve(NamedTuple):
    """What bounds need to know of an activation f: |f''| is at most ``bend`` and ``decay`` e^-|x|, |f'| at most
    ``steep``, and f(0) is ``middle``; a library may be off by ``own`` of its size, or of 1.
    """

    kind: int
    bend: float = 0.0
    decay: float = 0.0
    steep: float = 1.0
    middle: float = 0.0
    own: float = HEAD
    alpha: float = 0.0

    @property
    def row(self) -> list[float]:
        """As the kernel takes it."""
        return [self.alpha, self.bend, self.decay, self.steep, self.own]


_CURVES = {
    "relu": _Curve(RELU, own=0.0),
    "identity": _Curve(IDENTITY, own=0.0),
    "leaky_relu": _Curve(LEAKY),
    "tanh": _Curve(TANH, 0.77, 1.8),
    "sigmoid": _Curve(SIGMOID, 0.0963, 1.0, 0.25, 0.5),
    "elu": _Curve(ELU),
    "gelu": _Curve(GELU, 0.8, 1.2, 1.13),
    "gelu_tanh": _Curve(GELU_TANH, 0.81, 1.3, 1.13),
}
_SOFTPLUS = _Curve(SOFTPLUS, 0.25, 1.0, 1.0, math.log(2.0), own=0.0)


def _curve_of(activation: Activation) -> _Curve:
    curve = _CURVES.get(activation.name)
    if curve is None:
        raise CapabilityError(
            f"boxes have no bounds for {activation.name} layers; the statistical statement holds for them as for every "
            f"model."
        )
    if curve.kind not in (LEAKY, ELU):
        return curve
    alpha = float(np.float32(activation.alpha))
    steep = max(1.0, abs(alpha))
    bend = max(abs(alpha), TINY) if curve.kind == ELU else 0.0
    return curve._replace(alpha=alpha, steep=steep, bend=bend, decay=bend, own=HEAD * steep)


def gamma(terms: int) -> float:
    """The relative error of a float32 dot product, in any order of summation, a little rounded up."""
    n = (terms + EXTRA) * SINGLE
    return 1.001 * n / (1.0 - n) if n < 0.5 else math.inf


def quantum(values: NDArray[np.floating]) -> float:
    """The largest power of two of which all values are multiples; infinity where all are 0."""
    some = np.asarray(values, dtype=np.float64)
    some = np.abs(some[some != 0])
    if not len(some):
        return math.inf
    mantissa, exponent = np.frexp(some)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponent - 53).min())


def terms_of(encoding: Encoding) -> int:
    """How many inputs differ from 0 at most: adding zeros rounds nothing."""
    lookups = (int(np.count_nonzero(p.table, axis=1).max(initial=0)) for p in encoding.parts if isinstance(p, Lookup))
    return sum(lookups) + sum(isinstance(p, Numeric) for p in encoding.parts) + len(encoding.fixed)


def _encoded(encoding: Encoding, column: int, values: Doubles) -> Doubles:
    """The inputs that some values of an attribute become, (values, inputs)."""
    return np.asarray(encoding.parts[column].encode(values), dtype=np.float64).reshape(len(values), -1)


def ends_of(schema: Schema, column: int, twins: Twins) -> Doubles:
    """Values among which every other one of an attribute lies, where its encoding is a line; else all of them."""
    place, attribute = np.flatnonzero(twins.columns == column), schema.attributes[column]
    if len(place) and not (twins.most > twins.m and attribute.open):  # else people have values of their own
        return np.unique(twins.values[:, place[0]])
    if attribute.allowed:
        return np.array(attribute.allowed)
    if attribute.kind == "category":
        return attribute.values()
    return np.array([attribute.low, attribute.upper], dtype=np.float64)


def is_interval(attribute: Attribute) -> bool:
    """Whether people can have every real number between an attribute's ends."""
    return not attribute.discrete and not attribute.allowed


def bias_sizes(network: Network) -> list[Doubles]:
    """By layer, what biases come to in the model's own sums: at least their parts, where these were folded."""
    sizes = [np.abs(b.astype(np.float64)) for b in network.biases]
    return [np.maximum(some, parts) for some, parts in zip(sizes, network.folded or sizes, strict=True)]


def _first_sums(
    network: Network, schema: Schema, encoding: Encoding, twins: Twins
) -> tuple[Doubles, Doubles, Doubles, Doubles, float]:
    """Of the first layer's sums over the whole domain: least, most, and sizes of their terms; what float64 loses of
    these before the float32 sees them; and a step of which all inputs are multiples, 0 where one is computed (scaled,
    or real).
    """
    weights = network.weights[0].astype(np.float64)
    bias = network.biases[0].astype(np.float64)
    low = bias
    high = bias
    size = bias_sizes(network)[0]
    lost = np.zeros(len(bias))
    step = math.inf
    for column, value in encoding.fixed.items():
        low, high = low + value * weights[column], high + value * weights[column]
        step = min(step, quantum(np.array([value])))
        size = size + np.abs(value * weights[column])
    for column, part in enumerate(encoding.parts):
        if isinstance(part, Unseen):
            continue
        attribute = schema.attributes[column]
        values = ends_of(schema, column, twins)
        inputs = _encoded(encoding, column, values)
        rows = inputs @ weights[part.columns]
        low = low + rows.min(axis=0)
        high = high + rows.max(axis=0)
        size = size + (np.abs(inputs) @ np.abs(weights[part.columns])).max(axis=0)
        plain = isinstance(part, Lookup) or (part.shift == 0 and part.scale == 1)
        exact = plain and not is_interval(attribute)
        step = min(step, quantum(inputs), 1.0 if isinstance(part, Numeric) else math.inf) if exact else 0.0
        if isinstance(part, Numeric):
            most = 16.0 * DOUBLE * (np.abs(values).max() + abs(part.shift)) * abs(part.scale)
            lost = lost + most / SINGLE * np.abs(weights[part.column])
    return low, high, size, lost, step


def exact_layers(network: Network, step: float, size: Doubles) -> list[bool]:
    """By layer: whether all its sums are exact in float32, because all numbers are multiples of a coarse enough step.

    Of the first layer, ``step`` is that of its inputs and ``size`` what its sums come to. Where scalings were folded
    into layers, numbers are others than those that the library adds up.
    """
    found: list[bool] = []
    for layer, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        if layer:
            size = np.abs(b.astype(np.float64)) + np.abs(w.astype(np.float64)).T @ size
        step = min(step * quantum(w), quantum(b))
        before = found[-1] if found else not network.folded
        relu = layer == 0 or network.activations_after[layer - 1].name in ("relu", "identity")
        found.append(before and relu and bool(2 * size.max() <= min(2.0**24 * step, LARGEST)))
    return found


@dataclass(frozen=True, slots=True)
class ScoreError:
    """How far any library's logits, and with them a score, can be from real arithmetic, over the whole domain."""

    logits: float
    linear: bool = False

    def cuts(self, threshold: float) -> tuple[float, float]:
        """Scores that we computed below the first are unfavourable in every library, from the second on favourable."""
        apart = 2.0 * self.logits  # ours and the library's are both off
        low, high = margin_cuts(threshold, linear=self.linear)
        if self.linear:
            return low - apart, high + apart
        down, up = special.expit(low - apart) - HEAD, special.expit(high + apart) + HEAD
        if apart == 0.0 and high == 0.0:
            up = 0.5  # no library makes less than a half of a logit of 0
        return float(down), float(up)

    def apart(self, largest: float = 1.0) -> float:
        """How far a score that we computed can be from any library's, where none is larger."""
        if self.linear:
            return 2.0 * self.logits + (4.0 * SINGLE * largest if self.logits else 0.0)
        return min(1.0, self.logits) + 2.0 * HEAD  # two softmaxes whose logits differ by 2 e, each by a head's rounding


def margin_cuts(threshold: float, *, linear: bool = False, lead: bool = False) -> tuple[float, float]:
    """Logits below the first certainly give a score under the threshold, from the second on one that reaches it.

    With ``lead``, the favourable class is certainly not the most likely one, or is, by its lead over the next.
    """
    if lead:
        return -LEAD, LEAD
    single = float(np.float32(threshold))
    low, high = min(threshold, single), max(threshold, single)
    if linear:
        return low, high
    down = float(special.logit(low - HEAD)) if low > HEAD else -NEVER
    if low == high == 0.5:
        return down - 1e-12, 0.0  # no library makes less than a half of a logit of 0
    up = float(special.logit(high + HEAD)) if high + HEAD < 1.0 else NEVER
    return down - 1e-12, up + 1e-12


def score_error(network: Network, schema: Schema, encoding: Encoding, twins: Twins) -> ScoreError:
    """How far rounding can move the logits of anybody in the domain: bounds of all neurons, layer by layer."""
    weights = [w.astype(np.float64) for w in network.weights]
    biases, sizes = [b.astype(np.float64) for b in network.biases], bias_sizes(network)
    low, high, size, lost, step = _first_sums(network, schema, encoding, twins)
    exact = exact_layers(network, step, size)
    size = size + lost
    error = np.zeros(len(size)) if exact[0] else gamma(terms_of(encoding)) * size + TINY * len(encoding.parts)
    for layer in range(1, len(weights)):
        if not size.max(initial=0.0) < LARGEST:
            return ScoreError(math.inf, linear=network.head == "linear")
        activation = network.activations_after[layer - 1]
        low, high = low - 1e-9 * size, high + 1e-9 * size  # float64 rounds as well
        curve = _curve_of(activation)
        if activation.name.startswith("gelu"):
            below, above = np.full_like(low, -0.2), np.maximum(high, 0.0)
        else:
            below, above = activation(low), activation(high)
            below, above = np.minimum(below, above), np.maximum(below, above)
        error = curve.steep * error
        error = error + curve.own * np.maximum(1.0, np.maximum(np.abs(below), np.abs(above)))
        if activation.name == "relu":
            error = np.where(high + error <= 0.0, 0.0, error)
        w, b = weights[layer], biases[layer]
        up, down = np.maximum(w, 0.0), np.minimum(w, 0.0)
        reach = np.maximum(np.abs(below), np.abs(above)) + error
        size = sizes[layer] + np.abs(w).T @ reach
        low, high = b + up.T @ below + down.T @ above, b + up.T @ above + down.T @ below
        error = np.abs(w).T @ error
        if not exact[layer]:
            error = error + gamma(len(w)) * size + TINY * len(w) * (1.0 + float(reach.sum()))
    if not size.max(initial=0.0) < LARGEST:
        return ScoreError(math.inf, linear=network.head == "linear")
    if network.head == "linear":
        return ScoreError(float(error.max()), linear=True)
    # A margin is the difference of two logits, itself rounded.
    return ScoreError(float(2.0 * error.max() + (0.0 if exact[-1] else 2.0 * SINGLE * size.max())))


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
    origin: float  # the first input, and how far apart two are
    gauge: float
    pace: float  # between two codes
    wide: float  # 1 where a step stands for all reals up to the next
    drift: float  # how far an input can be from origin + i · gauge, float64's own rounding too


def box_network(  # noqa: PLR0915 - attribute by attribute, then layer by layer
    network: Network, schema: Schema, encoding: Encoding, twins: Twins, *, scored: bool = False
) -> BoxNetwork:
    """The margin of a network, over boxes of people: that of its decision, or of its score where that is another one.

    Between three classes or more, a decision's margin is the favourable class's lead over the next one; that of a score
    is its logit.
    """
    margin = _margin(network, scored=scored)
    weights, biases = margin.weights, margin.biases
    first, first_sizes, bias = weights[0], margin.first_sizes, biases[0].copy()
    still = margin.first_biases
    for column, value in encoding.fixed.items():
        bias += value * first[column]
        still = still + abs(value) * first_sizes[column]
    magnitude = still.copy()
    numeric: list[_Numbers] = []
    lookups: list[tuple[int, Doubles, Doubles, Doubles]] = []
    free = [i for i in schema.free_columns if not isinstance(encoding.parts[i], Unseen)]
    reals = sum(is_interval(schema.attributes[i]) for i in free)
    parts = 2 ** min(PARTS, MAX_BITS // max(reals, 1))
    unseen = [schema.attributes[i] for i in schema.free_columns if i not in free]
    factor = math.prod(len(a.domain_values()) for a in unseen if not is_interval(a))
    for column in free:
        attribute, part = schema.attributes[column], encoding.parts[column]
        if is_interval(attribute):
            if not isinstance(part, Numeric):
                raise CapabilityError(
                    f"attribute {attribute.name!r} is real, but the network gets it through a table; the statistical "
                    f"statement holds for it as for every model."
                )
            ends = np.array([attribute.low, attribute.upper], dtype=np.float64)
        else:
            ends = attribute.domain_values()
        line = part if isinstance(part, Numeric) and (is_interval(attribute) or _even(ends)) else None
        inputs = _encoded(
            encoding, column, ends if line is None else ends[[0, -1]]
        )  # of millions, two say all about a line
        rows = inputs @ first[part.columns]
        row_sizes = np.abs(inputs) @ first_sizes[part.columns]
        most = row_sizes.max(axis=0)
        if not np.ptp(rows, axis=0).any():
            bias += rows[0]
            still = still + most
            factor *= 1 if is_interval(attribute) else len(ends)
        elif line is not None:
            one = _numbers(column, ends, parts if is_interval(attribute) else None, line)
            bias += one.origin * first[line.column]
            numeric.append(one)
            most = (abs(one.origin) + abs(one.gauge) * len(one.values)) * first_sizes[line.column]
        else:
            if len(ends) > MAX_SET:
                raise CapabilityError(
                    f"attribute {attribute.name!r} has {len(ends)} values without an even step, and a box holds sets "
                    f"of up to {MAX_SET}; coarsen it, or rely on the statistical statement."
                )
            order = _by_effect(rows)
            lookups.append((column, ends[order], rows[order], row_sizes[order]))
        magnitude = magnitude + most
    added, added_sizes = _twins(first, encoding, twins), _twins(first_sizes, encoding, twins, sizes=True)
    alike = np.argsort(_by_effect(added), kind="stable") < (twins.m + 1) // 2
    groups = np.stack([np.ones(twins.m, np.bool_), alike, ~alike if twins.m > 1 else alike])
    magnitude = magnitude + added_sizes.max(axis=0)
    still = still + added_sizes.max(axis=0)
    *_, size, _, step = _first_sums(network, schema, encoding, twins)
    exact = exact_layers(network, step, size)
    smooth = scored and network.classes > 2
    exact += [not smooth] * (len(weights) - len(exact))  # what we add ourselves are few numbers of few digits
    gammas = [gamma(terms_of(encoding)), *(gamma(len(w)) for w in network.weights[1:])]
    gammas += [0.0] * (len(weights) - len(gammas))
    gammas[-1] *= 2.0  # the logits, and their difference
    steps = [one.gauge * first[encoding.parts[one.column].columns].T for one in numeric] + [
        rows.T for _, _, rows, _ in lookups
    ]
    spans = [np.abs(first_sizes[encoding.parts[one.column].columns[0]])[:, None] for one in numeric]
    spans += [some.T for *_, some in lookups]
    ends_at = np.cumsum([len(numeric), *(len(values) for _, values, _, _ in lookups)])
    slacks = _slacks(magnitude, margin, sum(step.shape[1] for step in steps) + twins.m)
    up = np.concatenate([w.ravel() for w in weights[1:]])
    nothing = np.empty((len(bias), 0))
    widths = np.array([len(b) for b in biases], dtype=np.int64)
    layers = Layers(
        widths,
        np.cumsum(widths) - widths,
        np.cumsum([0, 0, *(w.size for w in weights[1:-1])]),
        np.array([one.kind for curves in margin.curves for one in curves], dtype=np.int64),
        np.array([one.row for curves in margin.curves for one in curves]),
        np.ascontiguousarray(added),
        groups,
        np.stack([[added[some].min(axis=0), added[some].max(axis=0)] for some in groups]),
        np.ascontiguousarray(np.concatenate(steps, axis=1) if steps else nothing),
        len(numeric),
        ends_at.astype(np.int64),
        np.concatenate([w.T.ravel() for w in weights[1:]]),
        np.maximum(up, 0.0),
        np.minimum(up, 0.0),
        np.concatenate([np.abs(up[: len(up) - len(margin.final)]), margin.final]),
        np.concatenate([bias, *biases[1:]]),
        slacks,
        np.array([one.wide for one in numeric], dtype=np.float64),
        np.array([[one.origin, one.gauge] for one in numeric], dtype=np.float64).reshape(-1, 2),
        np.ascontiguousarray(np.concatenate(spans, axis=1) if spans else nothing),
        np.concatenate([still, *margin.sizes, [margin.final_bias]]),
        sum((one.drift * spans[i][:, 0] for i, one in enumerate(numeric)), np.zeros(len(bias))),
        np.where(exact, 0.0, gammas),
        0.0 if all(exact) else float(slacks[-1]),
    )
    return BoxNetwork(
        layers,
        np.array([*(one.column for one in numeric), *(column for column, *_ in lookups)], dtype=np.int64),
        (*(one.values for one in numeric), *(values for _, values, _, _ in lookups)),
        tuple(one.pace for one in numeric),
        factor,
    )


def _even(values: Doubles) -> bool:
    """Whether values stand in even steps, but for rounding."""
    line = np.linspace(values[0], values[-1], len(values))
    return bool(np.abs(values - line).max() <= 1e-9 * (values[-1] - values[0]) / len(values))


def _numbers(column: int, values: Doubles, parts: int | None, part: Numeric) -> _Numbers:
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
    largest = max(abs(float(low)), abs(float(high)))
    origin, gauge = (float(low) - part.shift) * part.scale, pace * part.scale
    plain = part.shift == 0 and part.scale == 1
    lost = 0.0 if plain and parts is None else 16 * DOUBLE * (largest + abs(part.shift)) * abs(part.scale)
    return _Numbers(
        *(column, values, origin, gauge, pace),
        0.0 if parts is None else 1.0,
        stray * abs(part.scale) + lost,
    )


@dataclass(slots=True)
class _Margin:
    """A network with one output, the margin, layer by layer; sizes are those of the weights that the model itself adds
    up: a softmax computes two logits, each with its own rounding, of which the margin is the difference.
    """

    weights: list[Doubles]
    biases: list[Doubles]
    curves: list[list[_Curve]]  # by hidden layer, by neuron
    first_sizes: Doubles
    first_biases: Doubles
    sizes: list[Doubles]  # of the other hidden layers' biases
    final: Doubles
    final_bias: float


def _margin(network: Network, *, scored: bool) -> _Margin:
    """The network with one output: the margin of the favourable class, or the predicted value."""
    weights = [w.astype(np.float64) for w in network.weights]
    biases = [b.astype(np.float64) for b in network.biases]
    after = zip(network.activations_after, biases[:-1], strict=True)
    curves = [[_curve_of(activation)] * len(b) for activation, b in after]
    hidden = bias_sizes(network)
    sizes, size = np.abs(weights[-1]), hidden[-1]
    if network.classes > 2:
        # The logits are a layer of their own; the others are taken together in pairs, until one is left. Of two leads,
        # min(a, b) = b - relu(b - a), and the logit over both is b - softplus(b - a).
        pairing = _SOFTPLUS if scored else _CURVES["relu"]
        leads = -np.delete(np.eye(network.classes), network.favourable, axis=0)
        leads[:, network.favourable] = 1.0
        curves.append([_CURVES["identity"]._replace(own=HEAD)] * network.classes)  # a softmax subtracts logits
        while len(leads) > 1:
            pairs, odd = len(leads) // 2, leads[len(leads) // 2 * 2 :]
            ones, others = leads[0 : 2 * pairs : 2], leads[1 : 2 * pairs : 2]
            weights.append(np.concatenate([ones, odd, ones - others]).T)
            biases.append(np.zeros(len(leads)))
            curves.append([_CURVES["identity"]] * (len(leads) - pairs) + [pairing] * pairs)
            leads = np.eye(len(leads) - pairs, len(leads)) - np.eye(len(leads) - pairs, len(leads), len(leads) - pairs)
        weights.append(leads.T)
        biases.append(np.zeros(1))
        sizes, size = np.abs(weights[-1]), np.zeros(1)
        hidden += [np.zeros(len(b)) for b in biases[len(hidden) :]]
    elif network.head == "softmax":
        signs = np.where(np.arange(2) == network.favourable, 1.0, -1.0)
        weights[-1], biases[-1] = (weights[-1] @ signs)[:, None], np.array([biases[-1] @ signs])
    elif network.head == "sigmoid" and network.favourable == 0:
        weights[-1], biases[-1] = -weights[-1], -biases[-1]
    sizes, size = sizes.sum(axis=1), size.sum()
    if len(weights) > 1:
        first, still = np.abs(weights[0]), hidden[0]
    else:
        # Without hidden layers the sum passes through one neuron.
        first, still, sizes, size = sizes[:, None], np.array([size]), np.ones(1), np.zeros(())
        curves, weights, biases = [[_CURVES["identity"]]], [*weights, np.ones((1, 1))], [*biases, np.zeros(1)]
    return _Margin(weights, biases, curves, first, still, hidden[1:-1], sizes, float(size))


def _twins(first: Doubles, encoding: Encoding, twins: Twins, *, sizes: bool = False) -> Doubles:
    """What each twin adds to the first layer, or to its sums of sizes, (m, h)."""
    total = np.zeros((twins.m, first.shape[1]))
    for place, column in enumerate(twins.columns):
        part = encoding.parts[int(column)]
        if not isinstance(part, Unseen):
            encoded = _encoded(encoding, int(column), twins.values[:, place])
            total += (np.abs(encoded) if sizes else encoded) @ first[part.columns]
    return total


def _by_effect(rows: Doubles) -> Integers:
    """An order in which values with similar effects stand side by side, so that halves of a set are alike."""
    centred = rows - rows.mean(axis=0)
    return np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0], kind="stable")


def _slacks(magnitude: Doubles, margin: _Margin, inputs: int) -> Doubles:
    """How far rounding can move a bound of each layer's pre-activations.

    A bound is a sum of products. Back-substitution passes at most one sum over each layer's width and one over the
    inputs, and a handful of operations per layer for slopes and intercepts, so no term sees more than ``n`` roundings,
    and the computed bound differs from the exact one by at most n u / (1 - n u) times the sum of the terms' sizes
    (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, section 3.1). Slopes are no steeper than
    activations, so these sizes are at most what the network makes of absolute weights and inputs (``magnitude``), once
    for the linear function and twice for the intercepts of every layer below. The factor 2 covers the roundings of this
    computation itself.
    """
    slacks, below = [], 0
    for depth, (weights, biases) in enumerate(zip(margin.weights, margin.biases, strict=True)):
        if depth:
            curves = margin.curves[depth - 1]
            outputs = np.array([one.steep for one in curves]) * magnitude + [one.middle for one in curves]
            magnitude = np.abs(biases) + np.abs(weights).T @ outputs
        below += len(magnitude)
        n = inputs + below + 16 * (depth + 2)
        slacks.append(2.0 * n * DOUBLE * (2 * depth + 2) * float(magnitude.max(initial=0.0)))
    return np.array(slacks)
