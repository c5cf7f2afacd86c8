"""What an adapter hands over: the model, and what it knows about its inputs and its classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fairbits.domain import Encoding, Schema
from fairbits.errors import ModelError
from fairbits.models.foreign import owned
from fairbits.models.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.protocols import HasClassScores, Model, SeveralClasses


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """``encoding`` is None where the plain one that fits will do, ``classes`` where the model does not name them."""

    model: Model
    encoding: Encoding | None = None
    classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", owned(self.model))


def fit_to_schema(loaded: Loaded, schema: Schema, *, options: ModelOptions | None = None) -> Loaded:
    """The same model scoring the schema's favourable class, with the encoding settled."""
    options = options or ModelOptions()
    model, notes = loaded.model, list(loaded.notes)
    if isinstance(model, Network):
        model, more = _fitting_head(model, schema, options)
        notes += more
    if isinstance(model, SeveralClasses):
        if schema.target is not None:
            _check_classes(model.classes, schema)
        if schema.classes:
            model = model.with_favourable(favourable_output(schema, loaded.classes))
    encoding = loaded.encoding or Encoding.fitting(schema, model.inputs, columns=options.columns)
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
    return Loaded(model, encoding, loaded.classes, tuple(notes))


def told_by_model(schema: Schema, loaded: Loaded) -> tuple[Schema, tuple[str, ...]]:
    """A schema without a target takes the classes of a model that classifies, and a note says so.

    Otherwise a network with a sigmoid or softmax would be measured as if it predicted a quantity.
    """
    own = loaded.model if isinstance(loaded.model, SeveralClasses) else None
    count = len(loaded.classes) if loaded.classes is not None else 0 if own is None else own.classes
    if schema.target is not None or schema.classes or not count:
        return schema, ()
    names = loaded.classes or tuple(str(i) for i in range(count))
    scored = None if own is None else own.favourable
    settled = replace(schema, classes=names, favourable=names[-1 if scored is None else scored])
    note = (
        f"no target is named, so the classes are the model's own ({', '.join(names)}), and the score is the "
        f"probability of {settled.favourable!r}; name classes and favourable under [table] to change that."
    )
    return settled, (note,)


def with_own_classes(schema: Schema, classes: tuple[str, ...] | None) -> Schema:
    """For adapters that must know before they read: the schema, with the model's classes where it has no target."""
    if schema.target is not None or schema.classes or classes is None or len(classes) < 2:
        return schema
    return replace(schema, classes=classes, favourable=classes[-1])


def favourable_output(schema: Schema, classes: tuple[str, ...] | None) -> int:
    """Which output is the favourable class: by name where the model names its classes, else by the schema's order."""
    if classes is None or schema.favourable is None or classes == tuple(str(i) for i in range(len(schema.classes))):
        return schema.favourable_index
    if schema.favourable not in classes:
        raise ModelError(
            f"the model decides between {', '.join(classes)}, but the favourable value is {schema.favourable!r}; "
            f"state the target's classes as the model has them."
        )
    return classes.index(schema.favourable)


def read_output(network: Network, options: ModelOptions) -> Network:
    """A single number can be a value or a logit: only the user knows."""
    if network.widths[-1] != 1:
        return network
    if options.output == "value":
        return replace(network, head="linear", favourable=0)
    if options.output == "logits":
        return replace(network, head="sigmoid", favourable=1 if options.favourable is None else options.favourable)
    return network


def _fitting_head(network: Network, schema: Schema, options: ModelOptions) -> tuple[Network, list[str]]:
    if network.head != "linear" or len(schema.classes) != 2 or options.output is not None:
        return network, []
    note = (
        f"the network's one output is read as the logit of {schema.classes[1]!r}; "
        f'if it is something else, say so with output = "…" under [model].'
    )
    return replace(network, head="sigmoid", favourable=1), [note]


def _check_classes(classes: Any, schema: Schema) -> None:
    if classes != len(schema.classes):
        kinds = [f"{n} classes" if n else "a number" for n in (classes, len(schema.classes))]
        raise ModelError(f"the network predicts {kinds[0]}, but target {schema.target!r} is {kinds[1]}.")
