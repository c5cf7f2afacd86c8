"""Where the bits come from: attributes, layers and neurons or trees and splits, data or training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairbits.blocks import (
    Bar,
    Block,
    Drawing,
    Fold,
    Heading,
    Paragraph,
    TableBlock,
    TableColumn,
    between,
    change,
    figure,
    label,
    paragraphs,
    share,
    shown,
    whole_percent,
)
from fairbits.measure import symbol_of
from fairbits.report.sections.affected import who_blocks
from fairbits.text import number, percent, signed

if TYPE_CHECKING:
    from fairbits.debug import Attribution, DebugResult, NeuronEffect, NeuronSet, Origin, Vote

#: Sets of attributes, trees, splits and neurons in tables; the run's files have all of them.
MAX_SETS, MAX_TREES, MAX_SPLITS, MAX_NEURONS = 12, 10, 10, 12
#: What is said of a model that has nothing inside, such as a logistic regression.
ONE_LAYER = "One layer leads from the inputs straight to the score: there is no layer in between to look into."
_RULES = {
    "code": "By the rule of the paper's public code: ρ says how much a hidden layer widens the distance between twins over "
    "the widest hidden layer before it. The suspect layer does so most in the largest share of cases.",
    "text": "By the paper's Algorithm 2 to the letter: δ is the largest distance between twins over all cases, ρ its growth "
    "over the layers before, of which there is none before the first: so that one is the suspect.",
    "ours": "The suspect is the layer where holding up to three neurons, within the loss of accuracy allowed, takes most "
    "bits away from cases that did not choose them. Beside it: δ, how far apart twins are in units of how far apart people "
    "are; ρ, how much a layer widens that; and each case's vote for the largest ρ.",
}


def debug_blocks(found: DebugResult) -> Iterator[Block]:
    """Everything that debugging found: who, then through what, attributes first."""
    drawn = number(len(found.cases) - found.worst)
    flips = "" if found.id_rate is None else f"; the decision flips for {percent(found.id_rate)} of them"
    yield Paragraph(
        f"{number(len(found.cases))} cases were looked at ({number(found.worst)} of the worst, {drawn} drawn at random): "
        f"mean k {number(found.k_mean, 2)}{flips}.",
        tone="lead",
    )
    if found.who is not None:
        yield Heading("Who, in words", "statistical")
        yield from who_blocks(found.who)
    if found.attribution is not None:
        yield Heading("Which attribute", "exact")
        yield from attribute_blocks(found.attribution)
    yield Heading("Data or training", "statistical")
    yield from origin_blocks(found)
    if found.layers:
        yield Heading("Inside the trees" if found.units == "trees" else "Inside the network", "exact")
        yield from layer_blocks(found)


def attribute_blocks(found: Attribution) -> Iterator[Block]:
    """Shapley shares of the protected attributes, and bits when just some of them vary."""
    alone = {subset.attributes[0]: subset.q_inf for subset in found.subsets if len(subset.attributes) == 1}
    total = sum(found.q_inf.values()) or 1.0
    rows = [
        (name, found.q_inf[name] / total, Bar(found.q_inf[name] / total), found.q_inf[name], alone[name])
        for name in sorted(found.attributes, key=lambda name: -found.q_inf[name])
    ]
    columns = [label("attribute"), share("share", 0), label(""), figure("Shapley bits", 2), figure("bits alone", 2)]
    bits = number(found.subsets[-1].q_inf, 2)
    caption = f"Decisions about these cases use {bits} bits on average; Shapley shares split them"
    yield TableBlock(columns, rows, caption)
    together = [subset for subset in found.subsets if len(subset.attributes) > 1]
    if len(together) > 1:
        lines = [(" + ".join(one.attributes), one.q_inf, one.q_1) for one in together[:MAX_SETS]]
        heads = [label("attributes"), figure("Q∞", 2), figure("Q1", 2)]
        yield Fold("Bits when just these vary", [TableBlock(heads, lines)])


def origin_blocks(found: DebugResult) -> Iterator[Block]:
    """How much of what tells twins apart comes with the data, and how much with this single training."""
    origin = found.origin
    yield Paragraph(origin.words.replace("`", ""))
    if len(origin.shares) > 1:
        rows = [
            (
                " and ".join(one.attributes),
                one.shared.value,
                Bar(one.shared.value),
                (one.shared.low, one.shared.high),
                one.single.value,
                None if one.own is None else one.own.value,
            )
            for one in origin.shares
        ]
        columns = [label("attributes"), share("comes with the data"), label(""), between("95 %", percent)]
        columns += [share("with the single training"), share("this model agrees")]
        yield TableBlock(columns, rows, "Of the differences between twins' scores; intervals over people and trainings")
    yield from paragraphs(_labels(origin))
    yield from paragraphs(found.notes, "note")


def _labels(origin: Origin) -> Iterator[str]:
    if origin.labels is not None:
        bits = origin.labels.bits
        carried = "tell" if origin.labels.present else "tell nothing measurable:"
        yield (
            f"Given the rest, the protected attributes {carried} {number(bits.value, 4)} bits a row "
            f"({number(bits.low, 4)} to {number(bits.high, 4)}) about the label."
        )


def layer_blocks(found: DebugResult) -> Iterator[Block]:
    """Layers and neurons, or trees and splits."""
    if not has_inside(found):
        yield Paragraph(ONE_LAYER, tone="lead")
    else:
        yield from _trees(found) if found.units == "trees" else _network(found)


def has_inside(found: DebugResult) -> bool:
    """Whether there is anything between the inputs and the score: a hidden layer, or trees."""
    return found.units == "trees" or sum(layer.layer > 0 for layer in found.layers) > 1


def suspects_of(found: DebugResult) -> list[NeuronEffect]:
    """The neurons of the suspect layer; of trees, every split and tree that was held."""
    return [one for one in found.neurons if found.units == "trees" or one.layer == found.suspect]


def foremost(found: DebugResult) -> list[NeuronEffect]:
    """The splits and trees that lower mean k most when they are held."""
    known = [one for one in found.neurons if one.acd is not None and (one.acd_choosing or 0.0) > 0]
    return sorted(known, key=lambda one: -(one.acd_choosing or 0.0))[:MAX_SPLITS]


def split_name(one: NeuronEffect) -> str:
    """A split or a tree in a few words."""
    return f"tree {one.layer}: {one.label}" if one.layer else f"all trees: {one.label}"


def _network(found: DebugResult) -> Iterator[Block]:
    k = symbol_of(found.measure)
    allowed = "" if found.regression else " within the loss of accuracy allowed"
    yield Paragraph(
        f"{_RULES[found.rule]} {_vote(found.vote) if found.rule == 'code' else _explained(found)}",
        tone="lead",
    )
    yield _layers(found)
    yield Drawing(
        "network",
        f"The suspect layer is framed. Its neurons are coloured by their average causal difference (ACD), {k} with the "
        f"neuron on minus {k} with it off: blue is positive (activating it lowers {k}), orange negative (activating it "
        f"raises {k}), a ring has no pair of values{allowed}.",
        "sideways",
    )
    neurons = suspects_of(found)
    if not neurons or found.suspect is None:
        return
    yield Paragraph(
        "Point at a neuron of the framed layer, tap it or reach it with the keyboard to read its figures.",
        tone="small hint",
    )
    yield _neurons(found, found.suspect, k)
    for layer in sorted({one.layer for one in found.neurons} - {found.suspect}):
        yield Fold(f"Neurons of layer {layer}", [_neurons(found, layer, k)])
    yield Drawing(
        "curves",
        "Every value that a neuron was held at; it need not go one way. Filled: the accuracy is kept. Dashed: nothing "
        "held.",
        "wide sideways",
    )
    yield from _sets(found)


def _vote(vote: Vote | None) -> str:
    """How sure the vote is, in a sentence."""
    if vote is None or vote.share is None:
        return ""
    share, runner_up = vote.share, vote.runner_up_share
    words = (
        f"Layer {vote.suspect} has {percent(share.value, 0)} of the votes ({percent(share.low, 0)} to "
        f"{percent(share.high, 0)}) and wins in {percent(vote.certainty, 0)} of resamples of the cases"
    )
    if runner_up is not None:
        close = "a close runner-up is" if vote.close else "the runner-up is"
        words += f"; {close} layer {vote.runner_up} with {percent(runner_up.value, 0)}"
    return f"{words}."


def _explained(found: DebugResult) -> str:
    """What holding neurons of the suspect takes away, in a sentence."""
    one = next((one for one in found.layers if one.layer == found.suspect), None)
    if one is None or one.explained is None:
        return ""
    what, share = ", ".join(f"neuron {do.neuron}" for do in one.held), one.explained
    return (
        f"In layer {one.layer}, {what} held: {percent(share.value, 0)} of the bits go ({percent(share.low, 0)} to "
        f"{percent(share.high, 0)})."
    )


def _layers(found: DebugResult) -> Block:
    total = len(found.cases) or 1
    last = found.layers[-1].layer
    rows: list[tuple[Any, ...]] = [
        (
            "protected input" if one.layer == 0 else f"{one.layer} (output)" if one.layer == last else str(one.layer),
            one.width,
            one.delta,
            one.rho,
            None if one.rho_quantiles is None else (one.rho_quantiles[0], one.rho_quantiles[-1]),
            None if one.rho is None else one.votes / total,
            None if one.votes_code is None else one.votes_code / total,
            None if one.explained is None else one.explained.value,
            None if one.explained is None else (one.explained.low, one.explained.high),
        )
        for one in found.layers
    ]
    spread = between("ρ of cases, 5 to 95 %", signed)
    columns = [label("layer"), figure("width"), figure("δ", 3), change("ρ"), spread, share("votes of the cases", 0)]
    if found.rule == "ours":
        columns += [share("by the paper's code", 0), share("bits gone when held", 0), between("95 %", whole_percent)]
    rows = [row[: len(columns)] for row in rows]
    suspect = frozenset(i for i, one in enumerate(found.layers) if one.layer == found.suspect)
    return TableBlock(columns, rows, "Layers; the suspect stands out", marked=suspect)


def _neurons(found: DebugResult, layer: int, k: str) -> Block:
    """Those with the largest effects; values are chosen on one half of the cases."""
    neurons = [one for one in found.neurons if one.layer == layer]
    ranked = sorted(neurons, key=lambda one: -abs(one.acd_choosing or 0.0))[:MAX_NEURONS]
    rows = [
        (
            str(one.neuron),
            one.acd,
            (one.acd_low, one.acd_high),
            "–" if one.best is None else f"{one.best.value:.3g} ({one.best.statistic})",
            None if one.best is None else one.best.reported,
            None if one.best is None else one.best.accuracy,
        )
        for one in ranked
    ]
    columns: list[TableColumn] = [label("neuron"), change("ACD", 3), between("95 %", lambda end: signed(end, 3))]
    columns += [shown("best held at"), *_held_columns(found, k)]
    kept = len(columns) - found.regression
    half = (
        "all cases, as in the paper"
        if found.rule != "ours"
        else "chosen on one half of the cases, reported on the other"
    )
    caption = f"Neurons of layer {layer} with the largest effects, of {len(neurons)}; {half}"
    return TableBlock(columns[:kept], [row[:kept] for row in rows], caption)


def mean_reported(found: DebugResult) -> float:
    """Mean k (or Q1) with nothing held, of the half of the cases that figures are reported on."""
    return float((found.figure[1::2] if len(found.figure) > 1 else found.figure).mean())


def _held_columns(found: DebugResult, k: str) -> list[TableColumn]:
    before = number(mean_reported(found), 2)
    now = "" if found.accuracy is None else f" (now {percent(found.accuracy)})"
    return [figure(f"mean {k} (now {before})", 2), share(f"accuracy, all rows{now}")]


def _sets(found: DebugResult) -> Iterator[Block]:
    sets = found.sets
    if sets is None or not sets.curve:
        return
    yield Heading("Sets of neurons")
    if sets.minimal is None:
        yield Paragraph("No set that keeps the accuracy explains most of the bits.")
    else:
        explained = sets.minimal.explained
        yield Paragraph(
            f"Smallest set found that explains most of the bits: {_held(sets.minimal)}. Held together they explain "
            f"{percent(explained.value)} ({percent(explained.low)} to {percent(explained.high)})."
        )
    explained_by = [(len(one.neurons), one.explained) for one in sets.curve]
    rows = [(count, some.value, Bar(some.value), (some.low, some.high)) for count, some in explained_by]
    columns = [figure("neurons held together"), share("bits explained"), label(""), between("95 %", percent)]
    yield TableBlock(columns, rows, "Chosen on one half of the cases, reported on the other")


def _held(one: NeuronSet) -> str:
    return ", ".join(f"neuron {do.neuron} of layer {do.layer + 1}" for do in one.neurons)


def _trees(found: DebugResult) -> Iterator[Block]:
    yield Paragraph(
        "δ is the most that a tree adds to one twin and not to another; the suspect, in orange, widens the span of "
        "scores most in the largest share of cases, trees in blue in some.",
        tone="lead",
    )
    total = len(found.cases) or 1
    looking = sum(one.delta > 0 for one in found.layers)
    ranked = sorted(found.layers, key=lambda tree: (-tree.votes, -tree.delta, tree.layer))[:MAX_TREES]
    rows = [(str(tree.layer), tree.width, tree.delta, tree.rho, tree.votes / total) for tree in ranked]
    columns = [label("tree"), figure("leaves"), figure("δ", 3), change("ρ"), share("votes of the cases", 0)]
    suspect = frozenset(i for i, tree in enumerate(ranked) if tree.layer == found.suspect)
    caption = f"{looking} of {len(found.layers)} trees tell twins of these cases apart; the suspect stands out"
    yield TableBlock(columns, rows, caption, marked=suspect)
    yield Drawing("network", size="sideways")
    known = foremost(found)
    if not known:
        yield Paragraph("No split or tree that is held lowers mean k within the accuracy that must be kept.")
        return
    heads: list[TableColumn] = [label("tree"), label("goes left"), change("ACD", 3), label("best held")]
    heads += _held_columns(found, symbol_of(found.measure))
    kept = len(heads) - found.regression
    lines = [(str(one.layer or "all"), one.label, one.acd, *_best(one))[:kept] for one in known]
    caption = (
        "What mean k loses, as a share (ACD), when everybody takes the way that most rows take at one split, or wherever "
        "the same question is asked (all trees), or when a tree is left out"
    )
    yield TableBlock(heads[:kept], lines, caption)


def _best(one: NeuronEffect) -> tuple[str, float | None, float | None]:
    held = one.best
    return ("–", None, None) if held is None else (held.statistic, held.reported, held.accuracy)
