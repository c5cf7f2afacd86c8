"""Keras 3: feed-forward models become native networks; others run in Keras, with gradients on its PyTorch backend.

A .keras file may name classes and functions from anywhere, and its weights may be links to other files: both are
refused before Keras sees them. What it declares, Keras builds in a child process first, whose memory is limited.
"""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Encoding, Schema
from fairbits.errors import MissingDependencyError, ModelError, foreign, reason
from fairbits.models.black_box import BlackBox
from fairbits.models.guards import options_after_trial
from fairbits.models.inputs import Slot, random_people, slots_of
from fairbits.models.native.chain import Chain, Matrix, NotNative, ParameterSource
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner, plain_reading, read_note, read_output

_WEIGHTS = "model.weights.h5"
#: Homes of what Keras itself may look up; anything else would be imported from wherever the file says.
_HOMES = ("keras", "builtins", "")
_PASS = {"InputLayer", "Dropout", "GaussianNoise", "GaussianDropout", "AlphaDropout", "Flatten", "Identity"}


def import_keras(purpose: str) -> Any:
    _choose_backend()
    try:
        import keras
    except ImportError as error:
        if find_spec("keras") is None:
            raise MissingDependencyError.of("keras", "keras", purpose) from None
        raise ModelError(
            f"Keras cannot start, probably because its backend is not installed ({reason(error).rstrip('.')}); "
            f"name one that is with KERAS_BACKEND, e.g. KERAS_BACKEND=torch."
        ) from None
    return keras


def _choose_backend() -> None:
    """Keras takes TensorFlow unless told otherwise; where that is missing and PyTorch is there, it gets PyTorch."""
    told = "KERAS_BACKEND" in os.environ or "keras" in sys.modules
    if not told and find_spec("tensorflow") is None and find_spec("torch") is not None:
        os.environ["KERAS_BACKEND"] = "torch"


def read_file(path: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """The model in a .keras file, after it was built and called in a child process."""
    _refuse_code(path)
    import_keras("reading .keras files")  # chooses the backend, which the child takes over
    options = options_after_trial(path, schema, options, needs=("keras", "h5py"))
    return from_keras(read_keras(path), schema, options)


def read_keras(path: str | Path) -> Any:
    """The model in a .keras file, in safe mode: no code from the file is run."""
    keras = import_keras("reading .keras files")
    with foreign(f"the model {str(path)!r} is not a readable .keras file"):
        _refuse_links(Path(path))
        return keras.saving.load_model(str(path), compile=False, safe_mode=True)


def _refuse_code(path: Path) -> None:
    """Refuse classes and functions that would be looked up outside Keras, and layers that hold code."""
    with foreign(f"the model {str(path)!r} is not a readable .keras file"), zipfile.ZipFile(path) as file:
        waiting: list[Any] = [json.loads(file.read("config.json"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            module, kind = node.get("module"), node.get("class_name")
            if isinstance(module, str) and module.partition(".")[0] not in _HOMES:
                raise ModelError(
                    f"the model {str(path)!r} asks for {kind!r} from {module!r}, which is not Keras's; save a plain "
                    f"model."
                )
            if kind in ("Lambda", "TorchModuleWrapper", "__lambda__"):
                raise ModelError(
                    f"the model {str(path)!r} holds code of its own ({kind}), which is not run; save one without it."
                )
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _refuse_links(path: Path) -> None:
    import h5py

    with zipfile.ZipFile(path) as archive:
        if _WEIGHTS not in archive.namelist():
            return
        content = io.BytesIO(archive.read(_WEIGHTS))
    with h5py.File(content, "r") as file:
        waiting, seen = [file], set()
        while waiting:
            item = waiting.pop()
            if item.id in seen:
                continue
            seen.add(item.id)
            inside = list(item) if isinstance(item, h5py.Group) else []
            linked = isinstance(item, h5py.Dataset) and (item.external or item.is_virtual)
            if linked or any(not isinstance(item.get(name, getlink=True), h5py.HardLink) for name in inside):
                raise ModelError(f"the model {str(path)!r} has weights that are links to elsewhere; save it again.")
            waiting += [item[name] for name in inside]


def from_keras(model: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A Keras model, native where its layers form a chain of dense ones."""
    try:
        network = read_output(chain_of_keras(model).network(options.favourable), options)
    except NotNative as error:
        return _running(model, schema, options, str(error))

    def asked(rows: Any) -> Any:
        return model.predict(np.asarray(rows), verbose=0)

    return Loaded(network, owner=Owner(asked, (), "inputs", library=partial(_running, model, schema, options)))


def _running(model: Any, schema: Schema | None, options: ModelOptions, why: str) -> Loaded:
    """A Keras model as one that Keras is asked about, and why it is not read."""
    note = f"the model runs in Keras and is not read as a network: {why.rstrip('.')}."
    slots, encoding = _slots(model, schema, options)
    if import_keras("running Keras models").backend.backend() == "torch":
        from fairbits.models.torch import TorchModel

        rows = None if encoding is None or schema is None else encoding.encode(random_people(schema, 64))
        inner = TorchModel.of(_AsModule(model, slots), schema, options, trial=rows)
        return Loaded(inner, encoding, notes=(note, *read_note(inner.output, options)))
    box = BlackBox(
        lambda rows: model.predict(_given(model, slots, rows.astype(np.float32)), verbose=0),
        int(encoding.width if encoding is not None else model.input_shape[-1]),
        name="the Keras model",
        batch=options.batch,
        reading=plain_reading(options),
        outputs=model.output_shape[-1] if isinstance(model.output_shape, tuple) else None,
    )
    return Loaded(box, encoding, notes=(note,))


def _slots(model: Any, schema: Schema | None, options: ModelOptions) -> tuple[tuple[Slot, ...], Encoding | None]:
    """Which attributes go into which input of a model with several; nothing for one with a single table."""
    inputs = list(getattr(model, "inputs", None) or [])
    if len(inputs) < 2:
        return (), None
    names = [str(tensor.name) for tensor in inputs]
    if schema is None:
        raise ModelError(f"the Keras model has the inputs {', '.join(names)}; give a schema that says what they are.")
    text = next((str(t.name) for t in inputs if str(t.dtype) == "string"), None)
    if text is not None:
        raise ModelError(
            f"the input {text!r} of the Keras model takes text; give one that takes codes or one-hot columns."
        )
    widths = [int(t.shape[-1]) if len(t.shape) > 1 and t.shape[-1] is not None else None for t in inputs]
    return slots_of(names, widths, schema, options)


def _given(model: Any, slots: tuple[Slot, ...], rows: Any) -> Any:
    """Encoded rows as the model takes them: one table, or one for each of its inputs."""
    if not slots:
        return rows
    pieces = [
        rows[:, slot.start] if len(tensor.shape) == 1 else rows[:, slot.start : slot.stop]
        for slot, tensor in zip(slots, model.inputs, strict=True)
    ]
    struct = getattr(model, "_inputs_struct", None)  # a model may have been made with a dictionary of inputs
    if not isinstance(struct, dict):
        return pieces
    places = {id(tensor): place for place, tensor in enumerate(model.inputs)}  # in an order of their own
    return {name: pieces[places[id(tensor)]] for name, tensor in struct.items()}


def chain_of_keras(model: Any) -> Chain:
    """The operations of a Sequential or functional model in order."""
    chain = Chain()
    for layer in _in_order(model):
        _take(chain, layer)
    return chain


def rewrite_keras(network: Network, original: Any, path: Path, _options: ModelOptions) -> None:
    if isinstance(original, str | Path):
        model = read_keras(original)
    else:
        model = import_keras("copying Keras models").models.clone_model(original)
        model.set_weights(original.get_weights())
    variables = {variable.path: variable for variable in model.weights}
    for name, array in chain_of_keras(model).parameters(network).items():
        variables[name].assign(array.reshape(variables[name].shape).astype(np.float32))
    model.save(str(path))


class _AsModule:
    """A Keras model as TorchModel calls modules. Its layers are not reached into."""

    def __init__(self, model: Any, slots: tuple[Slot, ...] = ()):
        self._model, self._slots = model, slots

    def __call__(self, rows: Any) -> Any:
        return self._model(_given(self._model, self._slots, rows), training=False)

    def get_weights(self) -> list[Any]:
        return list(self._model.get_weights())

    def named_modules(self) -> list[tuple[str, Any]]:
        return []

    def modules(self) -> list[Any]:
        return []


def _in_order(model: Any) -> list[Any]:
    """The layers of a chain; a model whose layers branch or join is none."""
    if type(model).__name__ == "Sequential":
        return [
            inner for layer in model.layers for inner in (_in_order(layer) if hasattr(layer, "layers") else [layer])
        ]
    if not hasattr(model, "operations") or not hasattr(model, "inputs") or not hasattr(model, "outputs"):
        raise NotNative("its layers are called by code of its own.")
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        several = [f"{len(found)} {what}" for found, what in ((model.inputs, "inputs"), (model.outputs, "outputs"))]
        raise NotNative(f"it has {' and '.join(text for text in several if not text.startswith('1 '))}.")
    chain, current = [], model.inputs[0]
    for operation in model.operations:
        if type(operation).__name__ == "InputLayer":
            continue
        if len(operation._inbound_nodes) != 1:
            raise NotNative(f"layer {operation.name!r} is used more than once.")
        node = operation._inbound_nodes[0]
        if [id(t) for t in node.input_tensors] != [id(current)] or len(node.output_tensors) != 1:
            raise NotNative(f"the path through it branches at {operation.name!r}.")
        current = node.output_tensors[0]
        chain += _in_order(operation) if hasattr(operation, "layers") else [operation]
    if current is not model.outputs[0]:
        raise NotNative("its output is not its last layer.")
    return chain


def _take(chain: Chain, layer: Any) -> None:
    kind = type(layer).__name__
    if kind in _PASS:
        return
    if kind == "Dense":
        chain.multiply(_array(layer.kernel), ParameterSource(layer.kernel.path))
        if layer.use_bias:
            chain.scale(1.0, _array(layer.bias), ParameterSource(layer.bias.path))
    if kind in {"Dense", "Activation"}:
        name = getattr(layer.activation, "__name__", None)
        if name is None:  # an activation that is itself a layer
            _take(chain, layer.activation)
        elif name != "linear":
            chain.function(name, 0.2 if name == "leaky_relu" else None)
    elif kind == "BatchNormalization":
        spread = np.sqrt(_array(layer.moving_variance) + layer.epsilon)
        gain = _array(layer.gamma) if layer.scale else 1.0
        shift = (_array(layer.beta), layer.beta.path) if layer.center else ()
        chain.normalise(_array(layer.moving_mean), spread, gain, *shift)
    elif kind == "Normalization" and not layer.invert:
        spread = np.maximum(np.sqrt(_array(layer.variance)), 1e-7)
        chain.normalise(_array(layer.mean).ravel(), spread.ravel())
    elif kind == "Rescaling":
        chain.scale(np.asarray(layer.scale), np.asarray(layer.offset))
    elif kind in {"ELU", "Softmax", "ReLU", "LeakyReLU"}:
        slope, bent = getattr(layer, "alpha", getattr(layer, "negative_slope", None)), getattr(layer, "threshold", None)
        if getattr(layer, "max_value", None) is not None or bent:
            raise NotNative("a ReLU with a ceiling or a threshold is not understood.")
        chain.function(kind.lower() if kind in {"ELU", "Softmax"} else "leaky_relu" if slope else "relu", slope)
    else:
        raise NotNative(f"the layer {layer.name!r} is a {kind}, which is not one of a chain of dense layers.")


def _array(variable: Any) -> Matrix:
    return np.asarray(import_keras("reading weights").ops.convert_to_numpy(variable), dtype=np.float64)
