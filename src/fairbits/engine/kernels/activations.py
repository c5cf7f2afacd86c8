"""Activation functions over a tile of people, in float32, accurate to about 1e-7.

Everything rests on one exponential, so that a smooth activation costs a polynomial and no call into libm
(which would be one call per person, and not the same bits on every machine).
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

from collections.abc import Sequence

from fairbits.engine.kernels.compiler import inlined
from fairbits.engine.kernels.memory import load, splat, store
from fairbits.engine.kernels.simd import PEOPLE, Vector, lanewise, mul

IDENTITY, RELU, LEAKY_RELU, TANH, SIGMOID, GELU, GELU_TANH, ELU = range(8)

# Beyond these e**x leaves the normal float32 numbers; scores there are 0 or 1 to seven digits anyway.
LOWEST, HIGHEST = -87.0, 88.0
LOG2_E = 1.44269504088896341
# log(2) in two parts, the first short enough that n * LN2_HIGH is exact.
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
# The polynomial for e**r, |r| <= log(2) / 2, of Cephes' expf (S. L. Moshier, "Methods and Programs for
# Mathematical Functions", 1989), highest power first.
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
# erfc(u) = exp(-u*u) * t * polynomial(t), t = 1 / (1 + 0.4 u): the form of Abramowitz and Stegun 7.1.26, one
# term longer and refitted by us (weighted least squares on Chebyshev nodes, error 3e-8 before rounding).
ERFC_SCALE = 0.4
ERFC = (-0.2002598884, 0.7091499596, -0.3709122098, 0.468277612, 0.1618221857, 0.2319223132)
SQRT_HALF = 0.70710678118654752
GELU_CUBIC, GELU_SCALE = 0.044715, 0.79788456080286536
DENSITY = 0.39894228040143268
# From here on GELU's slope is 0 or 1 in float32; its formula would multiply a large x by a tiny density.
GELU_SETTLED = 14.0


def _polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    result = x.fma(coefficients[0], coefficients[1])
    for coefficient in coefficients[2:]:
        result = result.fma(x, coefficient)
    return result


def _exp(x: Vector) -> Vector:
    """e**x: x = n log 2 + r, a polynomial in r, and n put into the exponent. NaN gives NaN."""
    x = x.between(LOWEST, HIGHEST)
    n = x.fma(LOG2_E, 0.5).floor()
    r = n.fma(-LN2_LOW, n.fma(-LN2_HIGH, x))
    return _polynomial(r, EXP).fma(r * r, r + 1.0) * n.power_of_two()


def _sigmoid(x: Vector) -> Vector:
    return 1.0 / (_exp(-x) + 1.0)


def _tanh(x: Vector) -> Vector:
    """Through e**(-2|x|), which cannot overflow; the sign is put back at the end."""
    e = _exp(abs(x) * -2.0)
    size = (1.0 - e) / (e + 1.0)
    return x.if_greater(0.0, size, -size)


def _gelu(x: Vector) -> Vector:
    """x Phi(x) = max(x, 0) - |x| erfc(|x| / sqrt 2) / 2: the correction fades where the result is large."""
    u = abs(x) * SQRT_HALF
    t = 1.0 / u.fma(ERFC_SCALE, 1.0)
    erfc = _polynomial(t, ERFC) * t * _exp(-(u * u))
    return x.at_least(0.0) - abs(x) * 0.5 * erfc


def _gelu_tanh(x: Vector) -> Vector:
    """The tanh variant, which is x sigmoid(2 sqrt(2/pi) (x + 0.044715 x**3))."""
    inner = (x * x).fma(GELU_CUBIC, 1.0) * x
    return x * _sigmoid(inner * (2.0 * GELU_SCALE))


def _elu(x: Vector, alpha: Vector) -> Vector:
    return x.if_greater(0.0, x, (_exp(x) - 1.0) * alpha)


def _sigmoid_slope(x: Vector) -> Vector:
    """Through e**-|x|: no difference of nearly equal numbers at either end."""
    e = _exp(-abs(x))
    return e / ((e + 1.0) * (e + 1.0))


def _tanh_slope(x: Vector) -> Vector:
    """tanh x = 2 sigmoid(2x) - 1."""
    return _sigmoid_slope(x * 2.0) * 4.0


def _gelu_slope(x: Vector) -> Vector:
    """Phi(x) + x phi(x)."""
    x = x.between(-GELU_SETTLED, GELU_SETTLED)
    u = abs(x) * SQRT_HALF
    t = 1.0 / u.fma(ERFC_SCALE, 1.0)
    bell = _exp(-(u * u))
    tail = _polynomial(t, ERFC) * t * bell * 0.5
    return (x * DENSITY).fma(bell, x.if_greater(0.0, 1.0 - tail, tail))


def _gelu_tanh_slope(x: Vector) -> Vector:
    """s + x s (1 - s) inner' for x s, where s = sigmoid(inner)."""
    x = x.between(-GELU_SETTLED, GELU_SETTLED)
    square = x * x
    inner = square.fma(GELU_CUBIC, 1.0) * x * (2.0 * GELU_SCALE)
    e = _exp(-abs(inner))
    r = 1.0 / (e + 1.0)
    steepness = square.fma(3.0 * GELU_CUBIC, 1.0) * (2.0 * GELU_SCALE)
    return (x * steepness).fma(e * r * r, inner.if_greater(0.0, r, e * r))


def _elu_slope(x: Vector, alpha: Vector) -> Vector:
    return x.if_greater(0.0, 1.0, _exp(x) * alpha)


exp, sigmoid, tanh = lanewise(_exp), lanewise(_sigmoid), lanewise(_tanh)
gelu, gelu_tanh, elu = lanewise(_gelu), lanewise(_gelu_tanh), lanewise(_elu)
sigmoid_slope, tanh_slope = lanewise(_sigmoid_slope), lanewise(_tanh_slope)
gelu_slope, gelu_tanh_slope, elu_slope = lanewise(_gelu_slope), lanewise(_gelu_tanh_slope), lanewise(_elu_slope)


@inlined
def activate(values, source, target, count, activation, alpha):
    """Apply a smooth activation to neurons of a tile."""
    for neuron in range(count):
        x = load(values, source + neuron * PEOPLE)
        if activation == TANH:
            x = tanh(x)
        elif activation == SIGMOID:
            x = sigmoid(x)
        elif activation == GELU:
            x = gelu(x)
        elif activation == GELU_TANH:
            x = gelu_tanh(x)
        else:
            x = elu(x, splat(alpha))
        store(values, target + neuron * PEOPLE, x)


@inlined
def steepen(values, before, target, count, activation, alpha):
    """Multiply neurons of a tile by the slope of a smooth activation at its pre-activations."""
    for neuron in range(count):
        x = load(values, before + neuron * PEOPLE)
        if activation == TANH:
            x = tanh_slope(x)
        elif activation == SIGMOID:
            x = sigmoid_slope(x)
        elif activation == GELU:
            x = gelu_slope(x)
        elif activation == GELU_TANH:
            x = gelu_tanh_slope(x)
        else:
            x = elu_slope(x, splat(alpha))
        at = target + neuron * PEOPLE
        store(values, at, mul(load(values, at), x))
