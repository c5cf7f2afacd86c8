"""Python code as a model: ``package.module:name`` is a function, a predictor, a module, or a network."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

from fairbits.errors import ModelError, choose_from
from fairbits.models.black_box import reason
from fairbits.sandbox import inside

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
#: No model comes from there, and much of it (exec, fork, exit) does harm to whoever calls it with rows.
_NO_MODELS = frozenset({*sys.stdlib_module_names, *sys.builtin_module_names})


def is_reference(text: str) -> bool:
    """Whether a text has the form ``package.module:name``."""
    return _REFERENCE.fullmatch(text) is not None


def check_reference(reference: str, *, trust_code: bool) -> None:
    """Refuse a reference that names no code, names the standard library, or is not trusted; imports nothing."""
    if not is_reference(reference):
        raise ModelError(f"{reference!r} does not name Python code; write package.module:name.")
    home = reference.partition(":")[0].partition(".")[0]
    if home in _NO_MODELS:
        raise ModelError(f"{reference!r} belongs to Python itself, which has no models; name a function of your own.")
    if not trust_code:
        raise ModelError(
            f"{reference!r} names Python code, and importing it runs it; add --trust-code if you trust whoever wrote "
            f"it (trust_code=True in Python)."
        )


def named_object(reference: str, *, trust_code: bool = False) -> Any:
    """The object that a reference names.

    Modules are looked for where Python looks and, like ``python -m``, in this folder.
    """
    check_reference(reference, trust_code=trust_code)
    module_name, _, path = reference.partition(":")
    found: Any = _module(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            public = [entry for entry in dir(found) if not entry.startswith("_")]
            raise ModelError(f"{module_name!r} has no {path!r}; {choose_from(name, public)}")
        found = getattr(found, name)
    _check_foreign(found, reference)
    return found


def named_model(reference: str, *, trust_code: bool = False) -> Any:
    """The model that a reference names.

    A function or class that takes no argument is called and makes the model; one that takes rows is the model.
    """
    found = named_object(reference, trust_code=trust_code)
    if not (inspect.isroutine(found) or inspect.isclass(found)) or _takes_something(found):
        return found
    return made_by(found, reference)


def made_by(factory: Any, reference: str) -> Any:
    """The model that a factory makes.

    An exit that it asks for is an error; if it forks, the copy of this process ends.
    """
    me = os.getpid()
    try:
        made = factory()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's own code
        raise ModelError(f"{reference!r} failed to make a model: {reason(error)}") from None
    finally:
        _only(me)
    return made


def _only(process: int) -> None:
    """End a copy of the process that foreign code has made by a fork: it must not go on with our work."""
    if os.getpid() != process and not inside():  # the sandbox tells its parent instead
        os._exit(70)


def _check_foreign(found: Any, reference: str) -> None:
    """Refuse what a module of one's own only passes on: ``mymodule:os.fork``, or ``from builtins import exec``."""
    home = getattr(found, "__module__", None) or type(found).__module__
    if inspect.ismodule(found):
        raise ModelError(f"{reference!r} is a module; name a function or a model in it.")
    if (inspect.isroutine(found) or inspect.isclass(found)) and str(home).partition(".")[0] in _NO_MODELS - {
        "__main__"
    }:
        raise ModelError(
            f"{reference!r} belongs to Python itself ({home}), which has no models; name a function of your own."
        )


def _takes_something(found: Any) -> bool:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # compiled code may not tell
        return True
    return any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)


def _module(name: str) -> Any:
    here, me = str(Path.cwd()), os.getpid()
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise ModelError(f"the Python module {name!r} is not found; install it or go to its folder.") from None
        raise ModelError(f"the Python module {name!r} cannot be imported: {reason(error)}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - importing runs the user's own code
        raise ModelError(f"the Python module {name!r} cannot be imported: {reason(error)}") from None
    finally:
        _only(me)
        if added and here in sys.path:
            sys.path.remove(here)
