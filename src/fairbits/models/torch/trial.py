"""A PyTorch module tried on a few rows: how wide it is, what it puts out, and which layers can be looked into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema
from fairbits.errors import ModelError
from fairbits.models.black_box import attribute
from fairbits.models.options import ModelOptions
from fairbits.models.probe import random_people
from fairbits.models.torch.adapter import import_torch

#: Rows in, outputs out.
Run = Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]]


def rows_for(
    run: Run, module: Any, schema: Schema | None, options: ModelOptions, count: int
) -> npt.NDArray[np.floating]:
    """Encoded people that the module takes: by the plain encodings where there is a schema, else by its first layer.

    Where people are known they are never random numbers: an embedding takes the codes of labels and nothing else.
    """
    complaint = "it has no dense layer that tells; give a schema."
    tried: list[npt.NDArray[np.floating]] = []
    if schema is not None:
        people = random_people(schema, count)
        kinds = (Encoding.identity, Encoding.one_hot)
        tried = [kind(schema, columns=options.columns).encode(people) for kind in kinds]
    else:
        widths = (attribute(m, "in_features") for m in module.modules())
        known = [width for width in widths if isinstance(width, int) and width > 0][:1]
        tried = [np.random.default_rng(0).normal(0, 2, (count, width)) for width in known]
    for rows in tried:
        try:
            run(rows)
        except ModelError as error:
            complaint = str(error)
        else:
            return rows
    shown = " nor ".join(str(rows.shape[1]) for rows in tried) or "?"
    raise ModelError(f"it takes rows of neither {shown} inputs: {complaint}")


def layers_of(run: Run, module: Any, rows: npt.NDArray[Any]) -> tuple[str, ...]:
    """Names of layers to look into: activations with one (n, width) output that run once, or dense layers but
    the last.
    """
    torch = import_torch("running PyTorch modules")
    calls: dict[str, int] = {}
    handles = []

    def watch(name: str) -> Any:
        def hook(_module: Any, _given: Any, found: Any) -> None:
            if isinstance(found, torch.Tensor) and found.ndim == 2:
                calls[name] = calls.get(name, 0) + 1

        return hook

    # Compiled modules cannot be looked into.
    open_ = [(name, m) for name, m in module.named_modules() if not isinstance(m, torch.jit.ScriptModule)]
    leaves = [(name, m) for name, m in open_ if name and not list(m.children())]
    try:
        handles = [m.register_forward_hook(watch(name)) for name, m in leaves]
        run(rows)
    finally:
        for handle in handles:
            handle.remove()
    kinds = dict(leaves)
    once = [name for name in calls if calls[name] == 1]
    active = [n for n in once if type(kinds[n]).__module__ == "torch.nn.modules.activation"]
    active = [n for n in active if type(kinds[n]).__name__ not in {"Softmax", "LogSoftmax"}]
    return tuple(active or [n for n in once if isinstance(kinds[n], torch.nn.Linear)][:-1])
