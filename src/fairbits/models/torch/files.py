"""PyTorch files, read and written: exported programs (.pt2), and weights (.pt, .pth) with the function of their module.

The graph of a .pt2 archive is JSON and its weights are plain bytes, so that a chain of dense layers is read as data,
without code and without PyTorch. ``torch.export.load`` unpickles parts of it, and is asked only where it is trusted.
"""

from __future__ import annotations

import copy
import json
import math
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fairbits.domain import Schema
from fairbits.errors import ModelError
from fairbits.models.black_box import foreign
from fairbits.models.guards import options_after_trial
from fairbits.models.native.chain import Chain, NotNative
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, read_output
from fairbits.models.registry import check_reference, made_by, named_object
from fairbits.models.torch.module import chain_of_module, from_torch, import_torch, running, take_operation

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
            return self._walk()

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
        held = [(kind, spec[kind]) for spec in self.specs for kind in ("parameter", "buffer") if kind in spec]
        named = {one["arg"]["name"]: one[f"{kind}_name"] for kind, one in held}
        inputs = [spec["user_input"]["arg"] for spec in self.specs if "user_input" in spec]
        if len(inputs) > 1:
            raise NotNative("it has more than one input.")
        chain = Chain()
        current = next((one["as_tensor"]["name"] for one in inputs), None)
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


def read_pt2(path: Path, schema: Schema | None, options: ModelOptions) -> Loaded:
    """An exported program: read as data where it is a chain of dense layers, else run, if trusted."""
    archive = Archive(path)
    try:
        return Loaded(read_output(archive.chain().network(options.favourable), options))
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
    module: Any = load_content(torch, original, options) if isinstance(original, Path) else None
    whole = isinstance(module, torch.nn.Module)
    if not whole:
        module = module_of(original, options) if isinstance(original, Path) else copy.deepcopy(original)
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    for name, array in chain_of_module(module.eval()).parameters(network).items():
        state[name] = torch.from_numpy(np.ascontiguousarray(array)).to(state[name].dtype).reshape(state[name].shape)
    module.load_state_dict(state)
    if whole:
        torch.save(module, path)
    else:
        write_module(module, network.inputs, path)
