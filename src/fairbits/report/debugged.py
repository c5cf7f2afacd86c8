"""What a report says of a debugging: its record, and how that is read from debug.json and neurons.parquet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.debug import Attribution, LabelBits, NeuronEffect, NeuronSet, Vote, read_debug
from fairbits.measure import Measure
from fairbits.store import read_json

DEBUG = "debug.json"
OLDER = "Not known: this run was debugged by an earlier version; debug it again."
#: Rows of neurons.parquet that become records: a value for every neuron, split or tree and statistic.
_MAX_NEURONS = 1_000_000


@dataclass(frozen=True, slots=True)
class ReportLayer:
    """One layer as debugging saw it; layer 0 is the protected input."""

    layer: int
    width: int
    delta: float
    rho: float | None
    votes: int
    suspect: bool


@dataclass(frozen=True, slots=True)
class Neuron:
    """One neuron of the suspect layer, and the value that lowers mean k most within the accuracy allowed.

    The value is chosen on one half of the cases; ``acd`` and ``k_mean`` are from the other.
    """

    layer: int
    neuron: int
    acd: float | None
    hold: float | None
    statistic: str | None
    accuracy: float | None
    k_mean: float | None
    acd_choosing: float | None = None
    label: str = ""
    acd_low: float | None = None
    acd_high: float | None = None
    #: Every value tried, the smallest first: value, mean k (or Q1) on the half that reports, whether accuracy is kept.
    curve: tuple[tuple[float, float, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """Bits of one protected attribute."""

    attribute: str
    alone: float
    shapley: float
    share: float


@dataclass(frozen=True, slots=True)
class Together:
    """Bits when just these attributes vary."""

    attributes: tuple[str, ...]
    q_inf: float
    q_1: float


@dataclass(frozen=True, slots=True)
class Sized:
    """A set of neurons held together."""

    size: int
    words: str
    explained: float
    low: float
    high: float
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class Split:
    """The share of the data and of the single training in the bits of some attributes."""

    attributes: tuple[str, ...]
    shared: float
    low: float
    high: float
    own: float | None
    effect: float


@dataclass(frozen=True, slots=True)
class Debugged:
    """Where the bits come from.

    Attributes
    ----------
    samples, samples_worst
        Cases looked at, and the worst ones among them.
    k_mean, accuracy
        Mean k of the cases, and accuracy of the model; None without labels.
    suspect
        Number of the layer that most cases point at; None where there is no hidden layer.
    layers, neurons
        The layers, and the neurons that matter most.
    shares, together
        Bits of each protected attribute, and of sets of them.
    q_inf
        Mean Q∞ of all together; None where attributes were not looked at.
    origin
        Data or training, in words.
    splits
        The same in figures, for all attributes and for each.
    labels
        What the labels themselves carry, in words.
    notes
        What a reader must know, as sentences.
    document
        The content of debug.json.
    units
        "layers", or "trees": ``layers`` are trees then, and ``neurons`` their splits.
    rule
        How layers are compared: "spread" or "paper".
    measure
        What is lowered: "q_inf" (k) or "q_1".
    vote
        How the suspect layer was chosen, in words.
    sets, minimal
        Sets of neurons, one more each time, and the smallest one that explains most of the bits.
    """

    samples: int
    samples_worst: int
    k_mean: float
    accuracy: float | None
    suspect: int | None
    layers: tuple[ReportLayer, ...]
    neurons: tuple[Neuron, ...]
    shares: tuple[Share, ...]
    together: tuple[Together, ...]
    q_inf: float | None
    origin: str
    splits: tuple[Split, ...]
    labels: str
    notes: tuple[str, ...]
    document: Mapping[str, Any]
    units: str = "layers"  # or "trees": ``layers`` are trees then, and ``neurons`` their splits
    rule: str = "spread"
    measure: Measure = "q_inf"
    vote: str = ""
    sets: tuple[Sized, ...] = ()
    minimal: Sized | None = None

    @property
    def hidden(self) -> bool:
        """Whether there is anything between the inputs and the score: a hidden layer, or trees."""
        return self.units == "trees" or sum(layer.layer > 0 for layer in self.layers) > 1


def debugged_of(folder: Path) -> Debugged | None:
    """What a report says of a debugging."""
    found = read_debug(folder)
    if found is None:
        return None
    attribution, origin = found.attribution, found.origin
    subsets = [] if attribution is None else [Together(s.attributes, s.q_inf, s.q_1) for s in attribution.subsets]
    trees = found.units == "trees"
    return Debugged(
        samples=len(found.cases),
        samples_worst=found.worst,
        k_mean=float(found.figure[1::2].mean()) if len(found.figure) > 1 else found.k_mean,
        accuracy=found.accuracy,
        suspect=found.suspect,
        layers=tuple(
            ReportLayer(one.layer, one.width, one.delta, one.rho, one.votes, one.layer == found.suspect)
            for one in found.layers
        ),
        neurons=tuple(_neuron(one) for one in found.neurons if trees or one.layer == found.suspect),
        units=found.units,
        shares=_shares(attribution, subsets),
        together=tuple(subset for subset in subsets if len(subset.attributes) > 1),
        q_inf=subsets[-1].q_inf if subsets else None,
        origin=origin.words,
        splits=tuple(
            Split(
                one.attributes,
                one.shared.value,
                one.shared.low,
                one.shared.high,
                None if one.own is None else one.own.value,
                one.effect.value,
            )
            for one in origin.shares
        ),
        labels=_labels(origin.labels),
        notes=found.notes,
        document=read_json(folder / DEBUG),
        rule=found.rule,
        measure=found.measure,
        vote=_vote(found.vote),
        sets=() if found.sets is None else tuple(_sized(one) for one in found.sets.curve),
        minimal=None if found.sets is None or found.sets.minimal is None else _sized(found.sets.minimal),
    )


def _labels(found: LabelBits | None) -> str:
    """What the labels carry, in a sentence."""
    if found is None:
        return ""
    carried = "tell" if found.present else "tell nothing measurable:"
    return (
        f"Given the rest, the protected attributes {carried} {found.bits.value:.4f} bits a row ({found.bits.low:.4f} "
        f"to {found.bits.high:.4f}) about the label."
    )


def _vote(found: Vote | None) -> str:
    """How sure the vote is, in a sentence."""
    if found is None or found.share is None:
        return ""
    words = (
        f"Layer {found.suspect} has {found.share.value:.0%} of the votes ({found.share.low:.0%} to "
        f"{found.share.high:.0%}) and wins in {found.certainty:.0%} of resamples of the cases"
    )
    if found.runner_up_share is not None:
        close = "a close runner-up is" if found.close else "the runner-up is"
        words += f"; {close} layer {found.runner_up} with {found.runner_up_share.value:.0%}"
    return f"{words}."


def _sized(one: NeuronSet) -> Sized:
    held = [f"neuron {do.neuron} of layer {do.layer + 1}" for do in one.neurons]
    share = one.explained
    return Sized(len(held), ", ".join(held), share.value, share.low, share.high, one.accuracy)


def _shares(attribution: Attribution | None, subsets: list[Together]) -> tuple[Share, ...]:
    if attribution is None:
        return ()
    alone = {subset.attributes[0]: subset.q_inf for subset in subsets if len(subset.attributes) == 1}
    total = sum(attribution.q_inf.values()) or 1.0
    return tuple(Share(name, alone[name], bits, bits / total) for name, bits in attribution.q_inf.items())


def _neuron(one: NeuronEffect) -> Neuron:
    best = one.best
    return Neuron(
        layer=one.layer,
        neuron=one.neuron,
        acd=one.acd,
        hold=None if best is None else best.value,
        statistic=None if best is None else best.statistic,
        accuracy=None if best is None else best.accuracy,
        k_mean=None if best is None else best.reported,
        acd_choosing=one.acd_choosing,
        label=one.label,
        acd_low=one.acd_low,
        acd_high=one.acd_high,
        curve=tuple(sorted({(tried.value, tried.reported, tried.kept) for tried in one.candidates})),
    )
