"""One message, two readers: flags for whoever typed a command, arguments for whoever called from Python.

Messages are written with flags (``--trust-pickle``). The command line shows them as they are; everywhere else a flag
reads as the argument of that name (``trust_pickle=True``). Only flags that exist are touched, so that a file whose name
looks like one keeps it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

#: Set by the command line, for itself and the processes that it starts.
_READER = "FAIRBITS_READER"

#: Flags that stand for themselves, and what they are called in Python.
_SWITCHES = {
    "all-layers": "all_layers=True",
    "allow-inverted": "as_is=True",
    "as-is": "as_is=True",
    "exhaustive": "exhaustive=True",
    "force": "force=True",
    "no-layers": "inside=False",
    "no-retrain": "retrain=False",
    "resume": "resume=True",
    "retrain": "retrain=True",
    "trust": "trust=True",
    "trust-code": "trust_code=True",
    "trust-pickle": "trust_pickle=True",
}
#: Flags that take a value: in Python the argument of the same name.
_VALUED = (
    *("batch", "budget", "by", "choose", "columns", "credential", "eats", "epsilon", "factory", "favourable", "html"),
    *("input-format", "k", "max-accuracy-loss", "max-model-bytes", "max-rows", "max-seconds", "max-twins"),
    *("min-plausibility", "out", "output", "partition", "people", "port", "protected", "rank", "ray", "repeats", "run"),
    *("samples", "score-of", "seed", "shards", "strategy", "subject", "target", "threads", "threshold", "time-limit"),
    *("where", "within", "workers"),
)
_OTHERS = {"eats": "input_format", "in-use-since": "distributed", "with": "proposals"}
_PYTHON = {**{name: name.replace("-", "_") for name in _VALUED}, **_OTHERS, **_SWITCHES}
_NAMES = "|".join(sorted(_PYTHON, key=len, reverse=True))
#: A whole command, what somebody else wrote (quoted), or a flag.
_FLAG = re.compile(rf"`fairbits [^`]*`|(?<!\w)'[^']*'|(?<!\w)\"[^\"]*\"|(?<![\w/-])--({_NAMES})(?![\w-]|\.\w)")


@contextmanager
def for_the_shell() -> Iterator[None]:
    """Messages made within name flags: the command line is being used."""
    before = os.environ.get(_READER)
    os.environ[_READER] = "shell"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_READER, None)
        else:
            os.environ[_READER] = before


def spoken(text: str) -> str:
    """A message for whoever reads it now.

    Examples
    --------
    >>> spoken("a pickle runs code; if you trust it, add --trust-pickle.")
    'a pickle runs code; if you trust it, add trust_pickle=True.'
    >>> spoken("give --out, or the folder that `fairbits search --out` wrote.")
    'give out, or the folder that `fairbits search --out` wrote.'
    """
    if "--" not in text or os.environ.get(_READER) == "shell":
        return text
    return _FLAG.sub(lambda found: found[0] if found[1] is None else _PYTHON[found[1]], text)
