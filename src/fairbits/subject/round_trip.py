"""Does the model that is measured answer as its owner's does? Asked before anything is said about it.

A value passes schema, codes and encoding on its way to the model, and a native form may stand where a library stood.
Every hop can change it. So real rows go in twice, untouched and through the schema, and the scores are compared.

A model that names no columns may have been trained on them in another order, and one without a scaler on numbers that
were standardised before. Nothing but the labels can tell: the readings that people use are tried on real rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import (
    ABOVE_HALF,
    DEFAULT_THRESHOLD,
    Codes,
    Decoder,
    Encoding,
    Numeric,
    RawTable,
    Schema,
    Table,
    table_columns,
    text_of,
)
from fairbits.errors import FairbitsError, foreign, reason
from fairbits.models import (
    BlackBox,
    Loaded,
    Model,
    ModelOptions,
    Network,
    Owner,
    TreeModel,
    numbers_in,
    output_kind_of,
    reading_of,
)
from fairbits.randomness import generator, sampled_rows
from fairbits.subject.quality import area_under_curve, variance_explained
from fairbits.text import shortened

#: Rows that are asked twice, at least; all of a smaller table.
ROWS = 2_000
#: Forms in which a native form is held against its library, and not the schema against the owner's rows.
LIBRARY = ("inputs", "codes")
#: Scores of what computes in float32 may lie so many units of their last place apart.
ULPS = 4

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """How many real rows got the same score untouched and through the schema.

    Parameters
    ----------
    rows
        Rows that were compared; 0 where nothing could be.
    equal
        Rows whose scores are equal, within the tolerance.
    tolerance
        How far two scores may lie apart and still be equal.
    compared
        What was compared with what, or why nothing was.
    otherwise
        Rows that the model's own decision differs for from that by the score.
    cut
        Where some do: the score from which on the model decides favourably, if one says it of all rows.
    """

    rows: int = 0
    equal: int = 0
    tolerance: float = 0.0
    compared: str = "nothing"
    otherwise: int = 0
    cut: float | None = None

    def figures(self) -> dict[str, Any]:
        """The figures under their names in JSON."""
        return {"rows": self.rows, "equal": self.equal, "tolerance": self.tolerance}

    def sentence(self) -> str:
        """The figures in words, for the head of an output."""
        if not self.rows:
            return (
                f"asked through the schema, {self.compared.replace('nothing: ', 'not compared with the owner’s way: ')}"
            )
        return f"asked through the schema: equal on {self.equal:,} of {self.rows:,} rows"


def round_trip(
    owner: Owner,
    raw: RawTable | None,
    model: Model,
    encoding: Encoding,
    schema: Schema,
    table: Table,
    options: ModelOptions,
    classes: tuple[str, ...] | None,
) -> RoundTrip | str:
    """Ask about the same real rows both ways; the first one that is answered otherwise, in a sentence."""
    if raw is None and owner.form not in LIBRARY:
        return RoundTrip(compared="nothing: the table was given as codes")
    chosen = sampled_rows(len(table), ROWS, generator(0, "round trip"))
    codes = table.codes[chosen]
    ask = asking(owner, schema, options, classes)
    through = raw if owner.form not in LIBRARY else None
    inputs = encoding.encode(codes)
    digits = () if through is None else tuple(name for name in through.digits(schema) if name in owner.columns)
    refused, theirs = "", None
    for more in ((), digits)[: 1 + bool(digits)]:  # "02139" is a number for pandas, but the model may refuse those
        try:
            coded = codes if owner.form == "codes" else inputs
            rows = coded if through is None else _rows(owner, through, schema, chosen, more)
            theirs = ask(rows)
            break
        except Exception as error:  # noqa: BLE001 - the owner's way is a guess, and foreign code may raise anything
            refused = refused or shortened(str(error) if isinstance(error, FairbitsError) else reason(error), 160)
    if theirs is None:
        return RoundTrip(compared=f"nothing: the model does not take the table's rows as they are ({refused})")
    ours = np.asarray(model.scores(inputs), np.float32)
    allowed = _tolerance(model, encoding, codes, ours)
    apart = ~_same(ours, theirs, allowed)
    if apart.any() and owner.form in LIBRARY and options.output is None and schema.probabilities:
        # Log-odds that all lie within 0 and 1 look like probabilities from outside, and probabilities of classes that
        # were trained one against all others like log-odds; layers and trees say which they are.
        for logits in (True, False):
            other = asking(owner, schema, options, classes, logits=logits)
            if apart.any() and _same(ours, answers := other(rows), allowed).all():
                ask, theirs = other, answers
                apart = ~_same(ours, theirs, allowed)
    if apart.any() and through is not None and digits and not more:
        rows, theirs = _digits_as_text(owner, through, schema, chosen, digits, ask, rows, theirs)
        apart = ~_same(ours, theirs, allowed)
    if apart.any():
        noise = np.abs(ask(rows).astype(np.float64) - theirs)
        if (noise > 0).any():  # its answers vary: two ways may lie as far apart as two answers
            allowed = np.maximum(allowed, noise.max())
            apart = ~_same(ours, theirs, allowed)
    compared = "the encoded rows, by the library and as read" if owner.form in LIBRARY else "the owner's rows"
    if not apart.any():
        otherwise, cut = _otherwise(owner, rows, ours, schema)
        return RoundTrip(
            rows=len(chosen),
            equal=len(chosen),
            tolerance=float(allowed.max(initial=0.0)),
            compared=compared,
            otherwise=otherwise,
            cut=cut,
        )
    first = int(np.argmax(apart))
    where = table.place(int(chosen[first]))
    found = f"the model scores {apart.sum():,} of {len(chosen):,} rows otherwise"
    if through is None:
        return f"{found} than its own library does: {theirs[first]:.6g} there for {where}, {ours[first]:.6g} as read"
    culprit = _culprit(owner, through, schema, int(chosen[first]), codes[first], ask)
    return (
        f"{found} when it is asked through the schema: {theirs[first]:.6g} for {where} as the table has it, "
        f"{ours[first]:.6g} through the schema{culprit}"
    )


def _otherwise(owner: Owner, rows: Any, scores: Scores, schema: Schema) -> tuple[int, float | None]:
    """For how many rows the model's own decision is not what the schema's rule makes of its score, and the cut-off
    that would make it, if there is one: a support vector machine decides by its margin, of which its probabilities are
    fitted afterwards.
    """
    if owner.decide is None or len(schema.classes) != 2 or schema.favourable is None:
        return 0, None
    with foreign(f"the model's predict failed on {len(rows):,} rows"):
        labels = [text_of(one) for one in np.asarray(owner.decide(rows)).ravel().tolist()]
    if not set(labels) <= set(schema.classes):
        return 0, None
    favoured = np.array([one == schema.favourable for one in labels])
    otherwise = int((favoured != schema.rule.favours(scores)).sum())
    if not otherwise or favoured.all() or not favoured.any():
        return otherwise, None
    below, above = scores[~favoured].max(), scores[favoured].min()
    if below == np.float32(DEFAULT_THRESHOLD) < above:  # a tie is decided against: the cut-off is where it always is
        return otherwise, ABOVE_HALF
    return otherwise, float(max((below + above) / 2, np.nextafter(below, above))) if below < above else None


def asking(
    owner: Owner,
    schema: Schema,
    options: ModelOptions,
    classes: tuple[str, ...] | None,
    *,
    logits: bool | None = None,
) -> Callable[[Any], Scores]:
    """The owner's question with the answer as a favourable score: the same order, direction and link as ours.

    ``logits`` says what a library's answers are; None goes by their range.
    """
    reading = reading_of(schema, classes, options, own=owner.own)

    def ask(rows: Any) -> Scores:
        with foreign(f"the model failed on {len(rows):,} rows"):
            answer = numbers_in(owner.ask(rows), len(rows), "the model")
        if owner.form in LIBRARY and options.output is None and schema.probabilities:
            table = answer.reshape(len(answer), -1)  # what the network's head does to logits is not in the module
            link = output_kind_of(table, regression=False) == "logit" if logits is None else logits
            return replace(reading, logits=link).score(answer, "the model")
        return reading.score(answer, "the model")

    return ask


def _rows(
    owner: Owner, raw: RawTable, schema: Schema, chosen: npt.NDArray[np.int64], more: tuple[str, ...] = ()
) -> Any:
    """The owner's rows in the form in which the owner hands them over; ``more`` are further columns that stay text."""
    text = (*(one.name for one in schema.attributes if one.holds == "text" and one.name in owner.columns), *more)
    return formed(owner, raw.rows(chosen, owner.columns, text=text))


def _digits_as_text(
    owner: Owner,
    raw: RawTable,
    schema: Schema,
    chosen: npt.NDArray[np.int64],
    digits: tuple[str, ...],
    ask: Callable[[Any], Scores],
    rows: Any,
    theirs: Scores,
) -> tuple[Any, Scores]:
    """The rows with "02139" as text, where the model makes something of the text and nothing of the number.

    A model that was trained on text knows none of the numbers, and they all mean the same to it.
    """
    texts = _rows(owner, raw, schema, chosen, digits)
    moved = np.roll(chosen, 1)

    def sees(some: Any, more: tuple[str, ...], before: Scores) -> bool:
        other = raw.rows(moved, digits, text=more)
        changed = some.copy() if hasattr(some, "iloc") else None
        if changed is None:
            return True
        for name in digits:
            changed[name] = other[name].array
        return not np.array_equal(ask(changed), before)

    with suppress(Exception):  # a model that refuses the text was not trained on it
        spoken = ask(texts)
        if sees(texts, digits, spoken) and not sees(rows, (), theirs):
            return texts, spoken
    return rows, theirs


def formed(owner: Owner, frame: Any) -> Any:
    """A frame as the owner hands it over."""
    if owner.form == "array":
        return frame.to_numpy()
    if owner.form != "dummies":
        return frame
    import pandas as pd

    plain = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()
    return pd.get_dummies(plain, dummy_na=True).reindex(columns=list(owner.names), fill_value=0).astype(np.float64)


def _tolerance(model: Model, encoding: Encoding, codes: Codes, ours: Scores) -> npt.NDArray[np.float64]:
    """How far each score may lie from the owner's."""
    if isinstance(model, TreeModel) or not isinstance(model, Network):
        return np.zeros(len(ours))
    rows = np.asarray(encoding.encode(codes), np.float64)
    exact = _in_float64(model, rows, None)
    rounded = [np.abs(_in_float64(model, rows, generator(0, "rounding", i)) - exact).max() for i in range(2)]
    # A probability has the digits of 1: the other class is 1 - p, and where p is next to 0 some libraries say 0.
    sizes = np.maximum(np.abs(ours), np.float32(model.head != "linear"))
    return ULPS * np.spacing(sizes).astype(np.float64) + np.abs(ours - exact) + ULPS * max(rounded)


def _in_float64(
    network: Network, rows: npt.NDArray[np.float64], rng: np.random.Generator | None
) -> npt.NDArray[np.float64]:
    """A network's scores in float64; with a generator, every input, weight and output is off by half a float32 ulp."""
    from fairbits.functions import expit, softmax

    def rounded(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        plain = values.astype(np.float64)
        return plain if rng is None else plain * (1 + rng.choice((-1.0, 1.0), plain.shape) * 2.0**-24)

    found = rounded(rows)
    for i, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True)):
        found = rounded(found @ rounded(weights) + rounded(biases))
        if i < len(network.activations_after):
            found = network.activations_after[i](found)
    if network.head == "softmax":
        return np.asarray(softmax(found, axis=1)[:, network.favourable])
    only = found[:, 0]
    if network.head != "sigmoid":
        return only
    return np.asarray(expit(only if network.favourable == 1 else -only))


def _same(ours: Scores, theirs: Scores, allowed: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    apart = np.abs(ours.astype(np.float64) - theirs)
    return (apart <= allowed) | (np.isnan(ours) & np.isnan(theirs))


def _culprit(owner: Owner, raw: RawTable, schema: Schema, row: int, codes: Codes, ask: Callable[[Any], Scores]) -> str:
    """The first column whose value makes the difference, by giving the untouched row one value of ours at a time."""
    import pandas as pd

    decoder = Decoder(schema, tuple(name for name in owner.columns if name in table_columns(schema)))
    seen = [schema.column(name) for name in decoder.names]
    given = raw.rows(np.array([row]), owner.columns)
    given = (given if isinstance(given, pd.DataFrame) else given.to_pandas()).reset_index(drop=True)
    made = decoder.frame(codes[None, seen])
    before = _one(ask, owner, given)
    for name in made.columns:
        changed = given.copy()
        changed[name] = made[name].array
        if _one(ask, owner, changed) != before:
            held, got = repr(given[name].iloc[0]), repr(made[name].iloc[0])
            return f"; the column {name!r} is {shortened(held, 60)} in the table and {shortened(got, 60)} for the model"
    return ""


def _one(ask: Callable[[Any], Scores], owner: Owner, frame: Any) -> float | None:
    try:
        return float(ask(formed(owner, frame))[0])
    except Exception:  # noqa: BLE001 - a row that the model refuses is one that it does not answer alike
        return None


#: Scores that agree less with the labels than this, both ends of the interval, raise a suspicion.
_POOR = 0.75


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
    told = loaded.encoding is not None or options.columns is not None
    if told or table.labels is None or not encoding.same_as(plain) or not categories or not numbers:
        return encoding, ()
    chosen = sampled_rows(len(table), ROWS, generator(0, "round trip"))
    rows, labels = table.codes[chosen], table.labels[chosen]
    ways = {
        "as the table has them": schema.names,
        "numbers first, as pandas.get_dummies does": (*numbers, *categories),
        "categories first": (*categories, *numbers),
    }
    made = {how: Encoding.one_hot(schema, columns=names).with_gaps(schema) for how, names in ways.items()}
    tried = {how: agreement_of(np.asarray(model.scores(one.encode(rows))), labels, schema) for how, one in made.items()}
    found = {how: agreed for how, agreed in tried.items() if agreed is not None}
    best = max(found, key=lambda how: found[how].value, default="")
    first = "as the table has them"
    if first not in found or not found[best].clearly_above(found[first]):
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
    chosen = sampled_rows(len(table), ROWS, generator(0, "round trip"))
    rows, labels = table.codes[chosen], table.labels[chosen]
    here = agreement_of(np.asarray(model.scores(encoding.encode(rows))), labels, schema)
    if here is None:
        return None
    parts = [(i, encoding.parts[i]) for i in numbers]
    plain = [i for i, part in parts if isinstance(part, Numeric) and part.shift == 0 and part.scale == 1]
    for how, scale in _SCALES.items():
        scores = None
        if isinstance(model, Network | TreeModel):
            scaled = rows.copy()
            for i in plain:
                known = rows[:, i] != schema.attributes[i].gap
                shift, width = scale(rows[known, i]) if known.any() else (0.0, 1.0)
                scaled[known, i] = (rows[known, i] - shift) * (1.0 / (width or 1.0))
            scores = np.asarray(model.scores(encoding.encode(scaled))) if plain else None
        elif here.high < _POOR and isinstance(model, BlackBox):
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


Scale = Callable[[npt.NDArray[np.float64]], tuple[float, float]]
#: What people do to numbers before training: what they take off, and what they divide by.
_SCALES: dict[str, Scale] = {
    "standardised": lambda values: (float(values.mean()), float(values.std())),
    "between 0 and 1": lambda values: (float(values.min()), float(np.ptp(values))),
}


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
            shift, width = scale(values[np.isfinite(values)])
            frame[name] = (values - shift) * (1.0 / (width or 1.0))
    try:
        return asking(owner, schema, options, classes)(formed(owner, frame))
    except Exception:  # noqa: BLE001 - a model that refuses scaled numbers was not trained on them
        return None
