"""Where the bits of a run's cases come from: layers, neurons, attributes, and the data or the training."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
