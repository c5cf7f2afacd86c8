"""What a failure is called, and which exit code it has: one sentence for whatever may come up."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from fairbits.cli.signals import FAILED
from fairbits.errors import FairbitsError
from fairbits.text import one_line, shortened

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
#: How libraries say that there is no memory, where they do not raise a MemoryError.
_NO_MEMORY = (
    "out of memory",
    "not enough memory",
    "cannot allocate memory",
    "unable to allocate",
    "failed to allocate",
    "could not allocate",
    "can't allocate memory",
    "bad_alloc",
    "bad allocation",
    "failed to map segment",  # the loader of shared libraries
    "can't start new thread",
    "unable to create thread",
    "failed to launch worker thread",  # Arrow's
)
#: Those of them that no file can bring about, however damaged it is.
_STARVED = _NO_MEMORY[-4:]


def sentence_of(error: BaseException) -> tuple[str, int]:
    """The sentence about an error, and the exit code."""
    if isinstance(error, FairbitsError) and not lacks_memory(error):
        return str(error), error.exit_code
    if lacks_memory(error):
        return (
            f"there is not enough memory ({_reason(error)}); close other programs, use fewer --workers or --threads, "
            f"or give a smaller table.",
            FAILED,
        )
    if isinstance(error, OSError) and error.errno is not None:
        return _about_files(error), FAILED
    if isinstance(error, RecursionError):
        return "something is nested too deeply (a rule, a model or a document); make it flatter.", 2
    return (
        f"something went wrong inside fairbits ({_reason(error)}); set FAIRBITS_TRACEBACK=1 to see where.",
        FAILED,
    )


def lacks_memory(error: BaseException) -> bool:
    """Whether an error, or one that caused it, says that memory ran out.

    A sentence of ours about a file that needed more memory than there is stays what it is, unless this very process
    could not start a thread or load a library: then no file is to blame.
    """
    if isinstance(error, FairbitsError):
        return any(_is_starved(one) for one in chain(error) if one is not error)
    return any(_says_so(one) for one in chain(error))


def _is_starved(error: BaseException) -> bool:
    said = str(error).lower()
    return (isinstance(error, OSError) and error.errno == errno.ENOMEM) or any(words in said for words in _STARVED)


def _says_so(error: BaseException) -> bool:
    if isinstance(error, MemoryError):  # NumPy's and Arrow's are, too
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    if type(error).__name__ == "OutOfMemoryException":  # DuckDB's
        return True
    said = str(error).lower()
    foreign = isinstance(error, RuntimeError | ImportError | OSError) or type(error).__module__.startswith("pyarrow")
    return foreign and any(words in said for words in _NO_MEMORY)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that caused it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _about_files(error: OSError) -> str:
    what = f"{error.filename!r}: " if error.filename else ""
    why = error.strerror or str(error)
    if error.errno in _FULL:
        return f"no space is left on the device ({what}{why}); free some, and do it again."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"it is not allowed ({what}{why}); choose another place, or change who may write there."
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"too many files are open ({what}{why}); use fewer --workers, or raise the limit (ulimit -n)."
    return f"a file could not be used ({what}{why}); see that it is there and can be read and written."


def _reason(error: BaseException) -> str:
    if isinstance(error, FairbitsError):  # what it was made of says more about the machine
        error = error.__cause__ or error.__context__ or error
    return shortened(one_line(f"{type(error).__name__}: {error}".strip(": ")), 300)
