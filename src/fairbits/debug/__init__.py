"""Where the bits of a run's cases come from: layers, neurons, attributes, and the data or the training."""

from fairbits.debug.results import (
    Attribution,
    Candidate,
    DebugResult,
    Evidence,
    LabelBits,
    LayerEffect,
    NeuronEffect,
    Origin,
    Retrained,
    SubsetBits,
)
from fairbits.debug.study import debug_run

__all__ = [
    "Attribution",
    "Candidate",
    "DebugResult",
    "Evidence",
    "LabelBits",
    "LayerEffect",
    "NeuronEffect",
    "Origin",
    "Retrained",
    "SubsetBits",
    "debug_run",
]
