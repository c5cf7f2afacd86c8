"""Answers about one person at a time: all twins' scores, their classes and bits, with any neurons held.

People between page and model: one starts from the worst rows of the table, the worst cases of the search, or any row by
its number. What a page sends becomes a person and neurons to hold, or is refused in one sentence; labels that go back
cannot play tricks.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.debug import MAX_ROWS, NAMES, accuracy_of, can_hold, read_debug, values_of
from fairbits.domain import Attribute, Codes, Schema
from fairbits.engine import NearestRow
from fairbits.errors import OptionError, choose_from
from fairbits.measure import Evaluator
from fairbits.models import Do, HasActivations, HasInterventions, kind_of
from fairbits.randomness import even_rows, sampled_rows
from fairbits.repair import Guard, check_guarantee
from fairbits.report import (
    SCORES,
    Portrait,
    axes_of,
    distance_words,
    evaluator_of_run,
    kept_measurement,
    portrait_of,
    row_words,
)
from fairbits.store import Run, accepted_subject
from fairbits.subject import Subject, variance_explained
from fairbits.text import joined, shortened

#: Neurons of one layer that the page shows; more could not be told apart.
MAX_NEURONS = 512
#: Rows and cases to choose from.
MOST = 12


#: Letters of a name, and of a label, on the page.
NAME, LABEL = 60, 80
#: Integers with at most so many values and no labels are still a number and a slider; allowed sets are a list.
_DIGITS = 6


def _field(attribute: Attribute) -> dict[str, Any]:
    field: dict[str, Any] = {"name": shortened(attribute.name, NAME), "kind": attribute.kind}
    if attribute.labels or attribute.allowed:
        codes = attribute.values() if attribute.discrete else np.array(attribute.allowed)
        return {**field, "choices": [[float(code), shortened(attribute.read(code), LABEL)] for code in codes]}
    return {**field, "low": attribute.low, "high": attribute.upper, "step": 1 if attribute.discrete else None}


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
        received = f"{len(values)} values" if isinstance(values, list) else type(values).__name__
        raise OptionError(f"a person has {len(free)} values, one for each attribute, but got {received}.")
    codes = blank_row(schema)
    for column, value in zip(free, values, strict=True):
        codes[column] = _code(value, schema.attributes[column])
    return codes


def blank_row(schema: Schema) -> Codes:
    """Nobody in particular: protected attributes as the first twin has them, others at their lowest."""
    return np.array(
        [attribute.twin_values()[0] if attribute.protected else attribute.low for attribute in schema.attributes],
        dtype=np.float64,
    )


def _code(value: Any, attribute: Attribute) -> float:
    takes = f"attribute {shortened(attribute.name, 60)!r} takes {attribute.domain_text()}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        given = "nothing" if value is None or value == "" else shortened(repr(value), 60)
        raise OptionError(f"{takes}, but got {given}; give a number.")
    code = math.inf if abs(value) > sys.float_info.max else float(value)
    if not attribute.valid(np.array([code]))[0]:
        whole = " (whole numbers only)" if attribute.discrete else ""
        raise OptionError(f"{takes}{whole}, but got {code:g}.")
    return code


def _holds(given: Any) -> tuple[Hold, ...]:
    if not isinstance(given, list):
        raise OptionError(f"hold is a list of neurons, but got {type(given).__name__}.")
    dos = []
    for entry in given:
        if not (isinstance(entry, dict) and set(entry) == {"layer", "neuron", "at"} and isinstance(entry["at"], str)):
            raise OptionError('a neuron to hold looks like {"layer": 1, "neuron": 0, "at": "zero"}; one does not.')
        dos.append(Hold(_whole(entry["layer"], "layer"), _whole(entry["neuron"], "neuron"), entry["at"]))
    return tuple(dos)


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 10**9:
        raise OptionError(f"{what} is {shortened(repr(value), 40)}; it must be a whole number.")
    return value


#: What a neuron can be held at: nothing, or the least, the mean, the most that it puts out over the table.
STATISTICS = ("zero", "min", "mean", "max")


@dataclass(frozen=True, slots=True, eq=False)
class Switches:
    """The values of every hidden neuron, (statistics, width) for each layer, and which of them it can put out.

    Without layers, ``reason`` says why there are none.
    """

    values: tuple[npt.NDArray[np.float32], ...] = ()
    possible: tuple[npt.NDArray[np.bool_], ...] = ()
    reason: str = ""

    @classmethod
    def of(cls, subject: Subject) -> Switches:
        model = subject.model
        if not (isinstance(model, HasActivations) and isinstance(model, HasInterventions)):
            kind = kind_of(model)
            return cls(reason=f"This model gives scores only ({kind}): its neurons can be neither seen nor held.")
        codes = subject.table.codes
        widths = [layer.shape[1] for layer in model.activations(subject.encoding.encode(codes[:1]))[:-1]]
        if not widths:
            return cls(reason="This model has no hidden layer, so there is no neuron to hold.")
        chosen = [NAMES.index(name) for name in STATISTICS]
        tables = values_of(subject, codes[even_rows(len(codes), MAX_ROWS)], range(len(widths)))
        ends = [NAMES.index("min"), NAMES.index("max")]
        possible = [
            np.array(
                [
                    [can_hold(model, Do(layer, i, float(row[i])), table[ends, i]) for i in range(len(row))]
                    for row in table[chosen]
                ]
            )
            for layer, table in enumerate(tables)
        ]
        return cls(tuple(table[chosen] for table in tables), tuple(possible))

    def do(self, hold: Hold) -> Do:
        if not self.values:
            raise OptionError(f"no neuron can be held: {self.reason[0].lower()}{self.reason[1:]}")
        values, possible = self.layer(hold.layer)
        if not 0 <= hold.neuron < values.shape[1]:
            raise OptionError(
                f"neuron {hold.neuron} is not in layer {hold.layer}, which has 0 to {values.shape[1] - 1}."
            )
        if hold.at not in STATISTICS:
            raise OptionError(f"a neuron cannot be held at {hold.at[:40]!r}; {choose_from(hold.at[:40], STATISTICS)}")
        place = STATISTICS.index(hold.at), hold.neuron
        if not possible[place]:
            raise OptionError(
                f"neuron {hold.neuron} of layer {hold.layer} cannot be held at {values[place]:.4g}: its activation "
                f"never puts that out; choose another value."
            )
        return Do(hold.layer - 1, hold.neuron, float(values[place]))

    def layer(self, number: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        if not 1 <= number <= len(self.values):
            raise OptionError(f"layer {number} is not a hidden layer; there are 1 to {len(self.values)}.")
        return self.values[number - 1], self.possible[number - 1]

    def dos(self, holds: Sequence[Hold]) -> tuple[Do, ...]:
        """All interventions in a fixed order."""
        dos: dict[tuple[int, int], Do] = {}
        for hold in holds:
            if (hold.layer, hold.neuron) in dos:
                raise OptionError(f"neuron {hold.neuron} of layer {hold.layer} is held twice; name it once.")
            dos[hold.layer, hold.neuron] = self.do(hold)
        return tuple(dos[key] for key in sorted(dos))

    def document(self, suspect: int | None, acd: dict[int, float]) -> list[dict[str, Any]]:
        shown = slice(0, MAX_NEURONS)
        return [
            {
                "layer": number,
                "width": values.shape[1],
                "suspect": number == suspect,
                "values": np.round(values[:, shown].astype(float), 6).tolist(),
                "possible": possible[:, shown].tolist(),
                "acd": [acd.get(neuron) for neuron in range(values.shape[1])[shown]] if number == suspect else None,
            }
            for number, (values, possible) in enumerate(zip(self.values, self.possible, strict=True), start=1)
        ]


#: Sets of held neurons whose networks are kept ready.
READY = 64
#: Rows that accuracy is judged on while neurons are held.
JUDGED = 4000


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A model with some neurons held, and perhaps a guard around it, ready to be asked."""

    evaluator: Evaluator
    accuracy: float | None
    layers: Evaluator  # of the model that has them, without a guard around it
    proof: str = ""


class Explorer:
    """One run's subject, open to questions. Nothing is written, and one question is answered at a time."""

    def __init__(self, run: Run, *, subject: Subject | None = None, threads: int | None = 1):
        self.run = run
        self.subject = accepted_subject(run, subject)
        self.schema = self.subject.schema
        evaluator = evaluator_of_run(run, self.subject, threads)
        kept = kept_measurement(run.folder, self.subject, evaluator)
        self.evaluator = evaluator.over_values  # whoever is made up here has no values of their own
        self.switches = Switches.of(self.subject)
        self._worst_rows: list[int] = [] if kept is None else kept["worst_rows"]
        self._nearest = NearestRow(self.schema, self.subject.table.codes)
        # Rows enough to judge accuracy on, the same ones every time.
        judged = sampled_rows(len(self.subject.table), JUDGED, np.random.default_rng(0))
        self._judged = replace(self.subject, table=self.subject.table.rows(judged))
        self._lock = threading.Lock()
        self._ready = lru_cache(READY)(self._made_ready)

    def everybody(self) -> list[dict[str, Any]]:
        """People as the page takes them, real ones first: a name, k, the free codes, and which twin a real row is."""
        # Real ones as measured; where nothing was measured yet, the rows that the search came across.
        real = [self.row(number + 1) for number in self._worst_rows] or self._cases("changed = 0")
        listed = [*real, *self._cases("changed <> 0")] or [self.row(1)]
        k = self.evaluator.evaluate(np.stack([row_of(person["codes"], self.evaluator.schema) for person in listed])).k
        return [{**person, "k": int(own)} for person, own in zip(listed, k, strict=True)]

    def row(self, number: int) -> dict[str, Any]:
        if not 1 <= number <= len(self.subject.table):
            raise OptionError(f"row {number} is not in the table, which has rows 1 to {len(self.subject.table)}.")
        codes = self.subject.table.codes[number - 1]
        own = int(self.evaluator.twins.index_of(codes[None])[0])
        return self._person(row_words(self.subject.table, number - 1), codes, real=True, own=own)

    def _cases(self, where: str) -> list[dict[str, Any]]:
        return [
            self._person(distance_words(changed), codes, real=changed == 0)
            for batch in self.run.cases(where=where, top=MOST, labels=False).to_batches()
            for codes, changed in zip(self.run.layout.codes_of(batch), batch["changed"].to_pylist(), strict=True)
        ]

    def _person(self, name: str, codes: Codes, *, real: bool, own: int | None = None) -> dict[str, Any]:
        return {
            "name": name,
            "real": real,
            "k": None,
            "codes": [float(codes[i]) for i in self.evaluator.schema.person_columns],
            "own": own,
        }

    def warm_up(self) -> None:
        """Answer once, so that kernels are compiled before somebody waits for them."""
        codes = self.everybody()[0]["codes"]
        self.answer(asked_of({"codes": codes, "layer": 1 if self.switches.values else None}, self.schema))

    def start(self) -> dict[str, Any]:
        debugged = read_debug(self.run.folder)
        known = [neuron for neuron in debugged.neurons if neuron.layer == debugged.suspect] if debugged else []
        acd = {effect.neuron: effect.acd for effect in known if effect.acd is not None}
        axes = axes_of(self.evaluator)
        return {
            "subject": shortened(self.subject.name, LABEL),
            "protected": joined([shortened(name, NAME) for name in axes.names]),
            "axes": [
                {"name": shortened(name, NAME), "values": [shortened(value, LABEL) for value in values]}
                for name, values in zip(axes.names, axes.values, strict=True)
            ],
            "m": self.evaluator.m,
            "epsilon": self.evaluator.epsilon,
            "partition": self.evaluator.partition,
            "limit": self.evaluator.bits_limit,
            "threshold": axes.threshold,
            "regression": self.schema.regression,
            "vector": self.evaluator.by_vector,
            "colours": list(SCORES),
            "quality": []
            if self.subject.quality is None
            else [shortened(line, 300) for line in self.subject.quality.lines()],
            "favourable": None if self.schema.favourable is None else shortened(self.schema.favourable, NAME),
            "attributes": [_field(self.schema.attributes[column]) for column in self.schema.person_columns],
            "people": self.everybody(),
            "rows": len(self.subject.table),
            "layers": self.switches.document(debugged.suspect if debugged else None, acd),
            "no_layers": self.switches.reason,
            "embedded": False,
            "judged": 0 if self._ready(()).accuracy is None else len(self._judged.table),
        }

    def answer(self, asked: PageRequest) -> dict[str, Any]:
        """Figures of a person; with neurons held, beside those of the model as it is."""
        with self._lock:
            dos = self.switches.dos(asked.holds)
            plain, held = self._ready(()), self._ready(dos, asked.guard)
            codes = asked.codes[None]
            valid = self.evaluator.valid_twins(codes)
            if valid is not None and not valid.any():
                raise OptionError("no twin of this person can exist under the rules; change an attribute.")
            before = None
            if dos or asked.guard:
                whole = figures_of(portrait_of(plain.evaluator, asked.codes), plain.evaluator)
                before = {name: whole[name] for name in ("k", "bits", "low", "high", "flips")} | {
                    "accuracy": plain.accuracy
                }
            return {
                **figures_of(portrait_of(held.evaluator, asked.codes), held.evaluator),
                "accuracy": held.accuracy,
                "before": before,
                "distance": self.distance_of(codes),
                "notes": self._broken_rules(codes),
                "spread": self._spread(held.layers, codes, asked.layer),
                "proof": held.proof,
            }

    def distance_of(self, codes: Codes) -> str:
        """How far one person is from the nearest row of the table, in words."""
        return distance_words(int(self._nearest.find(codes).changed[0]))

    def _made_ready(self, dos: tuple[Do, ...], guard: int | None = None) -> _Ready:
        model: Any = self.subject.model
        model = model.with_interventions(dos) if dos else model
        evaluator = self.evaluator.with_model(model) if dos else self.evaluator  # the same people can exist
        if guard is None:
            return _Ready(evaluator, _quality(model, self._judged), evaluator)
        settings: Any = {name: getattr(evaluator, name) for name in ("epsilon", "partition", "threads")}
        made = Guard.of(replace(self.subject, model=model), guarantee=guard, **settings)
        return _Ready(self.evaluator.with_model(made), _quality(made, self._judged), evaluator, made.proof)

    def _broken_rules(self, codes: Codes) -> list[str]:
        if not self.evaluator.validity.any or self.evaluator.validity.people(codes)[0]:
            return []
        protected = set(self.schema.protected_columns)
        return [
            f"This person cannot exist under the rule {shortened(rule.text, 120)}; no search would look at them."
            for rule in self.schema.rules
            if not protected.intersection(rule.columns) and not rule.holds(codes)[0]
        ]

    def _spread(self, evaluator: Evaluator, codes: Codes, layer: int | None) -> list[list[float]] | None:
        """The smallest and the largest output of each neuron of a layer over the twins of one person."""
        if layer is None or not self.switches.values:
            return None
        self.switches.layer(layer)
        valid = evaluator.valid_twins(codes)
        twins = evaluator.twins.as_twins(np.repeat(codes, evaluator.m, axis=0), np.arange(evaluator.m))
        inputs = evaluator.encoding.encode(twins if valid is None else twins[valid[0]])
        model: Any = evaluator.model
        outputs = np.asarray(model.activations(inputs)[layer - 1], dtype=float)[:, :MAX_NEURONS]
        return np.round(np.stack([outputs.min(axis=0), outputs.max(axis=0)]), _DIGITS).tolist()


def _quality(model: Any, subject: Subject) -> float | None:
    """The accuracy; for a regression, the share of the target's variance explained. None without anything known."""
    labels = subject.table.labels
    if not subject.schema.regression or labels is None:
        return accuracy_of(model, subject)
    return variance_explained(model.scores(subject.encoding.encode(subject.table.codes)), labels)
