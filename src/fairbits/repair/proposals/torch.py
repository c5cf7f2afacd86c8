"""A guarded native network as a PyTorch program (.pt2), which `torch.export.load` opens without fairbits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fairbits.domain import Lookup
from fairbits.errors import MissingDependencyError, ModelError
from fairbits.repair.proposals.arrays import GuardArrays


def write_guard_pt2(arrays: GuardArrays, path: str | Path) -> None:
    """Write a guarded network as a PyTorch program."""
    try:
        import torch
    except ImportError:
        raise MissingDependencyError("torch", "torch", "writing a .pt2 file") from None
    network, rules = arrays.network, arrays.rules
    operations = {
        **{"and": torch.logical_and, "or": torch.logical_or, "not": torch.logical_not, "neg": torch.neg},
        **{"=": torch.eq, "!=": torch.ne, "<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge},
        **{"+": torch.add, "-": torch.sub, "*": torch.mul},
    }
    functions = {
        "relu": torch.relu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "identity": lambda x: x,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    }
    for activation in network.activations_after:
        if activation.name not in {*functions, "leaky_relu", "elu"}:
            raise ModelError(f"activation {activation.name!r} has no PyTorch form here; use .onnx.")

    def activated(activation: Any, x: Any) -> Any:
        if activation.name == "leaky_relu":
            return torch.nn.functional.leaky_relu(x, activation.alpha)
        if activation.name == "elu":
            return torch.nn.functional.elu(x, activation.alpha)
        return functions[activation.name](x)

    class Guarded(torch.nn.Module):  # type: ignore[misc]  # torch has no stubs here
        def __init__(self) -> None:
            super().__init__()
            held = {"shared": arrays.shared_weights, "terms": arrays.twin_terms, "shares": arrays.weights}
            held |= {f"w{i}": w for i, w in enumerate(network.weights)}
            held |= {f"b{i}": b for i, b in enumerate(network.biases)}
            signs = np.array([1.0 if network.favourable == c else -1.0 for c in range(2)])
            held["steps"] = np.exp(arrays.shift * (signs if network.head == "softmax" else signs[1:]))
            for column, values in {} if rules is None else rules.twins.items():
                held[f"twins{column}"] = values[None]
            for column, (part, _) in {} if rules is None else rules.seen.items():
                if isinstance(part, Lookup):
                    held[f"table{column}"] = part.table[None]
            for name, value in held.items():
                self.register_buffer(name, torch.from_numpy(np.array(value)))

        def rest(self, before: Any) -> Any:
            for i in range(1, len(network.weights)):
                before = activated(network.activations_after[i - 1], before)
                before = before @ getattr(self, f"w{i}") + getattr(self, f"b{i}")
            if network.head == "softmax":
                before = torch.softmax(before, -1)
            elif network.head == "sigmoid":
                before = torch.sigmoid(before)
            return before.double()

        def moved(self, output: Any) -> Any:
            if arrays.shift == 0:
                return output
            if network.head == "linear":
                return output + arrays.shift
            inside = torch.clamp(output, 1e-9, 1 - 1e-9)
            odds = inside / (1 - inside) * self.steps
            return odds / (1 + odds)

        def weights(self, inputs: Any) -> Any:
            """The twins' weights: over those that can exist; over all where none can."""
            shares = self.shares[None]
            if rules is None:
                return shares
            columns = {column: getattr(self, f"twins{column}") for column in rules.twins}
            for column, (part, whole) in rules.seen.items():
                own = inputs[:, part.columns.tolist()].double()
                if isinstance(part, Lookup):
                    apart = (own.unsqueeze(1) - getattr(self, f"table{column}")).abs().sum(2)
                    columns[column] = apart.argmin(1, keepdim=True).double() + part.low
                else:
                    own = own / (part.scale or 1.0) + part.shift
                    columns[column] = torch.round(own) if whole else own
            left = torch.where(rules.evaluate(columns, operations, float), shares, torch.zeros_like(shares))
            left = torch.where(left.sum(1, keepdim=True) > 0, left, shares)
            return left / left.sum(1, keepdim=True)

        def forward(self, inputs: Any) -> Any:
            twins = self.rest((inputs @ self.shared).unsqueeze(1) + self.terms)
            centre = self.moved((twins * self.weights(inputs).unsqueeze(2)).sum(1))
            if arrays.tau == 0:
                return centre.float()
            apart = self.moved(self.rest(inputs @ self.w0 + self.b0)) - centre
            size = torch.clamp(centre.abs().amax(-1, keepdim=True), min=arrays.size)
            room = torch.clamp(arrays.tau - arrays.hair * size, min=0.0)
            far = torch.clamp(apart.abs().amax(-1, keepdim=True), min=float(np.finfo(np.float64).tiny))
            return (centre + torch.clamp(room / far, max=1.0) * apart).float()

    people = torch.export.Dim("people", min=1, max=2**20)
    example = torch.zeros((3, network.inputs))
    program = torch.export.export(Guarded().eval(), (example,), dynamic_shapes={"inputs": {0: people}})
    torch.export.save(program, str(path))
