"""The activation functions of the native network: value, slope and inverse, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import ModelError, choose_from
from fairbits.functions import expit

Array = npt.NDArray[Any]
_ROOT_2 = float(np.sqrt(2))
_GELU_SCALE = float(np.sqrt(2 / np.pi))


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation by name."""

    name: str = "relu"
    alpha: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _FUNCTIONS:
            raise ModelError(f"activation {self.name!r} is not known; {choose_from(self.name, _FUNCTIONS)}")

    def __call__(self, x: Array) -> Array:
        """The activation of pre-activations."""
        return _FUNCTIONS[self.name].value(x, self.alpha)

    def slope(self, x: Array) -> Array:
        """The derivative at pre-activations."""
        return _FUNCTIONS[self.name].slope(x, self.alpha)

    def inverse(self, y: float) -> float:
        """A pre-activation whose activation is ``y``: what surgery writes into the bias."""
        x = _FUNCTIONS[self.name].inverse(y, self.alpha)
        if x is None or not np.isfinite(x):
            raise ModelError(f"a {self.name} neuron can never put out {y:g}; choose a value in its range.")
        return float(x)


@dataclass(frozen=True, slots=True)
class _Function:
    value: Callable[[Array, float], Array]
    slope: Callable[[Array, float], Array]
    inverse: Callable[[float, float], float | None]


def _positive_only(y: float, _: float) -> float | None:
    return y if y >= 0 else None


def _leaky_inverse(y: float, alpha: float) -> float | None:
    return y if y >= 0 else (y / alpha if alpha > 0 else None)


def _elu_inverse(y: float, alpha: float) -> float | None:
    return y if y >= 0 else (np.log1p(y / alpha) if 0 > y > -alpha else None)


def _sigmoid_slope(x: Array, _: float) -> Array:
    y: Array = expit(x)
    return y * (1 - y)


def _gelu(x: Array, _: float) -> Array:
    from scipy import special

    y: Array = x * (0.5 * (1 + special.erf(x / _ROOT_2)))
    return y.astype(x.dtype)


def _gelu_slope(x: Array, _: float) -> Array:
    from scipy import special

    density = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    y: Array = 0.5 * (1 + special.erf(x / _ROOT_2)) + x * density
    return y.astype(x.dtype)


def _gelu_tanh(x: Array, _: float) -> Array:
    return (0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + 0.044715 * x**3)))).astype(x.dtype)


def _gelu_tanh_slope(x: Array, _: float) -> Array:
    t = np.tanh(_GELU_SCALE * (x + 0.044715 * x**3))
    return (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * _GELU_SCALE * (1 + 3 * 0.044715 * x * x)).astype(x.dtype)


def _rising_inverse(function: Callable[[Array, float], Array]) -> Callable[[float, float], float | None]:
    """GELU falls before it rises; only its rising half (from the minimum near −0.75) has one inverse."""

    def inverse(y: float, alpha: float) -> float | None:
        def miss(x: float) -> float:
            return float(function(np.array([x]), alpha)[0]) - y

        from scipy import optimize

        lowest = -0.7517
        return None if miss(lowest) > 0 else float(optimize.brentq(miss, lowest, max(10.0, 2 * y)))

    return inverse


_FUNCTIONS: dict[str, _Function] = {
    "relu": _Function(lambda x, _: np.maximum(x, 0), lambda x, _: (x > 0).astype(x.dtype), _positive_only),
    "leaky_relu": _Function(
        lambda x, a: np.where(x > 0, x, x.dtype.type(a) * x),
        lambda x, a: np.where(x > 0, x.dtype.type(1), x.dtype.type(a)),
        _leaky_inverse,
    ),
    "tanh": _Function(
        lambda x, _: np.tanh(x),
        lambda x, _: 1 - np.tanh(x) ** 2,
        lambda y, _: float(np.arctanh(y)) if -1 < y < 1 else None,
    ),
    "sigmoid": _Function(
        lambda x, _: expit(x), _sigmoid_slope, lambda y, _: float(np.log(y / (1 - y))) if 0 < y < 1 else None
    ),
    "elu": _Function(
        lambda x, a: np.where(x > 0, x, x.dtype.type(a) * np.expm1(np.minimum(x, 0))),
        lambda x, a: np.where(x > 0, x.dtype.type(1), x.dtype.type(a) * np.exp(np.minimum(x, 0))),
        _elu_inverse,
    ),
    "gelu": _Function(_gelu, _gelu_slope, _rising_inverse(_gelu)),
    "gelu_tanh": _Function(_gelu_tanh, _gelu_tanh_slope, _rising_inverse(_gelu_tanh)),
    "identity": _Function(lambda x, _: x, lambda x, _: np.ones_like(x), lambda y, _: y),
}

#: The names, in a fixed order that compiled code relies on.
NAMES = tuple(_FUNCTIONS)
