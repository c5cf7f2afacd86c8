"""What a figure is about: a model, a table and a schema, settled once, the right way round and by one rule."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
