"""The inputs of a model that takes several: which attributes go into which, found by their names.

An input that is called like an attribute gets that attribute; one that is left over gets the attributes that are left
over, and where two are, those whose names speak of numbers and of categories get these. People go through fairbits as
one encoded row, which is cut into the inputs when the model is called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairbits.domain import Attribute, Codes, Encoding, Lookup, Numeric, Part, Schema, Unseen
from fairbits.errors import ModelError, choose_from
from fairbits.models.options import ModelOptions

_NUMBERS = re.compile(r"num|cont|real|float|dense|scal", re.IGNORECASE)
_CATEGORIES = re.compile(r"cat|emb|disc|sparse|code|nominal|label", re.IGNORECASE)
#: What people add to the name of an attribute to name its input.
_ADDED = re.compile(r"^(inputs?|in|x)[_\W]+|[_\W]+(inputs?|in|x)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Slot:
    """One input: its name, where its columns lie in an encoded row, and whether these are positions of labels."""

    name: str
    start: int
    stop: int
    whole: bool  # codes of categories and integers only: an embedding may take them
    single: bool  # one attribute as one number


def slots_of(
    names: Sequence[str], widths: Sequence[int | None], schema: Schema, options: ModelOptions
) -> tuple[tuple[Slot, ...], Encoding]:
    """Which attributes go into which input.

    Parameters
    ----------
    names, widths
        The model's inputs, in its order, and how many columns each takes (None: it does not say).
    schema, options
        What there is; ``options.columns`` narrows it.

    Returns
    -------
    tuple of Slot, Encoding
        Where each input lies in an encoded row, and how people become such rows.

    Raises
    ------
    ModelError
        If an input cannot be mapped, with the names that would do.
    """
    known = list(options.columns or schema.names)
    owners = _owners(names, schema, known)
    parts: dict[str, Part] = {}
    slots: list[Slot] = []
    start = 0
    for name, width in zip(names, widths, strict=True):
        mine = [schema[own] for own in owners[name]]
        hot = _spread(name, width, mine)
        begin = start
        for attribute in mine:
            if hot and attribute.kind == "category":
                size = len(attribute.labels)
                parts[attribute.name] = Lookup(np.arange(start, start + size), np.eye(size))
                start += size
            else:
                parts[attribute.name] = Numeric(start)
                start += 1
        slots.append(Slot(name, begin, start, not hot and all(a.discrete for a in mine), start - begin == 1))
    return tuple(slots), Encoding([parts.get(name, Unseen()) for name in schema.names]).with_gaps(schema)


def _owners(names: Sequence[str], schema: Schema, known: list[str]) -> dict[str, list[str]]:
    plain = {_plain(name): name for name in known}
    owners: dict[str, list[str]] = {}
    for name in names:
        found = plain.get(_plain(name)) or plain.get(_plain(_ADDED.sub("", name)))
        if found is not None and [found] not in owners.values():
            owners[name] = [found]
    free = [name for name in names if name not in owners]
    left = [name for name in known if [name] not in owners.values()]
    if not free:
        return owners
    numbers = [name for name in left if schema[name].kind != "category"]
    categories = [name for name in left if schema[name].kind == "category"]
    if len(free) == 1 and left:
        only = free[0]
        by_kind = numbers if _NUMBERS.search(only) else categories if _CATEGORIES.search(only) else []
        # Where others were named one by one, "numbers" may well be all that is left: only a mixture is sorted by kind.
        return owners | {only: by_kind if by_kind and numbers and categories and owners else left}
    for name in free:
        mine = numbers if _NUMBERS.search(name) else categories if _CATEGORIES.search(name) else []
        if not mine or mine in owners.values():
            raise ModelError(
                f"the model takes the inputs {', '.join(names)}, and nothing says which attributes go into {name!r}; "
                f"call it like an attribute: {choose_from(name, left or known)}"
            )
        owners[name] = mine
    return owners


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _spread(name: str, width: int | None, mine: Sequence[Attribute]) -> bool:
    """Whether categories are one-hot for an input of this width."""
    hot = sum(len(a.labels) if a.kind == "category" else 1 for a in mine)
    if width is None or width == len(mine):
        return False
    if width == hot:
        return True
    raise ModelError(
        f"the input {name!r} takes {width} columns, but {', '.join(a.name for a in mine)} make {len(mine)} as codes or "
        f"{hot} with one-hot categories; check its name, or list what the model sees under [model] columns."
    )


def some_people(schema: Schema, count: int) -> Codes:
    """People with valid values, to try a model on; always the same.

    Parameters
    ----------
    schema
        The attributes, and what is decided.
    count
        How many.

    Returns
    -------
    Codes
        Codes, (count, attributes).
    """
    rng = np.random.default_rng(0)
    columns = [rng.choice(a.allowed, count) if a.allowed else _drawn(a, rng, count) for a in schema.attributes]
    return np.column_stack(columns).astype(np.float64)


def _drawn(attribute: Attribute, rng: np.random.Generator, count: int) -> Codes:
    """Values on an attribute's own steps, so that integers and categories are never anything in between."""
    real = rng.uniform(attribute.low, attribute.upper, count)
    return attribute.clip(np.rint(real) if attribute.discrete else real)
