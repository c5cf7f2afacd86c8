"""The network under test, whatever made it."""

from fairbits.models.activations import Activation
from fairbits.models.loading import load_model
from fairbits.models.network import Network
from fairbits.models.protocols import (
    CanSave,
    Do,
    HasActivations,
    HasClassScores,
    HasGradients,
    HasInterventions,
    HasLayerGradients,
    Model,
    require,
)

__all__ = [
    "Activation",
    "CanSave",
    "Do",
    "HasActivations",
    "HasClassScores",
    "HasGradients",
    "HasInterventions",
    "HasLayerGradients",
    "Model",
    "Network",
    "load_model",
    "require",
]
