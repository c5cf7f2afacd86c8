"""Activation functions over a tile of people, in float32, accurate to about 1e-7.

Everything rests on one exponential, so that a smooth activation costs a polynomial and no call into libm
(which would be one call per person, and not the same bits on every machine).
"""

from __future__ import annotations

import numpy as np

from fairbits.engine.simd import (
    PEOPLE,
    absolute,
    add,
    compiled,
    div,
    floor,
    fma,
    if_greater,
    inlined,
    load,
    maximum,
    minimum,
    mul,
    power_of_two,
    splat,
    store,
    sub,
)

IDENTITY, RELU, LEAKY_RELU, TANH, SIGMOID, GELU, GELU_TANH, ELU = range(8)

ZERO, HALF, ONE, TWO = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)
# Beyond these e**x leaves the normal float32 numbers; scores there are 0 or 1 to seven digits anyway.
LOWEST, HIGHEST = np.float32(-87), np.float32(88)
LOG2_E = np.float32(1.44269504088896341)
# log(2) in two parts, the first short enough that n * LN2_HIGH is exact.
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
# The polynomial for e**r, |r| <= log(2) / 2, of Cephes' expf (S. L. Moshier, "Methods and Programs for
# Mathematical Functions", 1989).
E5, E4, E3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
E2, E1, E0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
# erfc(u) = exp(-u*u) * t * (F0 + F1 t + ...), t = 1 / (1 + 0.4 u): the form of Abramowitz and Stegun 7.1.26, one
# term longer and refitted by us (weighted least squares on Chebyshev nodes, error 3e-8 before rounding).
F_SCALE = np.float32(0.4)
F0, F1, F2 = np.float32(0.2319223132), np.float32(0.1618221857), np.float32(0.468277612)
F3, F4, F5 = np.float32(-0.3709122098), np.float32(0.7091499596), np.float32(-0.2002598884)
SQRT_HALF = np.float32(0.70710678118654752)
GELU_CUBIC, GELU_SCALE = np.float32(0.044715), np.float32(0.79788456080286536)


@inlined
def exp(x):  # type: ignore[no-untyped-def]
    """e**x: x = n log 2 + r, a polynomial in r, and n put into the exponent."""
    x = minimum(maximum(x, splat(LOWEST)), splat(HIGHEST))
    n = floor(fma(x, splat(LOG2_E), splat(HALF)))
    r = fma(n, splat(-LN2_HIGH), x)
    r = fma(n, splat(-LN2_LOW), r)
    p = fma(splat(E5), r, splat(E4))
    p = fma(p, r, splat(E3))
    p = fma(p, r, splat(E2))
    p = fma(p, r, splat(E1))
    p = fma(p, r, splat(E0))
    return mul(fma(p, mul(r, r), add(r, splat(ONE))), power_of_two(n))


@inlined
def sigmoid(x):  # type: ignore[no-untyped-def]
    """1 / (1 + e**-x)."""
    return div(splat(ONE), add(splat(ONE), exp(sub(splat(ZERO), x))))


@inlined
def tanh(x):  # type: ignore[no-untyped-def]
    """Through e**(-2|x|), which cannot overflow; the sign is put back at the end."""
    e = exp(mul(absolute(x), splat(-TWO)))
    magnitude = div(sub(splat(ONE), e), add(splat(ONE), e))
    return if_greater(x, splat(ZERO), magnitude, sub(splat(ZERO), magnitude))


@inlined
def gelu(x):  # type: ignore[no-untyped-def]
    """x Phi(x) = max(x, 0) - |x| erfc(|x| / sqrt 2) / 2: the correction fades where the result is large."""
    size = absolute(x)
    u = mul(size, splat(SQRT_HALF))
    t = div(splat(ONE), fma(u, splat(F_SCALE), splat(ONE)))
    p = fma(splat(F5), t, splat(F4))
    p = fma(p, t, splat(F3))
    p = fma(p, t, splat(F2))
    p = fma(p, t, splat(F1))
    p = fma(p, t, splat(F0))
    erfc = mul(mul(p, t), exp(sub(splat(ZERO), mul(u, u))))
    return sub(maximum(x, splat(ZERO)), mul(mul(size, splat(HALF)), erfc))


@inlined
def gelu_tanh(x):  # type: ignore[no-untyped-def]
    """The tanh variant, x sigmoid(2 sqrt(2/pi) (x + 0.044715 x**3)), which is the same thing."""
    inner = mul(x, fma(mul(x, x), splat(GELU_CUBIC), splat(ONE)))
    return mul(x, sigmoid(mul(inner, splat(TWO * GELU_SCALE))))


@inlined
def elu(x, alpha):  # type: ignore[no-untyped-def]
    """x above zero, alpha (e**x - 1) below."""
    below = mul(splat(alpha), sub(exp(x), splat(ONE)))
    return if_greater(x, splat(ZERO), x, below)


@inlined
def is_smooth(activation):  # type: ignore[no-untyped-def]
    """Whether the activation needs `activate`; the piecewise linear ones are done as a layer is stored."""
    return activation > LEAKY_RELU


@compiled
def activate(values, start, count, activation, alpha):  # type: ignore[no-untyped-def]
    """Apply a smooth activation in place to `count` neurons of a tile."""
    for neuron in range(count):
        at = start + neuron * PEOPLE
        x = load(values, at)
        if activation == TANH:
            x = tanh(x)
        elif activation == SIGMOID:
            x = sigmoid(x)
        elif activation == GELU:
            x = gelu(x)
        elif activation == GELU_TANH:
            x = gelu_tanh(x)
        elif activation == ELU:
            x = elu(x, alpha)
        store(values, at, x)
