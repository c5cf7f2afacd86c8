"""The result of an adapter: the model, and what it knows about its inputs and its classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema
from fairbits.errors import ModelError
from fairbits.models.base import HasClassScores, Model, SeveralClasses
from fairbits.models.black_box import BlackBox, own_scale, whole_of
from fairbits.models.column_order import plain_note
from fairbits.models.direction import favourable_output, has_one_output, names_decide, order_note, output_order
from fairbits.models.foreign import owned
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions, Output


@dataclass(frozen=True, slots=True, eq=False)
class Owner:
    """How a model's owner asks it: with rows of the table as they are, past schema, codes and native forms.

    ``ask`` takes a frame of ``columns`` (``form`` "frame"), their array, the frame after ``pandas.get_dummies`` with
    the model's own ``names``; or, where a native form is compared with its library, our encoded rows ("inputs") or
    codes. It gives one number per row or one column per output. ``reverse`` says that a single score speaks of the
    other class; None: it speaks of the second one. ``classes`` are its outputs by name, where the model as it is
    loaded does not say them again. ``library`` makes the model anew as one that is asked and not read, with the
    reason as a note.
    """

    ask: Callable[[Any], Any]
    columns: tuple[str, ...]
    form: Literal["frame", "array", "dummies", "inputs", "codes"]
    names: tuple[str, ...] = ()
    reverse: bool | None = None
    classes: tuple[str, ...] | None = None
    library: Callable[[str], Loaded] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A model as its file or object gave it, with what that says about itself.

    ``owner`` is how its owner would ask it, where that is known, and ``threshold`` the model's own cut-off between its
    two classes, on the score of the last.
    """

    model: Model
    encoding: Encoding | None = None
    classes: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    named: bool = False
    owner: Owner | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", owned(self.model))


def fit_to_schema(loaded: Loaded, schema: Schema, *, options: ModelOptions | None = None) -> Loaded:
    """The same model scoring the schema's favourable class, with the encoding settled."""
    options = options or ModelOptions()
    model, notes = loaded.model, list(loaded.notes)
    order = output_order(schema, loaded.classes, options)
    if isinstance(model, Network):
        model, more = _fitting_head(model, schema, order, options)
        notes += more
    if isinstance(model, SeveralClasses) and own_scale(schema, options.output):
        model = _on_own_scale(model, schema, order, options)
    if isinstance(model, SeveralClasses):
        if schema.target is not None and model.classes is not None:
            _check_classes(model.classes, schema)
        if schema.classes:
            model = model.with_favourable(favourable_output(schema, order))
            notes += order_note(schema, loaded.classes, options, single=has_one_output(model))
    encoding = loaded.encoding
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
    return Loaded(model, encoding, order, tuple(notes))


def _on_own_scale(model: SeveralClasses, schema: Schema, order: Any, options: ModelOptions) -> Model:
    """A network or trees whose one number is no probability, as a model that is asked for it."""
    if isinstance(model, Network):
        plain: Any = replace(model, head="linear", favourable=0)
    else:
        plain = model.with_favourable(1) if model.classes else model
    return BlackBox(
        plain.scores,
        plain.inputs,
        favourable=favourable_output(schema, order),
        whole=whole_of(schema, options.output),
        name=f"the {type(model).__name__}",
    )


def with_model_classes(schema: Schema, loaded: Loaded) -> tuple[Schema, tuple[str, ...]]:
    """A schema without a target takes the classes of a model that classifies, and a note says so.

    Otherwise a network with a sigmoid or softmax would be measured as if it predicted a quantity.
    """
    own = loaded.model if isinstance(loaded.model, SeveralClasses) else None
    count = len(loaded.classes) if loaded.classes is not None else 0 if own is None else own.classes
    if schema.target is not None or schema.classes or not count:
        return schema, ()
    names = loaded.classes or tuple(str(i) for i in range(count))
    scored = None if own is None else own.favourable
    settled = replace(schema, classes=names, favourable=names[-1 if scored is None else scored], order_guessed=False)
    note = (
        f"no target is named, so the classes are the model's own ({', '.join(names)}), and the score is the "
        f"probability of {settled.favourable!r}; name classes and favourable under [table] to change that."
    )
    return settled, (note,)


def output_kind_of(found: npt.NDArray[Any], *, regression: bool) -> Output:
    """Kind of a module's outputs: probabilities lie within [0, 1] and add up to 1, others that decide are logits."""
    if regression:
        return "value"
    within = bool(((found >= 0) & (found <= 1)).all())
    if found.shape[1] == 1:
        return "probability" if within else "logit"
    return "probability" if within and np.allclose(found.sum(axis=1), 1, atol=1e-4) else "logit"


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


def _fitting_head(
    network: Network, schema: Schema, order: tuple[str, ...] | None, options: ModelOptions
) -> tuple[Network, list[str]]:
    stated = options.output is not None or own_scale(schema, options.output)
    if network.head != "linear" or len(schema.classes) != 2 or stated:
        return network, []
    named = schema.classes if order is None or not names_decide(schema, order) else order
    note = (
        f"the network's one output is read as the logit of {named[1]!r}; "
        f'if it is something else, say so with output = "…" and score_of = "…" under [model].'
    )
    return replace(network, head="sigmoid", favourable=1), [note]


def _check_classes(classes: Any, schema: Schema) -> None:
    if classes != len(schema.classes):
        kinds = [f"{n} classes" if n else "a number" for n in (classes, len(schema.classes))]
        raise ModelError(f"the network predicts {kinds[0]}, but target {schema.target!r} is {kinds[1]}.")
