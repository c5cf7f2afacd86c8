"""Proposals that change weights: neurons, shrunk inputs, blindness, further training, and their mixtures.

*Fine-tuning*: trained further on the rows of the table, either with found cases among them, each labelled by the
majority of its twins; or with a penalty on differences between the scores of twins, of rows and found cases alike (as
in GRFT). Afterwards the last bias is moved until as many rows as before get the favourable decision: training further
tends to give up on the rarer class.

*From scratch*, on small tables: a network of the same shape without protected inputs. A model that overfits a few
hundred rows is a poor teacher, and training on the labels costs seconds there. How long, and where the threshold lies,
is chosen by five-fold cross-validation *inside the training rows*; rows that are held out are never looked at. Random
starts move such small tables by a point or two, so several networks are trained, and one of the same shape learns what
they say on the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from fairbits.domain import DEFAULT_THRESHOLD, Codes, DecisionRule, Doubles, Encoding, Schema, twin_inputs
from fairbits.errors import CapabilityError
from fairbits.language import network_of
from fairbits.measure import Evaluator
from fairbits.models import Fitting, Network, refit
from fairbits.repair.choice import Planner
from fairbits.repair.judgement import Halves, Setting
from fairbits.repair.proposals.distil import near_people, protected_inputs, shrunk, without_weights
from fairbits.repair.proposals.neurons import BUDGET_USED, Bench, HeldSet, held_sets, singles
from fairbits.repair.records import Proposal, neurons_in_words
from fairbits.repair.writers.standalone import moved_odds
from fairbits.subject import balanced_accuracy, decided
from fairbits.text import percent

#: Found cases added for every row of the table: more would teach the network its own opinions.
CASES_PER_ROW = 0.5
UPDATES = 1_500
#: Found cases that pairs of twins are drawn from.
PAIRED_CASES = 20_000
#: Weight of the consistency penalty; a mild one where nothing was shrunk before, because a high one costs accuracy.
CONSISTENCY, MILD = 10.0, 3.0

Inputs = npt.NDArray[np.float32]


class Finetuning:
    """The training data of a network, made once: rows with their labels, cases with their majority, pairs of twins."""

    def __init__(self, network: Network, halves: Halves, setting: Setting, rng: np.random.Generator):
        schema, self._encoding = setting.subject.schema, setting.subject.encoding
        self._evaluator = setting.own.over_values
        self._protected = protected_inputs(schema, self._encoding)
        cases = halves.pool[: max(1, int(CASES_PER_ROW * len(halves.training.rows)))]
        self._rows, self._labels = self._encoding.encode(halves.training.rows), halves.training.labels
        anybody, twins = cases.copy(), self._evaluator.twins  # each under protected values drawn at random
        anybody[:, twins.columns] = twins.values[self._random_twins(cases, rng)]
        self._cases = self._encoding.encode(anybody)
        self._opinions = majority_labels(network, self._evaluator, cases)
        person = halves.training.rows[:1]  # the protected inputs of every twin, (m, protected inputs)
        self._values = self._encoding.encode_twins(person, twins)[0][:, self._protected]
        self._paired = (halves.training.rows, halves.pool[:PAIRED_CASES])
        self._paired_inputs = (self._rows, self._encoding.encode(self._paired[1]))
        self._threshold = setting.own.threshold
        self._share = favourable_share(network, self._rows, threshold=self._threshold)

    def trained(
        self,
        network: Network,
        rng: np.random.Generator,
        *,
        with_cases: bool = False,
        consistency: float = 0.0,
        blind: bool = False,
    ) -> Network:
        """The network, trained further on rows, deciding for as many of them as the original did.

        With cases among them, with a penalty on differences between twins, or with protected weights as they are.
        """
        lesson = self._rows, self._labels
        if with_cases:
            lesson = np.concatenate([self._rows, self._cases]), np.concatenate([self._labels, self._opinions])
        fitting = Fitting(UPDATES, consistency=consistency, whole=self._evaluator.by_vector)
        frozen = self._protected if blind else ()
        found = refit(network, *lesson, rng, fitting=fitting, pairs=self._pairs, frozen=frozen)
        return recentred(found, self._rows, self._share, threshold=self._threshold)

    def _pairs(self, rng: np.random.Generator, count: int) -> tuple[Inputs, Inputs]:
        """Two twins of one person each, half of them rows of the table and half of them found cases."""
        sizes = (count // 2, count - count // 2)
        drawn = [rng.integers(0, len(group), size) for group, size in zip(self._paired, sizes, strict=True)]
        one = np.concatenate([inputs[mine] for inputs, mine in zip(self._paired_inputs, drawn, strict=True)])
        people = np.concatenate([codes[mine] for codes, mine in zip(self._paired, drawn, strict=True)])
        other = one.copy()
        for side in (one, other):
            side[:, self._protected] = self._values[self._random_twins(people, rng)]
        return one, other

    def _random_twins(self, people: Codes, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """One twin of each person, of those that can exist."""
        valid = self._evaluator.valid_twins(people)
        if valid is None:
            return rng.integers(0, self._evaluator.m, len(people))
        return np.argmax(valid * (1 - rng.random(valid.shape)), axis=1)


def majority_labels(network: Network, evaluator: Evaluator, people: Codes) -> npt.NDArray[np.float64]:
    """The decision that the majority of each person's twins get: a class (the lower one at a tie), or the
    median value.
    """
    evaluator = evaluator.over_values
    found = np.empty(len(people))
    m = evaluator.m
    for rows, inputs in twin_inputs(evaluator.encoding, people, evaluator.twins):
        valid = evaluator.valid_twins(people[rows])
        there = np.ones((len(inputs) // m, m), np.bool_) if valid is None else valid
        if network.head == "linear":
            found[rows] = np.nanmedian(np.where(there, network.scores(inputs).reshape(-1, m), np.nan), axis=1)
            continue
        labels = np.where(there, np.asarray(decided(network, inputs, evaluator.schema)).reshape(-1, m), -1)
        found[rows] = (labels[:, :, None] == np.arange(network.classes)).sum(axis=1).argmax(axis=1)
    return found


def favourable_share(network: Network, inputs: Inputs, *, threshold: float = DEFAULT_THRESHOLD) -> float | None:
    """Share of rows that get the favourable decision."""
    rule = DecisionRule(2, network.favourable, threshold)
    return float(rule.favours(network.scores(inputs)).mean()) if network.classes == 2 else None


def recentred(
    network: Network, inputs: Inputs, share: float | None, *, threshold: float = DEFAULT_THRESHOLD
) -> Network:
    """The network with its last bias moved so that this share of the rows gets the favourable decision."""
    if share is None or not 0 < share < 1:
        return network
    logits = network.logits(inputs).astype(np.float64)
    margins = logits[:, 0] if network.head == "sigmoid" else logits[:, 1] - logits[:, 0]
    margins = margins if network.favourable == 1 else -margins
    shift = float(special.logit(threshold)) - float(np.quantile(margins, 1 - share))
    return _shifted(network, shift)


#: Tables of so many training rows are trained on anew; beyond, a model's own opinion is worth more than its rows.
FEWEST, MOST = 60, 5_000
FOLDS, STARTS = 5, 5
#: Updates that are tried.
LENGTHS = (50, 100, 200, 400, 800, 1600)
BATCH, RATE = 128, 2e-3
#: People near the rows about whom the mean of several networks is heard, and updates to learn it.
NEAR, MEAN_UPDATES = 4_000, 1_500
#: Thresholds that are tried, and how much accuracy one may cost for the sake of balanced accuracy.
THRESHOLDS, SPARED = 100, 0.005
_TINY = 1e-6


def trained_from_scratch(
    network: Network,
    schema: Schema,
    encoding: Encoding,
    rows: Codes,
    labels: Doubles,
    rng: np.random.Generator,
) -> Proposal:
    """A network of the same shape from random weights, blind, with what cross-validation says about it."""
    if schema.regression or len(schema.classes) != 2 or not FEWEST <= len(rows) <= MOST:
        raise CapabilityError(
            f"a network is trained anew for two classes and {FEWEST} to {MOST:,} training rows, and here are "
            f"{len(schema.classes)} classes and {len(rows):,} rows."
        )
    protected = protected_inputs(schema, encoding)

    def encoded(people: Codes) -> Inputs:
        found = np.asarray(encoding.encode(people), np.float32)
        found[:, protected] = 0
        return found

    inputs = encoded(rows)
    folds = np.empty(len(labels), np.int64)
    for label in np.unique(labels):  # each class is spread evenly
        mine = rng.permutation(np.flatnonzero(labels == label))
        folds[mine] = np.arange(len(mine)) % FOLDS

    def several(some: npt.NDArray[np.bool_], updates: int, scaled: bool, starts: int) -> list[Network]:
        lesson = inputs[some], labels[some]
        return [_fitted(network, *lesson, protected, rng, updates, scaled=scaled) for _ in range(starts)]

    def out_of_fold(updates: int, scaled: bool, starts: int) -> Doubles:
        out = np.empty(len(rows))
        for fold in range(FOLDS):
            kept = folds != fold
            out[~kept] = _mean(several(kept, updates, scaled, starts), inputs[~kept])
        return out

    def worth(tried: tuple[bool, int]) -> float:
        out = out_of_fold(tried[1], tried[0], 1)
        return float(np.mean(_quality(out, _best_shift(out, labels, schema), labels, schema)))

    scaled, updates = max(product((False, True), LENGTHS), key=worth)
    out = out_of_fold(updates, scaled, STARTS)
    shift = _best_shift(out, labels, schema)
    accuracy, balanced_accuracy = _quality(out, shift, labels, schema)
    trained = several(np.ones(len(rows), np.bool_), updates, scaled, STARTS)
    near = encoded(near_people(schema, rows, NEAR, rng))
    made = _distilled_mean(trained, np.concatenate([inputs, near]), protected, rng)
    words = (
        f"a network of the same shape without weights on protected inputs, taught the mean of {STARTS} that were "
        f"trained anew on the labels: {updates} updates, chosen by cross-validation on training rows "
        f"({percent(accuracy)} there, balanced {percent(balanced_accuracy)})"
    )
    return Proposal("refitted", words, _shifted(made, shift), shrink=1.0, retrained=True)


def _mean(networks: list[Network], inputs: npt.NDArray[np.float32]) -> Doubles:
    """What networks say on the mean."""
    return np.asarray(np.mean([one.scores(inputs) for one in networks], axis=0, dtype=np.float64))


def _distilled_mean(
    teachers: list[Network],
    inputs: npt.NDArray[np.float32],
    protected: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> Network:
    """One network that says what several say on the mean; it goes on from the one that is nearest to it.

    Small networks can start badly (ReLU neurons that are never on): such a one is far from the mean.
    """
    mean = _mean(teachers, inputs)
    first = min(teachers, key=lambda one: float(np.abs(one.scores(inputs) - mean).mean()))
    targets = DecisionRule(2, first.favourable, None).both(mean)
    fitting = Fitting(MEAN_UPDATES, batch=min(BATCH, len(inputs)), learning_rate=RATE)
    return without_weights(refit(first, inputs, targets, rng, fitting=fitting, frozen=protected), protected)


def _fitted(
    shape: Network,
    inputs: npt.NDArray[np.float32],
    labels: Doubles,
    protected: npt.NDArray[np.int64],
    rng: np.random.Generator,
    updates: int,
    *,
    scaled: bool,
) -> Network:
    """A network of this shape from random weights (He 2015), trained on labels.

    With ``scaled``, first weights are drawn for inputs in units of their spread, else for inputs as they are, where
    those with wide ranges count for more at the start.
    """
    weights = [rng.normal(0, np.sqrt(2 / w.shape[0]), w.shape) for w in shape.weights]
    biases = [np.zeros(b.shape) for b in shape.biases]
    if scaled:
        spread = inputs.std(axis=0, dtype=np.float64)
        weights[0] /= np.where(spread > 0, spread, 1.0)[:, None]
        biases[0] -= inputs.mean(axis=0, dtype=np.float64) @ weights[0]
    weights[0][protected] = 0
    fresh = replace(
        shape,
        weights=tuple(w.astype(np.float32) for w in weights),
        biases=tuple(b.astype(np.float32) for b in biases),
    )
    fitting = Fitting(updates, batch=min(BATCH, len(inputs)), learning_rate=RATE)
    learned = refit(fresh, inputs, labels.astype(np.int64), rng, fitting=fitting, frozen=protected)
    return without_weights(learned, protected)


def _best_shift(scores: Doubles, labels: Doubles, schema: Schema) -> float:
    """The shift of the log-odds with the best balanced accuracy, among those that cost next to no accuracy."""
    stated = DEFAULT_THRESHOLD if schema.rule.threshold is None else schema.rule.threshold
    levels = np.append(stated, np.quantile(scores, np.linspace(0, 1, THRESHOLDS + 1)[1:-1]))
    odds = special.logit(np.clip(levels, _TINY, 1 - _TINY))
    shifts = odds[0] - odds
    found = np.array([_quality(scores, float(shift), labels, schema) for shift in shifts])
    kept = np.flatnonzero(found[:, 0] >= found[:, 0].max() - SPARED)
    return float(min(shifts[kept[found[kept, 1] == found[kept, 1].max()]], key=abs))  # of equal ones the smallest move


def _quality(scores: Doubles, shift: float, labels: Doubles, schema: Schema) -> tuple[float, float]:
    """Accuracy and balanced accuracy of scores whose log-odds are moved."""
    right = schema.rule.decide(moved_odds(scores, shift, _TINY)) == labels
    return float(right.mean()), balanced_accuracy(right, labels)


def _shifted(network: Network, shift: float) -> Network:
    """The same network with the favourable class's log-odds moved: its last bias takes the shift up."""
    last = network.biases[-1].copy()
    if network.head == "softmax":
        last[network.favourable] += np.float32(shift)
    else:
        last += np.float32(shift if network.favourable == 1 else -shift)
    return replace(network, biases=(*network.biases[:-1], last))


SHARES = (0.25, 0.5, 0.75, 0.9)
#: Shares that are also tried together with sets of neurons, and before training.
MIXED_SHARES = (0.5, 0.75)
TRAINED_SHARES = (0.5, 0.9)
#: Sets of neurons that are tried in mixtures.
MIXED_SETS = 2


@dataclass(frozen=True, slots=True)
class Surgery:
    """Repairs of a native network; behind a frozen encoder its neurons alone. Other models show no weights."""

    name: str = "weights"

    def propose(self, planner: Planner) -> Iterator[Proposal]:
        """Everything that changes weights and is worth judging."""
        network: Any = planner.network
        subject, rows, inside = planner.setting.subject, planner.halves.training.rows, network_of(network)
        if inside is None:
            return
        sets: dict[str, HeldSet] = {}
        if len(inside.weights) > 1:
            planner.watch("looking at single neurons")
            bench = Bench(network, planner.halves.training, planner.setting)
            floor = bench.start.accuracy - BUDGET_USED * planner.budget
            found = singles(bench, floor)
            if planner.suspect is not None:
                suspects = singles(bench, floor, layer=planner.suspect)
                found |= {f"{name}-suspect": one for name, one in suspects.items()}
            if not planner.quick:
                planner.watch("looking for sets of neurons")
                sets = _named(held_sets(bench, floor))
            for name, one in {**found, **sets}.items():
                yield Proposal(name, neurons_in_words(one.dos), network.with_interventions(one.dos), one.dos)
        if inside is not network:  # no input of it is protected: words are
            return
        planner.watch("shrinking what protected inputs add")
        shares = {share: shrunk(network, subject.schema, subject.encoding, rows, share) for share in (*SHARES, 1.0)}
        for share in SHARES:
            name, words = _shrink_name(share), _shrink_words(share)
            yield Proposal(name, words, shares[share], shrink=share)
            for extra, one in list(sets.items())[-MIXED_SETS:] if share in MIXED_SHARES else ():
                mixed, both = shares[share].with_interventions(one.dos), f"{words}; {neurons_in_words(one.dos)}"
                yield Proposal(f"{name}+{extra}", both, mixed, one.dos, shrink=share)
        words = "protected inputs held at their mean, folded into the first bias"
        yield Proposal("blind", words, shares[1.0], shrink=1.0)
        if planner.retrain and not planner.quick:
            planner.watch("training from scratch without protected inputs")
            training = planner.halves.training
            with suppress(CapabilityError):  # large tables and regressions: the other repairs are what there is
                about = (subject.schema, subject.encoding, training.rows, training.labels)
                yield trained_from_scratch(network, *about, planner.leaf(98))
            yield from _finetuned(planner, network, shares)


def _finetuned(planner: Planner, original: Network, shares: Mapping[float, Network]) -> Iterator[Proposal]:
    generators = [np.random.default_rng(child) for child in planner.seed.spawn(4 + len(TRAINED_SHARES))]
    tuning = Finetuning(original, planner.halves, planner.setting, generators.pop())
    penalty = "with a penalty on differences between twins"
    alike, twins = f"trained further {penalty}", f"training {penalty}"
    opinions = "trained further with found cases, labelled by the majority of their twins"
    blind = "blind; then trained further, protected inputs staying without weight"
    tried: list[tuple[str, str, str, float, dict[str, Any]]] = [
        ("training with the found cases", "retrain", opinions, 0.0, {"with_cases": True}),
        (twins, "consistent", alike, 0.0, {"consistency": MILD}),
    ]
    for share in TRAINED_SHARES:
        name = f"{_shrink_name(share)}+consistent"
        words = f"{_shrink_words(share)}; then {alike}"
        tried.append((twins, name, words, share, {"consistency": CONSISTENCY}))
    tried.append(("training blind", "blind+retrain", blind, 1.0, {"blind": True}))
    for doing, name, words, share, how in tried:
        planner.watch(doing)
        network = tuning.trained(shares.get(share, original), generators.pop(), **how)
        yield Proposal(name, words, network, shrink=share, retrained=True)


def _named(held: Sequence[HeldSet]) -> dict[str, HeldSet]:
    """Sets by their size; several of one size get letters."""
    names: dict[str, HeldSet] = {}
    for one in held:
        base = f"neurons-{len(one.dos)}"
        name = next(base + letter for letter in ("", *"bcdefghijklmnopqrstuvwxyz") if base + letter not in names)
        names[name] = one
    return names


def _shrink_name(share: float) -> str:
    return f"shrink-{share * 100:.0f}"


def _shrink_words(share: float) -> str:
    return f"protected inputs moved {percent(share, 0)} of the way to their mean"
