"""People between page and model: whom one can start from, what a page sends, and how figures go back to it.

One starts from the worst rows of the table, the worst cases of the search, or any row by its number. What a page sends
becomes a person and neurons to hold, or is refused in one sentence; labels that go back cannot play tricks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairbits.domain import Attribute, Codes, Schema
from fairbits.errors import OptionError
from fairbits.measure import Evaluator
from fairbits.repair import check_guarantee
from fairbits.report import SCORES, Portrait, axes_of, distance_words, row_words
from fairbits.store import Run
from fairbits.subject import Subject
from fairbits.text import joined, shortened

#: Neurons of one layer that the page shows; more could not be told apart.
MAX_NEURONS = 512
#: Rows and cases to choose from.
MOST = 12


class Gallery:
    """People as the page takes them: a name, k where it is known, the free codes, and which twin a real row is."""

    def __init__(self, run: Run, subject: Subject, evaluator: Evaluator, worst_rows: Sequence[int]):
        self._run, self._table, self._evaluator, self._worst_rows = run, subject.table, evaluator, worst_rows

    def everybody(self) -> list[dict[str, Any]]:
        """Real people first, then those that the search found, each with the k that the page shows."""
        found = [*self._rows(), *self._cases("changed <> 0")] or [self.row(1)]
        k = self._evaluator.evaluate(np.stack([row_of(one["codes"], self._evaluator.schema) for one in found])).k
        return [{**one, "k": int(own)} for one, own in zip(found, k, strict=True)]

    def row(self, number: int) -> dict[str, Any]:
        """One row of the table."""
        if not 1 <= number <= len(self._table):
            raise OptionError(f"row {number} is not in the table, which has rows 1 to {len(self._table)}.")
        codes = self._table.codes[number - 1]
        own = int(self._evaluator.twins.index_of(codes[None])[0])
        return self._person(row_words(self._table, number - 1), codes, real=True, own=own)

    def _rows(self) -> list[dict[str, Any]]:
        """As measured; where nothing was measured yet, the rows that the search came across."""
        return [self.row(number + 1) for number in self._worst_rows] or self._cases("changed = 0")

    def _cases(self, where: str) -> list[dict[str, Any]]:
        table = self._run.cases(where=where, top=MOST, labels=False)
        found = []
        for batch in table.to_batches():
            for codes, row in zip(self._run.layout.codes_of(batch), batch.to_pylist(), strict=True):
                found.append(self._person(distance_words(row["changed"]), codes, real=row["changed"] == 0))
        return found

    def _person(self, name: str, codes: Codes, *, real: bool, own: int | None = None) -> dict[str, Any]:
        free = self._evaluator.schema.person_columns
        return {"name": name, "real": real, "k": None, "codes": [float(codes[i]) for i in free], "own": own}


#: Letters of a name, and of a label, on the page.
NAME, LABEL = 60, 80
#: Integers with at most so many values and no labels are still a number and a slider; allowed sets are a list.
_DIGITS = 6


def setting_of(subject: Subject, evaluator: Evaluator) -> dict[str, Any]:
    """Facts about the subject that stay the same while people change."""
    axes = axes_of(evaluator)
    return {
        "subject": shortened(subject.name, LABEL),
        "protected": joined([shortened(name, NAME) for name in axes.names]),
        "axes": [
            {"name": shortened(name, NAME), "values": [shortened(value, LABEL) for value in values]}
            for name, values in zip(axes.names, axes.values, strict=True)
        ],
        "m": evaluator.m,
        "epsilon": evaluator.epsilon,
        "partition": evaluator.partition,
        "limit": evaluator.bits_limit,
        "threshold": axes.threshold,
        "regression": subject.schema.regression,
        "vector": evaluator.by_vector,
        "colours": list(SCORES),
        "quality": [] if subject.quality is None else [shortened(line, 300) for line in subject.quality.lines()],
        "favourable": None if subject.schema.favourable is None else shortened(subject.schema.favourable, NAME),
    }


def attributes_of(schema: Schema) -> list[dict[str, Any]]:
    """The attributes that say who a person is, each with the choices or the bounds of its field."""
    return [_field(schema.attributes[column]) for column in schema.person_columns]


def _field(attribute: Attribute) -> dict[str, Any]:
    field: dict[str, Any] = {"name": shortened(attribute.name, NAME), "kind": attribute.kind}
    if attribute.labels or attribute.allowed:
        codes = attribute.values() if attribute.discrete else np.array(attribute.allowed)
        return {**field, "choices": [[float(code), shortened(attribute.read(code), LABEL)] for code in codes]}
    whole = attribute.discrete
    return {**field, "low": attribute.low, "high": attribute.upper, "step": 1 if whole else None}


def figures_of(person: Portrait, evaluator: Evaluator) -> dict[str, Any]:
    """One person's figures, scores and classes; a twin that cannot exist has no score."""
    scores = np.asarray(person.scores, dtype=float)
    return {
        "k": person.k,
        "bits": person.q_inf,
        "q_1": person.q_1,
        "low": person.low,
        "high": person.high,
        "span": person.high - person.low,
        "worst": shortened(person.worst, 2 * LABEL),
        "best": shortened(person.best, 2 * LABEL),
        "flips": person.flips,
        "favourable": person.favourable,
        "twins": person.twins,
        "limit": evaluator.bits_limit,
        "scores": [None if np.isnan(score) else round(score, _DIGITS) for score in scores.tolist()],
        "classes": list(person.classes),
    }


def spread_of(evaluator: Evaluator, codes: Codes, layer: int) -> list[list[float]]:
    """The smallest and the largest output of each neuron of a layer over the twins of one person."""
    valid = evaluator.valid_twins(codes)
    twins = evaluator.twins.as_twins(np.repeat(codes, evaluator.m, axis=0), np.arange(evaluator.m))
    inputs = evaluator.encoding.encode(twins if valid is None else twins[valid[0]])
    model: Any = evaluator.model
    outputs = np.asarray(model.activations(inputs)[layer - 1], dtype=float)[:, :MAX_NEURONS]
    return np.round(np.stack([outputs.min(axis=0), outputs.max(axis=0)]), _DIGITS).tolist()


@dataclass(frozen=True, slots=True)
class Hold:
    """A neuron to be held; layers count from 1, as on the page."""

    layer: int
    neuron: int
    at: str


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
        codes=row_of(document["codes"], schema),
        holds=_holds(document.get("hold", [])),
        layer=None if layer is None else _whole(layer, "layer"),
        guard=None if guard is None else check_guarantee(_whole(guard, "guard")),
    )


def row_of(values: Any, schema: Schema) -> Codes:
    """A row of one value for each attribute that says who a person is; protected ones are those of the first twin."""
    free = schema.person_columns
    if not isinstance(values, list) or len(values) != len(free):
        found = f"{len(values)} values" if isinstance(values, list) else type(values).__name__
        raise OptionError(f"a person has {len(free)} values, one for each attribute, but got {found}.")
    codes = blank_row(schema)
    for column, value in zip(free, values, strict=True):
        codes[column] = _code(value, schema.attributes[column])
    return codes


def blank_row(schema: Schema) -> Codes:
    """Nobody in particular: protected attributes as the first twin has them, others at their lowest."""
    return np.array([one.twin_values()[0] if one.protected else one.low for one in schema.attributes], dtype=np.float64)


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
