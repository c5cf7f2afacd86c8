"""PyTorch modules as they are called: with one tensor or several, of floats or of codes for embeddings."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal

from fairbits.domain import Encoding, Schema
from fairbits.errors import ModelError
from fairbits.models.black_box import attribute
from fairbits.models.input_slots import Slot, slots_of
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, column_note, read_note
from fairbits.models.probe import random_people
from fairbits.models.torch.adapter import import_torch
from fairbits.models.torch.module import TorchModel

#: Which inputs get whole numbers: none, those of categories, those of integers too.
_Whole = Literal["none", "categories", "integers"]
#: Ways to hand over codes: as whole numbers or not, and a single attribute as a column or as a plain row of numbers.
_WAYS: tuple[tuple[_Whole, bool], ...] = (
    *(("none", False), ("categories", False), ("integers", False)),
    *(("categories", True), ("integers", True), ("none", True)),
)
_TRIAL = 64


def running(
    module: Any, schema: Schema | None, options: ModelOptions, why: str, *, names: Sequence[str] | None = None
) -> Loaded:
    """A module as a model that runs in PyTorch."""
    names = list(names or input_names(module))
    note = f"the module runs in PyTorch and is not read as a network: {why.rstrip('.')}."
    if len(names) > 1:
        if schema is None:
            raise ModelError(f"it takes the inputs {', '.join(names)}; give a schema that says what goes into them.")
        model, encoding = _with_slots(module, names, schema, options)
        return Loaded(model, encoding, notes=(note, *read_note(model.output, options)))
    try:
        model = TorchModel.of(module, schema, options)
    except ModelError as error:
        if schema is None:
            raise
        try:
            model, encoding = _with_slots(module, names or ["rows"], schema, options)
        except ModelError:
            raise error from None  # what it says of plain rows is closer to the matter
        how = "categories as codes" if any(one.kind == "category" for one in schema.attributes) else ""
        order = column_note(options.columns or schema.names, options, how=how)
        return Loaded(model, encoding, notes=(note, *order, *read_note(model.output, options)))
    return Loaded(model, notes=(note, *read_note(model.output, options)))


def input_names(module: Any) -> list[str]:
    """Names of the arguments that ``forward`` must be given."""
    method = attribute(module, "forward")
    script = attribute(method, "schema")  # TorchScript has no Python signature
    if script is not None:
        mine = list(script.arguments)[1:]
        return [str(one.name) for one in mine if not one.has_default_value()]
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # compiled code, or no method of that name
        return []
    asked = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in parameters if one.kind in asked and one.default is inspect.Parameter.empty]


def _with_slots(
    module: Any, names: Sequence[str], schema: Schema, options: ModelOptions
) -> tuple[TorchModel, Encoding]:
    slots, encoding = slots_of(names, [None] * len(names), schema, options)
    rows = encoding.encode(random_people(schema, _TRIAL))
    complaint: ModelError | None = None
    for whole, flat in _WAYS:
        try:
            return TorchModel.of(_cut(module, slots, whole=whole, flat=flat), schema, options, trial=rows), encoding
        except ModelError as error:
            complaint = complaint or error
    assert complaint is not None  # noqa: S101 - there is always a way to try
    raise complaint


def _cut(module: Any, slots: tuple[Slot, ...], *, whole: _Whole, flat: bool) -> Any:
    """A module of one tensor that hands its columns on to a module of several."""
    torch = import_torch("running PyTorch modules")

    class Cut(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, rows: Any) -> Any:
            given = []
            for slot in slots:
                piece = rows[:, slot.start : slot.stop]
                wanted = {"none": False, "categories": slot.codes, "integers": slot.whole}[whole]
                piece = piece.long() if wanted else piece
                given.append(piece[:, 0] if flat and piece.shape[1] == 1 else piece)
            return self.inner(*given)

    cut = Cut()
    cut.training = False  # the module itself is past training; one that was exported refuses to be told
    return cut
