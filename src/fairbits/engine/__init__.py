"""The engine: fused kernels that score and measure all twins of a person, thousands of people at a time."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
