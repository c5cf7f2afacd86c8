"""Which way round a model is read: which output speaks of which class. Settled here, for every kind of model.

A model may name its classes (scikit-learn's ``classes_``, labels in an ONNX graph); then names decide. A single output
speaks of the second class, and several outputs of the classes in their order. Where the model names nothing, the order
is the schema's: as the user stated it, or by name where that was not stated, which is a guess and becomes a note.
``score_of`` under [model] says of two classes which one the single (or last) output speaks of, and ends all guessing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairbits.domain import Schema
from fairbits.errors import ModelError, SchemaError, choose_from
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions

Names = tuple[str, ...] | None


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
    """Position of the output that is the favourable class: by name where there are names, else by the schema's
    order.
    """
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


def is_reversed(schema: Schema, options: ModelOptions) -> bool:
    """Whether ``score_of`` says that the score speaks of the other class."""
    if options.score_of is None or not schema.classes:
        return False
    output_order(schema, None, options)  # refuses what makes no sense
    return options.score_of != schema.favourable


def with_own_classes(schema: Schema, classes: Names) -> Schema:
    """The schema with the model's classes where it has no target of its own."""
    if schema.target is not None or schema.classes or classes is None or len(classes) < 2:
        return schema
    return replace(schema, classes=classes, favourable=classes[-1])


def order_note(schema: Schema, classes: Names, options: ModelOptions, *, single: bool | None) -> tuple[str, ...]:
    """What is guessed about the order of the outputs, in words; nothing where somebody has said it."""
    if not schema.order_guessed or len(schema.classes) < 2 or options.score_of is not None:
        return ()
    if names_decide(schema, classes):
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
    if isinstance(model, Network) or not hasattr(model, "reverse"):
        return schema.classes[1]
    other = next(name for name in schema.classes if name != schema.favourable)
    return other if model.reverse else schema.favourable
