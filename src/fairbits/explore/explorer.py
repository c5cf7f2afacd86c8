"""Answers about one person at a time: all twins' scores, their classes and bits, with any neurons held."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.debug import MAX_ROWS, NAMES, accuracy_of, can_hold, read_debug, values_of
from fairbits.domain import Codes
from fairbits.engine import NearestRow
from fairbits.errors import OptionError, choose_from
from fairbits.explore.people import (
    MAX_NEURONS,
    Gallery,
    Hold,
    PageRequest,
    asked_of,
    attributes_of,
    figures_of,
    setting_of,
    spread_of,
)
from fairbits.measure import Evaluator
from fairbits.models import Do, HasActivations, HasInterventions, kind_of
from fairbits.randomness import sampled_rows
from fairbits.repair import Guard
from fairbits.report import distance_words, evaluator_of_run, kept_measurement, portrait_of
from fairbits.store import Run, accepted_subject
from fairbits.subject import Subject, variance_explained
from fairbits.text import shortened

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
        """The switches of a subject's model."""
        model = subject.model
        if not (isinstance(model, HasActivations) and isinstance(model, HasInterventions)):
            kind = kind_of(model)
            return cls(reason=f"This model gives scores only ({kind}): its neurons can be neither seen nor held.")
        codes = subject.table.codes
        widths = [layer.shape[1] for layer in model.activations(subject.encoding.encode(codes[:1]))[:-1]]
        if not widths:
            return cls(reason="This model has no hidden layer, so there is no neuron to hold.")
        if len(codes) > MAX_ROWS:  # evenly spread, so that the same table gives the same values
            codes = codes[np.linspace(0, len(codes) - 1, MAX_ROWS).astype(np.int64)]
        chosen = [NAMES.index(name) for name in STATISTICS]
        tables = values_of(subject, codes, range(len(widths)))
        possible = []
        for layer, table in enumerate(tables):
            seen = table[[NAMES.index("min"), NAMES.index("max")]]
            able = [
                [can_hold(model, Do(layer, neuron, float(table[row, neuron])), seen[:, neuron]) for row in chosen]
                for neuron in range(table.shape[1])
            ]
            possible.append(np.array(able, dtype=np.bool_).T)
        return cls(tuple(table[chosen] for table in tables), tuple(possible))

    def do(self, hold: Hold) -> Do:
        """The intervention that a hold means."""
        if not self.values:
            raise OptionError(f"no neuron can be held: {self.reason[0].lower()}{self.reason[1:]}")
        if not 1 <= hold.layer <= len(self.values):
            raise OptionError(f"layer {hold.layer} is not a hidden layer; there are 1 to {len(self.values)}.")
        width = self.values[hold.layer - 1].shape[1]
        if not 0 <= hold.neuron < width:
            raise OptionError(f"neuron {hold.neuron} is not in layer {hold.layer}, which has 0 to {width - 1}.")
        if hold.at not in STATISTICS:
            raise OptionError(f"a neuron cannot be held at {hold.at[:40]!r}; {choose_from(hold.at[:40], STATISTICS)}")
        place = STATISTICS.index(hold.at)
        value = float(self.values[hold.layer - 1][place, hold.neuron])
        if not self.possible[hold.layer - 1][place, hold.neuron]:
            raise OptionError(
                f"neuron {hold.neuron} of layer {hold.layer} cannot be held at {value:.4g}: its activation never "
                f"puts that out; choose another value."
            )
        return Do(hold.layer - 1, hold.neuron, value)

    def dos(self, holds: Sequence[Hold]) -> tuple[Do, ...]:
        """All interventions in a fixed order."""
        found: dict[tuple[int, int], Do] = {}
        for hold in holds:
            if (hold.layer, hold.neuron) in found:
                raise OptionError(f"neuron {hold.neuron} of layer {hold.layer} is held twice; name it once.")
            found[hold.layer, hold.neuron] = self.do(hold)
        return tuple(found[key] for key in sorted(found))

    def document(self, suspect: int | None, acd: dict[int, float]) -> list[dict[str, Any]]:
        """Facts about each hidden layer for the page."""
        layers = []
        for number, (values, possible) in enumerate(zip(self.values, self.possible, strict=True), start=1):
            shown = slice(0, MAX_NEURONS)
            layers.append(
                {
                    "layer": number,
                    "width": values.shape[1],
                    "suspect": number == suspect,
                    "values": np.round(values[:, shown].astype(float), 6).tolist(),
                    "possible": possible[:, shown].tolist(),
                    "acd": [acd.get(neuron) for neuron in range(values.shape[1])[shown]] if number == suspect else None,
                }
            )
        return layers


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
        self.gallery = Gallery(run, self.subject, self.evaluator, [] if kept is None else kept["worst_rows"])
        self._nearest = NearestRow(self.schema, self.subject.table.codes)
        self._judged = _sample(self.subject)
        self._lock = threading.Lock()
        self._ready = lru_cache(READY)(self._made_ready)

    def warm_up(self) -> None:
        """Answer once, so that kernels are compiled before somebody waits for them."""
        first = self.gallery.everybody()[0]
        self.answer(asked_of({"codes": first["codes"], "layer": 1 if self.switches.values else None}, self.schema))

    def start(self) -> dict[str, Any]:
        """Everything that the page needs to know before it asks."""
        found = read_debug(self.run.folder)
        known = [one for one in found.neurons if one.layer == found.suspect] if found else []
        acd = {one.neuron: one.acd for one in known if one.acd is not None}
        return {
            **setting_of(self.subject, self.evaluator),
            "attributes": attributes_of(self.schema),
            "people": self.gallery.everybody(),
            "rows": len(self.subject.table),
            "layers": self.switches.document(found.suspect if found else None, acd),
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
            found = figures_of(portrait_of(held.evaluator, asked.codes), held.evaluator)
            before = (
                figures_of(portrait_of(plain.evaluator, asked.codes), plain.evaluator) if dos or asked.guard else None
            )
            brief = None if before is None else {name: before[name] for name in ("k", "bits", "low", "high", "flips")}
            return {
                **found,
                "accuracy": held.accuracy,
                "before": None if brief is None else {**brief, "accuracy": plain.accuracy},
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
        evaluator = self.evaluator
        if dos:
            model = model.with_interventions(dos)
            evaluator = evaluator.with_model(model)  # who can exist does not depend on the model
        if guard is None:
            return _Ready(evaluator, _quality(model, self._judged), evaluator)
        made = Guard.of(
            replace(self.subject, model=model),
            guarantee=guard,
            epsilon=evaluator.epsilon,
            partition=evaluator.partition,
            threads=evaluator.threads,
        )
        return _Ready(self.evaluator.with_model(made), _quality(made, self._judged), evaluator, made.proof)

    def _broken_rules(self, codes: Codes) -> list[str]:
        if not self.evaluator.validity.any or self.evaluator.validity.people(codes)[0]:
            return []
        protected = set(self.schema.protected_columns)
        own = [rule for rule in self.schema.rules if not protected.intersection(rule.columns)]
        broken = [shortened(rule.text, 120) for rule in own if not rule.holds(codes)[0]]
        return [f"This person cannot exist under the rule {text}; no search would look at them." for text in broken]

    def _spread(self, evaluator: Evaluator, codes: Codes, layer: int | None) -> list[list[float]] | None:
        if layer is None or not self.switches.values:
            return None
        if not 1 <= layer <= len(self.switches.values):
            raise OptionError(f"layer {layer} is not a hidden layer; there are 1 to {len(self.switches.values)}.")
        return spread_of(evaluator, codes, layer)


def _quality(model: Any, subject: Subject) -> float | None:
    """The accuracy; for a regression, the share of the target's variance explained. None without anything known."""
    labels = subject.table.labels
    if not subject.schema.regression or labels is None:
        return accuracy_of(model, subject)
    return variance_explained(model.scores(subject.encoding.encode(subject.table.codes)), labels)


def _sample(subject: Subject) -> Subject:
    """The subject with rows enough to judge accuracy on, the same ones every time."""
    rows = len(subject.table)
    if rows <= JUDGED:
        return subject
    chosen = sampled_rows(rows, JUDGED, np.random.default_rng(0))
    return replace(subject, table=subject.table.rows(chosen))
