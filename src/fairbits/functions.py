"""Functions of statistics that every command needs at its start.

SciPy has them too, but bringing it in takes longer than measuring a table; it stays for the rarer ones.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from math import exp, lgamma, log
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def expit(x: npt.ArrayLike) -> Array:
    """The logistic function, 1 / (1 + exp(−x))."""
    given = np.asarray(x)
    with np.errstate(over="ignore"):  # far below 0 the power is infinite and the value is 0
        found: Array = 1 / (1 + np.exp(-given))
    return found


def c_exp(x: Array) -> Array:
    """Powers of e to the last bit as the C library gives them, which compiled models call; float32 or float64 as given.

    NumPy has its own for real numbers, a last bit away now and then; for complex ones it asks the C library. That is
    slow, so that float32 asks only where a float64 lies close to the middle of two float32: C libraries are right to a
    64th of their distance or better.
    """
    with np.errstate(over="ignore"):
        if x.dtype != np.float32:
            return np.exp(x.astype(np.complex128)).real
        wide = np.exp(x, dtype=np.float64)
        found = wide.astype(np.float32)
        beyond = wide.view(np.int64) & (2**29 - 1)  # the bits that a float32 does not have
        doubtful = np.nonzero(np.abs(beyond - 2**28) < 2**22)
        found[doubtful] = np.exp(x[doubtful].astype(np.complex64)).real
        return np.where(x < 88, found, wide.astype(np.float32)) if (x >= 88).any() else found


def c_log(x: Array) -> Array:
    """Natural logarithms of a few float32 numbers, to the last bit as the C library gives them."""
    call = ctypes.CDLL("ucrtbase" if os.name == "nt" else None).logf
    call.restype, call.argtypes = ctypes.c_float, [ctypes.c_float]
    return np.array([call(float(value)) for value in x], dtype=np.float32)


def in_order(bits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Between the bits of doubles and whole numbers in the order of these, neighbours for neighbours; and back."""
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def softmax(x: npt.ArrayLike, *, axis: int = -1) -> Array:
    """Powers of e that sum to 1 along an axis."""
    given = np.asarray(x)
    powers = np.exp(given - given.max(axis=axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


@cache
def normal_quantile(share: float) -> float:
    """The number below which a share of the standard normal law lies."""
    return NormalDist().inv_cdf(share)


def student_quantile(freedom: float, share: float) -> float:
    """The number below which a share of Student's law lies."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


@cache
def gamma_quantile(shape: int, share: float) -> float:
    """The number below which a share of the gamma law of a whole shape lies: the wait for that many chance events."""

    def below(x: float) -> float:
        """The chance of ``shape`` or more events where ``x`` are expected."""
        return 1 - sum(exp(count * log(x) - x - lgamma(count + 1)) for count in range(shape))

    low, high = 0.0, 2.0 * shape + 10.0
    while below(high) < share:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return high
