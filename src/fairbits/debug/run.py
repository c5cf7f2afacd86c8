"""A debugging from a run to its files: sample, layers, neurons, attributes, labels, verdict."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Unpack

import numpy as np

from fairbits.debug.attribution import MAX_ATTRIBUTES, attribute_bits
from fairbits.debug.files import write_result
from fairbits.debug.labels import MIN_ROWS, label_bits
from fairbits.debug.layers import amplification, layer_distances, layer_effects, suspect_of
from fairbits.debug.neurons import MAX_LOSS, TryOut, accuracy_of, neuron_effects
from fairbits.debug.origin import judge
from fairbits.debug.records import Attribution, DebugResult, LabelBits, LayerEffect, NeuronEffect, Retrained
from fairbits.debug.refits import retrain as retrain_subject
from fairbits.debug.sample import sample_cases
from fairbits.debug.trees import TreeEffects, tree_effects
from fairbits.domain import GrantOptions
from fairbits.errors import CapabilityError, OptionError
from fairbits.measure import Evaluator, evaluator_of
from fairbits.models import HasActivations, HasInterventions, HasTrees, kind_of
from fairbits.randomness import generator
from fairbits.store import Run, check_writable, subject_of
from fairbits.subject import Subject

Stage = Callable[[str], None]


def debug_run(
    run: Run,
    *,
    subject: Subject | None = None,
    samples: int = 1000,
    all_layers: bool = False,
    inside: bool = True,
    retrain: bool = False,
    seed: int = 0,
    threads: int | None = None,
    stage: Stage | None = None,
    try_out: TryOut | None = None,
    **grants: Unpack[GrantOptions],
) -> DebugResult:
    """Find out where the bits of a run's cases come from, and write it into the run's folder.

    Of a tree ensemble the layers are its trees and the neurons its splits (`debug.trees`).

    ``subject`` is needed only for a run whose subject came from neither a name nor a file. ``inside=False`` leaves
    layers and neurons out, which a black box cannot show. ``stage`` is told what is being done.
    ``try_out`` holds neurons at values, in place of this process.

    Parameters
    ----------
    run
        The run.
    subject
        The subject; needed only for a run that does not say where its model is.
    samples
        Number of cases to look at.
    all_layers
        Try the neurons of every layer, not only of the suspect one.
    inside
        Look at layers and neurons.
    retrain
        Also train the same shape anew.
    seed
        Same seed, same result.
    threads
        Number of threads; None means all cores.
    stage
        Progress callback, called with what is being done.
    try_out
        Holds neurons at values; None does it in this process.
    **grants
        What files from outside may do, as for :func:`~fairbits.load_subject`.

    Returns
    -------
    DebugResult
        What was found.

    Raises
    ------
    OptionError
        If an option makes no sense, or the run has no cases.
    CapabilityError
        If ``inside`` is asked of a model that does not show its layers.
    """
    say = stage or (lambda _: None)
    begin = time.perf_counter()
    if seed < 0:
        raise OptionError(f"the seed is {seed}; it must be 0 or larger.")
    check_writable(run.folder)
    say("choosing cases")
    cases, worst = sample_cases(run, samples, generator(seed, "debug", "cases"))
    subject = subject_of(run, subject, **grants)
    if inside and not isinstance(subject.model, HasActivations | HasTrees):
        raise CapabilityError(
            f"layers and neurons cannot be seen in {kind_of(subject.model)!r}, which offers scores only; with "
            f"--no-layers, debug still says which attributes the bits come from and what the labels carry."
        )
    evaluator = evaluator_of(
        subject, epsilon=run.manifest["epsilon"], partition=run.manifest["partition"], threads=threads
    )
    figures = evaluator.evaluate(cases)
    work = _Work(evaluator, subject, cases, seed, say, try_out)
    trees = work.trees(all_trees=all_layers) if inside and isinstance(subject.model, HasTrees) else None
    if trees is not None:
        layers, neurons, suspect, delta, rho = trees.layers, trees.neurons, trees.suspect, trees.delta, trees.rho
    else:
        layers, delta, rho = work.layers() if inside else ((), None, None)  # type: ignore[assignment]
        suspect = suspect_of(layers) if layers else None
        chosen = [one.layer for one in layers[1:-1] if all_layers or one.layer == suspect]
        neurons = work.neurons(chosen)
    attribution = work.attribution()
    labels = work.label_bits()
    again = work.retrained() if retrain else ()
    accuracy = accuracy_of(subject.model, subject)
    first = None if rho is None or trees is not None else float((rho.argmax(axis=1) == 0).mean())
    if rho is not None and rho.shape[1] == 1:
        first = None  # a single layer always wins
    result = DebugResult(
        subject=subject.name,
        epsilon=evaluator.epsilon,
        partition=evaluator.partition,
        seed=seed,
        m=evaluator.m,
        cases=cases,
        worst=worst,
        k=figures.k,
        flips=figures.flips,
        accuracy=accuracy,
        layers=layers,
        suspect=suspect,
        delta=delta,
        rho=rho,
        neurons=neurons,
        attribution=attribution,
        origin=judge(first, labels, again, accuracy=accuracy, alike=bool((figures.k == 1).all())),
        notes=tuple(work.notes),
        seconds=time.perf_counter() - begin,
        regression=subject.schema.regression,
        identity=subject.identity.id,
        units="layers" if trees is None else "trees",
        options={"samples": samples, "all_layers": all_layers, "inside": inside, "retrain": retrain},
    )
    write_result(run, result)
    return result


class _Work:
    """The parts of a debugging, each of which may have to say why it could not be done."""

    def __init__(
        self,
        evaluator: Evaluator,
        subject: Subject,
        cases: np.ndarray,
        seed: int,
        say: Stage,
        try_out: TryOut | None,
    ):
        self.try_out = try_out
        self.evaluator, self.subject, self.cases, self.seed, self.say = evaluator, subject, cases, seed, say
        self.notes: list[str] = []

    def trees(self, *, all_trees: bool) -> TreeEffects:
        self.say("leaving out trees")
        rng = generator(self.seed, "debug", "trees")
        found = tree_effects(self.evaluator, self.subject, self.cases, all_trees=all_trees, rng=rng, say=self.say)
        self.notes += found.notes
        return found

    def layers(self) -> tuple[tuple[LayerEffect, ...], np.ndarray, np.ndarray]:
        self.say("measuring layers")
        delta, widths = layer_distances(self.evaluator, self.cases)
        rho = amplification(delta)
        layers, _ = layer_effects(delta, rho, widths)
        if len(layers) > 2 and max(layers[1:], key=lambda one: one.votes).layer == layers[-1].layer:
            self.notes.append(
                "The last layer has the most votes, but its neurons are the decision: the hidden layer with the most "
                "votes is studied instead."
            )
        return layers, delta, rho

    def neurons(self, layers: list[int]) -> tuple[NeuronEffect, ...]:
        if not layers:
            return ()
        if not isinstance(self.subject.model, HasInterventions):
            self.notes.append("No neuron was held at a value: the model shows its layers but cannot be changed.")
            return ()
        self.say("holding neurons")
        found, accuracy = neuron_effects(
            self.evaluator,
            self.subject,
            self.cases,
            layers,
            rng=generator(self.seed, "debug", "neurons"),
            try_out=self.try_out,
        )
        if accuracy is None:
            why = "a regression has no accuracy" if self.subject.schema.regression else "the table has no labels"
            if self.subject.table.labels is not None and not self.subject.schema.regression:
                why = "a score does not say which of several classes is decided"
            self.notes.append(f"Accuracy is not known ({why}): every value that a neuron can take was kept.")
        elif not any(one.acd is not None for one in found):
            self.notes.append(f"No neuron can be both on and off within {MAX_LOSS:.0%} of the accuracy.")
        return found

    def attribution(self) -> Attribution | None:
        self.say("attributing bits")
        count = len(self.subject.schema.protected)
        if count > MAX_ATTRIBUTES:
            self.notes.append(f"Bits were not attributed: {count} protected attributes have too many subsets.")
            return None
        return attribute_bits(self.evaluator, self.cases)

    def retrained(self) -> tuple[Retrained, ...]:
        self.say("training anew")
        rng = generator(self.seed, "debug", "rows")
        return retrain_subject(self.evaluator, self.subject, self.cases, seed=self.seed + 1, rng=rng)

    def label_bits(self) -> LabelBits | None:
        self.say("reading the labels")
        table = self.subject.table
        if table.labels is None:
            self.notes.append("The table has no labels: what they carry of the protected attributes cannot be said.")
            return None
        if len(table) < MIN_ROWS or len(np.unique(table.labels)) < 2:
            self.notes.append(f"The table's {len(table)} labels are too few, or all the same, to say what they carry.")
            return None
        return label_bits(self.subject.schema, table, generator(self.seed, "debug", "labels"))
