"""Answers about one person at a time: all twins' scores, their classes and bits, with any neurons held."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fairbits.debug import accuracy_of, read_debug
from fairbits.domain import Codes, shortened
from fairbits.engine import NearestRow
from fairbits.errors import OptionError
from fairbits.explore.description import attributes_of, figures_of, setting_of, spread_of
from fairbits.explore.people import Gallery
from fairbits.explore.request import PageRequest, asked_of
from fairbits.explore.switches import Switches
from fairbits.measure import Evaluator
from fairbits.models import Do
from fairbits.randomness import sampled_rows
from fairbits.repair import Guard
from fairbits.report import distance_words, evaluator_of_run, portrait_of
from fairbits.store import Run, accepted_subject
from fairbits.subject import Subject, variance_explained

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
        self.evaluator = evaluator_of_run(run, self.subject, threads)
        self.switches = Switches.of(self.subject)
        self.gallery = Gallery(run, self.subject, self.evaluator)
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
                raise OptionError("no twin of this person can exist under the subject's rules; change an attribute.")
            found = figures_of(portrait_of(held.evaluator, asked.codes), held.evaluator)
            before = (
                figures_of(portrait_of(plain.evaluator, asked.codes), plain.evaluator) if dos or asked.guard else None
            )
            brief = None if before is None else {name: before[name] for name in ("k", "bits", "low", "high", "flips")}
            return {
                **found,
                "accuracy": held.accuracy,
                "before": None if brief is None else {**brief, "accuracy": plain.accuracy},
                "distance": distance_words(int(self._nearest.find(codes).changed[0])),
                "notes": self._broken_rules(codes),
                "spread": self._spread(held.layers, codes, asked.layer),
                "proof": held.proof,
            }

    def _made_ready(self, dos: tuple[Do, ...], guard: int | None = None) -> _Ready:
        model: Any = self.subject.model
        evaluator = self.evaluator
        if dos:
            model = model.with_interventions(dos)
            evaluator = evaluator_of_run(self.run, replace(self.subject, model=model), evaluator.threads)
            evaluator.validity = self.evaluator.validity  # who can exist does not depend on the model
        if guard is None:
            return _Ready(evaluator, _quality(model, self._judged), evaluator)
        changed = replace(self.subject, model=model)
        made = Guard.of(
            changed,
            guarantee=guard,
            epsilon=evaluator.epsilon,
            partition=evaluator.partition,
            threads=evaluator.threads,
        )
        guarded = evaluator_of_run(self.run, replace(changed, model=made), evaluator.threads)
        guarded.validity = self.evaluator.validity
        return _Ready(guarded, _quality(made, self._judged), evaluator, made.proof)

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
