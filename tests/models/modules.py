"""PyTorch modules of several kinds, in a file that imports nothing else: child processes build them by name."""

from __future__ import annotations

from typing import Any


def sequential() -> Any:
    """Everything that folds: nested, normalised, dropped out."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(8, 6), nn.LeakyReLU(0.2), nn.Identity())
    net = nn.Sequential(nn.Linear(9, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.3), inner, nn.Linear(6, 2))
    with torch.no_grad():
        net[1].running_mean.uniform_(-1, 1)
        net[1].running_var.uniform_(0.5, 2)
        net[1].weight.uniform_(0.5, 2)
        net[1].bias.uniform_(-1, 1)
    return net.eval()


def handwritten() -> Any:
    """A forward method of its own, which is a chain all the same; one logit comes out."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(9, 7), nn.Linear(7, 1)

        def forward(self, x: Any) -> Any:
            x = torch.nn.functional.gelu(self.first(x), approximate="tanh")
            return torch.sigmoid(self.second(x)).flatten(1)

    torch.manual_seed(1)
    return Net().eval()


def residual() -> Any:
    """A path that branches: no chain."""
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.act, self.second = nn.Linear(9, 9), nn.Tanh(), nn.Linear(9, 9)
            self.act2, self.last = nn.Tanh(), nn.Linear(9, 3)

        def forward(self, x: Any) -> Any:
            return self.last(x * 0.1 + self.act2(self.second(self.act(self.first(x)))))

    torch.manual_seed(2)
    return Residual().eval()
