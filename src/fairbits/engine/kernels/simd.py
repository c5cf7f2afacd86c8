"""People in SIMD lanes: a Numba type that holds one float32 figure of each person of a tile.

Numba has no vector type, and LLVM's own vectoriser does not keep a tile of accumulators in registers. So a
tile of 24 people is a value of its own here, ``Lanes``: three LLVM vectors of eight floats. Kernels are
written as plain Python over such values, and LLVM maps them to what the machine has (three AVX registers,
six NEON ones).

A lane never looks at its neighbours (except in `lowest`, which only says when a loop may end), so a
person's figures do not depend on who shares the tile. No operation may be reassociated: same bits every time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, entrypoints
from numba.core.caching import FunctionCache
from numba.core.extending import intrinsic, models, register_model
from numba.core.runtime import rtsys

WIDTH = 8
VECTORS = 3
PEOPLE = WIDTH * VECTORS
"""Persons in a tile. Four outputs x three vectors make 12 accumulators: with their operands they just fit
into the 16 vector registers of AVX2, and they are enough to keep two fused multiply-add units busy."""

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, WIDTH)
INTEGERS = ir.VectorType(ir.IntType(32), WIDTH)
TILE = ir.ArrayType(VECTOR, VECTORS)


@cache
def _fingerprint() -> str:
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


class KernelCache(FunctionCache):  # type: ignore[misc] # Numba has no types
    """Numba's copies on disk, read without preparing the compiler.

    Before it reads a copy, Numba looks through all installed packages for extensions of its own and fills its tables
    of everything that it could compile, which takes longer than reading and running a kernel. A copy is machine code
    and needs none of that; where there is no copy, both are done before Numba begins to compile.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read the copy for a signature.

        Parameters
        ----------
        sig
            Types of the arguments.
        target_context
            Where machine code goes.

        Returns
        -------
        Any
            What Numba calls a compile result; None where there is no copy.
        """
        rtsys.initialize(target_context)  # the memory manager, which machine code calls
        found = None
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)
        if found is None:
            entrypoints.init_all()
        return found


def compiled(function: Callable[..., Any]) -> Any:
    """Compile on first use and keep the result on disk; releases the interpreter lock while it runs.

    Numba looks only at the file of the function itself to see whether its copy on disk is still good. A kernel
    is made from all files of the engine, so their fingerprint becomes part of the name of the copy.

    Parameters
    ----------
    function
        The kernel.

    Returns
    -------
    Any
        The compiled kernel.
    """
    function.__qualname__ = f"{function.__qualname__}_{_fingerprint()}"
    kernel = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    try:
        kernel._cache = KernelCache(function)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written to
        return kernel
    kernel._compilation_chain_init_hook = _later  # KernelCache does it where there is something to compile
    return kernel


def _later() -> None:
    """Do nothing: takes the place of Numba's look for extensions before a copy on disk is asked for."""


def inlined(function: Callable[..., Any]) -> Any:
    """Compile into every caller: an array crosses a call boundary as seven arguments, too dear in a hot loop.

    Such a function is never called from Python, and need not be compiled for that.

    Parameters
    ----------
    function
        Part of a kernel.

    Returns
    -------
    Any
        The compiled function.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
    return numba.njit(nogil=True, forceinline=True, **options)(function)


def merged(function: Callable[..., Any]) -> Any:
    """Mark a function to be put into its caller before that is compiled: a part of a kernel that costs no call.

    For functions that a kernel calls once; the others are ``inlined``, which compiles them only once.

    Parameters
    ----------
    function
        Part of a kernel.

    Returns
    -------
    Any
        The function for Numba.
    """
    return numba.njit(nogil=True, inline="always", error_model="numpy")(function)


def primitive(typer: Callable[..., Any]) -> Any:
    """Make a function that emits LLVM code callable from kernels.

    Parameters
    ----------
    typer
        Gives type signature and code generator.

    Returns
    -------
    Any
        The function for Numba.
    """
    return intrinsic(typer)


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
        """Self · factor + summand, rounded once.

        Parameters
        ----------
        factor, summand
            Vectors or numbers.

        Returns
        -------
        Vector
            The result.
        """
        return self._call("fma", factor, summand)

    def floor(self) -> Vector:
        """The whole number at or below."""
        return self._call("floor")

    def if_greater(self, than: Vector | float, yes: Vector | float, no: Vector | float) -> Vector:
        """Lane by lane, `yes` where self > than and `no` elsewhere (also where either is NaN).

        Parameters
        ----------
        than
            What self is compared with.
        yes, no
            Vectors or numbers.

        Returns
        -------
        Vector
            The result.
        """
        chosen = self.builder.fcmp_ordered(">", self.value, self._lift(than))
        return self._wrap(self.builder.select(chosen, self._lift(yes), self._lift(no)))

    def at_least(self, other: Vector | float) -> Vector:
        """The larger of two.

        Parameters
        ----------
        other
            A vector or number.

        Returns
        -------
        Vector
            The result.
        """
        return self.if_greater(other, self, other)

    def at_most(self, other: Vector | float) -> Vector:
        """The smaller of two.

        Parameters
        ----------
        other
            A vector or number.

        Returns
        -------
        Vector
            The result.
        """
        larger = self.builder.fcmp_ordered("<", self.value, self._lift(other))
        return self._wrap(self.builder.select(larger, self.value, self._lift(other)))

    def between(self, low: float, high: float) -> Vector:
        """The nearest number within low..high; NaN stays NaN.

        Parameters
        ----------
        low, high
            The bounds.

        Returns
        -------
        Vector
            The result.
        """
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
    """Make a formula over vectors a function of tiles that kernels can call.

    Parameters
    ----------
    formula
        A formula over vectors.

    Returns
    -------
    Any
        The function for Numba.
    """

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
    return primitive(typer)


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
