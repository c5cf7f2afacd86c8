"""What a repair is, what it costs and what it buys; written to repair.json and repairs.parquet, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from fairbits._version import __version__
from fairbits.blocks import Shown
from fairbits.data import Fitted
from fairbits.measure import Estimate, Measure
from fairbits.models import Do, Model
from fairbits.shape import reading
from fairbits.store import numbered, plain, read_json, record_from_json, write_json, write_parquet
from fairbits.text import quality

TABLE, DOCUMENT = "repairs.parquet", "repair.json"
#: What a file does not hold.
_IN_MEMORY: Mapping[str, None] = {"json": None}
WARNING = "Blinding ends the direct use of protected attributes only: attributes that stand in for them (proxies) stay."


def neurons_in_words(dos: tuple[Do, ...]) -> str:
    """Layer:neuron=value. Layer 1 is the first hidden one, as in debugging, files and reports; a ``Do`` counts
    from 0.
    """
    return " ".join(f"{do.layer + 1}:{do.neuron}={do.value:.4g}" for do in dos)


@dataclass(frozen=True, slots=True)
class Figures:
    """How one network does, on cases of the run and on rows of the table; groups of fewer than 30 people do not count.

    Parameters
    ----------
    accuracy, balanced_accuracy
        On rows of the table; for a regression, the share of explained variance, and None.
    k_mean, k_max, q_inf_mean, q_1_mean, id_rate
        On cases of the run. ``id_rate`` is the share of people whose twins do not all get the same decision; None for
        a regression.
    k_mean_rows, k_max_rows, q_inf_mean_rows, q_1_mean_rows, id_rate_rows
        The same on rows of the table.
    indirect_bits, indirect_bits_low
        What the average over twins tells about the protected attribute of which it tells most (over the whole table
        where a half has fewer than 200 rows, None where that is too small as well), and the lower end.
    selection_gap, odds_gap, impact_ratio
        The largest differences between the groups of one attribute, in selection rates and in average odds, and the
        lowest selection rate over the highest.
    gap_tail, gap_max
        The gap between twins' scores that 99 % of the rows stay below, and the largest.
    equalised_odds, f1
        The larger difference in true or false positive rates between the groups of one attribute; F1 of the favourable
        class.
    """

    accuracy: float
    balanced_accuracy: float | None
    k_mean: float
    k_max: int
    q_inf_mean: float
    q_1_mean: float
    id_rate: float | None
    k_mean_rows: float
    k_max_rows: int
    q_inf_mean_rows: float
    q_1_mean_rows: float
    id_rate_rows: float | None
    indirect_bits: float | None = None
    indirect_bits_low: float | None = None
    selection_gap: float | None = None
    odds_gap: float | None = None
    impact_ratio: float | None = None
    gap_tail: float | None = None
    gap_max: float | None = None
    equalised_odds: float | None = None
    f1: float | None = None

    def lowered(self, measure: Measure) -> float:
        """The mean over the cases of what a repair is to lower: k for ``q_inf``, bits for ``q_1``."""
        return self.k_mean if measure == "q_inf" else self.q_1_mean


@dataclass(frozen=True, slots=True)
class Proof:
    """What one of our own checkers has established about a model, for everybody in the domain (see ``proofs``).

    Parameters
    ----------
    bound
        The most classes that anybody can have; always fewer than there are twins.
    property
        "flips": all twins of a person get one score, so no decision depends on a protected value either; "k": the
        number of classes alone.
    text
        Why, in a sentence.
    """

    bound: int
    property: str
    text: str


@dataclass(frozen=True, slots=True)
class Estimates:
    """Figures of a model on held-out rows with their 95 % intervals, to lay candidates side by side.

    ``bits`` is mean Q∞ of rows, ``flips`` the share of rows whose twins get both decisions, ``impact_ratio`` the lowest
    selection rate over the highest of the attribute where it is lowest, ``indirect_bits`` what the average over twins
    tells about the attribute of which it tells most (the upper end is no bound).
    """

    accuracy: Estimate
    balanced_accuracy: Estimate | None
    bits: Estimate
    flips: Estimate | None
    impact_ratio: Estimate | None = None
    impact_attribute: str | None = None
    indirect_bits: Estimate | None = None
    indirect_attribute: str | None = None
    indirect_placebo: float | None = None


@dataclass(frozen=True, slots=True)
class Attacked:
    """What a fresh search found against a network: lower bounds of what there is."""

    seed: int
    evaluations: int
    cases: int
    id_cases: int
    id_rate: float | None
    k_mean: float
    k_max: int
    q_inf_mean: float


class Attack(Protocol):
    """Runs a fresh search against a model. Handed in from above, because repair knows no search."""

    def __call__(self, network: Model, *, evaluations: int | None = None) -> Attacked:
        """Attack for as long as planned, or for exactly so many evaluations."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A model to be judged, and what was done to it.

    Parameters
    ----------
    name, words
        What it is called, and what was done, in a line.
    network
        The model: anything with ``inputs`` and ``scores``.
    neurons, shrink, retrained, yardstick
        For the record: held neurons, the share that protected inputs were moved, whether it was trained, and whether it
        is there for comparison only.
    coding
        Which groups of people it was told about.
    fitted
        Where it was fitted anew and takes inputs of its own: how it is asked.
    source
        What is written to a file, where that is not the model itself.
    teacher
        The model whose scores it has learned, where it has: how faithful it is, is measured on held-out rows.
    """

    name: str
    words: str
    network: Model = field(repr=False)
    neurons: tuple[Do, ...] = ()
    shrink: float = 0.0
    retrained: bool = False
    yardstick: bool = False
    coding: str = ""
    fitted: Fitted | None = field(default=None, repr=False, metadata=_IN_MEMORY)
    source: Any = field(default=None, repr=False, compare=False, metadata=_IN_MEMORY)
    teacher: Model | None = field(default=None, repr=False, compare=False, metadata=_IN_MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairCandidate(Proposal):
    """A proposal that could be shipped instead, with how it does on evidence it has not seen.

    Attributes
    ----------
    plan, held_out
        Its figures on the part of the evidence that candidates are chosen on, and on the part that judges.
    within_budget
        Whether the upper ends of what it loses on the plan's rows keep to the accuracy that may be lost.
    proof
        What is proved of it by our own checkers; None where nothing is.
    estimates
        Its held-out figures with intervals.
    on_front, dominated
        Whether no other candidate is at least as good in everything on the held-out part, and better in something; and
        whether one is, on the plan's part.
    raises, worse_tail
        What there is more of than before, in words: on the plan's part people who flip, mean k of rows, or the gap
        between twins of the worst 1 % of rows; and that gap on the held-out part. "" where it may be chosen.
    loss, balanced_loss, loss_upper, balanced_loss_upper
        Accuracy and balanced accuracy lost on the plan's rows (below 0: gained), and the upper ends of both;
        statistical, with 90 % confidence.
    held_out_loss_low, held_out_loss_high
        95 % interval of the accuracy lost on held-out rows.
    family
        The proposer that made it.
    fidelity, fidelity_apart
        Share of held-out rows that a distilled model decides as the average over twins does, and how far its scores lie
        from the average there, on the mean.
    files
        Where it was written, seen from the folder of the run.
    network
        The model itself; None where the record was read back from a file.
    """

    plan: Figures
    held_out: Figures
    within_budget: bool
    proof: Proof | None = None
    estimates: Estimates | None = None
    on_front: bool = False
    dominated: bool = False
    raises: str = ""
    worse_tail: str = ""
    loss: float = 0.0
    balanced_loss: float | None = None
    loss_upper: float = 0.0
    balanced_loss_upper: float | None = None
    held_out_loss_low: float | None = None
    held_out_loss_high: float | None = None
    family: str = "repair"
    fidelity: float | None = None
    fidelity_apart: float | None = None
    files: tuple[str, ...] = ()
    network: Any = field(default=None, repr=False, metadata=_IN_MEMORY)

    @property
    def worse(self) -> str:
        """What there is more of, for which it is not chosen, in words."""
        return self.raises or self.worse_tail

    @property
    def k_max_proved(self) -> int | None:
        """The most classes that anybody can have, where that is proved."""
        return None if self.proof is None else self.proof.bound


@dataclass(frozen=True, slots=True)
class GroupRate:
    """What one group of people gets."""

    name: str
    people: int
    selection_rate: float
    true_positive_rate: float | None
    false_positive_rate: float | None


@dataclass(frozen=True, slots=True)
class RepairGroup:
    """Differences between groups of people: the largest rate minus the smallest."""

    attributes: tuple[str, ...]
    groups: tuple[GroupRate, ...]
    too_small: tuple[str, ...]
    selection: float | None
    equal_opportunity: float | None
    average_odds: float | None
    equalised_odds: float | None = None


@dataclass(frozen=True, slots=True)
class RepairEvidence:
    """How much the repairs were made from, chosen on and judged on."""

    plan_cases: int
    plan_rows: int
    held_out_cases: int
    held_out_rows: int
    rows_unseen_by_model: bool
    notes: tuple[str, ...] = ()
    training_rows: int = 0


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A written file, asked about held-out rows as its owner would, against the model that was judged.

    Attributes
    ----------
    file, kept, why
        Its name, and whether it says the same; if not, it was removed, and ``why`` says what differs.
    library, fresh
        What opened and asked it, with the version; whether that was a process of its own (a model that lives in memory
        alone is asked here).
    rows, equal
        Held-out rows that were asked about, and those whose scores and decisions are the same.
    tolerance, largest
        How far a score may lie from the judged one as a share of the scores' scale, and how far one did.
    compared
        What was compared: scores, decisions, classes and their types, twins (k), missing and unknown values …
    k_max
        The largest k among all twins of some of the people, by the file; None where scores are no single numbers.
    """

    file: str
    kept: bool
    library: str = ""
    fresh: bool = True
    rows: int = 0
    equal: int = 0
    tolerance: float = 0.0
    largest: float | None = None
    compared: tuple[str, ...] = ()
    k_max: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RepairResult(Shown):
    """Everything that ``fairbits repair`` found, and the files that it wrote.

    Parameters
    ----------
    subject, identity
        The name of the subject, and its identity before the repair, in short.
    seed, max_accuracy_loss, epsilon, partition, measure, options
        The terms: seed, accuracy that may be lost, tolerance, partition, what is lowered, and what was asked for.
    evidence, before_plan, before_held_out, estimates_before
        The cases and rows of both halves; figures of the model as it is on each, and those on held-out rows with
        intervals.
    repairs, chosen, reason
        Every proposal, judged on both halves; the one to use. Where none keeps the budget it is None, ``reason`` says
        so, and no model is written.
    groups_before, groups_after
        What groups of people get, before and after.
    attack_before, attack_after
        What a fresh search finds, before and after; None where none was made.
    files, subject_file, folder
        The models that were written, in the format that the model came in first, the subject file about the first, and
        the folder of the run.
    written
        Every file that was written, asked again in a fresh process; those that were removed for it too.
    warnings, left_out
        What a reader should know before using it; proposers that could not be used here, each with the reason.
    """

    subject: str
    seed: int
    max_accuracy_loss: float
    epsilon: float
    partition: str
    evidence: RepairEvidence
    before_plan: Figures
    before_held_out: Figures
    repairs: tuple[RepairCandidate, ...]
    chosen: RepairCandidate | None = field(default=None, metadata=_IN_MEMORY)  # its name is in the file
    groups_before: tuple[RepairGroup, ...] = ()
    groups_after: tuple[RepairGroup, ...] = ()
    attack_before: Attacked | None = None
    attack_after: Attacked | None = None
    files: tuple[Path, ...] = ()
    subject_file: Path | None = None
    warnings: tuple[str, ...] = ()
    reason: str = ""
    identity: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    measure: Measure = "q_inf"
    left_out: tuple[tuple[str, str], ...] = ()
    estimates_before: Estimates | None = None
    folder: Path | None = field(default=None, metadata=_IN_MEMORY)
    written: tuple[FileCheck, ...] = ()

    def __repr__(self) -> str:
        found = f"nothing chosen of {len(self.repairs)} repairs"
        if self.chosen is not None:
            before, after = self.before_held_out.k_mean, self.chosen.held_out.k_mean
            found = f"{self.chosen.name}, held-out mean k {before:.2f} → {after:.2f}"
        return f"<RepairResult of {self.subject!r}: {found}>"

    @property
    def regression(self) -> bool:
        """Whether it predicts a number: there are no decisions, so no ID rates either."""
        return self.before_held_out.balanced_accuracy is None

    @property
    def quality(self) -> str:
        """What ``accuracy`` is, in words."""
        return quality(regression=self.regression)

    def __getitem__(self, name: str) -> RepairCandidate:
        return next(repair for repair in self.repairs if repair.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        """The repairs that were tried."""
        return tuple(repair.name for repair in self.repairs)


_WHOLE = ("k_max", "k_max_rows")
#: Held-out figures that have an interval.
_RANGED = ("accuracy", "balanced_accuracy", "bits", "flips", "impact_ratio", "indirect_bits")
_FIGURES = tuple(field.name for field in fields(Figures))
#: One row per repair and half of the evidence: ``held_out`` says which. Fixed columns first.
COLUMNS = pa.schema(
    [
        ("repair", pa.string()),
        ("neurons", pa.string()),
        *(
            (f"{name}_{when}", pa.float64())
            for name in ("accuracy", "k_mean", "id_rate")
            for when in ("before", "after")
        ),
        ("held_out", pa.bool_()),
        ("neuron_count", pa.int32()),
        ("shrink", pa.float64()),
        ("retrained", pa.bool_()),
        ("yardstick", pa.bool_()),
        ("within_budget", pa.bool_()),
        ("on_front", pa.bool_()),
        ("chosen", pa.bool_()),
        *(
            (f"{name}_{when}", pa.int32() if name in _WHOLE else pa.float64())
            for name in _FIGURES
            if name not in ("accuracy", "k_mean", "id_rate")
            for when in ("before", "after")
        ),
        ("words", pa.string()),
        ("k_max_proved", pa.int32()),  # the most classes that anybody can have; null where nothing is proved
        ("dominated", pa.bool_()),
        ("loss_upper", pa.float64()),
        ("balanced_loss_upper", pa.float64()),
        ("held_out_loss_low", pa.float64()),  # 95 % interval of the accuracy lost on held-out rows
        ("held_out_loss_high", pa.float64()),
        ("fidelity", pa.float64()),  # of a distilled model: held-out rows decided as by the average
        ("fidelity_apart", pa.float64()),  # and the mean distance of its scores from the average
        (
            "worse_tail",
            pa.string(),
        ),  # how far the worst 1 % of held-out rows are further apart; empty where they are not
        ("raises", pa.string()),  # what there is more of on the plan's half; empty where nothing is
        ("family", pa.string()),  # who proposed it
        ("coding", pa.string()),  # which groups it was told about
        ("proved", pa.string()),  # "flips" or "k"; null where nothing is proved
        # Held-out figures with their 95 % intervals; null in rows about the plan's part.
        *((f"{name}_held_out{end}", pa.float64()) for name in _RANGED for end in ("", "_low", "_high")),
        ("files", pa.string()),
    ]
)


def write(
    result: RepairResult, folder: Path, content: str | None = None, *, made_with: Mapping[str, Any] | None = None
) -> None:
    """Write both files, each whole or not at all."""
    write_parquet(folder / TABLE, pa.Table.from_pylist(_rows(result), schema=COLUMNS))
    write_json(folder / DOCUMENT, {**document(result), "content": content, "made_with": made_with})


def document(result: RepairResult) -> dict[str, Any]:
    """The content of repair.json: the record, with the names of files and of the chosen repair."""
    return {
        **numbered(plain(result), +1),
        "files": [path.name for path in result.files],
        "subject_file": None if result.subject_file is None else result.subject_file.name,
        "chosen": None if result.chosen is None else result.chosen.name,
        "layers_from": 1,  # the first hidden layer, as in layers.parquet; neurons count from 0
        "version": __version__,
        "about_blinding": WARNING,
    }


def read_repair(folder: Path) -> RepairResult | None:
    """What a repair left in a run's folder; the models themselves are in their files."""
    path = folder / DOCUMENT
    if not path.is_file():
        return None
    with reading(path, "delete it, and run fairbits repair again"):
        written = read_json(path)
        found = record_from_json(RepairResult, numbered(written, -1))
        return replace(
            found,
            chosen=None if written["chosen"] is None else found[written["chosen"]],
            files=tuple(folder / name for name in found.files),
            subject_file=None if found.subject_file is None else folder / found.subject_file,
            folder=folder,
        )


def _rows(result: RepairResult) -> list[dict[str, Any]]:
    rows = []
    for one in result.repairs:
        parts = ((False, result.before_plan, one.plan), (True, result.before_held_out, one.held_out))
        for held_out, before, after in parts:
            row: dict[str, Any] = {name: getattr(one, name) for name in COLUMNS.names if hasattr(one, name)} | {
                "repair": one.name,
                "neurons": neurons_in_words(one.neurons),
                "held_out": held_out,
                "neuron_count": len(one.neurons),
                "chosen": one is result.chosen,
                "proved": None if one.proof is None else one.proof.property,
                "files": " ".join(one.files),
            }
            for name in _FIGURES:
                row[f"{name}_before"], row[f"{name}_after"] = getattr(before, name), getattr(after, name)
            if held_out and one.estimates is not None:
                for name in _RANGED:
                    row |= Estimate.named(f"{name}_held_out", getattr(one.estimates, name))
            rows.append(row)
    return rows
