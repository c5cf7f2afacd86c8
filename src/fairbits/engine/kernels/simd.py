"""People in SIMD lanes: a Numba type that holds one float32 figure of each person of a tile.

Numba has no vector type, and LLVM's own vectoriser does not keep a tile of accumulators in registers. So a
tile of 24 people is a value of its own here, ``Lanes``: three LLVM vectors of eight floats. Kernels are
written as plain Python over such values, and LLVM maps them to what the machine has (three AVX registers,
six NEON ones).

A lane never looks at its neighbours (except in `lowest`, which only says when a loop may end), so a
person's figures do not depend on who shares the tile. No operation may be reassociated: same bits every time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

WIDTH = 8
VECTORS = 3
PEOPLE = WIDTH * VECTORS
"""Persons in a tile. Four outputs x three vectors make 12 accumulators: with their operands they just fit
into the 16 vector registers of AVX2, and they are enough to keep two fused multiply-add units busy."""

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, WIDTH)
INTEGERS = ir.VectorType(ir.IntType(32), WIDTH)
TILE = ir.ArrayType(VECTOR, VECTORS)


class LanesType(types.Type):  # type: ignore[misc]
    """The Numba type of `Lanes`."""

    def __init__(self) -> None:
        super().__init__(name="fairbits.Lanes")


lanes = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """How a `Lanes` value is laid out: an array of vectors, which LLVM takes apart into registers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, TILE)


class Vector:
    """One LLVM vector while code is emitted, with the operators of arithmetic: functions of a tile are
    written as formulas over these (see `elementary`), and cost Numba nothing to compile."""

    def __init__(self, builder: Any, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    def _lift(self, other: Vector | float) -> ir.Value:
        return other.value if isinstance(other, Vector) else ir.Constant(VECTOR, [float(other)] * WIDTH)

    def _wrap(self, value: ir.Value) -> Vector:
        return Vector(self.builder, value)

    def _call(self, name: str, *others: Vector | float) -> Vector:
        operands = [self.value, *map(self._lift, others)]
        kind = ir.FunctionType(VECTOR, [VECTOR] * len(operands))
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.v{WIDTH}f32")
        return self._wrap(self.builder.call(function, operands))

    def __add__(self, other: Vector | float) -> Vector:
        return self._wrap(self.builder.fadd(self.value, self._lift(other)))

    def __sub__(self, other: Vector | float) -> Vector:
        return self._wrap(self.builder.fsub(self.value, self._lift(other)))

    def __rsub__(self, other: float) -> Vector:
        return self._wrap(self.builder.fsub(self._lift(other), self.value))

    def __mul__(self, other: Vector | float) -> Vector:
        return self._wrap(self.builder.fmul(self.value, self._lift(other)))

    def __truediv__(self, other: Vector | float) -> Vector:
        return self._wrap(self.builder.fdiv(self.value, self._lift(other)))

    def __rtruediv__(self, other: float) -> Vector:
        return self._wrap(self.builder.fdiv(self._lift(other), self.value))

    def __abs__(self) -> Vector:
        return self._call("fabs")

    def __neg__(self) -> Vector:
        return 0.0 - self

    def fma(self, factor: Vector | float, summand: Vector | float) -> Vector:
        """Self · factor + summand, rounded once."""
        return self._call("fma", factor, summand)

    def floor(self) -> Vector:
        """The whole number at or below."""
        return self._call("floor")

    def if_greater(self, than: Vector | float, yes: Vector | float, no: Vector | float) -> Vector:
        """Lane by lane, `yes` where self > than and `no` elsewhere (also where either is NaN)."""
        chosen = self.builder.fcmp_ordered(">", self.value, self._lift(than))
        return self._wrap(self.builder.select(chosen, self._lift(yes), self._lift(no)))

    def at_least(self, other: Vector | float) -> Vector:
        """The larger of two."""
        return self.if_greater(other, self, other)

    def at_most(self, other: Vector | float) -> Vector:
        """The smaller of two."""
        larger = self.builder.fcmp_ordered("<", self.value, self._lift(other))
        return self._wrap(self.builder.select(larger, self.value, self._lift(other)))

    def between(self, low: float, high: float) -> Vector:
        """The nearest number within low..high; NaN stays NaN."""
        below = self.builder.fcmp_ordered("<", self.value, self._lift(low))
        raised = self.builder.select(below, self._lift(low), self.value)
        above = self.builder.fcmp_ordered(">", raised, self._lift(high))
        return self._wrap(self.builder.select(above, self._lift(high), raised))

    def power_of_two(self) -> Vector:
        """2**self for whole numbers within -126..127, by writing them into the exponent bits."""
        whole = self.builder.fptosi(self.value, INTEGERS)
        biased = self.builder.add(whole, ir.Constant(INTEGERS, [127] * WIDTH))
        bits = self.builder.shl(biased, ir.Constant(INTEGERS, [23] * WIDTH))
        return self._wrap(self.builder.bitcast(bits, VECTOR))


def lanewise(formula: Callable[..., Vector]) -> Any:
    """Make a formula over vectors a function of tiles that kernels can call."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
        tile = ir.Constant(TILE, ir.Undefined)
        for part in range(VECTORS):
            vectors = [Vector(builder, builder.extract_value(value, part)) for value in values]
            tile = builder.insert_value(tile, formula(*vectors).value, part)
        return tile

    count = formula.__code__.co_argcount
    signature = lanes(*(lanes,) * count)
    typers: dict[int, Any] = {
        1: lambda _typing, _a: (signature, codegen),
        2: lambda _typing, _a, _b: (signature, codegen),
        3: lambda _typing, _a, _b, _c: (signature, codegen),
        4: lambda _typing, _a, _b, _c, _d: (signature, codegen),
    }
    typer = typers[count]
    typer.__name__ = typer.__qualname__ = getattr(formula, "__name__", "lanewise")
    return intrinsic(typer)


add = lanewise(lambda x, y: x + y)
sub = lanewise(lambda x, y: x - y)
mul = lanewise(lambda x, y: x * y)
div = lanewise(lambda x, y: x / y)
fma = lanewise(lambda x, y, z: x.fma(y, z))
clip_index = lanewise(lambda x, size: x.floor().at_least(0.0).at_most(size - 1.0))
"""The nearest valid index of a table of `size` rows, whatever x is: NaN gives 0."""
distance = lanewise(lambda x, y: abs(x - y))
floor = lanewise(lambda x: x.floor())
minimum = lanewise(lambda x, y: x.at_most(y))
if_greater = lanewise(lambda x, y, yes, no: x.if_greater(y, yes, no))
leaky = lanewise(lambda x, slope: x.if_greater(0.0, x, x * slope))
"""x above zero and slope * x below: ReLU, leaky ReLU and identity are this, with slopes 0, alpha and 1."""
leaky_slope = lanewise(lambda x, slope: x.if_greater(0.0, 1.0, slope))
