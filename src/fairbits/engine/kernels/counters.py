"""Counting for 512 rows at once: a Numba type of binary counters that lie across machine words.

A bitset has one bit per table row. Adding up bitsets row by row is done in planes: plane 0 holds the lowest bit
of every row's count, plane 1 the next one, and a full adder of five logical operations on whole vectors adds 512
rows at a time. Numba has no vector type, and LLVM does not keep planes in registers across a loop over bitsets by
itself, hence the type `Counters` (compare `fairbits.engine.kernels.simd`).

A counter starts at 2^planes - 1 - best instead of 0. It then overflows for just those rows whose count is larger
than `best`: one test per 512 rows says whether any of them matters.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

WORDS = 8
"""64-bit words in a vector: two AVX2 registers a plane, so four planes and an adder's operands fit into sixteen."""

ROWS = 64 * WORDS
WORD = ir.IntType(64)
VECTOR = ir.VectorType(WORD, WORDS)


class CountersType(types.Type):  # type: ignore[misc]
    """The Numba type of `Counters` with so many planes."""

    def __init__(self, planes: int) -> None:
        self.planes = planes
        super().__init__(name=f"fairbits.Counters({planes})")


@register_model(CountersType)
class CountersModel(models.PrimitiveModel):  # type: ignore[misc]
    """The planes, and after them the rows that have overflown: vectors, which LLVM puts into registers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.ArrayType(VECTOR, kind.planes + 1))


def _half_add(builder: Any, one: ir.Value, two: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sum and carry of two bits."""
    return builder.xor(one, two), builder.and_(one, two)


def _full_add(builder: Any, one: ir.Value, two: ir.Value, three: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Sum and carry of three bits."""
    partial, carry = _half_add(builder, one, two)
    total, second = _half_add(builder, partial, three)
    return total, builder.or_(carry, second)


@intrinsic
def start(_typing: Any, shape: Any, _value: Any) -> Any:
    """Counters that all hold one value."""
    kind = CountersType(shape.count)

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
        counters = ir.Constant(ir.ArrayType(VECTOR, kind.planes + 1), None)
        for plane in range(kind.planes):
            bit = builder.and_(builder.lshr(values[1], WORD(plane)), WORD(1))
            spread = builder.sub(WORD(0), bit)
            vector = ir.Constant(VECTOR, ir.Undefined)
            for lane in range(WORDS):
                vector = builder.insert_element(vector, spread, ir.IntType(32)(lane))
            counters = builder.insert_value(counters, vector, plane)
        return counters

    return kind(shape, types.int64), codegen


@intrinsic
def add_four(_typing: Any, counters: Any, addresses: Any, _first: Any, _offset: Any) -> Any:
    """Count the rows of four bitsets: eight words of each, at an offset in bytes from four consecutive addresses.

    The addresses are read here because an index that Numba sees is tested for being negative, four times over.
    """
    planes = counters.planes

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> ir.Value:
        result, array, first, offset = values
        data = context.make_array(signature.args[1])(context, builder, array).data
        vectors = []
        for i in range(4):
            address = builder.add(builder.load(builder.gep(data, [builder.add(first, WORD(i))])), offset)
            vectors.append(builder.load(builder.inttoptr(address, VECTOR.as_pointer()), align=8))
        one, two, three, four = vectors
        bits = [builder.extract_value(result, plane) for plane in range(planes + 1)]
        bits[0], left = _full_add(builder, bits[0], one, two)
        bits[0], right = _full_add(builder, bits[0], three, four)
        bits[1], carry = _full_add(builder, bits[1], left, right)
        for plane in range(2, planes):
            bits[plane], carry = _half_add(builder, bits[plane], carry)
        bits[planes] = builder.or_(bits[planes], carry)
        for plane in range(planes + 1):
            result = builder.insert_value(result, bits[plane], plane)
        return result

    return counters(counters, addresses, types.int64, types.int64), codegen


@intrinsic
def overflown(_typing: Any, counters: Any) -> Any:
    """Whether any counter has overflown."""

    def codegen(_context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
        rows = builder.extract_value(values[0], counters.planes)
        kind = ir.FunctionType(WORD, [VECTOR])
        reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.or.v{WORDS}i64")
        return builder.icmp_unsigned("!=", builder.call(reduce, [rows]), WORD(0))

    return types.boolean(counters), codegen


@intrinsic
def write_out(_typing: Any, counters: Any, _address: Any) -> Any:
    """Write the planes, then the overflown rows, to an address with room for planes + 1 vectors."""

    def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> ir.Value:
        target = builder.inttoptr(values[1], VECTOR.as_pointer())
        for plane in range(counters.planes + 1):
            place = builder.gep(target, [WORD(plane)])
            builder.store(builder.extract_value(values[0], plane), place, align=8)
        return context.get_dummy_value()

    return types.void(counters, types.int64), codegen
