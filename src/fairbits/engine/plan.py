"""What the engine needs to know about a network, its encoding and the twins: plain arrays, checked once.

Because the encoding is affine, the first pre-activation of twin z of a person is ::

    bias + slopes of the numeric attributes + one table row per categorical attribute + twins[z]

and only the last term depends on the protected attributes. Everything before it is paid once per person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairbits.engine.adjoint import Adjoint, reverse
from fairbits.engine.program import Program, lower
from fairbits.errors import ModelError
from fairbits.models import without_denormals

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


class ActivationCode(IntEnum):
    """The activations the kernels know. Only LEAKY_RELU and ELU read their alpha."""

    IDENTITY = 0
    RELU = 1
    LEAKY_RELU = 2
    TANH = 3
    SIGMOID = 4
    GELU = 5
    GELU_TANH = 6
    ELU = 7


class Head(IntEnum):
    """How the last layer becomes a score."""

    SOFTMAX = 0
    SIGMOID = 1
    LINEAR = 2


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A network, its encoding and the twins of a person, as arrays.

    Arrays are converted and copied for the kernels when the plan is made; changing them later has no effect.

    Shapes: h is the width of the first layer, a the number of numeric and c of categorical non-protected attributes, m
    the number of twins.
    """

    bias: Floats
    twins: Floats
    widths: Integers
    head: Head
    favourable: int = 0
    activations: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    alphas: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    weights: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    biases: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    numeric_columns: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    numeric_shifts: Doubles = field(default_factory=lambda: np.empty(0, np.float64))
    numeric_slopes: Floats = field(default_factory=lambda: np.empty((0, 0), np.float32))
    lookup_columns: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    lookup_lows: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    lookup_offsets: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    lookup_tables: Floats = field(default_factory=lambda: np.empty((0, 0), np.float32))
    program: Program = field(init=False, repr=False)
    adjoint: Adjoint = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ModelError(f"the plan's {name} must be finite, but hold NaN or infinity.")
            if kind is np.float32:
                array = without_denormals(array)
            object.__setattr__(self, name, array)
        _check_shapes(self)
        object.__setattr__(self, "program", lower(self))
        object.__setattr__(self, "adjoint", reverse(self, self.program))

    @property
    def m(self) -> int:
        """The number of twins of a person."""
        return int(self.twins.shape[0])

    @property
    def lookup_sizes(self) -> Integers:
        """How many values each categorical attribute has."""
        return np.diff(np.append(self.lookup_offsets, self.lookup_tables.shape[0]))


_KINDS: dict[str, Any] = {
    **dict.fromkeys(("bias", "twins", "alphas", "weights", "biases", "numeric_slopes", "lookup_tables"), np.float32),
    **dict.fromkeys(("widths", "activations", "numeric_columns"), np.int64),
    **dict.fromkeys(("lookup_columns", "lookup_lows", "lookup_offsets"), np.int64),
    "numeric_shifts": np.float64,
}


def _expect(plan: Plan, name: str, shape: tuple[int, ...]) -> None:
    actual = getattr(plan, name).shape
    if actual != shape and not (0 in shape and 0 in actual):
        raise ModelError(f"the plan's {name} must have shape {shape}, but got {actual}.")


def _check_shapes(plan: Plan) -> None:
    widths = [int(width) for width in plan.widths]
    if not widths or min(widths) < 1:
        raise ModelError(f"the plan's widths must be one or more positive numbers, but got {widths}.")
    h, a, c = widths[0], plan.numeric_columns.size, plan.lookup_columns.size
    if plan.twins.ndim != 2 or plan.twins.shape[0] < 1:
        raise ModelError(f"the plan's twins must have shape (m, {h}) with m >= 1, but got {plan.twins.shape}.")
    macs = sum(i * o for i, o in pairwise(widths))
    expected: dict[str, tuple[int, ...]] = {
        "bias": (h,),
        "twins": (plan.m, h),
        "activations": (len(widths) - 1,),
        "alphas": (len(widths) - 1,),
        "weights": (macs,),
        "biases": (sum(widths[1:]),),
        "numeric_shifts": (a,),
        "numeric_slopes": (a, h),
        "lookup_lows": (c,),
        "lookup_offsets": (c,),
    }
    for name, shape in expected.items():
        _expect(plan, name, shape)
    if c and (plan.lookup_tables.ndim != 2 or plan.lookup_tables.shape[1] != h):
        raise ModelError(f"the plan's lookup_tables must have {h} columns, but got {plan.lookup_tables.shape}.")
    if c and (plan.lookup_offsets[0] != 0 or plan.lookup_sizes.min() < 1):
        raise ModelError("the plan's lookup_offsets must start at 0 and increase, within the rows of lookup_tables.")
    for name in ("numeric_columns", "lookup_columns"):
        if getattr(plan, name).min(initial=0) < 0:
            raise ModelError(f"the plan's {name} must be 0 or more, but got {getattr(plan, name).tolist()}.")
    columns = [*plan.numeric_columns.tolist(), *plan.lookup_columns.tolist()]
    if len(set(columns)) < len(columns):
        raise ModelError(f"the plan's columns must belong to one attribute each, but got {columns}.")
    if plan.activations.size and not set(plan.activations.tolist()) <= set(ActivationCode):
        raise ModelError(f"the plan's activations must be of Activation, but got {plan.activations.tolist()}.")
    _check_head(plan, widths[-1])


def _check_head(plan: Plan, outputs: int) -> None:
    if plan.head is Head.SOFTMAX:
        if outputs < 2 or not 0 <= plan.favourable < outputs:
            raise ModelError(
                f"a softmax head needs two or more outputs and a favourable one among them, but got "
                f"outputs={outputs}, favourable={plan.favourable}."
            )
    elif outputs != 1:
        raise ModelError(f"a {plan.head.name.lower()} head needs exactly one output, but got {outputs}.")
