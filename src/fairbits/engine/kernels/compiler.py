"""How kernels are compiled: once per machine, and kept on disk.

Functions that only kernels call are ``linked``: LLVM chooses where they are called and where they are put in. Those of
hot loops are ``inlined``, because an array crosses a call as seven arguments.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event

_COMPILING = event.TimingListener()
event.register("numba:compile", _COMPILING)


def work_time() -> float:
    """Seconds on the clock of this process, without those spent compiling: that is done once per machine."""
    return time.perf_counter() - (_COMPILING.duration if _COMPILING.done else 0.0)


@cache
def _fingerprint() -> str:
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def compiled(function: Callable[..., Any]) -> Any:
    """Compile on first use and keep the result on disk; releases the interpreter lock while it runs.

    Numba looks only at the file of the function itself to see whether its copy on disk is still good. A kernel
    is made from all files of the engine, so their fingerprint becomes part of the name of the copy.
    """
    function.__qualname__ = f"{function.__qualname__}_{_fingerprint()}"
    options: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written to
        return numba.njit(**options)(function)


def linked(function: Callable[..., Any], **options: Any) -> Any:
    """Make a function that only kernels call."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, error_model="numpy", **wrappers, **options)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Make a function that is put into every kernel that calls it."""
    return linked(function, forceinline=True)
