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
from fairbits.errors import ModelError
from fairbits.models.base import needed
from fairbits.models.black_box import foreign
from fairbits.models.native.chain import Chain, Matrix, NotNative, ParameterSource
from fairbits.models.options import ModelOptions
from fairbits.models.outputs import Loaded, Owner, read_output

#: Activations of PyTorch that are known by name, though some have no kernel here.
_ACTIVATIONS = {
    *("relu", "tanh", "sigmoid", "softmax", "leaky_relu", "elu", "silu", "mish", "selu", "celu", "softplus"),
    *("softsign", "hardtanh", "hardswish", "hardsigmoid", "relu6", "prelu", "logsigmoid", "rrelu", "glu"),
}
_PASS = {"identity", "dropout", "alphadropout", "flatten", "float", "contiguous", "to", "detach"}


def import_torch(purpose: str) -> Any:
    """Import PyTorch."""
    return needed("torch", "torch", purpose)


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
    elif name == "softmax" and given.get("dim") not in (1, -1):
        raise NotNative("its softmax is not over the outputs.")
    elif name == "gelu":
        chain.function("gelu_tanh" if given.get("approximate") == "tanh" else "gelu")
    elif name.replace("leakyrelu", "leaky_relu") in _ACTIVATIONS:
        chain.function(name.replace("leakyrelu", "leaky_relu"), given.get("negative_slope", given.get("alpha")))
    else:
        raise NotNative(f"the operation {name} is not one of a chain of dense layers.")
