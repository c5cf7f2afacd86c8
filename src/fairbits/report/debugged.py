"""What a report says of a debugging: its record, and how that is read from debug.json and neurons.parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairbits.measure import Measure
from fairbits.shape import check_record, reading
from fairbits.store import read_json, read_parquet

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
    """The record of debug.json and neurons.parquet."""
    if not (folder / DEBUG).is_file():
        return None
    with reading(folder / DEBUG, "delete it, and run fairbits debug again"):
        return _debugged(folder, read_json(folder / DEBUG))


def _debugged(folder: Path, found: dict[str, Any]) -> Debugged:
    suspect, attribution = found["suspect_layer"], found["attribution"] or {}
    origin, sets, trees = found["origin"], found.get("sets") or {}, found.get("units") == "trees"
    subsets = [Together(tuple(s["attributes"]), s["q_inf"], s["q_1"]) for s in attribution.get("subsets", [])]
    record = Debugged(
        samples=found["samples"],
        samples_worst=found["samples_worst"],
        k_mean=found.get("reported", found.get("k_reported", found["k_mean"])),
        accuracy=found["accuracy"],
        suspect=suspect,
        layers=tuple(_layer(layer, suspect) for layer in found["layers"]),
        neurons=_splits(folder / "neurons.parquet") if trees else _neurons(folder / "neurons.parquet", suspect),
        units="trees" if trees else "layers",
        shares=_shares(attribution, subsets),
        together=tuple(subset for subset in subsets if len(subset.attributes) > 1),
        q_inf=subsets[-1].q_inf if subsets else None,
        origin=str(origin.get("words", OLDER)),
        splits=tuple(_split(one) for one in origin.get("shares", ())),
        labels=_labels(origin.get("labels")),
        notes=tuple(found["notes"]),
        document=found,
        rule=found.get("rule", "spread"),
        measure=found.get("measure", "q_inf"),
        vote=_vote(found.get("vote")),
        sets=tuple(_sized(one) for one in sets.get("curve", ())),
        minimal=_sized(sets["minimal"]) if sets.get("minimal") else None,
    )
    check_record(record)
    return record


def _split(one: dict[str, Any]) -> Split:
    shared, own = one["shared"], one.get("own")
    return Split(
        attributes=tuple(one["attributes"]),
        shared=shared["value"],
        low=shared["low"],
        high=shared["high"],
        own=None if own is None else own["value"],
        effect=one["effect"]["value"],
    )


def _labels(found: dict[str, Any] | None) -> str:
    """What the labels carry, in a sentence."""
    if not found:
        return ""
    bits = found["bits"]
    carried = "tell" if found.get("present", bits["low"] > 0) else "tell nothing measurable:"
    return (
        f"Given the rest, the protected attributes {carried} {bits['value']:.4f} bits a row ({bits['low']:.4f} to "
        f"{bits['high']:.4f}) about the label."
    )


def _vote(found: dict[str, Any] | None) -> str:
    """How sure the vote is, in a sentence."""
    if not found or found.get("share") is None:
        return ""
    share = found["share"]
    words = (
        f"Layer {found['suspect']} has {share['value']:.0%} of the votes ({share['low']:.0%} to {share['high']:.0%}) "
        f"and wins in {found['certainty']:.0%} of resamples of the cases"
    )
    if found.get("runner_up") is not None:
        close = "a close runner-up is" if found.get("close") else "the runner-up is"
        words += f"; {close} layer {found['runner_up']} with {found['runner_up_share']['value']:.0%}"
    return f"{words}."


def _sized(one: dict[str, Any]) -> Sized:
    held = [f"neuron {do['neuron']} of layer {do['layer']}" for do in one["neurons"]]
    share = one["explained"]
    return Sized(one["size"], ", ".join(held), share["value"], share["low"], share["high"], one["accuracy"])


def _layer(layer: dict[str, Any], suspect: int | None) -> ReportLayer:
    names = ("layer", "width", "delta", "rho", "votes")
    return ReportLayer(**{name: layer[name] for name in names}, suspect=layer["layer"] == suspect)


def _shares(attribution: dict[str, Any], subsets: list[Together]) -> tuple[Share, ...]:
    alone = {subset.attributes[0]: subset.q_inf for subset in subsets if len(subset.attributes) == 1}
    total = sum(one["q_inf"] for one in attribution.get("shapley", [])) or 1.0
    return tuple(
        Share(one["attribute"], alone[one["attribute"]], one["q_inf"], one["q_inf"] / total)
        for one in attribution.get("shapley", [])
    )


def _neurons(path: Path, suspect: int | None) -> tuple[Neuron, ...]:
    """One record per neuron of the suspect layer, with its best value."""
    if suspect is None or not path.is_file():
        return ()
    with reading(path, "delete it, and run fairbits debug again"):
        return _read_neurons(row for row in _rows_of(path) if row["layer"] == suspect)


def _splits(path: Path) -> tuple[Neuron, ...]:
    """One record per split or tree that was held, whichever tree it is of."""
    if not path.is_file():
        return ()
    with reading(path, "delete it, and run fairbits debug again"):
        return _read_neurons(_rows_of(path))


def _rows_of(path: Path) -> list[dict[str, Any]]:
    return read_parquet(path, remedy="delete it, and run fairbits debug again", max_rows=_MAX_NEURONS).to_pylist()


def _read_neurons(rows: Iterable[dict[str, Any]]) -> tuple[Neuron, ...]:
    best: dict[tuple[int, int], dict[str, Any]] = {}
    acd: dict[tuple[int, int], dict[str, Any]] = {}
    curves: dict[tuple[int, int], list[tuple[float, float, bool]]] = {}
    for row in rows:
        number = row["layer"], row["neuron"]
        acd[number] = row
        row.setdefault("k_choosing", row["k_mean"])  # files of earlier versions know one figure only
        row.setdefault("k_reported", row["k_mean"])
        row.setdefault("choosing", row["k_choosing"])
        row.setdefault("reported", row["k_reported"])
        curves.setdefault(number, []).append((row["value"], row["reported"], row["kept"]))
        if row["kept"] and (number not in best or row["choosing"] < best[number]["choosing"]):
            best[number] = row
    return tuple(
        _neuron(number, acd[number], best.get(number, {}), sorted(set(curves[number]))) for number in sorted(acd)
    )


def _neuron(
    place: tuple[int, int], row: dict[str, Any], best: dict[str, Any], curve: list[tuple[float, float, bool]]
) -> Neuron:
    return Neuron(
        layer=place[0],
        neuron=place[1],
        acd=row["acd"],
        hold=best.get("value"),
        statistic=best.get("statistic"),
        accuracy=best.get("accuracy"),
        k_mean=best.get("reported"),
        acd_choosing=row.get("acd_choosing", row["acd"]),
        label=row.get("label") or "",
        acd_low=row.get("acd_low"),
        acd_high=row.get("acd_high"),
        curve=tuple(curve),
    )
