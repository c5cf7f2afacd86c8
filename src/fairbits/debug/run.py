"""A debugging from a run to its files: sample, layers, neurons, attributes, labels, data or training.

Cases that are looked at are the worst fifth by severity, the others drawn at random, as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Unpack

import numpy as np

from fairbits.data import NetworkTrainer, Trainer
from fairbits.debug.neurons import (
    MAX_LOSS,
    SPREAD_ROWS,
    TryOut,
    accuracy_of,
    amplification,
    check_rule,
    layer_distances,
    layer_effects,
    layer_holds,
    layer_scales,
    neuron_effects,
    neuron_sets,
    text_effects,
    vote_of,
)
from fairbits.debug.origin import (
    MAX_ATTRIBUTES,
    MIN_ROWS,
    QUICK_TRAININGS,
    SMALL_TABLE,
    TRAININGS_LARGE,
    TRAININGS_SMALL,
    TrainOut,
    attribute_bits,
    label_bits,
    origin_shares,
    origin_trainer,
    people_of,
    quick_epochs,
    train_here,
)
from fairbits.debug.records import (
    Attribution,
    DebugResult,
    LabelBits,
    LayerEffect,
    NeuronEffect,
    NeuronSets,
    Origin,
    Rule,
    Vote,
    ballots_of,
    write_result,
)
from fairbits.debug.trees import TreeEffects, tree_effects
from fairbits.debug.who import describe_people
from fairbits.domain import Codes, GrantOptions, Integers
from fairbits.errors import CapabilityError, OptionError, UsageError
from fairbits.measure import Evaluator, Measure, check_measure, evaluator_of
from fairbits.models import HasActivations, HasInterventions, HasTrees, Network, kind_of
from fairbits.randomness import generator
from fairbits.store import Run, check_writable, subject_of
from fairbits.subject import Subject
from fairbits.text import percent

WORST_SHARE = 0.2


def sample_cases(run: Run, samples: int, rng: np.random.Generator) -> tuple[Codes, int]:
    """Codes of the chosen cases, the worst first, and how many of them were chosen as the worst.

    The worst have the most classes, then the widest span; the others are drawn from all cases but those, each with
    the same chance. A run with no more cases than asked for gives all of them.
    """
    if samples < 1:
        raise OptionError(f"samples is {samples}; look at one case at least.")
    total = len(run)
    if total == 0:
        raise OptionError(f"the run in {str(run.folder)!r} has no cases to look at; search again with a larger budget.")
    worst = max(1, round(WORST_SHARE * min(samples, total)))
    asked = run.batches(top=total if total <= samples else worst, labels=False)
    top = np.concatenate([run.layout.codes_of(batch) for batch in asked])
    if total <= samples:
        return top, worst
    known = {row.tobytes() for row in top}
    # At most `worst` of the rows drawn are among the worst: so many are drawn in excess, and enough are left.
    drawn = rng.choice(total, samples, replace=False)
    others = [row for row in run.codes_at(drawn) if row.tobytes() not in known]
    return np.concatenate([top, np.array(others[: samples - worst]).reshape(-1, top.shape[1])]), worst


def chains_of(run: Run, cases: Codes) -> Integers | None:
    """The chain of each case: what a search made of one row of the table is no independent evidence; None where each
    case is of another row.
    """
    seeds = run.seed_rows(cases)
    found = np.where(seeds >= 0, seeds, -1 - np.arange(len(cases)))  # from no row of the table: somebody else each time
    return None if len(np.unique(found)) == len(found) else found


Stage = Callable[[str], None]

#: Seconds that trainings may take where they were not asked for.
PATIENCE = 60.0


def debug_run(
    run: Run,
    *,
    subject: Subject | None = None,
    samples: int = 1000,
    all_layers: bool = False,
    inside: bool = True,
    retrain: bool = False,
    rule: str = "ours",
    trainings: int | None = None,
    patience: float = PATIENCE,
    sets: bool = True,
    seed: int = 0,
    threads: int | None = None,
    stage: Stage | None = None,
    try_out: TryOut | None = None,
    train_out: TrainOut | None = None,
    **grants: Unpack[GrantOptions],
) -> DebugResult:
    """Find out where the bits of a run's cases come from, and write it into the run's folder.

    Of a tree ensemble the layers are its trees and the neurons its splits (`debug.trees`).
    """
    say = stage or (lambda _: None)
    begin = time.perf_counter()
    if trainings is not None and (trainings < 0 or trainings == 1):
        raise OptionError(f"trainings is {trainings}; give 2 or more, which can be compared, or 0 for none.")
    chosen_rule, measure = check_rule(rule), check_measure(run.manifest.get("measure", "q_inf"))
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
    say("describing people in rules")
    who = describe_people(evaluator, subject, generator(seed, "debug", "who"))
    evaluator = evaluator.over_values  # attributes, layers and neurons are compared in values that everybody can take
    figures = evaluator.evaluate(cases)
    work = _Work(evaluator, subject, cases, chains_of(run, cases), seed, say, chosen_rule, measure, try_out, train_out)
    trees = work.trees(all_trees=all_layers) if inside and isinstance(subject.model, HasTrees) else None
    vote: Vote | None = None
    if trees is not None:
        layers, neurons, suspect, delta, rho = trees.layers, trees.neurons, trees.suspect, trees.delta, trees.rho
    else:
        ranked = worst if len(cases) < len(run) else 0  # cases that were not drawn at random
        layers, delta, rho, vote = work.layers(ranked) if inside else ((), None, None, None)  # type: ignore[assignment]
        suspect = suspect_of(layers, vote)
        neurons = work.neurons([one.layer for one in layers[1:-1] if all_layers or one.layer == suspect])
    alike = bool((figures.k == 1).all())
    attribution = work.attribution()
    labels = work.label_bits()
    # What may take long comes last: where time is over, everything else is there.
    origin = work.origin(labels, trainings, patience=None if retrain or trainings else patience, alike=alike)
    held = work.sets() if inside and sets and trees is None and not alike else None
    result = DebugResult(
        subject=subject.name,
        epsilon=evaluator.epsilon,
        partition=evaluator.partition,
        seed=seed,
        m=evaluator.m_in_table,
        cases=cases,
        worst=worst,
        k=figures.k,
        flips=figures.flips,
        accuracy=accuracy_of(subject.model, subject),
        layers=layers,
        suspect=suspect,
        delta=delta,
        rho=rho,
        neurons=neurons,
        attribution=attribution,
        origin=origin,
        notes=tuple(work.notes),
        seconds=time.perf_counter() - begin,
        regression=subject.schema.regression,
        identity=subject.identity.id,
        units="layers" if trees is None else "trees",
        options={
            "samples": samples,
            "all_layers": all_layers,
            "inside": inside,
            "retrain": retrain,
            "rule": chosen_rule,
            "sets": sets,
        },
        rule=chosen_rule,
        measure=measure if trees is None else "q_inf",
        vote=vote,
        sets=held,
        who=who,
        q_1=figures.q_1.astype(np.float64),
    )
    write_result(run, result)
    return result


def suspect_of(layers: tuple[LayerEffect, ...], vote: Vote | None) -> int | None:
    """The layer whose held neurons explain most bits of cases that chose none of them; else the one voted for."""
    known = {one.layer: one.explained.value for one in layers if one.explained is not None and one.explained.value > 0}
    voted = None if vote is None else vote.suspect
    return max(known, key=known.__getitem__) if known else voted


class _Work:
    """The parts of a debugging, each of which may have to say why it could not be done."""

    def __init__(
        self,
        evaluator: Evaluator,
        subject: Subject,
        cases: np.ndarray,
        chains: np.ndarray | None,
        seed: int,
        say: Stage,
        rule: Rule,
        measure: Measure,
        try_out: TryOut | None,
        train_out: TrainOut | None,
    ):
        self.rule, self.measure, self.try_out, self.train_out = rule, measure, try_out, train_out
        self.evaluator, self.subject, self.cases, self.seed, self.say = evaluator, subject, cases, seed, say
        self.chains = chains
        self.notes: list[str] = []

    def trees(self, *, all_trees: bool) -> TreeEffects:
        self.say("leaving out trees")
        rng = generator(self.seed, "debug", "trees")
        found = tree_effects(self.evaluator, self.subject, self.cases, all_trees=all_trees, rng=rng, say=self.say)
        self.notes += found.notes
        if self.measure != "q_inf":
            self.notes.append("Splits and trees are ranked by k, although the run lowers Q1.")
        return found

    def layers(self, ranked: int) -> tuple[tuple[LayerEffect, ...], np.ndarray, np.ndarray, Vote]:
        self.say("measuring layers")
        voting = generator(self.seed, "debug", "vote")
        scales = None
        if self.rule == "ours":
            rng, codes = generator(self.seed, "debug", "spread"), self.subject.table.codes
            count = max(50, SPREAD_ROWS // self.evaluator.m)
            scales = layer_scales(self.evaluator, codes[np.sort(rng.permutation(len(codes))[:count])])
        delta, widths = layer_distances(self.evaluator, self.cases, scales)
        if self.rule == "text":
            delta = delta * np.maximum(widths, 1)
            layers, vote = text_effects(delta, widths, voting)
            return layers, delta, amplification(delta, rule="text"), vote
        rho = amplification(delta, rule=self.rule)
        vote = vote_of(rho, voting, chosen=ranked if self.rule == "code" else 0, chains=self.chains)
        if self.rule == "code" and vote.close and vote.share is not None and vote.runner_up_share is not None:
            self.notes.append(
                f"The vote for layer {vote.suspect} is close: it has {percent(vote.share.value, 0)} of the cases, "
                f"layer {vote.runner_up} has {percent(vote.runner_up_share.value, 0)}; among cases drawn again, layer "
                f"{vote.suspect} wins {percent(vote.certainty, 0)} of the time."
            )
        layers = layer_effects(delta, rho, widths)
        return self._held(layers) if self.rule == "ours" else layers, delta, rho, vote

    def _held(self, layers: tuple[LayerEffect, ...]) -> tuple[LayerEffect, ...]:
        """The layers with what holding their neurons takes away, and with the votes of the paper's code."""
        if len(layers) > 3:
            plain, _ = layer_distances(self.evaluator, self.cases)
            votes = np.bincount(ballots_of(amplification(plain, rule="code")), minlength=len(layers))
            layers = tuple(
                replace(one, votes_code=int(votes[one.layer])) if one.role == "hidden" else one for one in layers
            )
        if not isinstance(self.subject.model, Network) or self.evaluator.by_vector:
            self.notes.append(
                "The suspect layer is the one that most cases vote for by ρ: to hold neurons of every layer needs a "
                "native network and one score."
            )
            return layers
        self.say("holding neurons of every layer")
        rng = generator(self.seed, "debug", "holds")
        about = (self.evaluator, self.subject, self.cases)
        held = layer_holds(*about, measure=self.measure, rng=rng, chains=self.chains)
        return tuple(
            replace(one, explained=held[one.layer].explained, held=held[one.layer].neurons)
            if one.layer in held
            else one
            for one in layers
        )

    def sets(self) -> NeuronSets | None:
        model = self.subject.model
        if not isinstance(model, Network) or self.evaluator.by_vector:
            self.notes.append(
                "The smallest set of neurons was not looked for: that needs a native network and one score."
            )
            return None
        rng, about = generator(self.seed, "debug", "sets"), (self.evaluator, self.subject, self.cases)
        try:
            return neuron_sets(*about, measure=self.measure, rng=rng, stage=self.say, chains=self.chains)
        except UsageError as error:  # whoever watches has ended it
            self.notes.append(f"The smallest set of neurons was not found: {error}")
            return None

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
            rule=self.rule,
            measure=self.measure,
            try_out=self.try_out,
            chains=self.chains,
        )
        if accuracy is None:
            labelled = self.subject.table.labels is not None
            why = "a score does not say which of several classes is decided" if labelled else "the table has no labels"
            why = "a regression has no accuracy" if self.subject.schema.regression else why
            self.notes.append(f"Accuracy is not known ({why}): every value that a neuron can take was kept.")
        elif not any(one.acd is not None for one in found):
            self.notes.append(f"No neuron can be both on and off within {percent(MAX_LOSS, 0)} of the accuracy.")
        return found

    def attribution(self) -> Attribution | None:
        self.say("attributing bits")
        count = len(self.subject.schema.protected)
        if count <= MAX_ATTRIBUTES:
            return attribute_bits(self.evaluator, self.cases)
        self.notes.append(f"Bits were not attributed: {count} protected attributes have too many subsets.")
        return None

    def origin(self, labels: LabelBits | None, trainings: int | None, *, patience: float | None, alike: bool) -> Origin:
        """The shares of data and training; where they cannot be known, one sentence that says why."""
        if alike or trainings == 0:
            why = "Nothing to explain: the twins of every case looked at are treated alike."
            return Origin((), why if alike else "Data or training was not asked: no model was trained again.", labels)
        usual = TRAININGS_SMALL if len(self.subject.table) <= SMALL_TABLE else TRAININGS_LARGE
        count, epochs = trainings or usual, None
        rows = len(self.subject.table.training())
        try:
            trainer = origin_trainer(self.subject)
            each = 0.0 if patience is None else self._expected(trainer, rows)
            if patience is None or count * each <= patience:
                return self._trained(labels, count, epochs)
            whole = f"{count} trainings take about {count * each:.0f} s of a core"
            if isinstance(trainer, NetworkTrainer):
                short = replace(trainer, epochs=quick_epochs(rows))
                if short.seconds(rows) < each:
                    epochs, each = short.epochs, short.seconds(rows)
            if QUICK_TRAININGS * each <= 2 * patience:  # whole ones are estimated on a slow core; these are soon over
                return self._trained(labels, QUICK_TRAININGS, epochs)
            why = f"Data or training was not run: {whole}; `fairbits debug RUN --retrain` makes them."
        except UsageError as error:
            why = f"Data or training cannot be told apart: {error}"
        return Origin((), why, labels)

    def _expected(self, trainer: Trainer, rows: int) -> float:
        """Seconds of one training, about. Of a network by its size, so that the same run always decides the same."""
        if isinstance(trainer, NetworkTrainer):
            return trainer.seconds(rows)
        self.say("telling how long trainings take")
        table, begin = self.subject.table.training(), time.perf_counter()
        # How an estimator's cost grows with its rows is not known: one whole training is timed.
        trainer.anew(table.codes, np.asarray(table.labels), 0)
        return time.perf_counter() - begin

    def _trained(self, labels: LabelBits | None, count: int, epochs: int | None) -> Origin:
        self.say(f"training {count} models anew")
        people, unseen = people_of(self.subject, self.evaluator.m, generator(self.seed, "debug", "origin", "people"))
        seeds = generator(self.seed, "debug", "origin", "seeds").integers(1, 2**31 - 10_000, count).tolist()
        trained = (self.train_out or train_here)(self.subject, people, seeds, epochs=epochs)
        scores = np.stack([one.scores for one in trained])
        own = self.evaluator.scores(people)
        shares = origin_shares(
            self.subject.schema,
            scores,
            own,
            valid=self.evaluator.valid_twins(people),
            rng=generator(self.seed, "debug", "origin"),
        )
        if all(np.array_equal(scores[0], one) for one in scores[1:]):
            self.notes.append(
                "The model's training draws no lots: trained again on the same rows it comes out the same, so all of "
                "what it makes of twins comes with the rows and the kind of model."
            )
        seconds, recipe = sum(one.seconds for one in trained), origin_trainer(self.subject).recipe
        return Origin(shares, "", labels, count, len(people), unseen, seconds, recipe, epochs)

    def label_bits(self) -> LabelBits | None:
        self.say("reading the labels")
        table = self.subject.table
        if table.labels is None:
            self.notes.append("The table has no labels: what they carry of the protected attributes cannot be said.")
        elif len(table) < MIN_ROWS or len(np.unique(table.labels)) < 2:
            self.notes.append(f"The table's {len(table)} labels are too few, or all the same, to say what they carry.")
        else:
            return label_bits(self.subject.schema, table, generator(self.seed, "debug", "labels"))
        return None
