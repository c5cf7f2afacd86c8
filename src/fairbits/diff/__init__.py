"""Two models on the same people: what changed, for whom, and where their outputs part."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
