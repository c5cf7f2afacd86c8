"""A PyTorch module that is no plain chain: run as it is, with autograd for gradients and hooks to reach inside.

Hooks are put on for one call and taken off in ``finally``: the module never stays changed, whatever happens. It is
tried on a few people first: how wide it is, with one tensor or several, of floats or of codes, and what it puts out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema
from fairbits.errors import ModelError, OptionError, choose_from
from fairbits.models.base import Array, Do, SeveralClasses, Slope, checked_rows
from fairbits.models.black_box import attribute, foreign
from fairbits.models.input_slots import Slot, slots_of
from fairbits.models.options import ModelOptions, Output
from fairbits.models.outputs import Loaded, column_note, output_kind_of, read_note
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


#: Rows on which a fresh module is tried: what it puts out tells probabilities from logits.
_TRIAL = 64


@dataclass(frozen=True, eq=False)
class TorchModel(SeveralClasses):
    """A PyTorch module that is asked as it is, where it is no chain of layers that can be read.

    ``layers`` can be looked into, ``held`` are neurons held at a value, ``someone`` is an encoded person whom it takes.
    """

    module: Any
    inputs: int
    outputs: int
    output: Output
    layers: tuple[str, ...] = ()
    favourable: int = 1
    held: tuple[Do, ...] = ()
    batch: int = 65_536
    someone: npt.NDArray[Any] | None = None

    @classmethod
    def of(
        cls, module: Any, schema: Schema | None, options: ModelOptions, *, trial: npt.NDArray[Any] | None = None
    ) -> TorchModel:
        """A module as it is, tried on a few encoded people to learn its width, its layers and its kind of output."""
        run = cls(module, 0, 1, "value")._run
        rows = rows_for(run, module, schema, options, _TRIAL) if trial is None else trial
        inputs = rows.shape[1]
        found = run(rows)
        outputs = found.shape[1]
        # Without a target it is not known whether one number is a value; several numbers are classes.
        unknown = schema is not None and schema.target is None and found.shape[1] > 1
        output = options.output or output_kind_of(
            found, regression=schema is not None and schema.regression and not unknown
        )
        layers = layers_of(run, module, rows) if options.layers is None else options.layers
        for name in layers:
            if name not in dict(module.named_modules()):
                known = [n for n, _ in module.named_modules() if n]
                raise OptionError(f"the module has no layer {name!r}; {choose_from(name, known)}")
        favourable = 1 if options.favourable is None else options.favourable
        return cls(module, inputs, outputs, output, layers, favourable, batch=options.batch, someone=rows[:1])

    @property
    def classes(self) -> int:
        """How many classes it decides between (0 for a regression)."""
        return 0 if self.output == "value" else max(self.outputs, 2)

    def with_favourable(self, index: int) -> TorchModel:
        """The same model, scoring another class."""
        return replace(self, favourable=index)

    def scores(self, inputs: npt.ArrayLike) -> Array:
        """The favourable-class probability (or the predicted value) of each encoded row."""
        return _joined([self._score(last).numpy() for _, [last] in self._passes(inputs)])

    def gradients(self, inputs: npt.ArrayLike, *, of: Slope = "margin") -> Array:
        """Slope of the score, the logit margin or the loss with respect to the inputs."""
        if of not in get_args(Slope):
            raise OptionError(f"gradients of {of!r} are not known; {choose_from(of, get_args(Slope))}")
        passes = self._passes(inputs, grad=True)
        with import_torch("running PyTorch modules").enable_grad():
            return _joined([_slopes(self._slope_target(last, of).sum(), rows) for rows, [last] in passes], self.inputs)

    def activations(self, inputs: npt.ArrayLike) -> tuple[Array, ...]:
        """Outputs of the named layers, and the output after its head."""
        passes = self._passes(inputs, look=True)
        pieces = [[one.numpy() for one in (*seen, self._probabilities(last))] for _, [*seen, last] in passes]
        return tuple(np.concatenate(parts) for parts in zip(*pieces, strict=True))

    def class_scores(self, inputs: npt.ArrayLike) -> Array:
        """The probability of every class of each encoded row."""
        table = _joined([self._probabilities(last).numpy() for _, [last] in self._passes(inputs)], self.outputs)
        return np.hstack([1 - table, table]) if self.outputs == 1 else table

    def layer_gradients(self, inputs: npt.ArrayLike, layer: int, slopes: Array) -> Array:
        """Slope of Σ slopes · outputs of a layer with respect to the inputs; the last as the module puts it out."""
        torch = import_torch("running PyTorch modules")
        pieces, weights = [], torch.tensor(np.asarray(slopes, dtype=np.float32))
        with torch.enable_grad():
            for rows, found in self._passes(inputs, grad=True, look=True):
                mine, weights = weights[: len(rows)], weights[len(rows) :]
                pieces.append(_slopes((found[layer] * mine).sum(), rows))
        return _joined(pieces, self.inputs)

    def with_interventions(self, interventions: Sequence[Do]) -> TorchModel:
        """The same model with some neurons held at a value while it runs; the module itself stays as it is."""
        someone = np.zeros((1, self.inputs)) if self.someone is None else self.someone
        widths = [a.shape[1] for a in self.activations(someone)[:-1]]
        for do in interventions:
            if not 0 <= do.layer < len(widths):
                raise OptionError(f"layer {do.layer} is not a hidden layer; there are {len(widths)}: {self.layers}.")
            if not 0 <= do.neuron < widths[do.layer]:
                raise OptionError(f"neuron {do.neuron} is not in layer {do.layer}, which has {widths[do.layer]}.")
        return replace(self, held=(*self.held, *interventions))

    def save(self, path: str | Path) -> None:
        """Write the module: .pt2 (torch.export, interventions included) or .pt (its state dict)."""
        from fairbits.models.torch.files import write_module

        with self._hooked():
            write_module(self.module, self.inputs, Path(path), plain=not self.held)

    @contextmanager
    def _hooked(self, seen: dict[str, Any] | None = None) -> Iterator[None]:
        """Hooks that hold neurons and look on, for as long as the block lasts."""
        handles = []
        try:
            for index, name in enumerate(self.layers):
                mine = [do for do in self.held if do.layer == index]
                if mine or seen is not None:
                    handles.append(self.module.get_submodule(name).register_forward_hook(_hook(name, mine, seen)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _passes(
        self, inputs: npt.ArrayLike, *, grad: bool = False, look: bool = False
    ) -> Iterator[tuple[Any, list[Any]]]:
        """Batch by batch the rows, and what the module makes of them, its layers' outputs first for a ``look``."""
        torch = import_torch("running PyTorch modules")
        rows = checked_rows(inputs, self.inputs, "the module", np.float32)
        for start in range(0, len(rows), self.batch):
            given = torch.tensor(rows[start : start + self.batch], requires_grad=grad)
            seen: dict[str, Any] = {}
            with torch.set_grad_enabled(grad), self._hooked(seen if look else None):
                found = self._forward(given)
            yield given, [*(seen[name] for name in self.layers if look), found]

    def _run(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        torch = import_torch("running PyTorch modules")
        with torch.no_grad():
            found: npt.NDArray[np.float32] = self._forward(torch.tensor(rows, dtype=torch.float32)).numpy()
            return found

    def _forward(self, rows: Any) -> Any:
        with foreign(f"the module failed on rows of {rows.shape[1]} inputs"):
            found = self.module(rows)
        found = found[0] if isinstance(found, tuple | list) and len(found) == 1 else found
        if not isinstance(found, type(rows)) or found.shape[:1] != rows.shape[:1]:
            raise ModelError("the module does not put out one tensor with a row per person.")
        return found.float().reshape(len(rows), -1).clone()  # a module may answer with the same buffer every time

    def _probabilities(self, found: Any) -> Any:
        if self.output == "logit":
            return found.sigmoid() if self.outputs == 1 else found.softmax(dim=1)
        return found

    def _score(self, found: Any) -> Any:
        p = self._probabilities(found)
        if self.outputs == 1:
            return 1 - p[:, 0] if self.output != "value" and self.favourable == 0 else p[:, 0]
        if not 0 <= self.favourable < self.outputs:
            raise ModelError(f"favourable class {self.favourable} is not one of the module's {self.outputs} outputs.")
        return p[:, self.favourable]

    def _slope_target(self, found: Any, of: Slope) -> Any:
        """What to differentiate; see ``Network.gradients`` for the three."""
        if self.output == "value" or of == "score":
            return found[:, 0] if self.output == "value" else self._score(found)
        torch = import_torch("running PyTorch modules")
        logits = found if self.output == "logit" else torch.log(found.clamp_min(1e-30))
        if self.outputs == 1:
            margin = logits[:, 0]
            if self.output != "logit":  # in float32 a sigmoid can be exactly 1, where the logarithm of the rest ends
                margin = margin - torch.log1p(-found[:, 0].clamp_max(1 - 2.0**-24))
            own = margin.detach() >= 0
            signs = torch.where(own, 1.0, -1.0) if of == "loss" else (1.0 if self.favourable == 1 else -1.0)
            margin = margin * signs
        else:
            own = found.detach().argmax(dim=1) if of == "loss" else torch.full((len(found),), self.favourable)
            others = logits.masked_fill(torch.nn.functional.one_hot(own, self.outputs).bool(), -torch.inf)
            margin = logits.gather(1, own[:, None])[:, 0] - torch.logsumexp(others, dim=1)
        return torch.nn.functional.softplus(-margin) if of == "loss" else margin


def _joined(pieces: list[Array], *width: int) -> Array:
    return np.concatenate([np.empty((0, *width), np.float32), *pieces])


def _slopes(total: Any, rows: Any) -> Array:
    """Slopes of a sum along the rows that it was made from; codes that go into embeddings have none."""
    torch = import_torch("running PyTorch modules")
    slope = torch.autograd.grad(total, rows, allow_unused=True)[0] if total.requires_grad else None
    return np.zeros(rows.shape, np.float32) if slope is None else np.asarray(slope.numpy())


def _hook(name: str, held: Sequence[Do], seen: dict[str, Any] | None) -> Any:
    def hook(_module: Any, _given: Any, found: Any) -> Any:
        if held:
            found = found.clone()
            for do in held:
                found[:, do.neuron] = do.value
        if seen is not None:
            seen[name] = found.reshape(len(found), -1).clone()  # a later layer may work in place
        return found

    return hook


#: Inputs of whole numbers among which every choice is tried: each as whole numbers for an embedding, or as reals.
_MAX_MIXED = 6


def _ways(slots: Sequence[Slot]) -> Iterator[tuple[frozenset[str], bool]]:
    """Ways to hand over codes: which inputs get whole numbers, and whether a single attribute is a flat row.

    An embedding takes nothing but whole numbers; whatever takes reals refuses them, or does the same with both.
    """
    none, codes = frozenset[str](), frozenset(slot.name for slot in slots if slot.codes)
    whole = frozenset(slot.name for slot in slots if slot.whole)
    yield from ((none, False), (codes, False), (whole, False), (codes, True), (whole, True), (none, True))
    for flat, size in product((False, True), range(1, len(whole) if len(whole) <= _MAX_MIXED else 0)):
        yield from ((frozenset(some), flat) for some in combinations(sorted(whole), size))


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
    for whole, flat in _ways(slots):
        try:
            return TorchModel.of(_cut(module, slots, whole=whole, flat=flat), schema, options, trial=rows), encoding
        except ModelError as error:
            complaint = complaint or error
    assert complaint is not None  # noqa: S101 - there is always a way to try
    raise complaint


def _cut(module: Any, slots: tuple[Slot, ...], *, whole: frozenset[str], flat: bool) -> Any:
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
                piece = piece.long() if slot.name in whole else piece
                given.append(piece[:, 0] if flat and piece.shape[1] == 1 else piece)
            return self.inner(*given)

    cut = Cut()
    cut.training = False  # the module itself is past training; one that was exported refuses to be told
    return cut
