"""Records to JSON and back, whatever they are made of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from fairbits.store import plain, record_from_json


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    bound: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outer:
    property: Literal["k", "flips"]
    people: int
    mean: float
    parts: tuple[Inner, ...]
    pair: tuple[int, str]
    by: dict[int, Inner]
    place: Path
    first: Inner | None = None
    k: int = field(default=1, metadata={"json": "k_max"})
    model: Any = field(default=None, metadata={"json": None})


def outer(**changes: Any) -> Outer:
    made: dict[str, Any] = {
        "property": "k",
        "people": np.int64(3),
        "mean": np.float32(0.5),
        "parts": (Inner("a", 2.0), Inner("b")),
        "pair": (1, "x"),
        "by": {7: Inner("c", 1.0)},
        "place": Path("runs/a"),
        "first": Inner("d"),
        "k": 4,
        "model": object(),
    }
    return Outer(**made | changes)


def document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(plain(outer()), allow_nan=False)), **changes}


def test_a_record_comes_back_as_it_was() -> None:
    found = record_from_json(Outer, document())
    assert (found.property, found.people, found.mean) == ("k", 3, 0.5)
    assert (found.parts, found.pair, found.by) == (outer().parts, outer().pair, outer().by)
    assert (found.place, found.first, found.k, found.model) == (Path("runs/a"), Inner("d"), 4, None)


def test_names_in_the_file_are_those_of_the_metadata() -> None:
    written = document()
    assert written["k_max"] == 4
    assert not {"k", "model"} & set(written)


def test_what_is_missing_has_its_default_and_what_is_unknown_is_passed_over() -> None:
    written = document(made_with="somebody")
    del written["first"], written["k_max"]
    found = record_from_json(Outer, written)
    assert (found.first, found.k) == (None, 1)


def test_not_a_number_is_null_and_comes_back() -> None:
    assert plain(outer(mean=float("nan")))["mean"] is None
    assert np.isnan(record_from_json(Outer, document(mean=None)).mean)


@pytest.mark.parametrize(
    "changes",
    [
        {"people": "3"},
        {"people": True},
        {"property": "bits"},
        {"pair": [1]},
        {"parts": [{"bound": 1.0}]},
        {"parts": "a"},
        {"first": {"name": 3}},
        {"place": None},
    ],
    ids=str,
)
def test_a_document_that_does_not_fit_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        record_from_json(Outer, document(**changes))
