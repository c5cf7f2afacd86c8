"""What was not asked, beside the figure that it limits: one list of facts, for the terminal, the page and JSON alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from fairbits.domain import Schema, Table, shortened
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
        "support" (some combinations of protected values hardly occur), "repeats" (rows that are alike in everything
        else) or "training" (accuracy on rows that the model may know).
    figures
        The figures that it limits, by their names in JSON.
    kind
        What these figures become, where it changes their kind.
    attribute
        The attribute that it is about.
    count, of
        How many were asked, are supported, or repeat, of how many; what is counted depends on the limit.
    """

    limit: Literal["values", "missing", "support", "repeats", "training"]
    figures: tuple[str, ...]
    kind: Kind | None = None
    attribute: str | None = None
    count: int | None = None
    of: int | None = None

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
                f"Of {self.of:,} combinations of protected values, {self.count:,} are those of at least {MIN_ROWS} rows; "
                f"the others are people whom the table hardly knows."
            )
        if self.limit == "repeats":
            return f"{self.count:,} of {self.of:,} rows repeat another in everything that is not protected."
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


def repeated_rows(schema: Schema, table: Table) -> Limit | None:
    """Rows that repeat another one in all that is not protected, where they are more than 1 in 100 (METHOD.md 16)."""
    free = np.ascontiguousarray(table.codes[:, list(schema.free_columns)] + 0.0)
    if not free.shape[1]:
        return None
    again = len(free) - len(np.unique(free, axis=0))
    if again <= 0.01 * len(free):
        return None
    return Limit("repeats", ("k_mean", "q_inf_mean", "q_1_mean", "split_rate", "flip_rate"), count=again, of=len(free))


def kind_of(limits: tuple[Limit, ...], *, complete: bool = True) -> Kind:
    """The kind of the figures about the twins of some rows: of all of them exact, unless a limit makes it less."""
    if any(one.kind == "lower bound" for one in limits):
        return "lower bound"
    return "exact" if complete else "statistical"
