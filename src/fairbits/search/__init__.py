"""The search for the people whose twins are treated most differently: strategies, and the oracle that answers them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
