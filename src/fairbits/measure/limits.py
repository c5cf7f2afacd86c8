"""What was not asked, beside the figure that it limits: one list of facts for the terminal, the page and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fairbits.domain import Schema, shortened
from fairbits.measure.support import MIN_ROWS

#: Which figures of a measurement rest on the values that twins take.
TWIN_FIGURES = ("k_mean", "k_max", "q_inf_mean", "q_inf_max", "q_1_mean", "q_1_max", "split_rate", "flip_rate")
Kind = Literal["exact", "lower bound", "statistical"]


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that was not asked.

    Attributes
    ----------
    limit
        "values" (twins take some values of a protected number only), "missing" (twins of others never lack a value),
        "support" (some combinations of protected values hardly occur) or "training" (accuracy on rows that the model
        may know).
    figures
        The figures that it limits, by their names in JSON.
    kind
        What these figures become, where it changes their kind.
    attribute
        The attribute that it is about.
    count, of
        How many values were asked, or combinations are supported, of how many.
    """

    limit: Literal["values", "missing", "support", "training"]
    figures: tuple[str, ...]
    kind: Kind | None = None
    attribute: str | None = None
    count: int | None = None
    of: int | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Limit:
        """Undo ``document``; the sentence is made anew."""
        return cls(**{**{name: document[name] for name in cls.__slots__}, "figures": tuple(document["figures"])})

    @property
    def text(self) -> str:
        """The same in a sentence."""
        name = shortened(self.attribute or "", 60)
        if self.limit == "values":
            return (
                f"Twins take {self.count} values of {name} and each person's own; others were not asked, so that these "
                f"figures are lower bounds for people of all values."
            )
        if self.limit == "missing":
            return f"Nobody who has a value of {name} was asked about without it."
        if self.limit == "support":
            return (
                f"Of {self.of:,} combinations of protected values, {self.count:,} are those of at least {MIN_ROWS} "
                f"rows; the others are people whom the table hardly knows."
            )
        return "Accuracy is on rows that the model may have been trained on; on others it is likely lower."

    def document(self) -> dict[str, Any]:
        """As JSON, the sentence included."""
        return {**asdict(self), "figures": list(self.figures), "text": self.text}


def twin_limits(schema: Schema) -> tuple[Limit, ...]:
    """What the twins of a schema leave out."""
    found = []
    for column in schema.protected_columns:
        attribute = schema.attributes[column]
        if attribute.representatives:
            asked = attribute.twin_count
            found.append(Limit("values", TWIN_FIGURES, kind="lower bound", attribute=attribute.name, count=asked))
        if attribute.gap is not None and attribute.missing != "value":
            found.append(Limit("missing", TWIN_FIGURES, attribute=attribute.name))
    return tuple(found)


def quality_limits(accuracy_on: str | None) -> tuple[Limit, ...]:
    """What limits the comparison with labels."""
    return () if accuracy_on in (None, "held-out") else (Limit("training", ("accuracy", "balanced_accuracy", "auc")),)


def kind_of(limits: tuple[Limit, ...], *, complete: bool = True) -> Kind:
    """The kind of the figures about the twins of some rows: of all of them exact, unless a limit makes it less."""
    if any(one.kind == "lower bound" for one in limits):
        return "lower bound"
    return "exact" if complete else "statistical"
