"""The inputs of a model that takes several: which attributes go into which, found by their names.

An input that is called like an attribute gets that attribute; one that is left over gets the attributes that are left
over, and where two are, those whose names or types speak of numbers and of categories get these. Truth values are
categories here, but many models take them as numbers: both are offered, and the widths of the inputs, or the model
itself, decide. People go through fairbits as one encoded row, which is cut into the inputs when the model is called.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fairbits.domain import Attribute, Encoding, Lookup, Numeric, Part, Schema, Unseen
from fairbits.errors import ModelError, choose_from
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import column_note

_NUMBERS = re.compile(r"num|cont|real|float|dense|scal", re.IGNORECASE)
_CATEGORIES = re.compile(r"cat|emb|disc|sparse|code|nominal|label", re.IGNORECASE)
#: What people add to the name of an attribute to name its input.
_ADDED = re.compile(r"^(inputs?|in|x)[_\W]+|[_\W]+(inputs?|in|x)$", re.IGNORECASE)


#: What the type of an input says about what goes into it.
Taken = Literal["numbers", "categories"]
Filled = tuple[tuple["Slot", ...], Encoding]
#: Labels of attributes that models may take as the numbers 0 and 1, the likeliest first; None: any two.
_TWO: tuple[set[str] | None, ...] = ({"false", "true"}, {"0", "1"}, {"no", "yes"}, {"n", "y"}, None)


@dataclass(frozen=True, slots=True)
class Slot:
    """One input: its name, where its columns lie in an encoded row, and whether these are positions of labels."""

    name: str
    start: int
    stop: int
    whole: bool  # codes of categories and integers only: an embedding may take them
    codes: bool  # of categories only
    single: bool  # one attribute as one number
    attributes: tuple[str, ...] = ()


def slots_of(
    names: Sequence[str],
    widths: Sequence[int | None],
    schema: Schema,
    options: ModelOptions,
    *,
    takes: Sequence[Taken | None] | None = None,
) -> list[Filled]:
    """Which attributes go into which input: all the ways that fit, the likeliest first."""
    stated = dict(zip(names, takes or [None] * len(names), strict=True))
    found: list[Filled] = []
    complaint: ModelError | None = None
    for numbers in _numbers_of(schema):
        try:
            way = _filled(names, widths, schema, options, stated, numbers)
        except ModelError as error:
            complaint = complaint or error
            continue
        if way[0] not in [slots for slots, _ in found]:
            found.append(way)
    if not found:
        assert complaint is not None  # noqa: S101 - there is always a way to try
        raise complaint
    return found


def said_by_types(whole: Sequence[bool]) -> list[Taken | None]:
    """What the types of inputs say: whole numbers and text are categories; reals are numbers where others are whole."""
    return ["categories" if one else "numbers" if any(whole) else None for one in whole]


def slots_note(slots: Sequence[Slot], options: ModelOptions) -> tuple[str, ...]:
    """A note on what goes into which input, where an input holds more than the attribute that it is called like."""
    if len(slots) == 1:
        return column_note(slots[0].attributes, options, how="categories as codes" if slots[0].codes else "")
    if all(len(slot.attributes) == 1 and _plain(slot.attributes[0]) in _plain(slot.name) for slot in slots):
        return ()
    order = "; ".join(f"{', '.join(slot.attributes)} into {slot.name!r}" for slot in slots)
    return (
        f"the model has {len(slots)} inputs, which are filled in the order of the table: {order}; if that is not how "
        f"it was trained, put the columns in its order under [model] columns.",
    )


def _numbers_of(schema: Schema) -> list[set[str]]:
    """The attributes that are numbers; again with truth values among them, then with whatever has two values."""
    ways = [{a.name for a in schema.attributes if a.kind != "category"}]
    two = [a for a in schema.attributes if a.kind == "category" and len(a.labels) == 2]
    for words in _TWO:
        more = {a.name for a in two if words is None or {label.casefold() for label in a.labels} == words}
        ways.append(ways[-1] | more)
    return ways


def _filled(
    names: Sequence[str],
    widths: Sequence[int | None],
    schema: Schema,
    options: ModelOptions,
    stated: dict[str, Taken | None],
    numbers: set[str],
) -> Filled:
    known = list(options.columns or schema.names)
    owners = _owners(names, numbers, known, stated)
    parts: dict[str, Part] = {}
    slots: list[Slot] = []
    start = 0
    for name, width in zip(names, widths, strict=True):
        mine = [schema[own] for own in owners[name]]
        hot = _spread(name, width, mine, numbers)
        begin = start
        for attribute in mine:
            if hot and attribute.kind == "category" and attribute.name not in numbers:
                size = len(attribute.labels)
                parts[attribute.name] = Lookup(np.arange(start, start + size), np.eye(size))
                start += size
            else:
                parts[attribute.name] = Numeric(start)
                start += 1
        whole = not hot and all(a.discrete for a in mine)
        codes = not hot and all(a.name not in numbers for a in mine)
        slots.append(Slot(name, begin, start, whole, codes, start - begin == 1, tuple(owners[name])))
    return tuple(slots), Encoding([parts.get(name, Unseen()) for name in schema.names]).with_gaps(schema)


def _owners(
    names: Sequence[str], numeric: set[str], known: list[str], stated: dict[str, Taken | None]
) -> dict[str, list[str]]:
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
    numbers = [name for name in left if name in numeric]
    categories = [name for name in left if name not in numeric]
    of_kind = {"numbers": numbers, "categories": categories, None: []}
    if len(free) == 1 and left:
        only = free[0]
        by_kind = of_kind[_kind_of(only, None)]
        # Where others were named one by one, "numbers" may well be all that is left: only a mixture is sorted by kind.
        return owners | {only: by_kind if by_kind and numbers and categories and owners else left}
    for name in free:
        mine = of_kind[_kind_of(name, stated[name])]
        if not mine or mine in owners.values():
            raise ModelError(
                f"the model takes the inputs {', '.join(names)}, and nothing says which attributes go into {name!r}; "
                f"call it like an attribute: {choose_from(name, left or known)}"
            )
        owners[name] = mine
    return owners


def _kind_of(name: str, stated: Taken | None) -> Taken | None:
    """What an input takes, by its name, else by its type."""
    if _NUMBERS.search(name):
        return "numbers"
    return "categories" if _CATEGORIES.search(name) else stated


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _spread(name: str, width: int | None, mine: Sequence[Attribute], numbers: set[str]) -> bool:
    """Whether categories are one-hot for an input of this width."""
    hot = sum(len(a.labels) if a.kind == "category" and a.name not in numbers else 1 for a in mine)
    if width is None or width == len(mine):
        return False
    if width == hot:
        return True
    if width == 1:
        raise ModelError(
            f"the input {name!r} takes one column, and nothing says which attribute goes into it; call it like one: "
            f"{choose_from(name, [a.name for a in mine])}"
        )
    make = f"{len(mine)}" if hot == len(mine) else f"{len(mine)} as codes or {hot} with one-hot categories"
    raise ModelError(
        f"the input {name!r} takes {width} columns, but {', '.join(a.name for a in mine)} make {make}; check its name, "
        f"or list what the model sees under [model] columns."
    )
