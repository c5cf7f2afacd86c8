"""The network under test, whatever made it."""

from fairbits.models.activations import Activation
from fairbits.models.loaded import Loaded, fit_to_schema
from fairbits.models.loading import load_model, load_with_encoding, read_model
from fairbits.models.network import Network
from fairbits.models.options import ModelOptions
from fairbits.models.original import ending_of, save_as_original
from fairbits.models.protocols import (
    CanSave,
    Do,
    HasActivations,
    HasClassScores,
    HasGradients,
    HasInterventions,
    HasLayerGradients,
    HasTrees,
    Model,
    require,
)
from fairbits.models.trees import TreeModel

__all__ = [
    "Activation",
    "CanSave",
    "Do",
    "HasActivations",
    "HasClassScores",
    "HasGradients",
    "HasInterventions",
    "HasLayerGradients",
    "HasTrees",
    "Loaded",
    "Model",
    "ModelOptions",
    "Network",
    "TreeModel",
    "ending_of",
    "fit_to_schema",
    "load_model",
    "load_with_encoding",
    "read_model",
    "require",
    "save_as_original",
]
