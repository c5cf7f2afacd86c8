"""PyTorch: modules and their files; chains of dense layers become native networks, all others run in PyTorch.

A module is read through torch.fx, so that nested Sequentials and hand-written forward methods come down to the same
chain of operations, told apart by plain names that modules, functions, methods and exported graphs share. What is no
plain chain is tried on a few people and runs as it is, with autograd for gradients and hooks to reach inside. Hooks are
put on for one call and taken off in ``finally``: the module never stays changed, whatever happens.

Files are exported programs (.pt2), and weights (.pt, .pth) with the function of their module. The graph of a .pt2
archive is JSON and its weights are plain bytes, so that a chain of dense layers is read as data, without code and
without PyTorch. ``torch.export.load`` unpickles parts of it, and is asked only where it is trusted.
"""

from __future__ import annotations

import copy
import inspect
import json
import math
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from fairbits.domain import Encoding, Schema
from fairbits.errors import ModelError, OptionError, choose_from, foreign
from fairbits.models.base import Array, Do, SeveralClasses, Slope, checked_rows, needed
from fairbits.models.black_box import attribute
from fairbits.models.guards import options_after_trial
from fairbits.models.inputs import Slot, random_people, slots_of
from fairbits.models.native.chain import Chain, Matrix, NotNative, ParameterSource
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions, Output
from fairbits.models.outputs import Loaded, Owner, column_note, output_kind_of, read_note, read_output
from fairbits.models.registry import check_reference, made_by, named_object

#: Activations of PyTorch that are known by name, though some have no kernel here.
_ACTIVATIONS = {
    *("relu", "tanh", "sigmoid", "softmax", "leaky_relu", "elu", "silu", "mish", "selu", "celu", "softplus"),
    *("softsign", "hardtanh", "hardswish", "hardsigmoid", "relu6", "prelu", "logsigmoid", "rrelu", "glu"),
}
_PASS = {"identity", "dropout", "alphadropout", "flatten", "float", "contiguous", "to", "detach"}


def import_torch(purpose: str) -> Any:
    return needed("torch", "torch", purpose)


def from_torch(module: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A PyTorch module as a model, native where it is a chain of dense layers."""
    if not isinstance(module, import_torch("reading PyTorch modules").nn.Module):
        raise ModelError(f"a {type(module).__name__!r} of PyTorch is no module; hand over the nn.Module itself.")
    module.eval()  # dropout and batch statistics belong to training
    try:
        network = chain_of_module(module).network(options.favourable)
        owner = Owner(_asked(module), (), "inputs", library=lambda why: running(module, schema, options, why))
        return Loaded(read_output(network, options), owner=owner)
    except NotNative as error:
        try:
            return running(module, schema, options, str(error))
        except ModelError as trouble:
            raise ModelError(
                f"the module is no chain of dense layers ({str(error).rstrip('.')}) and does not run: {trouble}"
            ) from None


def _asked(module: Any) -> Callable[[Any], Any]:
    """The module itself, asked about rows as the network that was read of it gets them."""
    torch = import_torch("running PyTorch modules")

    def ask(rows: Any) -> Any:
        kind = next((one.dtype for one in module.parameters()), torch.float32)
        with torch.no_grad():
            return module(torch.as_tensor(np.asarray(rows)).to(kind)).cpu().numpy()

    return ask


def chain_of_module(module: Any) -> Chain:
    """The operations of a module in order; parameters are named as in its state dict."""
    torch = import_torch("reading PyTorch modules")
    if isinstance(module, torch.jit.ScriptModule):
        raise NotNative("it is TorchScript, which is run there and not read.")
    with foreign("its forward method cannot be traced", NotNative):
        traced = torch.fx.symbolic_trace(module)
    chain, current = Chain(), None
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            if current is not None:
                raise NotNative("it has more than one input.")
        elif node.op == "output":
            if node.args[0] is not current:
                raise NotNative("it puts out more than one value.")
            continue
        elif node.op == "get_attr":
            raise NotNative("it uses parameters outside of layers.")
        else:
            if [value for value in node.all_input_nodes if value is not current]:
                raise NotNative(f"the path through it branches at {node.name!r}.")
            _take(chain, node, traced)
        current = node
    return chain


def _take(chain: Chain, node: Any, traced: Any) -> None:
    if node.op == "call_module":
        module = traced.get_submodule(node.target)
        given = {name: getattr(module, name) for name in _SETTINGS if hasattr(module, name)}
        held = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
        arrays = {name: tensor.detach().cpu().numpy().astype(np.float64) for name, tensor in held.items()}
        parameters = {name: (f"{node.target}.{name}", array) for name, array in arrays.items()}
        take_operation(chain, type(module).__name__.lower(), given, parameters)
        return
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))
    given = dict(zip(_ARGUMENTS.get(name, ()), node.args[1:], strict=False)) | node.kwargs
    take_operation(chain, name.lower(), given, {})


#: Positional arguments of functional forms, after the input.
_ARGUMENTS = {
    "leaky_relu": ("negative_slope",),
    "elu": ("alpha",),
    "softmax": ("dim",),
    "flatten": ("start_dim",),
}
#: What a module is set to that decides what it does.
_SETTINGS = ("negative_slope", "alpha", "approximate", "dim", "start_dim", "eps")
Parameters = dict[str, tuple[str, Matrix]]


def take_operation(chain: Chain, name: str, given: dict[str, Any], held: Parameters) -> None:
    if given.get("train") is True or given.get("training") is True:
        raise NotNative(f"the operation {name} was recorded while training; call eval() first.")
    if name in _PASS:
        return
    if name == "linear" and "weight" in held:
        path, matrix = held["weight"]
        chain.multiply(matrix.T, ParameterSource(path, transposed=True))
        if "bias" in held:
            chain.scale(1.0, held["bias"][1], ParameterSource(held["bias"][0]))
    elif name in {"batchnorm1d", "batch_norm"} and "running_mean" in held:
        spread = np.sqrt(held["running_var"][1] + float(given.get("eps", 1e-5)))
        gain = held["weight"][1] if "weight" in held else 1.0
        chain.normalise(held["running_mean"][1], spread, gain, *held.get("bias", ("", None))[::-1])
    elif name == "softmax" and given.get("dim") not in (1, -1):
        raise NotNative("its softmax is not over the outputs.")
    elif name == "gelu":
        chain.function("gelu_tanh" if given.get("approximate") == "tanh" else "gelu")
    elif name.replace("leakyrelu", "leaky_relu") in _ACTIVATIONS:
        chain.function(name.replace("leakyrelu", "leaky_relu"), given.get("negative_slope", given.get("alpha")))
    else:
        raise NotNative(f"the operation {name} is not one of a chain of dense layers.")


#: Rows in, outputs out.
Run = Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]]


def rows_for(
    run: Run, module: Any, schema: Schema | None, options: ModelOptions, count: int
) -> npt.NDArray[np.floating]:
    """Encoded people that the module takes: by the plain encodings where there is a schema, else by its first layer.

    Where people are known they are never random numbers: an embedding takes the codes of labels and nothing else.
    """
    complaint = "it has no dense layer that tells; give a schema."
    if schema is not None:
        people, kinds = random_people(schema, count), (Encoding.identity, Encoding.one_hot)
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
    calls: Counter[str] = Counter()

    def watch(name: str, _module: Any, _given: Any, found: Any) -> None:
        calls[name] += isinstance(found, torch.Tensor) and found.ndim == 2

    # Compiled modules cannot be looked into.
    open_ = [(name, m) for name, m in module.named_modules() if not isinstance(m, torch.jit.ScriptModule)]
    leaves = [(name, m) for name, m in open_ if name and not list(m.children())]
    with ExitStack() as stack:
        for name, m in leaves:
            stack.enter_context(m.register_forward_hook(partial(watch, name)))
        run(rows)
    kinds = dict(leaves)
    once = [name for name in calls if calls[name] == 1]
    bent = [n for n in once if type(kinds[n]).__module__ == "torch.nn.modules.activation"]
    active = [n for n in bent if type(kinds[n]).__name__ not in {"Softmax", "LogSoftmax"}]
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
        found = run(rows)
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
        return cls(
            module,
            rows.shape[1],
            found.shape[1],
            output,
            layers,
            favourable,
            batch=options.batch,
            someone=rows[:1],
        )

    @property
    def classes(self) -> int:
        return 0 if self.output == "value" else max(self.outputs, 2)

    def with_favourable(self, index: int) -> TorchModel:
        return replace(self, favourable=index)

    def scores(self, inputs: npt.ArrayLike) -> Array:
        return _joined([self._score(last).numpy() for _, [last] in self._passes(inputs)])

    def gradients(self, inputs: npt.ArrayLike, *, of: Slope = "margin") -> Array:
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
        with self._hooked():
            write_module(self.module, self.inputs, Path(path), plain=not self.held)

    @contextmanager
    def _hooked(self, seen: dict[str, Any] | None = None) -> Iterator[None]:
        """Hooks that hold neurons and look on, for as long as the block lasts."""
        with ExitStack() as stack:
            for index, name in enumerate(self.layers):
                mine = [do for do in self.held if do.layer == index]
                if mine or seen is not None:
                    hook = partial(_hook, name, mine, seen)
                    stack.enter_context(self.module.get_submodule(name).register_forward_hook(hook))
            yield

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
            return self._forward(torch.tensor(rows, dtype=torch.float32)).numpy()

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


def _hook(name: str, held: Sequence[Do], seen: dict[str, Any] | None, _module: Any, _given: Any, found: Any) -> Any:
    if held:
        found = found.clone()
        for do in held:
            found[:, do.neuron] = do.value
    if seen is not None:
        seen[name] = found.reshape(len(found), -1).clone()  # a later layer may work in place
    return found


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
        return [str(one.name) for one in list(script.arguments)[1:] if not one.has_default_value()]
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
    complaints: list[ModelError] = []
    for whole, flat in _ways(slots):
        try:
            return TorchModel.of(_cut(module, slots, whole=whole, flat=flat), schema, options, trial=rows), encoding
        except ModelError as error:
            complaints.append(error)
    raise complaints[0]


def _cut(module: Any, slots: tuple[Slot, ...], *, whole: frozenset[str], flat: bool) -> Any:
    """A module of one tensor that hands its columns on to a module of several."""
    torch = import_torch("running PyTorch modules")

    class Cut(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, rows: Any) -> Any:
            pieces = [rows[:, slot.start : slot.stop] for slot in slots]
            typed = [piece.long() if slot.name in whole else piece for slot, piece in zip(slots, pieces, strict=True)]
            return self.inner(*(piece[:, 0] if flat and piece.shape[1] == 1 else piece for piece in typed))

    cut = Cut()
    cut.training = False  # the module itself is past training; one that was exported refuses to be told
    return cut


#: The archive's numbers for kinds of tensors.
_KINDS = {3: "<i2", 4: "<i4", 5: "<i8", 6: "<f2", 7: "<f4", 8: "<f8"}


class Archive:
    """The graph and the weights of one exported model."""

    def __init__(self, path: str | Path):
        with foreign(f"the model {str(path)!r} is not a readable .pt2 file"), zipfile.ZipFile(path) as file:
            self.entries = {name: file.read(name) for name in file.namelist()}
            self.root = next(iter(self.entries)).split("/")[0]
            document = json.loads(self._entry("models/model.json"))
            self.graph = document["graph_module"]["graph"]
            self.specs = document["graph_module"]["signature"]["input_specs"]
            self.config = json.loads(self._entry("data/weights/model_weights_config.json"))["config"]

    def chain(self) -> Chain:
        with foreign("its graph is damaged or of an unknown form", NotNative):
            held = [(kind, spec[kind]) for spec in self.specs for kind in ("parameter", "buffer") if kind in spec]
            named = {one["arg"]["name"]: one[f"{kind}_name"] for kind, one in held}
            inputs = [spec["user_input"]["arg"] for spec in self.specs if "user_input" in spec]
            if len(inputs) > 1:
                raise NotNative("it has more than one input.")
            chain, current = Chain(), next((one["as_tensor"]["name"] for one in inputs), None)
            for node in self.graph["nodes"]:
                current = self._take(chain, node, current, named)
            if [entry["as_tensor"]["name"] for entry in self.graph["outputs"]] != [current]:
                raise NotNative("it puts out more than one value.")
        return chain

    def weight(self, name: str) -> npt.NDArray[Any]:
        held = self.config[name]
        if held.get("use_pickle"):
            raise NotNative(f"its parameter {name!r} is pickled.")
        meta = held["tensor_meta"]
        if meta["dtype"] not in _KINDS:
            raise NotNative(f"its parameter {name!r} has an unknown type of number.")
        shape, strides = ([int(size["as_int"]) for size in meta[key]] for key in ("sizes", "strides"))
        dense = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        if strides != dense or meta["storage_offset"]["as_int"]:
            raise NotNative(f"its parameter {name!r} is a view into another one.")
        values = np.frombuffer(self._entry(f"data/weights/{held['path_name']}"), dtype=_KINDS[meta["dtype"]])
        return values[: math.prod(shape)].reshape(shape)

    def write(self, path: str | Path, changed: dict[str, npt.NDArray[np.float64]]) -> None:
        entries = dict(self.entries)
        for name, array in changed.items():
            old, place = self.weight(name), f"{self.root}/data/weights/{self.config[name]['path_name']}"
            entries[place] = array.reshape(old.shape).astype(old.dtype).tobytes()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
            for name, content in entries.items():
                file.writestr(zipfile.ZipInfo(name), content)

    def _entry(self, name: str) -> bytes:
        found = self.entries.get(f"{self.root}/{name}")
        if found is None:
            raise NotNative(f"it has no {name}; export it again with a newer torch.export.")
        return found

    def _take(self, chain: Chain, node: dict[str, Any], current: str | None, named: dict[str, str]) -> str:
        operation = node["target"].removeprefix("torch.ops.aten.").split(".")[0].rstrip("_")
        given: dict[str, Any] = {}
        held: dict[str, tuple[str, npt.NDArray[np.float64]]] = {}
        for position, entry in enumerate(node["inputs"]):
            kind, value = next(iter(entry["arg"].items()))
            if kind != "as_tensor":
                given[entry["name"]] = value
            elif value["name"] in named:
                name = named[value["name"]]
                held[entry["name"]] = (name, self.weight(name).astype(np.float64))
            elif value["name"] != current or position != 0:
                raise NotNative(f"the path through it branches at {operation}.")
        take_operation(chain, operation, given, held)
        return str(node["outputs"][0]["as_tensor"]["name"])


def read_pt2(path: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """An exported program: read as data where it is a chain of dense layers, else run, if trusted."""
    try:
        return Loaded(read_output(Archive(path).chain().network(options.favourable), options))
    except NotNative as error:
        why = str(error)
    if options.trust_pickle:  # otherwise it is refused below
        options = options_after_trial(path, schema, options, needs=("torch",))
    module, shapes = open_program(path, options, why)
    return running(module, schema, options, why, names=list(shapes))


def open_program(path: Path, options: ModelOptions, why: str) -> tuple[Any, dict[str, tuple[Any, ...]]]:
    """An exported program as a module, and the shapes of its inputs by name; refused where it is not trusted."""
    if not options.trust_pickle:
        raise ModelError(
            f"the model {str(path)!r} is no chain of dense layers ({why.rstrip('.')}), and running it means "
            f"unpickling parts of it; add --trust-pickle if you trust whoever made it."
        )
    torch = import_torch("running an exported program")
    with foreign(f"the model {str(path)!r} cannot be loaded by torch.export"):
        program = torch.export.load(str(path))
        module, names = program.module(), [str(name) for name in program.graph_signature.user_inputs]
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    shapes = {name: tuple(getattr(values.get(name), "shape", ())) for name in names}
    fixed = next((shape[0] for shape in shapes.values() if shape and type(shape[0]) is int), None)
    if fixed is not None:
        raise ModelError(
            f"the model {str(path)!r} was exported for {fixed:,} rows at a time and takes no others; export it with "
            f"dynamic_shapes, the first size of each input being torch.export.Dim.DYNAMIC."
        )
    return module, shapes


def read_weights(path: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A state dict for the module that ``factory`` builds; a whole pickled module only if trusted."""
    if options.factory is not None:
        check_reference(options.factory, trust_code=options.trust_code)
    elif not options.trust_pickle:
        raise _no_factory(path)
    import_torch("reading PyTorch weights")
    if options.factory is None:  # code that its owner grants runs once, here; only files are tried out first
        options = options_after_trial(path, schema, options, needs=("torch",))
    return from_torch(module_of(path, options), schema, options)


def module_of(path: Path, options: ModelOptions) -> Any:
    torch = import_torch("reading PyTorch weights")
    held = load_content(torch, path, options)
    if isinstance(held, torch.nn.Module):
        return held
    if options.factory is None:
        raise _no_factory(path)
    with foreign(f"the weights in {str(path)!r} do not fit {options.factory!r}"):
        module = made_by(named_object(options.factory, trust_code=options.trust_code), options.factory)
        if not isinstance(module, torch.nn.Module):
            raise ModelError(f"the factory {options.factory!r} made a {type(module).__name__!r}, not a torch module.")
        module.load_state_dict(held)
    return module


def _no_factory(path: Path) -> ModelError:
    return ModelError(
        f"the model {str(path)!r} holds weights but not the code of their module; name the function that builds it: "
        f'factory = "package.module:function" under [model], with --trust-code; or, where it holds more than weights, '
        f"and opening it runs code, add --trust-pickle if you trust whoever made it."
    )


def load_content(torch: Any, path: Path, options: ModelOptions) -> Any:
    """What a file holds: tensors by name, or a module where the user trusts pickles."""
    with path.open("rb") as file:
        start = file.read(2)
    if not start.startswith((b"PK", b"\x80")):  # a zip archive, or a pickle from before PyTorch 1.6
        raise ModelError(f"the model {str(path)!r} is not a readable PyTorch file; save its state_dict() again.")
    with foreign(f"the model {str(path)!r} is not a readable PyTorch file"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called old; files of it are there
        try:
            return torch.load(path, map_location="cpu", weights_only=not options.trust_pickle)
        except Exception as error:
            if "weights_only" not in str(error) and "Unsupported global" not in str(error):
                raise
    raise ModelError(
        f"the model {str(path)!r} holds more than weights, and opening it runs code; save its state_dict(), or "
        f"add --trust-pickle if you trust whoever made it."
    )


def write_module(module: Any, inputs: int, path: Path, *, plain: bool = True) -> None:
    """Write a module as .pt2, or its state dict as .pt or .pth."""
    torch = import_torch("writing PyTorch files")
    if path.suffix in {".pt", ".pth"}:
        if not plain:
            raise ModelError(f"{path.name!r} would hold weights only and lose the interventions; save it as .pt2.")
        torch.save(module.state_dict(), path)
        return
    if path.suffix != ".pt2":
        raise ModelError(f"a PyTorch module cannot be saved as {path.name!r}; use .pt2, or .pt for its weights.")
    people = torch.export.Dim.DYNAMIC
    with torch.no_grad():
        program = torch.export.export(module.eval(), (torch.zeros(2, inputs),), dynamic_shapes=({0: people},))
    torch.export.save(program, str(path))


def rewrite_torch(network: Network, original: Any, path: Path, options: ModelOptions) -> None:
    """Write the original with the network's weights: an archive, a state dict, or a whole module where it held one."""
    if isinstance(original, Path) and original.suffix.lower() == ".pt2":
        archive = Archive(original)
        archive.write(path, archive.chain().parameters(network))
        return
    torch = import_torch("writing PyTorch files")
    module: Any = module_of(original, options) if isinstance(original, Path) else copy.deepcopy(original)
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    for name, array in chain_of_module(module.eval()).parameters(network).items():
        state[name] = torch.from_numpy(np.ascontiguousarray(array)).to(state[name].dtype).reshape(state[name].shape)
    module.load_state_dict(state)
    if isinstance(original, Path) and options.factory is None:
        torch.save(module, path)
    else:
        write_module(module, network.inputs, path)
