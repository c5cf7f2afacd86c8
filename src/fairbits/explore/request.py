"""From what a page sends to a person and the neurons to hold; what cannot be meant is refused in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbits.domain import Attribute, Codes, Schema, shortened
from fairbits.errors import OptionError
from fairbits.explore.switches import Hold
from fairbits.repair import check_guarantee

_KEYS = {"codes", "hold", "layer", "guard"}


@dataclass(frozen=True, slots=True, eq=False)
class PageRequest:
    """A person (a full row of codes, protected ones at their lowest), neurons to hold, and the layer that is shown.

    ``guard`` is the most classes that the guard allows; None: it is off.
    """

    codes: Codes
    holds: tuple[Hold, ...] = ()
    layer: int | None = None
    guard: int | None = None


def asked_of(document: Any, schema: Schema) -> PageRequest:
    """A checked request: the page is ours, but whoever has its address may send anything."""
    if not isinstance(document, dict) or "codes" not in document:
        raise OptionError('a question is an object such as {"codes": [3, 40], "hold": []}; codes are missing.')
    strange = next((key for key in document if key not in _KEYS), None)
    if strange is not None:
        raise OptionError(
            f"the question has the unknown key {shortened(strange, 40)!r}; it has: codes, hold, layer, guard."
        )
    layer, guard = document.get("layer"), document.get("guard")
    return PageRequest(
        codes=_person(document["codes"], schema),
        holds=_holds(document.get("hold", [])),
        layer=None if layer is None else _whole(layer, "layer"),
        guard=None if guard is None else check_guarantee(_whole(guard, "guard")),
    )


def _person(values: Any, schema: Schema) -> Codes:
    """One value for each attribute that says who a person is, in the order of the schema."""
    free = schema.person_columns
    if not isinstance(values, list) or len(values) != len(free):
        found = f"{len(values)} values" if isinstance(values, list) else type(values).__name__
        raise OptionError(f"a person has {len(free)} values, one for each attribute, but got {found}.")
    codes = np.array(
        [attribute.twin_values()[0] if attribute.protected else attribute.low for attribute in schema.attributes]
    )
    for column, value in zip(free, values, strict=True):
        codes[column] = _code(value, schema.attributes[column])
    return codes


def _code(value: Any, attribute: Attribute) -> float:
    name = shortened(attribute.name, 60)
    takes = f"attribute {name!r} takes {attribute.domain_text()}"
    if value is None or value == "":
        raise OptionError(f"{takes}, but got nothing; give a number.")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OptionError(f"{takes}, but got {shortened(repr(value), 60)}; give a number.")
    try:
        code = float(value)
    except OverflowError:
        code = math.inf
    if not attribute.valid(np.array([code]))[0]:
        whole = " (whole numbers only)" if attribute.discrete else ""
        raise OptionError(f"{takes}{whole}, but got {code:g}.")
    return code


def _holds(given: Any) -> tuple[Hold, ...]:
    if not isinstance(given, list):
        raise OptionError(f"hold is a list of neurons, but got {type(given).__name__}.")
    found = []
    for one in given:
        if not (isinstance(one, dict) and set(one) == {"layer", "neuron", "at"} and isinstance(one["at"], str)):
            raise OptionError('a neuron to hold looks like {"layer": 1, "neuron": 0, "at": "zero"}; one does not.')
        found.append(Hold(_whole(one["layer"], "layer"), _whole(one["neuron"], "neuron"), one["at"]))
    return tuple(found)


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**9:
        raise OptionError(f"{what} is {shortened(repr(value), 40)}; it must be a whole number.")
    return value
