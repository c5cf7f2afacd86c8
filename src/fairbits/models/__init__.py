"""The network under test, whatever made it."""

from fairbits.models.activations import Activation
from fairbits.models.foreign import owned
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
    HasFreshScores,
    HasGradients,
    HasInterventions,
    HasLayerGradients,
    HasTrees,
    HasTwinScores,
    Model,
    kind_of,
    require,
)
from fairbits.models.repeated import Repeated, fresh_scores
from fairbits.models.trees import TreeModel

__all__ = [
    "Activation",
    "CanSave",
    "Do",
    "HasActivations",
    "HasClassScores",
    "HasFreshScores",
    "HasGradients",
    "HasInterventions",
    "HasLayerGradients",
    "HasTrees",
    "HasTwinScores",
    "Loaded",
    "Model",
    "ModelOptions",
    "Network",
    "Repeated",
    "TreeModel",
    "ending_of",
    "fit_to_schema",
    "fresh_scores",
    "kind_of",
    "load_model",
    "load_with_encoding",
    "owned",
    "read_model",
    "require",
    "save_as_original",
]
