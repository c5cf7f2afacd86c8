"""What a file of a run must look like: whoever sends a run may have changed it, by accident or not."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from fairbits.errors import FairbitsError, OptionError, SchemaError, choose_from
from fairbits.text import shortened


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Turn what goes wrong while a file is taken apart into one sentence."""
    try:
        yield
    except FairbitsError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, OSError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise OptionError(f"{str(path)!r} is damaged ({shortened(what, 120)}); {remedy}.") from None


def check_fields(
    document: Mapping[str, Any], fields: Mapping[str, Any], path: Path, *, needed: Iterable[str] = ()
) -> None:
    """Refuse a document in which a value is missing, or of another kind than it should be."""
    missing = next((name for name in needed if name not in document), None)
    if missing is not None:
        raise OptionError(f"{str(path)!r} is damaged (it has no {missing!r}); restore it from a copy.")
    wrong = next((name for name, kind in fields.items() if name in document and not fits(document[name], kind)), None)
    if wrong is not None:
        shown = f"{wrong} is {shortened(repr(document[wrong]), 40)}"
        raise OptionError(f"{str(path)!r} is damaged ({shown}); restore it from a copy.")


#: What a section may hold, and what each value must be; Any where whoever takes it says what is wrong.
Keys = Mapping[str, tuple[Any, str]]


def check_section(section: Mapping[str, Any], keys: Keys | Iterable[str], where: str) -> None:
    """Refuse a key that a section of an audit file does not have, or a value of another kind than it takes."""
    for key, value in section.items():
        if key not in keys:
            raise SchemaError(f"{where} has the unknown key {key!r}; {choose_from(key, keys)}")
        kind, must = keys[key] if isinstance(keys, Mapping) else (Any, "")
        if not fits(value, kind):
            raise SchemaError(f"{where} has {key} = {shortened(repr(value), 40)}; {must}")


def fits(value: Any, kind: Any) -> bool:  # noqa: PLR0911 - one line for each kind of annotation
    """Whether a value is of the kind that an annotation names."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner and isinstance(value, str | int)
    if kind in (None, type(None)):
        return value is None
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is tuple and isinstance(value, tuple):
        kinds = (inner[0],) * len(value) if inner[1:] == (Ellipsis,) else inner
        return len(value) == len(kinds) and all(map(fits, value, kinds))
    if origin is list:
        return isinstance(value, list) and all(fits(one, inner[0]) for one in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(one, inner[1]) for one in value.values())
    return isinstance(value, kind) if isinstance(kind, type) else origin is not tuple
