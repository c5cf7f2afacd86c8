"""The inputs of a model that takes several: which attributes go into which.

An input that is called like an attribute gets that attribute; what goes into any other one says ``[model.inputs]``.
People go through fairbits as one encoded row, which is cut into the inputs when the model is called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairbits.domain import Attribute, Encoding, Lookup, Numeric, Part, Schema, Unseen
from fairbits.errors import ModelError, choose_from
from fairbits.models.options import ModelOptions


@dataclass(frozen=True, slots=True)
class Slot:
    """One input: its name, where its columns lie in an encoded row, and whether these are positions of labels."""

    name: str
    start: int
    stop: int
    whole: bool  # codes of categories and integers only: an embedding may take them
    codes: bool  # of categories only
    attributes: tuple[str, ...]


def slots_of(
    names: Sequence[str], widths: Sequence[int | None], schema: Schema, options: ModelOptions
) -> tuple[tuple[Slot, ...], Encoding]:
    """Which attributes go into which input, and the encoding of people as one row for all of them."""
    parts: dict[str, Part] = {}
    slots: list[Slot] = []
    start = 0
    for name, width in zip(names, widths, strict=True):
        mine = [schema[own] for own in _attributes(name, names, schema, options)]
        hot, begin = _one_hot(name, width, mine), start
        for attribute in mine:
            if attribute.name in parts:
                raise ModelError(f"{attribute.name!r} goes into two inputs of the model; name it in one alone.")
            spread = hot and attribute.kind == "category"
            size = len(attribute.labels) if spread else 1
            parts[attribute.name] = Lookup(np.arange(start, start + size), np.eye(size)) if spread else Numeric(start)
            start += size
        whole = not hot and all(a.discrete for a in mine)
        codes = not hot and all(a.kind == "category" for a in mine)
        slots.append(Slot(name, begin, start, whole, codes, tuple(a.name for a in mine)))
    return tuple(slots), Encoding([parts.get(name, Unseen()) for name in schema.names]).with_gaps(schema)


def _attributes(name: str, names: Sequence[str], schema: Schema, options: ModelOptions) -> Sequence[str]:
    known = options.columns or schema.names
    if name in options.inputs:
        strange = next((own for own in options.inputs[name] if own not in schema.names), None)
        if strange is not None:
            raise ModelError(f"[model.inputs] puts {strange!r} into {name!r}; {choose_from(strange, schema.names)}")
        return options.inputs[name]
    if len(names) == 1:
        return known
    same = [own for own in known if _plain(own) == _plain(name)]
    if not same:
        raise ModelError(
            f"the model takes the inputs {', '.join(names)}, and nothing says which attributes go into {name!r}; "
            f'list them in its order under [model.inputs]: {name} = ["…"] (in Python inputs={{"{name}": […]}}); '
            f"{choose_from(name, known)}"
        )
    return same


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _one_hot(name: str, width: int | None, mine: Sequence[Attribute]) -> bool:
    """Whether categories are one-hot for an input of this width."""
    hot = sum(len(a.labels) if a.kind == "category" else 1 for a in mine)
    if width in (None, len(mine), hot):
        return width == hot != len(mine)
    make = f"{len(mine)}" if hot == len(mine) else f"{len(mine)} as codes or {hot} with one-hot categories"
    raise ModelError(
        f"the input {name!r} takes {width} columns, but {', '.join(a.name for a in mine)} make {make}; list what goes "
        f"into it under [model.inputs]."
    )
