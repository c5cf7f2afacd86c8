"""PyTorch modules: chains of dense layers become native networks, all others run in PyTorch.

A module is read through torch.fx, so that nested Sequentials and hand-written forward methods come down to the same
chain of operations. Operations are told apart by their plain names, which modules, functions, methods and exported
graphs share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fairbits.domain import Schema
from fairbits.errors import MissingDependencyError, ModelError
from fairbits.models.native.chain import Chain, Matrix, NotNative, ParameterSource
from fairbits.models.native.network import Activation
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner, read_output

_PASS = {"identity", "dropout", "alphadropout", "flatten", "float", "contiguous", "to", "detach"}


def import_torch(purpose: str) -> Any:
    """Import PyTorch."""
    try:
        import torch
    except ImportError:
        raise MissingDependencyError("torch", "torch", purpose) from None
    return torch


def from_torch(module: Any, schema: Schema | None, options: ModelOptions) -> Loaded:
    """A PyTorch module as a model, native where it is a chain of dense layers."""
    if not isinstance(module, import_torch("reading PyTorch modules").nn.Module):
        raise ModelError(f"a {type(module).__name__!r} of PyTorch is no module; hand over the nn.Module itself.")
    module.eval()  # dropout and batch statistics belong to training
    try:
        network = chain_of_module(module).network(options.favourable)
        owner = Owner(_asked(module), (), "inputs", library=lambda why: _running(module, schema, options, why))
        return Loaded(read_output(network, options), owner=owner)
    except NotNative as error:
        try:
            return _running(module, schema, options, str(error))
        except ModelError as trouble:
            raise ModelError(
                f"the module is no chain of dense layers ({str(error).rstrip('.')}) and does not run: {trouble}"
            ) from None


def _running(module: Any, schema: Schema | None, options: ModelOptions, why: str) -> Loaded:
    from fairbits.models.torch.module import running

    return running(module, schema, options, why)


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
        script = Chain()
        _take_script(script, module, "")
        return script
    try:
        traced = torch.fx.symbolic_trace(module)
    except Exception as error:  # noqa: BLE001 - tracing runs the module's own code
        raise NotNative(f"its forward method cannot be traced: {type(error).__name__}.") from None
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


def _take_script(chain: Chain, module: Any, path: str) -> None:
    """The layers of a compiled Sequential; what a compiled forward method of its own does is not read."""
    kind = str(getattr(module, "original_name", type(module).__name__))
    children = list(module.named_children())
    if kind == "Sequential":
        for name, child in children:
            _take_script(chain, child, f"{path}.{name}" if path else name)
    elif children or not path:
        raise NotNative(f"it is TorchScript, and the forward method of {kind} is run there and not read.")
    else:
        take_operation(chain, kind.lower(), _settings_of(module), _parameters(module, path))


def _take(chain: Chain, node: Any, traced: Any) -> None:
    if node.op == "call_module":
        module = traced.get_submodule(node.target)
        take_operation(chain, type(module).__name__.lower(), _settings_of(module), _parameters(module, node.target))
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
Parameters = dict[str, tuple[str, Matrix]]


def _settings_of(module: Any) -> dict[str, Any]:
    names = ("negative_slope", "alpha", "approximate", "dim", "start_dim", "eps")
    return {name: getattr(module, name) for name in names if hasattr(module, name)}


def _parameters(module: Any, path: str) -> Parameters:
    held = {**dict(module.named_parameters(recurse=False)), **dict(module.named_buffers(recurse=False))}
    return {name: (f"{path}.{name}", t.detach().cpu().numpy().astype(np.float64)) for name, t in held.items()}


def take_operation(chain: Chain, name: str, given: dict[str, Any], held: Parameters) -> None:
    """Add one operation to a chain."""
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
    elif name == "sigmoid":
        chain.sigmoid()
    elif name == "softmax" and given.get("dim") in (1, -1):
        chain.end("softmax")
    elif name in _ACTIVATIONS:
        chain.activate(_ACTIVATIONS[name](given))
    else:
        raise NotNative(_not_understood(name))


def _not_understood(name: str) -> str:
    """Why an operation has no place in a network here."""
    if name.startswith("conv"):
        return f"the layer {name} is a convolution, which has no kernel here."
    if name in _OTHER_ACTIVATIONS:
        return f"the activation {name} has no kernel here."
    return f"the operation {name} is not one of a chain of dense layers."


#: Activations of PyTorch that are known by name and run there.
_OTHER_ACTIVATIONS = {
    *("silu", "mish", "selu", "celu", "softplus", "softsign", "hardtanh", "hardswish", "hardsigmoid", "relu6", "prelu"),
    *("logsigmoid", "tanhshrink", "hardshrink", "softshrink", "threshold", "glu", "rrelu"),
}  # fmt: skip


def _named(name: str) -> Callable[[dict[str, Any]], Activation]:
    return lambda _: Activation(name)


_ACTIVATIONS: dict[str, Callable[[dict[str, Any]], Activation]] = {
    "relu": _named("relu"),
    "tanh": _named("tanh"),
    "leakyrelu": lambda given: Activation("leaky_relu", float(given.get("negative_slope", 0.01))),
    "leaky_relu": lambda given: Activation("leaky_relu", float(given.get("negative_slope", 0.01))),
    "elu": lambda given: Activation("elu", float(given.get("alpha", 1.0))),
    "gelu": lambda given: Activation("gelu_tanh" if given.get("approximate") == "tanh" else "gelu"),
}
