"""Was the model trained on the table as it is? Read otherwise, it must not agree far better with the labels.

A model that names no columns may have been trained on them in another order, and one without a scaler on numbers that
were standardised before. Nothing but the labels can tell: the readings that people use are tried on real rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Codes, Encoding, Numeric, RawTable, Schema, Table
from fairbits.errors import FairbitsError
from fairbits.models import BlackBox, ClassBox, Loaded, Model, ModelOptions, Network, Owner, TreeModel
from fairbits.randomness import generator, sampled_rows
from fairbits.subject.quality import area_under_curve, variance_explained
from fairbits.subject.round_trip import LIBRARY, ROWS, asking, formed

#: Scores that agree less with the labels than this, both ends of the interval, raise a suspicion.
_POOR = 0.75

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How scores agree with labels, with an interval; for a regression the variance explained and no interval."""

    value: float
    low: float
    high: float

    def clearly_above(self, other: Agreement) -> bool:
        """Whether it is better by more than chance could make it."""
        return self.low > other.high and self.value > other.value + 0.02


def agreement_of(scores: Scores, labels: npt.NDArray[np.float64], schema: Schema) -> Agreement | None:
    """The area under the curve, whichever way round; or the variance explained."""
    if not np.isfinite(scores).all():
        return None
    if schema.regression:
        found = variance_explained(scores, labels)
        return Agreement(found, found - 0.1, found + 0.1)
    area = area_under_curve(scores, labels == schema.favourable_index)
    if area is None:
        return None
    value, low, high = area
    return Agreement(value, low, high) if value >= 0.5 else Agreement(1 - value, 1 - high, 1 - low)


def settled_order(
    loaded: Loaded, model: Model, encoding: Encoding, schema: Schema, table: Table, options: ModelOptions
) -> tuple[Encoding, tuple[str, ...]]:
    """The order of one-hot inputs that agrees with the labels, where the model does not name its inputs."""
    categories = tuple(one.name for one in schema.attributes if one.kind == "category")
    numbers = tuple(name for name in schema.names if name not in categories)
    plain = Encoding.one_hot(schema).with_gaps(schema)
    if (
        loaded.encoding is not None
        or options.columns is not None
        or table.labels is None
        or not encoding.same_as(plain)
    ):
        return encoding, ()
    if not categories or not numbers:
        return encoding, ()
    rows, labels = _sample(table)
    ways = {"as the table has them": schema.names}
    ways |= {"numbers first, as pandas.get_dummies does": (*numbers, *categories)}
    ways |= {"categories first": (*categories, *numbers)}
    made = {how: Encoding.one_hot(schema, columns=names).with_gaps(schema) for how, names in ways.items()}
    found: dict[str, Agreement] = {}
    for how, one in made.items():
        agreed = agreement_of(np.asarray(model.scores(one.encode(rows))), labels, schema)
        if agreed is not None:
            found[how] = agreed
    first = "as the table has them"
    if first not in found:
        return encoding, ()
    best = max(found, key=lambda how: found[how].value)
    if not found[best].clearly_above(found[first]):
        return encoding, ()
    what = "variance explained" if schema.regression else "AUC"
    note = (
        f"the model does not name its inputs; read with {best}, because so its scores agree with the labels ({what} "
        f"{found[best].value:.2f}, against {found[first].value:.2f} in the table's order)."
    )
    return made[best], (note,)


def scaling_doubt(
    owner: Owner | None,
    raw: RawTable | None,
    model: Model,
    encoding: Encoding,
    schema: Schema,
    table: Table,
    options: ModelOptions,
    classes: tuple[str, ...] | None,
) -> str | None:
    """Why the numbers of the table are probably not in the units that the model was trained on."""
    numbers = [i for i, one in enumerate(schema.attributes) if one.kind != "category" and i not in encoding.unseen]
    if table.labels is None or not numbers or len(table) < 20:
        return None
    rows, labels = _sample(table)
    here = agreement_of(np.asarray(model.scores(encoding.encode(rows))), labels, schema)
    if here is None:
        return None
    scales = {"standardised": _standardised, "between 0 and 1": _min_max}
    for how, scale in scales.items():
        if isinstance(model, Network | TreeModel):
            scores = _scaled_inputs(model, encoding, rows, numbers, scale, schema)
        elif here.high < _POOR and isinstance(model, BlackBox | ClassBox):
            scores = _scaled_rows(owner, raw, schema, table, numbers, scale, options, classes)
        else:
            return None
        other = None if scores is None else agreement_of(scores, labels, schema)
        good = 0.2 if schema.regression else 0.7  # two readings that agree with nothing say nothing
        if other is not None and other.value > good and other.clearly_above(here):
            what = "variance explained" if schema.regression else "AUC"
            return (
                f"the model agrees far better with the labels when the table's numbers are {how} ({what} "
                f"{other.value:.3f}, against {here.value:.3f} as they are), so it was probably trained on numbers in "
                f"other units; hand over the pipeline with its scaler, or the table in the model's units, or keep it "
                f"as it is with --allow-inverted."
            )
    return None


def _sample(table: Table) -> tuple[Codes, npt.NDArray[np.float64]]:
    chosen = sampled_rows(len(table), ROWS, generator(0, "round trip"))
    assert table.labels is not None  # noqa: S101 - asked by whoever looks
    return table.codes[chosen], table.labels[chosen]


Scale = Callable[[npt.NDArray[np.float64]], tuple[float, float]]


def _standardised(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    return float(values.mean()), 1.0 / (float(values.std()) or 1.0)


def _min_max(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    return float(values.min()), 1.0 / (float(np.ptp(values)) or 1.0)


def _scaled_inputs(
    model: Model, encoding: Encoding, rows: Codes, numbers: list[int], scale: Scale, schema: Schema
) -> Scores | None:
    """Scores with numbers scaled on their way into the model."""
    parts, changed = list(encoding.parts), False
    for i in numbers:
        part, gap = parts[i], schema.attributes[i].gap
        if isinstance(part, Numeric) and part.shift == 0 and part.scale == 1:
            known = rows[:, i] if gap is None else rows[rows[:, i] != gap, i]
            shift, factor = scale(known) if len(known) else (0.0, 1.0)
            parts[i], changed = replace(part, shift=shift, scale=factor), True
    if not changed:
        return None
    other = Encoding(parts, fixed=encoding.fixed, dtype=encoding.dtype)
    return np.asarray(model.scores(other.encode(rows)))


def _scaled_rows(
    owner: Owner | None,
    raw: RawTable | None,
    schema: Schema,
    table: Table,
    numbers: list[int],
    scale: Scale,
    options: ModelOptions,
    classes: tuple[str, ...] | None,
) -> Scores | None:
    """Scores of the owner's rows with their numbers scaled."""
    if owner is None or raw is None or owner.form in LIBRARY:
        return None
    chosen = sampled_rows(len(table), ROWS, generator(0, "round trip"))
    frame: Any = raw.rows(chosen, owner.columns)
    frame = frame if hasattr(frame, "iloc") else frame.to_pandas()
    for i in numbers:
        name = schema.names[i]
        if name in owner.columns:
            values = np.asarray(frame[name].astype(float))
            shift, factor = scale(values[np.isfinite(values)])
            frame[name] = (values - shift) * factor
    try:
        return asking(owner, schema, options, classes)(formed(owner, frame))
    except FairbitsError:
        return None
    except Exception:  # noqa: BLE001 - a model that refuses scaled numbers was not trained on them
        return None
