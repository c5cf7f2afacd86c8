"""People in SIMD lanes: a Numba type that holds one float32 figure of each person of a tile.

Numba has no vector type, and LLVM's own vectoriser does not keep a tile of accumulators in registers. So a
tile of 24 people is a value of its own here, ``Lanes``: an LLVM vector of 16 floats and one of eight. Kernels are
written as plain Python over such values, and LLVM maps them to what the machine has (two registers with AVX-512,
three with AVX2, six with NEON). Functions between memory and lanes check no index.

A lane never looks at its neighbours (except in `lowest`, which only says when a loop may end), so a
person's figures do not depend on who shares the tile. No operation may be reassociated: same bits every time.

Activations are accurate to about 1e-7. They rest on one exponential, so that a smooth one costs a polynomial and no
call into libm (which would be one call per person, and not the same bits on every machine).
"""

# Numba infers the types of kernels; annotations would only repeat "Any".
# mypy: disallow-untyped-defs=False, disallow-untyped-calls=False, disallow-untyped-decorators=False

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from inspect import Parameter, Signature
from itertools import accumulate
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from fairbits.engine.kernels.compiler import inlined

WIDTH = 8
#: Persons in each vector of a tile.
PARTS = (2 * WIDTH, WIDTH)
#: Persons in a tile. Four outputs make 12 accumulators of AVX2: with their operands they just fit into its 16 vector
#: registers, and they (or eight of AVX-512) are enough to keep two fused multiply-add units busy.
PEOPLE = sum(PARTS)
#: Neurons in a piece of a table's row: a line of the cache.
PIECE = 2 * WIDTH

FLOAT = ir.FloatType()
INTEGER = ir.IntType(32)
VECTOR = ir.VectorType(FLOAT, WIDTH)


class LanesType(types.Type):  # type: ignore[misc]
    """The Numba type of vectors that belong together: a tile of people, or a piece of a row of neurons."""

    def __init__(self, name: str, parts: Sequence[int]) -> None:
        self.layout = ir.LiteralStructType([ir.VectorType(FLOAT, count) for count in parts])
        super().__init__(name=name)


lanes, neurons = LanesType("fairbits.Lanes", PARTS), LanesType("fairbits.Neurons", (PIECE,))
TILE = lanes.layout


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    """How a `Lanes` value is laid out: an array of vectors, which LLVM takes apart into registers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, kind.layout)


class Vector:
    """One LLVM vector while code is emitted, with the operators of arithmetic: functions of a tile are
    written as formulas over these (see `elementary`), and cost Numba nothing to compile."""

    def __init__(self, builder: Any, value: ir.Value) -> None:
        self.builder = builder
        self.value = value

    def _lift(self, other: Vector | float) -> ir.Value:
        return other.value if isinstance(other, Vector) else self._same(FLOAT, float(other))

    def _same(self, kind: ir.Type, number: float) -> ir.Constant:
        """A number in every lane."""
        count = self.value.type.count
        return ir.Constant(ir.VectorType(kind, count), [number] * count)

    def _wrap(self, value: ir.Value) -> Vector:
        return Vector(self.builder, value)

    def _call(self, name: str, *others: Vector | float) -> Vector:
        operands = [self.value, *map(self._lift, others)]
        kind = ir.FunctionType(self.value.type, [self.value.type] * len(operands))
        name = f"llvm.{name}.v{self.value.type.count}f32"
        function = self.builder.module.declare_intrinsic(name, fnty=kind)
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
        """The larger of two; where self is NaN, the other."""
        return self.if_greater(other, self, other)

    def raised(self, to: float) -> Vector:
        """At least so much; NaN stays NaN."""
        least = self._wrap(self._lift(to))
        return least.if_greater(self, least, self)

    def at_most(self, other: Vector | float) -> Vector:
        """The smaller of two; where self is NaN, the other."""
        return self._wrap(self._lift(other)).if_greater(self, self, other)

    def between(self, low: float, high: float) -> Vector:
        """The nearest number within low..high; NaN stays NaN."""
        raised = self.raised(low)
        return raised.if_greater(high, high, raised)

    def power_of_two(self) -> Vector:
        """2**self for whole numbers within -126..127, by writing them into the exponent bits."""
        bias, places = self._same(INTEGER, 127), self._same(INTEGER, 23)
        whole = self.builder.fptosi(self.value, bias.type)
        bits = self.builder.shl(self.builder.add(whole, bias), places)
        return self._wrap(self.builder.bitcast(bits, self.value.type))


def emitted(result: Any, *kinds: Any) -> Callable[[Callable[..., ir.Value]], Any]:
    """Make a function that emits code, ``(context, builder, signature, values)``, one that kernels can call.

    ``kinds`` are the types of its arguments, None for any; no type of a result is that of the first argument.
    """

    def decorate(emit: Callable[..., ir.Value]) -> Any:
        def typer(_typing: Any, *given: Any) -> Any:
            return (result or given[0])(*(kind or own for kind, own in zip(kinds, given, strict=True))), emit

        # Numba reads the number of arguments from the signature.
        names = ["_typing", *(f"_{place}" for place in range(len(kinds)))]
        typer.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])  # type: ignore[attr-defined]
        typer.__name__ = typer.__qualname__ = emit.__name__
        return intrinsic(typer)

    return decorate


def lanewise(formula: Callable[..., Vector]) -> Any:
    """Make a formula over vectors a function of tiles that kernels can call."""

    def emit(_context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        layout = signature.return_type.layout
        tile = ir.Constant(layout, ir.Undefined)
        for part in range(len(layout)):
            vectors = [Vector(builder, builder.extract_value(value, part)) for value in values]
            tile = builder.insert_value(tile, formula(*vectors).value, part)
        return tile

    return emitted(None, *(None,) * formula.__code__.co_argcount)(emit)


add = lanewise(lambda x, y: x + y)
sub = lanewise(lambda x, y: x - y)
mul = lanewise(lambda x, y: x * y)
div = lanewise(lambda x, y: x / y)
fma = lanewise(lambda x, y, z: x.fma(y, z))
#: The nearest valid index of a table of `size` rows, whatever x is: NaN gives 0.
clip_index = lanewise(lambda x, size: x.floor().at_least(0.0).at_most(size - 1.0))
distance = lanewise(lambda x, y: abs(x - y))
floor = lanewise(lambda x: x.floor())
minimum = lanewise(lambda x, y: x.at_most(y))
if_greater = lanewise(lambda x, y, yes, no: x.if_greater(y, yes, no))
#: x above zero and slope * x below: ReLU, leaky ReLU and identity are this, with slopes 0, alpha and 1.
leaky = lanewise(lambda x, slope: x.if_greater(0.0, x, x * slope))
rectified = lanewise(lambda x: x.raised(0.0))
leaky_slope = lanewise(lambda x, slope: x.if_greater(0.0, 1.0, slope))


def _pointer(context: Any, builder: Any, kind: Any, array: ir.Value, index: ir.Value) -> ir.Value:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


def _places(builder: Any, start: ir.Value, layout: Any) -> list[ir.Value]:
    """Where vectors lie that begin at a place of a float32 array."""
    ends = accumulate((kind.count for kind in layout.elements), initial=0)
    starts = [builder.gep(start, [ir.Constant(INTEGER, end)]) for end in ends]
    return [builder.bitcast(at, kind.as_pointer()) for at, kind in zip(starts, layout.elements, strict=False)]


def _load(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    layout = signature.return_type.layout
    tile = ir.Constant(layout, ir.Undefined)
    for part, place in enumerate(_places(builder, _pointer(context, builder, signature.args[0], *values), layout)):
        tile = builder.insert_value(tile, builder.load(place, align=4), part)
    return tile


#: The tile, or the piece of a row, that starts at ``index`` of a flat float32 array.
load, load_row = emitted(lanes, None, types.intp)(_load), emitted(neurons, None, types.intp)(_load)


@emitted(types.void, None, types.intp, None)
def store(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """Write a tile, or a piece of a row, to ``index`` of a flat float32 array."""
    start = _pointer(context, builder, signature.args[0], *values[:2])
    for part, place in enumerate(_places(builder, start, signature.args[2].layout)):
        builder.store(builder.extract_value(values[2], part), place, align=4)
    return context.get_dummy_value()


@emitted(types.void, None, types.intp, lanes)
def store_whole(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """Write a tile of whole numbers to ``index`` of a flat int32 array."""
    start = _pointer(context, builder, signature.args[0], *values[:2])
    for part, place in enumerate(_places(builder, start, TILE)):
        floats = builder.extract_value(values[2], part)
        whole = builder.fptosi(floats, ir.VectorType(INTEGER, floats.type.count))
        builder.store(whole, builder.bitcast(place, whole.type.as_pointer()), align=4)
    return context.get_dummy_value()


@emitted(types.void, None, types.intp)
def prefetch(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """Prefetch a place that will be read soon; it may lie beyond the array, since a prefetch cannot fail."""
    place = _pointer(context, builder, signature.args[0], *values)
    place = builder.bitcast(place, ir.IntType(8).as_pointer())
    flag = INTEGER
    kind = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
    function = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=kind)
    # For reading, to the second level of the cache, as data.
    builder.call(function, [place, flag(0), flag(2), flag(1)])
    return context.get_dummy_value()


@emitted(types.uint64, types.uint64)
def trailing_zeros(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
    """The place of the lowest bit that is set; 64 where none is."""
    return builder.cttz(values[0], ir.IntType(1)(0))


def _broadcast(builder: Any, scalar: ir.Value, kind: ir.VectorType) -> ir.Value:
    nothing = ir.Constant(kind, ir.Undefined)
    return _mix(builder, builder.insert_element(nothing, scalar, INTEGER(0)), nothing, (0,) * kind.count)


def _everywhere(builder: Any, scalar: ir.Value, layout: Any = TILE) -> ir.Value:
    tile = ir.Constant(layout, ir.Undefined)
    for part, kind in enumerate(layout.elements):
        tile = builder.insert_value(tile, _broadcast(builder, scalar, kind), part)
    return tile


def _splat(_context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    return _everywhere(builder, values[0], signature.return_type.layout)


#: The same number for every person, or for every neuron of a piece.
splat, splat_row = emitted(lanes, types.float32)(_splat), emitted(neurons, types.float32)(_splat)


@emitted(lanes, None, types.intp)
def splat_at(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """The number at `index` of a flat float32 array, for every person."""
    return _everywhere(builder, builder.load(_pointer(context, builder, signature.args[0], *values)))


@emitted(types.float32, lanes)
def lowest(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
    """The smallest figure among the people of the tile, as a scalar."""
    least, *others = _eights(builder, values[0])
    for other in others:
        least = builder.select(builder.fcmp_ordered("<", other, least), other, least)
    scalars = [builder.extract_element(least, INTEGER(lane)) for lane in range(WIDTH)]
    result = scalars[0]
    for scalar in scalars[1:]:
        result = builder.select(builder.fcmp_ordered("<", scalar, result), scalar, result)
    return result


@emitted(types.intp, lanes)
def stirs(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
    """1 where somebody's figure has any bit set, 0 where the whole tile is zero."""
    wide, half = (
        builder.bitcast(builder.extract_value(values[0], part), ir.VectorType(INTEGER, kind.count))
        for part, kind in enumerate(TILE.elements)
    )
    nothing = ir.Constant(half.type, [0] * half.type.count)
    both = builder.or_(wide, _mix(builder, half, nothing, tuple(range(wide.type.count))))
    flags = builder.icmp_unsigned("!=", both, ir.Constant(both.type, [0] * both.type.count))
    some = ir.IntType(both.type.count)
    return builder.zext(builder.icmp_unsigned("!=", builder.bitcast(flags, some), some(0)), ir.IntType(64))


# How two vectors are interleaved: by single numbers, by pairs, by fours.
SINGLES = (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
FOURS = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


def _mix(builder: Any, one: ir.Value, two: ir.Value, order: tuple[int, ...]) -> ir.Value:
    return builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(INTEGER, len(order)), list(order)))


def _eights(builder: Any, tile: ir.Value) -> list[ir.Value]:
    """A tile as vectors of eight."""
    vectors = [builder.extract_value(tile, part) for part in range(len(PARTS))]
    return [
        _mix(builder, vector, vector, tuple(range(first, first + WIDTH)))
        for vector in vectors
        for first in range(0, vector.type.count, WIDTH)
    ]


def _turn_square(builder: Any, rows: list[ir.Value]) -> list[ir.Value]:
    """Transpose an 8 x 8 square in registers: interleave pairs, then fours, then halves."""
    pairs = [_mix(builder, rows[i], rows[i + 1], order) for i in (0, 2, 4, 6) for order in SINGLES]
    fours = [_mix(builder, pairs[i], pairs[i + 2], order) for i in (0, 1, 4, 5) for order in PAIRS]
    return [_mix(builder, fours[i], fours[i + 4], order) for order in FOURS for i in (0, 1, 2, 3)]


@emitted(types.void, None, types.intp, None, types.intp, types.intp, None, types.intp)
def turn_codes(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """Put codes - shifts of eight columns, rounded to float32 only then, into as many tiles from ``at`` on.

    The people are 24 rows of a float64 array, ``width`` apart, from ``start`` on; what lies behind a row is not read.
    """
    tile, at, codes, start, width, shifts, column = values
    doubles, floats = (ir.VectorType(kind, WIDTH) for kind in (ir.DoubleType(), FLOAT))
    whole = ir.VectorType(ir.IntType(64), WIDTH)
    lane = ir.Constant(whole, list(range(WIDTH)))
    there = builder.icmp_signed("<", lane, _broadcast(builder, builder.sub(width, column), whole))
    shift = _pointer(context, builder, signature.args[5], shifts, column)
    shift = builder.load(builder.bitcast(shift, doubles.as_pointer()), align=8)
    first = builder.add(start, column)
    for people in range(0, PEOPLE, WIDTH):
        rows = []
        for person in range(people, people + WIDTH):
            index = builder.add(first, builder.mul(width, ir.Constant(width.type, person)))
            place = _pointer(context, builder, signature.args[2], codes, index)
            place = builder.bitcast(place, doubles.as_pointer())
            kind = ir.FunctionType(doubles, [place.type, INTEGER, there.type, doubles])
            read = builder.module.declare_intrinsic(f"llvm.masked.load.v{WIDTH}f64.p0", fnty=kind)
            row = builder.call(read, [place, INTEGER(8), there, shift])
            rows.append(builder.fptrunc(builder.fsub(row, shift), floats))
        for number, turned in enumerate(_turn_square(builder, rows)):
            index = builder.add(at, ir.Constant(at.type, number * PEOPLE + people))
            place = _pointer(context, builder, signature.args[0], tile, index)
            builder.store(turned, builder.bitcast(place, VECTOR.as_pointer()), align=4)
    return context.get_dummy_value()


def _turning(rows: int, columns: int) -> Any:
    """Make a function that transposes numbers of a flat float32 array, from one place of it to another."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        array, *places = values
        source, target = (_pointer(context, builder, signature.args[0], array, place) for place in places)

        def parts(start: ir.Value, row: int, column: int, width: int) -> list[ir.Value]:
            offsets = [ir.Constant(INTEGER, (row + i) * width + column) for i in range(WIDTH)]
            return [builder.bitcast(builder.gep(start, [offset]), VECTOR.as_pointer()) for offset in offsets]

        for row in range(0, rows, WIDTH):
            for column in range(0, columns, WIDTH):
                square = [builder.load(place, align=4) for place in parts(source, row, column, columns)]
                for place, vector in zip(parts(target, column, row, rows), _turn_square(builder, square), strict=True):
                    builder.store(vector, place, align=4)
        return context.get_dummy_value()

    return emitted(types.void, None, types.intp, types.intp)(emit)


#: From people with their neurons side by side to tiles, and from tiles to people with 24 neurons each.
into_tiles, into_rows = _turning(PEOPLE, PIECE), _turning(PEOPLE, PEOPLE)


@emitted(types.void, None, types.intp, lanes, lanes, lanes, lanes)
def store_totals(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
    """Add up the lanes of each of four tiles, and write the four sums to `index` of a flat float32 array."""

    def fold(one: ir.Value, two: ir.Value, orders: tuple[tuple[int, ...], ...]) -> ir.Value:
        return builder.fadd(*(_mix(builder, one, two, order) for order in orders))

    a, b, c, d = (reduce(builder.fadd, _eights(builder, tile)) for tile in values[2:])
    halves = fold(fold(a, b, SINGLES), fold(c, d, SINGLES), PAIRS)
    total = fold(halves, halves, FOURS)
    first = _mix(builder, total, total, (0, 1, 2, 3))
    place = _pointer(context, builder, signature.args[0], *values[:2])
    builder.store(first, builder.bitcast(place, first.type.as_pointer()), align=4)
    return context.get_dummy_value()


#: The activations that kernels know, by number. Only leaky ReLU and ELU read their alpha.
ACTIVATIONS = ("identity", "relu", "leaky_relu", "tanh", "sigmoid", "gelu", "gelu_tanh", "elu")
IDENTITY, RELU, LEAKY_RELU, TANH, SIGMOID, GELU, GELU_TANH, ELU = range(len(ACTIVATIONS))

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


@lanewise
def tanh(x: Vector) -> Vector:
    """Through e**(-2|x|), which cannot overflow; the sign is put back at the end."""
    e = _exp(abs(x) * -2.0)
    size = (1.0 - e) / (e + 1.0)
    return x.if_greater(0.0, size, -size)


@lanewise
def gelu(x: Vector) -> Vector:
    """x Phi(x) = max(x, 0) - |x| erfc(|x| / sqrt 2) / 2: the correction fades where the result is large."""
    u = abs(x) * SQRT_HALF
    t = 1.0 / u.fma(ERFC_SCALE, 1.0)
    erfc = _polynomial(t, ERFC) * t * _exp(-(u * u))
    return x.at_least(0.0) - abs(x) * 0.5 * erfc


@lanewise
def gelu_tanh(x: Vector) -> Vector:
    """The tanh variant, which is x sigmoid(2 sqrt(2/pi) (x + 0.044715 x**3))."""
    inner = (x * x).fma(GELU_CUBIC, 1.0) * x
    return x * _sigmoid(inner * (2.0 * GELU_SCALE))


def _sigmoid_slope(x: Vector) -> Vector:
    """Through e**-|x|: no difference of nearly equal numbers at either end."""
    e = _exp(-abs(x))
    return e / ((e + 1.0) * (e + 1.0))


@lanewise
def gelu_slope(x: Vector) -> Vector:
    """Phi(x) + x phi(x)."""
    x = x.between(-GELU_SETTLED, GELU_SETTLED)
    u = abs(x) * SQRT_HALF
    t = 1.0 / u.fma(ERFC_SCALE, 1.0)
    bell = _exp(-(u * u))
    tail = _polynomial(t, ERFC) * t * bell * 0.5
    return (x * DENSITY).fma(bell, x.if_greater(0.0, 1.0 - tail, tail))


@lanewise
def gelu_tanh_slope(x: Vector) -> Vector:
    """s + x s (1 - s) inner' for x s, where s = sigmoid(inner)."""
    x = x.between(-GELU_SETTLED, GELU_SETTLED)
    square = x * x
    inner = square.fma(GELU_CUBIC, 1.0) * x * (2.0 * GELU_SCALE)
    e = _exp(-abs(inner))
    r = 1.0 / (e + 1.0)
    steepness = square.fma(3.0 * GELU_CUBIC, 1.0) * (2.0 * GELU_SCALE)
    return (x * steepness).fma(e * r * r, inner.if_greater(0.0, r, e * r))


exp, sigmoid, sigmoid_slope = lanewise(_exp), lanewise(_sigmoid), lanewise(_sigmoid_slope)
tanh_slope = lanewise(lambda x: _sigmoid_slope(x * 2.0) * 4.0)  # tanh x = 2 sigmoid(2x) - 1
elu = lanewise(lambda x, alpha: x.if_greater(0.0, x, (_exp(x) - 1.0) * alpha))
elu_slope = lanewise(lambda x, alpha: x.if_greater(0.0, 1.0, _exp(x) * alpha))


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
