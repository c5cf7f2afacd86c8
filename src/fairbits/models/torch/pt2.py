"""torch.export archives (.pt2) read as data: the graph is JSON and the weights are plain bytes, so no code runs.

``torch.export.load`` unpickles parts of the archive and is not for files from strangers. A chain of dense layers needs
none of that; this reader does not even need PyTorch. Whatever it does not understand is left to PyTorch, if trusted.
"""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.errors import ModelError
from fairbits.models.black_box import reason
from fairbits.models.native.chain import Chain, NotNative
from fairbits.models.torch.adapter import take_operation

#: The archive's numbers for kinds of tensors.
_KINDS = {3: "<i2", 4: "<i4", 5: "<i8", 6: "<f2", 7: "<f4", 8: "<f8"}


class Archive:
    """The graph and the weights of one exported model."""

    def __init__(self, path: str | Path):
        try:
            with zipfile.ZipFile(path) as file:
                self.entries = {name: file.read(name) for name in file.namelist()}
            self.root = next(iter(self.entries)).split("/")[0]
            document = json.loads(self._entry("models/model.json"))
            self.graph = document["graph_module"]["graph"]
            self.specs = document["graph_module"]["signature"]["input_specs"]
            self.config = json.loads(self._entry("data/weights/model_weights_config.json"))["config"]
        except ModelError as error:
            raise ModelError(
                f"the model {str(path)!r} is not a torch.export archive that can be read: {error}"
            ) from None
        except Exception as error:  # noqa: BLE001 - a damaged archive can break anything inside
            raise ModelError(f"the model {str(path)!r} is not a readable .pt2 file: {reason(error)}") from None

    def chain(self) -> Chain:
        """The operations in order; parameters are named as in the state dict."""
        try:
            return self._walk()
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration) as error:
            raise NotNative(f"its graph is damaged or of an unknown form ({reason(error)})") from None

    def weight(self, name: str) -> npt.NDArray[Any]:
        """One parameter of the module, by its name."""
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
        """Write the archive with other values for some parameters."""
        entries = dict(self.entries)
        for name, array in changed.items():
            old = self.weight(name)
            entries[f"{self.root}/data/weights/{self.config[name]['path_name']}"] = (
                array.reshape(old.shape).astype(old.dtype).tobytes()
            )
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
            for name, content in entries.items():
                file.writestr(zipfile.ZipInfo(name), content)

    def _entry(self, name: str) -> bytes:
        found = self.entries.get(f"{self.root}/{name}")
        if found is None:
            raise NotNative(f"it has no {name}; export it again with a newer torch.export.")
        return found

    def _walk(self) -> Chain:
        named: dict[str, str] = {}
        current = None
        for spec in self.specs:
            for kind, key in (("parameter", "parameter_name"), ("buffer", "buffer_name")):
                if kind in spec:
                    named[spec[kind]["arg"]["name"]] = spec[kind][key]
            if "user_input" in spec:
                if current is not None:
                    raise NotNative("it has more than one input.")
                current = spec["user_input"]["arg"]["as_tensor"]["name"]
        chain = Chain()
        for node in self.graph["nodes"]:
            current = self._take(chain, node, current, named)
        outputs = [entry["as_tensor"]["name"] for entry in self.graph["outputs"]]
        if outputs != [current]:
            raise NotNative("it puts out more than one value.")
        return chain

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
