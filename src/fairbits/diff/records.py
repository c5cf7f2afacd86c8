"""What a comparison of two models says: frozen records, and the document of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fairbits.measure import Estimate
from fairbits.subject import Quality

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Shift:
    """One figure of both models, and the change with its paired 95 % interval."""

    name: str
    words: str
    before: float | None
    after: float | None
    change: Estimate | None
    share: bool = False
    worse: int = 0

    @property
    def verdict(self) -> str:
        """worse or better where the whole interval says so; else "open", and "same" where nothing moved."""
        if self.change is None:
            return "–"
        if self.change.low == self.change.high == 0 or (self.before == self.after and self.change.value == 0):
            return "same"
        if self.change.low <= 0 <= self.change.high:
            return "open"
        if not self.worse:
            return "differs"
        return "worse" if (self.change.low > 0) == (self.worse > 0) else "better"


@dataclass(frozen=True, slots=True)
class GroupShift:
    """One group of people as they are: how the decisions about them changed, and their k."""

    attribute: str
    group: str
    people: int
    selection_before: float | None
    selection_after: float | None
    selection_change: Estimate | None
    lost: int | None
    gained: int | None
    k_change: Estimate
    rose: float


@dataclass(frozen=True, slots=True)
class PersonShift:
    """One person who got worse: more classes than before, or a wider span."""

    place: str
    own: Mapping[str, str]
    k_before: int
    k_after: int
    span_before: float
    span_after: float
    score_before: float
    score_after: float
    decision_before: str | None
    decision_after: str | None
    flips_before: bool
    flips_after: bool
    worst: str
    best: str


@dataclass(frozen=True, slots=True)
class Changed:
    """How many decisions changed, and in which direction."""

    people: int
    rate: Estimate
    lost: int
    gained: int
    made_right: int | None
    made_wrong: int | None


@dataclass(frozen=True, slots=True)
class LayerShift:
    """How far the outputs of one layer are apart."""

    layer: int
    width: int
    distance: float
    relative: float
    rise: float


@dataclass(frozen=True, slots=True)
class SideFacts:
    """One of both models."""

    name: str
    model: str
    sha256: str | None
    identity: str
    quality: Quality


@dataclass(frozen=True, slots=True)
class ModelDiff:
    """Everything that a comparison says.

    Parameters
    ----------
    a, b
        The two models.
    rows, rows_total
        People compared, and people in the table.
    m, epsilon, partition, seed, protected, regression
        The terms, equal for both.
    shifts
        Each figure under both models.
    changed
        Whose decision changes; None where nothing is decided.
    k_rose, k_fell
        For how many people k is higher, or lower, under ``b``.
    groups, people
        What changes for groups, and for whom most.
    score_distance, score_distance_max
        Mean and largest difference of scores.
    layers, parted, adds_most
        Where two networks of one shape part: each layer, the one where outputs part, and the one that adds most.
    notes, command
        What must be known to read it, and the command that makes it again.
    """

    a: SideFacts
    b: SideFacts
    rows: int
    rows_total: int
    m: int
    epsilon: float
    partition: str
    seed: int
    protected: tuple[str, ...]
    regression: bool
    shifts: tuple[Shift, ...]
    changed: Changed | None  # None where nothing is decided
    k_rose: int
    k_fell: int
    groups: tuple[GroupShift, ...]
    people: tuple[PersonShift, ...]
    score_distance: float
    score_distance_max: float
    layers: tuple[LayerShift, ...]
    parted: int | None  # the layer where the outputs part, None where they do not
    adds_most: int | None
    notes: tuple[str, ...]
    command: str = ""

    def __repr__(self) -> str:
        return f"<ModelDiff over {self.rows:,} rows: k rises for {self.k_rose:,}, falls for {self.k_fell:,}>"

    @property
    def same(self) -> bool:
        """Whether no score differs at all, and both decide by the same rule."""
        return self.score_distance_max == 0 and self.a.quality.rule == self.b.quality.rule

    def __getitem__(self, name: str) -> Shift:
        return next(shift for shift in self.shifts if shift.name == name)

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        people = f"{self.rows:,} people"
        if self.same:
            return f"Both models give these {people} and all their twins the same scores."
        by_name = {shift.name: shift for shift in self.shifts}
        k = by_name["k_mean"]
        moved = {"worse": "more", "better": "fewer"}.get(k.verdict, "about as many")
        if self.changed is None or "flip_rate" not in by_name:
            return (
                f"From A to B, the twins of {people} fall into {moved} classes (mean k {k.before:.2f} → {k.after:.2f})."
            )
        flips = by_name["flip_rate"]
        shares = f"{100 * (flips.before or 0):.1f} % → {100 * (flips.after or 0):.1f} %"
        bits = f"decisions that flip as somebody else: {shares} ({flips.verdict})"
        many = self.changed.people
        who = (
            f"none of {people} is" if many == 0 else f"{many:,} of {people} ({100 * self.changed.rate.value:.1f} %) are"
        )
        return f"From A to B, {who} decided otherwise; {bits}."

    def document(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        found |= {"format": FORMAT, "sentence": self.sentence, "same": self.same}
        for shift, entry in zip(self.shifts, found["shifts"], strict=True):
            entry["verdict"] = shift.verdict
        for side, entry in ((self.a, found["a"]), (self.b, found["b"])):
            entry["quality"] = side.quality.figures()
        return found
