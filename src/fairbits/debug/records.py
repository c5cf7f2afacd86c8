"""What debugging finds, as frozen records. Layer 0 is the protected input, layer 1 the network's first layer.

``DebugResult`` is what a debugging returns, what its files hold (debug.json the record, neurons.parquet every value
that a neuron was held at, layers.parquet and debug_cases.parquet the rest, each there whole), and what is read back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fairbits.blocks import Shown
from fairbits.debug.who import Description
from fairbits.domain import Codes, Doubles
from fairbits.measure import Estimate, Measure
from fairbits.models import Do
from fairbits.shape import reading
from fairbits.store import (
    Run,
    numbered,
    plain,
    read_json,
    read_parquet,
    record_from_json,
    write_json,
    write_parquet,
)
from fairbits.text import from_to, percent

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Units = Literal["layers", "trees"]
#: A vote that names the same layer in fewer of the resamples than this is close.
SURE = 0.95
Rule = Literal["ours", "code", "text"]
RULES: tuple[Rule, ...] = ("ours", "code", "text")
#: What rules were called before.
FORMER_RULES: Mapping[str, Rule] = {"spread": "ours", "paper": "code"}
LAYERS, NEURONS, CASES, DOCUMENT = "layers.parquet", "neurons.parquet", "debug_cases.parquet", "debug.json"
#: Neurons of each sign that debug.json names; neurons.parquet has all of them.
TOP = 3
#: Rows of neurons.parquet and debug_cases.parquet that are read back, at most.
_MAX_ROWS = 1_000_000
_REMEDY = "delete it, and run fairbits debug again"
#: Fields that lie in a file of their own, not in debug.json.
_APART: Mapping[str, None] = {"json": None}


def halves(cases: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The cases that choose values and neurons, and those that they are reported on: every other one.

    A single case has to do both.
    """
    return (cases[::2], cases[1::2]) if len(cases) > 1 else (cases, cases)


def ballots_of(rho: Doubles) -> npt.NDArray[np.int64]:
    """Each case's vote: the hidden layer with the largest ρ, the earlier one if equal; 0 where there is none.

    The output is the decision itself: no neuron of it can be held, and it gets no vote.
    """
    hidden = rho[:, :-1]
    if hidden.shape[1] == 0:
        return np.zeros(len(rho), dtype=np.int64)
    return np.where(np.isnan(hidden), -np.inf, hidden).argmax(axis=1) + 1


@dataclass(frozen=True, slots=True)
class LayerEffect:
    """How far apart twins are in one layer. The input, layer 0, amplifies nothing: its ρ is None.

    Under the rule ``code`` the first layer and the output have no ρ either: that rule gives them none. Under ``text``
    δ is the largest of the cases, not divided by the width, and ρ the growth of that.

    Parameters
    ----------
    layer, width, role
        From 0, the input; number of neurons; "protected input", "hidden", "output" or "tree".
    delta, rho, delta_quantiles, rho_quantiles
        Distance between twins, and how much more that is than before the layer; means over the cases, and at
        ``QUANTILES``.
    votes, votes_code
        Cases in which this layer has the largest ρ, and those by the rule of the paper's public code.
    explained, held
        What share of the bits goes when up to three of its neurons are held within the accuracy allowed: neurons and
        values are chosen on one half of the cases, and this is of the other; and these neurons.
    """

    layer: int
    width: int
    delta: float
    rho: float | None
    votes: int
    delta_quantiles: tuple[float, ...]
    rho_quantiles: tuple[float, ...] | None
    role: str = "hidden"
    explained: Estimate | None = None
    held: tuple[Do, ...] = ()
    votes_code: int | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """Which layer the cases vote for, and how sure that is.

    Attributes
    ----------
    suspect, runner_up, share, runner_up_share
        The hidden layers with the most votes and the second most, and their shares of the cases, with 95 % bootstrap
        intervals over cases.
    certainty
        The share of bootstrap resamples of the cases in which the suspect has the most votes.
    influence
        The mean of each case's largest ρ (what the paper prints as the layer's influence); under the rule ``code``,
        over the cases that were drawn at random.
    """

    suspect: int | None
    share: Estimate | None
    certainty: float
    influence: Estimate | None
    runner_up: int | None = None
    runner_up_share: Estimate | None = None

    @property
    def close(self) -> bool:
        """Whether another sample of cases may well have named the runner-up."""
        return self.runner_up is not None and self.certainty < SURE


@dataclass(frozen=True, slots=True)
class Candidate:
    """A neuron held at one value: what becomes of the accuracy and of the cases.

    Values and neurons are chosen by ``choosing``, from one half of the cases, and reported by ``reported``, from the
    other: the lowest of many noisy figures is too low on the evidence that chose it. Both are means of the measure
    that the run lowers: k for ``q_inf``, bits for ``q_1``.

    Parameters
    ----------
    statistic, value
        Which statistic of the neuron's outputs it is held at, and the number.
    accuracy, kept
        With the neuron held (None without labels), and whether it stays within ε2.
    k_mean, id_rate, q_1_mean
        Means over all cases; None where they do not apply.
    k_choosing, k_reported, choosing, reported
        Mean k, and the measure that is lowered, on the two halves.
    """

    statistic: str
    value: float
    accuracy: float | None
    kept: bool
    k_mean: float
    id_rate: float | None
    k_choosing: float
    k_reported: float
    q_1_mean: float | None  # of all cases; None where the run lowers k
    choosing: float
    reported: float


@dataclass(frozen=True, slots=True)
class NeuronEffect:
    """One neuron: its average causal difference, between which values, and every value tried.

    ``acd`` is mean k with the neuron on (at its mean) less mean k with it off (at its minimum), as a share of mean k
    with nothing held. The paper calls a neuron *positive* whose activation lowers k (``acd`` below 0): holding it on
    is the remedy. *Negative* is one whose activation raises k (``acd`` above 0): switching it off is. None: one of the
    two values does not keep the accuracy, or both are the same.
    ``acd_choosing``, from one half of the cases, ranks neurons; ``acd``, from the other half, is what is reported,
    with a 95 % bootstrap interval over its cases. Under the rules ``code`` and ``text`` all cases do both, and under
    ``text`` it is of bits (Q∞), between values that were chosen among those that keep the accuracy.

    Parameters
    ----------
    layer, neuron, label
        Which one; layers are counted as in :class:`LayerEffect`, neurons from 0. Of a split of a tree: whom it sends to
        the left.
    acd, acd_choosing, acd_low, acd_high
        See above.
    active, inactive, candidates
        The neuron on, and off; every value that was tried.
    """

    layer: int  # counted as in LayerEffect; a `Do` counts from 0
    neuron: int
    acd: float | None
    active: Candidate | None
    inactive: Candidate | None
    candidates: tuple[Candidate, ...] = field(default=(), metadata=_APART)
    acd_choosing: float | None = None
    acd_low: float | None = None
    acd_high: float | None = None
    label: str = ""  # of a split: whom it sends to the left

    @property
    def curve(self) -> tuple[Candidate, ...]:
        """Every value tried, the smallest first. k is not monotone in the value."""
        return tuple(sorted(self.candidates, key=lambda one: one.value))

    @property
    def remedy(self) -> Candidate | None:
        """The value that lowers k, by the sign of the ACD."""
        return None if self.acd is None else self.inactive if self.acd > 0 else self.active

    @property
    def best(self) -> Candidate | None:
        """The value with the lowest ``choosing`` of those that keep the accuracy, whatever the sign.

        The ACD misses a neuron that is the only way of the protected values through its layer: held on or off, k is
        the same, namely 1. This one finds it.
        """
        return min((one for one in self.candidates if one.kept), key=lambda one: one.choosing, default=None)

    def summary(self) -> dict[str, Any]:
        """As debug.json has it: with the value to hold it at, and the best one."""
        return {**plain(self), **{name: plain(getattr(self, name)) for name in ("remedy", "best")}}

    def do(self, candidate: Candidate) -> Do:
        """Holding the neuron at a candidate, as an intervention, whose layer counts from 0."""
        return Do(self.layer - 1, self.neuron, candidate.value)


@dataclass(frozen=True, slots=True)
class SubsetBits:
    """Bits when only these attributes vary: mean over the cases, and over all values of the attributes held."""

    attributes: tuple[str, ...]
    q_inf: float
    q_1: float


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Which protected attributes the bits come from. Shapley shares add up to the bits of all of them together.

    Attributes
    ----------
    attributes, subsets
        The protected attributes, and bits of every set of them: the empty one first, all attributes last.
    q_inf, q_1, case_q_inf, case_q_1
        By attribute, its Shapley share of the mean Q∞ and Q1 over the cases, in bits; the same of every single case,
        (cases, attributes).
    """

    attributes: tuple[str, ...]
    subsets: tuple[SubsetBits, ...]
    q_inf: Mapping[str, float]
    q_1: Mapping[str, float]
    case_q_inf: Doubles = field(default_factory=lambda: np.empty((0, 0)), repr=False, metadata=_APART)
    case_q_1: Doubles = field(default_factory=lambda: np.empty((0, 0)), repr=False, metadata=_APART)


@dataclass(frozen=True, slots=True)
class LabelBits:
    """How much the protected attributes say about the label when everything else is known.

    Attributes
    ----------
    bits, label_bits
        That, in bits per row, with its 95 % interval; and what is left to know about the label without them.
    rows, folds
        Rows that it was estimated on, in so many parts: each is predicted by learners fitted on the others.
    """

    bits: Estimate
    label_bits: float
    rows: int
    folds: int

    @property
    def present(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.bits.low > 0


@dataclass(frozen=True, slots=True)
class NeuronSet:
    """Neurons held together, and how many of the bits that explains.

    Attributes
    ----------
    neurons
        In the order in which they were taken; positions count from 0, as in every ``Do``.
    explained, explained_choosing
        The share of the cases' mean bits that is gone when all of them are held, on the half of the cases that chose
        none of them, with a 95 % bootstrap interval over cases; and on the half that chose them.
    accuracy
        What is left of the accuracy; None where it is not known.
    """

    neurons: tuple[Do, ...]
    explained: Estimate
    explained_choosing: float
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class NeuronSets:
    """The smallest set of neurons, over all hidden layers, that explains most of the bits (Definition IV.3).

    Attributes
    ----------
    curve : tuple of NeuronSet
        The sets of the search, one neuron more each time: size against effect.
    minimal : NeuronSet or None
        The smallest set that explains ``most`` of the bits, none of whose neurons can be left out; None where no
        set does within the accuracy that must be kept.
    most : float
        The share of the bits that has to be explained.
    """

    curve: tuple[NeuronSet, ...]
    minimal: NeuronSet | None
    most: float


@dataclass(frozen=True, slots=True)
class OriginShare:
    """What comes with the data and what with the single training, for some protected attributes.

    Attributes
    ----------
    attributes
        The attributes that vary; the others are held.
    shared, single
        C/V, the share of what a training makes of these attributes that other trainings on these rows agree on, and
        1 − C/V, the share that comes with the single training.
    own
        How far the model under test agrees with the others: mean(D0·D̄)/mean(D0²).
    effect, common
        √V, how far a training tells twins apart, and √C, how far all of them do, in units of the score.
    """

    attributes: tuple[str, ...]
    shared: Estimate
    single: Estimate
    own: Estimate | None
    effect: Estimate
    common: Estimate


@dataclass(frozen=True, slots=True)
class Origin:
    """Data or training: a share for all protected attributes together, and for each of them.

    Attributes
    ----------
    shares, why
        All attributes first, then each alone (nothing else where there is one); where it is not known, none, and why in
        one sentence.
    trainings, recipe, seconds, epochs
        Trainings that were compared, whose they were, what they took one after the other, and epochs of those of a
        network that were cut short, because whole ones did not fit; None where they were whole.
    people, held_out
        People whose twins they scored, and whether no training has seen these.
    labels
        What the labels themselves carry.
    """

    shares: tuple[OriginShare, ...]
    why: str
    labels: LabelBits | None
    trainings: int = 0
    people: int = 0
    held_out: bool = False
    seconds: float = 0.0
    recipe: str = ""
    epochs: int | None = None

    @property
    def words(self) -> str:
        """The answer in a sentence or two."""
        if not self.shares:
            return self.why
        one = self.shares[0]
        yours = self.recipe.startswith("by your own")
        own = "" if yours else '; name yours with train = "module:function" under [model]'
        what = " and ".join(filter(None, [", ".join(one.attributes[:-1]), one.attributes[-1]]))
        how = f"trainings on these rows {self.recipe}"
        if self.epochs is not None:
            how = f"short trainings of ours on these rows ({self.epochs} epochs; longer ones share less)"
        shared, single = (
            f"{percent(some.value, 0)} ({from_to(some.low, some.high, 0)})" for some in (one.shared, one.single)
        )
        return (
            f"{shared} of the difference that {what} make{'s' * (len(one.attributes) == 1)} comes with the data: "
            f"{self.trainings} {how} agree on it. {single} comes with the single training. Another recipe may agree "
            f"on more or less{own}."
        )


@dataclass(frozen=True, slots=True, eq=False)
class DebugResult(Shown):
    """Everything that was found about a sample of cases of a run.

    Parameters
    ----------
    subject, identity, regression
        The name of the subject, its identity in short, and whether nothing is decided that could flip.
    epsilon, partition, seed, m, measure, rule, options
        The terms: tolerance, partition, seed, twins, what is lowered, the rule for layers, what was asked for.
    cases, worst, k, flips, q_1
        The cases looked at (the first ``worst`` are the worst, the others were drawn at random), and their figures.
    accuracy
        Of the model as it is; None without labels.
    layers, suspect, delta, rho, vote, units
        Effects of each layer, the suspect's number, distances and their growth for each case, how the cases vote, and
        whether "layers" are a network's with neurons, or "trees" with splits.
    neurons, sets
        Effects of the suspect's neurons, and of several held together.
    attribution, origin, who
        Which protected attributes the bits come from (None with too many of them); how much comes with the data, and
        how much with the single training; which people it happens to, in rules.
    notes, seconds
        What must be known to read it, and how long it took.
    """

    subject: str
    epsilon: float
    partition: str
    seed: int
    m: int
    worst: int = field(metadata={"json": "samples_worst"})
    accuracy: float | None
    layers: tuple[LayerEffect, ...]
    suspect: int | None = field(metadata={"json": "suspect_layer"})
    attribution: Attribution | None
    origin: Origin
    notes: tuple[str, ...]
    seconds: float
    regression: bool = False
    identity: str = ""
    units: Units = "layers"
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: Rule = "ours"
    measure: Measure = "q_inf"
    vote: Vote | None = None
    sets: NeuronSets | None = None
    who: Description | None = None
    neurons: tuple[NeuronEffect, ...] = field(default=(), repr=False, metadata=_APART)
    cases: Codes = field(default_factory=lambda: np.empty((0, 0)), repr=False, metadata=_APART)
    k: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False, metadata=_APART)
    flips: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_), repr=False, metadata=_APART)
    q_1: Doubles | None = field(default=None, repr=False, metadata=_APART)
    delta: Doubles | None = field(default=None, repr=False, metadata=_APART)  # (cases, layers), from layer 0
    rho: Doubles | None = field(default=None, repr=False, metadata=_APART)  # (cases, layers - 1), from layer 1

    def __repr__(self) -> str:
        suspect = "" if self.suspect is None else f", suspect {self.units.removesuffix('s')} {self.suspect}"
        return f"<DebugResult of {self.subject!r}: {len(self.cases):,} cases, mean k {self.k_mean:.2f}{suspect}>"

    @property
    def k_mean(self) -> float:
        """Mean k of the cases, nothing held."""
        return float(self.k.mean())

    @property
    def k_reported(self) -> float:
        """Mean k of the half of the cases that chosen values and neurons are reported on, nothing held."""
        return float(halves(self.k)[1].mean())

    @property
    def id_rate(self) -> float | None:
        """Share of the cases whose twins do not all get the same decision; None for a regression."""
        return None if self.regression else float(self.flips.mean())

    def top(self, sign: int, *, layer: int | None = None, count: int = 3) -> tuple[NeuronEffect, ...]:
        """The neurons with the largest effect of a sign, in the suspect layer unless another is named."""
        found = [n for n in self._of(layer) if (n.acd or 0.0) * sign < 0 and (n.acd_choosing or 0.0) * sign < 0]
        return tuple(sorted(found, key=lambda n: -abs(n.acd_choosing or 0.0))[:count])

    def best(self, *, layer: int | None = None, count: int = 3) -> tuple[NeuronEffect, ...]:
        """The neurons that lower mean k (or Q1) most when held at their best value, the lowest mean first.

        In the suspect layer (or all trees) by default, and chosen on one half of the cases: ``best.reported`` of a
        neuron is what the other half says.
        """
        before = float(halves(self.figure)[0].mean())
        here = [n for n in self._of(layer) if n.best is not None and n.best.choosing < before]
        return tuple(sorted(here, key=lambda n: n.best.choosing if n.best else 0.0)[:count])

    @property
    def figure(self) -> Doubles:
        """The figure of each case that is lowered, nothing held: k, or Q1 where the run measures that."""
        return (self.k if self.measure == "q_inf" or self.q_1 is None else self.q_1).astype(np.float64)

    def _of(self, layer: int | None) -> list[NeuronEffect]:
        every, layer = layer is None and self.units == "trees", self.suspect if layer is None else layer
        return [one for one in self.neurons if every or one.layer == layer]

    def summary(self) -> dict[str, Any]:
        """The document of ``debug.json``: the record, and what its single rows come to."""
        derived = {
            "samples": len(self.cases),
            "k_mean": self.k_mean,
            "k_choosing": float(halves(self.k)[0].mean()),
            "k_reported": self.k_reported,
            "reported": float(halves(self.figure)[1].mean()),
            "q_1_mean": None if self.q_1 is None else float(self.q_1.mean()),
            "id_rate": self.id_rate,
            "layers_from": 1,
            "neurons_from": 0,
            "positive": [one.summary() for one in self.top(+1, count=TOP)],
            "negative": [one.summary() for one in self.top(-1, count=TOP)],
            "best": [one.summary() for one in self.best(count=TOP)],
            "neurons_studied": len(self.neurons),
        }
        found: dict[str, Any] = numbered(plain(self), +1) | derived
        found["origin"] |= {"known": bool(self.origin.shares), "words": self.origin.words}
        return found


def write_result(run: Run, result: DebugResult) -> None:
    """Write everything into the run's folder. What an earlier debugging found, and this one did not, goes."""
    tables = {LAYERS: layers_table(result), NEURONS: neurons_table(result), CASES: cases_table(result, run)}
    for name, table in tables.items():
        if table.num_rows:
            write_parquet(run.folder / name, table, compression="lz4")
        else:
            (run.folder / name).unlink(missing_ok=True)
    written = {**result.summary(), "content": run.content(), "made_with": run.manifest["identity"]}
    write_json(run.folder / DOCUMENT, written)


def read_debug(folder: Path) -> DebugResult | None:
    """What a debugging left in a run's folder; of the single cases, their figures."""
    path = folder / DOCUMENT
    if not path.is_file():
        return None
    with reading(path, _REMEDY):
        found = record_from_json(DebugResult, numbered(read_json(path), -1))
    with reading(folder / CASES, _REMEDY):
        cases = read_parquet(folder / CASES, remedy=_REMEDY, columns=["k", "flips", "q_1"], max_rows=_MAX_ROWS)
        k, flips, q_1 = (cases[name].to_numpy(zero_copy_only=False) for name in ("k", "flips", "q_1"))
    with reading(folder / NEURONS, _REMEDY):
        listed = (folder / NEURONS).is_file()
        table = read_parquet(folder / NEURONS, remedy=_REMEDY, max_rows=_MAX_ROWS).to_pylist() if listed else []
        rows = groupby(table, key=lambda row: (row["layer"], row["neuron"]))
        neurons = tuple(_neuron(list(same)) for _, same in rows)
    return replace(found, neurons=neurons, cases=np.empty((len(k), 0)), k=k, flips=flips, q_1=q_1)


def _neuron(rows: list[dict[str, Any]]) -> NeuronEffect:
    """A neuron from its rows of neurons.parquet."""
    tried = tuple(record_from_json(Candidate, row) for row in rows)
    by_role = {row["role"]: one for row, one in zip(rows, tried, strict=True)}
    first = {**rows[0], "label": rows[0].get("label") or "", "active": None, "inactive": None}
    found = record_from_json(NeuronEffect, first)
    return replace(found, active=by_role.get("active"), inactive=by_role.get("inactive"), candidates=tried)


def layers_table(result: DebugResult) -> pa.Table:
    """One row per layer, layer 0 is the protected input; or one row per tree, from 1 on."""
    rows = []
    for one in result.layers:
        row: dict[str, Any] = {"layer": one.layer, "delta": one.delta, "rho": one.rho, "votes": one.votes}
        row |= {"width": one.width, "suspect": one.layer == result.suspect, "role": one.role}
        row |= Estimate.named("explained", one.explained) | {"votes_code": one.votes_code}
        for name, found in (("delta", one.delta_quantiles), ("rho", one.rho_quantiles)):
            levels = found or (None,) * len(QUANTILES)
            row |= {f"{name}_q{round(100 * q):02d}": value for q, value in zip(QUANTILES, levels, strict=True)}
        rows.append(row)
    return pa.Table.from_pylist(rows)


#: neurons.parquet: of the value tried, of its neuron, and again of the value.
_NEURON_COLUMNS = (
    *("layer", "neuron", "statistic", "value", "accuracy", "k_mean", "acd", "kept", "id_rate", "role", "k_choosing"),
    *("k_reported", "acd_choosing", "acd_low", "acd_high", "q_1_mean", "choosing", "reported"),
)
_KINDS = {
    **{"layer": pa.int64(), "neuron": pa.int64(), "kept": pa.bool_()},
    **dict.fromkeys(("statistic", "role", "label"), pa.string()),
}


def neurons_table(result: DebugResult) -> pa.Table:
    """One row per value that a neuron was held at: the whole curve of k over the value.

    `acd` is the neuron's (mean k on minus mean k off, as a share of mean k), and `role` says which rows are on (active)
    and off (inactive). `k_choosing` and `acd_choosing` are from the half of the cases that chooses, `k_reported` and
    `acd` from the other, with the interval `acd_low` to `acd_high`. `choosing` and `reported` are the means of the
    measure that the run lowers. Layers count from 1, neurons from 0.

    For trees `layer` is the tree (0: several trees), `neuron` the node of a split in it (-1: the whole tree; of tree 0
    the number of a question) and `label` whom the split sends to the left; `value` is 0 (always left), 1 (always
    right), 2 (the other way), or what stands in for a tree.
    """
    columns = (*_NEURON_COLUMNS, *(("label",) if result.units == "trees" else ()))
    rows = []
    for neuron in result.neurons:
        for one in neuron.candidates:
            role = "active" if one is neuron.active else "inactive" if one is neuron.inactive else None
            mine = {name: getattr(neuron, name) for name in columns if hasattr(neuron, name)}
            mine |= {name: getattr(one, name) for name in columns if hasattr(one, name)}
            rows.append({**mine, "role": role})
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, _KINDS.get(name, pa.float64())) for name in columns]))


def cases_table(result: DebugResult, run: Run) -> pa.Table:
    """One row per case looked at: who it is (codes), its distances in every layer, its bits per attribute."""
    people = zip(run.layout.names, run.schema.person_columns, strict=True)
    columns: dict[str, Any] = {name: result.cases[:, column] for name, column in people}
    columns |= {"k": result.k, "flips": result.flips, "q_1": result.q_1}
    if result.delta is not None and result.rho is not None:
        if result.units == "layers":  # trees are too many to have columns of their own
            columns |= {f"delta_{layer}": column for layer, column in enumerate(result.delta.T)}
            columns |= {f"rho_{layer}": column for layer, column in enumerate(result.rho.T, 1)}
        columns["suspect_layer"] = ballots_of(result.rho)
    if result.attribution is not None:
        shares = zip(result.attribution.case_q_inf.T, result.attribution.case_q_1.T, strict=True)
        for name, (q_inf, q_1) in zip(result.attribution.attributes, shares, strict=True):
            columns |= {f"q_inf_{name}": q_inf, f"q_1_{name}": q_1}
    return pa.table(columns)
