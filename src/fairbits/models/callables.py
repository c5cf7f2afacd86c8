"""Python code as a model: ``package.module:name`` is a function, a predictor, a module, or a network."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

from fairbits.errors import ModelError, choose_from
from fairbits.models.blackbox import reason

_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_reference(text: str) -> bool:
    """Whether a text has the form ``package.module:name``."""
    return _REFERENCE.fullmatch(text) is not None


def named_object(reference: str) -> Any:
    """What a reference names. Modules are looked for where Python looks and, like ``python -m``, in this folder."""
    if not is_reference(reference):
        raise ModelError(f"{reference!r} does not name Python code; write package.module:name.")
    module_name, _, path = reference.partition(":")
    found: Any = _module(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            public = [entry for entry in dir(found) if not entry.startswith("_")]
            raise ModelError(f"{module_name!r} has no {path!r}; {choose_from(name, public)}")
        found = getattr(found, name)
    return found


def named_model(reference: str) -> Any:
    """What a reference names; a function or class that takes nothing makes the model, one that takes rows is it."""
    found = named_object(reference)
    if not (inspect.isroutine(found) or inspect.isclass(found)) or _takes_something(found):
        return found
    try:
        return found()
    except Exception as error:  # noqa: BLE001 - the user's own code
        raise ModelError(f"{reference!r} failed to make a model: {reason(error)}") from None


def _takes_something(found: Any) -> bool:
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # compiled code may not tell
        return True
    return any(p.default is p.empty and p.kind is not p.VAR_KEYWORD for p in parameters)


def _module(name: str) -> Any:
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise ModelError(f"the Python module {name!r} is not found; install it or go to its folder.") from None
        raise ModelError(f"the Python module {name!r} cannot be imported: {reason(error)}") from None
    except Exception as error:  # noqa: BLE001 - importing runs the user's own code
        raise ModelError(f"the Python module {name!r} cannot be imported: {reason(error)}") from None
    finally:
        if added and here in sys.path:
            sys.path.remove(here)
