"""What debugging finds, as frozen records. Layer 0 is the protected input, layer 1 the network's first layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes
from fairbits.measure import Estimate
from fairbits.models import Do

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
Side = Literal["data", "training"]
How = Literal["other seed", "without protected"]
Units = Literal["layers", "trees"]
Verdict = Literal["data", "training", "mixed", "unknown", "none"]
Floats = npt.NDArray[np.float64]


def halves(cases: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The cases that choose values and neurons, and those that they are reported on: every other one.

    A single case has to do both.

    Parameters
    ----------
    cases
        Cases, (n, …).

    Returns
    -------
    tuple[npt.NDArray[Any], npt.NDArray[Any]]
        The half that chooses, and the half that is reported.
    """
    return (cases[::2], cases[1::2]) if len(cases) > 1 else (cases, cases)


@dataclass(frozen=True, slots=True)
class LayerEffect:
    """How far apart twins are in one layer. The input, layer 0, amplifies nothing: its ρ is None."""

    layer: int
    width: int
    delta: float  # mean over the cases
    rho: float | None  # mean over the cases
    votes: int  # cases in which this layer has the largest ρ
    delta_quantiles: tuple[float, ...]  # at QUANTILES
    rho_quantiles: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A neuron held at one value: what becomes of the accuracy and of the cases.

    Values and neurons are chosen by ``k_choosing``, from one half of the cases, and reported by ``k_reported``, from
    the other: the lowest of many noisy figures is too low on the evidence that chose it.
    """

    statistic: str
    value: float
    accuracy: float | None  # None without labels
    kept: bool  # whether the accuracy stays within ε2
    k_mean: float  # of all cases
    id_rate: float | None  # None for a regression
    k_choosing: float
    k_reported: float


@dataclass(frozen=True, slots=True)
class NeuronEffect:
    """One neuron: its average causal difference, between which values, and every value tried.

    Positive ACD: activating it raises k, so switching it off (``inactive``) is the remedy. Negative: activating it
    lowers k, so holding it on (``active``) is. None: no pair of an active and an inactive value keeps the accuracy.
    ``acd_choosing``, from the half of the cases that chose the active value, ranks neurons; ``acd``, from the other
    half, is what is reported.
    """

    layer: int  # counted as in LayerEffect; a `Do` counts from 0
    neuron: int
    acd: float | None
    active: Candidate | None
    inactive: Candidate | None
    candidates: tuple[Candidate, ...]
    acd_choosing: float | None = None
    label: str = ""  # of a split: whom it sends to the left

    @property
    def remedy(self) -> Candidate | None:
        """The value that lowers k, by the sign of the ACD."""
        return None if self.acd is None else self.inactive if self.acd > 0 else self.active

    @property
    def best(self) -> Candidate | None:
        """The value with the lowest ``k_choosing`` of those that keep the accuracy, whatever the sign.

        The ACD misses a neuron that is the only way of the protected values through its layer: held on or off, k is
        the same, namely 1. This one finds it.
        """
        return min((one for one in self.candidates if one.kept), key=lambda one: one.k_choosing, default=None)

    def do(self, candidate: Candidate) -> Do:
        """Holding the neuron at a candidate, as an intervention.

        Parameters
        ----------
        candidate
            One of the neuron's values.

        Returns
        -------
        Do
            The intervention.
        """
        return Do(self.layer - 1, self.neuron, candidate.value)


@dataclass(frozen=True, slots=True)
class SubsetBits:
    """Bits when only these attributes vary: mean over the cases, and over all values of the attributes held."""

    attributes: tuple[str, ...]
    q_inf: float
    q_1: float


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Which protected attributes the bits come from. Shapley shares add up to the bits of all of them together."""

    attributes: tuple[str, ...]
    subsets: tuple[SubsetBits, ...]  # every one, the empty one first, all attributes last
    q_inf: Mapping[str, float]  # Shapley shares, mean over the cases
    q_1: Mapping[str, float]
    case_q_inf: Floats = field(repr=False)  # (cases, attributes)
    case_q_1: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class LabelBits:
    """How much the protected attributes tell about the label when everything else is known, in bits per row."""

    bits: Estimate
    label_bits: float  # what is left to know about the label without them
    rows: int
    folds: int

    @property
    def present(self) -> bool:
        """Whether the whole interval is above zero."""
        return self.bits.low > 0


@dataclass(frozen=True, slots=True)
class Retrained:
    """The same shape trained anew, measured on the same cases, and on rows of the table beside this network.

    Only the rows are a level field: the cases were sought out because this network treats them badly.
    """

    how: How
    accuracy: float
    k_mean: float
    id_rate: float
    k_rows: float
    k_rows_before: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measurement, and which side it points to (None: neither)."""

    name: str
    points_to: Side | None
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Is it the data or the training? A verdict, and what it rests on."""

    verdict: Verdict
    evidence: tuple[Evidence, ...]
    first_layer_share: float | None
    labels: LabelBits | None
    retrained: tuple[Retrained, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class DebugResult:
    """Everything that was found about a sample of cases of a run."""

    subject: str
    epsilon: float
    partition: str
    seed: int
    m: int
    cases: Codes = field(repr=False)
    worst: int  # the first so many cases were chosen as the worst, the others at random
    k: npt.NDArray[np.int32] = field(repr=False)
    flips: npt.NDArray[np.bool_] = field(repr=False)
    accuracy: float | None
    layers: tuple[LayerEffect, ...]
    suspect: int | None
    delta: Floats | None = field(repr=False)  # (cases, layers), from layer 0
    rho: Floats | None = field(repr=False)  # (cases, layers - 1), from layer 1
    neurons: tuple[NeuronEffect, ...] = field(repr=False)
    attribution: Attribution | None
    origin: Origin
    notes: tuple[str, ...]
    seconds: float
    regression: bool = False  # which decides nothing that could flip
    identity: str = ""  # of the subject, in short
    units: Units = "layers"  # what ``layers`` are: a network's layers with neurons, or trees with splits
    options: Mapping[str, Any] = field(default_factory=dict)  # what was asked for, to make it again

    def _repr_html_(self) -> str:
        from fairbits.domain import html_table

        trees = self.units == "trees"
        rows = [("suspect tree" if trees else "suspect layer", "–" if self.suspect is None else str(self.suspect))]
        for one in (*self.top(1), *self.top(-1)):
            name = (
                f"{f'tree {one.layer}' if one.layer else 'all trees'}, {one.label}" if trees else f"neuron {one.neuron}"
            )
            rows.append((name, f"ACD {one.acd:+.3f}"))
        if self.attribution is not None:
            rows += [(f"bits of {name}", f"{bits:.2f}") for name, bits in self.attribution.q_inf.items()]
        rows.append(("data or training", self.origin.verdict))
        return html_table(f"{self.subject}: {len(self.cases):,} cases, mean k {self.k_mean:.2f}", rows)

    @property
    def k_mean(self) -> float:
        """Mean k of the cases, nothing held."""
        return float(self.k.mean())

    @property
    def k_choosing(self) -> float:
        """Mean k of the half of the cases that chooses values and neurons, nothing held."""
        return float(halves(self.k)[0].mean())

    @property
    def k_reported(self) -> float:
        """Mean k of the half of the cases that chosen values and neurons are reported on, nothing held."""
        return float(halves(self.k)[1].mean())

    @property
    def id_rate(self) -> float | None:
        """Share of the cases whose twins do not all get the same decision; None for a regression."""
        return None if self.regression else float(self.flips.mean())

    def top(self, sign: int, *, layer: int | None = None, count: int = 3) -> tuple[NeuronEffect, ...]:
        """The neurons with the largest ACD of a sign, in the suspect layer unless another is named.

        Of tree ensembles: splits and whole trees, of all trees unless one is named. Ranked on one half of the cases;
        the other half, whose ACD is reported, must agree about the sign.

        Parameters
        ----------
        sign
            1 for neurons whose activation raises k, −1 for those that lower it.
        layer
            Number of the layer or tree; None takes the suspect layer, or all trees.
        count
            How many.

        Returns
        -------
        tuple[NeuronEffect, ...]
            Neurons, the largest effect first.
        """
        found = [n for n in self._of(layer) if (n.acd or 0.0) * sign > 0 and (n.acd_choosing or 0.0) * sign > 0]
        return tuple(sorted(found, key=lambda n: -abs(n.acd_choosing or 0.0))[:count])

    def best(self, *, layer: int | None = None, count: int = 3) -> tuple[NeuronEffect, ...]:
        """The neurons that lower mean k most when held at their best value, in the suspect layer by default.

        Chosen on one half of the cases; ``best.k_reported`` is what the other half says.

        Parameters
        ----------
        layer
            Number of the layer; None takes the suspect one.
        count
            How many.

        Returns
        -------
        tuple[NeuronEffect, ...]
            Neurons, the largest gain first.
        """
        before = self.k_choosing
        here = [n for n in self._of(layer) if n.best is not None and n.best.k_choosing < before]
        return tuple(sorted(here, key=lambda n: n.best.k_choosing if n.best else 0.0)[:count])

    def _of(self, layer: int | None) -> list[NeuronEffect]:
        if layer is None and self.units == "trees":
            return list(self.neurons)
        layer = self.suspect if layer is None else layer
        return [one for one in self.neurons if one.layer == layer]

    def summary(self) -> dict[str, Any]:
        """The document of ``debug.json``."""
        from fairbits.debug.files import document_of

        return document_of(self)
