"""How kernels are compiled: once per machine, kept on disk, and no part of one twice.

Numba optimises each function that it compiles, and makes machine code of it, also where it is only ever called by
another one, which then gets a copy of it and is optimised as a whole. That took more than half of the time. So a
kernel's parts stop at LLVM's intermediate code here: they are typed and translated once, linked into every kernel that
calls them, and optimised there.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import _dynfunc
from numba.core import entrypoints
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.extending import intrinsic
from numba.core.runtime import rtsys


@cache
def _fingerprint() -> str:
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


#: Each waits for a kernel while another process compiles it, and says whether it had to.
compiled_elsewhere: list[Callable[[str], bool]] = []


def is_on_disk(kernel: Any) -> bool:
    """Whether some process on this machine has compiled a kernel."""
    cache = kernel._cache
    if not isinstance(cache, KernelCache):
        return True
    return any(Path(cache.cache_path).glob(f"*{kernel.py_func.__qualname__}*.nbi"))


class KernelCache(FunctionCache):  # type: ignore[misc] # Numba has no types
    """Numba's copies on disk, read without preparing the compiler.

    Before it reads a copy, Numba looks through all installed packages for extensions of its own and fills its tables
    of everything that it could compile, which takes longer than reading and running a kernel. A copy is machine code
    and needs none of that; where there is no copy, both are done before Numba begins to compile.
    """

    seconds_waited = 0.0

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Read the copy for a signature."""
        rtsys.initialize(target_context)  # the memory manager, which machine code calls
        found = self._read(sig, target_context)
        if found is None and compiled_elsewhere:
            begin = time.perf_counter()
            waited = [wait(self._py_func.__name__) for wait in compiled_elsewhere]
            KernelCache.seconds_waited += time.perf_counter() - begin
            found = self._read(sig, target_context) if any(waited) else None
        if found is None:
            entrypoints.init_all()
        return found

    def _read(self, sig: Any, target_context: Any) -> Any:
        found = None
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(sig, target_context)
        return found


class KernelCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler without the garbage collector, whose rounds through a growing heap take a tenth of the time."""

    def _compile_core(self) -> Any:
        with _no_collection():
            return super()._compile_core()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Leave reference cycles where they are for a moment."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Intermediate code of a part: linked into kernels, and no machine code by itself."""

    def _finalize_final_module(self) -> None:
        """Be ready for being linked."""
        self._finalize_dynamic_globals()
        self._finalized = True


class RawLibrary(PartLibrary):
    """The same for parts that are optimised only as parts of their kernels."""

    def _optimize_final_module(self) -> None:
        """Leave that to the kernel."""


class PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, up to the intermediate code."""

    library = PartLibrary

    def _compile_core(self) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        result = super()._compile_core()
        state.library.finalize()
        # Numba files calls under an object that could be called from Python; this one has no code behind it.
        name, description = state.func_id.func_name, result.fndesc
        entry = _dynfunc.make_function(description.lookup_module(), name, "", 0, result.environment, (state.library,))
        state.targetctx.insert_user_function(entry, description, [state.library])
        return result._replace(entry_point=entry)


class RawCompiler(PartCompiler):
    """The same without optimising the part by itself."""

    library = RawLibrary


def compiled(function: Callable[..., Any]) -> Any:
    """Compile on first use and keep the result on disk; releases the interpreter lock while it runs.

    Numba looks only at the file of the function itself to see whether its copy on disk is still good. A kernel
    is made from all files of the engine, so their fingerprint becomes part of the name of the copy.
    """
    function.__qualname__ = f"{function.__qualname__}_{_fingerprint()}"
    options = {"no_cfunc_wrapper": True, "error_model": "numpy", "pipeline_class": KernelCompiler}
    kernel = numba.njit(nogil=True, **options)(function)
    try:
        kernel._cache = KernelCache(function)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written to
        return kernel
    kernel._compilation_chain_init_hook = _later  # KernelCache does it where there is something to compile
    return kernel


def _later() -> None:
    """Do nothing: takes the place of Numba's look for extensions before a copy on disk is asked for."""


def linked(function: Callable[..., Any]) -> Any:
    """Make a function that only kernels call; LLVM chooses where it is called and where it is put in."""
    return _part(function, PartCompiler)


def linked_raw(function: Callable[..., Any]) -> Any:
    """The same for a part that is optimised in its kernel only: quicker to compile, and not for hot loops."""
    return _part(function, RawCompiler)


def inlined(function: Callable[..., Any]) -> Any:
    """Make a part that is put into every caller: an array crosses a call boundary as seven arguments, too dear in a
    hot loop.
    """
    return _part(function, PartCompiler, forceinline=True)


def inlined_raw(function: Callable[..., Any]) -> Any:
    """The same for a part that is optimised in its caller only, which is quicker to compile.

    LLVM makes 3 % slower code of the kernel that scores twins that way: its parts are ``inlined``.
    """
    return _part(function, RawCompiler, forceinline=True)


def _part(function: Callable[..., Any], compiler: type[PartCompiler], **options: Any) -> Any:
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", pipeline_class=compiler, **wrappers, **options)(function)


def primitive(typer: Callable[..., Any]) -> Any:
    """Make a function that emits LLVM code callable from kernels."""
    return intrinsic(typer)
