"""PyTorch modules written: anew, or in place of the weights of the file that they came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairbits.errors import ModelError
from fairbits.models.native.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.torch.adapter import chain_of_module, import_torch
from fairbits.models.torch.files import load_content, module_of
from fairbits.models.torch.pt2 import Archive


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


def rewrite_pt2(network: Network, original: Path, path: Path) -> None:
    """Write the original archive with the network's weights."""
    archive = Archive(original)
    chain = archive.chain()
    chain.network()
    archive.write(path, chain.parameters(network))


def rewrite_weights(network: Network, original: Path, path: Path, options: ModelOptions) -> None:
    """Write the original file with the network's weights: a state dict, or a whole module where it held one."""
    torch = import_torch("writing PyTorch files")
    held = load_content(torch, original, options)
    if isinstance(held, torch.nn.Module):
        held.load_state_dict(_changed_state(network, held))
        held.save(str(path)) if isinstance(held, torch.jit.ScriptModule) else torch.save(held, path)
    else:
        rewrite_module(network, module_of(original, options), path)


def rewrite_module(network: Network, module: Any, path: Path) -> None:
    """Write a module's state dict (or its export) with the network's weights; the module itself stays as it is."""
    torch = import_torch("writing PyTorch files")
    state = _changed_state(network, module)
    if path.suffix in {".pt", ".pth"}:
        torch.save(state, path)
        return
    import copy

    twin = copy.deepcopy(module)
    twin.load_state_dict(state)
    write_module(twin, network.inputs, path)


def _changed_state(network: Network, module: Any) -> dict[str, Any]:
    torch = import_torch("writing PyTorch files")
    chain = chain_of_module(module.eval())
    chain.network()
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    for name, array in chain.parameters(network).items():
        state[name] = torch.from_numpy(np.ascontiguousarray(array)).to(state[name].dtype).reshape(state[name].shape)
    return state
