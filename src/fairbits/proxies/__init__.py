"""What a score tells about protected attributes that the model never sees: bits, columns, matched people."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
