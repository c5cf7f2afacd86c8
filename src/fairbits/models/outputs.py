"""What an adapter says about a model, and the one place where its outputs become the score of the favourable class.

An adapter gives raw outputs, their names where the model has any, and how people become its rows (:class:`Loaded`).
``fit_to_schema`` settles the rest: which output is the favourable class, which way round, at which threshold.

A model may name its classes (scikit-learn's ``classes_``, labels in an ONNX graph); then names decide. A single output
speaks of the second class, and several outputs of the classes in their order. Where the model names nothing, the order
is the schema's: as the user stated it, or by name where that was not stated, which is a guess and becomes a note.
``score_of`` under [model] says of two classes which one the single (or last) output speaks of, and ends all guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema, table_columns
from fairbits.errors import ModelError, SchemaError, choose_from
from fairbits.models.base import HasClassScores, Model, SeveralClasses
from fairbits.models.black_box import BlackBox, Reading
from fairbits.models.native.network import Network
from fairbits.models.options import DEFAULTS, ModelOptions, Output
from fairbits.models.trees.ensemble import TreeModel

Names = tuple[str, ...] | None
#: Columns that a note lists; of more, the first ones and the last.
_SHOWN = 8


@dataclass(frozen=True, slots=True, eq=False)
class Owner:
    """How a model's owner asks it: with rows of the table as they are, past schema, codes and native forms.

    ``ask`` takes a frame of ``columns`` (``form`` "frame"), their array, the frame after ``pandas.get_dummies`` with
    the model's own ``names``; or, where a native form is compared with its library, our encoded rows ("inputs") or
    codes. It gives raw outputs; ``own`` says that a single one speaks of the favourable class. ``decide`` gives the
    model's own decisions, where they need not follow from these. ``library`` makes the model anew as one that is asked
    and not read, with the reason as a note.
    """

    ask: Callable[[Any], Any]
    columns: tuple[str, ...]
    form: Literal["frame", "array", "dummies", "inputs", "codes"]
    names: tuple[str, ...] = ()
    own: bool = False
    decide: Callable[[Any], Any] | None = None
    library: Callable[[str], Loaded] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A model as its file or object gave it, with what that says about itself.

    ``classes`` are its outputs by name, ``owner`` is how its owner would ask it, where that is known, and
    ``threshold`` the model's own cut-off between its two classes, on the score of the last.
    """

    model: Model
    encoding: Encoding | None = None
    classes: Names = None
    notes: tuple[str, ...] = ()
    owner: Owner | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A model that scores a schema's favourable class, and how the schema's people become its rows."""

    model: Model
    encoding: Encoding
    notes: tuple[str, ...] = ()


def fit_to_schema(loaded: Loaded, schema: Schema, *, options: ModelOptions = DEFAULTS) -> FittedModel:
    """The model scoring the schema's favourable class, with the encoding settled."""
    schema = with_model_classes(schema, loaded)[0]
    model, notes = _directed(loaded, schema, options)
    notes, encoding = [*loaded.notes, *notes], loaded.encoding
    if encoding is None:
        encoding = Encoding.fitting(schema, model.inputs, columns=options.columns).with_gaps(schema)
        notes += plain_note(encoding, schema, options)
    if isinstance(model, Network) and encoding.gaps:
        names = ", ".join(repr(schema.names[i]) for i in encoding.gaps)
        raise ModelError(
            f"a network takes numbers, but values of {names} are missing in the table; fill them as they were filled "
            f"for its training, or hand over the whole pipeline that fills them."
        )
    if encoding.width != model.inputs:
        raise ModelError(
            f"the model takes {model.inputs} inputs, but the attributes make {encoding.width} as they are encoded; "
            f"check that the model belongs to this table."
        )
    if len(schema.classes) > 2 and not isinstance(model, HasClassScores):
        notes.append(
            f"the model tells the score of {schema.favourable!r} alone, so a decision is favourable from the threshold "
            f"on; with one column for each of the {len(schema.classes)} classes it would be the most likely class."
        )
    return FittedModel(model, encoding, tuple(notes))


def _directed(loaded: Loaded, schema: Schema, options: ModelOptions) -> tuple[Model, list[str]]:
    """The model scoring the favourable class the right way round, and what is guessed about that."""
    model, order = loaded.model, output_order(schema, loaded.classes, options)
    notes, guessed, points = list[str](), False, own_scale(schema, options.output)
    unsaid = options.output is None and not points
    if isinstance(model, Network) and model.head == "linear" and len(schema.classes) == 2 and unsaid:
        named = order if order is not None and names_decide(schema, order) else schema.classes
        model = replace(model, head="sigmoid", favourable=1)
        notes.append(
            f"the network's one output is read as the logit of {named[1]!r}; "
            f'if it is something else, say so with output = "…" and score_of = "…" under [model].'
        )
    if isinstance(model, SeveralClasses) and points:
        model = _on_own_scale(model)
    if isinstance(model, BlackBox):
        guessed, logits = not model.own, model.reading.logits
        model = model.read_as(reading_of(schema, order, options, own=model.own, outputs=model.outputs, logits=logits))
    elif isinstance(model, SeveralClasses):
        guessed = bool(schema.classes)
        if schema.target is not None and model.classes not in (None, len(schema.classes)):
            kinds = [f"{n} classes" if n else "a number" for n in (model.classes, len(schema.classes))]
            raise ModelError(f"the network predicts {kinds[0]}, but target {schema.target!r} is {kinds[1]}.")
        own: Any = model
        if isinstance(own, TreeModel) and order and names_decide(schema, order) and own.ensemble.outputs > 1:
            trees = own.ensemble.reordered([order.index(name) for name in schema.classes])
            model, order = replace(own, ensemble=trees), schema.classes
        if schema.classes:
            model = model.with_favourable(favourable_output(schema, order))
        if schema.classes and isinstance(model, TreeModel):  # its float64 scores keep their side of the threshold
            model = replace(model, rule=schema.rule)
    if guessed and schema.order_guessed:
        notes += order_note(schema, loaded.classes, options, single=has_one_output(model))
    return model, notes


def reading_of(
    schema: Schema,
    order: Names,
    options: ModelOptions,
    *,
    own: bool,
    outputs: int | None = None,
    logits: bool = False,
) -> Reading:
    """How raw outputs in the order of ``order`` become the score of a schema's favourable class."""
    count = len(schema.classes)
    favourable = favourable_output(schema, order) if count else None
    reverse = favourable == 0
    if own:  # a single number speaks of the favourable class, unless somebody says otherwise
        output_order(schema, None, options)  # refuses what makes no sense
        reverse = bool(count and options.score_of not in (None, schema.favourable))
    columns: Sequence[int] = ()
    if count > 2 and outputs in (None, count) and (order is None or len(order) == count):
        named = schema.classes if order is None or not names_decide(schema, order) else order
        columns = [named.index(name) for name in schema.classes]
    whole = 2.0 * (schema.threshold or 0.0) if own_scale(schema, options.output) else 1.0
    return Reading(favourable, reverse, logits or options.output == "logit", whole, schema.rule, tuple(columns))


def plain_reading(options: ModelOptions) -> Reading:
    """How raw outputs are read where there is no schema: the favourable one by its position."""
    return Reading(options.favourable, options.favourable == 0, options.output == "logit")


def own_scale(schema: Schema, output: Output | None) -> bool:
    """Whether scores that decide between two classes are said to be no probabilities: points, hazards."""
    said = schema.threshold is not None and not 0 < schema.threshold < 1
    return len(schema.classes) == 2 and (output == "value" or (said and output is None))


def _on_own_scale(model: SeveralClasses) -> BlackBox:
    """A network or trees whose one number is no probability, as a model that is asked for it."""
    plain: Any = model.with_favourable(1) if model.classes else model
    if isinstance(model, Network):
        plain = replace(model, head="linear", favourable=0)
    return BlackBox(plain.scores, plain.inputs, name=f"the {type(model).__name__}", outputs=1)


def with_model_classes(schema: Schema, loaded: Loaded) -> tuple[Schema, tuple[str, ...]]:
    """A schema without a target takes the classes of a model that classifies, and a note says so.

    Otherwise a network with a sigmoid or softmax would be measured as if it predicted a quantity.
    """
    own = loaded.model if isinstance(loaded.model, SeveralClasses) else None
    count = len(loaded.classes) if loaded.classes is not None else 0 if own is None else own.classes
    if schema.target is not None or schema.classes or not count or count < 2:
        return schema, ()
    names = loaded.classes or tuple(str(i) for i in range(count))
    favourable = names[-1 if own is None else own.favourable]
    settled = replace(schema, classes=names, favourable=favourable, order_guessed=False)
    note = (
        f"no target is named, so the classes are the model's own ({', '.join(names)}), and the score is the "
        f"probability of {settled.favourable!r}; name classes and favourable under [table] to change that."
    )
    return settled, (note,)


def names_decide(schema: Schema, classes: Names) -> bool:
    """Whether the model's names of its classes are the schema's, so that nothing is left to guess."""
    return classes is not None and set(classes) == set(schema.classes)


def output_order(schema: Schema, classes: Names, options: ModelOptions) -> Names:
    """The classes in the order of the model's outputs."""
    stated = options.score_of
    if stated is None:
        return classes
    if not schema.classes:
        if schema.target is None:
            return classes  # a model that classifies has yet to tell its classes
        raise SchemaError(f"score_of is {stated!r}, but the target is a number; leave score_of out.")
    if stated not in schema.classes:
        raise SchemaError(
            f"score_of is {stated!r}, which is not a class of the target; {choose_from(stated, schema.classes)}"
        )
    if len(schema.classes) > 2:
        raise SchemaError(
            f"score_of is {stated!r}, but the target has {len(schema.classes)} classes, so that one output cannot "
            f"speak for all; list them in the order of the outputs: classes = […] under [table]."
        )
    order = (next(name for name in schema.classes if name != stated), stated)
    if classes is not None and names_decide(schema, classes) and classes != order:
        raise ModelError(
            f"score_of is {stated!r}, but the model names its own outputs {', '.join(classes)}, so that the last one "
            f"speaks of {classes[-1]!r}; leave score_of out."
        )
    return order


def favourable_output(schema: Schema, classes: Names) -> int:
    """Position of the favourable class among the outputs: by name where there are names, else by the schema's order."""
    if classes is None or schema.favourable is None:
        return schema.favourable_index
    numbered = classes == tuple(str(i) for i in range(len(schema.classes)))
    truths = classes == ("false", "true") and len(schema.classes) == 2 and schema.favourable not in classes
    if numbered or truths:
        return schema.favourable_index
    if schema.favourable not in classes:
        raise ModelError(
            f"the model decides between {', '.join(classes)}, but the favourable value is {schema.favourable!r}; "
            f"state the target's classes as the model has them."
        )
    return classes.index(schema.favourable)


def order_note(schema: Schema, classes: Names, options: ModelOptions, *, single: bool | None) -> tuple[str, ...]:
    """What is guessed about the order of the outputs, in words; nothing where somebody has said it."""
    said = options.score_of is not None or names_decide(schema, classes)
    if said or not schema.order_guessed or len(schema.classes) < 2:
        return ()
    shown = ", ".join(schema.classes)
    if classes is not None and len(classes) == len(schema.classes):
        return (
            f"the model calls its classes {', '.join(classes)}, which are read as {shown}, by name; if that is the "
            f"wrong way round, list them in the order of the outputs: classes = […] under [table].",
        )
    if single:
        return (
            f"the model does not say which class its one output speaks of; it is read as {schema.classes[1]!r}, "
            f'the last by name; state it with score_of = "…" under [model].',
        )
    return (
        f"the model does not name its classes; its outputs are read in the order of the names, {shown}; if that is "
        f"wrong, list them in the order of the outputs: classes = […] under [table].",
    )


def has_one_output(model: Any) -> bool | None:
    """Whether a model puts out one number per row; None where it has not been asked yet."""
    if isinstance(model, Network):
        return model.widths[-1] == 1
    outputs = getattr(model, "outputs", None)
    return outputs == 1 if isinstance(outputs, int) else None


def speaks_of(model: Any, schema: Schema) -> str | None:
    """The class that a model's single output is read as speaking of; None where it has several, or none is known."""
    if len(schema.classes) != 2 or schema.favourable is None or not has_one_output(model):
        return None
    if not isinstance(model, BlackBox):
        return schema.classes[1]
    other = next(name for name in schema.classes if name != schema.favourable)
    return other if model.reading.reverse else schema.favourable


def output_kind_of(found: npt.NDArray[Any], *, regression: bool) -> Output:
    """Kind of a module's outputs: probabilities lie within [0, 1] and add up to 1, others that decide are logits."""
    if regression:
        return "value"
    within = bool(((found >= 0) & (found <= 1)).all())
    whole = found.shape[1] == 1 or np.allclose(found.sum(axis=1), 1, atol=1e-4)
    return "probability" if within and whole else "logit"


def read_note(output: Output, options: ModelOptions) -> tuple[str, ...]:
    """Notes on what was guessed about the numbers that a module puts out."""
    if options.output is not None or output == "value":
        return ()
    logits = ("leave 0 to 1 or do not add up to 1", "logits")
    why, what = logits if output == "logit" else ("lie within 0 and 1", "probabilities")
    return (
        f"the module's outputs {why} on trial rows, so they are read as {what}; "
        f'if they are something else, say so with output = "…" under [model].',
    )


def read_output(network: Network, options: ModelOptions) -> Network:
    """The network with the head that the options name: a single output can be a value or a logit."""
    if network.widths[-1] != 1:
        return network
    if options.output == "value":
        return replace(network, head="linear", favourable=0)
    if options.output == "logit":
        return replace(network, head="sigmoid", favourable=1 if options.favourable is None else options.favourable)
    return network


def column_note(columns: Sequence[str], options: ModelOptions, *, how: str = "") -> tuple[str, ...]:
    """A note on columns that go into a model by their order alone."""
    if options.columns is not None or len(columns) < 2:
        return ()
    shown = [str(name) for name in columns]
    if len(shown) > _SHOWN:
        shown = [*shown[: _SHOWN - 1], "…", shown[-1]]
    return (
        f"the model does not name its columns, so the table's go in by their order ({', '.join(shown)})"
        f"{', ' * bool(how)}{how}; if it was trained otherwise, list them in its order under [model] columns.",
    )


def plain_note(encoding: Encoding, schema: Schema, options: ModelOptions) -> tuple[str, ...]:
    """A note on the plain encoding that was chosen by the number of a model's inputs."""
    if any(a.columns for a in schema.attributes) and encoding.width == len(table_columns(schema)):
        return column_note(table_columns(schema), options)
    how = "categories as codes" if encoding.width == len(schema) else "categories one-hot"
    return column_note(schema.names, options, how=how if any(a.kind == "category" for a in schema.attributes) else "")
