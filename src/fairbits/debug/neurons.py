"""Where twins drift apart: distances between their outputs in every layer, and which layer widens them most.

Three rules say what a distance is, what a layer must outgrow, and which layer is the suspect:

``ours`` (the default)
    The suspect is where holding neurons takes most bits away (`neurons.layer_holds`): a cause, not a distance. Beside
    it, δ: every output counts in units of its own spread over the twins of the table's rows, so δ says how far apart
    twins are compared with how far apart people are. Layer 0 is the protected input; ρ is growth over the widest of all
    layers before. No figure depends on the units of the inputs, nor on those of a neuron's output.
``code``
    The rule of the paper's public code: outputs as they are, layers from the first hidden one on, and every hidden
    layer after the first may win the vote of the cases. What it prints as a layer's influence is the mean of each
    case's largest ρ, over cases drawn at random: so the worst fifth of our sample does not count for it. Rows of the
    table are other people, and give other figures.
``text``
    The paper's Algorithm 2 as it is printed: δ of a layer is the largest distance over cases and twins, not divided by
    the width; ρ is its growth over the layers before, from layer 0 on, whose δ is 0; the largest ρ names the layer. As
    nothing lies before the first layer, ρ is δ/ε1 there, and it is always that one. Accuracy may neither fall nor rise
    by more than ε2, the two values of a neuron are chosen among those, and the ACD is of Q∞.

Which neurons carry it: every neuron held at every value that it can take, and what becomes of k and accuracy.

The average causal difference (ACD) of a neuron lies between two values that are fixed beforehand, the paper's: its mean
over the data (on) and its minimum (off). k is not monotone in the value, so the whole curve is kept. Where a value is
chosen by looking (``best``), one half of the cases chooses and the other reports.

The smallest set of neurons, over all hidden layers, that explains most of the bits is the paper's Definition IV.3. A
set explains what goes when all of its neurons are held at once. Neurons are taken one at a time, each the one that
lowers the mean bits of one half of the cases most on top of those held already, at one of two values that are fixed
beforehand (its mean or its minimum over the data), as long as the accuracy stays within the loss allowed: a set that
switches the whole network off explains nothing. When most of the bits are gone, neurons that later ones have made
useless are given back. What is reported comes from the other half of the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairbits.debug.records import (
    FORMER_RULES,
    QUANTILES,
    RULES,
    Candidate,
    LayerEffect,
    NeuronEffect,
    NeuronSet,
    NeuronSets,
    Rule,
    Vote,
    ballots_of,
    halves,
)
from fairbits.domain import Codes, Doubles, with_stand_ins
from fairbits.engine import accuracies, widest
from fairbits.errors import CapabilityError, ModelError, OptionError, choose_from
from fairbits.measure import (
    Estimate,
    Evaluator,
    Measure,
    bootstrap_means,
    bounded_ratio,
    clustered_ratio,
    hold,
    rate_of,
    target_of,
)
from fairbits.models import Do, HasActivations, HasInterventions, Model, Network, require
from fairbits.randomness import sampled_rows
from fairbits.subject import Subject, scored_rows
from fairbits.text import percent

#: Keeps ρ finite where twins do not differ yet (ε1 of the paper).
SMALL = 1e-7
#: Twins run through the model at a time, and twins of rows that spreads are taken from.
LAYER_ROWS, SPREAD_ROWS = 32_768, 100_000
#: Resamples of the cases behind a vote's intervals.
VOTE_RESAMPLES = 2000


def check_rule(rule: str) -> Rule:
    """The rule of this name, which may be a former one."""
    known = FORMER_RULES.get(rule, rule)
    if known not in RULES:
        raise OptionError(f"rule {rule!r} is not known; {choose_from(str(rule), RULES)}")
    return known


def layer_distances(
    evaluator: Evaluator, people: Codes, scales: Sequence[Doubles] | None = None
) -> tuple[Doubles, tuple[int, ...]]:
    """δ of every case and layer, (cases, layers + 1), and the layers' widths; column 0 is the protected input.

    δ is the largest L1 distance between two twins' outputs, divided by the width. Twins that cannot exist do not count.
    """
    evaluator = evaluator.over_values
    pieces: list[Doubles] = []
    widths: tuple[int, ...] = ()
    for start in range(0, len(people), step := max(1, LAYER_ROWS // evaluator.m)):
        layers = _layers(evaluator, people[start : start + step])
        widths = tuple(layer.shape[2] for layer in layers)
        if scales is not None:
            layers = [_scaled(layer, scale) for layer, scale in zip(layers, scales, strict=True)]
        found = [widest(one, threads=evaluator.threads) for one in layers]
        pieces.append(np.column_stack(found) / np.maximum(widths, 1))
    return np.concatenate(pieces), widths


def layer_scales(evaluator: Evaluator, rows: Codes) -> tuple[Doubles, ...]:
    """The standard deviation of every output of every layer over the twins of some rows; layer 0 first."""
    evaluator = evaluator.over_values
    parts: list[list[Doubles]] = []
    first: list[Doubles] = []
    for start in range(0, len(rows), step := max(1, LAYER_ROWS // evaluator.m)):
        layers = _layers(evaluator, rows[start : start + step])
        flat = [one.reshape(-1, one.shape[2]).astype(np.float64) for one in layers]
        first = first or [one[0] for one in flat]  # differences from somebody: a large offset costs no digits
        moved = [one - somebody for one, somebody in zip(flat, first, strict=True)]
        parts.append([np.stack([one.sum(axis=0), (one**2).sum(axis=0)]) for one in moved])
    means = (np.sum(one, axis=0) / (len(rows) * evaluator.m) for one in zip(*parts, strict=True))
    return tuple(np.sqrt(np.maximum(square - total**2, 0.0)) for total, square in means)


def _layers(evaluator: Evaluator, people: Codes) -> list[npt.NDArray[np.float32]]:
    """What the protected inputs and every layer are for all twins, (people, m, width) each."""
    model, encoding, twins = evaluator.model, evaluator.encoding, evaluator.twins
    require(model, HasActivations, "measuring layers")
    protected = np.concatenate([encoding.parts[i].columns for i in twins.columns])
    inputs = with_stand_ins(encoding.encode_twins(people, twins), evaluator.valid_twins(people))
    outputs = model.activations(inputs.reshape(-1, encoding.width))  # type: ignore[attr-defined]
    shape = inputs.shape[:2]
    return [
        np.ascontiguousarray(inputs[:, :, protected]),
        *(np.asarray(layer, np.float32).reshape(*shape, -1) for layer in outputs),
    ]


def _scaled(layer: npt.NDArray[np.float32], scale: Doubles) -> npt.NDArray[np.float32]:
    """Differences from each person's first twin in units of the scale; outputs without a spread do not count."""
    moved = layer.astype(np.float64) - layer[:, :1]
    return np.ascontiguousarray(np.divide(moved, scale, out=np.zeros_like(moved), where=scale > 0).astype(np.float32))


def amplification(delta: Doubles, *, rule: Rule = "ours") -> Doubles:
    """ρ of every case and layer from the first layer on: growth over the widest layer before, relative to that."""
    if rule == "code" and delta.shape[1] < 4:
        raise CapabilityError(
            f"the rule of the paper's code compares a hidden layer with those before it, so it needs two of them; this "
            f"model has {max(0, delta.shape[1] - 2)}: leave --rule out."
        )
    if rule == "text":
        delta = np.column_stack([np.zeros(len(delta)), delta[:, 1:]])
    compared = delta[:, 1:-1] if rule == "code" else delta
    before = np.maximum.accumulate(compared, axis=1)[:, :-1]
    growth = (compared[:, 1:] - before) / (before + SMALL)
    return np.pad(growth, ((0, 0), (1, 1)), constant_values=np.nan) if rule == "code" else growth


def layer_effects(delta: Doubles, rho: Doubles, widths: tuple[int, ...]) -> tuple[LayerEffect, ...]:
    """One record per layer, with the votes of the cases."""
    votes = np.bincount(ballots_of(rho), minlength=delta.shape[1])
    votes[0] = 0
    growths = [None, *(None if np.isnan(one).any() else one for one in rho.T)]
    return tuple(
        LayerEffect(
            layer=layer,
            width=width,
            delta=float(delta[:, layer].mean()),
            rho=None if growth is None else float(growth.mean()),
            votes=int(votes[layer]),
            delta_quantiles=_quantiles(delta[:, layer]),
            rho_quantiles=None if growth is None else _quantiles(growth),
            role={0: "protected input", len(widths) - 1: "output"}.get(layer, "hidden"),
        )
        for layer, (width, growth) in enumerate(zip(widths, growths, strict=True))
    )


def text_effects(
    delta: Doubles, widths: tuple[int, ...], rng: np.random.Generator
) -> tuple[tuple[LayerEffect, ...], Vote]:
    """Layers by the paper's text, from distances that are not divided, and the one it names.

    How sure that is: the share of resamples of the cases whose largest distances name the same.
    """
    rho = amplification(delta, rule="text")
    largest = delta.max(axis=0, keepdims=True)
    growth = amplification(largest, rule="text")[0]
    layers = tuple(
        replace(one, delta=float(largest[0, one.layer]), rho=None if one.layer == 0 else float(growth[one.layer - 1]))
        for one in layer_effects(delta, rho, widths)
    )
    hidden = growth[:-1]
    if len(hidden) == 0:
        return layers, Vote(None, None, 0.0, None)
    drawn = rng.integers(0, len(delta), (VOTE_RESAMPLES // 10, len(delta)))
    again = [int(amplification(delta[one].max(axis=0, keepdims=True), rule="text")[0, :-1].argmax()) for one in drawn]
    suspect = int(hidden.argmax())
    found = Estimate(float(hidden[suspect]), float(hidden[suspect]), float(hidden[suspect]))
    return layers, Vote(suspect + 1, None, float(np.mean(np.array(again) == suspect)), found)


def vote_of(
    rho: Doubles, rng: np.random.Generator, *, chosen: int = 0, chains: npt.NDArray[np.int64] | None = None
) -> Vote:
    """Which layer has the most votes (the earlier one if equal), how sure that is, and its influence.

    The first ``chosen`` cases were not drawn at random, and do not count for the influence.
    """
    ballots, n = ballots_of(rho), len(rho)
    counts = np.bincount(ballots, minlength=rho.shape[1])[1:]  # of the hidden layers
    if len(counts) == 0 or counts.sum() == 0:
        return Vote(None, None, 0.0, None)
    # To draw cases again is to draw their votes again; cases of one chain are drawn together.
    if chains is None:
        drawn = rng.multinomial(n, counts / n, size=VOTE_RESAMPLES)
    else:
        present, place = np.unique(chains, return_inverse=True)
        votes = np.zeros((len(present), rho.shape[1]))
        np.add.at(votes, (place, ballots), 1)
        times = rng.multinomial(len(present), np.full(len(present), 1 / len(present)), size=VOTE_RESAMPLES)
        drawn = (times @ votes[:, 1:]).astype(np.int64)
    order = np.argsort(-counts, kind="stable")
    first = int(order[0])
    cast = ballots > 0
    start = chosen if chosen < n else 0
    whose = None if chains is None else chains[cast]
    second = int(order[1]) if len(order) > 1 and counts[order[1]] > 0 else None
    return Vote(
        suspect=first + 1,
        share=rate_of(ballots[cast] == first + 1, people=whose),
        certainty=float((drawn.argmax(axis=1) == first).mean()),
        influence=influence_of(rho[start:], rng, chains=None if chains is None else chains[start:]),
        runner_up=None if second is None else second + 1,
        runner_up_share=None if second is None else rate_of(ballots[cast] == second + 1, people=whose),
    )


def influence_of(rho: Doubles, rng: np.random.Generator, *, chains: npt.NDArray[np.int64] | None = None) -> Estimate:
    """The mean over people of each one's largest ρ, with a bootstrap interval."""
    largest = np.nanmax(rho[:, :-1], axis=1)
    return bootstrap_means(largest[:, None], rng, resamples=VOTE_RESAMPLES // 4, people=chains)[0]


def _quantiles(values: Doubles) -> tuple[float, ...]:
    return tuple(np.quantile(values, QUANTILES).tolist())


#: A value is a candidate if it costs at most this much accuracy (ε2 of the paper).
MAX_LOSS = 0.05
#: And it must leave this share of what the network gains over deciding the same for everybody: where classes are
#: uneven, the first rule alone would keep values that switch the whole network off (k = 1, and of no use).
MIN_GAIN = 0.1
#: The two values that an ACD lies between: the neuron on and off.
ACTIVE, INACTIVE = "mean", "min"
#: Rows that the neurons' values are taken from, at most; and how many run through the model at a time.
MAX_ROWS, ROWS = 100_000, 16_384
STATISTICS = ("zero", "min", "max", "mean", "mean-sd", "mean+sd", "mean-2sd", "mean+2sd")
NAMES = (*STATISTICS, *(f"q{round(100 * level):02d}" for level in QUANTILES))


@dataclass(frozen=True, slots=True, eq=False)
class Tried:
    """What each intervention does, in their order; ``target`` is what the run lowers, k or bits."""

    accuracy: Doubles
    k: npt.NDArray[np.int32]  # (interventions, cases), as target
    id_rate: Doubles
    target: npt.NDArray[np.float32]


class TryOut(Protocol):
    """Whoever holds neurons at values: this process, or workers."""

    def __call__(
        self,
        evaluator: Evaluator,
        subject: Subject,
        cases: Codes,
        dos: list[Do],
        *,
        judged: bool,
        measure: Measure = "q_inf",
    ) -> Tried:
        """What each intervention does, in their order."""


def neuron_effects(
    evaluator: Evaluator,
    subject: Subject,
    cases: Codes,
    layers: Sequence[int],
    *,
    rng: np.random.Generator,
    rule: Rule = "ours",
    measure: Measure = "q_inf",
    try_out: TryOut | None = None,
    chains: npt.NDArray[np.int64] | None = None,
) -> tuple[tuple[NeuronEffect, ...], float | None]:
    """Every neuron of the layers (1 is the first), and the accuracy with nothing held (None: not known)."""
    codes = subject.table.codes
    codes = codes[sampled_rows(len(codes), MAX_ROWS, rng)]
    values = values_of(subject, codes, [layer - 1 for layer in layers])
    named = [
        (name, Do(layer - 1, neuron, float(table[place, neuron])))
        for layer, table in zip(layers, values, strict=True)
        for neuron in range(table.shape[1])
        for place, name in enumerate(NAMES)
    ]
    ranges = {layer - 1: table[1:3] for layer, table in zip(layers, values, strict=True)}
    named = [(name, do) for name, do in named if can_hold(subject.model, do, ranges[do.layer][:, do.neuron])]
    distinct = list(dict.fromkeys(do for _, do in named))
    baseline = accuracy_of(subject.model, subject)
    tried = (try_out or try_here)(evaluator, subject, cases, distinct, judged=baseline is not None, measure=measure)
    where = {do: number for number, do in enumerate(distinct)}
    floor = -np.inf if baseline is None else _floor(baseline, subject, rule)
    ceiling = np.inf if baseline is None or rule != "text" else baseline + MAX_LOSS
    before: Any = np.asarray(target_of(evaluator.evaluate(cases), measure), np.float64)
    if rule == "text" and measure == "q_inf":  # of bits, whatever the run lowers
        before, tried = np.log2(before), replace(tried, target=np.log2(tried.k).astype(np.float32))
    clusters: Any = np.arange(len(cases)) if chains is None else chains
    found = []
    for (layer, neuron), group in groupby(named, key=lambda pair: (pair[1].layer, pair[1].neuron)):
        held = {name: where[do] for name, do in group}
        candidates = {
            name: candidate_of(
                name,
                distinct[number].value,
                None if np.isnan(tried.accuracy[number]) else float(tried.accuracy[number]),
                (floor, ceiling),
                tried.k[number],
                None if subject.schema.regression else float(tried.id_rate[number]),
                tried.target[number] if measure == "q_1" else None,
            )
            for name, number in held.items()
        }
        active, inactive = candidates.get(ACTIVE), candidates.get(INACTIVE)
        if rule == "text":
            active, inactive = _kept_pair(list(candidates.values()), candidates.get(ACTIVE))
        effect = NeuronEffect(layer + 1, neuron, None, active, inactive, tuple(candidates.values()))
        if active and inactive and active.kept and inactive.kept and active.value != inactive.value:
            on, off = (tried.target[held[one.statistic]].astype(np.float64) for one in (active, inactive))
            # The paper's rules look at every case once. Cases of one chain differ in little: what is drawn is chains.
            (choosing, reporting), (first, second), (_, whose) = (
                halves(one) if rule == "ours" else (one, one) for one in (on - off, before, clusters)
            )
            ratio, chosen = clustered_ratio(reporting, second, whose), float(choosing.mean() / first.mean())
            effect = replace(effect, acd=ratio.value, acd_choosing=chosen, acd_low=ratio.low, acd_high=ratio.high)
        found.append(effect)
    return tuple(found), baseline


def _kept_pair(tried: list[Candidate], mean: Candidate | None) -> tuple[Candidate | None, Candidate | None]:
    """The paper's two values among those that keep the accuracy: an active one, the nearest to the neuron's mean, and
    the one nearest to 0.
    """
    kept, middle = [one for one in tried if one.kept], 0.0 if mean is None else mean.value
    active = min((one for one in kept if one.value > 0), key=lambda one: abs(one.value - middle), default=None)
    return active, min(kept, key=lambda one: abs(one.value), default=None)


def candidate_of(
    statistic: str,
    value: float,
    accuracy: float | None,
    within: tuple[float, float],
    k: npt.NDArray[np.int32],
    id_rate: float | None,
    bits: npt.NDArray[np.float32] | None = None,
) -> Candidate:
    """Something held at a value, by the k (and bits, where the run lowers those) of every case under it."""
    by_k, lowered = (
        [float(half.mean(dtype=np.float64)) for half in halves(one)] for one in (k, k if bits is None else bits)
    )
    return Candidate(
        statistic=statistic,
        value=value,
        accuracy=accuracy,
        kept=accuracy is None or within[0] <= accuracy <= within[1],
        k_mean=float(k.mean()),
        id_rate=id_rate,
        k_choosing=by_k[0],
        k_reported=by_k[1],
        q_1_mean=None if bits is None else float(bits.mean(dtype=np.float64)),
        choosing=lowered[0],
        reported=lowered[1],
    )


def _floor(baseline: float, subject: Subject, rule: Rule) -> float:
    """The least accuracy that counts as kept; the paper's code rounds accuracies to three digits before it compares."""
    if rule == "text":
        return baseline - MAX_LOSS
    return round(baseline, 3) - MAX_LOSS - 5e-4 if rule == "code" else accuracy_floor(baseline, subject)


def accuracy_floor(baseline: float, subject: Subject) -> float:
    """The least accuracy that counts as kept.

    It is ``MAX_LOSS`` below the baseline, or higher where that would leave less than ``MIN_GAIN`` of what the model
    gains over deciding for the majority.
    """
    floor = baseline - MAX_LOSS
    labels = np.asarray(subject.table.labels).astype(np.int64)
    majority = float(np.bincount(labels).max() / len(labels))
    return max(floor, majority + MIN_GAIN * (baseline - majority)) if baseline > majority else floor


def accuracy_of(model: Model, subject: Subject) -> float | None:
    """The share of the table's rows decided as labelled; None where there are no labels or no decisions."""
    table, schema = subject.table, subject.schema
    if table.labels is None or schema.regression:
        return None
    _, decisions = scored_rows(model, subject.encoding, schema, table)
    # A score may not say which of several classes is decided.
    return None if decisions is None else int((decisions == table.labels).sum()) / len(table)


def values_of(subject: Subject, codes: Codes, layers: Sequence[int]) -> list[npt.NDArray[np.float32]]:
    """The candidate values of every neuron of each layer, (values, width), in the order of NAMES."""
    model: Any = subject.model
    pieces = []
    for start in range(0, len(codes), ROWS):
        outputs = model.activations(subject.encoding.encode(codes[start : start + ROWS]))
        pieces.append([np.asarray(outputs[layer], dtype=np.float32) for layer in layers])
    return [_statistics(np.concatenate(layer)) for layer in zip(*pieces, strict=True)]


def _statistics(outputs: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    mean, spread = outputs.mean(axis=0, dtype=np.float64), outputs.std(axis=0, dtype=np.float64)
    around = [mean + factor * spread for factor in (0, -1, 1, -2, 2)]
    rows = [np.zeros_like(mean), outputs.min(axis=0), outputs.max(axis=0), *around]
    return np.concatenate([np.stack(rows), np.quantile(outputs, QUANTILES, axis=0)]).astype(np.float32)


def can_hold(model: Model, do: Do, seen: npt.NDArray[np.float32]) -> bool:
    """Whether the neuron's activation can put out the value; of a foreign model only the values seen are known to."""
    if not isinstance(model, Network):
        return bool(seen[0] <= do.value <= seen[1])
    try:
        model.holding_bias(do)
    except ModelError:
        return False
    return True


def try_here(
    evaluator: Evaluator,
    subject: Subject,
    cases: Codes,
    dos: list[Do],
    *,
    judged: bool,
    measure: Measure = "q_inf",
) -> Tried:
    """What every intervention does to the cases, and to the accuracy where that is known."""
    model = subject.model
    held = hold(evaluator, cases, dos, bits=measure == "q_1")
    single = held.k if held.q_1 is None else held.q_1
    kept = held_accuracies(model, subject, dos, evaluator) if judged else np.full(len(dos), np.nan)
    return Tried(kept, held.k, held.id_rate, single.astype(np.float32))


def held_accuracies(model: Model, subject: Subject, dos: Sequence[Do], evaluator: Evaluator) -> Doubles:
    """The share of the table's rows decided as labelled under each intervention alone; NaN where it is not known."""
    table = subject.table
    if isinstance(model, Network) and table.labels is not None and model.head != "linear":
        return accuracies(
            model,
            subject.encoding,
            table.codes,
            table.labels,
            dos,
            threshold=evaluator.threshold,
            threads=evaluator.threads,
        )
    if not isinstance(model, HasInterventions):
        return np.full(len(dos), np.nan)
    known = [accuracy_of(model.with_interventions([do]), subject) for do in dos]
    return np.array([np.nan if one is None else one for one in known], dtype=np.float64)


#: Most of the bits: more than half of them.
MOST = 0.5
#: Neurons of one layer that are held together to see what the layer is worth.
MAX_HELD = 3
#: Neurons in a set, at most, and the share of the bits that one more must explain.
MAX_NEURONS, LEAST = 12, 0.005
#: Twins of the half that chooses, and rows, that a step looks at; and people of it at least.
TWINS, FEWEST_CASES, SET_ROWS = 24_000, 100, 5_000
SET_RESAMPLES = 1000


def neuron_sets(
    evaluator: Evaluator,
    subject: Subject,
    cases: Codes,
    *,
    measure: Measure,
    rng: np.random.Generator,
    stage: Callable[[str], None] | None = None,
    chains: npt.NDArray[np.int64] | None = None,
) -> NeuronSets:
    """The size–effect curve of sets of neurons, and the smallest set that explains most of the bits."""
    search = _Search(evaluator, subject, cases, measure, rng, chains)
    curve: list[NeuronSet] = []
    for dos, explained in search.growing(MAX_NEURONS):
        curve.append(search.judged(dos, explained))
        if stage is not None:
            share = percent(explained, 0)
            stage(f"looking for the smallest set of neurons: {len(dos)} held, {share} of the bits explained")
    minimal = next((one for one in curve if _enough(one)), None)
    return NeuronSets(tuple(curve), None if minimal is None else search.pruned(minimal), MOST)


def layer_holds(
    evaluator: Evaluator,
    subject: Subject,
    cases: Codes,
    *,
    measure: Measure,
    rng: np.random.Generator,
    chains: npt.NDArray[np.int64] | None = None,
) -> dict[int, NeuronSet]:
    """By hidden layer (from 1): up to three of its neurons that take most bits away when they are held, and what that
    takes from the half of the cases that chose none of them. A layer none of whose neurons does is left out.
    """
    search = _Search(evaluator, subject, cases, measure, rng, chains)
    layers = sorted({do.layer for do in search.tried})
    grown = {layer: list(search.growing(MAX_HELD, layer)) for layer in layers}
    return {layer + 1: search.judged(*steps[-1]) for layer, steps in grown.items() if steps}


class _Search:
    """The two halves of the cases, the rows, and the questions about sets."""

    def __init__(
        self,
        evaluator: Evaluator,
        subject: Subject,
        cases: Codes,
        measure: Measure,
        rng: np.random.Generator,
        chains: npt.NDArray[np.int64] | None,
    ):
        self.evaluator, self.measure, self.rng = evaluator, measure, rng
        network = subject.model
        assert isinstance(network, Network)  # noqa: S101 - checked by whoever calls
        self.network = network
        choosing, self.reporting = halves(cases)
        self.chains = None if chains is None else halves(chains)[1]
        self.choosing = choosing[:: max(1, len(choosing) // max(FEWEST_CASES, TWINS // evaluator.m))]
        self.before = [self._bits(evaluator, people) for people in (self.choosing, self.reporting)]
        rows = np.sort(rng.permutation(len(subject.table))[:SET_ROWS])
        self.subject = replace(subject, table=subject.table.rows(rows))
        baseline = accuracy_of(network, self.subject)
        self.floor = -np.inf if baseline is None else accuracy_floor(baseline, self.subject)
        idle = min(one.mean() for one in self.before) <= 0  # there are no bits that neurons could explain
        self.tried = [] if idle else self._candidates()

    def _candidates(self) -> list[Do]:
        hidden = range(len(self.network.weights) - 1)
        tables = values_of(self.subject, self.subject.table.codes[: 4 * ROWS], hidden)
        places = [NAMES.index(name) for name in (ACTIVE, INACTIVE)]
        found = [
            Do(layer, neuron, float(table[place, neuron]))
            for layer, table in zip(hidden, tables, strict=True)
            for neuron in range(table.shape[1])
            for place in places
            if table[1, neuron] < table[2, neuron]  # one that never moves carries nothing
        ]
        return [do for do in dict.fromkeys(found) if can_hold(self.network, do, np.zeros(2, np.float32))]

    def _bits(self, evaluator: Evaluator, people: Codes) -> Doubles:
        found = evaluator.evaluate(people)
        return (found.q_inf if self.measure == "q_inf" else found.q_1).astype(np.float64)

    def growing(self, most: int, layer: int | None = None) -> Iterator[tuple[tuple[Do, ...], float]]:
        """Sets with one neuron more (of a layer) each time, and what they explain on the half that chooses."""
        dos: tuple[Do, ...] = ()
        explained = 0.0
        while len(dos) < most:
            taken = {(do.layer, do.neuron) for do in dos}
            left = [do for do in self.tried if (do.layer, do.neuron) not in taken and layer in (None, do.layer)]
            if not left:
                return
            network = self.network.with_interventions(dos)
            held = hold(self.evaluator.with_model(network), self.choosing, left, bits=self.measure == "q_1")
            bits = np.log2(held.k).mean(axis=1) if held.q_1 is None else held.q_1.mean(axis=1, dtype=np.float64)
            shares = 1 - bits / self.before[0].mean()
            accuracy = held_accuracies(network, self.subject, left, self.evaluator)
            fine = np.flatnonzero((np.isnan(accuracy) | (accuracy >= self.floor)) & (shares >= explained + LEAST))
            if len(fine) == 0:
                if not dos:
                    yield from self._together({do.layer for do in left})
                return
            best = int(fine[np.argmax(shares[fine])])
            dos, explained = (*dos, left[best]), float(shares[best])
            yield dos, explained

    def _together(self, layers: set[int]) -> list[tuple[tuple[Do, ...], float]]:
        """The set that explains most, of those neurons of one layer that carry most of the difference of twins.

        Where several carry the same, twins are told apart until the last of them is held.
        """
        outputs = _layers(self.evaluator, self.choosing)
        found = []
        for layer in layers:
            apart, behind = np.ptp(outputs[layer + 1], axis=1).mean(axis=0), np.abs(self.network.weights[layer + 1])
            ranked = np.argsort(-apart * behind.sum(axis=1), kind="stable")[:MAX_HELD].tolist()
            values = [[do for do in self.tried if (do.layer, do.neuron) == (layer, neuron)] for neuron in ranked]
            sets = (dos for count in range(2, len(values) + 1) for dos in product(*values[:count]))
            found += [(dos, self._share(dos)) for dos in sets]
        taking = [(dos, share) for dos, share in found if share >= LEAST]
        accuracies = [accuracy_of(self.network.with_interventions(dos), self.subject) for dos, _ in taking]
        kept = [one for one, accuracy in zip(taking, accuracies, strict=True) if self._keeps(accuracy)]
        return [max(kept, key=lambda one: one[1])] if kept else []

    def _keeps(self, accuracy: float | None) -> bool:
        return accuracy is None or accuracy >= self.floor

    def judged(self, dos: tuple[Do, ...], choosing: float) -> NeuronSet:
        """A set on the half of the cases that chose none of it."""
        network = self.network.with_interventions(dos)
        after = self._bits(self.evaluator.with_model(network), self.reporting)
        high = self.evaluator.bits_limit
        left = bounded_ratio(after, self.before[1], self.rng, high=high, resamples=SET_RESAMPLES, people=self.chains)
        return NeuronSet(dos, left.remainder, choosing, accuracy_of(network, self.subject))

    def pruned(self, found: NeuronSet) -> NeuronSet:
        """The same without neurons that later ones have made useless: without them most of the bits are still gone."""
        while len(found.neurons) > 1:
            smaller = [found.neurons[:i] + found.neurons[i + 1 :] for i in range(len(found.neurons))]
            shares = [self._share(dos) for dos in smaller]
            best = int(np.argmax(shares))
            fewer = self.judged(smaller[best], shares[best])
            if not _enough(fewer) or not self._keeps(fewer.accuracy):
                return found
            found = fewer
        return found

    def _share(self, dos: Sequence[Do]) -> float:
        network = self.network.with_interventions(dos)
        return float(1 - self._bits(self.evaluator.with_model(network), self.choosing).mean() / self.before[0].mean())


def _enough(found: NeuronSet) -> bool:
    """Whether both halves of the cases say that most of the bits are explained."""
    return min(found.explained_choosing, found.explained.value) > MOST
