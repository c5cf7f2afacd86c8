"""Between memory and lanes: load, store, gather, spread, transpose. No index is checked.

Each function here runs while Numba infers types: it gets types and gives the signature and the code emitter.
"""

# ruff: noqa: ARG001 (the emitter reads the arguments, not the function that types them)

from __future__ import annotations

from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from fairbits.engine.kernels.simd import INTEGERS, PEOPLE, TILE, VECTOR, VECTORS, WIDTH, lanes


def _pointer(context: Any, builder: Any, kind: Any, array: ir.Value, index: ir.Value) -> ir.Value:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


@intrinsic
def load(_typing: Any, array: Any, index: Any) -> Any:
    """The tile that starts at ``index`` of a flat float32 array."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        start = _pointer(context, builder, signature.args[0], *values)
        start = builder.bitcast(start, VECTOR.as_pointer())
        tile = ir.Constant(TILE, ir.Undefined)
        for part in range(VECTORS):
            place = builder.gep(start, [ir.Constant(ir.IntType(64), part)])
            tile = builder.insert_value(tile, builder.load(place, align=4), part)
        return tile

    return lanes(array, types.intp), codegen


@intrinsic
def store(_typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write a tile to ``index`` of a flat float32 array."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        start = _pointer(context, builder, signature.args[0], *values[:2])
        start = builder.bitcast(start, VECTOR.as_pointer())
        for part in range(VECTORS):
            place = builder.gep(start, [ir.Constant(ir.IntType(64), part)])
            builder.store(builder.extract_value(values[2], part), place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


@intrinsic
def prefetch(_typing: Any, array: Any, index: Any) -> Any:
    """Prefetch a place that will be read soon; it may lie beyond the array, since a prefetch cannot fail."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        place = _pointer(context, builder, signature.args[0], *values)
        place = builder.bitcast(place, ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # For reading, to the second level of the cache, as data.
        builder.call(function, [place, flag(0), flag(2), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def gather(_typing: Any, codes: Any, index: Any, stride: Any, shift: Any) -> Any:
    """codes[index + person * stride] - shift of a float64 array, rounded to float32 only then."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        array, index, stride, shift = values
        place = _pointer(context, builder, signature.args[0], array, index)
        doubles = ir.VectorType(ir.DoubleType(), WIDTH)
        tile = ir.Constant(TILE, ir.Undefined)
        for part in range(VECTORS):
            column = ir.Constant(doubles, ir.Undefined)
            for lane in range(WIDTH):
                column = builder.insert_element(column, builder.load(place), ir.Constant(ir.IntType(32), lane))
                place = builder.gep(place, [stride])
            shifts = _broadcast(builder, shift, doubles)
            tile = builder.insert_value(tile, builder.fptrunc(builder.fsub(column, shifts), VECTOR), part)
        return tile

    return lanes(codes, types.intp, types.intp, types.float64), codegen


def _broadcast(builder: Any, scalar: ir.Value, kind: ir.VectorType = VECTOR) -> ir.Value:
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(INTEGERS, [0] * WIDTH))


def _everywhere(builder: Any, scalar: ir.Value) -> ir.Value:
    tile = ir.Constant(TILE, ir.Undefined)
    vector = _broadcast(builder, scalar)
    for part in range(VECTORS):
        tile = builder.insert_value(tile, vector, part)
    return tile


@intrinsic
def splat(_typing: Any, _number: Any) -> Any:
    """The same number for every person."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
        return _everywhere(builder, values[0])

    return lanes(types.float32), codegen


@intrinsic
def splat_at(_typing: Any, array: Any, index: Any) -> Any:
    """The number at `index` of a flat float32 array, for every person."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        return _everywhere(builder, builder.load(_pointer(context, builder, signature.args[0], *values)))

    return lanes(array, types.intp), codegen


@intrinsic
def lowest(_typing: Any, _value: Any) -> Any:
    """The smallest figure among the people of the tile, as a scalar."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
        least = builder.extract_value(values[0], 0)
        for part in range(1, VECTORS):
            other = builder.extract_value(values[0], part)
            least = builder.select(builder.fcmp_ordered("<", other, least), other, least)
        scalars = [builder.extract_element(least, ir.Constant(ir.IntType(32), lane)) for lane in range(WIDTH)]
        result = scalars[0]
        for scalar in scalars[1:]:
            result = builder.select(builder.fcmp_ordered("<", scalar, result), scalar, result)
        return result

    return types.float32(lanes), codegen


# How two vectors are interleaved: by single numbers, by pairs, by fours.
SINGLES = (0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15)
PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
FOURS = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


def _mix(builder: Any, one: ir.Value, two: ir.Value, order: tuple[int, ...]) -> ir.Value:
    return builder.shuffle_vector(one, two, ir.Constant(INTEGERS, list(order)))


def _turn_square(builder: Any, rows: list[ir.Value]) -> list[ir.Value]:
    """Transpose an 8 x 8 square in registers: interleave pairs, then fours, then halves."""
    pairs = [_mix(builder, rows[i], rows[i + 1], order) for i in (0, 2, 4, 6) for order in SINGLES]
    fours = [_mix(builder, pairs[i], pairs[i + 2], order) for i in (0, 1, 4, 5) for order in PAIRS]
    return [_mix(builder, fours[i], fours[i + 4], order) for order in FOURS for i in (0, 1, 2, 3)]


@intrinsic
def transpose(_typing: Any, array: Any, index: Any) -> Any:
    """Transpose, in place, the square of 24 tiles that starts at ``index`` of a flat float32 array."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        start = _pointer(context, builder, signature.args[0], *values)

        def places(row: int, column: int) -> list[ir.Value]:
            offsets = [(row * WIDTH + i) * PEOPLE + column * WIDTH for i in range(WIDTH)]
            pointers = [builder.gep(start, [ir.Constant(ir.IntType(64), offset)]) for offset in offsets]
            return [builder.bitcast(pointer, VECTOR.as_pointer()) for pointer in pointers]

        for row in range(VECTORS):
            for column in range(row, VECTORS):
                here, there = places(row, column), places(column, row)
                turned = _turn_square(builder, [builder.load(place, align=4) for place in here])
                mirror = _turn_square(builder, [builder.load(place, align=4) for place in there])
                for place, vector in zip(there, turned, strict=True):
                    builder.store(vector, place, align=4)
                if row != column:
                    for place, vector in zip(here, mirror, strict=True):
                        builder.store(vector, place, align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def store_totals(_typing: Any, array: Any, index: Any, _a: Any, _b: Any, _c: Any, _d: Any) -> Any:
    """Add up the lanes of each of four tiles, and write the four sums to `index` of a flat float32 array."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        def fold(one: ir.Value, two: ir.Value, orders: tuple[tuple[int, ...], ...]) -> ir.Value:
            return builder.fadd(*(_mix(builder, one, two, order) for order in orders))

        parts = [[builder.extract_value(tile, part) for part in range(VECTORS)] for tile in values[2:]]
        a, b, c, d = (reduce(builder.fadd, vectors) for vectors in parts)
        halves = fold(fold(a, b, SINGLES), fold(c, d, SINGLES), PAIRS)
        total = fold(halves, halves, FOURS)
        first = builder.shuffle_vector(total, total, ir.Constant(ir.VectorType(ir.IntType(32), 4), [0, 1, 2, 3]))
        place = _pointer(context, builder, signature.args[0], *values[:2])
        builder.store(first, builder.bitcast(place, first.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes, lanes, lanes, lanes), codegen
