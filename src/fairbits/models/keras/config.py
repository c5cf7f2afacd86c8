"""What a .keras file declares, held against limits before Keras builds it: layers, widths, weights.

Keras makes every layer as large as ``config.json`` says, whatever the file holds. So the widths are followed here from
layer to layer, and the weights (HDF5, whose library trusts its files) are read first in a child process.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from pathlib import Path
from typing import Any

from fairbits import sandbox
from fairbits.errors import ModelError
from fairbits.models.black_box import reason
from fairbits.models.limits import check_archive
from fairbits.models.options import ModelOptions

_CONFIG, _WEIGHTS = "config.json", "model.weights.h5"
_MAX_LAYERS = 2_000
_BYTES = 4
#: Layers that leave the width as it is, or take the sum of what comes in, and keep at most four numbers per input.
_KEEPING = {
    *("InputLayer", "Dropout", "GaussianNoise", "GaussianDropout", "AlphaDropout", "Identity", "Activation", "Flatten"),
    *("BatchNormalization", "LayerNormalization", "Normalization", "Rescaling", "ReLU", "LeakyReLU", "ELU", "PReLU"),
    *("Softmax", "Concatenate", "Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"),
}  # fmt: skip
#: Whole numbers in a layer's settings that say nothing about its size: where an object lay in memory, a seed.
_NO_SIZES = {"shared_object_id", "seed"}
_MODELS = {"Sequential", "Functional", "Model"}
#: Homes of what Keras itself may look up; anything else would be imported from wherever the file says.
_HOMES = ("keras", "builtins", "")


def check_keras(path: Path, options: ModelOptions) -> bool:
    """Hold what a .keras file declares against the limits."""
    entries = {entry.filename for entry in check_archive(path, options.max_model_bytes)}
    if _CONFIG not in entries:
        raise ModelError(f"the model {str(path)!r} is not a readable .keras file: it has no {_CONFIG}; save it again.")
    try:
        with zipfile.ZipFile(path) as file:
            config = json.loads(file.read(_CONFIG))
            weights = file.read(_WEIGHTS) if _WEIGHTS in entries else b""
        plain = _Layers(options.max_model_bytes).walk(config)
    except ModelError as error:
        raise ModelError(f"the model {str(path)!r} {error}") from None
    except (Exception, RecursionError) as error:  # noqa: BLE001 - a damaged file can break anything inside
        raise ModelError(f"the model {str(path)!r} is not a readable .keras file: {reason(error)}") from None
    _check_weights(path, weights, options)
    return plain


def _check_weights(path: Path, weights: bytes, options: ModelOptions) -> None:
    if not weights or sandbox.inside():
        return
    outcome = sandbox.try_out(
        "fairbits.models.keras.config:read_weights",
        (weights, options.max_model_bytes),
        seconds=options.max_seconds,
        memory=2 * options.max_model_bytes,
        needs=("fairbits.models.keras.config", "h5py"),
    )
    if outcome.error is not None:
        raise ModelError(f"the model {str(path)!r} {outcome.error}")
    if outcome.fault:
        raise ModelError(f"the model {str(path)!r} has weights whose reading {outcome.fault}; save it again.")


def read_weights(given: tuple[bytes, int], _notify: sandbox.Notify) -> None:
    """Read every number of a weight file once, in the child process; links out of the file are refused."""
    import h5py

    content, limit = given
    total = 0
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            waiting = [file]
            seen: set[Any] = set()
            while waiting:
                group = waiting.pop()
                for name in group:
                    if isinstance(group.get(name, getlink=True), h5py.ExternalLink | h5py.SoftLink):
                        raise ModelError("has weights that are links to elsewhere; save it again.")
                    item = group[name]
                    if item.id in seen:
                        continue
                    seen.add(item.id)
                    if isinstance(item, h5py.Group):
                        waiting.append(item)
                        continue
                    if item.external or item.is_virtual:
                        raise ModelError("has weights that are links to elsewhere; save it again.")
                    total += math.prod(item.shape or (1,)) * max(int(item.dtype.itemsize), _BYTES)
                    if total > limit:
                        raise ModelError(
                            f"has weights of {total:,} bytes, and {limit:,} are allowed; raise --max-model-bytes if "
                            f"it is yours."
                        )
                    item[()]
    except ModelError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file can break anything inside
        raise ModelError(f"is not a readable .keras file: {reason(error)}") from None


class _Layers:
    """Follows the widths through a model's layers, those of models inside it included."""

    def __init__(self, limit: int):
        self.limit = limit
        self.count = 0
        self.bytes = 0
        self.plain = True

    def walk(self, config: Any) -> bool:
        """Whether all layers are plain; refuses what goes beyond the limit."""
        self._homes(config)
        self._model(config, None)
        return self.plain

    def _homes(self, node: Any) -> None:
        """Refuse classes and functions that would be looked up outside Keras."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                module, kind = node.get("module"), node.get("class_name")
                if isinstance(module, str) and module.partition(".")[0] not in _HOMES:
                    raise ModelError(f"asks for {kind!r} from {module!r}, which is not Keras's; save a plain model.")
                if kind in {"Lambda", "TorchModuleWrapper", "__lambda__"}:
                    raise ModelError(f"holds code of its own ({kind}), which is not run; save a model without it.")
                waiting += node.values()
            elif isinstance(node, list):
                waiting += node

    def _model(self, node: dict[str, Any], width: int | None) -> int | None:
        config = node["config"]
        if node["class_name"] not in _MODELS or "layers" not in config:
            self.plain = False
            return None
        width = _wider(width, _built(node))
        widths: dict[str, int | None] = {}
        for layer in config["layers"]:
            self.count += 1
            if self.count > _MAX_LAYERS:
                raise ModelError(f"has more than {_MAX_LAYERS:,} layers; save a smaller one.")
            inner = layer.get("config") or {}
            name = str(inner.get("name", layer.get("name")))
            if node["class_name"] != "Sequential":
                sources = [widths.get(source) for source in _sources(layer.get("inbound_nodes"))]
                known = [size for size in sources if size is not None]
                width = sum(known) if known and len(known) == len(sources) else None
            width = self._layer(layer, inner, _wider(width, _built(layer)))
            widths[name] = width
        return width

    def _layer(self, layer: dict[str, Any], config: dict[str, Any], width: int | None) -> int | None:
        kind = layer["class_name"]
        if kind in _MODELS:
            return self._model(layer, width)
        if kind == "InputLayer":
            shape = config.get("batch_shape") or config.get("batch_input_shape") or config.get("shape") or []
            sizes = [size for size in shape if isinstance(size, int)]
            self._add(math.prod(sizes), "an input", 1)
            return math.prod(sizes)
        if kind == "Dense":
            units = config.get("units")
            if not isinstance(units, int) or units < 1:
                raise ModelError(f"has a layer of {units!r} units; save it again.")
            self.plain &= width is not None
            self._add(units * ((width or 1) + 1), f"a layer of {units:,} units", _BYTES)
            return units
        if kind == "Embedding":
            rows, columns = config.get("input_dim"), config.get("output_dim")
            if not (isinstance(rows, int) and isinstance(columns, int) and rows > 0 and columns > 0):
                raise ModelError(f"has an embedding of {rows!r} by {columns!r}; save it again.")
            self.plain = False
            self._add(rows * columns, f"an embedding of {rows:,} by {columns:,}", _BYTES)
            return None
        if kind not in _KEEPING:
            self.plain = False
            self._numbers([config, layer.get("build_config")], kind)
            return None
        if width is not None:
            self._add(width, kind, 4 * _BYTES)
        return width

    def _numbers(self, config: Any, kind: str) -> None:
        """A layer that is not followed may still declare no number beyond the limit."""
        waiting = [config]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                waiting += [value for name, value in node.items() if name not in _NO_SIZES]
            elif isinstance(node, list):
                waiting += node
            elif isinstance(node, int) and abs(node) * _BYTES > self.limit:
                raise ModelError(
                    f"has {kind} with {node:,}, more than {self.limit:,} bytes allow; see --max-model-bytes."
                )

    def _add(self, count: int, what: str, size: int) -> None:
        self.bytes += count * size
        if self.bytes > self.limit:
            raise ModelError(
                f"declares {self.bytes:,} bytes by {what}, and {self.limit:,} are allowed; raise --max-model-bytes if "
                f"it is yours."
            )


def _built(layer: dict[str, Any]) -> int | None:
    """The width that Keras builds a layer for by the file's own word, whatever comes into it; None where none is said.

    Of several shapes the largest: a layer that joins its inputs lists them all.
    """
    found: list[int] = []
    waiting = [layer.get("build_config")]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            sizes = [abs(size) for size in node if isinstance(size, int)]
            found += [math.prod(sizes)] if sizes else []
            waiting += [inner for inner in node if isinstance(inner, dict | list)]
    return max(found, default=None)


def _wider(width: int | None, built: int | None) -> int | None:
    """The larger of what comes in and what a layer is built for, where either is known."""
    return max((size for size in (width, built) if size is not None), default=None)


def _sources(nodes: Any) -> list[str]:
    """The layers that a layer's inputs come from, by name."""
    found: list[str] = []
    waiting = [nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            history = node.get("keras_history")
            if isinstance(history, list) and history:
                found.append(str(history[0]))
            waiting += [value for value in node.values() if isinstance(value, dict | list)]
        elif isinstance(node, list):
            waiting += node
    return found
