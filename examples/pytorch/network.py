"""The network, and a function that makes it with its trained weights: ``network:approver`` names it for fairbits."""

import torch
from torch import nn


def untrained() -> nn.Sequential:
    """Thirteen columns in, one logit out. The normalisation inside lets the table stay in years and euros."""
    return nn.Sequential(
        nn.BatchNorm1d(13, affine=False, momentum=None), nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 1)
    )


def approver() -> nn.Module:
    """The trained network."""
    network = untrained()
    network.load_state_dict(torch.load("weights.pt", weights_only=True))
    return network.eval()
