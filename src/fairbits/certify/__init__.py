"""What can be proved about a model, and for how many people: exact, proved or statistical statements."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
