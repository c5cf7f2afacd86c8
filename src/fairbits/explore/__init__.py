"""A page on this machine where one person is changed, one neuron switched, and the bits answer at once."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
