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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from fairbits.debug.records import FORMER_RULES, QUANTILES, RULES, Floats, LayerEffect, Rule, Vote, ballots_of
from fairbits.domain import Codes, with_stand_ins
from fairbits.engine import widest
from fairbits.errors import CapabilityError, OptionError, choose_from
from fairbits.measure import Estimate, Evaluator, bootstrap_means, rate_of
from fairbits.models import HasActivations, require

#: Keeps ρ finite where twins do not differ yet (ε1 of the paper).
SMALL = 1e-7
#: Twins run through the model at a time, and twins of rows that spreads are taken from.
ROWS, SPREAD_ROWS = 32_768, 100_000
#: Resamples of the cases behind a vote's intervals.
RESAMPLES = 2000


def check_rule(rule: str) -> Rule:
    """The rule of this name, which may be a former one."""
    known = FORMER_RULES.get(rule, rule)
    if known not in RULES:
        raise OptionError(f"rule {rule!r} is not known; {choose_from(str(rule), RULES)}")
    return known


def layer_distances(
    evaluator: Evaluator, people: Codes, scales: Sequence[Floats] | None = None
) -> tuple[Floats, tuple[int, ...]]:
    """δ of every case and layer, (cases, layers + 1), and the layers' widths; column 0 is the protected input.

    δ is the largest L1 distance between two twins' outputs, divided by the width. Twins that cannot exist do not count.
    """
    evaluator = evaluator.over_values
    pieces: list[Floats] = []
    widths: tuple[int, ...] = ()
    for start in range(0, len(people), step := max(1, ROWS // evaluator.m)):
        layers = _layers(evaluator, people[start : start + step])
        widths = tuple(layer.shape[2] for layer in layers)
        if scales is not None:
            layers = [_scaled(layer, scale) for layer, scale in zip(layers, scales, strict=True)]
        found = [widest(one, threads=evaluator.threads) for one in layers]
        pieces.append(np.column_stack(found) / np.maximum(widths, 1))
    return np.concatenate(pieces), widths


def layer_scales(evaluator: Evaluator, rows: Codes) -> tuple[Floats, ...]:
    """The standard deviation of every output of every layer over the twins of some rows; layer 0 first."""
    evaluator = evaluator.over_values
    parts: list[list[Floats]] = []
    first: list[Floats] = []
    for start in range(0, len(rows), step := max(1, ROWS // evaluator.m)):
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


def _scaled(layer: npt.NDArray[np.float32], scale: Floats) -> npt.NDArray[np.float32]:
    """Differences from each person's first twin in units of the scale; outputs without a spread do not count."""
    moved = layer.astype(np.float64) - layer[:, :1]
    return np.ascontiguousarray(np.divide(moved, scale, out=np.zeros_like(moved), where=scale > 0).astype(np.float32))


def amplification(delta: Floats, *, rule: Rule = "ours") -> Floats:
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


def layer_effects(delta: Floats, rho: Floats, widths: tuple[int, ...]) -> tuple[LayerEffect, ...]:
    """One record per layer, with the votes of the cases."""
    votes = np.bincount(ballots_of(rho), minlength=delta.shape[1])
    votes[0] = 0
    found = []
    for layer, width in enumerate(widths):
        growth = rho[:, layer - 1] if layer and not np.isnan(rho[:, layer - 1]).any() else None
        found.append(
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
        )
    return tuple(found)


def text_effects(
    delta: Floats, widths: tuple[int, ...], rng: np.random.Generator
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
    drawn = rng.integers(0, len(delta), (RESAMPLES // 10, len(delta)))
    again = [int(amplification(delta[one].max(axis=0, keepdims=True), rule="text")[0, :-1].argmax()) for one in drawn]
    suspect = int(hidden.argmax())
    found = Estimate(float(hidden[suspect]), float(hidden[suspect]), float(hidden[suspect]))
    return layers, Vote(suspect + 1, None, float(np.mean(np.array(again) == suspect)), found)


def vote_of(
    rho: Floats, rng: np.random.Generator, *, chosen: int = 0, chains: npt.NDArray[np.int64] | None = None
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
        drawn = rng.multinomial(n, counts / n, size=RESAMPLES)
    else:
        present, place = np.unique(chains, return_inverse=True)
        votes = np.zeros((len(present), rho.shape[1]))
        np.add.at(votes, (place, ballots), 1)
        times = rng.multinomial(len(present), np.full(len(present), 1 / len(present)), size=RESAMPLES)
        drawn = (times @ votes[:, 1:]).astype(np.int64)
    order = np.argsort(-counts, kind="stable")
    first, cast, start = int(order[0]), ballots > 0, chosen if chosen < n else 0
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


def influence_of(rho: Floats, rng: np.random.Generator, *, chains: npt.NDArray[np.int64] | None = None) -> Estimate:
    """The mean over people of each one's largest ρ, with a bootstrap interval."""
    largest = np.nanmax(rho[:, :-1], axis=1)
    return bootstrap_means(largest[:, None], rng, resamples=RESAMPLES // 4, people=chains)[0]


def _quantiles(values: Floats) -> tuple[float, ...]:
    return tuple(np.quantile(values, QUANTILES).tolist())
